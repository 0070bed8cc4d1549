//! What the strawman's peers say to each other.
//!
//! ```text
//! client                                    replica
//!    │ REQUEST {ttl}  "lend me your vote"      │
//!    ├────────────────────────────────────────►│   also the renewal: asking for what one has
//!    │      RESPONSE {vote} or {rejected, by}  │
//!    │◄────────────────────────────────────────┤
//!    │ RELEASE  "I lost the round, or left"    │
//!    ├────────────────────────────────────────►│   nothing more is said of this bid
//! ```

use core::fmt;

use sigmalock_core::{Echo, Lease, LocalTime, ReplicaId, RequestId, Span};

/// One attempt of a request to collect votes. A loser's next attempt is another bid, so that what is
/// still under way of the last one cannot be taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bid {
    /// The request.
    pub request: RequestId,
    /// Which attempt, counted from 1.
    pub attempt: u32,
}

/// A message, always about one bid at one replica.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Message {
    /// The replica it is for or from.
    pub replica: ReplicaId,
    /// The bid it is about.
    pub bid: Bid,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Body {
    /// Lend me your vote, or renew what you lent.
    Request {
        /// For how long.
        ttl: Span,
        /// The client's clock now.
        sent: LocalTime,
    },
    /// The answer to a `Request`.
    Response(Answer),
    /// This bid is over.
    Release,
}

/// The answer to a `Request`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Answer {
    /// To which message, and when it was heard.
    pub echo: Echo,
    /// Yes or no.
    pub verdict: Verdict,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Verdict {
    /// Yes, for this long.
    Vote(Lease),
    /// No: it is lent to somebody, or (`None`) this host may not vote yet.
    Rejected {
        /// Who has it.
        owner: Option<Bid>,
    },
}

impl sigmalock_core::Message for Message {
    fn kind(&self) -> &'static str {
        match self.body {
            Body::Request { .. } => "REQUEST",
            Body::Response(_) => "RESPONSE",
            Body::Release => "RELEASE",
        }
    }
    fn size_bytes(&self) -> usize {
        const KIND: usize = 1;
        const BID: usize = 3 * 8 + 4;
        const TIMES: usize = 2 * 8;
        let replica = 1 + self.replica.name.as_str().len() + 2;
        let rest = match self.body {
            Body::Request { .. } => TIMES,
            Body::Release => 0,
            Body::Response(answer) => match answer.verdict {
                Verdict::Vote(_) => TIMES + TIMES,
                Verdict::Rejected { owner } => TIMES + owner.map_or(0, |_| BID),
            },
        };
        KIND + replica + BID + rest
    }
}

impl fmt::Display for Bid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.request, self.attempt)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replica, bid, body } = self;
        match body {
            Body::Request { ttl, .. } => write!(f, "REQUEST {replica} for {bid}, {ttl}"),
            Body::Release => write!(f, "RELEASE {replica} by {bid}"),
            Body::Response(answer) => match answer.verdict {
                Verdict::Vote(lease) => write!(f, "RESPONSE {replica} votes {bid}, {}", lease.ttl),
                Verdict::Rejected { owner: None } => {
                    write!(f, "RESPONSE {replica} abstains, {bid}")
                }
                Verdict::Rejected { owner: Some(owner) } => {
                    write!(f, "RESPONSE {replica} rejects {bid}, owner {owner}")
                }
            },
        }
    }
}
