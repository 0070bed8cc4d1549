//! What a request says to its replicas, and when it wakes to say more.

use sigmalock_core::{LocalTime, PeerId, ReplicaId, Span, Token};

use super::attempt::{Attempt, Phase};
use super::message::{Ask, Claim, Message, Spent, Used};
use super::seat::News;
use super::{Config, Cx, Note, Timer};
use crate::parts::{Rules, User};

impl Attempt {
    /// Sends the message that moves this seat forward: a YIELD for a vote that the host has yet to take
    /// back, a SEAL for one that has yet to write the token down, else a REQUEST. All are harmless to
    /// repeat.
    pub(super) fn ask(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, index: usize,
    ) {
        let ask = self.ask_of(index, cx.now());
        let seat = self.tally.seat_mut(index);
        seat.sent_on &= seat.tries == 0;
        let host = if seat.sent_on { seat.host } else { cx.hosting.host_of(&ask.replica) };
        if seat.host != host {
            self.tally.move_seat(index, host);
        }
        if self.aside && !matches!(self.tally.seat(index).news, News::Nobody | News::Silent) {
            return self.withdraw(cx, index);
        }
        let Some(host) = host else {
            self.tally.set_news(index, News::Silent);
            return self.ask_later(cx, index, self.retry_after(config, 4));
        };
        let seat = self.tally.seat(index);
        let message = match (self.phase, seat.held(), seat.yielded) {
            (Phase::Sealing(token), Some(held), _) if held.proposal < token => {
                Message::Seal(ask, held.grant, token)
            }
            (_, _, Some(grant)) if seat.yielding => Message::Yield(ask, grant),
            _ => Message::Request(ask),
        };
        cx.send(host, message);
        self.await_answer(config, cx, index);
    }

    /// A former host says who hosts a replica now. It is asked at once, unless this request has just been
    /// sent on: hosts that do not agree yet would send it round in circles.
    pub(super) fn on_moved(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, from: PeerId,
        index: u16, to: PeerId,
    ) {
        let now = cx.now();
        let here = self.tally.find(index);
        let here = here.filter(|index| self.tally.seat(*index).host == Some(from) && to != from);
        let Some(index) = here else {
            return cx.note(Note::StaleResponse);
        };
        let pause = match self.tally.seat(index).moves {
            0 => Span::ZERO,
            moves => self.retry_after(config, moves),
        };
        let seat = self.tally.seat_mut(index);
        if seat.moved_at + pause > now {
            return self.ask_later(cx, index, pause);
        }
        (seat.moved_at, seat.moves) = (now, seat.moves.saturating_add(1));
        self.tally.move_seat(index, Some(to));
        self.tally.seat_mut(index).sent_on = true;
        self.ask(config, cx, index);
    }

    /// Whether an answer may be answered at once. If something was said to this replica less than a
    /// round trip ago, the timer will do: otherwise copies of messages breed copies without end.
    pub(super) fn may_ask(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, index: usize,
    ) -> bool {
        let seat = self.tally.seat(index);
        let again_at = seat.asked_at + self.round_trip_or_worst(config);
        if again_at > cx.now() && seat.ask_at == LocalTime::NEVER {
            self.ask_later(cx, index, again_at.since(cx.now()));
        }
        again_at <= cx.now()
    }

    fn await_answer(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, index: usize,
    ) {
        let seat = self.tally.seat_mut(index);
        let tries = seat.tries;
        seat.asked_at = cx.now();
        seat.tries = tries.saturating_add(1);
        self.ask_later(cx, index, self.retry_after(config, tries));
    }

    fn ask_of(&self, index: usize, sent: LocalTime) -> Ask {
        let replica = ReplicaId { name: self.name.clone(), index: self.tally.seat(index).index };
        let inside = self.guard().is_some();
        Ask { replica, ticket: self.ticket, ttl: self.ttl, sent, inside }
    }

    pub(super) fn ask_later(&mut self, cx: Cx<'_, '_, impl Rules>, index: usize, span: Span) {
        let at = cx.now() + span;
        self.tally.seat_mut(index).ask_at = at;
        self.wake_by(cx, at);
    }

    /// What has been measured or, as long as no answer has been timed, the worst to expect: whatever
    /// paces messages must not pace them by nothing.
    pub(super) fn round_trip_or_worst(&self, config: &Config<impl Rules>) -> Span {
        if self.round_trip > Span::ZERO { self.round_trip } else { config.round_trip_worst }
    }

    /// How long to wait for an answer that was asked for so many times already.
    pub(super) fn retry_after(&self, config: &Config<impl Rules>, tries: u8) -> Span {
        (self.round_trip_or_worst(config) * 2 * (1 << tries.min(10))).min(config.retry_max)
    }

    pub(super) fn wake_by(&mut self, cx: Cx<'_, '_, impl Rules>, at: LocalTime) {
        if self.alarm.must_set(at) {
            cx.set_timer(Timer::Request(self.call()), at);
        }
    }

    pub(super) fn wake_for_next(&mut self, cx: Cx<'_, '_, impl Rules>) {
        let inside = self.guard().is_some();
        let seal_at = if self.seal_at > cx.now() { self.seal_at } else { LocalTime::NEVER };
        let yield_from =
            if self.yield_from > cx.now() { self.yield_from } else { LocalTime::NEVER };
        let outside = self.gives_up_at.min(self.probe_at).min(seal_at).min(yield_from);
        let mut next = if inside { LocalTime::NEVER } else { outside };
        for seat in self.tally.seats() {
            next = next.min(seat.ask_at);
            if let Some(held) = seat.held() {
                next = next.min(held.expiry);
            }
        }
        self.wake_by(cx, next);
    }

    /// The votes to renew, by host.
    pub(super) fn claims(&mut self, now: LocalTime) -> impl Iterator<Item = (PeerId, Claim)> {
        let (ticket, name) = (self.ticket, self.name.clone());
        let mut token = Token::default();
        if let Phase::Inside(guard, shown) = &mut self.phase {
            // The next is tried sooner, should this one not get through.
            let pause = (guard.deadline().since(now) / 3).max(self.round_trip / 2);
            guard.renew_next(now + pause.max(Span::from_millis(1)));
            token = *shown;
        }
        self.tally.seats().filter_map(move |seat| {
            let used = Used { token, knew: seat.knew() };
            let replica = ReplicaId { name: name.clone(), index: seat.index };
            let grant = seat.held()?.grant;
            Some((seat.host?, Claim { replica, ticket, grant, used }))
        })
    }

    /// Those it knows as hosts.
    pub(super) fn hosts(&self) -> impl Iterator<Item = PeerId> {
        self.tally.seats().filter_map(|seat| seat.host)
    }

    /// RELEASE to all replicas; with the token, if one was shown.
    pub(super) fn release(&self, cx: Cx<'_, '_, impl Rules>) {
        for seat in self.tally.seats() {
            let Some(host) = seat.host else { continue };
            let knew = seat.knew();
            let shown = |token| Spent::Token(Used { token, knew });
            let spent = self.token().map_or(Spent::Nothing, shown);
            let replica = ReplicaId { name: self.name.clone(), index: seat.index };
            cx.send(host, Message::Release { replica, ticket: self.ticket, spent });
        }
        cx.cancel_timer(Timer::Request(self.call()));
    }
}
