//! What a peer is told when it starts.

use std::path::PathBuf;
use std::time::Duration;

use libp2p::Multiaddr;
use sigmalock_core::Span;
pub use sigmalock_protocols::agreed::Beginning;
pub use sigmalock_protocols::catalogue::{Membership, ProtocolName};
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
    /// Whether peers agree on who is in. The same in the whole swarm. None is fixed once and for all here.
    pub membership: Membership,
    /// How locks are guarded. The same in the whole swarm.
    pub protocol: ProtocolName,
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
    pub injection: Option<FaultInjection>,
}

/// How long a member may be silent.
const DEAD_AFTER: Span = Span::from_secs(30);
/// The longest lease.
const LEASE_MAX: Span = Span::from_secs(15);
/// Hand-overs among the users of one peer before the swarm's queue goes first.
const HAND_OVERS_MAX: u32 = 16;
/// Up to so many peers, everybody talks to everybody.
const MESH_MAX: usize = 64;
/// Members always do, as far as there is room for sessions.
const AGREED_MESH_MAX: usize = 1_024;

impl Config {
    /// A host that keeps nothing, listens nowhere and looks for nobody, with the defaults of a swarm.
    #[must_use]
    pub fn new(swarm_key: SwarmKey, membership: Membership) -> Self {
        Self {
            name: None,
            listen: Vec::new(),
            advertise: Vec::new(),
            join: Vec::new(),
            membership,
            protocol: ProtocolName::Sigma,
            beginning: Beginning::Join,
            dead_after: DEAD_AFTER,
            data: None,
            swarm_key,
            role: Role::Host,
            quorum: Quorum::NINE_SIX,
            lease_max: LEASE_MAX,
            hand_overs_max: HAND_OVERS_MAX,
            mdns: false,
            relay: false,
            mesh_max: match membership {
                Membership::Agreed => AGREED_MESH_MAX,
                Membership::Open | Membership::Fixed => MESH_MAX,
            },
            injection: None,
        }
    }

    /// Whether nobody can ever meet this peer: it listens nowhere, and looks for nobody.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.listen.is_empty() && self.join.is_empty() && !self.mdns
    }
}

/// What happens to the messages that a peer sends, on top of what the network does to them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FaultInjection {
    /// Each frame is late by something between the two. The order is kept.
    pub delay: (Duration, Duration),
    /// So many of the frames of protocol messages are lost, from 0 to 1.
    pub loss: f64,
}
