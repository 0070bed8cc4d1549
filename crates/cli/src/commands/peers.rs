//! `peers`: the swarm, as this peer knows it.

use clap::Args;
use sigmalock::report;

use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_answered};
use crate::table::{Align, Table};
use crate::words;

/// Lists the peers of the swarm, as this peer knows them
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Peers {
    #[command(flatten)]
    peer: Peer,
    /// One JSON object per peer, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock peers
  sigmalock peers --json";

impl Peers {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let peers = super::block_on(async {
            let client = self.peer.connect().await?;
            client.peers().await.map_err(not_answered)
        })?;
        if self.json {
            peers.iter().try_for_each(super::print_json)?;
        } else {
            print_table(&peers)?;
        }
        Ok(Verdict::Holds)
    }
}

fn print_table(peers: &[report::Peer]) -> anyhow::Result<()> {
    let left = |title| (title, Align::Left);
    let mut table = Table::new([
        left("peer"),
        left("state"),
        ("for", Align::Right),
        ("round trip", Align::Right),
        left("role"),
        left("address"),
    ]);
    for peer in peers {
        let state = match (peer.myself, peer.connected) {
            (true, _) => "this one",
            (false, true) => "connected",
            (false, false) => "away",
        };
        let rtt = std::time::Duration::from_micros(peer.rtt_us);
        table.row([
            peer.peer.clone(),
            state.to_owned(),
            words::millis(peer.since_ms),
            if rtt.is_zero() { "-".to_owned() } else { words::time(rtt) },
            if peer.hosts { "host" } else { "client only" }.to_owned(),
            peer.addresses.first().cloned().unwrap_or_default(),
        ]);
    }
    Ok(table.print(&mut std::io::stdout().lock())?)
}
