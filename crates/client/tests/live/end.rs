//! How sessions end, and what is left of them: nothing.

use std::time::{Duration, Instant};

use sigmalock::{AcquireError, Client, ConnectError, ConnectOptions, ReleaseError};
use tokio::time::timeout;

use crate::peer::Peer;

const SOON: Duration = Duration::from_secs(5);
/// What fail-over may take while the peer lives.
const FAIL_OVER: Duration = Duration::from_millis(200);

/// A client with a thread and a runtime of its own. Dropping the runtime closes its sockets without a word,
/// as a killed process does.
fn holder(address: String, name: &'static str) -> tokio::runtime::Runtime {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (held, is_held) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        let client = Client::connect(&address).await.unwrap();
        let _guard = client.lock(name).acquire().await.unwrap();
        held.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    is_held.recv().unwrap();
    runtime
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_closes_lets_the_next_in_within_the_time_of_fail_over() {
    let peer = Peer::start().await;
    for address in [peer.unix(), peer.tcp()] {
        let runtime = tokio::task::spawn_blocking(move || holder(address, "/a")).await.unwrap();
        let client = peer.client().await;
        let waiting = tokio::spawn(async move { client.lock("/a").acquire().await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!waiting.is_finished());
        let killed = Instant::now();
        runtime.shutdown_background();
        drop(waiting.await.unwrap().unwrap());
        assert!(killed.elapsed() < FAIL_OVER, "{:?}", killed.elapsed());
    }
}

#[tokio::test]
async fn a_client_that_is_dropped_ends_its_session_but_not_while_a_guard_lives() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let guard = client.lock("/a").acquire().await.unwrap();
    drop(client);
    let other = peer.client().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!guard.is_lost());
    assert!(matches!(other.lock("/a").try_acquire().await, Err(AcquireError::Busy)));
    drop(guard);
    drop(timeout(SOON, other.lock("/a").acquire()).await.unwrap().unwrap());
    drop(other);
    let all_ended = async {
        while peer.server.idle_for().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, all_ended).await.expect("the sessions are over");
}

#[tokio::test]
async fn when_the_server_stops_guards_are_lost_and_calls_are_told_why() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let guard = client.lock("/a").acquire().await.unwrap();
    let other = client.lock("/b").acquire().await.unwrap();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.lock("/a").acquire().await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let signal = guard.lost_signal();
    let begun = Instant::now();
    peer.server.stop().await;
    timeout(FAIL_OVER, signal.lost()).await.expect("lost at once");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(guard.is_lost() && other.is_lost());
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(matches!(other.check(), Err(ReleaseError::Lost)));
    let answer = timeout(SOON, waiting).await.unwrap().unwrap();
    assert!(
        matches!(&answer, Err(AcquireError::Disconnected { reason }) if reason.contains("stopping")),
        "{answer:?}"
    );
    assert!(guard.release().await.is_err());
    assert!(matches!(client.lock("/a").acquire().await, Err(AcquireError::Disconnected { .. })));
    assert!(!peer.dir.0.join("peer.sock").exists(), "the socket is removed");
}

/// Whoever was told to stop by its peer may not have heard that yet.
#[tokio::test]
async fn when_the_server_stops_what_was_held_ends_with_its_lease() {
    let peer = Peer::start().await;
    let ttl = Duration::from_secs(2);
    let client = peer.client().await;
    let guard = client.lock("/a").ttl(ttl).acquire().await.unwrap();
    let until = guard.deadline();
    let Peer { node, server, dir } = peer;
    let unix = server.unix().unwrap().to_owned();
    server.stop().await;
    let config = sigmalock_api::server::ServerConfig { unix: Some(unix), ..Default::default() };
    let server = sigmalock_api::server::Server::start(node.handle(), config).await.unwrap();
    let again = Peer { node, server, dir };
    let next = again.client().await;
    assert!(matches!(next.lock("/a").try_acquire().await, Err(AcquireError::Busy)));
    drop(next.lock("/a").wait(SOON).acquire().await.unwrap());
    // Read from the clock twice.
    let at_least = until.checked_sub(Duration::from_millis(1)).unwrap();
    assert!(Instant::now() >= at_least, "{:?} too soon", until - Instant::now());
    assert!(until.elapsed() < FAIL_OVER, "{:?}", until.elapsed());
}

#[tokio::test]
async fn when_the_node_leaves_sessions_are_told() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let guard = client.lock("/a").acquire().await.unwrap();
    peer.node.leave().await.unwrap();
    timeout(SOON, guard.lost()).await.expect("told");
    let answer = client.lock("/a").acquire().await;
    assert!(matches!(answer, Err(AcquireError::Disconnected { .. })), "{answer:?}");
}

#[tokio::test]
async fn a_client_connects_anew_when_its_peer_is_back() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let guard = client.lock("/a").acquire().await.unwrap();
    let Peer { node, server, dir } = peer;
    let unix = server.unix().unwrap().to_owned();
    server.stop().await;
    timeout(SOON, guard.lost()).await.unwrap();
    let config = sigmalock_api::server::ServerConfig { unix: Some(unix), ..Default::default() };
    let _server = sigmalock_api::server::Server::start(node.handle(), config).await.unwrap();
    drop(client.lock("/b").acquire().await.unwrap());
    client.status().await.unwrap();
    drop(dir);
}

#[tokio::test]
async fn nobody_there_is_said_plainly() {
    for address in ["unix:/nowhere/peer.sock", "127.0.0.1:1"] {
        let answer = Client::connect(address).await;
        assert!(matches!(answer, Err(ConnectError::Unreachable { .. })), "{answer:?}");
    }
    let answer = Client::connect("no address").await;
    assert!(matches!(answer, Err(ConnectError::BadAddress { .. })), "{answer:?}");
}

/// A process that dies may have left somebody inside; if it said so, the lock ends with its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_gives_everything_back_or_holds_it_until_the_lease_ends() {
    let peer = Peer::start().await;
    let ttl = Duration::from_secs(2);
    for hold in [false, true] {
        let address = peer.unix();
        let runtime = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async move {
                let options = ConnectOptions::new().hold_if_cut(hold);
                let client = options.connect(&address).await.unwrap();
                let guard = client.lock("/a").ttl(ttl).acquire().await.unwrap();
                // Forgotten, as by a killed process: it says nothing when it ends.
                std::mem::forget((guard, client));
            });
            runtime
        })
        .await
        .unwrap();
        let next = peer.client().await;
        let cut = Instant::now();
        runtime.shutdown_background();
        drop(next.lock("/a").wait(SOON).acquire().await.unwrap());
        let waited = cut.elapsed();
        assert!(if hold { waited > ttl / 2 } else { waited < FAIL_OVER }, "{hold}: {waited:?}");
        assert!(waited < ttl + FAIL_OVER, "{waited:?}");
        // Who ends the session in order gives everything back.
        let options = ConnectOptions::new().hold_if_cut(hold);
        let client = options.connect(&peer.unix()).await.unwrap();
        let guard = client.lock("/a").ttl(ttl).acquire().await.unwrap();
        let begin = Instant::now();
        drop((guard, client));
        drop(next.lock("/a").wait(SOON).acquire().await.unwrap());
        assert!(begin.elapsed() < FAIL_OVER, "{:?}", begin.elapsed());
    }
}
