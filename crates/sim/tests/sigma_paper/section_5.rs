//! Section V, the experiments, at 24 of 32 like the paper's. Clients come at random at a given rate and
//! leave as soon as they are inside. The paper warms up for 5 minutes and measures for 10; here it is one
//! minute and two, which is enough for the tolerances given.

use sigmalock_core::Span;
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_sim::history::What;
use sigmalock_sim::lab::sweep::{Load, PointConfig};
use sigmalock_sim::latency::Latency;
use sigmalock_sim::run::Outcome;
use sigmalock_sim::subject::Subject;
use sigmalock_sim::theory::saturated_rate_per_s;

use crate::stage::*;

/// One-way delays of Figure 7, in milliseconds; all have a mean of 100.
const FIGURE_7: [(u64, u64); 3] = [(90, 110), (50, 150), (0, 200)];

const MEASURED: Span = secs(120);

fn point(protocol: ProtocolName, (low, high): (u64, u64), load: Load) -> PointConfig {
    let subject = Subject::new(protocol, Variant::Shipped, quorum(32, 24));
    let latency = Latency::Uniform { low: ms(low), high: ms(high) };
    let mut point = PointConfig::new(subject, latency, load, 1);
    (point.warmup, point.duration) = (secs(60), MEASURED);
    point
}

fn sigma(delays_ms: (u64, u64), rate: f64) -> Outcome {
    measure(&point(ProtocolName::Sigma, delays_ms, Load::RatePerS(rate)))
}

fn measure(point: &PointConfig) -> Outcome {
    let (_, outcome) = point.measure().unwrap();
    assert_eq!(outcome.violations, []);
    outcome
}

fn theory((low, high): (u64, u64)) -> f64 {
    let latency = Latency::Uniform { low: ms(low), high: ms(high) };
    saturated_rate_per_s(quorum(32, 24), &latency, Span::ZERO, 1)
}

/// "The throughput increases linearly when request rate ramps up": below saturation everybody who comes
/// is served, give or take three standard deviations of how many come.
#[test]
fn section_v_below_saturation_throughput_is_the_request_rate() {
    for delays_ms in FIGURE_7 {
        for rate in [0.5, 1.0, 2.0, 3.0] {
            let expected = rate * MEASURED.as_secs_f64();
            let served = sigma(delays_ms, rate).entries_measured as f64;
            let noise = 3.0 * expected.sqrt();
            assert!((served - expected).abs() < noise, "{delays_ms:?}, {rate}/s: {served} served");
        }
    }
}

/// "… until a point when it reaches the saturated rate and then stays flat as predicted by a theoretical
/// model": from 6 requests a second to 20, far more than can be served, throughput is at least 95 % of
/// theory, and the same within 3 %.
#[test]
fn section_v_beyond_saturation_throughput_is_flat_and_that_of_theory() {
    for delays_ms in FIGURE_7 {
        let plateau = [6.0, 10.0, 20.0].map(|rate| sigma(delays_ms, rate).throughput_per_s);
        let lowest = plateau.into_iter().fold(f64::INFINITY, f64::min);
        let highest = plateau.into_iter().fold(0.0, f64::max);
        assert!(lowest >= 0.95 * theory(delays_ms), "{delays_ms:?}: {plateau:?}");
        assert!(highest <= 1.03 * lowest, "{delays_ms:?}: {plateau:?}");
    }
}

/// "Network latency distribution has little impact", and against the strawman "the performance improvement
/// is significant". At 2.5 requests a second Sigma serves all of them however much delays vary, and when
/// saturated it keeps what theory leaves it, four fifths. Of the strawman's throughput at 2.5 the widest
/// spread leaves less than a quarter, and at a rate that saturates Sigma nothing.
#[test]
fn section_v_varying_delays_cost_sigma_little_and_the_strawman_nearly_everything() {
    let [steady, varying] = [(90, 110), (0, 200)];
    let sigma = |delays_ms, rate| sigma(delays_ms, rate).throughput_per_s;
    assert!(sigma(varying, 2.5) > 0.9 * sigma(steady, 2.5));
    assert!(sigma(varying, 6.0) > 0.75 * sigma(steady, 6.0));
    let strawman = |delays_ms, rate| {
        let mut point = point(ProtocolName::Strawman, delays_ms, Load::RatePerS(rate));
        point.subject.tuning.back_off = (Span::ZERO, secs(100));
        point.warmup = secs(300);
        let config = point.run_config().unwrap();
        // No oracles: a collapse is not to their taste.
        point.subject.run(&config, &mut []).throughput_per_s
    };
    assert!(strawman(steady, 2.5) > 2.0);
    assert!(strawman(varying, 2.5) < 0.25 * strawman(steady, 2.5));
    assert!(strawman(varying, 6.0) < 0.05);
}

/// "The penalty of throughput is perceptible if the replica life is 30 seconds; however, it becomes less
/// and less significant with longer replica life", and at 10,000 s the ideal is reached. The shipped
/// replicas abstain for the longest lease after a reset, which the paper's do not: with leases of up to 15 s
/// and a life of 30 s a third of them would always abstain, 24 votes could hardly be had, and the lock
/// would starve. Whoever lives with such hosts chooses short leases; here the shortest that renewals can
/// keep alive over these delays, a second, which leaves one in thirty abstaining.
#[test]
fn section_v_short_lives_of_replicas_cost_throughput_and_long_ones_do_not() {
    let throughput = |life_s, lease_s, rate| {
        let mut point = point(ProtocolName::Sigma, (0, 200), Load::RatePerS(rate));
        point.subject.tuning.lease_max = secs(lease_s);
        point.replica_life = Some(secs(life_s));
        measure(&point).throughput_per_s
    };
    let saturated = [30, 100, 300, 1_000, 10_000].map(|life_s| throughput(life_s, 1, 6.0));
    let no_less = |pair: &[f64]| pair[0] <= 1.02 * pair[1];
    assert!(saturated.windows(2).all(no_less), "{saturated:?}");
    let share = |throughput| throughput / theory((0, 200));
    assert!((0.5..0.85).contains(&share(saturated[0])), "{saturated:?}");
    assert!(share(saturated[4]) >= 0.95, "{saturated:?}");
    assert!(throughput(30, 1, 2.0) > 1.7, "below saturation resets cost hardly anything");
    assert!(throughput(30, 15, 6.0) < 0.1, "with long leases the lock starves");
}

/// Message cost "is asymptotically bound by 4n": a REQUEST to each replica, its RESPONSE, the GRANT when
/// the turn comes, and the RELEASE. Who finds the lock free is not called, so that with a light load it
/// is 3n; with a loop of clients always waiting it tends to 4n. Apart from these four: asking again while
/// waiting, below one n with eight in the queue (it grows with the queue, and with how much delays vary),
/// and YIELD, RECALL and SEAL, a handful each.
#[test]
fn section_v_an_entry_costs_three_to_four_messages_per_replica() {
    for delays_ms in FIGURE_7 {
        let loads = [Load::RatePerS(0.1), Load::RatePerS(3.0), Load::Clients(2), Load::Clients(8)];
        let costs = loads.map(|load| Cost::of(&point(ProtocolName::Sigma, delays_ms, load)));
        let four = costs.map(|cost| cost.four);
        assert!((3.0..3.2).contains(&four[0]), "{delays_ms:?}: {costs:?}");
        assert!(four[0] < four[1] && four[1] < four[2], "{delays_ms:?}: {costs:?}");
        // Those who still wait at the end have asked, and not entered: one or two in a hundred.
        assert!(four[2..].iter().all(|four| (3.9..4.1).contains(four)), "{delays_ms:?}: {costs:?}");
        assert!(costs.iter().all(|cost| cost.retries < 1.0 && cost.settling < 0.3), "{costs:?}");
    }
}

/// Messages per entry and replica.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// First REQUESTs, their RESPONSEs, GRANTs and RELEASEs.
    four: f64,
    /// Further REQUESTs, and the RESPONSEs to them.
    retries: f64,
    /// YIELD, RECALL and SEAL.
    settling: f64,
}

impl Cost {
    fn of(point: &PointConfig) -> Self {
        let mut config = point.run_config().unwrap();
        config.keep_history = true;
        let n = config.replicas as u64;
        let outcome = point.subject.run(&config, &mut []);
        let history = outcome.history.iter().flatten();
        let asked =
            history.filter(|record| matches!(record.what, What::Asked { .. })).count() as u64;
        let sent = |kinds: &[&str]| -> u64 {
            kinds.iter().filter_map(|kind| outcome.ledger.kinds.get(kind)).map(|row| row.sent).sum()
        };
        let per_entry = |messages: u64| messages as f64 / (outcome.entries * n) as f64;
        // Each request begins with n REQUESTs, of which all are answered that no RELEASE overtakes.
        Self {
            four: per_entry(2 * n * asked + sent(&["GRANT", "RELEASE"])),
            retries: per_entry(2 * (sent(&["REQUEST"]) - n * asked)),
            settling: per_entry(sent(&["YIELD", "RECALL", "SEAL"])),
        }
    }
}
