//! What is compared.

use std::fmt::Write as _;

use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_sim::lab::torture::{Victim, torture_seed};

/// Of each kind. There are log-normal delays among the first of them, exponential lives, and maps.
const SEEDS: u64 = 60;

/// One line for every seed.
pub(crate) fn told() -> String {
    let (protocol, variant, mutant, quorum) = (ProtocolName::Sigma, Variant::Shipped, None, None);
    let mut told = String::new();
    for membership in [Membership::Fixed, Membership::Open, Membership::Agreed] {
        for (agents, modes) in [(false, false), (true, true)] {
            let victim = Victim { protocol, variant, mutant, agents, modes, quorum, membership };
            for seed in 0..SEEDS {
                let report = torture_seed(&victim, seed);
                let faults: u64 = report.faults.values().sum();
                let (entries, delivered) = (report.entries, report.delivered);
                let (violations, digest) = (report.violations.len(), report.digest);
                let _ = writeln!(
                    told,
                    "{membership:?} {agents} {modes} {seed}: {entries} {delivered} {faults} {violations} {digest:016x}"
                );
            }
        }
    }
    told
}
