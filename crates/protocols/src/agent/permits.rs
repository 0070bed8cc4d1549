//! Semaphores: a lock with k permits has k *slots*, and whoever holds one of them is inside.
//!
//! A vote is for one slot of so many: m votes of one slot win, and no two clients win the same, so that never
//! more than k are inside. The protocol inside sees to that, and that neither writers nor readers are inside
//! with them, nor permits of another number; whoever means another one is told theirs. A client asks for one
//! slot, drawn at random. If that is taken, it asks for all of them, enters by the first that it gets, and takes
//! the others back. Nobody holds one slot while waiting for another, so no two wait for each other; and as
//! whoever waits does so for all of them, no slot stays free while somebody waits for permits alone.

use alloc::vec::Vec;

use sigmalock_core::lock::PERMITS_MAX;
use sigmalock_core::{
    Acquire, CallId, LocalTime, LockReply, LockRequest, Mode, Name, Patience, Protocol, Refusal,
    Span, Token,
};

use super::{Agent, Cx, Mutant, Timer};
use crate::parts::Rules;

/// A user's wish for a permit, waiting or granted.
#[derive(Debug, Clone)]
pub(super) struct Permit {
    name: Name,
    of: u16,
    ttl: Span,
    only_try: bool,
    /// The requests in the swarm, one for each slot asked for.
    asked: Vec<Slot>,
    /// Whether all slots have been asked for.
    everywhere: bool,
    inside: Option<Inside>,
    /// How many are ahead, as the user was last told.
    told: Option<u32>,
}

/// A slot that is asked for.
#[derive(Debug, Clone)]
struct Slot {
    /// The agent's call.
    call: CallId,
    index: u16,
    /// How many are ahead and when the turn comes, once that is known.
    place: Option<(u32, Span)>,
}

/// A slot that is held.
#[derive(Debug, Clone, Copy)]
struct Inside {
    /// The agent's call.
    call: CallId,
    deadline: LocalTime,
    /// The user was told to leave, and may still be on its way out.
    lost: bool,
}

impl Permit {
    pub(super) fn waits_for(&self, name: &Name) -> bool {
        self.name == *name && self.inside.is_none()
    }
}

const UNKNOWN: LockReply = LockReply::Refused(Refusal::UnknownCall);

impl<P: Protocol<Request = LockRequest, Reply = LockReply>, R: Rules> Agent<P, R> {
    /// A user wants one of `of` permits.
    pub(super) fn on_acquire_permit(
        &mut self, cx: Cx<'_, '_, P, R>, id: CallId, wish: Acquire, of: u16,
    ) {
        let Acquire { name, ttl, patience, .. } = wish;
        let refusal = if !(Mode::Permit { of }).is_possible() {
            Some(Refusal::BadPermits { at_most: PERMITS_MAX })
        } else if self.calls.contains_key(&id) || self.permits.contains_key(&id) {
            Some(Refusal::DuplicateCall)
        } else if self.calls.len() + self.permits.len() >= self.config.calls_max {
            Some(Refusal::TooManyRequests { limit: self.config.calls_max })
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return cx.reply(id, LockReply::Refused(refusal));
        }
        if let Patience::For(span) = patience {
            cx.set_timer(Timer::Call(id), cx.now() + span);
        }
        let permit = Permit {
            name,
            of,
            ttl,
            only_try: patience == Patience::Try,
            asked: Vec::new(),
            everywhere: of == 1,
            inside: None,
            told: None,
        };
        self.permits.insert(id, permit);
        let first = cx.random() % u64::from(of);
        self.ask_slot(cx, id, first as u16);
    }

    fn ask_slot(&mut self, cx: Cx<'_, '_, P, R>, user: CallId, index: u16) {
        let call = self.next_call();
        let Some(permit) = self.permits.get_mut(&user) else { return };
        permit.asked.push(Slot { call, index, place: None });
        let patience = if permit.only_try { Patience::Try } else { Patience::Forever };
        let mode = Mode::Slot { of: permit.of, index };
        let wish =
            Acquire { mode, ..Acquire::exclusive(permit.name.clone(), permit.ttl, patience) };
        self.slots.insert(call, user);
        self.call(cx, LockRequest::Acquire(wish));
    }

    /// The slot that was asked for first is taken: asks for the others.
    fn ask_everywhere(&mut self, cx: Cx<'_, '_, P, R>, user: CallId) {
        let Some(permit) = self.permits.get_mut(&user).filter(|permit| !permit.everywhere) else {
            return;
        };
        if self.config.breaks(Mutant::AsksForOneSlot) {
            return;
        }
        permit.everywhere = true;
        let known: Vec<u16> = permit.asked.iter().map(|slot| slot.index).collect();
        for index in (0..permit.of).filter(|index| !known.contains(index)) {
            self.ask_slot(cx, user, index);
        }
    }

    /// The protocol inside answers a request for a slot.
    pub(super) fn on_slot_answer(
        &mut self, cx: Cx<'_, '_, P, R>, user: CallId, call: CallId, reply: LockReply,
    ) {
        let Some(permit) = self.permits.get_mut(&user) else { return };
        match reply {
            LockReply::Granted { token, deadline, .. } => {
                self.on_slot_granted(cx, user, call, token, deadline);
            }
            LockReply::Queued { ahead, wait } => {
                let slot = permit.asked.iter_mut().find(|slot| slot.call == call);
                if let Some(slot) = slot {
                    slot.place = Some((ahead, wait));
                }
                self.tell_permit_place(cx, user);
                self.ask_everywhere(cx, user);
            }
            LockReply::Extended { deadline } => {
                if let Some(inside) = permit.inside.as_mut().filter(|inside| !inside.lost) {
                    inside.deadline = deadline;
                    cx.reply(user, reply);
                }
            }
            LockReply::Lost => self.lose_permit(cx, user),
            // It would be said of every other slot.
            LockReply::Refused(Refusal::OtherPermits { .. }) => {
                self.slots.remove(&call);
                permit.asked.retain(|slot| slot.call != call);
                self.dismiss_permit(cx, user, reply);
            }
            LockReply::Busy
            | LockReply::TimedOut
            | LockReply::Cancelled
            | LockReply::Refused(_) => {
                self.slots.remove(&call);
                permit.asked.retain(|slot| slot.call != call);
                if permit.inside.is_some() {
                    return;
                }
                if reply == LockReply::Busy {
                    self.ask_everywhere(cx, user);
                }
                if self.permits.get(&user).is_some_and(|permit| permit.asked.is_empty()) {
                    self.forget_permit(cx, user);
                    cx.reply(user, reply);
                }
            }
            LockReply::Released => {}
        }
    }

    fn on_slot_granted(
        &mut self, cx: Cx<'_, '_, P, R>, user: CallId, call: CallId, token: Option<Token>,
        deadline: LocalTime,
    ) {
        let Some(permit) = self.permits.get_mut(&user) else { return };
        let Some(place) = permit.asked.iter().position(|slot| slot.call == call) else { return };
        let index = permit.asked.remove(place).index;
        if permit.inside.is_some() {
            // Only a mutant has asked for more since.
            return;
        }
        permit.inside = Some(Inside { call, deadline, lost: false });
        cx.cancel_timer(Timer::Call(user));
        cx.reply(user, LockReply::Granted { token, deadline, slot: Some(index) });
        if !self.config.breaks(Mutant::KeepsEverySlot) {
            self.take_back_slots(cx, user);
        }
    }

    /// Takes back all requests for slots that are still under way. What is granted meanwhile is nobody's,
    /// and given back.
    fn take_back_slots(&mut self, cx: Cx<'_, '_, P, R>, user: CallId) {
        let Some(permit) = self.permits.get_mut(&user) else { return };
        for Slot { call, .. } in core::mem::take(&mut permit.asked) {
            self.slots.remove(&call);
            self.call(cx, LockRequest::Cancel { call });
        }
    }

    /// Tells a user how many are ahead, if that is news: in the shortest queue.
    fn tell_permit_place(&mut self, cx: Cx<'_, '_, P, R>, user: CallId) {
        let Some(permit) = self.permits.get_mut(&user) else { return };
        let shortest = permit.asked.iter().filter_map(|slot| slot.place).min();
        if let Some((ahead, wait)) = shortest.filter(|(ahead, _)| permit.told != Some(*ahead)) {
            permit.told = Some(ahead);
            cx.reply(user, LockReply::Queued { ahead, wait });
        }
    }

    /// A user with a permit must leave, and has until its deadline to do so.
    fn lose_permit(&mut self, cx: Cx<'_, '_, P, R>, user: CallId) {
        let inside = self.permits.get_mut(&user).and_then(|permit| permit.inside.as_mut());
        if let Some(inside) = inside.filter(|inside| !inside.lost) {
            inside.lost = true;
            cx.set_timer(Timer::Call(user), inside.deadline);
            cx.reply(user, LockReply::Lost);
        }
    }

    /// The agent's call for the slot that a user has.
    pub(super) fn slot_of(&self, user: CallId) -> Option<CallId> {
        Some(self.permits.get(&user)?.inside?.call)
    }

    /// A user with a permit is out.
    pub(super) fn on_release_permit(&mut self, cx: Cx<'_, '_, P, R>, id: CallId, held: CallId) {
        let Some(inside) = self.permits.get(&held).and_then(|permit| permit.inside) else {
            return cx.reply(id, UNKNOWN);
        };
        // This peer may have slept: the deadline is looked at before the user is believed.
        let late = inside.deadline <= cx.now();
        if late && !inside.lost {
            cx.reply(held, LockReply::Lost);
        }
        cx.reply(id, if late { UNKNOWN } else { LockReply::Released });
        self.forget_permit(cx, held);
        self.call(cx, LockRequest::Release { held: inside.call });
    }

    /// Sends somebody away who waits for a permit. False if it does not.
    pub(super) fn dismiss_permit(
        &mut self, cx: Cx<'_, '_, P, R>, user: CallId, reply: LockReply,
    ) -> bool {
        if self.permits.get(&user).is_none_or(|permit| permit.inside.is_some()) {
            return false;
        }
        self.take_back_slots(cx, user);
        self.forget_permit(cx, user);
        cx.reply(user, reply);
        true
    }

    /// A user's timer: its patience has ended, or it has lost its permit and its deadline is here.
    pub(super) fn on_permit_timer(&mut self, cx: Cx<'_, '_, P, R>, user: CallId) {
        if !self.dismiss_permit(cx, user, LockReply::TimedOut) {
            self.forget_permit(cx, user);
        }
    }

    /// An operator wants whoever has a permit to leave. False if nobody does.
    pub(super) fn evict_permits(&mut self, cx: Cx<'_, '_, P, R>, name: &Name) -> bool {
        let inside =
            |(_, permit): &(&CallId, &Permit)| permit.name == *name && permit.inside.is_some();
        let inside: Vec<CallId> =
            self.permits.iter().filter(inside).map(|(user, _)| *user).collect();
        for user in &inside {
            self.lose_permit(cx, *user);
        }
        if !inside.is_empty() {
            self.call(cx, LockRequest::Evict { name: name.clone() });
        }
        !inside.is_empty()
    }

    fn forget_permit(&mut self, cx: Cx<'_, '_, P, R>, user: CallId) {
        let Some(permit) = self.permits.remove(&user) else { return };
        cx.cancel_timer(Timer::Call(user));
        let asked = permit.asked.iter().map(|slot| slot.call);
        for call in asked.chain(permit.inside.map(|inside| inside.call)) {
            self.slots.remove(&call);
        }
    }
}
