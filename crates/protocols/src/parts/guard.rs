//! The right to be inside, and its end.

use sigmalock_core::{CallId, Context, LocalTime, LockReply, Protocol, Span};

/// A user is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guard {
    call: CallId,
    deadline: LocalTime,
    since: LocalTime,
    /// The user is told to stop so long before the deadline.
    lead: Span,
    lost: bool,
    /// When to renew the right, if that is to be done.
    next: LocalTime,
    /// Nobody knows whether the user still runs: its right is not renewed.
    paused: bool,
}

impl Guard {
    /// A user that is let in now. It is yet to be told so.
    #[must_use]
    pub fn new(
        call: CallId, now: LocalTime, deadline: LocalTime, lead: Span, renew_at: LocalTime,
    ) -> Self {
        debug_assert!(now < deadline, "nobody is let in whose time is up");
        let (lost, paused) = (false, false);
        Self { call, deadline, since: now, lead, lost, next: renew_at, paused }
    }

    /// Whether it was given to this call.
    #[must_use]
    pub fn is_of(&self, call: CallId) -> bool {
        self.call == call
    }

    /// Until when the user may be inside, as it was told.
    #[must_use]
    pub const fn deadline(&self) -> LocalTime {
        self.deadline
    }

    /// Since when it is.
    #[must_use]
    pub const fn since(&self) -> LocalTime {
        self.since
    }

    /// Whether the user has been told to stop, and nothing can change that.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// The user is told to stop a little before the deadline.
    #[must_use]
    pub fn lost_at(&self) -> LocalTime {
        self.deadline - self.lead
    }

    /// When to look at this guard again.
    #[must_use]
    pub fn ends_at(&self) -> LocalTime {
        if self.lost { self.deadline } else { self.lost_at() }
    }

    /// When to renew the right.
    #[must_use]
    pub const fn renew_at(&self) -> LocalTime {
        if self.lost || self.paused { LocalTime::NEVER } else { self.next }
    }

    /// The next renewal is not before this.
    pub const fn renew_next(&mut self, at: LocalTime) {
        self.next = at;
    }

    /// From now on the right is renewed, or it is not.
    pub fn renew(&mut self, now: LocalTime, on: bool) {
        if self.paused == on {
            (self.paused, self.next) = (!on, now);
        }
    }

    /// Tells the user of a later deadline, if that is what it is. False if nothing changes.
    pub fn extend<P: Protocol<Reply = LockReply>>(
        &mut self, cx: &mut Context<'_, P>, deadline: LocalTime,
    ) -> bool {
        let later = deadline > self.deadline && !self.lost;
        if later {
            self.deadline = deadline;
            cx.reply(self.call, LockReply::Extended { deadline });
        }
        later
    }

    /// The time is up, or nearly: tells the user to stop, once. True at the deadline itself; until then the user may
    /// still be on its way out.
    pub fn lose<P: Protocol<Reply = LockReply>>(&mut self, cx: &mut Context<'_, P>) -> bool {
        if self.lost_at() <= cx.now() {
            self.evict(cx);
        }
        self.lost && self.deadline <= cx.now()
    }

    /// Tells the user to stop, and renews no more. What it has is given back when the user says that it is out, or at
    /// the deadline; until then it may be inside.
    pub fn evict<P: Protocol<Reply = LockReply>>(&mut self, cx: &mut Context<'_, P>) {
        if !self.lost {
            self.lost = true;
            cx.reply(self.call, LockReply::Lost);
        }
    }
}
