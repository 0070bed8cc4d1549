//! What users and operators ask of a peer, and what they are told: a family each.
//!
//! Whoever drives a peer knows these, and not which protocols lie in it over or beside each other: an [`Ask`] finds the
//! one that serves its family, and what that replies is [`Told`]. A new family is a variant of both, two lines below, and
//! an arm where a driver hands replies on.

use sigmalock_core::{LockReply, LockRequest, MemberReply, MemberRequest};

/// What may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Of locks.
    Lock(LockRequest),
    /// Of the members.
    Members(MemberRequest),
}

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// By who guards locks.
    Lock(LockReply),
    /// By the members.
    Members(MemberReply),
}

/// Whoever serves another family gives it back.
impl TryFrom<Ask> for LockRequest {
    type Error = Ask;
    fn try_from(ask: Ask) -> Result<Self, Ask> {
        match ask {
            Ask::Lock(request) => Ok(request),
            Ask::Members(_) => Err(ask),
        }
    }
}

impl From<LockReply> for Told {
    fn from(reply: LockReply) -> Self {
        Self::Lock(reply)
    }
}
