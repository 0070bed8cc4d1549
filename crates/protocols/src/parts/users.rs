//! The user's side of a lock: what is the same whatever the protocol.
//!
//! ```text
//! user                      Users                      protocol
//!  │ Acquire ────────────────►│ may it, and what? ──────►│ Todo::Ask: gets it the lock
//!  │ Release, Cancel ────────►│ is it inside, waiting? ─►│ Todo::End: gives it back
//!  │ Evict, Renew ───────────►│ does it                  │
//!  │◄─ Refused ───────────────│                          │
//!  │◄─ Lost ──────────────────│ lapse: time is up ──────►│ it is over
//!  │                          │ wakes it for renewals, and at the end of patience
//!  │◄─ Granted, Extended, Busy, TimedOut ────────────────│
//! ```
//!
//! A protocol keeps of each user what it likes; here it has to show the name and the [`Guard`]. It calls [`Users::hear`]
//! with what users ask, [`Users::lapse`] before it believes anything else, and [`Users::watch`] for each user that is new
//! or of which something has changed, which sets one timer for all. When that fires, it asks who is
//! [`impatient`](Users::impatient) and who is [`due`](Users::due) for a renewal, and calls [`Users::watch_all`].

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sigmalock_core::report::WAITERS_SHOWN_MAX;
use sigmalock_core::{
    Acquire, CallId, Context, HolderReport, LocalReport, LocalTime, LockReply, LockRequest, Mode,
    Name, Protocol, Refusal, RequestId, Span,
};

use super::{Alarm, Guard};

const UNKNOWN: LockReply = LockReply::Refused(Refusal::UnknownCall);

/// Who wants a lock, or has it.
pub trait User {
    /// Which lock.
    fn name(&self) -> &Name;
    /// Its right to be inside, if it is.
    fn guard(&self) -> Option<&Guard>;
    /// The same.
    fn guard_mut(&mut self) -> Option<&mut Guard>;
    /// When it is woken for if it waits; `NEVER` if the protocol has a timer for that.
    fn gives_up_at(&self) -> LocalTime {
        LocalTime::NEVER
    }
}

/// Which wishes can be met.
#[derive(Debug, Clone, Copy)]
pub struct Door {
    /// The shortest time that a right can be kept alive.
    pub ttl_min: Span,
    /// The longest that a vote is given for.
    pub ttl_max: Span,
    /// So many at a time.
    pub users_max: usize,
    /// Whether readers and permits may be inside together.
    pub modes: bool,
}

impl Door {
    fn refusal(&self, users: usize, wish: &Acquire) -> Option<Refusal> {
        let Self { ttl_min, ttl_max, users_max, modes } = *self;
        let possible = match wish.mode {
            Mode::Exclusive => true,
            // Whoever asks for any permit is given a slot before it gets here.
            Mode::Permit { .. } => false,
            Mode::Shared | Mode::Slot { .. } => modes && wish.mode.is_possible(),
        };
        if !possible {
            Some(Refusal::NoSuchMode { mode: wish.mode })
        } else if wish.ttl < ttl_min {
            Some(Refusal::TtlTooShort { at_least: ttl_min })
        } else if wish.ttl > ttl_max {
            Some(Refusal::TtlTooLong { at_most: ttl_max })
        } else if users >= users_max {
            Some(Refusal::TooManyRequests { limit: users_max })
        } else {
            None
        }
    }
}

/// What is left to do for a protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Todo {
    /// Nothing.
    Nothing,
    /// Somebody wants a lock, and may: nothing has been said yet.
    Ask(Acquire),
    /// It no longer does, or is out: what it has is given back, and then this is said to that call.
    End {
        /// Who.
        call: CallId,
        /// To which call.
        to: CallId,
        /// What.
        reply: LockReply,
    },
    /// This one is to be looked at sooner than it was to.
    Watch(CallId),
}

/// The users of a peer, by the calls under which they asked.
#[derive(Debug, Clone, Hash)]
pub struct Users<U> {
    all: BTreeMap<CallId, U>,
    /// No guard ends before this.
    look_from: LocalTime,
    alarm: Alarm,
}

impl<U> Default for Users<U> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), look_from: LocalTime::NEVER, alarm: Alarm::new() }
    }
}

impl<U: User> Users<U> {
    /// What a user says. It is answered, or what is left to do is.
    pub fn hear<P: Protocol<Reply = LockReply>>(
        &mut self, cx: &mut Context<'_, P>, door: Door, id: CallId, request: LockRequest,
    ) -> Todo {
        match request {
            LockRequest::Acquire(wish) => {
                let twice = self.all.contains_key(&id).then_some(Refusal::DuplicateCall);
                match twice.or_else(|| door.refusal(self.all.len(), &wish)) {
                    None => return Todo::Ask(wish),
                    Some(refusal) => cx.reply(id, LockReply::Refused(refusal)),
                }
            }
            LockRequest::Release { held } if self.guard(held).is_some() => {
                return Todo::End { call: held, to: id, reply: LockReply::Released };
            }
            LockRequest::Cancel { call } if self.is_waiting(call) => {
                return Todo::End { call, to: call, reply: LockReply::Cancelled };
            }
            LockRequest::Renew { held, on } => {
                let guard = self.all.get_mut(&held).and_then(U::guard_mut);
                if let Some(guard) = guard {
                    guard.renew(cx.now(), on);
                    cx.reply(id, LockReply::Released);
                    return Todo::Watch(held);
                }
                cx.reply(id, UNKNOWN);
            }
            LockRequest::Evict { name } => {
                let theirs = self.all.values_mut().filter(|user| *user.name() == name);
                let mut inside = theirs.filter_map(U::guard_mut).peekable();
                let reply = if inside.peek().is_some() { LockReply::Released } else { UNKNOWN };
                inside.for_each(|guard| guard.evict(cx));
                cx.reply(id, reply);
            }
            LockRequest::Release { .. } | LockRequest::Cancel { .. } => cx.reply(id, UNKNOWN),
        }
        Todo::Nothing
    }

    /// Tells those to stop whose time is up, or nearly. Those at their deadlines, of which the protocol has to take leave.
    /// This peer may have slept, so this comes before anything else is believed.
    pub fn lapse<P: Protocol<Reply = LockReply>>(
        &mut self, cx: &mut Context<'_, P>,
    ) -> Vec<CallId> {
        if cx.now() < self.look_from {
            return Vec::new();
        }
        self.look_from = LocalTime::NEVER;
        let mut over = Vec::new();
        for (call, user) in &mut self.all {
            let Some(guard) = user.guard_mut() else { continue };
            if guard.lose(cx) {
                over.push(*call);
            } else {
                self.look_from = self.look_from.min(guard.ends_at());
            }
        }
        over
    }

    /// Sees to it that this peer wakes for what is next with a user.
    pub fn watch<P: Protocol>(&mut self, cx: &mut Context<'_, P>, call: CallId, timer: P::Timer) {
        let Some(user) = self.all.get(&call) else { return };
        debug_assert!(
            user.guard().is_none_or(|guard| guard.is_of(call)),
            "{call:?} has its own guard"
        );
        let next = match user.guard() {
            Some(guard) => {
                self.look_from = self.look_from.min(guard.ends_at());
                guard.ends_at().min(guard.renew_at())
            }
            None => user.gives_up_at(),
        };
        if self.alarm.must_set(next) {
            cx.set_timer(timer, next);
        }
    }

    /// The timer has fired, and what was due is done.
    pub fn watch_all<P: Protocol<Timer: Clone>>(
        &mut self, cx: &mut Context<'_, P>, timer: &P::Timer,
    ) {
        self.alarm.fired();
        for call in self.calls() {
            self.watch(cx, call, timer.clone());
        }
    }

    /// Those who have waited for as long as they wanted to.
    #[must_use]
    pub fn impatient(&self, now: LocalTime) -> Vec<CallId> {
        self.those(|user| user.guard().is_none() && user.gives_up_at() <= now)
    }

    /// Those whose right is to be renewed.
    #[must_use]
    pub fn due(&self, now: LocalTime) -> Vec<CallId> {
        self.those(|user| user.guard().is_some_and(|guard| guard.renew_at() <= now))
    }

    fn those(&self, are: impl Fn(&U) -> bool) -> Vec<CallId> {
        self.all.iter().filter(|(_, user)| are(user)).map(|(call, _)| *call).collect()
    }

    fn guard(&self, call: CallId) -> Option<&Guard> {
        self.all.get(&call).and_then(U::guard)
    }

    /// Whether it is not inside yet.
    #[must_use]
    pub fn is_waiting(&self, call: CallId) -> bool {
        self.all.get(&call).is_some_and(|user| user.guard().is_none())
    }

    /// What they have to do with a name, for people; `request` is what they are called elsewhere. Of votes it says nothing.
    #[must_use]
    pub fn report(
        &self, now: LocalTime, name: &Name, request: impl Fn(CallId) -> RequestId,
    ) -> LocalReport {
        let mut report = LocalReport::default();
        for (call, user) in self.iter().filter(|(_, user)| user.name() == name) {
            match user.guard() {
                Some(guard) if guard.is_lost() => {}
                Some(guard) => report.holders.push(HolderReport {
                    call,
                    mode: Mode::Exclusive,
                    request: Some(request(call)),
                    token: None,
                    held_for: now.since(guard.since()),
                    ends_in: guard.deadline().since(now),
                }),
                None => {
                    report.waiting += 1;
                    report.waiters.push(call);
                }
            }
        }
        report.waiters.truncate(WAITERS_SHOWN_MAX);
        report
    }

    /// All calls, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<CallId> {
        self.all.keys().copied().collect()
    }

    /// All of them, in the order of their calls.
    pub fn iter(&self) -> impl Iterator<Item = (CallId, &U)> {
        self.all.iter().map(|(call, user)| (*call, user))
    }

    /// The same.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (CallId, &mut U)> {
        self.all.iter_mut().map(|(call, user)| (*call, user))
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, call: CallId) -> Option<&U> {
        self.all.get(&call)
    }

    /// The same.
    pub fn get_mut(&mut self, call: CallId) -> Option<&mut U> {
        self.all.get_mut(&call)
    }

    /// One that is let through.
    pub fn insert(&mut self, call: CallId, user: U) {
        let before = self.all.insert(call, user);
        debug_assert!(before.is_none(), "{call:?} is let through once");
    }

    /// One that is done.
    pub fn remove(&mut self, call: CallId) -> Option<U> {
        self.all.remove(&call)
    }
}
