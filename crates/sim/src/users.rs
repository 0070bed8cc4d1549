//! The users of locks: they ask, enter, write, leave, change their minds, overstay and crash.

mod crowd;
mod several;

use std::collections::BTreeMap;

use sigmalock_core::{
    Acquire, CallId, LockReply, LockRequest, Mode, Name, Patience, Refusal, RequestId, Span, Token,
};

use self::crowd::AFTER_REFUSAL_MIN;
use crate::crowd::Crowd;
use crate::faults::Fault;
use crate::history::{Ending, TrueTime, What, Word};
use crate::register::FencedRegister;
use crate::rng::Rng;
use crate::run::{LockProtocol, RunConfig};
use crate::script::Action;
use crate::watch::Watch;
use crate::workload::Errand;
use crate::world::{Event, World};

/// Somebody who asks for locks through a peer, one at a time.
#[derive(Debug, Clone)]
pub(crate) struct User {
    peer: u32,
    /// Counts beginnings and ends of sessions: what was scheduled for an earlier one is void.
    epoch: u32,
    session: Option<Session>,
    /// If it takes several locks at once: those it has, and those it will ask for.
    held: Vec<Session>,
    wants: Vec<usize>,
    /// The last token it was given, for which lock: scripts may write with it whenever they like.
    last: Option<Pass>,
}

/// A token, and what it lets its holder do.
#[derive(Debug, Clone, Copy)]
struct Pass {
    request: RequestId,
    name: usize,
    mode: Mode,
    token: Token,
}

#[derive(Debug, Clone)]
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
    Inside(Option<(Token, Option<u16>)>),
    /// Told that the lock is lost, and still inside.
    Overstaying(Option<(Token, Option<u16>)>),
}

/// What is to happen at its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserEvent {
    user: u32,
    epoch: u32,
    deed: Deed,
}

#[derive(Debug, Clone, Copy)]
enum Deed {
    /// It is anybody's, who has nothing to do, or is new.
    Arrive,
    Ask,
    /// The one more request after the heal.
    AskKindly,
    Cancel,
    Leave,
    /// Not its own wish.
    Evict,
    Sleep,
    Crash,
}

/// All users of a run.
#[derive(Debug, Clone)]
pub(crate) struct Users {
    list: Vec<User>,
    /// Users of an open workload that have nothing to do.
    idle: Vec<u32>,
    names: Vec<Name>,
    /// One for each lock.
    registers: BTreeMap<usize, FencedRegister>,
    register_checks: bool,
    rng: Rng,
    /// Sessions under way, and requests still to be made after the heal.
    busy: usize,
    expected: usize,
    /// What is said to a user's word, while its peer looks at it.
    heard: Option<(CallId, Vec<LockReply>)>,
}

impl Users {
    pub(crate) fn new(config: &RunConfig) -> Self {
        let names = config.workload.names.clone();
        Self {
            list: Vec::new(),
            idle: Vec::new(),
            registers: BTreeMap::new(),
            register_checks: config.register_checks,
            names,
            rng: Rng::split(config.seed, 0x7573_6572),
            busy: 0,
            expected: 0,
            heard: None,
        }
    }

    fn name(&mut self, name: &Name) -> usize {
        let place = self.names.iter().position(|known| known == name);
        place.unwrap_or_else(|| {
            self.names.push(name.clone());
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

impl<P: LockProtocol> Crowd<P> for Users {
    type Deed = UserEvent;

    /// Nobody waits, is inside or will ask.
    fn is_content(&self) -> bool {
        self.busy == 0 && self.expected == 0
    }
    fn gather<W: Watch>(world: &mut World<'_, P, Self, W>) {
        world.people();
    }
    fn act<W: Watch>(world: &mut World<'_, P, Self, W>, deed: UserEvent) {
        world.on_user(deed);
    }
    fn on_told<W: Watch>(world: &mut World<'_, P, Self, W>, action: &Action) {
        world.on_told(action);
    }
    /// What an operator is told, nobody here listens to.
    fn on_reply<W: Watch>(
        world: &mut World<'_, P, Self, W>, index: usize, call: CallId, reply: P::Reply,
    ) {
        if let Ok(reply) = reply.try_into() {
            world.on_reply(index, call, reply);
        }
    }
    fn on_start<W: Watch>(world: &mut World<'_, P, Self, W>, index: usize) {
        if world.peers[index].life > 1 {
            world.encourage_users(index);
        }
    }
    fn on_crash<W: Watch>(world: &mut World<'_, P, Self, W>, index: usize) {
        world.forsake_users(index);
    }
    fn on_healed<W: Watch>(world: &mut World<'_, P, Self, W>) {
        world.roll_call();
    }
}

impl<P: LockProtocol, W: Watch> World<'_, P, Users, W> {
    fn schedule(&mut self, user: u32, after: Span, deed: Deed) {
        let epoch = self.users.list[user as usize].epoch;
        self.queue.push(self.now + after, Event::User(UserEvent { user, epoch, deed }));
    }

    fn on_user(&mut self, event: UserEvent) {
        if matches!(event.deed, Deed::Arrive) {
            return self.on_arrival();
        }
        let user = &self.users.list[event.user as usize];
        if user.epoch != event.epoch {
            return;
        }
        let index = user.peer as usize;
        if self.peers[index].paused_until.is_some() {
            return self.peers[index].deferred.push(event);
        }
        match event.deed {
            Deed::Arrive => {}
            Deed::Ask => self.ask_anything(event.user, self.healed),
            Deed::AskKindly => {
                self.users.expected -= 1;
                self.ask_anything(event.user, true);
            }
            Deed::Cancel => self.cancel(event.user),
            Deed::Leave => self.leave(event.user),
            Deed::Evict => self.evict(event.user),
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
        let wants = self.further_names(name);
        let name = wants.first().copied().unwrap_or(name);
        self.users.list[user as usize].wants = wants.into_iter().skip(1).collect();
        let errand = self.config.workload.errand(&mut self.users.rng, kindly);
        self.ask(user, name, errand);
    }

    fn peer_of(&self, user: u32) -> usize {
        self.users.list[user as usize].peer as usize
    }

    fn give_back(&mut self, index: usize, calls: Vec<CallId>) {
        for held in calls {
            self.say(index, Word::Release, LockRequest::Release { held });
        }
    }

    /// A user says something that is answered at once, unless its peer stops before it gets there.
    fn say(&mut self, index: usize, word: Word, request: LockRequest) {
        let peer = &mut self.peers[index];
        let (client, incarnation) = (self.population.id(index), peer.incarnation);
        let id = peer.next_call();
        // What it is told may make another user say something.
        let before = self.users.heard.replace((id, Vec::new()));
        self.request(index, id, request.into());
        let heard = std::mem::replace(&mut self.users.heard, before);
        if let Some((call, replies)) = heard.filter(|_| self.peers[index].is_up()) {
            let request = RequestId { client, incarnation, call };
            self.record(What::Answered { request, word, replies });
        }
    }

    fn ask(&mut self, user: u32, name: usize, errand: Errand) {
        let index = self.users.list[user as usize].peer as usize;
        let peer = &mut self.peers[index];
        if !peer.is_up() {
            return;
        }
        let call = peer.next_call();
        peer.calls.push((call, user));
        let client = self.population.id(index);
        let request = RequestId { client, incarnation: peer.incarnation, call };
        let session = Session { request, name, errand, asked: self.now, phase: Phase::Waiting };
        let record = &mut self.users.list[user as usize];
        record.session = Some(session);
        record.epoch += 1;
        self.users.busy += 1;
        let name = self.users.names[name].clone();
        let forever = errand.patience == Patience::Forever;
        let clock = &self.peers[index].clocks.clock;
        let until = match errand.patience {
            Patience::For(span) => Some(clock.when(clock.read(self.now) + span)),
            Patience::Try | Patience::Forever => None,
        };
        self.record(What::Asked { request, name: name.clone(), mode: errand.mode, forever, until });
        if let Some(after) = errand.cancel_after {
            self.schedule(user, after, Deed::Cancel);
        }
        if let Some(after) = errand.sleep_after {
            self.schedule(user, after, Deed::Sleep);
        }
        let acquire =
            Acquire { name, mode: errand.mode, ttl: errand.ttl, patience: errand.patience };
        self.request(index, call, LockRequest::Acquire(acquire).into());
    }

    fn crash_for_a_while(&mut self, index: usize) {
        if self.healed {
            return;
        }
        let down = self.config.workload.down.draw(&mut self.rng);
        self.apply(&Fault::Crash(self.population.id(index)));
        self.queue.push(self.now + down, Event::Return { peer: index as u32 });
    }

    fn sleep_for_a_while(&mut self, index: usize) {
        if !self.healed {
            let span = self.config.workload.asleep.draw(&mut self.rng);
            self.apply(&Fault::Pause { peer: self.population.id(index), span });
        }
    }

    fn cancel(&mut self, user: u32) {
        let user = &self.users.list[user as usize];
        let index = user.peer as usize;
        if let Some(Session { phase: Phase::Waiting, request, .. }) = user.session {
            self.say(index, Word::Cancel, LockRequest::Cancel { call: request.call });
        }
    }

    fn evict(&mut self, user: u32) {
        let user = &self.users.list[user as usize];
        let index = user.peer as usize;
        if let Some(Session { phase: Phase::Inside(_), name, .. }) = user.session {
            let name = self.users.names[name].clone();
            self.say(index, Word::Evict, LockRequest::Evict { name });
        }
    }

    /// A protocol answered. An answer to a call that is over matters only if it is an entry: no
    /// oracle may miss that one.
    fn on_reply(&mut self, index: usize, call: CallId, reply: LockReply) {
        let peer = &self.peers[index];
        let until = |deadline| peer.clocks.clock.when(deadline);
        let whose = peer.calls.iter().find(|(known, _)| *known == call);
        let (client, incarnation) = (self.population.id(index), peer.incarnation);
        let request = RequestId { client, incarnation, call };
        let user = whose.map(|(_, user)| *user);
        if let Some((_, replies)) = self.users.heard.as_mut().filter(|(id, _)| *id == call) {
            return replies.push(reply);
        }
        match (reply, user) {
            (LockReply::Granted { token, deadline, slot }, _) => {
                let until = until(deadline);
                self.record(What::Granted { request, token, until, slot });
                if let Some(user) = user {
                    self.enter(user, token, slot);
                }
            }
            (LockReply::Extended { deadline }, _) => {
                let until = until(deadline);
                self.record(What::Extended { request, until });
            }
            (LockReply::Lost, Some(user)) => self.lose(user, request),
            (LockReply::Busy, Some(user)) => self.end(user, request, Ending::Busy),
            (LockReply::TimedOut, Some(user)) => self.end(user, request, Ending::TimedOut),
            (LockReply::Cancelled, Some(user)) => self.end(user, request, Ending::Cancelled),
            (LockReply::Refused(Refusal::OtherPermits { of }), Some(user)) => {
                self.end(user, request, Ending::OtherPermits(of));
            }
            (LockReply::Refused(_), Some(user)) => self.end(user, request, Ending::Refused),
            // What is said to a call that is over goes on record too, for an oracle to object to.
            (LockReply::Busy, None) => self.record(What::Ended(request, Ending::Busy)),
            (LockReply::TimedOut, None) => self.record(What::Ended(request, Ending::TimedOut)),
            (LockReply::Cancelled, None) => self.record(What::Ended(request, Ending::Cancelled)),
            (LockReply::Released, _) => {
                let (word, replies) = (Word::Nothing, vec![reply]);
                self.record(What::Answered { request, word, replies });
            }
            (LockReply::Refused(_) | LockReply::Queued { .. }, _) => {}
            // A peer that wakes to a user who leaves says so first.
            (LockReply::Lost, None) => {}
        }
    }

    fn enter(&mut self, user: u32, token: Option<Token>, slot: Option<u16>) {
        let Some(session) = &mut self.users.list[user as usize].session else { return };
        session.phase = Phase::Inside(token.map(|token| (token, slot)));
        let errand = session.errand;
        let waited = self.now.since(session.asked);
        self.entries += 1;
        if self.now >= self.config.measured_from() {
            self.entries_measured += 1;
            self.waits.add(waited);
        }
        self.write(user);
        let record = &mut self.users.list[user as usize];
        if !record.wants.is_empty() {
            let next = record.wants.remove(0);
            record.held.extend(record.session.take());
            return self.ask(user, next, errand);
        }
        if let Some(after) = errand.inside {
            self.schedule(user, after, Deed::Leave);
        }
        if let Some(after) = errand.evict_after {
            self.schedule(user, after, Deed::Evict);
        }
        if let (Some(after), false) = (errand.crash_after, self.healed) {
            self.schedule(user, after, Deed::Crash);
        }
    }

    /// Writes to the fenced register, or reads it, if the lock came with a token.
    fn write(&mut self, user: u32) {
        let user = &mut self.users.list[user as usize];
        let Some(session) = &user.session else { return };
        if let Phase::Inside(Some((token, slot))) | Phase::Overstaying(Some((token, slot))) =
            session.phase
        {
            let Session { request, name, errand, .. } = *session;
            let last = Some(Pass { request, name, mode: errand.mode.with(slot), token });
            user.last = last;
            self.write_again(last);
        }
    }

    fn write_again(&mut self, last: Option<Pass>) {
        if let Some(Pass { request, name, mode, token }) = last {
            let checks = self.users.register_checks;
            let register = self.users.registers.entry(name);
            let register = register.or_insert_with(|| FencedRegister::new(checks));
            let accepted = register.touch(mode, token, request);
            self.record(What::Wrote { request, token, accepted });
        }
    }

    fn lose(&mut self, user: u32, request: RequestId) {
        if self.users.list[user as usize].held.iter().any(|held| held.request == request) {
            return self.lose_one_of_several(user, request);
        }
        self.record(What::Lost(request));
        let record = &mut self.users.list[user as usize];
        let Some(session) = &mut record.session else { return };
        if let (Some(after), Phase::Inside(token)) = (session.errand.overstay, session.phase) {
            session.phase = Phase::Overstaying(token);
            record.epoch += 1;
            self.schedule(user, after, Deed::Leave);
        } else {
            let (others, index) = (self.take_others(user), self.peer_of(user));
            self.finish(user);
            self.give_back(index, others);
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
        // Whoever overstayed has perhaps nothing left to give back, but tries.
        self.record(match phase {
            Phase::Overstaying(_) => What::Left(request),
            _ => What::Released(request),
        });
        let index = self.users.list[user as usize].peer as usize;
        let others = self.take_others(user);
        self.finish(user);
        self.give_back(index, vec![request.call]);
        self.give_back(index, others);
        self.go_on(user, Span::ZERO);
    }

    fn end(&mut self, user: u32, request: RequestId, ending: Ending) {
        self.record(What::Ended(request, ending));
        let (others, index) = (self.take_others(user), self.peer_of(user));
        self.finish(user);
        self.give_back(index, others);
        self.go_on(user, AFTER_REFUSAL_MIN);
    }

    fn finish(&mut self, user: u32) {
        let user = &mut self.users.list[user as usize];
        user.epoch += 1;
        self.users.busy -= user.held.len();
        user.held.clear();
        if let Some(session) = user.session.take() {
            self.users.busy -= 1;
            let calls = &mut self.peers[user.peer as usize].calls;
            calls.retain(|(call, _)| *call != session.request.call);
        }
    }
}
