//! Holes 1 to 8 and 14: what messages say, and in which order they come.

use sigmalock_core::Span;
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::sigma::{Config, LiteralConfig};
use sigmalock_sim::faults::Fault;
use sigmalock_sim::script::{Action, RuleEffect, Script};

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
        let moving = shipped(&world, &Config::new(quorum), "answered");
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
        let full = shipped(&world, &Config::new(quorum), "exclusion").throughput_per_s;
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
        let told_apart = shipped(&world, &Config::new(quorum), "exclusion");
        assert_eq!(told_apart.violations, []);
        entries += told_apart.entries;
    }
    assert!(overlaps > 20 && entries > 2_000, "{overlaps} overlaps, {entries} entries");
}

/// Hole 4: a REQUEST by the present owner is queued behind itself, and when the owner leaves, the vote goes
/// to it once more. The paper's own retry does it, if its turn comes while it is asking again: from then
/// on every replica belongs to somebody who is done, and the next one waits out the lease. The holder here
/// leaves at every moment around the retries of the one who waits for it.
#[test]
fn hole_4_a_retry_that_meets_its_own_grant_makes_a_ghost_of_its_sender() {
    let quorum = quorum(3, 2);
    let (mut ghosts, mut moments) = (0, 0);
    for hold in (500..800).step_by(5) {
        let script = Script::default()
            .acquire(ms(0), client(0), &name(), Some(ms(hold)))
            .acquire(ms(100), client(1), &name(), Some(ms(100)))
            .acquire(secs(5), client(2), &name(), Some(ms(100)));
        let world = story(quorum, script);
        let late = entry_of(&literal(&world, &LiteralConfig::whole(quorum), "stall"), client(2));
        ghosts += u32::from(late.unwrap() > secs(10));
        moments += 1;
        let at_once = entry_of(&shipped(&world, &Config::new(quorum), "stall"), client(2));
        assert_eq!(at_once, Some(ms(5_020)), "held for {hold} ms");
    }
    assert!(ghosts >= 3, "at {ghosts} of {moments} moments");
}

/// Hole 5: a RELEASE overtakes its own REQUEST, which then makes an owner of a client that has left. The
/// vote is gone for ever, and with it the fault that the quorum was to tolerate: here one host of three
/// has a ghost, another one crashes, and the next client waits in vain.
#[test]
fn hole_5_a_release_that_overtakes_its_request_leaves_a_ghost_owner() {
    let quorum = quorum(3, 2);
    let late = RuleEffect::Delay(secs(1));
    let script = Script::default()
        .rule(first("REQUEST", client(0), host(2), late))
        .acquire(Span::ZERO, client(0), &name(), Some(Span::ZERO))
        .fault(secs(5), Fault::Crash(host(0)))
        .acquire(secs(6), client(1), &name(), Some(Span::ZERO));
    let world = story(quorum, script);
    assert_eq!(literal(&world, &LiteralConfig::new(quorum), "stall").entries, 1);
    assert_eq!(shipped(&world, &Config::new(quorum), "stall").entries, 2);
}

/// Hole 7: a YIELD by somebody who is not, or no longer, the owner is dropped without a word. Its sender
/// has forgotten the answer it had, gets no other, and so has no reason ever to ask again. Votes are split
/// three ways, and the replica of the third client is reset just before its YIELD comes. When one more host
/// is gone, everybody needs the reset one. The second client asks again when the informed backoff says so;
/// the third was never given any advice by it, and waits for ever.
#[test]
fn hole_7_a_yield_that_is_dropped_in_silence_leaves_its_sender_waiting_for_ever() {
    let quorum = quorum(3, 2);
    let mut script = Script::default();
    for k in 0..3 {
        script.links.push(link(client(k), host(k), ms(5)));
        script = script.acquire(ms(k), client(k), &name(), Some(ms(100)));
    }
    let script = script.fault(ms(23), Fault::Reset(host(2))).fault(ms(150), Fault::Crash(host(1)));
    let world = story(quorum, script);
    let served = |outcome| entries(&outcome).into_iter().map(|(who, _)| who).collect::<Vec<_>>();
    let silent = literal(&world, &LiteralConfig::whole(quorum), "exclusion");
    assert_eq!(served(silent), [client(0), client(1)]);
    let answering = shipped(&world, &Config::new(quorum), "exclusion");
    assert_eq!(served(answering), [client(0), client(1), client(2)]);
}

/// Hole 8: a late copy of a RESPONSE makes a vote of what was given back long ago. The second client had
/// replica 1, yielded it to the first, and later got replica 2, which the first one's lost REQUEST never
/// reached. Then a copy of "replica 1 is yours" turns up, and makes two.
#[test]
fn hole_8_a_late_copy_of_a_response_is_a_false_vote() {
    let quorum = quorum(3, 2);
    let mut script = Script::default();
    for k in 0..3 {
        script.links.push(link(client(k), host(k), ms(5)));
        script = script.acquire(ms(k), client(k), &name(), Some(secs(5)));
    }
    let script = script.rule(first("REQUEST", client(0), host(2), RuleEffect::Drop)).rule(first(
        "RESPONSE",
        host(1),
        client(1),
        RuleEffect::Duplicate(secs(1)),
    ));
    only_literal_lets_two_in(quorum, script);
}

/// Hole 8, too: a late copy of a YIELD gives away a vote that was granted anew and is being counted. The
/// first client yields replica 1, gets it again together with replica 0, and is inside. Replica 2 stayed
/// with the third one, whose YIELD was lost and who then gives up, and goes to a newcomer (whose id puts it
/// first, Lamport clocks being equal). The copy of the YIELD gives it replica 1 as well.
#[test]
fn hole_8_a_late_copy_of_a_yield_gives_away_a_vote_that_counts() {
    let quorum = quorum(3, 2);
    let [newcomer, winner, second, third] = [0, 1, 2, 3].map(client);
    let mut script = Script::default();
    for (asked, who, nearest) in [(0, winner, 1), (1, second, 0), (2, third, 2)] {
        script.links.push(link(who, host(nearest), ms(5)));
        script = script.acquire(ms(asked), who, &name(), Some(secs(5)));
    }
    let script = script
        .rule(first("YIELD", winner, host(1), RuleEffect::Duplicate(secs(2))))
        .rule(first("YIELD", third, host(2), RuleEffect::Drop))
        .acquire(ms(500), newcomer, &name(), Some(secs(5)))
        .at(secs(1), Action::Cancel { peer: third, name: name() });
    only_literal_lets_two_in(quorum, script);
}

fn only_literal_lets_two_in(quorum: Quorum, script: Script) {
    let world = story(quorum, script);
    let doubled = literal(&world, &LiteralConfig::new(quorum), "exclusion");
    assert_eq!(doubled.violations.len(), 1, "{:?}", doubled.violations);
    let single = shipped(&world, &Config::new(quorum), "exclusion");
    assert_eq!((single.entries, single.violations), (3, vec![]));
}

/// Hole 14: the Lamport clock of a new client starts at 1, so newcomers overtake those who wait, and
/// again and again. Constant delays: nothing else goes wrong.
#[test]
fn hole_14_newcomers_with_fresh_lamport_clocks_overtake() {
    let quorum = quorum(32, 24);
    let mut world = world(1, quorum, delays(100, 100), fresh(2.3));
    (world.warmup, world.duration) = (secs(60), secs(600));
    let lamport = literal(&world, &LiteralConfig::new(quorum), "fifo");
    let hybrid = shipped(&world, &Config::new(quorum), "fifo");
    assert!(lamport.violations.len() > 5, "{:?}", lamport.violations);
    assert_eq!(hybrid.violations, []);
    let (unlucky, fair) = (lamport.waits.quantile(0.99), hybrid.waits.quantile(0.99));
    assert!(unlucky > fair * 10, "p99 {unlucky} against {fair}");
}
