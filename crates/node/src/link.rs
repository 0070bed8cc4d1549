//! What passes between the transport, which knows sockets, and the driver, which knows the protocol.

use std::collections::BTreeSet;

use libp2p::{Multiaddr, PeerId as NetworkId};
use sigmalock_core::{Incarnation, Key, PeerId};
use tokio::sync::{mpsc, oneshot};

use crate::names::PeerName;
use crate::wire::Kind;

/// How many events may wait for the driver; then the sessions wait too.
pub(crate) const EVENTS_MAX: usize = 1_024;

/// A session with a peer. A new number each time one begins, so that what is said of an old one is
/// not taken for the new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionId(pub(crate) u64);

/// What a peer does in the swarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Role {
    /// It hosts replicas.
    Host,
    /// It only uses the swarm.
    ClientOnly,
}

/// Who a peer is, as its handshake proved.
#[derive(Debug, Clone)]
pub(crate) struct PeerInfo {
    /// Its name in protocols.
    pub(crate) peer: PeerId,
    /// Its name in libp2p: its public key.
    pub(crate) network: NetworkId,
    /// Its place in the key space: the hash that Kademlia goes by.
    pub(crate) key: Key,
    /// What it does.
    pub(crate) role: Role,
    /// Its present life.
    pub(crate) incarnation: Incarnation,
    /// Where it says that it can be reached, and first of all where it was.
    pub(crate) addresses: Vec<Multiaddr>,
    /// The address by which this peer reached it; `None` if it came by itself.
    pub(crate) reached_at: Option<Multiaddr>,
    /// What it calls itself.
    pub(crate) name: Option<PeerName>,
    /// Which swarm it belongs to; 0: none yet, or nobody founds any.
    pub(crate) origin: u64,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parting {
    /// The peer said that it leaves for good.
    Goodbye,
    /// The connection broke, and could not be made anew at once: a killed process, a reset.
    Closed,
    /// Nothing was heard of it for too long.
    Silent,
    /// It sent what no peer of this version sends.
    Nonsense,
}

/// What the transport tells the driver.
#[derive(Debug)]
pub(crate) enum Event {
    /// A session began: both sides proved that they belong to the swarm.
    Up {
        /// The session.
        session: SessionId,
        /// With whom. Boxed: frames, of which there are many more, are smaller.
        info: Box<PeerInfo>,
        /// Where to put what is for it.
        outbox: Outbox,
    },
    /// A frame of the driver's kinds arrived.
    Frame {
        /// In which session.
        session: SessionId,
        /// From whom.
        from: PeerId,
        /// Its kind.
        kind: Kind,
        /// Its body.
        body: Vec<u8>,
    },
    /// A session ended.
    Down {
        /// The session.
        session: SessionId,
        /// With whom.
        peer: PeerId,
        /// How.
        parting: Parting,
    },
    /// Somebody refused us, because another peer with our identity is connected there.
    Twin,
    /// A peer has proven who it is, so it lives; and something keeps it from having a session with this one: what, and in words.
    Kept(PeerId, Obstacle, String),
}

/// Why there is no session with a peer that lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// One has refused the other.
    Refusal,
    /// Large packets get lost between them.
    Size,
}

/// What the driver asks of the transport.
#[derive(Debug)]
pub(crate) enum Command {
    /// Finds the peers closest to a place in the key space, by Kademlia, and opens sessions to them.
    /// Answered when that is done, or has taken too long.
    LookUp {
        /// The bytes whose hash is the place.
        place: Vec<u8>,
        /// Tells that it is over.
        done: oneshot::Sender<()>,
    },
    /// Looks for a peer where it was in a former life.
    Meet {
        /// Whom.
        peer: NetworkId,
        /// Where.
        address: Multiaddr,
    },
    /// These belong to the swarm: they are looked for as long as they do.
    Seek(BTreeSet<PeerId>),
    /// Ends all sessions, because this process did not run for a while and what waits in its sockets
    /// may be older than messages may get.
    Reset,
    /// Ends a session whose peer sent what makes no sense.
    Expel(SessionId),
    /// Says goodbye to everybody and ends.
    Leave,
    /// Times so many round trips of a bare stream to a peer.
    Measure {
        /// To whom.
        peer: PeerId,
        /// How many.
        rounds: u32,
        /// The times, in nanoseconds, or why not.
        done: oneshot::Sender<Result<Vec<u64>, String>>,
    },
    /// Where this peer listens, and whom it refused lately.
    Describe(oneshot::Sender<Description>),
}

/// The transport about itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Description {
    /// Where it listens.
    pub(crate) listening: Vec<Multiaddr>,
    /// Where others are told to find it.
    pub(crate) advertised: Vec<Multiaddr>,
    /// The latest refusals, newest last, in words.
    pub(crate) refusals: Vec<String>,
    /// How many peers Kademlia's table has.
    pub(crate) table_len: usize,
}

/// Bytes for a peer: whole frames. Bounded by bytes; a peer that does not take them is too slow, and
/// its session ends.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    frames: mpsc::UnboundedSender<Vec<u8>>,
    waiting: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

/// The session's end of an [`Outbox`].
#[derive(Debug)]
pub(crate) struct OutboxReader {
    frames: mpsc::UnboundedReceiver<Vec<u8>>,
    waiting: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

/// So many bytes may wait for one peer.
pub(crate) const OUTBOX_BYTES_MAX: usize = 64 << 20;

impl Outbox {
    /// Both ends.
    pub(crate) fn new() -> (Self, OutboxReader) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        (
            Self { frames: sender, waiting: std::sync::Arc::clone(&waiting) },
            OutboxReader { frames: receiver, waiting },
        )
    }

    /// Hands whole frames over. False if the session has ended, or must: too much waits already.
    pub(crate) fn send(&self, frames: Vec<u8>) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        if self.waiting.fetch_add(frames.len(), Relaxed) > OUTBOX_BYTES_MAX {
            return false;
        }
        self.frames.send(frames).is_ok()
    }
}

impl OutboxReader {
    /// The next frames; `None` when the driver has let go of the session.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        let frames = self.frames.recv().await?;
        self.took(&frames);
        Some(frames)
    }

    /// More, if there are any already.
    pub(crate) fn try_next(&mut self) -> Option<Vec<u8>> {
        let frames = self.frames.try_recv().ok()?;
        self.took(&frames);
        Some(frames)
    }

    /// How much waits, for whoever watches while this end is busy writing.
    pub(crate) fn gauge(&self) -> Gauge {
        Gauge(std::sync::Arc::clone(&self.waiting))
    }

    fn took(&self, frames: &[u8]) {
        self.waiting.fetch_sub(frames.len(), std::sync::atomic::Ordering::Relaxed);
    }
}

/// How many bytes wait in an [`Outbox`].
#[derive(Debug)]
pub(crate) struct Gauge(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl Gauge {
    /// Whether more waits than may.
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed) > OUTBOX_BYTES_MAX
    }
}
