//! `explain`: why am I still waiting?

use std::fmt::Write;

use clap::Args;
use sigmalock::report;
use sigmalock_core::Name;

use crate::args;
use crate::holder::name_of;
use crate::known::Known;
use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_answered};
use crate::words;

/// Says in words who has a lock, who waits, and why nobody gets it if nobody does
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Explain {
    /// The lock
    #[arg(value_name = "NAME", value_parser = args::name)]
    name: Name,
    #[command(flatten)]
    peer: Peer,
    /// One JSON object: the words, and the report they are made from
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock explain /printer
  sigmalock explain /printer --json";

impl Explain {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let (lock, status, peers) = super::block_on(async {
            let client = self.peer.connect().await?;
            let lock = client.inspect(self.name.as_str()).await.map_err(not_answered)?;
            let status = client.status().await.map_err(not_answered)?;
            Ok((lock, status, client.peers().await.map_err(not_answered)?))
        })?;
        let words = explain(&lock, &status.why_not, &Known::of(&peers));
        if self.json {
            let why_not = &status.why_not;
            let explained = serde_json::json!({ "words": words, "why_not": why_not, "lock": lock });
            super::print_json(&explained)?;
        } else {
            super::print(&words)?;
        }
        Ok(Verdict::Holds)
    }
}

/// A lock in words, and first of all why this peer can get it for nobody, if so.
fn explain(lock: &report::Lock, why_not: &str, known: &Known) -> String {
    let mut text = String::new();
    if !why_not.is_empty() {
        let _ = writeln!(text, "This peer cannot grant locks now: {why_not}.");
    }
    holder(lock, known, &mut text);
    others(lock, known, &mut text);
    permits(lock, &mut text);
    queue(lock, known, &mut text);
    hosts(lock, known, &mut text);
    text
}

fn holder(lock: &report::Lock, known: &Known, text: &mut String) {
    let name = &lock.name;
    let _ = match &lock.holder {
        Some(holder) => writeln!(
            text,
            "{name} is held by {} for {}, with {} of {} votes ({} are needed){}. Without renewal its \
             right ends in {}.",
            name_of(holder, known),
            words::millis(holder.held_for_ms),
            holder.votes,
            lock.replicas_total,
            lock.quorum,
            match holder.token {
                0 => String::new(),
                token => format!(" and token {token}"),
            },
            words::millis(holder.ends_in_ms),
        ),
        None if lock.replicas.is_empty() => {
            writeln!(text, "{name}: nobody is known who would have a vote on it.")
        }
        None if lock.replicas.iter().any(|replica| !replica.owner.is_empty()) => writeln!(
            text,
            "{name} is held by nobody: votes are given, but nobody is known to have the {} it takes.",
            lock.quorum
        ),
        None if silent(lock).count() >= lock.quorum as usize => {
            writeln!(text, "{name}: nobody is known to hold it, but too few answer to be sure.")
        }
        None if to_be_had(lock) < lock.quorum as usize => writeln!(
            text,
            "{name} is held by nobody, and nobody can get it now: {}.",
            too_few(lock)
        ),
        None => writeln!(text, "{name} is free: no vote is given to anybody."),
    };
}

/// How many votes are given, or would be.
fn to_be_had(lock: &report::Lock) -> usize {
    let there = |replica: &&report::Replica| replica.answered && replica.abstains_for_ms == 0;
    lock.replicas.iter().filter(there).count()
}

/// That they are not enough.
fn too_few(lock: &report::Lock) -> String {
    let (there, total) = (to_be_had(lock), lock.replicas_total);
    format!("{there} of {total} votes are to be had, and it takes {}", lock.quorum)
}

/// Votes that could not be asked.
fn silent(lock: &report::Lock) -> impl Iterator<Item = &report::Replica> {
    lock.replicas.iter().filter(|replica| !replica.answered)
}

/// Those who are inside with the first.
fn others(lock: &report::Lock, known: &Known, text: &mut String) {
    let with =
        |other| format!("{}, with token {}", name_of(other, known), words::token(other.token));
    let others: Vec<String> = lock.holders.iter().skip(1).map(with).collect();
    if !others.is_empty() {
        let _ = writeln!(text, "Inside, too: {}.", others.join("; "));
    }
}

/// How many permits are left, where there are any.
fn permits(lock: &report::Lock, text: &mut String) {
    let permits = lock.holder.as_ref().map_or(0, |holder| holder.permits);
    let out = u32::try_from(lock.holders.len()).unwrap_or(u32::MAX);
    let _ = match (permits, permits.saturating_sub(out)) {
        (0, _) => Ok(()),
        (_, 0) => writeln!(text, "No permit is left."),
        (_, 1) => writeln!(text, "1 permit is left, for whoever says --permits {permits}."),
        (_, left) => {
            writeln!(text, "{left} permits are left, for whoever says --permits {permits}.")
        }
    };
}

fn queue(lock: &report::Lock, known: &Known, text: &mut String) {
    let waiting = lock.waiting;
    let _ = match waiting {
        0 if silent(lock).next().is_some() => {
            writeln!(text, "Nobody is in its queue, as far as those know that answer.")
        }
        0 => writeln!(text, "Nobody waits for it."),
        _ if lock.waiters.is_empty() => {
            let requests = words::count(waiting.into(), "request");
            let verb = if waiting == 1 { "waits" } else { "wait" };
            writeln!(text, "{requests} {verb} for it; whose is not known.")
        }
        1 => writeln!(text, "One request waits for it:"),
        _ => writeln!(text, "{waiting} requests wait for it, of these peers, next first:"),
    };
    // What a peer says of its users is the same for all of its requests.
    let is_first = |(place, waiter): &(usize, &report::Waiter)| {
        !lock.waiters[..*place].iter().any(|other| other.peer == waiter.peer)
    };
    let peers = lock.waiters.iter().enumerate().filter(is_first).map(|(_, waiter)| waiter);
    for (place, waiter) in peers.enumerate() {
        let users = match waiter.labels.as_slice() {
            [] => known.request(&waiter.request),
            labels => labels.join(", then "),
        };
        let more = (waiter.users as usize).saturating_sub(waiter.labels.len().max(1));
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let _ = writeln!(text, "  {}. at {}: {users}{more}", place + 1, known.show(&waiter.peer));
    }
    let more = waiting.saturating_sub(u32::try_from(lock.waiters.len()).unwrap_or(u32::MAX));
    if more > 0 && !lock.waiters.is_empty() {
        let _ = writeln!(text, "  … and {more} more");
    }
}

/// What is wrong with the hosts, and what that means.
fn hosts(lock: &report::Lock, known: &Known, text: &mut String) {
    let silent: Vec<_> = silent(lock).collect();
    let answering = lock.replicas.iter().filter(|replica| replica.answered);
    let abstaining: Vec<_> = answering.filter(|replica| replica.abstains_for_ms > 0).collect();
    let hosts = |replicas: &[&report::Replica]| {
        let mut hosts: Vec<_> = replicas.iter().map(|replica| replica.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.retain(|host| !host.is_empty());
        match hosts.is_empty() {
            true => "hosts not known".to_owned(),
            false => known.list(hosts).join(", "),
        }
    };
    if !silent.is_empty() {
        let count = words::count(silent.len() as u64, "vote");
        let _ = writeln!(text, "{count} cannot be asked: no answer from {}.", hosts(&silent));
    }
    if !abstaining.is_empty() {
        let longest = abstaining.iter().map(|replica| replica.abstains_for_ms).max().unwrap_or(0);
        let (verb, them) =
            if abstaining.len() == 1 { ("abstains", "it") } else { ("abstain", "them") };
        let _ = writeln!(
            text,
            "{} {verb} for up to {}: {} came to host {them} without knowing to whom before.",
            words::count(abstaining.len() as u64, "vote"),
            words::millis(longest),
            hosts(&abstaining),
        );
    }
    let needed = lock.quorum as usize;
    let is_given = lock.replicas.iter().any(|replica| !replica.owner.is_empty());
    let said_first = !is_given && silent.len() < needed;
    if to_be_had(lock) < needed && lock.holder.is_none() && !said_first {
        let _ = writeln!(text, "So nobody can get it now: {}.", too_few(lock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sigmalock::report::{Holder, Lock, Replica, Waiter};

    fn words(lock: &Lock, why_not: &str) -> String {
        explain(lock, why_not, &Known::default())
    }

    fn lock(replicas: impl IntoIterator<Item = (&'static str, bool, u64)>) -> Lock {
        let replica = |(i, (owner, answered, abstains_for_ms)): (u32, (&str, bool, u64))| Replica {
            index: i + 1,
            host: format!("p{i}"),
            answered,
            owner: owner.to_owned(),
            abstains_for_ms,
            ..Replica::default()
        };
        Lock {
            name: "/x".to_owned(),
            replicas_total: 3,
            quorum: 2,
            replicas: (0..).zip(replicas).map(replica).collect(),
            ..Lock::default()
        }
    }

    #[test]
    fn a_free_lock_is_said_to_be_free() {
        let words = self::words(&lock([("", true, 0); 3]), "");
        assert_eq!(words, "/x is free: no vote is given to anybody.\nNobody waits for it.\n");
    }

    #[test]
    fn holder_and_queue_are_told() {
        let mut held = lock([("p7/1", true, 0); 3]);
        let label = "run make (77)".to_owned();
        held.holder =
            Some(Holder { peer: "p7".into(), label, votes: 3, token: 9, ..Holder::default() });
        held.waiting = 3;
        held.waiters =
            vec![Waiter { peer: "p1".into(), request: "p1/4".into(), ..Waiter::default() }];
        let words = self::words(&held, "");
        assert!(words.starts_with("/x is held by run make (77) at p7 for "), "{words}");
        assert!(words.contains("with 3 of 3 votes (2 are needed) and token 9"), "{words}");
        assert!(words.contains("  1. at p1: p1/4\n  … and 2 more\n"), "{words}");
    }

    #[test]
    fn all_who_are_inside_are_named_with_slots_and_tokens_and_what_is_left() {
        let mut held = lock([("p7/1", true, 0); 3]);
        let holder = |slot| Holder {
            peer: format!("p{slot}"),
            label: "run make".into(),
            token: 9 + u64::from(slot),
            permits: 3,
            slot: Some(slot),
            ..Holder::default()
        };
        held.holder = Some(holder(0));
        held.holders = vec![holder(0), holder(1)];
        let words = self::words(&held, "");
        assert!(words.starts_with("/x is held by run make at p0 (slot 0 of 0–2) for "), "{words}");
        assert!(words.contains("Inside, too: run make at p1 (slot 1 of 0–2), with token 10."));
        assert!(words.contains("1 permit is left, for whoever says --permits 3."), "{words}");
        held.holders.push(holder(2));
        assert!(self::words(&held, "").contains("No permit is left."));
        held.holders.truncate(1);
        assert!(self::words(&held, "").contains("2 permits are left"));
    }

    #[test]
    fn what_keeps_everybody_out_is_named() {
        let words = self::words(&lock([("", true, 0), ("", true, 4_000), ("", false, 0)]), "");
        let first = "/x is held by nobody, and nobody can get it now: 1 of 3 votes are to be had, and it takes 2.\n";
        assert!(words.starts_with(first), "{words}");
        assert!(words.contains("1 vote cannot be asked: no answer from p2."), "{words}");
        assert!(words.contains("1 vote abstains for up to 4.0 s: p1 came to host it"), "{words}");
        assert!(
            !words.contains("is free") && words.matches("nobody can get it").count() == 1,
            "{words}"
        );
    }

    #[test]
    fn a_lock_is_not_called_free_while_a_quorum_of_votes_cannot_be_asked() {
        let words = self::words(&lock([("", true, 0), ("", false, 0), ("", false, 0)]), "");
        assert!(!words.contains("is free"), "{words}");
        assert!(words.contains("too few answer to be sure"), "{words}");
        let words = self::words(&lock([("", true, 0), ("", true, 0), ("", false, 0)]), "");
        assert!(words.starts_with("/x is free"), "{words}");
        assert!(words.contains("as far as those know that answer"), "{words}");
    }

    #[test]
    fn a_peer_that_cannot_grant_says_so_first() {
        let words = self::words(&lock([("", true, 0); 3]), "this peer is leaving the swarm");
        let first = "This peer cannot grant locks now: this peer is leaving the swarm.\n";
        assert!(words.starts_with(first), "{words}");
    }

    #[test]
    fn peers_are_called_by_their_names() {
        let mut held = lock([("p7/1", true, 0), ("p7/1", true, 0), ("", false, 0)]);
        let label = "run make (77)".to_owned();
        held.holder = Some(Holder { peer: "p7".into(), label, votes: 2, ..Holder::default() });
        held.waiting = 1;
        held.waiters =
            vec![Waiter { peer: "p1".into(), request: "p1/4".into(), ..Waiter::default() }];
        let peer = |peer: &str, name: &str| report::Peer {
            peer: peer.into(),
            name: name.into(),
            ..report::Peer::default()
        };
        let known = [peer("p7", "render-7"), peer("p1", "web"), peer("p2", "db")];
        let words = explain(&held, "", &Known::of(&known));
        assert!(words.starts_with("/x is held by run make (77) at render-7 for "), "{words}");
        assert!(words.contains("  1. at web: web/4\n"), "{words}");
        assert!(words.contains("no answer from db."), "{words}");
    }
}
