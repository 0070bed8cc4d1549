//! Where the API is served, and where it is not.

use std::os::unix::fs::PermissionsExt;

use sigmalock_api::server::{BindError, CONNECTIONS_MAX, Server, ServerConfig};
use sigmalock_node::Node;
use tokio::net::UnixStream;

use crate::peer::{Dir, Peer, config};

#[tokio::test]
async fn the_socket_is_for_its_user_only_and_belongs_to_one_peer() {
    let peer = Peer::start().await;
    let path = peer.server.unix().unwrap().to_owned();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = ServerConfig { unix: Some(path.clone()), ..ServerConfig::default() };
    let answer = Server::start(peer.node.handle(), again).await;
    assert!(matches!(answer, Err(BindError::UnixInUse { .. })), "{answer:?}");
    peer.client().await.status().await.unwrap();
}

#[tokio::test]
async fn a_socket_is_replaced_only_if_nobody_answers_on_it() {
    let node = Node::start(config()).await.unwrap();
    let dir = Dir::new();
    let path = dir.0.join("peer.sock");
    let serve = || {
        let config = ServerConfig { unix: Some(path.clone()), ..ServerConfig::default() };
        Server::start(node.handle(), config)
    };
    // Somebody else's, and alive.
    let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert!(matches!(serve().await, Err(BindError::UnixInUse { .. })));
    assert!(path.exists());
    // Dead: the file stays behind.
    drop(other);
    assert!(path.exists());
    let server = serve().await.unwrap();
    server.stop().await;
    assert!(!path.exists());
    // No socket at all.
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(serve().await, Err(BindError::NoSocket { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test]
async fn other_machines_are_served_only_if_that_is_said() {
    let node = Node::start(config()).await.unwrap();
    let mut config =
        ServerConfig { tcp: Some("0.0.0.0:0".parse().unwrap()), ..ServerConfig::default() };
    let answer = Server::start(node.handle(), config.clone()).await;
    assert!(matches!(answer, Err(BindError::NotLoopback { .. })), "{answer:?}");
    config.remote = true;
    let server = Server::start(node.handle(), config).await.unwrap();
    let taken = ServerConfig {
        tcp: Some(format!("127.0.0.1:{}", server.tcp().unwrap().port()).parse().unwrap()),
        ..ServerConfig::default()
    };
    let answer = Server::start(node.handle(), taken).await;
    assert!(matches!(answer, Err(BindError::TcpInUse { .. })), "{answer:?}");
}

#[tokio::test]
async fn one_connection_too_many_is_closed_and_the_others_are_served() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    // Both ends of each are in this process.
    if limit.current.is_some_and(|current| current < 2 * CONNECTIONS_MAX as u64 + 200) {
        eprintln!("SKIPPED, NOTHING TESTED: this process may not open so many files: {limit:?}");
        return;
    }
    let peer = Peer::start().await;
    let client = peer.client().await;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS_MAX + 10 {
        connections.push(UnixStream::connect(peer.server.unix().unwrap()).await.unwrap());
    }
    tokio::task::yield_now().await;
    drop(client.lock("/a").acquire().await.unwrap());
    sigmalock::Client::connect(&peer.unix()).await.unwrap_err();
    drop(connections);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    sigmalock::Client::connect(&peer.unix()).await.unwrap();
}
