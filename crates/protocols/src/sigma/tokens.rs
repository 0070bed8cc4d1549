//! What a replica knows of the tokens of its name, and which one comes next.

use sigmalock_core::{Context, Token};

use super::host::Desk;
use super::message::Used;
use super::{Mutant, Sigma};

/// A replica's memory of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Tokens {
    /// The highest token known to have been, or perhaps to have been, shown: the design's c_i.
    highest: Token,
    /// Whether higher ones may have been shown that this replica does not remember.
    amnesiac: bool,
}

impl Tokens {
    /// No memory of the name, but of all that was ever forgotten.
    pub(super) fn forgotten(floor: Token) -> Self {
        Self { highest: floor, amnesiac: true }
    }

    pub(super) fn highest(&self) -> Token {
        self.highest
    }

    /// The last token of the block for the next grant. Who does not remember the name goes by the wall
    /// clock, rounded up so that hosts mostly agree.
    pub(super) fn propose(&self, desk: &Desk, cx: &Context<'_, Sigma>) -> Token {
        if !self.amnesiac || desk.breaks(Mutant::ForgetsTokenFloor) {
            return desk.config.block_above(self.highest);
        }
        let step = (desk.config.lease_max.as_micros() / 4).max(1);
        let wall = cx.wall().as_micros().div_ceil(step).saturating_mul(step);
        desk.config.block_above(self.highest.max(Token(wall.saturating_sub(1))))
    }

    /// What another host knew of the same replica. Whoever has no memory of its own is as sure of it as
    /// that host was.
    pub(super) fn adopt(&mut self, handed: Self, own_memory: bool) {
        self.highest = self.highest.max(handed.highest);
        self.amnesiac = handed.amnesiac || (own_memory && self.amnesiac);
    }

    /// A proposal from before this replica's memory got its gap may have been shown: that says nothing of
    /// the gap.
    pub(super) fn raise(&mut self, proposal: Token) {
        self.highest = self.highest.max(proposal);
    }

    /// Somebody else may have shown higher ones.
    pub(super) fn doubt(&mut self) {
        self.amnesiac = true;
    }

    /// This replica's own proposal was shown, or may have been, or was written down to be: it is higher
    /// than all that was forgotten.
    pub(super) fn proposal_spent(&mut self, proposal: Token) {
        self.highest = self.highest.max(proposal);
        self.amnesiac = false;
    }

    /// A proposal was written down, though not yet shown.
    pub(super) fn proposal_sealed(&mut self) {
        self.amnesiac = false;
    }

    /// Somebody showed this token. It ends amnesia only if its winner had heard from this very life of
    /// the host as a voter: then every token the host may have forgotten is lower.
    pub(super) fn learn(&mut self, desk: &Desk, used: Used) {
        self.highest = self.highest.max(used.token);
        if used.knew == Some(desk.incarnation) || desk.breaks(Mutant::TrustsOldTokens) {
            self.amnesiac = false;
        }
    }
}
