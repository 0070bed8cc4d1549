//! `locks`: the locks that this peer knows.

use clap::Args;
use sigmalock::report::LockSummary;

use crate::known::Known;
use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_answered};
use crate::table::{Align, Table};
use crate::words;

/// Lists the locks of the swarm that are in use, or were a moment ago
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Locks {
    /// Only names that begin so
    #[arg(value_name = "PREFIX", default_value = "", hide_default_value = true)]
    prefix: String,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = limit)]
    limit: u32,
    #[command(flatten)]
    peer: Peer,
    /// One JSON object per lock, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock locks
  sigmalock locks /render/ --limit 20 --json";

fn limit(text: &str) -> Result<u32, String> {
    let limit = text.parse().ok().filter(|limit| (1..=1000).contains(limit));
    limit.ok_or_else(|| "this should be a whole number between 1 and 1000".to_owned())
}

impl Locks {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let (locks, peers) = super::block_on(async {
            let client = self.peer.connect().await?;
            let locks =
                client.list(self.prefix.as_str(), self.limit).await.map_err(not_answered)?;
            Ok((locks, client.peers().await.map_err(not_answered)?))
        })?;
        if self.json {
            locks.iter().try_for_each(super::print_json)?;
        } else {
            print_table(&locks, &Known::of(&peers))?;
        }
        Ok(Verdict::Holds)
    }
}

fn print_table(locks: &[LockSummary], known: &Known) -> anyhow::Result<()> {
    let left = |title| (title, Align::Left);
    let right = |title| (title, Align::Right);
    let mut table =
        Table::new([left("name"), left("holder"), right("for"), right("waiting"), right("token")]);
    for lock in locks {
        let who = match (lock.held, lock.label.as_str()) {
            (false, _) => "-".to_owned(),
            (true, "") => known.show(&lock.peer),
            (true, label) => format!("{label} at {}", known.show(&lock.peer)),
        };
        let who = format!("{who}{}", words::company(lock.mode(), lock.permits, lock.slot));
        let who = match lock.holders {
            0 | 1 => who,
            holders => format!("{who} and {} more", holders - 1),
        };
        table.row([
            lock.name.clone(),
            who,
            if lock.held { words::millis(lock.held_for_ms) } else { "-".to_owned() },
            lock.waiting.to_string(),
            words::token(lock.token),
        ]);
    }
    Ok(table.print(&mut std::io::stdout().lock())?)
}
