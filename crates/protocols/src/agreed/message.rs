//! What peers say to each other: about who is in, or about locks.

use core::fmt;

use crate::{sigma, views};

/// A message of either protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Message {
    /// About who is in.
    Views(views::Message),
    /// About locks.
    Locks {
        /// The view that the sender is in.
        view: u64,
        /// What it says.
        message: sigma::Message,
    },
}

impl sigmalock_core::Message for Message {
    fn kind(&self) -> &'static str {
        match self {
            Self::Views(message) => message.kind(),
            Self::Locks { message, .. } => message.kind(),
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Views(message) => 1 + message.size_bytes(),
            Self::Locks { message, .. } => 2 + message.size_bytes(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Views(message) => message.fmt(f),
            Self::Locks { message, .. } => message.fmt(f),
        }
    }
}
