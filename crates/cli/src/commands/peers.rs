//! `peers`: the swarm, as this peer knows it.

use clap::Args;
use sigmalock::report;

use crate::addresses::host_and_port;
use crate::known::Known;
use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_answered};
use crate::table::{Align, Table};
use crate::words;

/// Lists the peers of the swarm, as this peer knows them, and who of them is a member
///
/// Each with the beginning of its id behind its name, and the address at which it is reached, or was; the peer that
/// answers with the one at which others are told to find it.
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
        let (peers, status) = super::block_on(async {
            let client = self.peer.connect().await?;
            let peers = client.peers().await.map_err(not_answered)?;
            Ok((peers, client.status().await.map_err(not_answered)?))
        })?;
        if self.json {
            peers.iter().try_for_each(super::print_json)?;
        } else {
            print_table(&peers, &status)?;
        }
        Ok(Verdict::Holds)
    }
}

fn print_table(peers: &[report::Peer], status: &report::PeerStatus) -> anyhow::Result<()> {
    let known = Known::of(peers);
    let left = |title| (title, Align::Left);
    let mut table = Table::new([left("peer"), left("standing"), left("link"), left("address")]);
    for peer in peers {
        let link = match (peer.is_self, peer.connected) {
            (true, _) => "this one".to_owned(),
            (false, true) => format!("up for {}", words::millis(peer.up_for_ms)),
            (false, false) => format!("silent for {}", words::millis(peer.silent_for_ms)),
        };
        let address = peer.addresses.first().map(|at| host_and_port(at)).unwrap_or_default();
        table.row([known.show_with_id(&peer.peer), standing(peer), link, address]);
    }
    super::print(&head(peers, status))?;
    Ok(table.print(&mut std::io::stdout().lock())?)
}

/// The view, where there is one; else why not.
fn head(peers: &[report::Peer], status: &report::PeerStatus) -> String {
    let is_member = |peer: &&report::Peer| peer.standing == "member";
    let members = peers.iter().filter(is_member).count();
    let up = peers.iter().filter(is_member).filter(|peer| peer.connected).count();
    match peers.first() {
        Some(peer) if peer.standing.is_empty() => String::new(),
        Some(peer) if peer.view > 0 => {
            let members = words::count(members as u64, "member");
            let forgetful = match peers.iter().filter(|peer| peer.forgot).count() {
                0 => String::new(),
                count => format!(", {count} without memory"),
            };
            format!("view {}: {up} of {members} up{forgetful}\n\n", peer.view)
        }
        _ => format!("{}\n\n", status.why_not),
    }
}

fn standing(peer: &report::Peer) -> String {
    match peer.standing.as_str() {
        "member" if peer.forgot => {
            format!("member since view {}, lost its memory", peer.member_since)
        }
        "member" => format!("member since view {}", peer.member_since),
        "outside" if peer.forgot => "not a member, lost its memory".to_owned(),
        "outside" => "not a member".to_owned(),
        _ if peer.hosts => "host".to_owned(),
        _ => "client only".to_owned(),
    }
}
