//! Agents: what they save, and that nobody pays for it by waiting longer than a grant.

mod stage;

use std::collections::BTreeMap;

use sigmalock_core::PeerId;
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_sim::run::{Outcome, RunConfig};
use sigmalock_sim::subject::Subject;
use sigmalock_sim::workload::Length;
use stage::{delays, entries, loops, ms, quorum, secs, world};

/// Four peers with five users each, all of whom always want the lock.
fn crowd(clients_per_peer: usize) -> RunConfig {
    let mut world = world(3, quorum(5, 3), delays(10, 30), loops(20));
    world.workload.clients_per_peer = clients_per_peer;
    world.workload.inside = Length::Constant(ms(20));
    world.duration = secs(60);
    world.keep_history = true;
    world
}

fn run(world: &RunConfig, entries_per_grant: Option<u64>) -> Outcome {
    let mut subject = Subject::new(ProtocolName::Sigma, Variant::Shipped, quorum(5, 3));
    subject.entries_per_grant = entries_per_grant;
    let outcome = subject.run(world, &mut subject.oracles(world));
    assert_eq!(outcome.violations, []);
    outcome
}

fn messages_per_entry(outcome: &Outcome) -> f64 {
    outcome.traffic_measured.messages() as f64 / outcome.entries_measured as f64
}

#[test]
fn local_hand_over_saves_messages_and_time() {
    let without = run(&crowd(1), None);
    let with = run(&crowd(5), Some(4));
    assert!(messages_per_entry(&with) * 3.0 < messages_per_entry(&without));
    assert!(with.throughput_per_s > 1.5 * without.throughput_per_s);
}

#[test]
fn whoever_waits_elsewhere_gets_in_after_at_most_one_grant_of_each_other_peer() {
    let outcome = run(&crowd(5), Some(4));
    let mut in_a_row: BTreeMap<PeerId, u64> = BTreeMap::new();
    let order: Vec<PeerId> = entries(&outcome).into_iter().map(|(peer, _)| peer).collect();
    assert!(order.len() > 500);
    let turns = order.chunk_by(|a, b| a == b);
    assert!(turns.clone().all(|turn| turn.len() <= 4), "nobody has two grants in a row");
    for turn in turns.skip(4) {
        *in_a_row.entry(turn[0]).or_default() += turn.len() as u64;
    }
    let (least, most) = (in_a_row.values().min(), in_a_row.values().max());
    assert!(in_a_row.len() == 4 && most.unwrap() - least.unwrap() <= 8, "{in_a_row:?}");
}

#[test]
fn more_entries_per_grant_cost_fewer_messages() {
    let cost = |entries| messages_per_entry(&run(&crowd(5), Some(entries)));
    let costs = [1, 2, 4].map(cost);
    assert!(costs[0] > 1.5 * costs[1] && costs[1] > 1.5 * costs[2], "{costs:?}");
}
