//! What operators of one peer ask another: small questions and answers beside the protocol.
//!
//! ```text
//!   asker                                   asked
//!     ├── QUERY   id, Replicas { name } ──────►│   which votes are out here?
//!     │◄─ ANSWER  id, Replicas(…) ─────────────┤
//! ```
//!
//! They decide nothing, are answered from memory, and are lost with the session they came in.

use serde::{Deserialize, Serialize};
use sigmalock_core::{
    HolderReport, Key, LocalReport, Name, OwnerReport, PeerId, ReplicaReport, Token,
};

/// So long does an asker wait.
pub(crate) const ANSWER_TIMEOUT: core::time::Duration = core::time::Duration::from_secs(1);
/// Questions that a peer has out at once; one more is not asked.
pub(crate) const QUERIES_MAX: usize = 4_096;
/// Names in one answer.
pub(crate) const NAMES_PER_ANSWER_MAX: usize = 512;
/// Names that are looked at for one answer; the asker goes on from there.
pub(crate) const NAMES_SCANNED_MAX: usize = 4_096;
/// The longest label of a session that is sent; the rest is cut off.
pub(crate) const LABEL_LEN_MAX: usize = 128;

/// A question with its number.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Query {
    pub(crate) id: u64,
    pub(crate) question: Question,
}

/// An answer with the number of its question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) id: u64,
    pub(crate) answer: Answer,
}

/// What may be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Question {
    /// The replicas of a name that you host.
    Replicas { name: Name },
    /// What your users have to do with a name.
    Local { name: Name },
    /// Names that you host or use, and that begin with this, after that one.
    Names { prefix: String, after: Option<Name>, limit: u16 },
    /// Whoever of your users holds this lock must leave.
    Evict { name: Name },
    /// I know these hosts, and I have lost those, so many microseconds ago. Not answered; said first of all
    /// in a session.
    Known { present: Vec<(PeerId, Key)>, lost: Vec<(PeerId, Key, u64)> },
    /// I am about to leave, and host nothing any more: what I hand over is yours to keep. Not answered.
    Leaving,
}

/// What is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    Replicas(Vec<ReplicaReport>),
    Local(LocalAnswer),
    Names(NamesAnswer),
    /// Whether there was anybody to evict.
    Evicted(bool),
    /// It does not fit into a frame.
    TooLong,
}

/// A peer's own users and a name, with who they are.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LocalAnswer {
    pub(crate) report: LocalReport,
    /// As many as there are holders in the report.
    pub(crate) holders: Vec<String>,
    /// As many as there are waiters in the report.
    pub(crate) waiters: Vec<String>,
}

/// Some names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct NamesAnswer {
    pub(crate) entries: Vec<NameEntry>,
    /// Where to go on, if there may be more.
    pub(crate) next: Option<Name>,
}

/// A name, as one peer sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NameEntry {
    pub(crate) name: Name,
    /// The holders that are this peer's users, and who they are.
    pub(crate) holders: Vec<(HolderReport, String)>,
    /// How many of this peer's users wait.
    pub(crate) waiting_here: u32,
    /// The owners of the votes that this peer hosts.
    pub(crate) owners: Vec<OwnerReport>,
    /// The longest queue of the replicas it hosts.
    pub(crate) waiting: u32,
    /// The highest token it knows.
    pub(crate) token: Token,
}
