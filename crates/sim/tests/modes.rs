//! Readers and permits: that they share at all, and what that is worth.

mod stage;

use sigmalock_core::{Mode, RequestId, Span};
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_sim::history::{Ending, What};
use sigmalock_sim::run::{Outcome, RunConfig};
use sigmalock_sim::subject::Subject;
use sigmalock_sim::workload::Length;
use stage::{delays, loops, ms, quorum, secs, waits, world};

/// So many clients who always want the lock, and stay inside for longer than a round trip.
fn crowd(clients: usize) -> RunConfig {
    let mut world = world(5, quorum(5, 3), delays(10, 30), loops(clients));
    world.workload.inside = Length::Constant(ms(200));
    world.duration = secs(60);
    world.keep_history = true;
    world
}

fn run(world: &RunConfig, agents: bool) -> Outcome {
    let mut subject = Subject::new(ProtocolName::Sigma, Variant::Shipped, quorum(5, 3));
    subject.entries_per_grant = agents.then_some(1);
    let outcome = subject.run(world, &mut subject.oracles(world));
    assert_eq!(outcome.violations, []);
    outcome
}

/// The most that were inside together.
fn most_inside(outcome: &Outcome) -> usize {
    let mut inside: Vec<RequestId> = Vec::new();
    let mut most = 0;
    for record in outcome.history.iter().flatten() {
        match &record.what {
            What::Granted { request, .. } => inside.push(*request),
            What::Lost(request) | What::Released(request) => inside.retain(|r| r != request),
            _ => {}
        }
        most = most.max(inside.len());
    }
    most
}

fn longest_wait(outcome: &Outcome) -> Span {
    waits(outcome).into_iter().max().unwrap_or_default()
}

#[test]
fn readers_alone_do_not_wait_for_each_other() {
    let mut world = crowd(8);
    let writers = run(&world, false);
    world.workload.readers = 1.0;
    let readers = run(&world, false);
    assert_eq!((most_inside(&writers), most_inside(&readers)), (1, 8));
    assert!(readers.throughput_per_s > 6.0 * writers.throughput_per_s);
    let seals = readers.notes.get("token needs sealing").copied().unwrap_or(0);
    assert!(seals * 20 < readers.entries, "{seals} seals for {} entries", readers.entries);
}

#[test]
fn among_mostly_readers_a_writer_waits_no_longer_than_those_before_it_take() {
    let mut world = crowd(12);
    world.workload.readers = 0.9;
    let outcome = run(&world, false);
    assert!(most_inside(&outcome) >= 6);
    // Eleven others, at worst one after the other, with a hand-over each.
    assert!(longest_wait(&outcome) < ms(11 * 400), "{}", longest_wait(&outcome));
}

#[test]
fn a_semaphore_is_used_to_the_full_and_nobody_starves() {
    for permits in [1, 2, 4] {
        let mut world = crowd(12);
        (world.workload.permits, world.workload.numbers) = (1.0, vec![permits]);
        let outcome = run(&world, true);
        assert_eq!(most_inside(&outcome), usize::from(permits));
        let least = 0.6 * f64::from(permits) / (0.2 + 0.04);
        assert!(outcome.throughput_per_s > least, "{} of {least}", outcome.throughput_per_s);
        let turn = ms(12 * 2 * 300 / u64::from(permits));
        assert!(longest_wait(&outcome) < turn, "{} of {turn}", longest_wait(&outcome));
    }
}

#[test]
fn writers_readers_and_permits_of_one_name_take_turns_and_nobody_starves() {
    let mut world = crowd(12);
    (world.workload.permits, world.workload.numbers) = (0.5, vec![3]);
    world.workload.readers = 0.5;
    let outcome = run(&world, true);
    let mut entries = [0; 3];
    let mut modes = std::collections::BTreeMap::new();
    for record in outcome.history.iter().flatten() {
        match &record.what {
            What::Asked { request, mode, .. } => drop(modes.insert(*request, *mode)),
            What::Granted { request, .. } => match modes[request] {
                Mode::Exclusive => entries[0] += 1,
                Mode::Shared => entries[1] += 1,
                Mode::Permit { .. } | Mode::Slot { .. } => entries[2] += 1,
            },
            _ => {}
        }
    }
    assert!(entries.iter().all(|entries| *entries > 50), "{entries:?}");
    assert!(most_inside(&outcome) >= 3);
    assert!(longest_wait(&outcome) < ms(11 * 400), "{}", longest_wait(&outcome));
}

#[test]
fn of_two_numbers_of_permits_one_is_in_use_and_whoever_means_the_other_is_told_so() {
    let mut world = crowd(8);
    (world.workload.permits, world.workload.numbers) = (1.0, vec![2, 4]);
    let outcome = run(&world, true);
    let told = outcome.history.iter().flatten();
    let told = told.filter(|r| matches!(r.what, What::Ended(_, Ending::OtherPermits(2 | 4))));
    assert!(told.count() > 100);
    let least = 0.6 * 2.0 / (0.2 + 0.04);
    assert!(outcome.throughput_per_s > least, "{} of {least}", outcome.throughput_per_s);
}
