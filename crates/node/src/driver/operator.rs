//! What operators ask of a driver, here or from another peer.

use sigmalock_core::{CallId, LockReply, LockRequest, Name, PeerId, ReplicaReport};
use tokio::sync::oneshot;

use super::output::Seen;
use super::{Driver, Live};
use crate::control::{
    Answer, LABEL_LEN_MAX, LocalAnswer, NAMES_PER_ANSWER_MAX, NAMES_SCANNED_MAX, NameEntry,
    NamesAnswer, QUERIES_MAX, Query, Question, Reply,
};
use crate::handle::Local;
use crate::link::Role;
use crate::report::{CounterReport, ForgetError, StatusReport, duration};
use crate::wire::Kind;

/// An operator's wish, mostly an eviction, and who wants to know what became of it.
#[derive(Debug)]
pub(crate) enum Errand {
    Here(oneshot::Sender<Answer>),
    For {
        peer: PeerId,
        id: u64,
    },
    /// Members that are to be forgotten.
    Forget(oneshot::Sender<Result<(), ForgetError>>),
}

impl<P: Live> Driver<P> {
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
            Local::Forget { gone, unverified, done } => self.forget(gone, unverified, done),
            _ => {}
        }
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
            Question::Leaving => {
                let now = self.now;
                self.with_placement(|placement| placement.down(from, now, true));
            }
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
        self.wish(errand, LockRequest::Evict { name });
    }

    pub(super) fn wish(&mut self, errand: Errand, request: LockRequest) {
        let id = self.calls.next_call();
        self.errands.insert(id, errand);
        self.ask_lock(id, request);
    }

    pub(super) fn run_errand(&mut self, errand: Errand, reply: LockReply) {
        let answer = Answer::Evicted(reply == LockReply::Released);
        match errand {
            Errand::Here(done) => self.output.see(Seen::Answer(done, answer)),
            Errand::For { peer, id } => self.reply(peer, id, answer),
            // Members answer for themselves.
            Errand::Forget(_) => {}
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
        self.protocol.replicas(self.now, name)
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

    fn status(&self) -> StatusReport {
        let (sessions, held, waiting) = self.calls.counts();
        let others = self.peers.iter().filter(|(_, peer)| peer.info.role == Role::Host).count();
        let hosts_up = others + usize::from(self.me.role == Role::Host);
        let view = self.protocol.view(self.now);
        let (why_not, why_no_vote) = match &view {
            Some(view) => (self.why_not_agreed(view), self.why_no_vote_agreed(view)),
            None => (self.why_not_open(hosts_up), self.why_no_vote_open()),
        };
        let (n, m) = self.votes_in(view.as_ref());
        StatusReport {
            peer: self.me.peer,
            name: self.me.name.clone(),
            role: self.me.role,
            can_grant: why_not.is_none(),
            why_not,
            votes: why_no_vote.is_none(),
            why_no_vote,
            advice: self.advice(view.as_ref()),
            view,
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
            swarm: String::new(),
            private: false,
            protocol: "",
            n,
            m,
            lease_max: duration(self.lease_max),
            listening: Vec::new(),
            advertised: Vec::new(),
            refusals: Vec::new(),
            counters: self.counter_report(),
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
            records_ever: self.output.writes(),
            sent: c.sent.iter().map(owned).collect(),
            received: c.received.iter().map(owned).collect(),
            notes: c.notes.iter().map(owned).collect(),
        }
    }
}
