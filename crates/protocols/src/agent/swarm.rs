//! What the agent asks of the protocol inside, and what becomes of the answers.

use sigmalock_core::{
    Acquire, CallId, LocalTime, LockReply, LockRequest, Name, Patience, Protocol, Span, Token,
};

use super::local::{Asked, Grant, Inside, places_told};
use super::{Agent, Cx, Timer, passed_from};
use crate::parts::Rules;

impl<P: Protocol<Request = LockRequest, Reply = LockReply>, R: Rules> Agent<P, R> {
    /// The protocol inside answers one of the agent's calls.
    pub(super) fn on_answer(&mut self, cx: Cx<'_, '_, P, R>, call: CallId, reply: LockReply) {
        if let Some(user) = passed_from(call) {
            return cx.reply(user, reply);
        }
        if let Some(user) = self.slots.get(&call) {
            return self.on_slot_answer(cx, *user, call, reply);
        }
        let Some(name) = self.asked.get(&call).cloned() else {
            if let LockReply::Granted { .. } = reply {
                self.call(cx, LockRequest::Release { held: call });
            }
            return;
        };
        match reply {
            LockReply::Granted { token, deadline, .. } => {
                self.on_granted(cx, &name, call, token, deadline);
            }
            LockReply::Queued { ahead, wait } => {
                if let Some(asked) = self.locks.get_mut(&name).and_then(|l| l.asked.as_mut()) {
                    asked.place = Some((ahead, wait));
                }
                self.tell_places(cx, &name, 0);
            }
            LockReply::Extended { deadline } => self.on_extended(cx, &name, call, deadline),
            LockReply::Lost => {
                let inside = self.locks.get(&name).and_then(|local| local.inside.as_ref());
                if inside.is_some_and(|inside| inside.grant.call == call) {
                    self.lose(cx, &name);
                }
            }
            LockReply::Busy
            | LockReply::TimedOut
            | LockReply::Cancelled
            | LockReply::Refused(_) => self.on_refused(cx, &name, call, reply),
            LockReply::Released => {}
        }
    }

    fn on_granted(
        &mut self, cx: Cx<'_, '_, P, R>, name: &Name, call: CallId, token: Option<Token>,
        deadline: LocalTime,
    ) {
        let Some(local) = self.locks.get_mut(name) else { return };
        let ttl = local.asked.take().map_or(Span::ZERO, |asked| asked.ttl);
        // Whoever was told to leave is out, or its time is over: nobody else would be let in.
        if let Some(before) = local.inside.take() {
            self.forget(cx, before.call);
            self.asked.remove(&before.grant.call);
        }
        let lent = deadline.since(cx.now());
        self.let_in(cx, name, Grant { call, ttl, token, deadline, lent, entries: 1 });
    }

    /// Lets the first that waits in.
    pub(super) fn let_in(&mut self, cx: Cx<'_, '_, P, R>, name: &Name, grant: Grant) {
        let Some(local) = self.locks.get_mut(name) else { return };
        let Some(first) = local.waiting.pop_front() else {
            self.give_back(cx, grant.call);
            return self.advance(cx, name);
        };
        let Grant { token, deadline, .. } = grant;
        let (call, since) = (first.call, cx.now());
        local.inside = Some(Inside { call, grant, since, lost: false, paused: false });
        cx.cancel_timer(Timer::Call(first.call));
        cx.reply(first.call, LockReply::Granted { token, deadline, slot: None });
        self.tell_places(cx, name, 0);
    }

    fn on_extended(
        &mut self, cx: Cx<'_, '_, P, R>, name: &Name, grant: CallId, deadline: LocalTime,
    ) {
        let inside = self.locks.get_mut(name).and_then(|local| local.inside.as_mut());
        if let Some(inside) = inside.filter(|inside| inside.grant.call == grant && !inside.lost) {
            inside.grant.deadline = deadline;
            inside.grant.lent = deadline.since(cx.now());
            cx.reply(inside.call, LockReply::Extended { deadline });
        }
    }

    /// Whoever is inside must leave, and has until its deadline to do so. The others ask anew.
    pub(super) fn lose(&mut self, cx: Cx<'_, '_, P, R>, name: &Name) {
        let inside = self.locks.get_mut(name).and_then(|local| local.inside.as_mut());
        let Some(inside) = inside.filter(|inside| !inside.lost) else { return };
        inside.lost = true;
        cx.reply(inside.call, LockReply::Lost);
        cx.set_timer(Timer::Call(inside.call), inside.grant.deadline);
        self.advance(cx, name);
    }

    pub(super) fn give_back(&mut self, cx: Cx<'_, '_, P, R>, granted: CallId) {
        self.asked.remove(&granted);
        self.call(cx, LockRequest::Release { held: granted });
    }

    /// The request in the swarm is over without a grant. Whoever it was made for is told why; nobody, if
    /// that one only tried and has gone meanwhile.
    fn on_refused(&mut self, cx: Cx<'_, '_, P, R>, name: &Name, call: CallId, reply: LockReply) {
        self.asked.remove(&call);
        let Some(local) = self.locks.get_mut(name) else { return };
        if local.asked.as_ref().is_none_or(|asked| asked.call != call) {
            return;
        }
        local.asked = None;
        let first = local.waiting.front();
        match first.filter(|first| first.only_try || reply != LockReply::Busy) {
            Some(first) => {
                let first = first.call;
                self.dismiss(cx, first, reply);
            }
            None => self.advance(cx, name),
        }
    }

    /// Sees to it that a request stands in the swarm for the first that waits, if there is one and nobody
    /// is inside, and forgets a lock that nobody wants.
    pub(super) fn advance(&mut self, cx: Cx<'_, '_, P, R>, name: &Name) {
        let Some(local) = self.locks.get_mut(name) else { return };
        let wanted = local.waiting.front().map(|first| (first.ttl, first.only_try));
        let asked = local.asked.as_ref();
        if asked.is_some_and(|asked| wanted.is_none_or(|(ttl, _)| ttl != asked.ttl))
            && let Some(Asked { call, .. }) = local.asked.take()
        {
            self.asked.remove(&call);
            self.call(cx, LockRequest::Cancel { call });
        }
        let call = self.next_call();
        let Some(local) = self.locks.get_mut(name) else { return };
        match wanted {
            Some((ttl, only_try)) if local.asked.is_none() && !local.is_held() => {
                local.asked = Some(Asked { call, ttl, place: None });
                self.asked.insert(call, name.clone());
                let patience = if only_try { Patience::Try } else { Patience::Forever };
                let wish = Acquire::exclusive(name.clone(), ttl, patience);
                self.call(cx, LockRequest::Acquire(wish));
            }
            None if local.is_idle() => {
                debug_assert!(self.calls.values().all(|of| of != name), "nobody is left at {name}");
                self.locks.remove(name);
            }
            _ => {}
        }
    }

    /// Tells those who wait, from a place on, how many are before them; see [`places_told`].
    pub(super) fn tell_places(&mut self, cx: Cx<'_, '_, P, R>, name: &Name, from: usize) {
        let len = self.locks.get(name).map_or(0, |local| local.waiting.len());
        for place in places_told(len).skip_while(|place| *place < from) {
            self.tell_place(cx, name, place);
        }
    }

    /// Tells one of those who wait how many are before it, if that is known, and news to it.
    pub(super) fn tell_place(&mut self, cx: Cx<'_, '_, P, R>, name: &Name, place: usize) {
        let Some(local) = self.locks.get_mut(name) else { return };
        let Some((before, wait)) = local.before_the_first(cx.now()) else { return };
        let ahead = before.saturating_add(place as u32);
        let wait = wait + local.service * place as u64;
        let Some(waiter) = local.waiting.get_mut(place) else { return };
        if waiter.told != Some(ahead) && !waiter.only_try {
            waiter.told = Some(ahead);
            cx.reply(waiter.call, LockReply::Queued { ahead, wait });
        }
    }
}
