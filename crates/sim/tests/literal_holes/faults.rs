//! Holes that faults open.

use crate::stage::*;

/// Hole 9: without lease and retry, the loss of a few messages stops everything for ever.
#[test]
fn hole_9_loss_stops_the_pseudo_code_for_good() {
    let quorum = quorum(32, 24);
    let network = Network { loss: 0.01, ..delays(100, 100) };
    let mut world = world(1, quorum, network, fresh(1.0));
    (world.warmup, world.duration) = (secs(900), secs(100));
    let stuck = literal(&world, &LiteralConfig::new(quorum), "exclusion");
    assert_eq!(stuck.entries_measured, 0);
    assert!(stuck.entries > 0);
    let moving = shipped(&world, &sigma::Config::new(quorum), "exclusion").throughput_per_s;
    assert!(moving > 0.8, "{moving}");
}

/// Hole 10: a lease counted from the receipt of the vote ends later at the client than at the replica,
/// and a holder that is cut off believes in it while the next one is let in.
#[test]
fn hole_10_a_lease_counted_from_receipt_lets_two_in_at_once() {
    let quorum = quorum(3, 2);
    let mut overlaps = (0, 0);
    for seed in 0..40 {
        let mut world = world(seed, quorum, delays(0, 200), Arrivals::Scripted);
        let (holder, next) = (PeerId(1_000), PeerId(1_001));
        let hosts = (0..3).map(PeerId).collect();
        let cut = Fault::Cut(Cut { id: 1, from: vec![holder], to: hosts });
        let script = Script::default()
            .acquire(Span::ZERO, holder, &name(), None)
            .acquire(secs(1), next, &name(), None)
            .fault(secs(2), cut);
        world.script = Some(script);
        let config = LiteralConfig { lease: Some(secs(10)), ..LiteralConfig::new(quorum) };
        let from_receipt = literal(&world, &config, "exclusion");
        let from_request = shipped(&world, &sigma::Config::new(quorum), "exclusion");
        assert_eq!((from_receipt.entries, from_request.entries), (2, 2), "both get in");
        overlaps.0 += from_receipt.violations.len();
        overlaps.1 += from_request.violations.len();
    }
    assert!(overlaps.0 > 5 && overlaps.1 == 0, "{overlaps:?}");
}

/// Hole 10, too: the obvious fencing token, the highest grant counter of the votes, goes backwards
/// from one holder to the next, without any fault.
#[test]
fn hole_10_the_highest_grant_counter_is_no_fencing_token() {
    let quorum = quorum(4, 3);
    let obvious = LiteralConfig { obvious_token: true, ..LiteralConfig::whole(quorum) };
    let (mut backwards, mut entries) = (0, 0);
    for seed in 0..10 {
        let world = two_clients(seed, quorum);
        backwards += literal(&world, &obvious, "tokens").violations.len();
        let sealed = shipped(&world, &sigma::Config::new(quorum), "tokens");
        assert_eq!(sealed.violations, []);
        entries += sealed.entries;
    }
    assert!(backwards > 20 && entries > 2_000, "{backwards} backwards, {entries} entries");
}

/// Hole 11: a replica that lost its memory votes again at once, while the client that got the forgotten
/// vote still counts it. The shipped one abstains for the longest lease; with resets as frequent as here
/// a swarm has to choose a short one, or nobody would be left to vote.
#[test]
fn hole_11_replicas_that_vote_without_memory_let_two_in_at_once() {
    let quorum = quorum(4, 3);
    let hasty = LiteralConfig::whole(quorum);
    let (lease_max, round_trip_worst) = (secs(1), Span::from_millis(100));
    let careful = sigma::Config { lease_max, round_trip_worst, ..sigma::Config::new(quorum) };
    let (mut overlaps, mut entries) = (0, 0);
    for seed in 0..10 {
        let mut world = world(seed, quorum, delays(30, 30), loops(3));
        world.workload.inside = Length::Constant(secs(2));
        world.workload.ttl = Length::Constant(lease_max);
        world.faults.replica_life = Some(secs(5));
        world.duration = secs(300);
        overlaps += literal(&world, &hasty, "exclusion").violations.len();
        let abstaining = shipped(&world, &careful, "exclusion");
        assert_eq!(abstaining.violations, []);
        entries += abstaining.entries;
    }
    assert!(overlaps > 20 && entries > 100, "{overlaps} overlaps, {entries} entries");
}

/// Hole 14: the Lamport clock of a new client starts at 1, so newcomers overtake those who wait, and
/// again and again. Constant delays: nothing else goes wrong.
#[test]
fn hole_14_newcomers_with_fresh_lamport_clocks_overtake() {
    let quorum = quorum(32, 24);
    let mut world = world(1, quorum, delays(100, 100), fresh(2.3));
    (world.warmup, world.duration) = (secs(60), secs(600));
    let lamport = literal(&world, &LiteralConfig::new(quorum), "fifo");
    let hybrid = shipped(&world, &sigma::Config::new(quorum), "fifo");
    assert!(lamport.violations.len() > 5, "{:?}", lamport.violations);
    assert_eq!(hybrid.violations, []);
    let (unlucky, fair) = (lamport.waits.quantile(0.99), hybrid.waits.quantile(0.99));
    assert!(unlucky > fair * 10, "p99 {unlucky} against {fair}");
}
