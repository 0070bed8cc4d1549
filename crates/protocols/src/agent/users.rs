//! What users ask of the agent.

use sigmalock_core::{
    Acquire, CallId, LockReply, LockRequest, Mode, Name, Patience, Protocol, Refusal, Token,
};

use super::local::{Grant, Inside, Waiter};
use super::{Agent, Cx, Mutant, Note, Timer, passed};
use crate::parts::Rules;

const UNKNOWN: LockReply = LockReply::Refused(Refusal::UnknownCall);

impl<P: Protocol<Request = LockRequest, Reply = LockReply>, R: Rules> Agent<P, R> {
    pub(super) fn on_request(&mut self, cx: Cx<'_, '_, P, R>, id: CallId, request: LockRequest) {
        match request {
            LockRequest::Acquire(wish) => self.on_acquire(cx, id, wish),
            LockRequest::Release { held } => self.on_release(cx, id, held),
            LockRequest::Renew { held, on } => self.on_renew(cx, id, held, on),
            LockRequest::Cancel { call } => {
                let gone = LockReply::Cancelled;
                if !self.calls.contains_key(&call) && !self.permits.contains_key(&call) {
                    self.pass_call(cx, id, LockRequest::Cancel { call: passed(call) });
                } else if !self.dismiss(cx, call, gone) && !self.dismiss_permit(cx, call, gone) {
                    cx.reply(id, UNKNOWN);
                }
            }
            LockRequest::Evict { name } => self.on_evict(cx, id, name),
        }
    }

    fn on_acquire(&mut self, cx: Cx<'_, '_, P, R>, id: CallId, wish: Acquire) {
        match wish.mode {
            Mode::Exclusive => {}
            Mode::Permit { of } => return self.on_acquire_permit(cx, id, wish, of),
            Mode::Shared | Mode::Slot { .. }
                if self.calls.contains_key(&id) || self.permits.contains_key(&id) => {}
            Mode::Shared | Mode::Slot { .. } => {
                return self.pass_call(cx, id, LockRequest::Acquire(wish));
            }
        }
        let limit = self.config.calls_max;
        if self.calls.contains_key(&id) || self.permits.contains_key(&id) {
            return cx.reply(id, LockReply::Refused(Refusal::DuplicateCall));
        }
        if self.calls.len() + self.permits.len() >= limit {
            return cx.reply(id, LockReply::Refused(Refusal::TooManyRequests { limit }));
        }
        let Acquire { name, ttl, patience, .. } = wish;
        let only_try = patience == Patience::Try;
        if only_try && self.locks.get(&name).is_some_and(|local| !local.is_idle()) {
            return cx.reply(id, LockReply::Busy);
        }
        if let Patience::For(span) = patience
            && !self.config.breaks(Mutant::IgnoresPatience)
        {
            cx.set_timer(Timer::Call(id), cx.now() + span);
        }
        let local = self.locks.entry(name.clone()).or_default();
        local.waiting.push_back(Waiter { call: id, ttl, only_try, told: None });
        let last = local.waiting.len() - 1;
        self.calls.insert(id, name.clone());
        self.tell_place(cx, &name, last);
        self.advance(cx, &name);
    }

    fn on_release(&mut self, cx: Cx<'_, '_, P, R>, id: CallId, held: CallId) {
        if self.permits.contains_key(&held) {
            return self.on_release_permit(cx, id, held);
        }
        let Some(name) = self.calls.get(&held).cloned() else {
            return self.pass_call(cx, id, LockRequest::Release { held: passed(held) });
        };
        let now = cx.now();
        let Some(local) = self.locks.get_mut(&name).filter(|local| local.is_inside(held)) else {
            return cx.reply(id, UNKNOWN);
        };
        let Some(inside) = local.leave(now) else { return };
        self.forget(cx, held);
        // This peer may have slept: the deadline is looked at before the user is believed.
        let late = inside.grant.deadline <= now;
        if late && !inside.lost {
            cx.reply(held, LockReply::Lost);
        }
        cx.reply(id, if late { UNKNOWN } else { LockReply::Released });
        if inside.paused {
            self.call(cx, LockRequest::Renew { held: inside.grant.call, on: true });
        }
        if !inside.lost && self.may_hand_over(cx, &name, inside.grant) {
            return self.hand_over(cx, &name, inside.grant);
        }
        self.give_back(cx, inside.grant.call);
        self.advance(cx, &name);
    }

    /// The right of a user is not renewed any more, or is again.
    fn on_renew(&mut self, cx: Cx<'_, '_, P, R>, id: CallId, held: CallId, on: bool) {
        let permit = self.slot_of(held);
        let local = self.calls.get(&held).and_then(|name| self.locks.get_mut(name));
        let inside = local.and_then(|local| local.inside.as_mut());
        if let Some(inside) = inside.filter(|inside| inside.call == held) {
            inside.paused = !on;
            let held = inside.grant.call;
            self.call(cx, LockRequest::Renew { held, on });
        } else if let Some(held) = permit {
            self.call(cx, LockRequest::Renew { held, on });
        } else if self.calls.contains_key(&held) || self.permits.contains_key(&held) {
            return cx.reply(id, UNKNOWN);
        } else {
            return self.pass_call(cx, id, LockRequest::Renew { held: passed(held), on });
        }
        cx.reply(id, LockReply::Released);
    }

    /// Whether the next in the queue may be let in under this grant.
    fn may_hand_over(&self, cx: Cx<'_, '_, P, R>, name: &Name, grant: Grant) -> bool {
        let next = self.locks.get(name).and_then(|local| local.waiting.front());
        if next.is_none_or(|next| next.ttl != grant.ttl) {
            return false;
        }
        let time_left = grant.deadline.since(cx.now()) > grant.lent / 4
            || self.config.breaks(Mutant::HandsOverPastTheDeadline);
        let tokens_left = grant.entries < self.config.entries_per_grant
            || self.config.breaks(Mutant::NeverLetsGo);
        if !tokens_left {
            cx.note(Note::BlockUsedUp);
        }
        time_left && tokens_left
    }

    fn hand_over(&mut self, cx: Cx<'_, '_, P, R>, name: &Name, mut grant: Grant) {
        cx.note(Note::HandedOver);
        grant.entries += 1;
        if !self.config.breaks(Mutant::ReusesTokens) {
            grant.token = grant.token.map(Token::next);
        }
        if self.config.breaks(Mutant::HandsOverPastTheDeadline) {
            grant.deadline = cx.now() + grant.ttl;
        }
        self.let_in(cx, name, grant);
    }

    /// An operator wants whoever is inside to leave. The protocol inside tells it so and stops renewing.
    fn on_evict(&mut self, cx: Cx<'_, '_, P, R>, id: CallId, name: Name) {
        if self.evict_permits(cx, &name) {
            return cx.reply(id, LockReply::Released);
        }
        if self.locks.get(&name).is_none_or(|local| local.inside.is_none()) {
            return self.pass_call(cx, id, LockRequest::Evict { name });
        }
        cx.reply(id, LockReply::Released);
        self.lose(cx, &name);
        self.call(cx, LockRequest::Evict { name });
    }

    /// A user's timer: its patience has ended, or it has lost the lock and its deadline is here.
    pub(super) fn on_timer(&mut self, cx: Cx<'_, '_, P, R>, call: CallId) {
        if self.permits.contains_key(&call) {
            return self.on_permit_timer(cx, call);
        }
        if self.dismiss(cx, call, LockReply::TimedOut) {
            return;
        }
        let Some(name) = self.calls.get(&call).cloned() else { return };
        let Some(local) = self.locks.get_mut(&name) else {
            return debug_assert!(false, "who is known by its call is at its lock");
        };
        let over = |inside: &Inside| inside.call == call && inside.lost;
        if local.inside.as_ref().is_some_and(over)
            && let Some(inside) = local.leave(cx.now())
        {
            self.calls.remove(&call);
            self.asked.remove(&inside.grant.call);
            self.advance(cx, &name);
        }
    }

    /// Sends somebody away who waits. False if there is no such waiter.
    pub(super) fn dismiss(&mut self, cx: Cx<'_, '_, P, R>, call: CallId, reply: LockReply) -> bool {
        let Some(name) = self.calls.get(&call).cloned() else { return false };
        let Some(local) = self.locks.get_mut(&name) else { return false };
        let Some(place) = local.place_of(call) else { return false };
        local.waiting.remove(place);
        self.forget(cx, call);
        cx.reply(call, reply);
        self.tell_places(cx, &name, place);
        self.advance(cx, &name);
        true
    }

    pub(super) fn forget(&mut self, cx: Cx<'_, '_, P, R>, call: CallId) {
        self.calls.remove(&call);
        cx.cancel_timer(Timer::Call(call));
    }
}
