//! Who waits for and who is inside each lock, as far as a history tells. What most oracles look at.

use std::collections::BTreeMap;

use sigmalock_core::{CallId, Incarnation, Mode, Name, PeerId, RequestId};

use crate::history::{Record, TrueTime, What};

/// All locks that somebody waits for or is inside of.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    locks: BTreeMap<Name, Lock>,
    requests: BTreeMap<RequestId, (Name, TrueTime, Mode)>,
}

/// One lock.
#[derive(Debug, Clone, Default)]
pub(super) struct Lock {
    /// Who waits, in order of asking, and whether for ever.
    pub(super) waiting: BTreeMap<(TrueTime, RequestId), bool>,
    /// Who was let in, and until when.
    pub(super) inside: BTreeMap<RequestId, TrueTime>,
    /// Since when there has always been somebody waiting.
    waited_since: TrueTime,
    /// When somebody last left: from inside, or tired of waiting with votes that must come back.
    left: TrueTime,
}

impl Lock {
    /// Since when nobody unexpired has been inside although somebody waits, if that is so now. Counted
    /// anew when a waiter gives up, since the votes it may have had are under way again.
    pub(super) fn idle_since(&self, now: TrueTime) -> Option<TrueTime> {
        let expired = self.inside.values().copied().max().unwrap_or_default();
        let idle = !self.waiting.is_empty() && expired <= now;
        idle.then(|| self.waited_since.max(self.left).max(expired))
    }

    fn leave(&mut self, asked: TrueTime, request: RequestId, at: TrueTime) {
        if self.waiting.remove(&(asked, request)).is_some() {
            self.left = at;
        } else if let Some(until) = self.inside.remove(&request) {
            self.left = self.left.max(until.min(at));
        }
    }
}

impl Board {
    /// The lock that a record is about, as it was before.
    pub(super) fn lock_of(&self, what: &What) -> Option<(&Name, &Lock)> {
        let name = match what {
            What::Asked { name, .. } => name,
            _ => &self.requests.get(&request_of(what)?)?.0,
        };
        self.locks.get_key_value(name)
    }

    /// All locks.
    pub(super) fn locks(&self) -> impl Iterator<Item = (&Name, &Lock)> {
        self.locks.iter()
    }

    /// When a request asked, while it waits or is inside.
    pub(super) fn asked(&self, request: RequestId) -> Option<TrueTime> {
        self.requests.get(&request).map(|(_, asked, _)| *asked)
    }

    /// In what company a request wants its lock, or has it. A permit that is out has a slot.
    pub(super) fn mode(&self, request: RequestId) -> Mode {
        self.requests.get(&request).map_or(Mode::Exclusive, |(.., mode)| *mode)
    }

    /// Whether two requests may be inside together, if there is room.
    pub(super) fn share(&self, one: RequestId, other: RequestId) -> bool {
        may_share(self.mode(one), self.mode(other))
    }

    /// Which lock a request is about, while it waits or is inside.
    pub(super) fn name_of(&self, request: RequestId) -> Option<&Name> {
        self.requests.get(&request).map(|(name, ..)| name)
    }

    /// How many like this one may be inside together.
    pub(super) fn room(&self, request: RequestId) -> usize {
        match self.mode(request) {
            Mode::Exclusive => 1,
            Mode::Shared => usize::MAX,
            Mode::Permit { of } | Mode::Slot { of, .. } => of.into(),
        }
    }

    /// Whether a request waits.
    pub(super) fn is_waiting(&self, request: RequestId) -> bool {
        self.requests.get(&request).is_some_and(|(name, asked, _)| {
            self.locks.get(name).is_some_and(|lock| lock.waiting.contains_key(&(*asked, request)))
        })
    }

    /// Until when a request is inside, if it is.
    pub(super) fn inside_until(&self, request: RequestId) -> Option<TrueTime> {
        let (name, ..) = self.requests.get(&request)?;
        self.locks.get(name)?.inside.get(&request).copied()
    }

    /// Takes a record down. What makes no sense is ignored; that is for [`super::answered`] to say.
    pub(super) fn see(&mut self, record: &Record) {
        let at = record.at;
        match &record.what {
            What::Asked { request, name, mode, forever, .. } => {
                self.requests.insert(*request, (name.clone(), at, *mode));
                let lock = self.locks.entry(name.clone()).or_default();
                if lock.waiting.is_empty() {
                    lock.waited_since = at;
                }
                lock.waiting.insert((at, *request), *forever);
            }
            What::Granted { request, until, slot, .. } => {
                if let Some((_, _, mode)) = self.requests.get_mut(request) {
                    *mode = mode.with(*slot);
                }
                let asked = self.asked(*request);
                if let (Some(lock), Some(asked)) = (self.lock_mut(*request), asked) {
                    lock.waiting.remove(&(asked, *request));
                    lock.inside.insert(*request, *until);
                }
            }
            What::Extended { request, until } => {
                if let Some(lock) = self.lock_mut(*request)
                    && let Some(end) = lock.inside.get_mut(request)
                {
                    *end = *until;
                }
            }
            What::Lost(request) | What::Released(request) | What::Ended(request, _) => {
                self.close(*request, at);
            }
            What::Crashed(peer) => {
                for request in self.requests_of(*peer) {
                    self.close(request, at);
                }
            }
            What::Left(_)
            | What::Wrote { .. }
            | What::Answered { .. }
            | What::Started(_)
            | What::FellAsleep(_)
            | What::Woke(_)
            | What::Doubled(_)
            | What::Noticed(_)
            | What::Healed
            | What::Views(_) => {}
        }
    }

    /// What a peer has under way.
    pub(super) fn requests_of(&self, client: PeerId) -> Vec<RequestId> {
        let first = RequestId { client, incarnation: Incarnation(0), call: CallId(0) };
        let from_it = self.requests.range(first..).map(|(request, _)| *request);
        from_it.take_while(|request| request.client == client).collect()
    }

    fn lock_mut(&mut self, request: RequestId) -> Option<&mut Lock> {
        self.locks.get_mut(&self.requests.get(&request)?.0)
    }

    fn close(&mut self, request: RequestId, at: TrueTime) {
        let Some((name, asked, _)) = self.requests.remove(&request) else { return };
        let Some(lock) = self.locks.get_mut(&name) else { return };
        lock.leave(asked, request, at);
        if lock.waiting.is_empty() && lock.inside.is_empty() {
            self.locks.remove(&name);
        }
    }
}

/// Whether requests of these modes may be inside together, if there is room.
pub(super) fn may_share(one: Mode, other: Mode) -> bool {
    // Which slot it will be is not known while it waits.
    let any = |mode| matches!(mode, Mode::Permit { .. });
    let permits = (any(one) || any(other)) && one.permits() == other.permits();
    permits || one.shares_with(other)
}

/// The request that a record is about.
pub(super) fn request_of(what: &What) -> Option<RequestId> {
    match what {
        What::Asked { request, .. }
        | What::Granted { request, .. }
        | What::Extended { request, .. }
        | What::Lost(request)
        | What::Released(request)
        | What::Left(request)
        | What::Ended(request, _)
        | What::Answered { request, .. }
        | What::Wrote { request, .. } => Some(*request),
        What::Crashed(_)
        | What::Started(_)
        | What::FellAsleep(_)
        | What::Woke(_)
        | What::Doubled(_)
        | What::Noticed(_)
        | What::Healed
        | What::Views(_) => None,
    }
}
