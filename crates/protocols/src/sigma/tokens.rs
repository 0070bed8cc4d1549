//! What a replica knows of the tokens of its name, and which one comes next.

use sigmalock_core::{Context, Mode, Token};

use super::host::Desk;
use super::message::Used;
use super::{Mutant, Sigma};

/// A replica's memory of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Tokens {
    /// The highest token known to have been, or perhaps to have been, shown: the design's c_i.
    highest: Token,
    /// The highest of those that were, or perhaps were, a writer's. What is higher is a reader's, and every
    /// reader may show it until the next writer comes.
    written: Token,
    /// Whether higher ones may have been shown that this replica does not remember.
    amnesiac: bool,
}

impl Tokens {
    /// No memory of the name, but of all that was ever forgotten.
    pub(super) fn forgotten(floor: Token) -> Self {
        Self { highest: floor, written: floor, amnesiac: true }
    }

    pub(super) fn highest(&self) -> Token {
        self.highest
    }

    /// The last token of the block for the next grant. Who does not remember the name goes by the wall
    /// clock, rounded up so that hosts mostly agree.
    pub(super) fn propose(&self, desk: &Desk, cx: &Context<'_, Sigma>, mode: Mode) -> Token {
        if !self.amnesiac || desk.breaks(Mutant::ForgetsTokenFloor) {
            return self.next(desk, mode);
        }
        let step = (desk.config.lease_max.as_micros() / 4).max(1);
        let wall = cx.wall().as_micros().div_ceil(step).saturating_mul(step);
        desk.config.block_above(self.highest.max(Token(wall.saturating_sub(1))))
    }

    /// What is shown next, going by what is remembered. Readers between two writers have the same token,
    /// so that hosts agree on it, whichever readers have come and gone.
    fn next(&self, desk: &Desk, mode: Mode) -> Token {
        match mode {
            Mode::Exclusive | Mode::Permit { .. } => self.least(desk, mode),
            Mode::Shared if desk.breaks(Mutant::ReadsUnderTheWritersToken) => self.highest,
            Mode::Shared => self.least(desk, mode).max(self.highest),
        }
    }

    /// The least that may be shown, going by what is remembered: a writer's block lies above all others, a
    /// reader's above those of writers.
    pub(super) fn least(&self, desk: &Desk, mode: Mode) -> Token {
        desk.config.block_above(match mode {
            Mode::Exclusive | Mode::Permit { .. } => self.highest,
            Mode::Shared => self.written,
        })
    }

    /// What another host knew of the same replica. Whoever has no memory of its own is as sure of it as
    /// that host was.
    pub(super) fn adopt(&mut self, handed: Self, own_memory: bool) {
        self.highest = self.highest.max(handed.highest);
        self.written = self.written.max(handed.written);
        self.amnesiac = handed.amnesiac || (own_memory && self.amnesiac);
    }

    /// A proposal from before this replica's memory got its gap may have been shown: that says nothing of
    /// the gap.
    pub(super) fn raise(&mut self, desk: &Desk, token: Token, mode: Mode) {
        if mode != Mode::Shared {
            self.written = self.written.max(token);
        } else if desk.breaks(Mutant::ForgetsReaders) {
            return;
        }
        self.highest = self.highest.max(token);
    }

    /// Somebody else may have shown higher ones.
    pub(super) fn doubt(&mut self) {
        self.amnesiac = true;
    }

    /// This replica's own proposal was shown, or may have been, or was written down to be: it is higher
    /// than all that was forgotten.
    pub(super) fn proposal_spent(&mut self, desk: &Desk, proposal: Token, mode: Mode) {
        self.raise(desk, proposal, mode);
        self.amnesiac = false;
    }

    /// A proposal was written down, though not yet shown. Other readers may be let in meanwhile, so theirs
    /// counts at once.
    pub(super) fn proposal_sealed(&mut self, desk: &Desk, proposal: Token, mode: Mode) {
        if mode == Mode::Shared {
            self.raise(desk, proposal, mode);
        }
        self.amnesiac = false;
    }

    /// Somebody showed this token. It ends amnesia only if its winner had heard from this very life of
    /// the host as a voter: then every token the host may have forgotten is lower.
    pub(super) fn learn(&mut self, desk: &Desk, used: Used, mode: Mode) {
        self.raise(desk, used.token, mode);
        if used.knew == Some(desk.incarnation) || desk.breaks(Mutant::TrustsOldTokens) {
            self.amnesiac = false;
        }
    }
}
