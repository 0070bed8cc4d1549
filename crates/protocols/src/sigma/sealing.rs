//! When m votes are held but propose different tokens: one has to be written down at all of them.

use sigmalock_core::{LocalTime, Mode};

use super::attempt::{Attempt, Phase};
use super::{Config, Cx, Mutant, Note};
use crate::parts::Rules;

impl Attempt {
    /// Whether answers that are still out may bring m votes to agree on a token, and are worth a
    /// moment: cheaper than the round trip of a SEAL.
    pub(super) fn awaits_agreement(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> bool {
        if self.seal_at == LocalTime::NEVER {
            self.seal_at = cx.now() + self.round_trip / 4;
            self.wake_by(cx, self.seal_at);
        }
        let best = self.tally.proposals().max();
        let agreeing = self.tally.proposals().filter(|p| Some(*p) == best).count();
        matches!(self.phase, Phase::Asking)
            && cx.now() < self.seal_at
            && agreeing + self.tally.unknown() >= config.quorum.m()
    }

    /// Asks the voters to write down a token (the last of a block) as high as any they
    /// proposed; a writer, higher.
    pub(super) fn seal(&mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        let token = match self.phase {
            // Enough voters can still accept the one already asked for.
            Phase::Sealing(token)
                if self.tally.proposals().filter(|p| *p <= token).count() >= config.quorum.m() =>
            {
                token
            }
            _ => {
                cx.note(Note::SealedSlowly);
                let highest = self.tally.proposals().max().unwrap_or_default();
                match self.ticket.mode {
                    // Readers may show the same: going further would have the next one seal, too.
                    Mode::Shared => highest,
                    Mode::Exclusive | Mode::Permit { .. } | Mode::Slot { .. } => {
                        config.block_above(highest)
                    }
                }
            }
        };
        let fresh = !matches!(self.phase, Phase::Sealing(asked) if asked == token);
        self.phase = Phase::Sealing(token);
        for index in 0..self.tally.len() {
            let seat = self.tally.seat(index);
            let lower = seat.held().is_some_and(|held| held.proposal < token);
            if lower && (fresh || self.may_ask(config, cx, index)) {
                self.ask(config, cx, index);
            }
        }
    }

    pub(super) fn seals_blindly(&self, config: &Config<impl Rules>) -> bool {
        config.breaks(Mutant::SealsAfterDeadline) && matches!(self.phase, Phase::Sealing(_))
    }
}
