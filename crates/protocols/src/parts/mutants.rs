//! Rules that a protocol can be told to break, and what is known of each.

use core::fmt;

use crate::catalogue::Membership;

/// A text that names no mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such mutant; `sigmalock lab mutants --list` lists them")]
pub struct UnknownMutant;

/// A deliberately broken protocol: one of its rules left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MutantCard {
    /// The name as commands spell it.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// The oracle whose business it is. An objection of another one is welcome, but proves nothing about this one.
    pub oracle: &'static str,
    /// The kind of world in which the broken rule matters.
    pub membership: Membership,
    /// Whether there must be agents for it to show.
    pub agents: bool,
    /// Whether there must be readers, permits or several locks at once for it to show.
    pub modes: bool,
    /// Whether it shows where its protocol runs alone, and guards no locks.
    pub alone: bool,
    /// Whether worlds drawn at random lead there too rarely, or are allowed what it does: it is told as a story in
    /// the tests of its protocol.
    pub told: bool,
}

impl MutantCard {
    /// One that shows in any world.
    #[must_use]
    pub const fn new(name: &'static str, about: &'static str, oracle: &'static str) -> Self {
        let (membership, agents, modes) = (Membership::Fixed, false, false);
        let (alone, told) = (false, false);
        Self { name, about, oracle, membership, agents, modes, alone, told }
    }
    /// It shows where hosting is open.
    #[must_use]
    pub const fn open(self) -> Self {
        Self { membership: Membership::Open, ..self }
    }
    /// It shows where peers agree on who is in.
    #[must_use]
    pub const fn agreed(self) -> Self {
        Self { membership: Membership::Agreed, ..self }
    }
    /// It shows where there are agents.
    #[must_use]
    pub const fn agents(self) -> Self {
        Self { agents: true, ..self }
    }
    /// It shows where there are readers, permits or several locks at once.
    #[must_use]
    pub const fn modes(self) -> Self {
        Self { modes: true, ..self }
    }
    /// It shows where its protocol runs alone.
    #[must_use]
    pub const fn alone(self) -> Self {
        Self { alone: true, ..self }
    }
    /// It is told as a story.
    #[must_use]
    pub const fn told(self) -> Self {
        Self { told: true, ..self }
    }
}

impl fmt::Display for MutantCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// An enum of mutants. Of each there is the name that commands know it by, its oracle, and where it shows.
#[macro_export]
macro_rules! mutants {
    (
        $(#[$about:meta])* enum $mutant:ident;
        $($(#[doc = $doc:literal])* $variant:ident = $name:literal: $oracle:literal $($where:ident)*,)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $mutant { $($(#[doc = $doc])* $variant,)* }

        impl $mutant {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// What is known of them, in the same order.
            pub const CARDS: &'static [$crate::parts::MutantCard] = &[
                $($crate::parts::MutantCard::new($name, concat!($($doc),*), $oracle)$(.$where())*,)*
            ];

            /// What is known of it.
            #[must_use]
            pub const fn card(self) -> &'static $crate::parts::MutantCard {
                &Self::CARDS[self as usize]
            }

            /// The name as commands spell it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                self.card().name
            }
        }

        impl From<$mutant> for &'static $crate::parts::MutantCard {
            fn from(mutant: $mutant) -> Self {
                mutant.card()
            }
        }

        impl core::str::FromStr for $mutant {
            type Err = $crate::parts::UnknownMutant;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().copied().find(|mutant| mutant.as_str() == text);
                found.ok_or($crate::parts::UnknownMutant)
            }
        }

        impl core::fmt::Display for $mutant {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

#[doc(inline)]
pub use mutants;
