//! Requests that cannot win for now, and stay out of everybody's way.

use sigmalock_core::{LocalTime, ReplicaId};

use super::attempt::Attempt;
use super::message::Message;
use super::seat::{Held, News, Seat};
use super::{Config, Cx, Mutant};
use crate::parts::Rules;

impl Attempt {
    /// Whether too many replicas cannot vote for this request to win. Where hosts hand over, others soon can.
    pub(super) fn cannot_win(
        &self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> bool {
        if cx.hosting.hands_over() || config.breaks(Mutant::StandsInTheWay) {
            return false;
        }
        let spare = config.quorum.n() - config.quorum.m();
        let nobody = |seat: &&Seat| seat.news == News::Nobody;
        // What is counted anyway comes first: this is asked with every message.
        self.tally.foreign() > spare && self.tally.seats().filter(nobody).count() > spare
    }

    /// Gives back what it has, and its places in queues. If it is older than the others, it would else be given
    /// the votes that they need, again and again. From now on it asks only those who cannot vote, until enough
    /// of them can.
    pub(super) fn stand_aside(&mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        self.aside = true;
        self.probe_at = LocalTime::NEVER;
        for index in 0..self.tally.len() {
            let seat = self.tally.seat(index);
            if let Some(&Held { grant, .. }) = seat.held() {
                self.give_back(config, cx, index, grant);
            } else if seat.place.is_some() && matches!(seat.news, News::Theirs(..)) {
                self.withdraw(cx, index);
            } else if seat.news == News::Nobody && seat.ask_at == LocalTime::NEVER {
                // Nobody need say that a host is back.
                self.ask_later(cx, index, self.retry_after(config, 4));
            }
        }
    }

    /// Enough can vote again: asks those whom it left, or has not heard from.
    pub(super) fn come_back(&mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        self.aside = false;
        for index in 0..self.tally.len() {
            let seat = self.tally.seat(index);
            let left =
                seat.place.is_none() && matches!(seat.news, News::Unknown | News::Theirs(..));
            if left && self.may_ask(config, cx, index) {
                self.ask(config, cx, index);
            }
        }
    }

    /// Gives back the vote or the place in the queue that it has there, if it has one.
    pub(super) fn withdraw(&mut self, cx: Cx<'_, '_, impl Rules>, index: usize) {
        let seat = self.tally.seat_mut(index);
        seat.ask_at = LocalTime::NEVER;
        let queued = seat.place.take().is_some();
        let grant = seat.yielded.filter(|_| seat.yielding);
        let Some(host) = seat.host.filter(|_| queued || grant.is_some()) else { return };
        seat.asked_at = cx.now();
        let replica = ReplicaId { name: self.name.clone(), index: seat.index };
        cx.send(host, Message::Withdraw { replica, ticket: self.ticket, grant });
    }
}
