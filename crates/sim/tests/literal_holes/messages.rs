//! Holes in what messages say and in which order they come.

use sigmalock_core::Span;
use sigmalock_protocols::sigma::{Config, LiteralConfig};

use crate::stage::*;

/// Hole 1: the answer to a YIELD lands after a later grant and overwrites it in `resp[]`, so that the
/// client never uses that vote nor yields it. No REQUEST can be overtaken by its RELEASE with these
/// delays, and no client comes twice: it is the RESPONSEs alone. Everything stops, without any fault.
#[test]
fn hole_1_reordered_responses_stop_the_literal_one_for_good() {
    let quorum = quorum(32, 24);
    for seed in 0..8 {
        let mut world = world(seed, quorum, delays(50, 150), fresh(2.5));
        (world.warmup, world.duration) = (secs(500), secs(100));
        let stuck = literal(&world, &LiteralConfig::new(quorum), "answered");
        assert_eq!(stuck.entries_measured, 0, "seed {seed}");
        assert!(stuck.entries > 0 && !stuck.violations.is_empty());
        let moving = shipped(&world, &sigma::Config::new(quorum), "answered");
        assert!(moving.throughput_per_s > 2.0, "seed {seed}: {}", moving.throughput_per_s);
        assert_eq!(moving.violations, []);
    }
}

/// Hole 2: what `resp[]` says of a winner that has left makes the test "nobody can win" fire at every
/// hand-over, so that votes are yielded that were just right. It costs half of the throughput.
#[test]
fn hole_2_stale_news_of_departed_winners_halves_the_literal_throughput() {
    let quorum = quorum(32, 24);
    for (low, high, theory) in [(100, 100, 5.00), (90, 110, 4.87), (50, 150, 4.41)] {
        let mut world = world(1, quorum, delays(low, high), pooled(10.0));
        (world.warmup, world.duration) = (secs(60), secs(240));
        let half = literal(&world, &LiteralConfig::new(quorum), "exclusion").throughput_per_s;
        let full = shipped(&world, &sigma::Config::new(quorum), "exclusion").throughput_per_s;
        assert!((2.3..2.7).contains(&half), "literal at ({low},{high}): {half}");
        assert!(full >= 0.95 * theory, "shipped at ({low},{high}): {full}");
    }
}

/// Hole 3: a client that asks again meets its own old RELEASE. Its new REQUEST finds replicas that still
/// name it as owner, it counts those votes, and then they go to the next one. Lease and backoff only
/// keep the run going; clients are inside for 0.3 s, far from the end of any lease.
#[test]
fn hole_3_identity_by_client_lets_two_in_at_once() {
    let quorum = quorum(4, 3);
    let (mut overlaps, mut entries) = (0, 0);
    for seed in 0..30 {
        let world = two_clients(seed, quorum);
        overlaps += literal(&world, &LiteralConfig::whole(quorum), "exclusion").violations.len();
        let told_apart = shipped(&world, &sigma::Config::new(quorum), "exclusion");
        assert_eq!(told_apart.violations, []);
        entries += told_apart.entries;
    }
    assert!(overlaps > 20 && entries > 2_000, "{overlaps} overlaps, {entries} entries");
}

/// Two clients that leave and soon ask again, without faults, for five minutes.
fn two_clients(seed: u64, quorum: Quorum) -> RunConfig {
    let think = Length::Exponential(Span::from_millis(200));
    let arrivals = Arrivals::Loops { clients: 2, think };
    let mut world = world(seed, quorum, delays(0, 200), arrivals);
    world.workload.inside = Length::Constant(Span::from_millis(300));
    world.duration = secs(300);
    world
}

/// Hole 5: a RELEASE overtakes its own REQUEST, which then makes an owner of a client that has left. The
/// vote is gone for ever, and with it the fault that the quorum was to tolerate: here one host of three
/// has a ghost, another one crashes, and the next client waits in vain.
#[test]
fn hole_5_a_release_that_overtakes_its_request_leaves_a_ghost_owner() {
    let quorum = quorum(3, 2);
    let mut world = world(1, quorum, delays(10, 10), Arrivals::Scripted);
    let late = Rule {
        kind: Some("REQUEST".into()),
        from: Some(PeerId(1_000)),
        to: Some(PeerId(2)),
        nth: Some(1),
        effect: RuleEffect::Delay(secs(1)),
    };
    let script = Script::default()
        .rule(late)
        .acquire(Span::ZERO, PeerId(1_000), &name(), Some(Span::ZERO))
        .fault(secs(5), Fault::Crash(PeerId(0)))
        .acquire(secs(6), PeerId(1_001), &name(), Some(Span::ZERO));
    world.script = Some(script);
    assert_eq!(literal(&world, &LiteralConfig::new(quorum), "stall").entries, 1);
    assert_eq!(shipped(&world, &sigma::Config::new(quorum), "stall").entries, 2);
}

