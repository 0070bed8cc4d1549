//! The third outcome: nobody can win, and those who hold votes give them back.

use sigmalock_core::LocalTime;

use super::attempt::Attempt;
use super::message::{GrantId, Ticket};
use super::seat::{Held, News};
use super::{Config, Cx};
use crate::parts::Rules;

impl Attempt {
    /// Outcome 3: going by what is known and fresh, nobody can have m votes. What was heard longer
    /// than a round trip ago, or of somebody who is on the way out, says nothing about now; replicas
    /// that cannot vote count as known.
    pub(super) fn nobody_can_win(&self, config: &Config<impl Rules>, now: LocalTime) -> bool {
        let leaving = |owner: &Ticket| *owner < self.ticket && now < self.turn_until;
        self.tally.nobody_can_win(config.quorum, self.ticket, |owner, heard| {
            now.since(heard) <= self.round_trip && !leaving(owner)
        })
    }

    pub(super) fn yield_all(&mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        let pause = (self.yield_pause * 2).max(self.round_trip_or_worst(config));
        self.yield_pause = pause.min(config.retry_max);
        self.yield_from = cx.now() + self.yield_pause;
        for index in 0..self.tally.len() {
            if let Some(&Held { grant, .. }) = self.tally.seat(index).held() {
                self.give_back(config, cx, index, grant);
            }
        }
    }

    pub(super) fn give_back(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, index: usize,
        grant: GrantId,
    ) {
        self.tally.set_news(index, News::Unknown);
        let seat = self.tally.seat_mut(index);
        (seat.yielded, seat.yielded_at, seat.yielding) = (Some(grant), cx.now(), true);
        self.ask(config, cx, index);
    }
}
