//! What peers of the literal Sigma say to each other.

use core::fmt;

use sigmalock_core::{PeerId, ReplicaId, Span};

/// A message about one replica. The client it concerns is the peer at its other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiteralMessage {
    /// The replica it is for or from.
    pub replica: ReplicaId,
    /// What it says.
    pub body: LiteralBody,
}

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralBody {
    /// REQUEST, also as a retry.
    Request {
        /// The client's timestamp.
        timestamp: u64,
    },
    /// RESPONSE.
    Response {
        /// Cowner.
        owner: PeerId,
        /// Towner.
        timestamp: u64,
        /// How many grants there were: the obvious token.
        grant: u64,
        /// Tw, the advice of the informed backoff.
        wait: Option<Span>,
        /// False if it was sent from RespQueue: the client's turn has come.
        asked: bool,
    },
    /// YIELD: RELEASE and REQUEST in one.
    Yield,
    /// RELEASE.
    Release,
    /// The owner wants its lease to start anew.
    Renew,
    /// It does.
    Renewed,
}

impl sigmalock_core::Message for LiteralMessage {
    fn kind(&self) -> &'static str {
        match self.body {
            LiteralBody::Request { .. } => "REQUEST",
            LiteralBody::Response { asked: true, .. } => "RESPONSE",
            LiteralBody::Response { asked: false, .. } => "GRANT",
            LiteralBody::Yield => "YIELD",
            LiteralBody::Release => "RELEASE",
            LiteralBody::Renew => "RENEW",
            LiteralBody::Renewed => "RENEWED",
        }
    }
    fn size_bytes(&self) -> usize {
        // Kind, name and its length, index.
        let head = 1 + 1 + self.replica.name.as_str().len() + 2;
        head + match self.body {
            LiteralBody::Request { .. } => 8,
            LiteralBody::Response { .. } => 32,
            _ => 0,
        }
    }
}

impl fmt::Display for LiteralMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use sigmalock_core::Message as _;
        write!(f, "{} {}", self.kind(), self.replica)?;
        match self.body {
            LiteralBody::Request { timestamp } => write!(f, " at {timestamp}"),
            LiteralBody::Response { owner, timestamp, wait, .. } => {
                write!(f, " owner {owner} at {timestamp}")?;
                wait.map_or(Ok(()), |wait| write!(f, ", ask again in {wait}"))
            }
            _ => Ok(()),
        }
    }
}
