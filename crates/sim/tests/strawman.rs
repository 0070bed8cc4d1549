//! Section III of the paper, seen in the simulator: the ALOHA-like strawman is safe enough and performs
//! miserably, "the higher the variance, the worse the throughput".

use sigmalock_core::{Name, Span};
use sigmalock_protocols::catalogue::Variant;
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::strawman::{Config, Strawman};
use sigmalock_sim::clock::Clocks;
use sigmalock_sim::history::TrueTime;
use sigmalock_sim::latency::Latency;
use sigmalock_sim::network::Network;
use sigmalock_sim::oracles;
use sigmalock_sim::run::{Outcome, RunConfig, run};
use sigmalock_sim::workload::{Arrivals, Habit, Length, PatienceMix, Workload};

const fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

fn world(seed: u64, quorum: Quorum, (low, high): (u64, u64), arrivals: Arrivals) -> RunConfig {
    let (low, high) = (Span::from_millis(low), Span::from_millis(high));
    let network = Network::perfect(Latency::Uniform { low, high });
    let name = Name::new("/a").unwrap();
    RunConfig::new(seed, quorum.n(), network, Workload::new(name, arrivals))
}

fn judged(world: &RunConfig, config: &Config) -> Outcome {
    // It keeps no queue, and so promises neither order nor that a lock is never idle.
    let hosting = world.population().hosting();
    run(
        world,
        |me| Strawman::new(me, config.clone(), Box::new(hosting)),
        &mut oracles::all(world.setting(false)),
    )
}

/// Entries per second at 32/24, losers backing off for up to 100 s.
fn throughput(delays_ms: (u64, u64), rate: f64) -> f64 {
    let quorum = Quorum::new(32, 24).unwrap();
    let back_off = (Span::ZERO, secs(100));
    let config = Config { back_off, ..Config::new(quorum, Variant::Shipped) };
    let arrivals = Arrivals::Poisson { per_s: rate, clients_min: 0, clients_max: 100_000 };
    let mut world = world(1, quorum, delays_ms, arrivals);
    (world.warmup, world.duration) = (secs(300), secs(300));
    let hosting = world.population().hosting();
    run(&world, |me| Strawman::new(me, config.clone(), Box::new(hosting)), &mut []).throughput_per_s
}

/// "The throughput increases linearly when contention is low, reaches a peak, and then degrades
/// essentially to zero."
#[test]
fn throughput_rises_peaks_and_collapses_like_alohas() {
    for (delays_ms, low, peak, high) in
        [((90, 110), 1.0, 2.5, 10.0), ((50, 150), 0.5, 2.0, 6.0), ((0, 200), 0.5, 1.3, 4.0)]
    {
        let [rising, at_peak, collapsed] =
            [low, peak, high].map(|rate| throughput(delays_ms, rate));
        assert!((0.8..1.2).contains(&(rising / low)), "{delays_ms:?}: {rising} of {low}");
        assert!(at_peak > rising, "{delays_ms:?}: {at_peak} after {rising}");
        assert!(collapsed < 0.1 * at_peak, "{delays_ms:?}: {collapsed} after {at_peak}");
    }
}

/// "Latency variance has a significant impact: the higher the variance, the worse the throughput."
#[test]
fn the_more_the_delays_vary_the_less_gets_through() {
    let [none, little, some, much] =
        [(100, 100), (90, 110), (50, 150), (0, 200)].map(|delays_ms| throughput(delays_ms, 2.5));
    assert!(none > 0.9 * little && little > 1.3 * some && some > 1.3 * much);
}

/// What the paper does not say: if all delays are the same, all replicas see one order, somebody always
/// wins, and there is no collapse.
#[test]
fn with_constant_delays_it_never_collapses() {
    let [busy, overloaded] = [4.0, 10.0].map(|rate| throughput((100, 100), rate));
    assert!(overloaded > busy && busy > 3.0, "{overloaded} after {busy}");
}

/// Loss, copies, late copies, wrong clocks, crashes of holders and of hosts, all at once, then a heal.
fn hostile(seed: u64, quorum: Quorum) -> RunConfig {
    let arrivals = Arrivals::Loops { clients: 4, think: Length::Exponential(secs(1)) };
    let mut world = world(seed, quorum, (0, 200), arrivals);
    world.network.loss = 0.02;
    world.network.duplication = 0.02;
    (world.network.late, world.network.late_max) = (0.02, secs(10));
    let (offset_max, wall_error_max) = (secs(100_000), secs(100));
    world.clocks = Clocks { ppm_max: 5_000, extreme: false, offset_max, wall_error_max };
    world.workload.ttl = Length::Uniform(secs(2), secs(10));
    world.workload.inside = Length::Exponential(secs(3));
    let (bounded, limit) = (1.0, Length::Exponential(secs(5)));
    world.workload.patience = PatienceMix { forever: 2.0, bounded, only_try: 1.0, limit };
    world.workload.cancel = Habit { probability: 0.1, length: Length::Exponential(secs(2)) };
    world.workload.crash = Habit { probability: 0.1, length: Length::Exponential(secs(1)) };
    world.faults.replica_life = Some(secs(60));
    world.faults.heal_at = Some(TrueTime(secs(300).as_micros()));
    world.duration = secs(600);
    world
}

#[test]
fn the_shipped_one_survives_a_hostile_world() {
    let mut entries = 0;
    for (n, m) in [(3, 2), (4, 3), (9, 6)] {
        let quorum = Quorum::new(n, m).unwrap();
        let config = Config::new(quorum, Variant::Shipped);
        for seed in 0..30 {
            let outcome = judged(&hostile(seed, quorum), &config);
            assert_eq!(outcome.violations, [], "{n}/{m}, seed {seed}");
            entries += outcome.entries;
        }
    }
    assert!(entries > 1_000, "{entries}");
}

#[test]
fn the_literal_one_lets_two_in_at_once_in_a_hostile_world() {
    let quorum = Quorum::new(3, 2).unwrap();
    let config = Config::new(quorum, Variant::Literal);
    let overlaps = |seed| {
        let violations = judged(&hostile(seed, quorum), &config).violations;
        violations.into_iter().filter(|violation| violation.oracle == "exclusion").count()
    };
    assert!((0..30).map(overlaps).sum::<usize>() > 10);
}
