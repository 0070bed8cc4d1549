//! Every rule that can be broken on purpose, of whichever layer.

use std::fmt;
use std::str::FromStr;

use sigmalock_protocols::parts::UnknownMutant;
use sigmalock_protocols::{agent, agreed, sigma, views};

use crate::output;

/// A deliberately broken protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// The shipped Sigma without one of its rules.
    Sigma(sigma::Mutant),
    /// An agent without one of its rules, over a healthy Sigma.
    Agent(agent::Mutant),
    /// Views without one of their rules, under a healthy Sigma. Those whose absence makes two successors of one
    /// view are seen by the walks of the views themselves, long before they matter to locks.
    Views(views::Mutant),
    /// Views and Sigma, both healthy, without one of the rules between them.
    Agreed(agreed::Mutant),
    /// Drivers without one of their rules, of healthy protocols.
    Driver(output::Mutant),
    /// Clients that take several locks at once, in any order and not in the one that all keep to.
    TakesLocksInAnyOrder,
}

impl Mutant {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let sigma = sigma::Mutant::ALL.iter().copied().filter(|mutant| {
            // They keep names empty while a cut lasts, which is allowed to worlds drawn at random; see the cuts
            // in the tests of agreed membership. And six are told as stories there.
            use sigma::Mutant::{
                AbstainsBriefly, AnswersThoughItWaits, ForgetsAbstentions, HushesUpAbstentions,
                KeepsOldVotes, SettlesWithMost, StandsInTheWay, WaitsForTheUnreachable,
            };
            !matches!(
                mutant,
                StandsInTheWay
                    | WaitsForTheUnreachable
                    | AnswersThoughItWaits
                    | ForgetsAbstentions
                    | HushesUpAbstentions
                    | AbstainsBriefly
                    | KeepsOldVotes
                    | SettlesWithMost
            )
        });
        let sigma = sigma.map(Self::Sigma);
        let agent = agent::Mutant::ALL.iter().copied().map(Self::Agent);
        // Of the others the walks of views say more: where one rule about memory is left out, the next still keeps
        // locks safe.
        use views::Mutant::{
            CountsRecordsOfNow, CutsViewsShort, HalfIsEnough, HurriesOn, IgnoresWrites,
            TrustsAnyDisk,
        };
        let views = [HalfIsEnough, HurriesOn, CutsViewsShort].into_iter();
        let disks = [TrustsAnyDisk, IgnoresWrites, CountsRecordsOfNow];
        let views = views.chain(disks).map(Self::Views);
        let agreed = agreed::Mutant::ALL.iter().copied().filter(|mutant| {
            // Told as stories, in the tests of the protocol: they take too many coincidences.
            use agreed::Mutant::{
                HearsVotesOfBefore, HurriesTheTenth, SettlesBeforeItWrites,
                VotesAtOnceWithoutDisks, VotesBeforeItFollows,
            };
            !matches!(
                mutant,
                HearsVotesOfBefore
                    | HurriesTheTenth
                    | SettlesBeforeItWrites
                    | VotesAtOnceWithoutDisks
                    | VotesBeforeItFollows
            )
        });
        let agreed = agreed.map(Self::Agreed);
        let drivers = output::Mutant::ALL.into_iter().map(Self::Driver);
        let protocols = sigma.chain(agent).chain(views).chain(agreed);
        protocols.chain(drivers).chain([Self::TakesLocksInAnyOrder])
    }

    /// The name as commands spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sigma(mutant) => mutant.as_str(),
            Self::Agent(mutant) => mutant.as_str(),
            Self::Views(mutant) => mutant.as_str(),
            Self::Agreed(mutant) => mutant.as_str(),
            Self::Driver(mutant) => mutant.as_str(),
            Self::TakesLocksInAnyOrder => "takes-locks-in-any-order",
        }
    }

    /// Whether there must be agents for it to show.
    #[must_use]
    pub const fn needs_agents(self) -> bool {
        use sigma::Mutant::{LinesUpSlots, OverlapsBlocks};
        matches!(self, Self::Agent(_) | Self::Sigma(LinesUpSlots | OverlapsBlocks))
    }

    /// Whether there must be readers, permits or several locks at once for it to show.
    #[must_use]
    pub const fn needs_modes(self) -> bool {
        use sigma::Mutant;
        matches!(
            self,
            Self::TakesLocksInAnyOrder
                | Self::Sigma(
                    Mutant::LetsReadersPass
                        | Mutant::LetsWritersJoinReaders
                        | Mutant::KeepsReadersApart
                        | Mutant::FreesAllReaders
                        | Mutant::ReadsUnderTheWritersToken
                        | Mutant::ForgetsReaders
                        | Mutant::HandsOffOneReader
                        | Mutant::LetsPermitsJoinWriters
                        | Mutant::LetsReadersJoinPermits
                        | Mutant::MixesPermits
                        | Mutant::GivesASlotTwice
                        | Mutant::HushesUpNumbers
                        | Mutant::NamesItsOwnNumber
                        | Mutant::ReusesSlotTokens
                        | Mutant::RemembersOneSlot
                        | Mutant::TrustsOtherSlots
                        | Mutant::LinesUpSlots
                )
                | Self::Agent(agent::Mutant::AsksForOneSlot | agent::Mutant::KeepsEverySlot)
        )
    }

    pub(crate) const fn of_sigma(self) -> Option<sigma::Mutant> {
        if let Self::Sigma(mutant) = self { Some(mutant) } else { None }
    }

    pub(crate) const fn of_agent(self) -> Option<agent::Mutant> {
        if let Self::Agent(mutant) = self { Some(mutant) } else { None }
    }

    pub(crate) const fn of_views(self) -> Option<views::Mutant> {
        if let Self::Views(mutant) = self { Some(mutant) } else { None }
    }

    pub(crate) const fn of_agreed(self) -> Option<agreed::Mutant> {
        if let Self::Agreed(mutant) = self { Some(mutant) } else { None }
    }

    pub(crate) const fn of_driver(self) -> Option<output::Mutant> {
        if let Self::Driver(mutant) = self { Some(mutant) } else { None }
    }
}

impl FromStr for Mutant {
    type Err = UnknownMutant;
    fn from_str(text: &str) -> Result<Self, UnknownMutant> {
        Self::all().find(|mutant| mutant.as_str() == text).ok_or(UnknownMutant)
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
