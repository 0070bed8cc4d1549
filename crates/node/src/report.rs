//! What people get to see of a peer and of a swarm: pictures of a moment.

use core::time::Duration;

use serde::Serialize;
use sigmalock_core::{
    ForgetRefusal, Incarnation, Mode, Name, PeerId, RequestId, Span, Token, ViewReport,
};

use crate::link::Role;
use crate::names::{Names, PeerName};

/// A span as everybody else writes it.
pub(crate) const fn duration(span: Span) -> Duration {
    Duration::from_micros(span.as_micros())
}

/// A length of time in a sentence: `3.2 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A lock, as its hosts and users described it.
#[derive(Debug, Clone, Serialize)]
pub struct LockReport {
    /// The lock.
    pub name: Name,
    /// Its replicas.
    pub n: usize,
    /// Votes that hold it.
    pub m: usize,
    /// Who is inside: one, or readers together, or those who have permits.
    pub holders: Vec<Holder>,
    /// Its replicas, all n.
    pub replicas: Vec<ReplicaView>,
    /// Who waits, next first.
    pub queue: Vec<Waiter>,
    /// How many peers wait, as far as known: those with a request in the queues, each perhaps for several users,
    /// and those without.
    pub waiting: usize,
    /// How many peers were asked.
    pub asked: usize,
    /// How many of them answered in time. If fewer, the picture has holes.
    pub answered: usize,
}

/// Who is inside.
#[derive(Debug, Clone, Serialize)]
pub struct Holder {
    /// The peer whose user it is.
    pub peer: PeerId,
    /// Who that is, if the peer answered.
    pub label: Option<String>,
    /// In what company it is inside.
    pub mode: Mode,
    /// The token it shows.
    pub token: Option<Token>,
    /// How many votes it has, as far as the hosts say.
    pub votes: usize,
    /// Since when.
    pub held_for: Duration,
    /// When its right ends, if it is not renewed.
    pub ends_in: Duration,
}

/// A replica, as seen from here.
#[derive(Debug, Clone, Serialize)]
pub struct ReplicaView {
    /// Which of the n, counted from 0.
    pub index: u16,
    /// Who hosts it; `None` if nobody is there.
    pub host: Option<PeerId>,
    /// Whether the host answered. If not, the rest is unknown.
    pub answered: bool,
    /// Whose its vote is: one request's, or that of readers together, or one's for each permit.
    pub owners: Vec<RequestId>,
    /// How long that has been so.
    pub held_for: Duration,
    /// When the vote runs out, if it is not renewed.
    pub ends_in: Duration,
    /// How many wait for it.
    pub waiting: u32,
    /// The highest token it knows.
    pub token: Token,
    /// For so long it votes for nobody, because it may have forgotten a vote.
    pub abstains_for: Duration,
}

/// A request that waits.
#[derive(Debug, Clone, Serialize)]
pub struct Waiter {
    /// The request; `None` if there is none in the queues, because its peer is inside already or cannot win.
    pub request: Option<RequestId>,
    /// The peer whose it is.
    pub peer: PeerId,
    /// Who of that peer's users waits, next first, if the peer answered.
    pub labels: Vec<String>,
    /// How many of that peer's users wait in all.
    pub users: u32,
}

/// A lock in a list.
#[derive(Debug, Clone, Serialize)]
pub struct LockSummary {
    /// The lock.
    pub name: Name,
    /// The peer whose user holds it, or has the most votes.
    pub peer: Option<PeerId>,
    /// Who that is, if the peer answered.
    pub label: Option<String>,
    /// Whether it is held, not merely asked for.
    pub held: bool,
    /// In what company it holds it, or has the most votes.
    pub mode: Mode,
    /// How many are inside; more than one only if they are readers, or have permits.
    pub holders: u32,
    /// The token it shows; if nobody holds it, the highest known.
    pub token: Token,
    /// Votes of that request.
    pub votes: usize,
    /// Since when it has its oldest vote.
    pub held_for: Duration,
    /// Requests and users that wait, as far as known.
    pub waiting: u32,
}

/// A peer, as this one knows it.
#[derive(Debug, Clone, Serialize)]
pub struct PeerReport {
    /// Its name in protocols.
    pub peer: PeerId,
    /// What people call it.
    pub name: Option<PeerName>,
    /// Its name in libp2p; empty if this peer never met it.
    pub network: String,
    /// Its present life, or the last one known.
    pub incarnation: Option<Incarnation>,
    /// Where it can be reached, or could; first where it was.
    pub addresses: Vec<String>,
    /// What it does.
    pub role: Role,
    /// How long there has been a session with it; `None`: there is none.
    pub up_for: Option<Duration>,
    /// Whether it is this peer.
    pub is_self: bool,
    /// How it stands to the swarm; `None` with open membership.
    pub place: Option<Place>,
}

/// How a peer stands to an agreed membership, as another one sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The view that this is about; 0: none is known.
    pub view: u64,
    /// In which view it came; `None`: it is no member.
    pub since: Option<u64>,
    /// For a member that cannot be reached: since when.
    pub silent_for: Option<Duration>,
    /// It has said that it lost its memory: it votes for nobody until it has been removed and added again.
    pub forgot: bool,
}

/// What came of an eviction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum EvictOutcome {
    /// A user was inside and has been told to leave; the lock goes to the next.
    Evicted {
        /// The peer whose user it was.
        peer: PeerId,
        /// Who it was.
        label: Option<String>,
        /// How many others were inside with it, and have been told the same.
        others: usize,
    },
    /// Nobody was inside.
    NotHeld,
}

/// Why not everybody was evicted. If nothing is said of others, nothing changed, as far as known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvictError {
    /// The holder's peer, or one of several, cannot be reached.
    #[error(
        "{peer} holds the lock and does not answer; its right ends in {}, if it is not renewed{}",
        seconds(*ends_in),
        if *others == 0 { String::new() } else { format!("; {others} others inside were told to leave") }
    )]
    HolderAway {
        /// That peer.
        peer: PeerId,
        /// When its right ends.
        ends_in: Duration,
        /// How many others were inside, and have been told to leave.
        others: usize,
    },
    /// Too few hosts answered to say who holds the lock.
    #[error(
        "only {answered} of {asked} hosts answered, too few to say who holds the lock; try again"
    )]
    Unknown {
        /// How many were asked.
        asked: usize,
        /// How many answered.
        answered: usize,
    },
    /// This peer has stopped.
    #[error("this peer has stopped")]
    Stopped,
}

impl EvictError {
    /// The same, with peers called by their names.
    #[must_use]
    pub fn in_words(&self, names: &Names) -> String {
        let peer = match self {
            Self::HolderAway { peer, .. } => Some(*peer),
            Self::Unknown { .. } | Self::Stopped => None,
        };
        called(self, peer, names)
    }
}

/// A sentence in which a peer is called by its name.
fn called(sentence: &impl ToString, peer: Option<PeerId>, names: &Names) -> String {
    let sentence = sentence.to_string();
    peer.map_or(sentence.clone(), |peer| sentence.replace(&peer.to_string(), &names.show(peer)))
}

/// Why nobody was forgotten. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForgetError {
    /// Nobody is a member here.
    #[error("this swarm has open membership: there are no members to forget")]
    Open,
    /// The members can do without this, and nobody need wait for a lease.
    #[error(
        "{up} of {members} members are connected, which is more than half: they vote the others out by \
         themselves when those have been silent for long enough; stop any of them that lost its memory first"
    )]
    NotNeeded {
        /// Members that are connected, this one included.
        up: usize,
        /// Members.
        members: usize,
    },
    /// One of the named lives.
    #[error(
        "{peer} is not gone: it answered {} ago, and one of you refused the other; see the lines `refused` of `sigmalock \
         status`",
        seconds(*ago)
    )]
    Answers {
        /// Which.
        peer: PeerId,
        /// When it did so for the last time.
        ago: Duration,
    },
    /// This peer has not had the time to find out.
    #[error("this peer has just started, and may not have heard of them yet: try again in {}", seconds(*wait))]
    TooSoon {
        /// So long it takes.
        wait: Duration,
    },
    /// The membership says no.
    #[error(transparent)]
    Refused(#[from] ForgetRefusal),
    /// This peer has stopped.
    #[error("this peer has stopped")]
    Stopped,
}

impl ForgetError {
    /// The same, with peers called by their names.
    #[must_use]
    pub fn in_words(&self, names: &Names) -> String {
        use ForgetRefusal::{Here, NotAMember, Silent};
        let peer = match self {
            Self::Answers { peer, .. } => Some(*peer),
            Self::Refused(NotAMember(peer) | Here(peer) | Silent(peer)) => Some(*peer),
            _ => None,
        };
        called(self, peer, names)
    }
}

/// How a peer is.
#[derive(Debug, Clone, Serialize)]
pub struct StatusReport {
    /// This peer.
    pub peer: PeerId,
    /// What people call it.
    pub name: Option<PeerName>,
    /// What it does.
    pub role: Role,
    /// Whether its users get locks, by its own vote or those of others, as far as it knows.
    pub can_grant: bool,
    /// If not, why not, in words.
    pub why_not: Option<String>,
    /// Whether it votes: for its users and for those of others.
    pub votes: bool,
    /// If not, why not, in words.
    pub why_no_vote: Option<String>,
    /// What whoever runs this swarm should know, in words.
    pub advice: Vec<String>,
    /// The membership that peers have agreed on; `None` where they do not.
    pub view: Option<ViewReport>,
    /// Peers it has sessions with, this one included.
    pub peers_up: usize,
    /// Hosts among them, this one included.
    pub hosts_up: usize,
    /// Peers in Kademlia's table.
    pub table_len: usize,
    /// Local sessions.
    pub sessions: usize,
    /// Locks that they hold.
    pub held: usize,
    /// Calls that wait.
    pub waiting: usize,
    /// Replicas that this peer hosts and remembers.
    pub hosted: usize,
    /// Timers that are set.
    pub timers: usize,
    /// Whether votes are kept on disk.
    pub durable: bool,
    /// Where.
    pub data: Option<String>,
    /// How long it has been running.
    pub uptime: Duration,
    /// Which swarm: the public name of its key.
    pub swarm: String,
    /// Whether it is a swarm of this peer alone, which nobody can join.
    pub private: bool,
    /// How locks are guarded, by the name of the protocol.
    pub protocol: &'static str,
    /// Replicas of a name; with agreed membership, in the present view.
    pub n: usize,
    /// Votes that hold a lock; likewise.
    pub m: usize,
    /// The longest lease.
    pub lease_max: Duration,
    /// Where it listens.
    pub listening: Vec<String>,
    /// Where others are told to find it.
    pub advertised: Vec<String>,
    /// The latest refusals of peers, newest last, in words.
    pub refusals: Vec<String>,
    /// Counters since the start.
    pub counters: CounterReport,
}

/// What passed through a peer since it started.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CounterReport {
    /// Turns of the driver, and inputs they took.
    pub batches: u64,
    /// Inputs of the protocol.
    pub inputs: u64,
    /// Locks granted to this peer's users.
    pub grants: u64,
    /// Messages of this peer to itself.
    pub to_self: u64,
    /// Messages that could not be sent.
    pub unsent: u64,
    /// Frames received.
    pub frames_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Frames that made no sense.
    pub nonsense: u64,
    /// Writes handed to the transport.
    pub writes_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Transactions on disk.
    pub commits: u64,
    /// Records ever written to the data directory, in this life and before.
    pub records_ever: u64,
    /// Messages sent to other peers, by kind.
    pub sent: Vec<(String, u64)>,
    /// Messages received from other peers, by kind.
    pub received: Vec<(String, u64)>,
    /// Moments worth counting, in the protocol's words.
    pub notes: Vec<(String, u64)>,
}
