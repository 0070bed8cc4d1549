//! Seeds that once failed. Each says what was wrong; the cause is fixed, the seed is kept.

use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;
use sigmalock_sim::lab::torture::{Victim, torture_seed};

const SEEDS: [(Membership, (u16, u16), u64, &str); 16] = [
    (
        Membership::Fixed,
        (3, 2),
        32_875,
        "copies of YIELD bred without end, because a request whose answers were all late paced itself by a \
         round trip of zero",
    ),
    (
        Membership::Fixed,
        (32, 24),
        6_817,
        "a request that nobody competed with gave its votes back and got them again without end, because \
         hearing of the dead holder's other votes made it forget how often it had",
    ),
    (
        Membership::Fixed,
        (32, 24),
        1_487,
        "a request that stood aside slept through the news that hosts were back, and never asked them again",
    ),
    (
        Membership::Open,
        (3, 2),
        20_810,
        "both sides of a cut counted a newcomer in place of a sleeper, who woke on one of them, and took \
         themselves for the majority",
    ),
    (
        Membership::Open,
        (9, 6),
        2_785,
        "a host that had been cut off renewed votes with what it had proposed before, when others had shown \
         higher tokens meanwhile and forgotten them",
    ),
    (Membership::Agreed, (1, 1), 25_740, ANSWERED_LATE),
    (Membership::Agreed, (1, 1), 98_291, ANSWERED_LATE),
    (Membership::Agreed, (1, 1), 128_201, ANSWERED_LATE),
    (Membership::Agreed, (1, 1), 139_209, ANSWERED_LATE),
    (Membership::Agreed, (1, 1), 72_142, OUTRUN),
    (Membership::Agreed, (1, 1), 152_569, OUTRUN),
    (Membership::Agreed, (1, 1), 166_205, OUTRUN),
    (Membership::Agreed, (1, 1), 167_072, OUTRUN),
    (Membership::Agreed, (1, 1), 193_271, OUTRUN),
    (Membership::Agreed, (1, 1), 197_810, OUTRUN),
    (
        Membership::Agreed,
        (1, 1),
        3_617,
        "an operator who was not heard by all who were left, over a bad network, gave up before it was mended",
    ),
];

/// The same, where some users read, and some want permits.
const MODES: [(u64, &str); 2] = [(91_005_878, OLD_WISH), (91_007_193, OLD_WISH)];

const OLD_WISH: &str = "a late copy of what it had said when it wanted in brought one back that had left, and half of the \
                        view would have nothing to do with it";

const ANSWERED_LATE: &str = "a newcomer that was answered only after it had waited for a lease and voted took \
                             on a second owner of its vote";

const OUTRUN: &str = "a copy of a running peer's disk was put back, and wrote as much as the others had heard of before \
                      they were asked";

/// Those of them in which clocks are as wrong as they may be.
const EXTREME: [u64; 1] = [3_617];

#[test]
fn what_once_failed_does_not_fail_again() {
    for (membership, (n, m), seed, what) in SEEDS {
        let quorum = Some(Quorum::new(n, m).unwrap());
        let (protocol, variant) = (ProtocolName::Sigma, Variant::Shipped);
        let victim = Victim {
            protocol,
            variant,
            mutant: None,
            agents: false,
            modes: false,
            quorum,
            membership,
        };
        let (_, world) = victim.case(seed);
        assert_eq!(
            world.clocks.extreme,
            EXTREME.contains(&seed),
            "{seed} means another world than it did when it failed"
        );
        let report = torture_seed(&victim, seed);
        assert!(report.violations.is_empty(), "{what}: {:#?}", report.violations);
    }
}

#[test]
fn what_once_failed_in_company_does_not_fail_again() {
    for (seed, what) in MODES {
        let (protocol, variant) = (ProtocolName::Sigma, Variant::Shipped);
        let (mutant, agents, modes, quorum) = (None, false, true, None);
        let membership = Membership::Agreed;
        let victim = Victim { protocol, variant, mutant, agents, modes, quorum, membership };
        let report = torture_seed(&victim, seed);
        assert!(report.violations.is_empty(), "{what}: {:#?}", report.violations);
    }
}
