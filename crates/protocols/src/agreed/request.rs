//! What users and operators ask, and what they are answered: of the members, or of the protocol inside.

use sigmalock_core::{LockReply, LockRequest, MemberReply, MemberRequest};

use crate::parts::{Ask, Told};

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

impl<R: TryFrom<Ask, Error = Ask>> TryFrom<Ask> for Request<R> {
    type Error = Ask;

    fn try_from(ask: Ask) -> Result<Self, Ask> {
        match ask {
            Ask::Members(request) => Ok(Self::Members(request)),
            ask => R::try_from(ask).map(Self::Inside),
        }
    }
}

impl<R: Into<Told>> From<Reply<R>> for Told {
    fn from(reply: Reply<R>) -> Self {
        match reply {
            Reply::Inside(reply) => reply.into(),
            Reply::Members(reply) => Self::Members(reply),
        }
    }
}
