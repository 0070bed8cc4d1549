//! `inspect`: what each replica of a lock says.

use clap::Args;
use sigmalock::report;
use sigmalock_core::Name;

use crate::args;
use crate::holder::name_of;
use crate::known::Known;
use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_answered};
use crate::table::{Align, Table};
use crate::words;

/// Shows what the hosts of a lock say about it, replica by replica
///
/// The token is the holder's: what it shows to a fence. `tokens up to` is another number: hosts give tokens to peers in
/// blocks, each for several users of that peer, and this is the end of the last block that a host knows of. The holder's
/// token lies in such a block, so it is mostly lower.
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
        let (lock, known) = super::block_on(async {
            let client = self.peer.connect().await?;
            let lock = client.inspect(self.name.as_str()).await.map_err(not_answered)?;
            Ok((lock, Known::of(&client.peers().await.map_err(not_answered)?)))
        })?;
        if self.json {
            super::print_json(&lock)?;
        } else {
            super::print(&head(&lock, &known))?;
            replicas(&lock, &known).print(&mut std::io::stdout().lock())?;
        }
        Ok(Verdict::Holds)
    }
}

fn head(lock: &report::Lock, known: &Known) -> String {
    let total = lock.replicas_total;
    let line = |holder: &report::Holder| {
        let for_ = words::millis(holder.held_for_ms);
        let who = name_of(holder, known);
        format!("{who} for {for_}, with {} of {total} votes", holder.votes)
    };
    let (name, waiting) = (&lock.name, lock.waiting);
    if let [_, _, ..] = lock.holders.as_slice() {
        let lines = lock.holders.iter().map(|holder| {
            let token = words::token(holder.token);
            format!("holder   {}, token {token}\n", line(holder))
        });
        return format!("{name}\n{}waiting  {waiting}\n\n", lines.collect::<String>());
    }
    let holder = lock.holder.as_ref().map_or_else(|| "nobody".to_owned(), line);
    let token = match lock.holder.as_ref().map(|holder| holder.token) {
        None | Some(0) if lock.token == 0 => words::token(0),
        None => format!("none now; those up to {} may have been used", lock.token),
        Some(0) => format!("not known; hosts have given out those up to {}", lock.token),
        Some(token) => token.to_string(),
    };
    format!("{name}\nholder   {holder}\nwaiting  {waiting}\ntoken    {token}\n\n")
}

fn replicas(lock: &report::Lock, known: &Known) -> Table<7> {
    let left = |title| (title, Align::Left);
    let right = |title| (title, Align::Right);
    let mut table = Table::new([
        right("replica"),
        left("host"),
        left("vote"),
        right("ends in"),
        right("waiting"),
        right("tokens up to"),
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
            known.show(&replica.host),
            match replica.owners {
                _ if free => "-".to_owned(),
                0 | 1 => known.request(&replica.owner),
                owners => format!("{} and {} more", known.request(&replica.owner), owners - 1),
            },
            if free { "-".to_owned() } else { words::millis(replica.ends_in_ms) },
            replica.waiting.to_string(),
            words::token(replica.token),
            remark,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_the_holders_and_what_hosts_know_is_called_by_another_name() {
        let holder = report::Holder { token: 9, ..report::Holder::default() };
        let mut lock = report::Lock { holder: Some(holder), token: 15, ..report::Lock::default() };
        assert!(
            head(&lock, &Known::default()).contains("\ntoken    9\n"),
            "{}",
            head(&lock, &Known::default())
        );
        lock.holder = None;
        let words = "token    none now; those up to 15 may have been used";
        assert!(
            head(&lock, &Known::default()).contains(words),
            "{}",
            head(&lock, &Known::default())
        );
        lock.holder = Some(report::Holder::default());
        let words = "token    not known; hosts have given out those up to 15";
        assert!(head(&lock, &Known::default()).contains(words));
        lock.token = 0;
        assert!(
            head(&lock, &Known::default()).contains("token    -"),
            "{}",
            head(&lock, &Known::default())
        );
        lock.replicas = vec![report::Replica { token: 15, ..report::Replica::default() }];
        let mut table = Vec::new();
        replicas(&lock, &Known::default()).print(&mut table).expect("it can be written");
        let table = String::from_utf8(table).expect("UTF-8");
        assert!(table.contains("tokens up to") && table.contains("15"), "{table}");
    }
}
