//! Who the peers of a former life were, and where: a restarted peer looks for them there, beside where it is told to,
//! and can tell people who is missing.
//!
//! So that whoever founded a swarm, or joined it through a peer that is gone, finds it again. A file of addresses, one a
//! line, each with the name of its peer; nothing depends on what is in it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId as NetworkId};
use sigmalock_core::Incarnation;

use crate::handle::Handle;
use crate::link::{PeerInfo, Role};
use crate::names::PeerName;

/// Its name in the data directory.
const FILE: &str = "peers";
/// So many addresses are kept, those of connected peers first.
const KEPT_MAX: usize = 1_024;
/// How often to look whether they have changed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What is known of a peer, be it there or not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contact {
    pub(crate) network: NetworkId,
    pub(crate) name: Option<PeerName>,
    /// Where it can be reached, or could.
    pub(crate) addresses: Vec<Multiaddr>,
    pub(crate) role: Role,
    /// The last life that it was met in; `None`: that was in a former life of this peer.
    pub(crate) incarnation: Option<Incarnation>,
}

impl From<&PeerInfo> for Contact {
    fn from(info: &PeerInfo) -> Self {
        let mut addresses = info.addresses.clone();
        if let Some(reached_at) = &info.reached_at {
            addresses.retain(|address| bare(address) != *reached_at);
            addresses.insert(0, reached_at.clone());
        }
        Self {
            network: info.network,
            name: info.name.clone(),
            addresses,
            role: info.role,
            incarnation: Some(info.incarnation),
        }
    }
}

/// An address without the peer that it leads to.
pub(crate) fn bare(address: &Multiaddr) -> Multiaddr {
    let mut bare = address.clone();
    match bare.pop() {
        Some(Protocol::P2p(_)) | None => bare,
        Some(_) => address.clone(),
    }
}

/// Who was there, and where. What makes no sense is passed over.
pub(crate) fn read(dir: &Path) -> Vec<Contact> {
    let text = std::fs::read_to_string(dir.join(FILE)).unwrap_or_default();
    let mut known: Vec<Contact> = Vec::new();
    for (network, address, name) in text.lines().take(KEPT_MAX).filter_map(parse) {
        match known.iter_mut().find(|other| other.network == network) {
            Some(other) => other.addresses.push(address),
            None => known.push(Contact {
                network,
                name,
                addresses: vec![address],
                role: Role::Host,
                incarnation: None,
            }),
        }
    }
    known
}

fn parse(line: &str) -> Option<(NetworkId, Multiaddr, Option<PeerName>)> {
    let (address, name) = line.split_once(' ').unwrap_or((line, ""));
    let mut address: Multiaddr = address.parse().ok()?;
    match address.pop()? {
        Protocol::P2p(network) => Some((network, address, PeerName::tamed(name))),
        _ => None,
    }
}

/// Keeps the file as the swarm is, members that are silent included, until the peer stops. One that knows nobody leaves
/// it as it was.
pub(crate) async fn keep(handle: Handle, dir: PathBuf) {
    let mut written = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let peers = handle.peers().await;
        if peers.is_empty() {
            return;
        }
        let others = peers.iter().filter(|peer| !peer.is_self && peer.role == Role::Host);
        let lines = others.filter(|peer| !peer.network.is_empty()).flat_map(|peer| {
            let name = peer.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let network = &peer.network;
            peer.addresses.iter().map(move |address| format!("{address}/p2p/{network}{name}"))
        });
        let lines: BTreeSet<String> = lines.take(KEPT_MAX).collect();
        if lines.is_empty() || lines == written {
            continue;
        }
        match write(&dir, &lines) {
            Ok(()) => written = lines,
            Err(error) => tracing::warn!("the addresses of others cannot be kept: {error}"),
        }
    }
}

/// Under another name first, so that there is never half a file.
fn write(dir: &Path, lines: &BTreeSet<String>) -> io::Result<()> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let temporary = dir.join("peers.new");
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, dir.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::Folder;

    #[test]
    fn what_was_written_is_read_and_nonsense_is_passed_over() {
        let folder = Folder::new();
        assert_eq!(read(&folder.0), []);
        let [named, nameless] = [(); 2].map(|()| NetworkId::random());
        let lines = [
            format!("/ip4/192.0.2.7/tcp/7421/p2p/{named} render-7"),
            format!("/ip4/192.0.2.8/tcp/7421/p2p/{named} render-7"),
            format!("/ip4/192.0.2.9/tcp/7421/p2p/{nameless}"),
            "/ip4/192.0.2.7/tcp/7421".to_owned(),
            "nonsense".to_owned(),
            String::new(),
        ];
        write(&folder.0, &lines.into()).unwrap();
        let at = |host: u8| format!("/ip4/192.0.2.{host}/tcp/7421").parse().unwrap();
        let known = |network, name: &str, addresses| Contact {
            network,
            name: PeerName::tamed(name),
            addresses,
            role: Role::Host,
            incarnation: None,
        };
        let wanted =
            [known(named, "render-7", vec![at(7), at(8)]), known(nameless, "", vec![at(9)])];
        assert_eq!(read(&folder.0), wanted);
    }

    #[test]
    fn a_name_that_was_tampered_with_is_made_harmless() {
        let network = NetworkId::random();
        let line = format!("/ip4/192.0.2.7/tcp/7421/p2p/{network} \x1b[2Jx y");
        let (_, _, name) = parse(&line).unwrap();
        assert_eq!(name.unwrap().as_str(), "2Jx_y");
    }
}
