//! `inspect`: what each replica of a lock says.

use clap::Args;
use sigmalock::report;
use sigmalock_core::Name;

use crate::args;
use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_answered};
use crate::table::{Align, Table};
use crate::words;

/// Shows what the hosts of a lock say about it, replica by replica
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Inspect {
    /// The lock
    #[arg(value_name = "NAME", value_parser = args::name)]
    name: Name,
    #[command(flatten)]
    peer: Peer,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock inspect /printer
  sigmalock inspect /printer --json";

impl Inspect {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let lock = look(&self.peer, &self.name)?;
        if self.json {
            super::print_json(&lock)?;
        } else {
            super::print(&head(&lock))?;
            replicas(&lock).print(&mut std::io::stdout().lock())?;
        }
        Ok(Verdict::Holds)
    }
}

/// What the hosts of a lock say.
pub(crate) fn look(peer: &Peer, name: &Name) -> anyhow::Result<report::Lock> {
    super::block_on(async {
        let client = peer.connect().await?;
        client.inspect(name.as_str()).await.map_err(not_answered)
    })
}

fn head(lock: &report::Lock) -> String {
    let holder = lock.holder.as_ref().map_or_else(
        || "nobody".to_owned(),
        |holder| {
            let for_ = words::millis(holder.held_for_ms);
            format!(
                "{} for {for_}, with {} of {} votes",
                who(holder),
                holder.votes,
                lock.replicas_total
            )
        },
    );
    let others = lock.holders.len().saturating_sub(1);
    let holder = match others {
        0 => holder,
        _ => format!("{holder}; and {others} more, all reading"),
    };
    let (name, waiting, token) = (&lock.name, lock.waiting, token(lock));
    format!("{name}\nholder   {holder}\nwaiting  {waiting}\ntoken    {token}\n\n")
}

/// The holder's token; without one, the last that any host knows.
pub(crate) fn token(lock: &report::Lock) -> String {
    let holder = lock.holder.as_ref().map_or(0, |holder| holder.token);
    match if holder > 0 { holder } else { lock.token } {
        0 => "-".to_owned(),
        token => token.to_string(),
    }
}

/// A holder as people know it: its label, if its peer told it.
pub(crate) fn who(holder: &report::Holder) -> String {
    match holder.label.as_str() {
        "" => format!("a user of {}", holder.peer),
        label => format!("{label} at {}", holder.peer),
    }
}

fn replicas(lock: &report::Lock) -> Table<7> {
    let left = |title| (title, Align::Left);
    let right = |title| (title, Align::Right);
    let mut table = Table::new([
        right("replica"),
        left("host"),
        left("vote"),
        right("ends in"),
        right("waiting"),
        right("token"),
        left("remark"),
    ]);
    for replica in &lock.replicas {
        let free = replica.owner.is_empty();
        let remark = match (replica.answered, replica.abstains_for_ms) {
            (false, _) => "does not answer".to_owned(),
            (true, 0) => String::new(),
            (true, ms) => format!("abstains for {}", words::millis(ms)),
        };
        table.row([
            replica.index.to_string(),
            replica.host.clone(),
            match replica.owners {
                _ if free => "-".to_owned(),
                0 | 1 => replica.owner.clone(),
                owners => format!("{} and {} more", replica.owner, owners - 1),
            },
            if free { "-".to_owned() } else { words::millis(replica.ends_in_ms) },
            replica.waiting.to_string(),
            replica.token.to_string(),
            remark,
        ]);
    }
    table
}
