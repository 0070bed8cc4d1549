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
        left("role"),
        ("connected for", Align::Right),
        left("address"),
    ]);
    for peer in peers {
        let up_for = words::millis(peer.up_for_ms);
        table.row([
            peer.peer.clone(),
            if peer.hosts { "host" } else { "client only" }.to_owned(),
            if peer.is_self { "this one".to_owned() } else { up_for },
            peer.addresses.first().cloned().unwrap_or_default(),
        ]);
    }
    Ok(table.print(&mut std::io::stdout().lock())?)
}
