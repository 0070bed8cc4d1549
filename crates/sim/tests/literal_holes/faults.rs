//! Holes 9 to 16 but 14: what goes wrong when things go wrong.

use sigmalock_core::{Patience, Span};
use sigmalock_protocols::sigma::{Config, LiteralConfig};
use sigmalock_sim::faults::{Cut, Fault};
use sigmalock_sim::network::Network;
use sigmalock_sim::run::{Outcome, RunConfig};
use sigmalock_sim::script::{Action, RuleEffect, Script};
use sigmalock_sim::workload::{Errand, Length};

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
    let moving = shipped(&world, &Config::new(quorum), "exclusion").throughput_per_s;
    assert!(moving > 0.8, "{moving}");
}

/// Hole 10: a lease counted from the receipt of the vote ends later at the client than at the replica,
/// and a holder that is cut off believes in it while the next one is let in.
#[test]
fn hole_10_a_lease_counted_from_receipt_lets_two_in_at_once() {
    let quorum = quorum(3, 2);
    let mut overlaps = (0, 0);
    for seed in 0..40 {
        let (holder, next) = (client(0), client(1));
        let hosts = (0..3).map(host).collect();
        let cut = Fault::Cut(Cut { id: 1, from: vec![holder], to: hosts });
        let script = Script::default()
            .acquire(Span::ZERO, holder, &name(), None)
            .acquire(secs(1), next, &name(), None)
            .fault(secs(2), cut);
        let world = RunConfig { seed, network: delays(0, 200), ..story(quorum, script) };
        let config = LiteralConfig { lease: Some(secs(10)), ..LiteralConfig::new(quorum) };
        let from_receipt = literal(&world, &config, "exclusion");
        let from_request = shipped(&world, &Config::new(quorum), "exclusion");
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
        let sealed = shipped(&world, &Config::new(quorum), "tokens");
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
    let (lease_max, round_trip_worst) = (secs(1), ms(100));
    let careful = Config { lease_max, round_trip_worst, ..Config::new(quorum) };
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

/// Hole 12: the informed backoff repairs a queue in T_w, which grows with the mean time between releases,
/// and so repairs the slower the slower things go. After an hour-long critical section, or here a minute,
/// the one who waits is told to come back in half a minute. Meanwhile two replicas forget it, newcomers
/// take them, see a winner or a split, and keep them; the holder leaves after four seconds, and the lock
/// stands empty until the half minute is over. RECALL, and asking again as soon as some votes are there,
/// make it a few round trips.
#[test]
fn hole_12_a_queue_is_repaired_only_as_fast_as_the_lock_has_been_slow() {
    let quorum = quorum(4, 3);
    let lease_max = secs(1);
    let mut script = Script::default()
        .fault(ms(62_000), Fault::Reset(host(3)))
        .fault(ms(63_000), Fault::Reset(host(2)));
    let visits =
        [(0, 1_000), (100, 60_000), (200, 4_000), (61_500, 100), (62_500, 100), (63_500, 100)];
    for (k, (asks, stays)) in (0..).zip(visits) {
        let inside = Some(ms(stays));
        let errand = Errand { inside, ..Errand::new(lease_max, Patience::Forever) };
        script = script.at(ms(asks), Action::Acquire { peer: client(k), name: name(), errand });
    }
    let world = RunConfig { duration: secs(100), ..story(quorum, script) };
    let idle = |outcome: &Outcome| {
        let inside = |k| entry_of(outcome, client(k)).unwrap();
        inside(3) - (inside(2) + secs(4))
    };
    let slow = idle(&literal(&world, &LiteralConfig::whole(quorum), "exclusion"));
    assert!(slow > secs(25), "{slow}");
    let round_trip_worst = ms(20);
    let config = Config { lease_max, round_trip_worst, ..Config::new(quorum) };
    let quick = idle(&shipped(&world, &config, "exclusion"));
    assert!(quick < ms(100), "{quick}");
}

/// Hole 12, drawn: with more clients than it can serve, and replicas that live for 30 s, the literal one
/// loses more than half of the little throughput it has with backoff and leases (its other holes see to
/// that). The shipped one, with leases short enough to live among such replicas, serves all of the
/// same load; and of a load that is too much for it as well, nearly what it serves without resets.
#[test]
fn hole_12_resets_under_overload_halve_the_literal_throughput_and_not_the_shipped() {
    let quorum = quorum(32, 24);
    let (lease_max, round_trip_worst) = (secs(1), ms(200));
    let config = Config { lease_max, round_trip_worst, ..Config::new(quorum) };
    let world = |rate, replica_life| {
        let mut world = world(1, quorum, delays(100, 100), fresh(rate));
        world.workload.ttl = Length::Constant(lease_max);
        world.faults.replica_life = replica_life;
        (world.warmup, world.duration) = (secs(60), secs(240));
        world
    };
    let short = Some(secs(30));
    let literal = |life| {
        literal(&world(1.5, life), &LiteralConfig::whole(quorum), "exclusion").throughput_per_s
    };
    let shipped = |rate, life| shipped(&world(rate, life), &config, "exclusion").throughput_per_s;
    assert!(literal(short) < 0.5 * literal(None), "{} of {}", literal(short), literal(None));
    assert!(shipped(1.5, short) > 0.95 * shipped(1.5, None));
    let (kept, full) = (shipped(6.0, short), shipped(6.0, None));
    assert!(kept > 0.85 * full, "{kept} of {full}");
}

/// Hole 15: a client that has heard that somebody wins just waits (case 2), also when that one has long
/// left and nobody will tell it. Meanwhile the votes it holds, up to n − m, are parked. Here the third
/// client has replica 2 and waits for the first one; the second one, older, is called by replica 0; and
/// replica 1 is gone. Each has what the other needs. (The informed backoff would end it by accident,
/// after T_w; so this is the pseudo code alone.)
#[test]
fn hole_15_votes_stay_parked_with_a_client_that_waits_on_stale_news() {
    let quorum = quorum(3, 2);
    let script = Script::default()
        .rule(first("REQUEST", client(0), host(2), RuleEffect::Drop))
        .rule(first("REQUEST", client(1), host(2), RuleEffect::Delay(ms(200))))
        .acquire(ms(0), client(0), &name(), Some(ms(300)))
        .acquire(ms(50), client(1), &name(), Some(ms(100)))
        .acquire(ms(100), client(2), &name(), Some(ms(100)))
        .fault(ms(310), Fault::Crash(host(1)));
    let world = story(quorum, script);
    assert_eq!(literal(&world, &LiteralConfig::new(quorum), "stall").entries, 1);
    let awake = shipped(&world, &Config::new(quorum), "stall");
    assert_eq!(awake.entries, 3);
    assert!(waits(&awake).iter().all(|wait| *wait < secs(1)), "{:?}", waits(&awake));
}

/// Hole 16: a waiter that crashed is called all the same, and each such call costs a full lease. The three
/// that wait in front of the last client are gone before the holder leaves. In the shipped one a vote
/// from the queue passes on unless it is claimed, two seconds later.
#[test]
fn hole_16_every_crashed_waiter_costs_a_full_lease() {
    let quorum = quorum(3, 2);
    let mut script = Script::default().acquire(ms(0), client(0), &name(), Some(secs(2)));
    for k in 1..4 {
        script = script
            .acquire(ms(100 * k), client(k), &name(), Some(ms(100)))
            .fault(secs(1), Fault::Crash(client(k)));
    }
    let world = story(quorum, script.acquire(ms(1_500), client(4), &name(), Some(ms(100))));
    let left = secs(2);
    let slow = entry_of(&literal(&world, &LiteralConfig::whole(quorum), "exclusion"), client(4));
    assert!(slow.unwrap() >= left + secs(10) * 3, "{slow:?}");
    let quick = entry_of(&shipped(&world, &Config::new(quorum), "exclusion"), client(4));
    assert!(quick.unwrap() <= left + secs(2) * 3 + ms(100), "{quick:?}");
}
