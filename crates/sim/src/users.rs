//! The users of peers: they ask, enter, write, leave, change their minds, overstay and crash.

use sigmalock_core::{
    Acquire, CallId, Input, LockReply, LockRequest, Name, Patience, RequestId, Span, Token,
};

use crate::history::{Ending, TrueTime, What};
use crate::register::FencedRegister;
use crate::rng::Rng;
use crate::watch::Watch;
use crate::workload::{Arrivals, Errand, Workload};
use crate::world::{Event, LockProtocol, World};

/// Who was turned away thinks at least this long before asking again, so that time passes.
const AFTER_REFUSAL_MIN: Span = Span::from_millis(10);
/// Idle clients ask once more within this long after the heal.
const ROLL_CALL: Span = Span::from_secs(1);

/// Somebody who asks for locks through a peer, one at a time.
#[derive(Debug)]
pub(crate) struct User {
    peer: u32,
    /// Counts beginnings and ends of sessions: what was scheduled for an earlier one is void.
    epoch: u32,
    session: Option<Session>,
    /// The last token it was given, for which lock: scripts may write with it whenever they like.
    last: Option<(RequestId, usize, Token)>,
}

#[derive(Debug)]
struct Session {
    request: RequestId,
    name: usize,
    errand: Errand,
    asked: TrueTime,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Waiting,
    Inside(Option<Token>),
    /// Told that the lock is lost, and still inside.
    Overstaying(Option<Token>),
}

/// A user's next deed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserEvent {
    pub(crate) user: u32,
    pub(crate) epoch: u32,
    pub(crate) deed: Deed,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Deed {
    Ask,
    /// The one more request after the heal.
    AskKindly,
    Cancel,
    Leave,
    Sleep,
    Crash,
}

/// All users of a run.
pub(crate) struct Users {
    list: Vec<User>,
    /// Users of an open workload that have nothing to do.
    idle: Vec<u32>,
    names: Vec<Name>,
    registers: Vec<FencedRegister>,
    rng: Rng,
    /// Sessions under way, and requests still to be made after the heal.
    busy: usize,
    expected: usize,
}

impl Users {
    pub(crate) fn new(workload: &Workload, seed: u64) -> Self {
        let names = workload.names.clone();
        Self {
            list: Vec::new(),
            idle: Vec::new(),
            registers: vec![FencedRegister::default(); names.len()],
            names,
            rng: Rng::split(seed, 0x7573_6572),
            busy: 0,
            expected: 0,
        }
    }

    /// Whether nobody waits, is inside or will ask.
    pub(crate) fn are_content(&self) -> bool {
        self.busy == 0 && self.expected == 0
    }

    fn name(&mut self, name: &Name) -> usize {
        let place = self.names.iter().position(|known| known == name);
        place.unwrap_or_else(|| {
            self.names.push(name.clone());
            self.registers.push(FencedRegister::default());
            self.names.len() - 1
        })
    }

    fn session_of(&self, peer: usize, name: &Name) -> Option<usize> {
        self.list.iter().rposition(|user| {
            let wanted = user.session.as_ref().map(|session| &self.names[session.name]);
            user.peer as usize == peer && wanted == Some(name)
        })
    }
}

impl<P: LockProtocol, W: Watch> World<'_, P, W> {
    /// Makes the clients that exist from the beginning.
    pub(crate) fn people(&mut self) {
        match self.config.workload.arrivals {
            Arrivals::Scripted => {}
            Arrivals::Poisson { clients_min, .. } => {
                for _ in 0..clients_min {
                    let user = self.add_client();
                    self.users.idle.push(user);
                }
                self.schedule_arrival();
            }
            Arrivals::Loops { clients, think } => {
                for _ in 0..clients {
                    let user = self.add_client();
                    let after = think.draw(&mut self.users.rng);
                    self.schedule_ask(user, after);
                }
            }
        }
    }

    fn add_client(&mut self) -> u32 {
        let k = self.users.list.len();
        let hosts = self.roster.hosts;
        let index = if self.config.workload.clients_on_hosts { k % hosts } else { hosts + k };
        self.add_user(index)
    }

    fn add_user(&mut self, index: usize) -> u32 {
        self.ensure_peer(index);
        self.users.list.push(User { peer: index as u32, epoch: 0, session: None, last: None });
        (self.users.list.len() - 1) as u32
    }

    fn schedule(&mut self, user: u32, after: Span, deed: Deed) {
        let epoch = self.users.list[user as usize].epoch;
        self.queue.push(self.now + after, Event::User(UserEvent { user, epoch, deed }));
    }

    fn schedule_ask(&mut self, user: u32, after: Span) {
        if !self.healed {
            self.schedule(user, after, Deed::Ask);
        }
    }

    fn schedule_arrival(&mut self) {
        let Arrivals::Poisson { per_s, .. } = self.config.workload.arrivals else { return };
        if per_s > 0.0 && !self.healed {
            let mean = Span::from_micros((1e6 / per_s) as u64);
            let at = self.now + self.users.rng.exponential(mean);
            self.queue.push(at, Event::Arrival);
        }
    }

    pub(crate) fn on_arrival(&mut self) {
        if self.healed {
            return;
        }
        if let Some(user) = self.idle_user() {
            self.schedule(user, Span::ZERO, Deed::Ask);
        }
        self.schedule_arrival();
    }

    /// A random idle user whose peer is up, or a new one, if there may be more.
    fn idle_user(&mut self) -> Option<u32> {
        for _ in 0..self.users.idle.len().min(4) {
            let place = self.users.rng.below(self.users.idle.len() as u64) as usize;
            let peer = self.users.list[self.users.idle[place] as usize].peer;
            if self.peers[peer as usize].is_up() {
                return Some(self.users.idle.swap_remove(place));
            }
        }
        let Arrivals::Poisson { clients_max, .. } = self.config.workload.arrivals else {
            return None;
        };
        (self.users.list.len() < clients_max).then(|| self.add_client())
    }

    pub(crate) fn on_user(&mut self, event: UserEvent) {
        let user = &self.users.list[event.user as usize];
        if user.epoch != event.epoch {
            return;
        }
        let index = user.peer as usize;
        if self.peers[index].paused_until.is_some() {
            return self.peers[index].deferred.push(event);
        }
        match event.deed {
            Deed::Ask => self.ask_anything(event.user, self.healed),
            Deed::AskKindly => {
                self.users.expected -= 1;
                self.ask_anything(event.user, true);
            }
            Deed::Cancel => self.cancel(event.user),
            Deed::Leave => self.leave(event.user),
            Deed::Sleep => self.sleep_for_a_while(index),
            Deed::Crash => self.crash_for_a_while(index),
        }
    }

    fn ask_anything(&mut self, user: u32, kindly: bool) {
        if self.users.list[user as usize].session.is_some() || self.users.names.is_empty() {
            return;
        }
        let names = self.users.names.len() as u64;
        let name = self.users.rng.below(names) as usize;
        let errand = self.config.workload.errand(&mut self.users.rng, kindly);
        self.ask(user, name, errand);
    }

    fn ask(&mut self, user: u32, name: usize, errand: Errand) {
        let index = self.users.list[user as usize].peer as usize;
        let peer = &mut self.peers[index];
        if !peer.is_up() {
            return;
        }
        let call = peer.next_call();
        peer.calls.push((call, user));
        let client = self.roster.id(index);
        let request = RequestId { client, incarnation: peer.incarnation, call };
        let session = Session { request, name, errand, asked: self.now, phase: Phase::Waiting };
        let record = &mut self.users.list[user as usize];
        record.session = Some(session);
        record.epoch += 1;
        self.users.busy += 1;
        let name = self.users.names[name].clone();
        let forever = errand.patience == Patience::Forever;
        self.record(What::Asked { request, name: name.clone(), forever });
        if let Some(after) = errand.cancel_after {
            self.schedule(user, after, Deed::Cancel);
        }
        if let Some(after) = errand.sleep_after {
            self.schedule(user, after, Deed::Sleep);
        }
        let acquire = Acquire { name, ttl: errand.ttl, patience: errand.patience };
        self.request(index, call, LockRequest::Acquire(acquire));
    }

    fn request(&mut self, index: usize, id: CallId, request: LockRequest) {
        self.watch.on_request(self.now, self.roster.id(index), id, &request);
        self.input(index, Input::Request { id, request });
    }

    fn cancel(&mut self, user: u32) {
        let user = &self.users.list[user as usize];
        let index = user.peer as usize;
        if let Some(Session { phase: Phase::Waiting, request, .. }) = user.session {
            let id = self.peers[index].next_call();
            self.request(index, id, LockRequest::Cancel { call: request.call });
        }
    }

    /// A protocol answered. An answer to a call that is over matters only if it is an entry: no
    /// oracle may miss that one.
    pub(crate) fn on_reply(&mut self, index: usize, call: CallId, reply: LockReply) {
        let peer = &self.peers[index];
        let until = |deadline| peer.clocks.clock.when(deadline);
        let whose = peer.calls.iter().find(|(known, _)| *known == call);
        let (client, incarnation) = (self.roster.id(index), peer.incarnation);
        let request = RequestId { client, incarnation, call };
        let user = whose.map(|(_, user)| *user);
        match (reply, user) {
            (LockReply::Granted { token, deadline }, _) => {
                let until = until(deadline);
                self.record(What::Granted { request, token, until });
                if let Some(user) = user {
                    self.enter(user, token);
                }
            }
            (LockReply::Extended { deadline }, Some(_)) => {
                let until = until(deadline);
                self.record(What::Extended { request, until });
            }
            (LockReply::Lost, Some(user)) => self.lose(user, request),
            (LockReply::Busy, Some(user)) => self.end(user, request, Ending::Busy),
            (LockReply::TimedOut, Some(user)) => self.end(user, request, Ending::TimedOut),
            (LockReply::Cancelled, Some(user)) => self.end(user, request, Ending::Cancelled),
            (LockReply::Refused(_), Some(user)) => self.end(user, request, Ending::Refused),
            _ => {}
        }
    }

    fn enter(&mut self, user: u32, token: Option<Token>) {
        let Some(session) = &mut self.users.list[user as usize].session else { return };
        session.phase = Phase::Inside(token);
        let errand = session.errand;
        let waited = self.now.since(session.asked);
        self.entries += 1;
        if self.now >= self.config.measured_from() {
            self.entries_measured += 1;
            self.waits.add(waited);
        }
        self.write(user);
        if let Some(after) = errand.inside {
            self.schedule(user, after, Deed::Leave);
        }
        if let (Some(after), false) = (errand.crash_after, self.healed) {
            self.schedule(user, after, Deed::Crash);
        }
    }

    /// Writes to the fenced register, if the lock came with a token.
    fn write(&mut self, user: u32) {
        let user = &mut self.users.list[user as usize];
        let Some(session) = &user.session else { return };
        if let Phase::Inside(Some(token)) | Phase::Overstaying(Some(token)) = session.phase {
            let last = Some((session.request, session.name, token));
            user.last = last;
            self.write_again(last);
        }
    }

    fn write_again(&mut self, last: Option<(RequestId, usize, Token)>) {
        if let Some((request, name, token)) = last {
            let accepted = self.users.registers[name].write(token, request);
            self.record(What::Wrote { request, token, accepted });
        }
    }

    fn lose(&mut self, user: u32, request: RequestId) {
        self.record(What::Lost(request));
        let record = &mut self.users.list[user as usize];
        let Some(session) = &mut record.session else { return };
        if let (Some(after), Phase::Inside(token)) = (session.errand.overstay, session.phase) {
            session.phase = Phase::Overstaying(token);
            record.epoch += 1;
            self.schedule(user, after, Deed::Leave);
        } else {
            self.finish(user);
            self.go_on(user, Span::ZERO);
        }
    }

    fn leave(&mut self, user: u32) {
        self.write(user);
        let Some(session) = &self.users.list[user as usize].session else { return };
        let (request, phase) = (session.request, session.phase);
        if matches!(phase, Phase::Waiting) {
            return;
        }
        // Whoever overstayed has nothing left to give back, but tries.
        if matches!(phase, Phase::Inside(_)) {
            self.record(What::Released(request));
        }
        let index = self.users.list[user as usize].peer as usize;
        self.finish(user);
        let id = self.peers[index].next_call();
        self.request(index, id, LockRequest::Release { held: request.call });
        self.go_on(user, Span::ZERO);
    }

    fn end(&mut self, user: u32, request: RequestId, ending: Ending) {
        self.record(What::Ended(request, ending));
        self.finish(user);
        self.go_on(user, AFTER_REFUSAL_MIN);
    }

    fn finish(&mut self, user: u32) {
        let user = &mut self.users.list[user as usize];
        user.epoch += 1;
        if let Some(session) = user.session.take() {
            self.users.busy -= 1;
            let calls = &mut self.peers[user.peer as usize].calls;
            calls.retain(|(call, _)| *call != session.request.call);
        }
    }

    /// What a user does when a session is over.
    fn go_on(&mut self, user: u32, at_least: Span) {
        match self.config.workload.arrivals {
            Arrivals::Scripted => {}
            Arrivals::Poisson { .. } => self.users.idle.push(user),
            Arrivals::Loops { think, .. } => {
                let think = think.draw(&mut self.users.rng).max(at_least);
                self.schedule_ask(user, think);
            }
        }
    }

    /// The peer is down: whatever its users had under way is over.
    pub(crate) fn forsake_users(&mut self, index: usize) {
        let calls = std::mem::take(&mut self.peers[index].calls);
        for (_, user) in calls {
            self.finish(user);
        }
    }

    /// The peer is back: its users begin anew.
    pub(crate) fn encourage_users(&mut self, index: usize) {
        for user in 0..self.users.list.len() as u32 {
            let record = &self.users.list[user as usize];
            let idle = record.session.is_none() && !self.users.idle.contains(&user);
            if record.peer as usize == index && idle {
                self.users.list[user as usize].epoch += 1;
                self.go_on(user, AFTER_REFUSAL_MIN);
            }
        }
    }

    /// After the heal every idle user asks once more, and waits for as long as it takes.
    pub(crate) fn roll_call(&mut self) {
        if self.config.workload.arrivals == Arrivals::Scripted {
            return;
        }
        for user in 0..self.users.list.len() as u32 {
            if self.users.list[user as usize].session.is_none() {
                self.users.list[user as usize].epoch += 1;
                self.users.expected += 1;
                let after = self.users.rng.span(Span::ZERO, ROLL_CALL);
                self.schedule(user, after, Deed::AskKindly);
            }
        }
    }

    pub(crate) fn scripted_acquire(&mut self, index: usize, name: &Name, errand: Errand) {
        let user = self.add_user(index);
        let name = self.users.name(name);
        self.ask(user, name, errand);
    }

    pub(crate) fn scripted_release(&mut self, index: usize, name: &Name) {
        if let Some(user) = self.users.session_of(index, name) {
            self.do_now(user, Deed::Leave);
        }
    }

    pub(crate) fn scripted_cancel(&mut self, index: usize, name: &Name) {
        if let Some(user) = self.users.session_of(index, name) {
            self.do_now(user, Deed::Cancel);
        }
    }

    fn do_now(&mut self, user: usize, deed: Deed) {
        let epoch = self.users.list[user].epoch;
        self.on_user(UserEvent { user: user as u32, epoch, deed });
    }

    pub(crate) fn scripted_write(&mut self, index: usize, name: &Name) {
        let name = self.users.name(name);
        let theirs = self.users.list.iter().rev().filter(|user| user.peer as usize == index);
        let last = theirs.filter_map(|user| user.last).find(|(_, of, _)| *of == name);
        self.write_again(last);
    }
}
