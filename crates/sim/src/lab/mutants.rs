//! Mutants and the oracles that must catch them.

use std::ops::Range;

use sigmalock_protocols::catalogue::{Membership, Variant};
use sigmalock_protocols::parts::Quorum;

use super::torture::{Failure, Victim, torture, torture_seed};
use crate::mutant::{self, Mutant};

/// Seeds that are looked at together: no more than the failures that a report keeps.
const PACK_MAX: u64 = 64;

/// The first seed with which the mutant's own oracle objects, while the healthy protocol gets through.
#[must_use]
pub fn hunt(
    mutant: Mutant, quorum: Option<Quorum>, seeds: Range<u64>, jobs: usize,
) -> Option<Failure> {
    let protocol = mutant::hunted_in(mutant);
    let (variant, membership) = (Variant::Shipped, mutant.membership);
    let (agents, modes) = (mutant.agents, mutant.modes);
    // A host that moves a vote wrongly matters most where few votes win.
    let few = || (membership == Membership::Open).then(|| Quorum::new(3, 2).ok()).flatten();
    let quorum = quorum.or_else(few);
    let broken = Some(mutant);
    let victim = Victim { protocol, variant, mutant: broken, agents, modes, quorum, membership };
    let healthy = Victim { mutant: None, ..victim };
    let mut from = seeds.start;
    // Most mutants are caught at once, so the first packs of seeds are small.
    let mut pack = (jobs as u64).clamp(1, PACK_MAX);
    while from < seeds.end {
        let to = from.saturating_add(pack).min(seeds.end);
        let report = torture(&victim, from..to, jobs, &|_| (), false);
        let caught = report.failures.into_iter().find(|failure| {
            failure.violations.iter().any(|violation| violation.oracle == mutant.oracle)
                && torture_seed(&healthy, failure.seed).violations.is_empty()
        });
        if caught.is_some() {
            return caught;
        }
        (from, pack) = (to, (pack * 2).min(PACK_MAX));
    }
    None
}
