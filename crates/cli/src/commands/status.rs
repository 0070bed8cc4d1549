//! `status`: whether this peer can grant locks.

use clap::Args;
use sigmalock::report::PeerStatus;

use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_answered};
use crate::words;

/// Tells how the peer is; exits with 0 when it can grant locks, else with 1
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Status {
    #[command(flatten)]
    peer: Peer,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock status
  sigmalock status --json --api 127.0.0.1:7420";

impl Status {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let status = super::block_on(async {
            let client = self.peer.connect().await?;
            client.status().await.map_err(not_answered)
        })?;
        if self.json {
            super::print_json(&status)?;
        } else {
            super::print(&describe(&status))?;
        }
        Ok(if status.ready { Verdict::Holds } else { Verdict::Violated })
    }
}

fn describe(status: &PeerStatus) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| text.push_str(&format!("{what:<10} {value}\n"));
    line("peer", format!("{} (process {}, version {})", status.peer, status.pid, status.version));
    line("can grant", if status.ready { "yes" } else { "no" }.to_owned());
    for note in &status.notes {
        line("", note.clone());
    }
    for address in &status.listening {
        line("listens at", address.clone());
    }
    let key = if status.keyed { "with a swarm key" } else { "without a swarm key" };
    let peers = words::count(u64::from(status.peers_connected), "other peer");
    line("swarm", format!("{peers} connected, {key}"));
    let (m, n) = (status.quorum, status.replicas_total);
    let longest = words::millis(status.lease_max_ms);
    line("locks", format!("held by {m} of {n} votes, leases of at most {longest}"));
    let role = if status.hosts { "hosts replicas" } else { "client only, hosts nothing" };
    let memory = if status.durable { "votes on disk" } else { "votes in memory only" };
    line("role", format!("{role}, {memory}"));
    let sessions = words::count(u64::from(status.sessions), "session");
    line("use", format!("{sessions}, {}", words::count(status.names, "name")));
    let (sent, received) = (status.messages_sent, status.messages_received);
    line("messages", format!("{sent} sent, {received} received"));
    line("up for", words::millis(status.uptime_ms));
    text
}
