//! A peer in this process, alone in its swarm, with its API on a Unix socket and on TCP.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use sigmalock::{Client, ConnectOptions};
use sigmalock_api::server::{BindError, Server, ServerConfig};
use sigmalock_core::Span;
use sigmalock_node::key::SwarmKey;
use sigmalock_node::{Beginning, Config, Membership, Node};

pub(crate) struct Peer {
    pub(crate) node: Node,
    pub(crate) server: Server,
    pub(crate) dir: Dir,
}

impl Peer {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// One that grants for so long.
    pub(crate) async fn with_lease_max(lease_max: Span) -> Self {
        Self::start_as(Config { lease_max, ..config() }, |_| {}).await.unwrap()
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::try_start_with(change).await.unwrap()
    }

    pub(crate) async fn try_start_with(
        change: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, BindError> {
        Self::start_as(config(), change).await
    }

    async fn start_as(
        config: Config, change: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, BindError> {
        let node = Node::start(config).await.unwrap();
        let dir = Dir::new();
        let mut served = ServerConfig {
            unix: Some(dir.0.join("peer.sock")),
            tcp: Some("127.0.0.1:0".parse().unwrap()),
            ..ServerConfig::default()
        };
        change(&mut served);
        let server = Server::start(node.handle(), served).await?;
        Ok(Self { node, server, dir })
    }

    pub(crate) fn unix(&self) -> String {
        format!("unix:{}", self.server.unix().unwrap().display())
    }

    pub(crate) fn tcp(&self) -> String {
        self.server.tcp().unwrap().to_string()
    }

    pub(crate) async fn client(&self) -> Client {
        self.labelled("test").await
    }

    pub(crate) async fn labelled(&self, label: &str) -> Client {
        ConnectOptions::new().label(label).connect(&self.unix()).await.unwrap()
    }
}

pub(crate) fn config() -> Config {
    let listen = vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()];
    let plain = Config::new(SwarmKey::generate().unwrap(), Membership::Agreed);
    Config { listen, beginning: Beginning::Found, ..plain }
}

/// A directory that is gone when this is.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("sigmalock-live-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
