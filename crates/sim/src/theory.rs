//! What can be known without simulating.

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::parts::Quorum;

use crate::latency::Latency;
use crate::rng::Rng;

const SAMPLES: u64 = 20_000;

/// The rate at which a saturated lock changes hands, per second.
///
/// A hand-off is a RELEASE to the replicas and a RESPONSE from each to the next in the queue, which
/// is inside with the m-th of n: 1 / (E[m-th smallest of n sums of two one-way delays] + mean time
/// inside). The expectation is by Monte Carlo, so it has a seed, and an error of about 0.1 %.
#[must_use]
pub fn saturated_rate_per_s(quorum: Quorum, latency: &Latency, inside: Span, seed: u64) -> f64 {
    let mut rng = Rng::split(seed, 0x7468_656f);
    let mut sums: Vec<u64> = Vec::with_capacity(quorum.n());
    let mut total_us = 0.0;
    for sample in 0..SAMPLES {
        let (leaver, next) = (PeerId(1_000 + 2 * sample), PeerId(1_001 + 2 * sample));
        sums.clear();
        for host in (0..quorum.n() as u64).map(PeerId) {
            let out = latency.draw(&mut rng, leaver, host);
            let back = latency.draw(&mut rng, host, next);
            sums.push((out + back).as_micros());
        }
        let (_, mth, _) = sums.select_nth_unstable(quorum.m() - 1);
        total_us += *mth as f64;
    }
    let hand_off_us = total_us / SAMPLES as f64;
    1e6 / (hand_off_us + inside.as_micros() as f64).max(1.0)
}

/// The decimal logarithm of the probability that resets break exclusion within one critical section:
/// log₁₀ of C(n, k) · (t / T)ᵏ with k = 2m − n, where a holder stays inside for t = `hold` and a host
/// keeps its memory for T = `life` on average. Two quorums meet in at least k replicas, and a second
/// winner needs all of those to have forgotten the first.
///
/// This is the paper's Figure 2, an upper bound for hosts that vote at once after a reset. It counts
/// any k of the n replicas, also those that never voted for the holder. As a logarithm, since the
/// probability itself soon is no number that a `f64` can hold; never above 0, and minus infinity if
/// nobody stays inside at all.
#[must_use]
pub fn exclusivity_break_log10(quorum: Quorum, hold: Span, life: Span) -> f64 {
    let (n, k) = (quorum.n(), quorum.overlap());
    let ways: f64 = (0..k).map(|i| ((n - i) as f64).log10() - ((i + 1) as f64).log10()).sum();
    let reset = hold.as_secs_f64().log10() - life.as_secs_f64().log10();
    (ways + k as f64 * reset).min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plateaus_are_those_that_were_computed_independently() {
        let quorum = Quorum::new(32, 24).unwrap();
        let ms = Span::from_millis;
        for (low, high, expected) in
            [(100, 100, 5.00), (90, 110, 4.87), (50, 150, 4.41), (0, 200, 3.94)]
        {
            let latency = Latency::Uniform { low: ms(low), high: ms(high) };
            let rate = saturated_rate_per_s(quorum, &latency, Span::ZERO, 1);
            assert!((rate - expected).abs() < 0.01, "({low},{high}): {rate}");
        }
        let rate = saturated_rate_per_s(quorum, &Latency::Constant(ms(100)), ms(50), 1);
        assert!((rate - 4.0).abs() < 1e-9);
    }

    #[test]
    fn the_odds_of_a_broken_exclusion_are_those_of_the_formula() {
        let odds = |n, m, hold, life| {
            let quorum = Quorum::new(n, m).unwrap();
            exclusivity_break_log10(quorum, Span::from_secs(hold), Span::from_secs(life))
        };
        // C(3, 1) · 1/10, C(4, 2) · 1/100, C(5, 5) · 10⁻⁵.
        for (n, m, chance) in [(3, 2, 0.3_f64), (4, 3, 0.06), (5, 5, 1e-5)] {
            assert!((odds(n, m, 10, 100) - chance.log10()).abs() < 1e-9, "{m} of {n}");
        }
        assert_eq!(odds(3, 2, 100, 100), 0.0, "no more than certain");
        assert_eq!(odds(3, 2, 0, 100), f64::NEG_INFINITY);
        assert!(odds(1_024, 1_000, 10, 10_000).is_finite());
    }
}
