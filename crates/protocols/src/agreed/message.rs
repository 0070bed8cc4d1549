//! What peers say to each other: about who is in, or about what they do together.

use core::fmt;

use crate::views;

/// A message of either protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Message<M> {
    /// About who is in.
    Views(views::Message),
    /// Of the protocol inside.
    Inside {
        /// The view that the sender is in.
        view: u64,
        /// What it says.
        message: M,
    },
}

impl<M: sigmalock_core::Message> sigmalock_core::Message for Message<M> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Views(message) => message.kind(),
            Self::Inside { message, .. } => message.kind(),
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Views(message) => 1 + message.size_bytes(),
            Self::Inside { message, .. } => 2 + message.size_bytes(),
        }
    }
}

impl<M: fmt::Display> fmt::Display for Message<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Views(message) => message.fmt(f),
            Self::Inside { message, .. } => message.fmt(f),
        }
    }
}
