//! The numbers.

use sigmalock_core::Span;

use super::mutant::Mutant;
use crate::parts::{Rules, Sound};

/// By so much the rates of two clocks may differ: each is wrong by half of that at most.
const CLOCKS_DIFFER: u32 = 10_000;

/// The numbers views go by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config<R = Sound> {
    /// The longest lease of any vote that is counted in views.
    pub lease_max: Span,
    /// A member that was unreachable for so long is proposed for removal.
    pub dead_after: Span,
    /// The longest that a message and its answer usually take.
    pub round_trip_worst: Span,
    /// Which rules it keeps.
    pub rules: R,
}

impl Config {
    /// The defaults, for this longest lease.
    #[must_use]
    pub const fn new(lease_max: Span) -> Self {
        Self::with_rules(lease_max, Sound)
    }
}

impl<R: Rules> Config<R> {
    /// The same, by these rules.
    #[must_use]
    pub const fn with_rules(lease_max: Span, rules: R) -> Self {
        Self {
            lease_max,
            dead_after: Span::from_secs(30),
            round_trip_worst: Span::from_millis(400),
            rules,
        }
    }

    /// How long a view lasts at least: the longest lease. Whoever counts on it ends earlier, by as much as two
    /// clocks may differ.
    pub(crate) fn view_min(&self) -> Span {
        if self.breaks(Mutant::CutsViewsShort) {
            return self.lease_max * 95 / 100;
        }
        self.lease_max
    }

    /// How long one may count on it that another one's view lasts, as of something that the other has answered.
    pub(super) fn counts_for(&self) -> Span {
        if self.breaks(Mutant::ConfirmsForTooLong) {
            return self.lease_max;
        }
        self.lease_max - self.lease_max.millionths(CLOCKS_DIFFER)
    }

    /// For how long a host that begins a swarm with others looks around before: whoever it reaches is heard by then.
    pub(super) fn look_around(&self) -> Span {
        self.round_trip_worst * 2
    }

    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.rules.breaks(mutant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Broken;
    use sigmalock_core::{Echo, Lease, LocalTime, Margin};

    /// How long a span of a clock takes whose rate is wrong by this much.
    fn takes(span: Span, ppm: i64) -> u128 {
        u128::from(span.as_micros()) * 1_000_000_000 / u128::try_from(1_000_000 + ppm).unwrap()
    }

    /// Whether someone with the slowest clock is done before members with the fastest ones go on.
    fn is_done_in_time(lease_max: Span, mutant: Option<Mutant>) -> bool {
        let half = i64::from(CLOCKS_DIFFER / 2);
        let config = Config::with_rules(lease_max, Broken::from(mutant));
        takes(config.counts_for(), -half) <= takes(config.view_min(), half)
    }

    #[test]
    fn who_counts_on_a_view_is_done_before_the_next_but_one() {
        for seconds in [1, 2, 3, 15, 60, 3_600] {
            let lease_max = Span::from_secs(seconds);
            assert!(is_done_in_time(lease_max, None));
            assert!(!is_done_in_time(lease_max, Some(Mutant::ConfirmsForTooLong)));
            assert!(!is_done_in_time(lease_max, Some(Mutant::CutsViewsShort)));
        }
    }

    /// In a small view nothing else ends a guard.
    #[test]
    fn so_is_who_has_its_vote() {
        for seconds in [1, 2, 3, 15, 60, 3_600] {
            let ttl = Span::from_secs(seconds);
            let sent = LocalTime::from_micros(7);
            let given = sent.stamp();
            let vote = |margin: Margin| {
                margin.expiry(Echo { sent, heard: given }, Lease { given, ttl }).since(sent)
            };
            let half = i64::from(CLOCKS_DIFFER / 2);
            let view = takes(Config::new(ttl).view_min(), half);
            assert!(takes(vote(Margin::ONE_PERCENT), -half) <= view);
            assert!(takes(vote(Margin(0)), -half) > view);
        }
    }
}
