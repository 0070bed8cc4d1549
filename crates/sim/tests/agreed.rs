//! Peers that agree on who is in: the cuts that break other guards, and what an operator can break.

mod stage;

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::catalogue::Membership;
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::sigma;
use sigmalock_sim::faults::{Cut, Fault, FaultPlan};
use sigmalock_sim::history::{TrueTime, What};
use sigmalock_sim::overlay::Open;
use sigmalock_sim::run::{Outcome, RunConfig};
use sigmalock_sim::subject::{Subject, Tuning};
use sigmalock_sim::workload::Length;
use stage::{client, delays, host, loops, ms, quorum, secs, world};

const LEASE: Span = secs(5);
/// The first seconds are for getting together.
const TOGETHER: u64 = 10;

/// Five hosts, and four clients that always want the same lock, for a minute.
fn five(seed: u64, faults: Vec<(TrueTime, Fault)>) -> RunConfig {
    let mut world = world(seed, Quorum::ONE, delays(5, 15), loops(4));
    world.hosts = 5;
    world.workload.inside = Length::Uniform(ms(10), ms(300));
    world.workload.ttl = Length::Constant(secs(4));
    let (silence, delay, linger) = (secs(1), ms(200), secs(5));
    world.open = Some(Open {
        first: 5,
        silence,
        delay,
        linger,
        lease_max: LEASE,
        cells: None,
        clients_seen: true,
    });
    world.faults = FaultPlan { faults, ..FaultPlan::default() };
    world.keep_history = true;
    world
}

/// The same world where nobody agrees on anything.
fn five_that_look_around(seed: u64, faults: Vec<(TrueTime, Fault)>) -> RunConfig {
    RunConfig { replicas: 9, ..five(seed, faults) }
}

fn subject(world: &RunConfig, membership: Membership, quorum: Quorum, dead_after: Span) -> Subject {
    let protocol = sigmalock_protocols::catalogue::ProtocolName::Sigma;
    let mut subject = Subject::new(protocol, Default::default(), quorum);
    subject.tuning = Tuning {
        lease_max: LEASE,
        membership,
        dead_after,
        durable: true,
        ..Tuning::for_network(&world.network)
    };
    subject
}

fn run(world: &RunConfig, membership: Membership, quorum: Quorum, dead_after: Span) -> Outcome {
    let subject = subject(world, membership, quorum, dead_after);
    subject.run(world, &mut subject.oracles(world))
}

fn at(secs: u64) -> TrueTime {
    TrueTime(0) + Span::from_secs(secs)
}

/// Two groups hear nothing of each other from then on.
fn part(from: TrueTime, one: &[PeerId], other: &[PeerId]) -> [(TrueTime, Fault); 2] {
    let cut = |from: &[PeerId], to: &[PeerId]| Cut { id: 1, from: from.into(), to: to.into() };
    [(from, Fault::Cut(cut(one, other))), (from, Fault::Cut(cut(other, one)))]
}

/// {1, 2} and {4, 5} do not see each other, 3 sees all; two clients are on either side.
fn three_sees_all() -> Vec<(TrueTime, Fault)> {
    let one = [host(0), host(1), client(0), client(1)];
    let other = [host(3), host(4), client(2), client(3)];
    part(at(TOGETHER), &one, &other).to_vec()
}

fn entries_after(outcome: &Outcome, from: TrueTime) -> usize {
    let history = outcome.history.iter().flatten();
    history.filter(|r| r.at > from && matches!(r.what, What::Granted { .. })).count()
}

/// The longest that nobody was let in, from shortly after the cut on.
fn longest_pause(outcome: &Outcome, from: TrueTime) -> Span {
    let history = outcome.history.iter().flatten();
    let granted = history.filter(|r| matches!(r.what, What::Granted { .. })).map(|r| r.at);
    let times: Vec<TrueTime> =
        [from].into_iter().chain(granted.filter(|at| *at > from)).chain([outcome.end]).collect();
    times.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or_default()
}

/// Perhaps with a rule of Sigma's left out.
fn run_without(world: &RunConfig, rule: Option<sigma::Mutant>) -> Outcome {
    let mut subject = subject(world, Membership::Agreed, Quorum::ONE, secs(60));
    subject.mutant = rule.map(sigma::Mutant::card);
    subject.run(world, &mut subject.oracles(world))
}

#[test]
fn three_sees_all_and_the_others_do_not_see_each_other() {
    for seed in 0..30 {
        // Those who are silent may be voted out or not: the one who sees them takes them in again.
        for dead_after in [secs(3), secs(60)] {
            let world = five(seed, three_sees_all());
            let outcome = run(&world, Membership::Agreed, Quorum::ONE, dead_after);
            assert_eq!(outcome.violations, [], "seed {seed}");
            let pause = longest_pause(&outcome, at(TOGETHER + 5));
            assert!(pause < secs(1), "seed {seed}: nobody was let in for {pause}");
        }
    }
}

/// Two hosts are gone, so that each of the others is needed, and a client reaches just one of those.
fn one_client_reaches_one_host() -> Vec<(TrueTime, Fault)> {
    let mut faults =
        part(at(TOGETHER), &[client(0)], &[host(0), host(1), host(3), host(4)]).to_vec();
    faults.extend([3, 4].map(|k| (at(TOGETHER), Fault::Destroy(host(k)))));
    faults
}

#[test]
fn who_reaches_too_few_to_win_is_in_nobodys_way() {
    let pause = |seed: u64, rule| {
        let world = five(seed, one_client_reaches_one_host());
        let outcome = run_without(&world, rule);
        assert_eq!(outcome.violations, [], "seed {seed}");
        longest_pause(&outcome, at(TOGETHER + 5))
    };
    for seed in 0..30 {
        assert!(pause(seed, None) < secs(2), "seed {seed}: {}", pause(seed, None));
    }
    let stands = Some(sigma::Mutant::StandsInTheWay);
    assert!((0..30).any(|seed| pause(seed, stands) > secs(10)), "otherwise names stand still");
}

/// Most clients that wait are cut off together with two hosts.
fn most_who_wait_are_cut_off() -> Vec<(TrueTime, Fault)> {
    let one = [host(0), host(1), host(2), client(0), client(1)];
    let mut other = vec![host(3), host(4)];
    other.extend((2..12).map(client));
    part(at(TOGETHER), &one, &other).to_vec()
}

#[test]
fn nobody_waits_for_those_who_cannot_be_reached() {
    let pause = |seed: u64, rule| {
        let mut world = five(seed, most_who_wait_are_cut_off());
        world.workload.arrivals = loops(12);
        let outcome = run_without(&world, rule);
        assert_eq!(outcome.violations, [], "seed {seed}");
        longest_pause(&outcome, at(TOGETHER))
    };
    // A holder's lease runs out, and that of a waiter who was given the vote just before.
    for seed in 0..30 {
        assert!(pause(seed, None) < secs(3), "seed {seed}: {}", pause(seed, None));
    }
    let waits = Some(sigma::Mutant::WaitsForTheUnreachable);
    assert!((0..30).any(|seed| pause(seed, waits) > secs(10)), "otherwise for one after the other");
}

#[test]
fn going_by_who_one_sees_is_not_enough_there() {
    let broken = |seed: &u64| {
        let world = five_that_look_around(*seed, three_sees_all());
        let outcome = run(&world, Membership::Open, quorum(9, 6), secs(3));
        outcome.violations.iter().any(|violation| violation.oracle == "exclusion")
    };
    assert!((0..30).any(|seed| broken(&seed)), "both sides take themselves for most");
}

/// Two hosts are cut off from three, and an operator tells them to forget those, who are well.
fn forgetting_the_living() -> Vec<(TrueTime, Fault)> {
    let one = [host(0), host(1), client(0), client(1)];
    let other = [host(2), host(3), host(4), client(2), client(3)];
    let mut faults = part(at(TOGETHER), &one, &other).to_vec();
    let gone = (2..5).map(host).collect();
    faults.push((at(TOGETHER + 3), Fault::Forget { by: host(0), gone }));
    faults.push((at(40), Fault::Mend(1)));
    faults
}

#[test]
fn forgetting_members_that_live_lets_two_in_until_they_meet() {
    let world = five(1, forgetting_the_living());
    let outcome = run(&world, Membership::Agreed, Quorum::ONE, secs(3));
    let overlaps: Vec<TrueTime> = outcome
        .violations
        .iter()
        .filter(|violation| violation.oracle == "exclusion")
        .map(|violation| violation.at)
        .collect();
    assert!(!overlaps.is_empty(), "the oracle sees it");
    // When they meet, the others find out that they were forgotten, and come in again.
    let last = overlaps.iter().max().unwrap();
    assert!(*last < at(40) + LEASE, "two were inside at {last:?}");
    assert!(entries_after(&outcome, at(50)) > 10);
}
