//! The numbers, and how a peer comes in.

use sigmalock_core::Span;

use super::mutant::Mutant;
use crate::parts::{Rules, Sound};
use crate::views;

/// How a peer comes into a swarm, if it is not in one already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Beginning {
    /// It is the first.
    Found,
    /// It makes one with others, this many in all, none of whom is in one; or it asks those it meets.
    Expect(u16),
    /// It asks those it meets.
    #[default]
    Join,
    /// It does not: it uses the swarm, and votes on nothing.
    Watch,
}

/// The numbers it goes by.
#[derive(Debug, Clone)]
pub struct Config<R = Sound> {
    /// For agreeing on who is in.
    pub views: views::Config<R>,
    /// How this peer comes in.
    pub beginning: Beginning,
    /// Which rules it keeps.
    pub rules: R,
}

impl Config {
    /// The defaults, for this longest lease.
    #[must_use]
    pub const fn new(lease_max: Span, beginning: Beginning) -> Self {
        Self::with_rules(lease_max, beginning, Sound)
    }
}

impl<R: Rules> Config<R> {
    /// The same, by these rules, as to who is in, too.
    #[must_use]
    pub const fn with_rules(lease_max: Span, beginning: Beginning, rules: R) -> Self {
        let views = views::Config::with_rules(lease_max, rules);
        Self { views, beginning, rules }
    }

    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.rules.breaks(mutant)
    }
}
