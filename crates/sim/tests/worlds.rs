//! What the ordinary ranges of seeds visit.

use std::collections::BTreeMap;

use sigmalock_core::Span;
use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_sim::faults::{Fault, Memory};
use sigmalock_sim::lab::torture::Victim;

fn victim(membership: Membership) -> Victim {
    let (protocol, variant, quorum) = (ProtocolName::Sigma, Variant::Shipped, None);
    let (mutant, agents, modes) = (None, false, false);
    Victim { protocol, variant, mutant, agents, modes, quorum, membership }
}

/// How many of so many seeds mean a world like a local network: clocks as wrong as they may be, and delays that
/// hide nothing of it.
fn like_a_local_network(membership: Membership, seeds: u64) -> usize {
    let victim = victim(membership);
    let local = |seed: &u64| {
        let (subject, config) = victim.case(*seed);
        let extreme = config.clocks.extreme && config.clocks.ppm_max == 5_000;
        let quick = config.network.latency.worst() <= Span::from_millis(2);
        assert_eq!(extreme, quick, "seed {seed}");
        // There and back is far below what two clocks drift apart within a lease.
        let drift = subject.tuning.lease_max.millionths(10_000);
        assert!(!quick || config.network.latency.worst() * 2 < drift / 2, "seed {seed}");
        quick
    };
    (0..seeds).filter(local).count()
}

#[test]
fn a_fair_share_of_the_seeds_means_a_world_like_a_local_network() {
    let fixed = like_a_local_network(Membership::Fixed, 2_000);
    assert!((200..400).contains(&fixed), "{fixed} of 2,000");
    let agreed = like_a_local_network(Membership::Agreed, 2_000);
    assert!((400..700).contains(&agreed), "{agreed} of 2,000");
    assert_eq!(like_a_local_network(Membership::Open, 200), 0);
}

/// How many of so many seeds mean a world with a fault of this kind.
fn with(membership: Membership, seeds: u64) -> BTreeMap<&'static str, usize> {
    let victim = victim(membership);
    let mut worlds = BTreeMap::new();
    for seed in 0..seeds {
        let (subject, config) = victim.case(seed);
        let mut kinds: Vec<_> = config.faults.faults.iter().map(|(_, f)| f.kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let disks = |kind: &&str| kind.contains("write") || kind.contains("slow");
        assert!(!kinds.iter().any(disks) || subject.tuning.durable, "seed {seed}");
        kinds.into_iter().for_each(|kind| *worlds.entry(kind).or_default() += 1);
    }
    worlds
}

#[test]
fn disks_are_slow_fail_and_lie_in_a_share_of_the_worlds_that_have_some() {
    for (membership, seeds, lies) in [
        (Membership::Fixed, 2_000, 0),
        (Membership::Open, 1_000, 0),
        (Membership::Agreed, 2_000, 20),
    ] {
        let worlds = with(membership, seeds);
        for kind in ["slow disk", "failing write"] {
            assert!(worlds[kind] > seeds as usize / 30, "{membership:?} {kind} {worlds:?}");
        }
        let lying = worlds.get("restart with lost writes").copied().unwrap_or_default();
        assert!(if lies == 0 { lying == 0 } else { lying > lies }, "{membership:?} {worlds:?}");
    }
}

/// Why no disk lies in worlds of that kind.
#[test]
fn a_disk_that_lies_is_not_survived_with_fixed_membership() {
    let victim = victim(Membership::Fixed);
    let lets_two_in = |seed: &u64| {
        let (subject, mut config) = victim.case(*seed);
        for (_, fault) in &mut config.faults.faults {
            if let Fault::Restart { memory: memory @ Memory::Disk, .. } = fault {
                *memory = Memory::Lost(8);
            }
        }
        let outcome = subject.run(&config, &mut subject.oracles(&config));
        let harm = |oracle| ["exclusion", "tokens"].contains(&oracle);
        outcome.violations.iter().any(|violation| harm(violation.oracle))
    };
    assert!((0..2_000).any(|seed| lets_two_in(&seed)));
}
