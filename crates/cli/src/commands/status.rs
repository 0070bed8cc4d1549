//! `status`: whether this peer gets its users locks, and whether it votes.

use std::str::FromStr;

use clap::Args;
use sigmalock::report::PeerStatus;
use sigmalock_protocols::catalogue::ProtocolName;

use crate::addresses::host_and_port;
use crate::outcome::{Verdict, after_help};
use crate::process::terminal;
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
  sigmalock status --json --swarm dba1b484";

impl Status {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let status = super::block_on(async {
            let client = self.peer.connect().await?;
            client.status().await.map_err(not_answered)
        })?;
        if self.json {
            super::print_json(&status)?;
        } else {
            super::print(&describe(&status, terminal::columns()))?;
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
        "unvouched" => "this one has yet to be confirmed",
        "learning" => "this one is finding out which locks are held",
        "minority" => "this one reaches too few",
        _ => "this one votes",
    };
    format!("agreed; view {}: {up} of {members} up, {standing}", status.view)
}

/// Where it listens, and, once, what all of those addresses end with: its public key.
fn listening(status: &PeerStatus) -> (Vec<String>, Option<String>) {
    let mut identity = None;
    let address = |address: &String| match address.split_once("/p2p/") {
        Some((place, id)) if !id.contains('/') => {
            identity = Some(id.to_owned());
            place.to_owned()
        }
        _ => address.clone(),
    };
    (status.listening.iter().map(address).collect(), identity)
}

/// How locks are guarded, and what users have to do without.
fn protocol(name: &str) -> String {
    let Ok(known) = ProtocolName::from_str(name) else { return name.to_owned() };
    let promises = known.card().promises;
    let absent = [
        (promises.queue, "queue"),
        (promises.tokens, "fencing tokens"),
        (promises.modes, "readers or permits"),
    ];
    let absent: Vec<_> =
        absent.iter().filter(|(there, _)| !there).map(|(_, what)| format!("no {what}")).collect();
    if absent.is_empty() { name.to_owned() } else { format!("{name}: {}", absent.join(", ")) }
}

/// As many columns as what a line is about takes.
const INDENT: usize = 11;

/// Without a terminal, a line is as long as it is.
fn describe(status: &PeerStatus, columns: Option<usize>) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| {
        let value = words::wrapped(&value, columns.unwrap_or(usize::MAX), INDENT);
        text.push_str(&format!("{what:<10} {value}\n"));
    };
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
        // A swarm of several, or of others.
        (false, _) if !status.private && status.members != 1 && status.standing != "founding" => {
            "not here (other peers may)"
        }
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
    let (addresses, identity) = listening(status);
    for address in addresses {
        line("listens at", address);
    }
    if let Some(identity) = identity {
        line("known as", identity);
    }
    let listened = |told: &&String| status.listening.iter().any(|at| at.starts_with(*told));
    for told in status.advertised.iter().filter(|told| !listened(told)) {
        line("advertises", host_and_port(told));
    }
    for advice in &status.advice {
        line("mind", advice.clone());
    }
    let others = words::count(u64::from(status.peers_up.saturating_sub(1)), "other peer");
    if status.private {
        let whom = "its locks exclude other commands of its user on this machine, nobody else";
        line("private", format!("nobody can join it: {whom}"));
    } else {
        line("swarm", format!("{}, {others} connected", status.swarm));
    }
    line("members", members(status));
    if !status.protocol.is_empty() {
        line("protocol", protocol(&status.protocol));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_broken_in_a_word_and_none_is_too_long_for_the_terminal() {
        let id = "12D3KooWQhCTu6kop75VGuwyzwF7kFpAVJdj8G2mp5qEU4pNARjK";
        let status = PeerStatus {
            why_not: "this peer reaches 1 of 2 members of the swarm, itself included, and it takes 2; if the others are \
                      gone for good, see `sigmalock forget --help`"
                .into(),
            listening: vec![
                format!("/ip4/192.0.2.2/tcp/7421/p2p/{id}"),
                format!("/ip6/2001:db8:1111:2222:3333:4444:5555:6666/tcp/7421/p2p/{id}"),
            ],
            refusals: vec![format!("{id} was refused: the kinds of membership differ (ours agreed, theirs open)")],
            ..PeerStatus::default()
        };
        let text = describe(&status, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\ncan grant  not here (other peers may)\n"), "{text}");
        assert_eq!(protocol("sigma"), "sigma");
        assert_eq!(protocol("later"), "later", "of a later version");
        let without = "strawman: no queue, no fencing tokens, no readers or permits";
        assert_eq!(protocol("strawman"), without);
        let alone = PeerStatus { private: true, ..PeerStatus::default() };
        assert!(describe(&alone, None).contains("\ncan grant  no\n"));
        assert!(text.contains("\nlistens at /ip4/192.0.2.2/tcp/7421\n"), "{text}");
        assert!(text.contains(&format!("\nknown as   {id}\n")), "{text}");
        let unbroken = describe(&status, None);
        assert!(
            unbroken.contains(&status.why_not) && unbroken.contains(&status.refusals[0]),
            "{unbroken}"
        );
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text), words(&unbroken));
    }
}
