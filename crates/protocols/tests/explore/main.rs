//! Every order of events around one lock, with the very types that are shipped: three hosts, two of whose votes hold
//! it, and two clients, each of which wants it once. Messages overtake each other on their ways to different peers as
//! they like; that one overtakes, is doubled or is lost on its way to one peer, and that a host crashes, is a mishap, of
//! which there are so many. Time goes on to whatever is due next, so often, and whenever it likes.
//!
//! Clocks agree, so a lease is over at one moment for all. What clock rates do to leases is for simulated worlds.

mod orders;

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::catalogue::{Listed, Plan, Variant};
use sigmalock_protocols::parts::hosting::Fixed;
use sigmalock_protocols::parts::{Broken, Quorum, Rules, Sound};
use sigmalock_protocols::sigma::{Mutant, Sigma};
use sigmalock_protocols::strawman::Strawman;
use stateright::{Checker, Model};

use orders::{Countable, HOSTS, Orders, SAFE};

/// Short, so that few steps of time go by until a lease is over.
const LEASE: Span = Span::from_millis(1_500);

fn plan<R>(me: PeerId, rules: R) -> Plan<R> {
    Plan {
        variant: Variant::Shipped,
        quorum: Quorum::new(HOSTS as u16, 2).unwrap(),
        hosting: Box::new(Fixed { hosts: HOSTS as u64, replicas: HOSTS as u16 }),
        lease_max: LEASE,
        claim_window: Span::from_millis(500),
        round_trip_worst: Span::from_millis(500),
        flight_max: Span::from_secs(4),
        dead_after: Span::from_secs(30),
        back_off: (Span::ZERO, Span::from_millis(400)),
        durable: true,
        tokens_per_grant: 1,
        client_only: me.0 >= HOSTS as u64,
        bare: false,
        rules,
    }
}

/// What is looked at: how often time goes on, how much goes wrong, and so many moments at most.
#[derive(Debug, Clone, Copy)]
struct Extent {
    ticks: u8,
    mishaps: u8,
    at_most: usize,
}

fn orders<P: Listed<R> + Countable, R: Rules>(rules: R, extent: Extent) -> Orders<P> {
    let make = move |me| P::plan(me, &plan(me, rules));
    Orders::new(LEASE, extent.ticks, extent.mishaps, make)
}

/// Looks at the farthest moments first, which takes little memory.
fn assert_holds<P: Listed + Countable>(extent: Extent) -> usize {
    let checker = orders::<P, Sound>(Sound, extent).checker().threads(2);
    let checker = checker.target_state_count(extent.at_most).spawn_dfs().join();
    let (states, deep) = (checker.unique_state_count(), checker.max_depth());
    println!("{extent:?}: {states} moments, {deep} steps deep");
    match extent.at_most {
        ALL => checker.assert_properties(),
        _ => checker.assert_no_discovery(SAFE),
    }
    states
}

/// Looks at the nearest moments first, so what it finds is a short story.
fn is_caught(mutant: Mutant, extent: Extent) -> bool {
    let checker = orders::<Sigma<Broken>, Broken>(Broken::from(mutant), extent).checker();
    let checker = checker.threads(2).target_state_count(extent.at_most).spawn_bfs().join();
    println!("{mutant}: {} moments", checker.unique_state_count());
    checker.discovery(SAFE).is_some()
}

/// More than there are.
const ALL: usize = usize::MAX;
/// As many as take some seconds.
const SOME: usize = 600_000;
/// As many as take minutes.
const MANY: usize = 25_000_000;

#[test]
fn no_order_of_messages_lets_two_in() {
    let extent = Extent { ticks: 0, mishaps: 0, at_most: ALL };
    let (sigma, strawman) = (assert_holds::<Sigma>(extent), assert_holds::<Strawman>(extent));
    assert!(sigma > 500_000 && strawman > 20_000, "{sigma} and {strawman} moments");
}

#[test]
fn nor_do_time_and_mishaps_in_the_first_moments_that_are_looked_at() {
    for (ticks, mishaps) in [(4, 0), (0, 1), (4, 2)] {
        let extent = Extent { ticks, mishaps, at_most: SOME };
        assert_holds::<Sigma>(extent);
        assert_holds::<Strawman>(extent);
    }
}

#[test]
#[ignore = "takes ten minutes"]
fn nor_do_they_in_millions_of_moments() {
    for (ticks, mishaps) in [(1, 0), (0, 1), (4, 2)] {
        assert_holds::<Sigma>(Extent { ticks, mishaps, at_most: MANY });
    }
}

#[test]
fn a_broken_rule_is_found_by_exploring() {
    use Mutant::{GrantsTwice, NeverPersists, VotesWithoutMemory};
    for (mutant, mishaps) in [(GrantsTwice, 0), (VotesWithoutMemory, 1), (NeverPersists, 1)] {
        let extent = Extent { ticks: 0, mishaps, at_most: SOME };
        assert!(is_caught(mutant, extent), "{mutant}");
    }
}
