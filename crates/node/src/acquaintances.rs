//! Where the peers of a former life were: a restarted peer looks for them there, beside where it is told to.
//!
//! So that whoever founded a swarm, or joined it through a peer that is gone, finds it again. A file of
//! addresses, one a line; nothing depends on what is in it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId as NetworkId};

use crate::handle::Handle;
use crate::link::Role;

/// Its name in the data directory.
const FILE: &str = "peers";
/// So many addresses are kept.
const KEPT_MAX: usize = 64;
/// How often to look whether they have changed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Who was there, and where. What makes no sense is passed over.
pub(crate) fn read(dir: &Path) -> Vec<(NetworkId, Multiaddr)> {
    let text = std::fs::read_to_string(dir.join(FILE)).unwrap_or_default();
    let known = text.lines().take(KEPT_MAX).filter_map(|line| {
        let mut address: Multiaddr = line.parse().ok()?;
        match address.pop()? {
            Protocol::P2p(network) => Some((network, address)),
            _ => None,
        }
    });
    known.collect()
}

/// Keeps the file as the swarm is, until the peer stops. One that is alone leaves it as it was.
pub(crate) async fn keep(handle: Handle, dir: PathBuf) {
    let mut written = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let peers = handle.peers().await;
        if peers.is_empty() {
            return;
        }
        let others = peers.iter().filter(|peer| !peer.is_self && peer.role == Role::Host);
        let lines = others.filter(|peer| peer.up_for.is_some()).flat_map(|peer| {
            let whole = |address: &String| match address.contains("/p2p/") {
                true => address.clone(),
                false => format!("{address}/p2p/{}", peer.network),
            };
            peer.addresses.iter().map(whole)
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
        let network = NetworkId::random();
        let good = format!("/ip4/192.0.2.7/tcp/7421/p2p/{network}");
        let lines = [good.as_str(), "/ip4/192.0.2.7/tcp/7421", "nonsense", ""];
        write(&folder.0, &lines.iter().map(ToString::to_string).collect()).unwrap();
        let address = "/ip4/192.0.2.7/tcp/7421".parse().unwrap();
        assert_eq!(read(&folder.0), [(network, address)]);
    }
}
