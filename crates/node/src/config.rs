//! What a peer is told when it starts.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use libp2p::Multiaddr;
use sigmalock_core::Span;
pub use sigmalock_protocols::agreed::Beginning;
use sigmalock_protocols::parts::Quorum;

use crate::key::SwarmKey;
pub use crate::link::Role;
use crate::names::PeerName;

/// How a peer takes part in a swarm.
#[derive(Debug, Clone)]
pub struct Config {
    /// What people call this peer. Nothing is decided by it.
    pub name: Option<PeerName>,
    /// Where to listen.
    pub listen: Vec<Multiaddr>,
    /// Where others are told to find it; empty: where it listens.
    pub advertise: Vec<Multiaddr>,
    /// Peers to begin with.
    pub join: Vec<Multiaddr>,
    /// Whether peers agree on who is in. The same in the whole swarm.
    pub membership: Membership,
    /// With agreed membership: how this peer comes into a swarm. One that has been in a swarm before goes on with
    /// that, and a client only watches, whatever this says.
    pub beginning: Beginning,
    /// With agreed membership: a member that nobody reached for so long is voted out.
    pub dead_after: Span,
    /// Where identity, votes, queues and token floors are kept. `None`: nowhere, the peer is ephemeral.
    pub data: Option<PathBuf>,
    /// The secret that all peers of the swarm share: there is none without.
    pub swarm_key: SwarmKey,
    /// Whether it hosts replicas.
    pub role: Role,
    /// With open membership: replicas per name, and votes it takes to hold a lock. The same in the whole
    /// swarm.
    pub quorum: Quorum,
    /// The longest lease. The same in the whole swarm.
    pub lease_max: Span,
    /// How often in a row a lock is handed on among this peer's own users before the swarm's queue goes
    /// first; the tokens of one grant. The same in the whole swarm.
    pub hand_overs_max: u32,
    /// Whether to look for peers on the local network.
    pub mdns: bool,
    /// Whether to reach, and be reached by, peers behind NAT by way of relays.
    pub relay: bool,
    /// Up to so many peers, every peer keeps a session with every other; above, only with those it
    /// needs, found by Kademlia.
    pub mesh_max: usize,
    /// Makes this peer's own messages late, and some of them vanish: for laboratories. `None`, as
    /// everywhere else, costs nothing.
    pub weather: Option<Weather>,
}

impl Config {
    /// Whether nobody can ever meet this peer: it listens nowhere, and looks for nobody.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.listen.is_empty() && self.join.is_empty() && !self.mdns
    }
}

/// How peers come to know who hosts what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// They go by whom they see: replicas are hosted by hash, and hosts without memory abstain. Two halves
    /// of a cut network may each take themselves for the whole.
    Open,
    /// They vote on who is in, one change after the other, and votes of locks are counted in what they
    /// agreed on.
    Agreed,
}

impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Agreed => "agreed",
        })
    }
}

/// What happens to the messages that a peer sends, on top of what the network does to them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weather {
    /// Each frame is late by something between the two. The order is kept.
    pub delay: (Duration, Duration),
    /// So many of the frames of protocol messages are lost, from 0 to 1.
    pub loss: f64,
}
