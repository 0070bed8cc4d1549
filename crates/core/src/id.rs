//! Who, which and what number: the identities protocols speak of.

use core::fmt;
use core::num::ParseIntError;
use core::str::FromStr;

use crate::name::Name;

/// A peer of the swarm. Live drivers derive it from the peer's public key and refuse a second key
/// with the same identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PeerId(pub u64);

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

impl FromStr for PeerId {
    type Err = ParseIntError;
    /// As it is written: `p` and a number; the `p` may be missing.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.strip_prefix('p').unwrap_or(text).parse().map(Self)
    }
}

/// One life of a peer: a new number, never used before, each time it starts; where hosting moves, not by
/// another peer either, so live drivers draw it at random. Only equality has a
/// meaning; the clocks of two lives of a peer have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A call that a user of this peer made; the reply carries it back. Unique within an incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CallId(pub u64);

/// A request as the whole swarm knows it. A client's next request, or its next life, is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RequestId {
    /// The peer that asks.
    pub client: PeerId,
    /// The life in which it asked.
    pub incarnation: Incarnation,
    /// The call of that life.
    pub call: CallId,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.client, self.call.0)
    }
}

/// One of the n logical replicas that guard a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReplicaId {
    /// The name it guards.
    pub name: Name,
    /// Which of the n, counted from 0.
    pub index: u16,
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, u32::from(self.index) + 1)
    }
}

/// A place in the key space of the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Key(pub [u8; 32]);

/// A fencing token: the resource refuses whoever shows a lower one than it has seen, or an equal one
/// that another holder has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Token(pub u64);

impl Token {
    /// The next token.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }
    /// The token so many further on.
    #[must_use]
    pub const fn plus(self, more: u64) -> Self {
        Self(self.0.saturating_add(more))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
