//! What a node reports, in the shapes of the API.

use std::time::Duration;

use sigmalock_core::{Mode, PeerId, Standing};
use sigmalock_node::report::{
    CounterReport, Holder, LockReport, LockSummary, PeerReport, ReplicaView, StatusReport, Waiter,
};
use sigmalock_node::{Names, Role};

use crate::{API_VERSION, v1};

pub(super) fn lock(report: LockReport, names: &Names) -> v1::Lock {
    let token = report.replicas.iter().map(|replica| replica.token.0).max().unwrap_or(0);
    v1::Lock {
        name: report.name.to_string(),
        replicas_total: count(report.n),
        quorum: count(report.m),
        holder: report.holders.first().cloned().map(|first| holder(first, names)),
        replicas: report.replicas.iter().map(|one| replica(one, names)).collect(),
        waiters: report.queue.into_iter().map(|one| waiter(one, names)).collect(),
        waiting: count(report.waiting),
        token,
        asked: count(report.asked),
        answered: count(report.answered),
        holders: report.holders.into_iter().map(|one| holder(one, names)).collect(),
    }
}

/// What people call a peer; empty if that is not known.
pub(super) fn name(peer: PeerId, names: &Names) -> String {
    names.get(peer).map(ToString::to_string).unwrap_or_default()
}

fn holder(holder: Holder, names: &Names) -> v1::Holder {
    let (permits, slot) = permit(holder.mode);
    v1::Holder {
        permits,
        slot,
        peer: holder.peer.to_string(),
        peer_name: name(holder.peer, names),
        label: holder.label.unwrap_or_default(),
        token: holder.token.map_or(0, |token| token.0),
        votes: count(holder.votes),
        held_for_ms: millis(holder.held_for),
        ends_in_ms: millis(holder.ends_in),
        mode: mode(holder.mode).into(),
    }
}

fn mode(mode: Mode) -> v1::Mode {
    match mode {
        Mode::Exclusive => v1::Mode::Exclusive,
        Mode::Shared => v1::Mode::Shared,
        Mode::Permit { .. } | Mode::Slot { .. } => v1::Mode::Permit,
    }
}

/// How many permits there are, and which it is.
fn permit(mode: Mode) -> (u32, Option<u32>) {
    let slot = match mode {
        Mode::Slot { index, .. } => Some(index.into()),
        Mode::Exclusive | Mode::Shared | Mode::Permit { .. } => None,
    };
    (mode.permits().unwrap_or(0).into(), slot)
}

fn waiter(waiter: Waiter, names: &Names) -> v1::Waiter {
    v1::Waiter {
        peer: waiter.peer.to_string(),
        peer_name: name(waiter.peer, names),
        request: waiter.request.map(|request| request.to_string()).unwrap_or_default(),
        labels: waiter.labels,
        users: waiter.users,
    }
}

fn replica(replica: &ReplicaView, names: &Names) -> v1::Replica {
    let owner = replica.owners.first();
    v1::Replica {
        index: u32::from(replica.index) + 1,
        host: replica.host.map(|host| host.to_string()).unwrap_or_default(),
        answered: replica.answered,
        host_name: replica.host.map(|host| name(host, names)).unwrap_or_default(),
        owner: owner.map(ToString::to_string).unwrap_or_default(),
        owner_name: owner.map(|owner| name(owner.client, names)).unwrap_or_default(),
        owners: count(replica.owners.len()),
        held_for_ms: millis(replica.held_for),
        ends_in_ms: millis(replica.ends_in),
        waiting: replica.waiting,
        token: replica.token.0,
        abstains_for_ms: millis(replica.abstains_for),
    }
}

pub(super) fn summary(summary: LockSummary, names: &Names) -> v1::LockSummary {
    let (permits, slot) = permit(summary.mode);
    v1::LockSummary {
        mode: mode(summary.mode).into(),
        permits,
        slot,
        name: summary.name.to_string(),
        held: summary.held,
        holders: summary.holders,
        peer: summary.peer.map(|peer| peer.to_string()).unwrap_or_default(),
        peer_name: summary.peer.map(|peer| name(peer, names)).unwrap_or_default(),
        label: summary.label.unwrap_or_default(),
        token: summary.token.0,
        votes: count(summary.votes),
        held_for_ms: millis(summary.held_for),
        waiting: summary.waiting,
    }
}

pub(super) fn peer(report: PeerReport) -> v1::Peer {
    let place = report.place;
    let standing = match (place, report.role) {
        (None, _) => "",
        (Some(place), _) if place.since.is_some() => "member",
        (Some(_), Role::ClientOnly) => "client",
        (Some(_), Role::Host) => "outside",
    };
    v1::Peer {
        peer: report.peer.to_string(),
        name: report.name.map(|name| name.to_string()).unwrap_or_default(),
        network_id: report.network,
        addresses: report.addresses,
        hosts: report.role == Role::Host,
        up_for_ms: millis(report.up_for.unwrap_or_default()),
        is_self: report.is_self,
        connected: report.up_for.is_some(),
        standing: standing.to_owned(),
        member_since: place.and_then(|place| place.since).unwrap_or(0),
        silent_for_ms: millis(place.and_then(|place| place.silent_for).unwrap_or_default()),
        view: place.map_or(0, |place| place.view),
        forgot: place.is_some_and(|place| place.forgot),
    }
}

pub(super) fn status(report: StatusReport) -> v1::PeerStatus {
    let view = report.view.as_ref();
    let members = view.map_or(&[][..], |view| &view.members);
    let up = members.iter().filter(|member| member.silent_for.is_none()).count();
    let standing = view.map(|view| match view.standing {
        Standing::Outside if report.role == Role::ClientOnly => "client",
        Standing::Outside => "outside",
        Standing::Founding { .. } => "founding",
        Standing::Lost => "lost",
        Standing::OldDisk => "old-disk",
        Standing::Unvouched => "unvouched",
        Standing::Learning { .. } => "learning",
        Standing::Minority { .. } => "minority",
        Standing::Voting => "voting",
    });
    let (here, expected) = match view.map(|view| view.standing) {
        Some(Standing::Founding { here, expected, .. }) => (here, expected),
        _ => (0, 0),
    };
    v1::PeerStatus {
        founders_here: here.into(),
        founders_expected: expected.into(),
        membership: if view.is_some() { "agreed" } else { "open" }.to_owned(),
        view: view.map_or(0, |view| view.number),
        members: count(members.len()),
        members_up: count(up),
        standing: standing.unwrap_or_default().to_owned(),
        advice: report.advice,
        peer: report.peer.to_string(),
        name: report.name.map(|name| name.to_string()).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api_version: API_VERSION,
        pid: std::process::id(),
        uptime_ms: millis(report.uptime),
        can_grant: report.can_grant,
        why_not: report.why_not.unwrap_or_default(),
        votes: report.votes,
        why_no_vote: report.why_no_vote.unwrap_or_default(),
        hosts: report.role == Role::Host,
        peers_up: count(report.peers_up),
        hosts_up: count(report.hosts_up),
        sessions: count(report.sessions),
        held: count(report.held),
        waiting: count(report.waiting),
        hosted: count(report.hosted),
        durable: report.durable,
        data: report.data.unwrap_or_default(),
        swarm: report.swarm,
        private: report.private,
        protocol: report.protocol.to_owned(),
        replicas_total: count(report.n),
        quorum: count(report.m),
        lease_max_ms: millis(report.lease_max),
        listening: report.listening,
        advertised: report.advertised,
        refusals: report.refusals,
        counters: counters(report.counters),
    }
}

/// All counters, the kinds of messages and notes with a prefix.
fn counters(report: CounterReport) -> Vec<v1::Counter> {
    let plain = [
        ("batches", report.batches),
        ("inputs", report.inputs),
        ("grants", report.grants),
        ("to_self", report.to_self),
        ("unsent", report.unsent),
        ("frames_in", report.frames_in),
        ("bytes_in", report.bytes_in),
        ("nonsense", report.nonsense),
        ("writes_out", report.writes_out),
        ("bytes_out", report.bytes_out),
        ("commits", report.commits),
        ("records_ever", report.records_ever),
    ];
    let kinds = [("sent", report.sent), ("received", report.received), ("note", report.notes)];
    let kinds = kinds.into_iter().flat_map(|(prefix, counts)| {
        counts.into_iter().map(move |(kind, value)| (format!("{prefix}.{kind}"), value))
    });
    let plain = plain.into_iter().map(|(name, value)| (name.to_owned(), value));
    plain.chain(kinds).map(|(name, value)| v1::Counter { name, value }).collect()
}

pub(super) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
