//! What a replica knows of the tokens of its name, and which one comes next.

use alloc::vec::Vec;

use sigmalock_core::{Context, Mode, Token};

use super::host::HostState;
use super::message::Used;
use super::{Mutant, Sigma};
use crate::parts::Rules;

/// A replica's memory of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Tokens {
    /// The highest token known to have been, or perhaps to have been, shown, but for those of slots: the
    /// design's c_i.
    highest: Token,
    /// The highest of those that were, or perhaps were, a writer's. What is higher is a reader's, and every
    /// reader may show it until the next writer comes.
    written: Token,
    /// The highest of each slot of a semaphore, if that is more: permits of different slots are inside in any
    /// order, so each slot counts for itself. All of one number of permits.
    slots: Vec<(Mode, Token)>,
    /// Whether higher ones may have been shown that this replica does not remember.
    amnesiac: bool,
}

impl Tokens {
    /// No memory of the name, but of all that was ever forgotten.
    pub(super) const fn forgotten(floor: Token) -> Self {
        Self { highest: floor, written: floor, slots: Vec::new(), amnesiac: true }
    }

    /// The highest of all.
    pub(super) fn highest(&self) -> Token {
        self.highest_of_slots().max(self.highest)
    }

    fn highest_of_slots(&self) -> Token {
        self.slots.iter().map(|(_, token)| *token).max().unwrap_or_default()
    }

    /// The last token of the block for the next grant. Who does not remember the name goes by the wall
    /// clock, rounded up so that hosts mostly agree.
    pub(super) fn propose(
        &self, state: &HostState<impl Rules>, cx: &Context<'_, Sigma<impl Rules>>, mode: Mode,
    ) -> Token {
        if !self.amnesiac || state.breaks(Mutant::ForgetsTokenFloor) {
            return self.next(state, mode);
        }
        let step = (state.config.lease_max.as_micros() / 4).max(1);
        let wall = cx.wall().as_micros().div_ceil(step).saturating_mul(step);
        state.config.block_above(self.highest().max(Token(wall.saturating_sub(1))))
    }

    /// What is shown next, going by what is remembered. Readers between two writers have the same token,
    /// so that hosts agree on it, whichever readers have come and gone.
    fn next(&self, state: &HostState<impl Rules>, mode: Mode) -> Token {
        match mode {
            Mode::Shared if state.breaks(Mutant::ReadsUnderTheWritersToken) => self.highest,
            Mode::Shared => self.least(state, mode).max(self.highest),
            Mode::Slot { .. } if state.breaks(Mutant::ReusesSlotTokens) => self.highest(),
            Mode::Exclusive | Mode::Permit { .. } | Mode::Slot { .. } => self.least(state, mode),
        }
    }

    /// The least that may be shown, going by what is remembered: above those of all that cannot be inside with
    /// this one.
    pub(super) fn least(&self, state: &HostState<impl Rules>, mode: Mode) -> Token {
        let others = self.slots.iter().filter(|(slot, _)| !slot.shares_with(mode));
        let others = others.map(|(_, token)| *token).max().unwrap_or_default();
        state.config.block_above(others.max(match mode {
            Mode::Exclusive | Mode::Permit { .. } | Mode::Slot { .. } => self.highest,
            Mode::Shared => self.written,
        }))
    }

    /// What another host knew of the same replica. Whoever has no memory of its own is as sure of it as
    /// that host was.
    pub(super) fn adopt(&mut self, handed: &Self, own_memory: bool) {
        self.highest = self.highest.max(handed.highest);
        self.written = self.written.max(handed.written);
        for (slot, token) in &handed.slots {
            self.raise_slot(*slot, *token);
        }
        self.amnesiac = handed.amnesiac || (own_memory && self.amnesiac);
    }

    /// A proposal from before this replica's memory got its gap may have been shown: that says nothing of
    /// the gap.
    pub(super) fn raise(&mut self, state: &HostState<impl Rules>, token: Token, mode: Mode) {
        match mode {
            Mode::Slot { .. } => self.raise_slot(mode, token),
            Mode::Shared if state.breaks(Mutant::ForgetsReaders) => {}
            Mode::Shared => self.highest = self.highest.max(token),
            Mode::Exclusive | Mode::Permit { .. } => self.raise_all(token),
        }
    }

    /// Everything from here on is higher.
    fn raise_all(&mut self, token: Token) {
        self.highest = self.highest.max(token);
        self.written = self.written.max(token);
        if !self.slots.is_empty() {
            let written = self.written;
            self.slots.retain(|(_, token)| *token > written);
        }
    }

    fn raise_slot(&mut self, slot: Mode, token: Token) {
        if self.slots.iter().any(|(other, _)| other.permits() != slot.permits()) {
            // Permits of another number are inside before or after all of these.
            self.raise_all(self.highest_of_slots());
        }
        match self.slots.iter_mut().find(|(other, _)| *other == slot) {
            Some((_, highest)) => *highest = token.max(*highest),
            None if token > self.written && slot.is_possible() => self.slots.push((slot, token)),
            None => {}
        }
    }

    /// Somebody else may have shown higher ones.
    pub(super) fn doubt(&mut self) {
        self.amnesiac = true;
    }

    /// This replica's own proposal was shown, or may have been, or was written down to be: it is higher
    /// than all that was forgotten.
    pub(super) fn proposal_spent(
        &mut self, state: &HostState<impl Rules>, proposal: Token, mode: Mode,
    ) {
        self.raise(state, proposal, mode);
        self.remember(state, proposal, mode);
    }

    /// A proposal was written down, though not yet shown. Other readers may be let in meanwhile, so theirs
    /// counts at once.
    pub(super) fn proposal_sealed(
        &mut self, state: &HostState<impl Rules>, proposal: Token, mode: Mode,
    ) {
        if mode == Mode::Shared {
            self.raise(state, proposal, mode);
        }
        self.remember(state, proposal, mode);
    }

    /// All that was forgotten is lower than this, in every slot.
    fn remember(&mut self, state: &HostState<impl Rules>, proposal: Token, mode: Mode) {
        let slot = mode.permits().is_some() && !state.breaks(Mutant::RemembersOneSlot);
        if self.amnesiac && slot {
            self.raise_all(proposal);
        }
        self.amnesiac = false;
    }

    /// Somebody showed this token. It ends amnesia only if its winner had heard from this very life of
    /// the host as a voter: then every token the host may have forgotten is lower.
    pub(super) fn learn(&mut self, state: &HostState<impl Rules>, used: Used, mode: Mode) {
        self.raise(state, used.token, mode);
        if used.knew == Some(state.incarnation) || state.breaks(Mutant::TrustsOldTokens) {
            self.amnesiac = false;
        }
    }
}
