//! What users and operators ask, and what they are answered: of the members, or of the protocol inside.

use sigmalock_core::{LockReply, LockRequest, MemberReply, MemberRequest};

/// What may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request<R> {
    /// Of the protocol inside.
    Inside(R),
    /// Of the members.
    Members(MemberRequest),
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<R> {
    /// By the protocol inside.
    Inside(R),
    /// By the members.
    Members(MemberReply),
}

impl From<LockRequest> for Request<LockRequest> {
    fn from(request: LockRequest) -> Self {
        Self::Inside(request)
    }
}

impl<R> From<MemberRequest> for Request<R> {
    fn from(request: MemberRequest) -> Self {
        Self::Members(request)
    }
}

impl TryFrom<Reply<LockReply>> for LockReply {
    type Error = MemberReply;

    fn try_from(reply: Reply<LockReply>) -> Result<Self, MemberReply> {
        match reply {
            Reply::Inside(reply) => Ok(reply),
            Reply::Members(reply) => Err(reply),
        }
    }
}
