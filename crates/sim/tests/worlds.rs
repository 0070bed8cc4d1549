//! What the ordinary ranges of seeds visit.

use sigmalock_core::Span;
use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_sim::lab::torture::Victim;

/// How many of so many seeds mean a world like a local network: clocks as wrong as they may be, and delays that
/// hide nothing of it.
fn like_a_local_network(membership: Membership, seeds: u64) -> usize {
    let (protocol, variant, quorum) = (ProtocolName::Sigma, Variant::Shipped, None);
    let (mutant, agents, modes) = (None, false, false);
    let victim = Victim { protocol, variant, mutant, agents, modes, quorum, membership };
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
