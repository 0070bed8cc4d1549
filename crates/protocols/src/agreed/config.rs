//! The numbers, and how a peer comes in.

use sigmalock_core::Span;

use super::mutant::Mutant;
use crate::parts::Quorum;
use crate::sigma::{self, Hosting};
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

/// The numbers both protocols go by.
#[derive(Debug, Clone)]
pub struct Config {
    /// For agreeing on who is in.
    pub views: views::Config,
    /// For locks. Its quorum follows from the view.
    pub locks: sigma::Config,
    /// How this peer comes in.
    pub beginning: Beginning,
    /// Break one rule on purpose, to see an oracle catch it.
    pub mutant: Option<Mutant>,
}

impl Config {
    /// The defaults, for this longest lease.
    #[must_use]
    pub fn new(lease_max: Span, beginning: Beginning) -> Self {
        let locks = sigma::Config {
            lease_max,
            hosting: Hosting::Agreed,
            client_only: beginning == Beginning::Watch,
            ..sigma::Config::new(Quorum::ONE)
        };
        Self { views: views::Config::new(lease_max), locks, beginning, mutant: None }
    }

    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
