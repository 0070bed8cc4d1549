//! The numbers.

use sigmalock_core::Span;

use super::mutant::Mutant;

/// The numbers views go by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config {
    /// The longest lease of any vote that is counted in views.
    pub lease_max: Span,
    /// A member that was unreachable for so long is proposed for removal.
    pub dead_after: Span,
    /// The longest that a message and its answer usually take.
    pub round_trip_worst: Span,
    /// Break one rule on purpose, to see an oracle catch it.
    pub mutant: Option<Mutant>,
}

impl Config {
    /// The defaults, for this longest lease.
    #[must_use]
    pub const fn new(lease_max: Span) -> Self {
        Self {
            lease_max,
            dead_after: Span::from_secs(30),
            round_trip_worst: Span::from_millis(400),
            mutant: None,
        }
    }

    /// How long a view lasts at least: the longest lease, by anybody's clock.
    pub(crate) fn view_min(&self) -> Span {
        if self.breaks(Mutant::CutsViewsShort) {
            return self.lease_max * 95 / 100;
        }
        self.lease_max + self.lease_max.millionths(10_000)
    }

    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
