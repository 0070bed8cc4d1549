//! The paper's first outcome: the request has m votes, and is let in.

use sigmalock_core::{LocalTime, LockReply, Mode, Span, Token};

use super::attempt::{Attempt, Phase};
use super::{Config, Cx, Mutant};
use crate::parts::{Guard, Rules};

impl Attempt {
    /// Outcome 1: this request has m votes. It is let in if m of them have written down the same token
    /// and there is time left; else that is arranged first, which may take until the next message. False
    /// if some of the votes turn out to be over, so that it has not won after all.
    pub(super) fn has_won(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> bool {
        let now = cx.now();
        if !self.seals_blindly(config) {
            self.tally.drop_expired(now, true);
        }
        if self.tally.votes() < config.quorum.m() {
            self.wake_by(cx, now);
            return false;
        }
        let Some(token) = self.tally.agreed_token(config) else {
            if !self.awaits_agreement(config, cx) {
                self.seal(config, cx);
            }
            return true;
        };
        let deadline = match self.tally.deadline(config.quorum, cx.hosting) {
            deadline if self.seals_blindly(config) => deadline.max(now + self.ttl),
            deadline => deadline,
        };
        if !self.enter(config, cx, token, deadline) {
            if deadline < self.tally.votes_end(config.quorum) {
                // No fresh lease helps where it is not known whether most are still in this view.
                self.wake_by(cx, now + config.round_trip_worst);
            } else {
                self.refresh(config, cx);
            }
            return true;
        }
        for seat in self.tally.seats_mut() {
            seat.life_at_seal = seat.voting_life;
            if seat.held().is_some() {
                seat.ask_at = LocalTime::NEVER;
            }
        }
        self.probe_at = LocalTime::NEVER;
        true
    }

    /// Lets the user in. False if there is too little time left to renew the right before it ends.
    fn enter(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, token: Token,
        deadline: LocalTime,
    ) -> bool {
        let now = cx.now();
        debug_assert!(self.tally.votes() >= config.quorum.m(), "who enters has won");
        let next = now + deadline.since(now) / 3;
        let lead = (self.ttl / 50).min(config.claim_window / 8);
        if deadline - lead <= next {
            return false;
        }
        let first = Some(config.block_start(token));
        let slot = match self.ticket.mode {
            Mode::Slot { index, .. } => Some(index),
            Mode::Exclusive | Mode::Shared | Mode::Permit { .. } => None,
        };
        cx.reply(self.call(), LockReply::Granted { token: first, deadline, slot });
        let oversleeps = config.breaks(Mutant::IgnoresDeadline);
        let late = if oversleeps { Span::from_secs(3_600) } else { Span::ZERO };
        let guard = Guard::new(self.call(), now, deadline + late, lead, next);
        self.phase = Phase::Inside(guard, token);
        true
    }

    /// Asks for fresh leases of all votes held.
    fn refresh(&mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        for index in 0..self.tally.len() {
            if self.tally.seat(index).held().is_some() && self.may_ask(config, cx, index) {
                self.ask(config, cx, index);
            }
        }
    }
}
