//! `status`: whether this peer gets its users locks, and whether it votes.

use clap::Args;
use sigmalock::report::PeerStatus;

use crate::addresses::host_and_port;
use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_answered};
use crate::words;

/// Tells how the peer is; exits with 0 when it can grant locks and votes, else with 1
///
/// A peer can grant locks when its users get them, be it by its own vote or by those of others. One that does not vote
/// is of no help to others, and must not be counted on when the next one is stopped. A client, which never votes, exits
/// with 0 when it can grant.
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
        let well = status.can_grant && (status.votes || !status.hosts);
        Ok(if well { Verdict::Holds } else { Verdict::Violated })
    }
}

/// Who is in, as far as anybody says.
fn members(status: &PeerStatus) -> String {
    if status.membership != "agreed" {
        return "open: nobody votes on who is in".to_owned();
    }
    if status.standing == "founding" {
        let (here, expected) = (status.founders_here, status.founders_expected);
        return format!("agreed; in no swarm yet, {here} of {expected} hosts here to begin one");
    }
    if status.view == 0 {
        return "agreed; in no swarm yet".to_owned();
    }
    let (up, members) = (status.members_up, words::count(u64::from(status.members), "member"));
    let standing = match status.standing.as_str() {
        "client" => "this peer is a client, and none of them",
        "outside" => "this peer is none of them",
        "lost" => "this one has lost its memory",
        "old-disk" => "this one came back with an old disk",
        "unvouched" => "this one has just come back",
        "learning" => "this one is finding out which locks are held",
        "minority" => "this one reaches too few",
        _ => "this one votes",
    };
    format!("agreed; view {}: {up} of {members} up, {standing}", status.view)
}

fn describe(status: &PeerStatus) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| text.push_str(&format!("{what:<10} {value}\n"));
    let (id, pid, version) = (&status.peer, status.pid, &status.version);
    let peer = match status.name.as_str() {
        "" => format!("{id} (process {pid}, version {version})"),
        name => format!("{name} ({id}, process {pid}, version {version})"),
    };
    line("peer", peer);
    let by_others = status.can_grant && !status.votes;
    let can_grant = match (status.can_grant, by_others) {
        (true, true) => "yes, by the votes of others",
        (true, false) => "yes",
        (false, _) => "no",
    };
    line("can grant", can_grant.to_owned());
    if !status.why_not.is_empty() {
        line("", status.why_not.clone());
    }
    line("votes", if status.votes { "yes" } else { "no" }.to_owned());
    if !status.why_no_vote.is_empty() && status.why_no_vote != status.why_not {
        line("", status.why_no_vote.clone());
    }
    for address in &status.listening {
        line("listens at", address.clone());
    }
    let listened = |told: &&String| status.listening.iter().any(|at| at.starts_with(*told));
    for told in status.advertised.iter().filter(|told| !listened(told)) {
        line("advertises", host_and_port(told));
    }
    let key = match status.swarm.as_str() {
        "" => "without a swarm key".to_owned(),
        swarm => format!("with swarm key {swarm}"),
    };
    for advice in &status.advice {
        line("mind", advice.clone());
    }
    let others = words::count(u64::from(status.peers_up.saturating_sub(1)), "other peer");
    line("swarm", format!("{others} connected, {key}"));
    line("members", members(status));
    let (m, n) = (status.quorum, status.replicas_total);
    let longest = words::millis(status.lease_max_ms);
    if n > 0 {
        line("locks", format!("held by {m} of {n} votes, leases of at most {longest}"));
    }
    line(
        "role",
        if status.hosts { "hosts replicas" } else { "client only, hosts nothing" }.to_owned(),
    );
    let memory = if status.durable { status.data.clone() } else { "in memory only".to_owned() };
    line("data", memory);
    let sessions = words::count(u64::from(status.sessions), "session");
    line("use", format!("{sessions}, {} held, {} waiting", status.held, status.waiting));
    for refusal in &status.refusals {
        line("refused", refusal.clone());
    }
    line("up for", words::millis(status.uptime_ms));
    text
}
