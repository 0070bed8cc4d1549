//! Names for rules that a protocol can be told to break.

/// A text that names no mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such mutant; `sigmalock lab mutants --list` lists them")]
pub struct UnknownMutant;

/// An enum of mutants, each with the name that commands know it by.
macro_rules! mutants {
    ($(#[$about:meta])* enum $mutant:ident; $($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $mutant { $($(#[$doc])* $variant,)* }

        impl $mutant {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as commands spell it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl core::str::FromStr for $mutant {
            type Err = crate::parts::UnknownMutant;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().copied().find(|mutant| mutant.as_str() == text);
                found.ok_or(crate::parts::UnknownMutant)
            }
        }

        impl core::fmt::Display for $mutant {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use mutants;
