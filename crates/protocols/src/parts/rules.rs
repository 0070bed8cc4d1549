//! Whether a protocol keeps its rules: a type parameter, so that what a live peer runs cannot be told to break one.
//!
//! At each rule that a mutant leaves out, the protocol asks `breaks(Mutant::…)`. [`Sound`] says no, which the compiler
//! knows: neither the question nor what would follow from it is in a live peer. [`Broken`] is for tests and the laboratory.

use core::fmt::Debug;
use core::hash::Hash;

use super::MutantCard;

/// Which rules are kept.
pub trait Rules: Debug + Clone + Copy + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// Whether this one is left out.
    fn breaks(self, rule: impl Into<&'static MutantCard>) -> bool;
}

/// All of them are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sound;

impl Rules for Sound {
    #[inline]
    fn breaks(self, _: impl Into<&'static MutantCard>) -> bool {
        false
    }
}

/// All but one, by its name; or all of them all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Broken(Option<&'static str>);

impl Rules for Broken {
    fn breaks(self, rule: impl Into<&'static MutantCard>) -> bool {
        self.0.is_some_and(|name| name == rule.into().name)
    }
}

impl<M: Into<&'static MutantCard>> From<M> for Broken {
    fn from(rule: M) -> Self {
        Self(Some(rule.into().name))
    }
}

impl<M: Into<&'static MutantCard>> From<Option<M>> for Broken {
    fn from(rule: Option<M>) -> Self {
        Self(rule.map(|rule| rule.into().name))
    }
}

/// A protocol that goes by these rules, as do all those inside it. What goes by [`Sound`] ones is run live, and nothing else.
pub trait GoesBy<R> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{self, Agent};
    use crate::agreed::{self, Agreed};
    use crate::catalogue::{LAYERS, ProtocolName};
    use crate::sigma::{self, Sigma};
    use crate::strawman::Strawman;
    use crate::views::{self, Views};

    /// A peer that keeps its rules by its type has nowhere to be told otherwise, nor any rule to ask about.
    #[test]
    fn what_is_sound_has_no_room_for_a_mutant() {
        assert_eq!(size_of::<Sound>(), 0);
        let pairs = [
            (size_of::<sigma::Config>(), size_of::<sigma::Config<Broken>>()),
            (size_of::<views::Config>(), size_of::<views::Config<Broken>>()),
            (size_of::<agent::Config>(), size_of::<agent::Config<Broken>>()),
            (size_of::<agreed::Config>(), size_of::<agreed::Config<Broken>>()),
            (size_of::<Views>(), size_of::<Views<Broken>>()),
            (size_of::<Agreed<Agent<Sigma>>>(), size_of::<Agreed<Agent<Sigma>, Broken>>()),
        ];
        for (sound, broken) in pairs {
            assert!(sound < broken);
        }
        let cards = ProtocolName::ALL.iter().map(|name| name.card()).chain(LAYERS.iter().copied());
        for rule in cards.flat_map(|card| card.mutants) {
            assert!(!Sound.breaks(rule) && !Broken::default().breaks(rule));
            assert!(Broken::from(rule).breaks(rule));
        }
    }

    /// It does not compile otherwise.
    #[test]
    fn what_live_peers_run_goes_by_sound_rules() {
        const fn is_run_live<P: GoesBy<Sound>>() {}
        is_run_live::<Agreed<Agent<Sigma>>>();
        is_run_live::<Agreed<Agent<Strawman>>>();
    }
}
