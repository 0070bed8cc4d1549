//! What operators ask of a driver, here or from another peer.

use sigmalock_core::{
    CallId, Input, LockReply, LockRequest, Name, PeerId, ReplicaId, ReplicaReport,
};
use tokio::sync::oneshot;

use super::output::Seen;
use super::{Driven, Driver};
use crate::control::{
    Answer, LABEL_LEN_MAX, LocalAnswer, NAMES_PER_ANSWER_MAX, NAMES_SCANNED_MAX, NameEntry,
    NamesAnswer, QUERIES_MAX, Query, Question, Reply,
};
use crate::handle::Local;
use crate::link::Role;
use crate::report::{CounterReport, PeerReport, StatusReport, duration};
use crate::wire::Kind;

/// An eviction, and who wants to know what became of it.
#[derive(Debug)]
pub(crate) enum Errand {
    Here(oneshot::Sender<Answer>),
    For { peer: PeerId, id: u64 },
}

impl<P: Driven> Driver<P> {
    pub(super) fn on_operator(&mut self, local: Local) {
        match local {
            Local::Hosts { name, done } => {
                let _ = done.send(self.hosts(&name));
            }
            Local::Ask { peer, question, done } if peer == self.me.peer => match question {
                Question::Evict { name } => self.evict(name, Errand::Here(done)),
                question => {
                    let _ = done.send(self.answer(question));
                }
            },
            Local::Ask { peer, question, done } => self.query(peer, question, done),
            Local::Peers(done) => {
                let _ = done.send(self.peer_reports());
            }
            Local::Status(done) => {
                let _ = done.send(self.status());
            }
            _ => {}
        }
    }

    /// The hosts of a name's replicas, in order.
    pub(super) fn hosts(&self, name: &Name) -> Vec<Option<PeerId>> {
        let replica = |index| ReplicaId { name: name.clone(), index };
        (0..self.n as u16).map(|index| self.around.placement.host_of(&replica(index))).collect()
    }

    fn query(&mut self, peer: PeerId, question: Question, done: oneshot::Sender<Answer>) {
        if self.queries.len() >= QUERIES_MAX {
            self.queries.retain(|_, (_, done)| !done.is_closed());
        }
        if self.queries.len() >= QUERIES_MAX {
            return;
        }
        self.last_query += 1;
        let id = self.last_query;
        if self.peers.tell(peer, Kind::Query, &Query { id, question }) {
            self.queries.insert(id, (peer, done));
        }
    }

    /// A question from another peer. False if it makes no sense.
    pub(super) fn on_query(&mut self, from: PeerId, body: &[u8]) -> bool {
        let Ok(Query { id, question }) = postcard::from_bytes(body) else { return false };
        match question {
            Question::Evict { name } => self.evict(name, Errand::For { peer: from, id }),
            // From here on it counts as gone, and its votes as out until it has handed them over.
            Question::Known { present, lost } => return self.on_known(present, lost),
            Question::Leaving => self.around.placement.down(from, self.now, true),
            question => {
                let answer = self.answer(question);
                self.reply(from, id, answer);
            }
        }
        true
    }

    /// Tells everybody that this peer hosts nothing any more, before anything is handed over: who did
    /// not know would hand it back.
    pub(super) fn announce_leaving(&mut self) {
        for peer in self.peers.ids() {
            let query = Query { id: 0, question: Question::Leaving };
            self.peers.tell(peer, Kind::Query, &query);
        }
    }

    fn reply(&mut self, to: PeerId, id: u64, answer: Answer) {
        if !self.peers.tell(to, Kind::Answer, &Reply { id, answer }) {
            self.peers.tell(to, Kind::Answer, &Reply { id, answer: Answer::TooLong });
        }
    }

    /// An answer from another peer. False if it makes no sense.
    pub(super) fn on_answer(&mut self, from: PeerId, body: &[u8]) -> bool {
        let Ok(Reply { id, answer }) = postcard::from_bytes(body) else { return false };
        // One that comes too late finds nobody waiting.
        if self.queries.get(&id).is_some_and(|(asked, _)| *asked == from)
            && let Some((_, done)) = self.queries.remove(&id)
        {
            let _ = done.send(answer);
        }
        true
    }

    fn evict(&mut self, name: Name, errand: Errand) {
        let id = self.calls.next_call();
        self.errands.insert(id, errand);
        self.feed(Input::Request { id, request: LockRequest::Evict { name } });
    }

    pub(super) fn run_errand(&mut self, errand: Errand, reply: LockReply) {
        let answer = Answer::Evicted(reply == LockReply::Released);
        match errand {
            Errand::Here(done) => self.output.see(Seen::Answer(done, answer)),
            Errand::For { peer, id } => self.reply(peer, id, answer),
        }
    }

    fn answer(&self, question: Question) -> Answer {
        match question {
            Question::Replicas { name } => Answer::Replicas(self.replicas(&name)),
            Question::Local { name } => Answer::Local(self.local(&name)),
            Question::Names { prefix, after, limit } => {
                Answer::Names(self.names(&prefix, after.as_ref(), usize::from(limit)))
            }
            Question::Evict { .. } | Question::Known { .. } | Question::Leaving => {
                Answer::Evicted(false)
            }
        }
    }

    fn replicas(&self, name: &Name) -> Vec<ReplicaReport> {
        self.protocol.replicas(&self.around, self.now, name)
    }

    fn local(&self, name: &Name) -> LocalAnswer {
        let report = self.protocol.local(self.now, name);
        let holders = report.holders.iter().map(|holder| self.label(holder.call)).collect();
        let waiters = report.waiters.iter().map(|call| self.label(*call)).collect();
        LocalAnswer { report, holders, waiters }
    }

    fn label(&self, call: CallId) -> String {
        let label = self.calls.label(call).unwrap_or_default();
        let end = label.floor_char_boundary(LABEL_LEN_MAX);
        label[..end].to_owned()
    }

    fn names(&self, prefix: &str, after: Option<&Name>, limit: usize) -> NamesAnswer {
        let names = self.protocol.names(after, NAMES_SCANNED_MAX);
        let more = names.len() == NAMES_SCANNED_MAX;
        let last = names.last().cloned();
        let mut entries = Vec::new();
        for name in names {
            if !name.as_str().starts_with(prefix) {
                continue;
            }
            entries.push(self.entry(name));
            if entries.len() >= limit.min(NAMES_PER_ANSWER_MAX) {
                let next = entries.last().map(|entry| entry.name.clone());
                return NamesAnswer { entries, next };
            }
        }
        NamesAnswer { entries, next: last.filter(|_| more) }
    }

    fn entry(&self, name: Name) -> NameEntry {
        let replicas = self.replicas(&name);
        let local = self.protocol.local(self.now, &name);
        NameEntry {
            holders: local.holders.iter().map(|h| (*h, self.label(h.call))).collect(),
            waiting_here: local.waiting,
            owners: replicas.iter().flat_map(|replica| &replica.owners).copied().collect(),
            waiting: replicas.iter().map(|replica| replica.waiting).max().unwrap_or(0),
            token: replicas.iter().map(|replica| replica.token).max().unwrap_or_default(),
            name,
        }
    }

    fn peer_reports(&self) -> Vec<PeerReport> {
        let report = |info: &crate::link::PeerInfo, since, is_self| PeerReport {
            peer: info.peer,
            network: info.network.to_string(),
            incarnation: info.incarnation,
            addresses: info.addresses.iter().map(ToString::to_string).collect(),
            role: info.role,
            up_for: duration(self.now.since(since)),
            is_self,
        };
        let me = report(&self.me, self.born, true);
        let others = self.peers.iter().map(|(_, peer)| report(&peer.info, peer.since, false));
        std::iter::once(me).chain(others).collect()
    }

    fn status(&self) -> StatusReport {
        let (sessions, held, waiting) = self.calls.counts();
        let others = self.peers.iter().filter(|(_, peer)| peer.info.role == Role::Host).count();
        let hosts_up = others + usize::from(self.me.role == Role::Host);
        let why_not = self.why_not(hosts_up);
        StatusReport {
            peer: self.me.peer,
            role: self.me.role,
            can_grant: why_not.is_none(),
            why_not,
            peers_up: self.peers.len() + 1,
            hosts_up,
            table_len: 0,
            sessions,
            held,
            waiting,
            hosted: self.protocol.hosted(),
            timers: self.timers.len(),
            durable: self.output.is_durable(),
            data: None,
            uptime: duration(self.now.since(self.born)),
            swarm: None,
            n: self.n,
            m: 0,
            lease_max: duration(self.lease_max),
            listening: Vec::new(),
            refusals: Vec::new(),
            counters: self.counter_report(),
        }
    }

    /// Why this peer cannot get anybody a lock, if so.
    fn why_not(&self, hosts_up: usize) -> Option<String> {
        let abstains = self.abstains_until.since(self.now);
        if self.leaving_since.is_some() {
            Some("this peer is leaving the swarm".into())
        } else if hosts_up == 0 {
            Some("this peer is a client only, and no host can be reached".into())
        } else if self.me.role == Role::Host && !self.around.placement.may_vote() {
            Some(
                "this peer sees half of the peers of the last hour, or fewer: it may be cut off from \
                 the others, and so does not vote"
                    .into(),
            )
        } else if hosts_up == 1
            && self.me.role == Role::Host
            && abstains > sigmalock_core::Span::ZERO
        {
            Some(format!(
                "this peer has lost its memory and is alone: it votes in {abstains}, when all votes \
                 that it may have forgotten have run out"
            ))
        } else {
            None
        }
    }

    fn counter_report(&self) -> CounterReport {
        let c = &self.counters;
        let owned = |(kind, count): (&str, u64)| (kind.to_owned(), count);
        CounterReport {
            batches: c.batches,
            inputs: c.inputs,
            grants: c.grants,
            to_self: c.to_self,
            unsent: c.unsent,
            frames_in: c.frames_in,
            bytes_in: c.bytes_in,
            nonsense: c.nonsense,
            writes_out: c.letters,
            bytes_out: c.bytes_out,
            commits: c.commits,
            sent: c.sent.iter().map(owned).collect(),
            received: c.received.iter().map(owned).collect(),
            notes: c.notes.iter().map(owned).collect(),
        }
    }
}
