//! Addresses at a relay, at which this peer wants to be reached. A relay takes nobody in before it knows that they belong
//! to the swarm, so there is a session with it first.

use std::time::Duration;

use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId as NetworkId};
use tokio::time::Instant;

/// How long after the session has begun, and after each attempt, the relay is asked: it may not have let this peer in yet.
const PAUSE: Duration = Duration::from_millis(300);

/// See the module.
#[derive(Debug)]
pub(super) struct Berth {
    pub(super) address: Multiaddr,
    pub(super) relay: NetworkId,
    /// What listens there, as long as it does.
    listener: Option<ListenerId>,
    at: Instant,
}

impl Berth {
    /// `None`: this is no address at a relay that says who that is.
    pub(super) fn new(address: &Multiaddr) -> Option<Self> {
        let mut before = None;
        for part in address {
            match (part, before) {
                (Protocol::P2pCircuit, Some(Protocol::P2p(relay))) => {
                    let address = address.clone();
                    return Some(Self { address, relay, listener: None, at: Instant::now() });
                }
                (part, _) => before = Some(part),
            }
        }
        None
    }

    /// Where the relay is.
    pub(super) fn relay_address(&self) -> Multiaddr {
        self.address.iter().take_while(|part| *part != Protocol::P2pCircuit).collect()
    }

    /// When the relay is to be asked, if it is.
    pub(super) fn due(&self) -> Option<Instant> {
        self.listener.is_none().then_some(self.at)
    }

    /// The relay is being asked, or cannot be.
    pub(super) fn asked(&mut self, listener: Option<ListenerId>) {
        self.listener = listener;
        self.at = Instant::now() + PAUSE;
    }

    /// Whether that listener was this one's; then the relay is asked again, after a while.
    pub(super) fn closed(&mut self, listener: ListenerId) -> bool {
        let mine = self.listener == Some(listener);
        if mine {
            self.asked(None);
        }
        mine
    }
}
