//! The numbers, and how a peer comes in.

use sigmalock_core::Span;

use super::mutant::Mutant;
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
pub struct Config {
    /// For agreeing on who is in.
    pub views: views::Config,
    /// How this peer comes in.
    pub beginning: Beginning,
    /// Whether promises are persisted before they are made.
    pub durable: bool,
    /// Break one rule on purpose, to see an oracle catch it.
    pub mutant: Option<Mutant>,
}

impl Config {
    /// The defaults, for this longest lease.
    #[must_use]
    pub fn new(lease_max: Span, beginning: Beginning) -> Self {
        Self { views: views::Config::new(lease_max), beginning, durable: false, mutant: None }
    }

    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
