//! Peers that peers tell each other of, and which addresses are worth telling.

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId as NetworkId};
use serde::{Deserialize, Serialize};

use super::handshake::{addresses_from, addresses_to};
use super::limits::RECORDS_MAX;
use crate::address_book::bare;
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

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub(crate) address: Multiaddr,
    /// Whether it was reached there; else it came from there.
    pub(crate) dialed: bool,
}

impl Remote {
    /// Puts the addresses of the peer at this end in order: those by which it is known to be reached come first.
    pub(crate) fn sort(&self, info: &mut PeerInfo) {
        let reached = self.dialed.then(|| bare(&self.address));
        let host = self.address.iter().next();
        info.addresses.sort_by_key(|address| {
            (reached.as_ref() != Some(&bare(address)), address.iter().next() != host)
        });
        info.reached_at = reached;
    }
}

/// Whether others could dial an address: it says which host, and which port of it.
pub(crate) fn leads_somewhere(address: &Multiaddr) -> bool {
    let leads = |part: Protocol<'_>| match part {
        Protocol::Ip4(ip) => !ip.is_unspecified(),
        Protocol::Ip6(ip) => !ip.is_unspecified(),
        Protocol::Tcp(port) | Protocol::Udp(port) => port != 0,
        _ => true,
    };
    let is_port = |part| matches!(part, Protocol::Tcp(_) | Protocol::Udp(_));
    address.iter().all(leads) && address.iter().any(is_port)
}

/// The addresses to tell others of: loopback ones only where there is nothing else.
pub(crate) fn worth_telling(addresses: &[Multiaddr]) -> Vec<Multiaddr> {
    let far = reachable(addresses, true);
    if far.is_empty() { addresses.to_vec() } else { far }
}

/// The addresses that mean something over there: loopback ones only on the same machine.
pub(crate) fn reachable(addresses: &[Multiaddr], far: bool) -> Vec<Multiaddr> {
    addresses.iter().filter(|address| !far || !is_loopback(address)).cloned().collect()
}
