//! Mutants and the oracles that must catch them.

use std::ops::Range;

use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::{agent, sigma};

use super::torture::{Failure, Victim, torture, torture_seed};
use crate::mutant::Mutant;

/// The oracle whose business a mutant is. An objection of another one is welcome, but proves nothing
/// about this one.
#[must_use]
pub const fn oracle_for(mutant: Mutant) -> &'static str {
    match mutant {
        Mutant::Sigma(mutant) => oracle_for_sigma(mutant),
        Mutant::TakesLocksInAnyOrder => "progress",
        Mutant::Agent(mutant) => match mutant {
            agent::Mutant::HandsOverPastTheDeadline => "exclusion",
            agent::Mutant::ReusesTokens => "tokens",
            agent::Mutant::NeverLetsGo => "turns",
            agent::Mutant::IgnoresPatience => "answered",
            agent::Mutant::AsksForOneSlot | agent::Mutant::KeepsEverySlot => "sharing",
        },
        Mutant::Views(_) | Mutant::Agreed(_) => "exclusion",
        Mutant::Driver(_) => "tokens",
    }
}

const fn oracle_for_sigma(mutant: sigma::Mutant) -> &'static str {
    use sigma::Mutant;
    match mutant {
        Mutant::GrantsTwice
        | Mutant::AcceptsAnyYield
        | Mutant::VotesWithoutMemory
        | Mutant::EndsLeasesEarly
        | Mutant::CountsFromReceipt
        | Mutant::IgnoresClockRates
        | Mutant::RenewsWithoutMargin
        | Mutant::IgnoresClaimWindow
        | Mutant::CountsStaleResponses
        | Mutant::CountsYieldedVotes
        | Mutant::VotesAfterHandingOff
        | Mutant::TakesOverBlindly
        | Mutant::HandsOffWithoutTheVote
        | Mutant::AdoptsBriefly
        | Mutant::ResumesByTimeout
        | Mutant::LetsWritersJoinReaders
        | Mutant::FreesAllReaders
        | Mutant::SettlesWithoutAsking
        | Mutant::IgnoresTheUnseen
        | Mutant::VotesBetweenTwo
        | Mutant::AnswersThoughItWaits
        | Mutant::HushesUpAbstentions
        | Mutant::ForgetsAbstentions
        | Mutant::AbstainsBriefly
        | Mutant::SettlesWithMost
        | Mutant::KeepsOldVotes
        | Mutant::HandsOffOneReader
        | Mutant::LetsPermitsJoinWriters
        | Mutant::LetsReadersJoinPermits
        | Mutant::MixesPermits
        | Mutant::GivesASlotTwice => "exclusion",
        Mutant::NeverPersists
        | Mutant::PersistsLast
        | Mutant::ShowsGrantCounter
        | Mutant::SealsAfterDeadline
        | Mutant::ForgetsTokenFloor
        | Mutant::TrustsOldTokens
        | Mutant::OverlapsBlocks
        | Mutant::ReadsUnderTheWritersToken
        | Mutant::ForgetsReaders
        | Mutant::ReusesSlotTokens
        | Mutant::RemembersOneSlot
        | Mutant::TrustsOtherSlots => "tokens",
        Mutant::ShowsUnsealedToken => "register",
        Mutant::AnswersTwice => "accounting",
        Mutant::ForgetsTombstones | Mutant::SitsOnVotes => "idle",
        Mutant::ServesYoungestFirst | Mutant::LetsReadersPass => "fifo",
        Mutant::KeepsReadersApart | Mutant::LinesUpSlots => "sharing",
        Mutant::HushesUpNumbers | Mutant::NamesItsOwnNumber => "refusals",
        Mutant::NeverEndsLeases | Mutant::StandsInTheWay | Mutant::WaitsForTheUnreachable => {
            "stall"
        }
        Mutant::EndsInSilence | Mutant::AnswersTheHolder => "answered",
        Mutant::IgnoresDeadline => "notice",
    }
}

/// The kind of world in which the broken rule matters.
#[must_use]
pub const fn world_for(mutant: Mutant) -> Membership {
    match mutant {
        Mutant::Sigma(
            sigma::Mutant::VotesAfterHandingOff
            | sigma::Mutant::TakesOverBlindly
            | sigma::Mutant::HandsOffWithoutTheVote
            | sigma::Mutant::AdoptsBriefly
            | sigma::Mutant::ResumesByTimeout
            | sigma::Mutant::HandsOffOneReader,
        ) => Membership::Open,
        Mutant::Views(_)
        | Mutant::Agreed(_)
        | Mutant::Sigma(
            sigma::Mutant::SettlesWithoutAsking
            | sigma::Mutant::IgnoresTheUnseen
            | sigma::Mutant::VotesBetweenTwo
            | sigma::Mutant::AnswersThoughItWaits
            | sigma::Mutant::HushesUpAbstentions
            | sigma::Mutant::ForgetsAbstentions
            | sigma::Mutant::AbstainsBriefly
            | sigma::Mutant::SettlesWithMost
            | sigma::Mutant::KeepsOldVotes,
        ) => Membership::Agreed,
        _ => Membership::Fixed,
    }
}

/// Seeds that are looked at together: no more than the failures that a report keeps.
const PACK_MAX: u64 = 64;

/// The first seed with which the mutant's own oracle objects, while the healthy protocol gets through.
#[must_use]
pub fn hunt(
    mutant: Mutant, quorum: Option<Quorum>, seeds: Range<u64>, jobs: usize,
) -> Option<Failure> {
    let (protocol, variant) = (ProtocolName::Sigma, Variant::Shipped);
    let (agents, modes) = (mutant.needs_agents(), mutant.needs_modes());
    let membership = world_for(mutant);
    // A host that moves a vote wrongly matters most where few votes win.
    let few = || (membership == Membership::Open).then(|| Quorum::new(3, 2).ok()).flatten();
    let quorum = quorum.or_else(few);
    let broken = Some(mutant);
    let victim = Victim { protocol, variant, mutant: broken, agents, modes, quorum, membership };
    let healthy = Victim { mutant: None, ..victim };
    let oracle = oracle_for(mutant);
    let mut from = seeds.start;
    // Most mutants are caught at once, so the first packs of seeds are small.
    let mut pack = (jobs as u64).clamp(1, PACK_MAX);
    while from < seeds.end {
        let to = from.saturating_add(pack).min(seeds.end);
        let report = torture(&victim, from..to, jobs, &|_| (), false);
        let caught = report.failures.into_iter().find(|failure| {
            failure.violations.iter().any(|violation| violation.oracle == oracle)
                && torture_seed(&healthy, failure.seed).violations.is_empty()
        });
        if caught.is_some() {
            return caught;
        }
        (from, pack) = (to, (pack * 2).min(PACK_MAX));
    }
    None
}
