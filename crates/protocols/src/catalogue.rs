//! Every protocol by name, for commands and menus.

use core::fmt;
use core::str::FromStr;

/// The lock protocols there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolName {
    /// Queues, yields and leases at n logical replicas: [`crate::sigma`].
    Sigma,
    /// Ask all, back off at random: [`crate::strawman`].
    Strawman,
}

impl ProtocolName {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sigma, Self::Strawman];

    /// The name as commands spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sigma => "sigma",
            Self::Strawman => "strawman",
        }
    }
}

/// How faithful a protocol is to its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Variant {
    /// As published or taught, holes included.
    Literal,
    /// With what it takes to survive.
    #[default]
    Shipped,
}

impl Variant {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Literal, Self::Shipped];

    /// The name as commands spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::Shipped => "shipped",
        }
    }
}

/// How it is decided who hosts what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Membership {
    /// Once and for all.
    #[default]
    Fixed,
    /// By hash among those who are there, as each peer sees it.
    Open,
    /// By those who are in, as they agree.
    Agreed,
}

impl Membership {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Open, Self::Agreed];

    /// The name as commands spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Open => "open",
            Self::Agreed => "agreed",
        }
    }
}

/// A text that names no protocol, variant or membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// Not a protocol.
    #[error("there is no such protocol; there are: sigma, strawman")]
    Protocol,
    /// Not a variant.
    #[error("there is no such variant; there are: literal, shipped")]
    Variant,
    /// Not a membership.
    #[error("there is no such membership; there are: fixed, open, agreed")]
    Membership,
}

impl FromStr for ProtocolName {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|p| p.as_str() == text).ok_or(UnknownName::Protocol)
    }
}
impl FromStr for Variant {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|v| v.as_str() == text).ok_or(UnknownName::Variant)
    }
}
impl FromStr for Membership {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|m| m.as_str() == text).ok_or(UnknownName::Membership)
    }
}
impl fmt::Display for ProtocolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_error_lists_every_name_there_is() {
        let sentence = UnknownName::Protocol.to_string();
        assert!(ProtocolName::ALL.iter().all(|p| sentence.contains(p.as_str())));
        let sentence = UnknownName::Variant.to_string();
        assert!(Variant::ALL.iter().all(|v| sentence.contains(v.as_str())));
        let sentence = UnknownName::Membership.to_string();
        assert!(Membership::ALL.iter().all(|m| sentence.contains(m.as_str())));
    }
}
