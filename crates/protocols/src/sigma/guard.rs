//! The right to be inside, and its end.

use sigmalock_core::{CallId, LocalTime, LockReply, Mode, Span, Token};

use super::attempt::Attempt;
use super::{Config, Cx};
use crate::parts::Rules;

/// A user is inside.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Guard {
    call: CallId,
    ttl: Span,
    /// The user is told to stop so long before the deadline.
    lead: Span,
    /// The last token of the block that is the user's.
    pub(super) token: Token,
    /// When the right ends, as the user was told.
    pub(super) deadline: LocalTime,
    /// Since when the user is inside.
    pub(super) since: LocalTime,
    /// The user has been told to stop, and nothing can change that.
    pub(super) lost: bool,
    /// When to renew the right, if that is to be done.
    next: LocalTime,
    /// Nobody knows whether the user still runs: its right is not renewed.
    paused: bool,
}

impl Guard {
    /// Lets the user in; `None` if there is too little time left to renew the right before it ends.
    pub(super) fn enter(
        config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, attempt: &Attempt, token: Token,
        deadline: LocalTime,
    ) -> Option<Self> {
        let (call, ttl) = (attempt.call(), attempt.ttl);
        let now = cx.now();
        let next = now + deadline.since(now) / 3;
        let lead = (ttl / 50).min(config.claim_window / 8);
        let (lost, paused) = (false, false);
        let guard = Self { call, ttl, lead, token, deadline, since: now, lost, next, paused };
        if guard.lost_at() <= next {
            return None;
        }
        let first = Some(config.block_start(token));
        let slot = match attempt.ticket.mode {
            Mode::Slot { index, .. } => Some(index),
            Mode::Exclusive | Mode::Shared | Mode::Permit { .. } => None,
        };
        cx.reply(call, LockReply::Granted { token: first, deadline, slot });
        Some(guard)
    }

    /// The user is told to stop a little before the deadline.
    fn lost_at(&self) -> LocalTime {
        self.deadline - self.lead
    }

    /// When to look at this guard again.
    pub(super) fn ends_at(&self) -> LocalTime {
        if self.lost { self.deadline } else { self.lost_at() }
    }

    /// When to renew the right.
    pub(super) fn renew_at(&self) -> LocalTime {
        if self.lost || self.paused { LocalTime::NEVER } else { self.next }
    }

    /// The time is up, or nearly: tells the user to stop, once. True at the deadline itself, when the
    /// votes are to be given back; until then the user may still be on its way out.
    pub(super) fn lose(&mut self, cx: Cx<'_, '_, impl Rules>) -> bool {
        if self.lost_at() <= cx.now() {
            self.evict(cx);
        }
        self.lost && self.deadline <= cx.now()
    }

    /// An operator wants the user out: tells it to stop, and renews no more. The votes are given back when
    /// the user says that it is out, or at the deadline; until then it may be inside.
    pub(super) fn evict(&mut self, cx: Cx<'_, '_, impl Rules>) {
        if !self.lost {
            self.lost = true;
            cx.reply(self.call, LockReply::Lost);
        }
    }

    /// Tells the user of a later deadline, if renewals have brought one about.
    pub(super) fn extend(&mut self, cx: Cx<'_, '_, impl Rules>, deadline: LocalTime) {
        if deadline > self.deadline && !self.lost {
            let pause = (deadline.since(cx.now()) / 3).min(self.ttl / 3);
            let jitter = Span::from_micros(cx.random() % (pause.as_micros() / 8).max(1));
            self.deadline = deadline;
            self.next = cx.now() + (pause - jitter);
            cx.reply(self.call, LockReply::Extended { deadline });
        }
    }

    /// From now on the right is renewed, or it is not.
    pub(super) fn renew(&mut self, now: LocalTime, on: bool) {
        if self.paused == on {
            (self.paused, self.next) = (!on, now);
        }
    }

    /// A renewal is under way; the next is tried sooner, should it not get through.
    pub(super) fn renewing(&mut self, now: LocalTime, round_trip: Span) {
        let pause = (self.deadline.since(now) / 3).max(round_trip / 2);
        self.next = now + pause.max(Span::from_millis(1));
    }
}
