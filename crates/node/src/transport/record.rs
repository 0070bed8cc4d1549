//! Peers that peers tell each other of, and which addresses are worth telling.

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId as NetworkId};
use serde::{Deserialize, Serialize};

use super::handshake::{addresses_from, addresses_to};
use super::limits::RECORDS_MAX;
use crate::link::{PeerInfo, Role};
use crate::wire::{Frames, Kind};

/// A peer that another one has a session with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    network: Vec<u8>,
    addresses: Vec<Vec<u8>>,
    role: Role,
}

impl Record {
    /// What may be told of a peer to somebody on the same machine, or farther away.
    pub(crate) fn new(info: &PeerInfo, far: bool) -> Self {
        Self {
            network: info.network.to_bytes(),
            addresses: addresses_to(&reachable(&info.addresses, far)),
            role: info.role,
        }
    }

    /// Whom it is about and where that peer is, if it is well formed and can be dialed.
    pub(crate) fn read(self) -> Option<(NetworkId, Vec<Multiaddr>, Role)> {
        let network = NetworkId::from_bytes(&self.network).ok()?;
        let addresses = addresses_from(self.addresses);
        (!addresses.is_empty()).then_some((network, addresses, self.role))
    }
}

/// The frame that tells of these.
pub(crate) fn frame_of(records: &[Record]) -> Vec<u8> {
    let mut frames = Frames::new();
    let _ = frames.push(Kind::Peers, &&records[..records.len().min(RECORDS_MAX)]);
    frames.take()
}

/// Whether an address means the machine it is used on.
pub(crate) fn is_loopback(address: &Multiaddr) -> bool {
    match address.iter().next() {
        Some(Protocol::Ip4(ip)) => ip.is_loopback(),
        Some(Protocol::Ip6(ip)) => ip.is_loopback(),
        _ => false,
    }
}

/// The addresses that mean something over there: loopback ones only on the same machine.
pub(crate) fn reachable(addresses: &[Multiaddr], far: bool) -> Vec<Multiaddr> {
    addresses.iter().filter(|address| !far || !is_loopback(address)).cloned().collect()
}
