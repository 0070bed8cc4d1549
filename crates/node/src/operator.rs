//! What operators ask of a swarm, put together from what its peers answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use libp2p::Multiaddr;
use sigmalock_core::{Mode, Name, PeerId, ReplicaReport, RequestId};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::address_book::bare;
use crate::control::{
    ANSWER_TIMEOUT, Answer, LocalAnswer, NAMES_PER_ANSWER_MAX, NameEntry, Question,
};
use crate::handle::{Handle, Hosts, Local};
use crate::link::{Command, Description};
use crate::report::{
    EvictError, EvictOutcome, ForgetError, Holder, LockReport, LockSummary, PeerReport,
    ReplicaView, StatusReport, Waiter, duration,
};

/// How often a watched lock is looked at.
pub const WATCH_PERIOD: Duration = Duration::from_millis(200);
/// Locks in one list.
pub const LIST_MAX: usize = 100_000;
/// Waiters in one report whose peers are asked who they are.
const WAITERS_ASKED_MAX: usize = 64;
/// Requests with votes in one report whose peers are asked whether they are inside.
const HOLDERS_ASKED_MAX: usize = 64;

impl Handle {
    /// Who holds a lock, who waits for it, and which votes are where. Asks all its hosts, and the peers
    /// of holder and waiters; takes two seconds at most. Who does not answer leaves a hole.
    pub async fn inspect(&self, name: Name) -> LockReport {
        let (done, hosts) = oneshot::channel();
        self.shared.send(Local::Hosts { name: name.clone(), done });
        let Hosts { votes: (n, m), seats } = hosts.await.unwrap_or_default();
        let asked: BTreeSet<PeerId> = seats.iter().filter_map(|(_, host)| *host).collect();
        let replicas = self.replicas(&name, &asked).await;
        let answered: BTreeSet<PeerId> = replicas.keys().copied().collect();
        let mut report = LockReport {
            n,
            m,
            holders: Vec::new(),
            replicas: views(&seats, &replicas),
            queue: Vec::new(),
            waiting: 0,
            asked: asked.len(),
            answered: answered.len(),
            name,
        };
        let owners = replicas.values().flatten().flat_map(|replica| &replica.owners);
        let modes = owners.map(|owner| (owner.request, owner.mode)).collect();
        let queue = queue(&replicas);
        report.waiting = replicas.values().flatten().map(|r| r.waiting as usize).max().unwrap_or(0);
        let votes = report.votes();
        let peers: BTreeSet<PeerId> = queue
            .iter()
            .take(WAITERS_ASKED_MAX)
            .map(|request| request.client)
            .chain(votes.keys().take(HOLDERS_ASKED_MAX).map(|request| request.client))
            .chain([self.shared.facts.me])
            .collect();
        let locals = self.locals(&report.name, &peers).await;
        let (next, others) = unqueued(&queue, &locals);
        report.waiting += next.len() + others.len();
        let queued = queue.into_iter().map(|request| waiter(request, &locals));
        report.queue = next.into_iter().chain(queued).chain(others).collect();
        report.holders = report.find_holders(&votes, &modes, &locals);
        report
    }

    async fn replicas(
        &self, name: &Name, hosts: &BTreeSet<PeerId>,
    ) -> BTreeMap<PeerId, Vec<ReplicaReport>> {
        let ask = |peer: PeerId| async move {
            match self.ask(peer, Question::Replicas { name: name.clone() }).await {
                Some(Answer::Replicas(replicas)) => Some((peer, replicas)),
                _ => None,
            }
        };
        join_all(hosts.iter().copied().map(ask)).await.into_iter().flatten().collect()
    }

    async fn locals(&self, name: &Name, peers: &BTreeSet<PeerId>) -> BTreeMap<PeerId, LocalAnswer> {
        let ask = |peer: PeerId| async move {
            match self.ask(peer, Question::Local { name: name.clone() }).await {
                Some(Answer::Local(local)) => Some((peer, local)),
                _ => None,
            }
        };
        join_all(peers.iter().copied().map(ask)).await.into_iter().flatten().collect()
    }

    /// Asks a peer; `None` if it does not answer in time.
    async fn ask(&self, peer: PeerId, question: Question) -> Option<Answer> {
        let (done, answer) = oneshot::channel();
        self.shared.send(Local::Ask { peer, question, done });
        timeout(ANSWER_TIMEOUT, answer).await.ok()?.ok()
    }

    /// Locks of the whole swarm whose names begin with `prefix`, by name, at most `limit`.
    pub async fn list(&self, prefix: String, limit: usize) -> Vec<LockSummary> {
        let (limit, prefix) = (limit.min(LIST_MAX), Name::prefix(&prefix).into_owned());
        let peers = self.driver_peers().await;
        let ask = |peer: PeerReport| self.names_of(peer.peer, prefix.clone(), limit);
        let mut merged: BTreeMap<String, Vec<(PeerId, NameEntry)>> = BTreeMap::new();
        for (peer, entries) in join_all(peers.into_iter().map(ask)).await {
            for entry in entries {
                merged.entry(entry.name.as_str().to_owned()).or_default().push((peer, entry));
            }
        }
        let m = self.driver_status().await.map_or(usize::MAX, |status| status.m);
        merged.into_values().filter_map(|entries| summary(m, &entries)).take(limit).collect()
    }

    /// All a peer has to say, question by question.
    async fn names_of(
        &self, peer: PeerId, prefix: String, limit: usize,
    ) -> (PeerId, Vec<NameEntry>) {
        let mut entries = Vec::new();
        let mut after = None;
        loop {
            let limit_here = (limit - entries.len()).min(NAMES_PER_ANSWER_MAX) as u16;
            let question = Question::Names { prefix: prefix.clone(), after, limit: limit_here };
            let Some(Answer::Names(mut names)) = self.ask(peer, question).await else { break };
            entries.append(&mut names.entries);
            after = names.next;
            if after.is_none() || entries.len() >= limit {
                break;
            }
        }
        (peer, entries)
    }

    /// Has whoever holds a lock leave it, readers all of them. Their users are told that the lock is lost.
    pub async fn evict(&self, name: Name) -> Result<EvictOutcome, EvictError> {
        let report = self.inspect(name.clone()).await;
        if report.holders.is_empty() {
            let silent = report.replicas.iter().filter(|replica| !replica.answered).count();
            return if report.asked == 0 {
                Err(EvictError::Stopped)
            } else if silent >= report.m {
                Err(EvictError::Unknown { asked: report.asked, answered: report.answered })
            } else {
                Ok(EvictOutcome::NotHeld)
            };
        }
        // A peer puts all of its users out at once.
        let mut peers: BTreeMap<PeerId, Vec<Holder>> = BTreeMap::new();
        for holder in report.holders {
            peers.entry(holder.peer).or_default().push(holder);
        }
        let ask = |(peer, holders)| {
            let question = Question::Evict { name: name.clone() };
            async move { (holders, self.ask(peer, question).await) }
        };
        let (mut told, mut away) = (Vec::new(), None);
        for (holders, answer) in join_all(peers.into_iter().map(ask)).await {
            match answer {
                Some(Answer::Evicted(true)) => told.extend(holders),
                Some(_) => {}
                None => away = away.or_else(|| holders.into_iter().next()),
            }
        }
        if let Some(Holder { peer, ends_in, .. }) = away {
            return Err(EvictError::HolderAway { peer, ends_in, others: told.len() });
        }
        let others = told.len().saturating_sub(1);
        Ok(told.into_iter().next().map_or(
            EvictOutcome::NotHeld,
            |Holder { peer, label, .. }| EvictOutcome::Evicted { peer, label, others },
        ))
    }

    /// Goes on without members of an agreed membership, all who are gone at once: the last resort when half
    /// of them or more are gone for good. If they are not, two may hold the same lock until they meet. Those
    /// who are left are asked first, which takes two round trips. `unverified` vouches for what they cannot
    /// know: see [`sigmalock_core::ForgetRefusal::Unverified`].
    pub async fn forget(
        &self, gone: BTreeSet<PeerId>, unverified: bool,
    ) -> Result<(), ForgetError> {
        let (done, forgotten) = oneshot::channel();
        self.shared.send(Local::Forget { gone, unverified, done });
        forgotten.await.unwrap_or(Err(ForgetError::Stopped))
    }

    /// This peer, all it has sessions with, and all members.
    pub async fn peers(&self) -> Vec<PeerReport> {
        let mut peers = self.driver_peers().await;
        if let Some(me) = peers.iter_mut().find(|peer| peer.is_self) {
            me.addresses = shown(&self.describe().await.advertised);
        }
        peers
    }

    async fn driver_peers(&self) -> Vec<PeerReport> {
        let (done, peers) = oneshot::channel();
        self.shared.send(Local::Peers(done));
        peers.await.unwrap_or_default()
    }

    /// How this peer is; `None` if it has stopped.
    pub async fn status(&self) -> Option<StatusReport> {
        let mut status = self.driver_status().await?;
        let described = self.describe().await;
        let facts = &self.shared.facts;
        status.data.clone_from(&facts.data);
        status.swarm.clone_from(&facts.swarm);
        status.private = facts.private;
        status.protocol = facts.protocol.as_str();
        status.listening = described.listening.iter().map(ToString::to_string).collect();
        status.advertised = shown(&described.advertised);
        status.refusals = described.refusals;
        status.table_len = described.table_len;
        Some(status)
    }

    async fn driver_status(&self) -> Option<StatusReport> {
        let (done, status) = oneshot::channel();
        self.shared.send(Local::Status(done));
        status.await.ok()
    }

    async fn describe(&self) -> Description {
        let (done, description) = oneshot::channel();
        if self.shared.transport.send(Command::Describe(done)).await.is_err() {
            return Description::default();
        }
        match timeout(ANSWER_TIMEOUT, description).await {
            Ok(Ok(description)) => description,
            _ => Description::default(),
        }
    }

    /// Times so many round trips of a bare stream to a peer, in nanoseconds.
    pub async fn measure(&self, peer: PeerId, rounds: u32) -> Result<Vec<u64>, String> {
        let (done, times) = oneshot::channel();
        let stopped = || "this peer has stopped".to_owned();
        let command = Command::Measure { peer, rounds, done };
        self.shared.transport.send(command).await.map_err(|_| stopped())?;
        times.await.map_err(|_| stopped())?
    }

    /// A lock, looked at again and again.
    #[must_use]
    pub fn watch(&self, name: Name) -> Watch {
        Watch { handle: self.clone(), name, last: None }
    }
}

/// Addresses without the peer that they lead to.
fn shown(addresses: &[Multiaddr]) -> Vec<String> {
    addresses.iter().map(|address| bare(address).to_string()).collect()
}

/// The changes of a lock, from [`Handle::watch`].
#[derive(Debug)]
pub struct Watch {
    handle: Handle,
    name: Name,
    last: Option<LockReport>,
}

impl Watch {
    /// The lock as it is now, at first; then, whenever that is, as it has become. Short changes between
    /// two looks go unseen.
    pub async fn next(&mut self) -> LockReport {
        loop {
            if self.last.is_some() {
                tokio::time::sleep(WATCH_PERIOD).await;
            }
            let report = self.handle.inspect(self.name.clone()).await;
            if self.last.as_ref().is_none_or(|last| !last.looks_like(&report)) {
                self.last = Some(report.clone());
                return report;
            }
        }
    }
}

impl LockReport {
    /// Whether it shows the same, but for the time that has passed.
    fn looks_like(&self, other: &Self) -> bool {
        let holders = |r: &Self| {
            r.holders.iter().map(|h| (h.peer, h.token, h.label.clone())).collect::<Vec<_>>()
        };
        let votes = |r: &Self| {
            let vote =
                |v: &ReplicaView| (v.host, v.answered, v.owners.clone(), v.abstains_for.is_zero());
            r.replicas.iter().map(vote).collect::<Vec<_>>()
        };
        let queue = |r: &Self| {
            r.queue.iter().map(|w| (w.request, w.users, w.labels.clone())).collect::<Vec<_>>()
        };
        holders(self) == holders(other)
            && votes(self) == votes(other)
            && queue(self) == queue(other)
            && self.waiting == other.waiting
    }

    /// How many votes each request has.
    fn votes(&self) -> BTreeMap<RequestId, usize> {
        let mut votes: BTreeMap<RequestId, usize> = BTreeMap::new();
        for owner in self.replicas.iter().flat_map(|replica| &replica.owners) {
            *votes.entry(*owner).or_default() += 1;
        }
        votes
    }

    /// Who is inside: whose peer says so; if that is silent, who has m votes.
    fn find_holders(
        &self, votes: &BTreeMap<RequestId, usize>, modes: &BTreeMap<RequestId, Mode>,
        locals: &BTreeMap<PeerId, LocalAnswer>,
    ) -> Vec<Holder> {
        let mut holders = Vec::new();
        for (peer, local) in locals {
            for (holder, label) in local.report.holders.iter().zip(&local.holders) {
                holders.push(Holder {
                    peer: *peer,
                    label: Some(label.clone()),
                    mode: holder.mode,
                    token: holder.token,
                    votes: holder.request.and_then(|r| votes.get(&r)).copied().unwrap_or(0),
                    held_for: duration(holder.held_for),
                    ends_in: duration(holder.ends_in),
                });
            }
        }
        let silent = |(request, votes): &(&RequestId, &usize)| {
            **votes >= self.m && !locals.contains_key(&request.client)
        };
        for (request, votes) in votes.iter().filter(silent) {
            let own = self.replicas.iter().filter(|replica| replica.owners.contains(request));
            holders.push(Holder {
                peer: request.client,
                label: None,
                mode: modes.get(request).copied().unwrap_or_default(),
                token: None,
                votes: *votes,
                held_for: own.clone().map(|replica| replica.held_for).max().unwrap_or_default(),
                ends_in: own.map(|replica| replica.ends_in).max().unwrap_or_default(),
            });
        }
        holders
    }
}

/// All n replicas, with what their hosts said of them.
fn views(
    seats: &[(u16, Option<PeerId>)], replicas: &BTreeMap<PeerId, Vec<ReplicaReport>>,
) -> Vec<ReplicaView> {
    let view = |&(index, host): &(u16, Option<PeerId>)| {
        let said = host.and_then(|host| replicas.get(&host));
        let report = said.and_then(|reports| reports.iter().find(|r| r.index == index));
        let owner = report.and_then(|report| report.owners.first());
        ReplicaView {
            index,
            host,
            answered: said.is_some(),
            owners: report.iter().flat_map(|r| &r.owners).map(|owner| owner.request).collect(),
            held_for: owner.map(|owner| duration(owner.held_for)).unwrap_or_default(),
            ends_in: owner.map(|owner| duration(owner.ends_in)).unwrap_or_default(),
            waiting: report.map_or(0, |report| report.waiting),
            token: report.map(|report| report.token).unwrap_or_default(),
            abstains_for: report.map(|report| duration(report.abstains_for)).unwrap_or_default(),
        }
    };
    seats.iter().map(view).collect()
}

/// The waiters of all replicas in one order: by the best place that each has anywhere.
fn queue(replicas: &BTreeMap<PeerId, Vec<ReplicaReport>>) -> Vec<RequestId> {
    let mut places: BTreeMap<RequestId, usize> = BTreeMap::new();
    for replica in replicas.values().flatten() {
        for (place, request) in replica.waiters.iter().enumerate() {
            let best = places.entry(*request).or_insert(place);
            *best = place.min(*best);
        }
    }
    let mut queue: Vec<(usize, RequestId)> =
        places.into_iter().map(|(r, place)| (place, r)).collect();
    queue.sort_unstable();
    queue.into_iter().map(|(_, request)| request).collect()
}

fn waiter(request: RequestId, locals: &BTreeMap<PeerId, LocalAnswer>) -> Waiter {
    let local = locals.get(&request.client);
    Waiter {
        request: Some(request),
        peer: request.client,
        labels: local.map(|local| local.waiters.clone()).unwrap_or_default(),
        users: local.map_or(0, |local| local.report.waiting),
    }
}

/// Peers whose users wait without a request in any queue: those that are inside, whose users come next, and
/// those that cannot win.
fn unqueued(
    queue: &[RequestId], locals: &BTreeMap<PeerId, LocalAnswer>,
) -> (Vec<Waiter>, Vec<Waiter>) {
    let queued = |peer: &PeerId| queue.iter().any(|request| request.client == *peer);
    let waits = |(peer, local): &(&PeerId, &LocalAnswer)| local.report.waiting > 0 && !queued(peer);
    let (inside, outside): (Vec<_>, Vec<_>) =
        locals.iter().filter(waits).partition(|(_, local)| !local.report.holders.is_empty());
    let waiter = |(peer, local): (&PeerId, &LocalAnswer)| Waiter {
        request: None,
        peer: *peer,
        labels: local.waiters.clone(),
        users: local.report.waiting,
    };
    (inside.into_iter().map(waiter).collect(), outside.into_iter().map(waiter).collect())
}

/// What all peers said of one name, in short.
fn summary(m: usize, entries: &[(PeerId, NameEntry)]) -> Option<LockSummary> {
    let (_, first) = entries.first()?;
    let mut votes: BTreeMap<RequestId, (usize, Duration, Mode)> = BTreeMap::new();
    for owner in entries.iter().flat_map(|(_, entry)| &entry.owners) {
        let (count, held_for, mode) = votes.entry(owner.request).or_default();
        (*count, *mode) = (*count + 1, owner.mode);
        *held_for = (*held_for).max(duration(owner.held_for));
    }
    let inside = entries.iter().find_map(|(peer, entry)| Some((*peer, entry.holders.first()?)));
    let theirs = inside.and_then(|(_, (holder, _))| votes.get_key_value(&holder.request?));
    let lead = theirs.or_else(|| votes.iter().max_by_key(|(_, (count, ..))| *count));
    let (request, (votes, held_for, mode)) = lead.map(|(r, v)| (Some(*r), *v)).unwrap_or_default();
    let holders: usize = entries.iter().map(|(_, entry)| entry.holders.len()).sum();
    let held = inside.is_some() || votes >= m;
    let known = entries.iter().map(|(_, entry)| entry.token).max().unwrap_or_default();
    Some(LockSummary {
        name: first.name.clone(),
        peer: inside.map(|(peer, _)| peer).or(request.map(|request| request.client)),
        label: inside.map(|(_, (_, label))| label.clone()),
        held,
        mode: inside.map_or(mode, |(_, (holder, _))| holder.mode),
        holders: (holders as u32).max(held.into()),
        token: inside.and_then(|(_, (holder, _))| holder.token).unwrap_or(known),
        votes,
        held_for: inside.map_or(held_for, |(_, (holder, _))| duration(holder.held_for)),
        waiting: entries
            .iter()
            .map(|(_, entry)| entry.waiting)
            .max()
            .unwrap_or(0)
            .max(entries.iter().map(|(_, entry)| entry.waiting_here).sum()),
    })
}
