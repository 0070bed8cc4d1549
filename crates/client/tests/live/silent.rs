//! A program that does not run, and did not read its answers before.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use sigmalock::{AcquireError, Client};
use sigmalock_api::API_VERSION;
use sigmalock_api::server::{Server, ServerConfig};
use sigmalock_api::v1::SessionRequest;
use sigmalock_api::v1::locks_client::LocksClient;
use sigmalock_api::v1::session_request::Kind as Ask;
use sigmalock_core::Span;
use sigmalock_node::{Config, Node};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tonic::transport::Endpoint;

use crate::peer::{Dir, Peer, config};
use crate::raw::{acquire, endless, open};

const TTL: Duration = Duration::from_secs(3);
/// So few bytes that the answers below are too many.
const WINDOW_BYTES: u32 = 1_024;

/// A holder of `/a` that reads nothing, and then stands still until the end, as if stopped by a signal: it answers nothing
/// any more, and closes nothing.
async fn hold_without_reading(peer: String, stop: oneshot::Receiver<()>, end: mpsc::Receiver<()>) {
    let endpoint = Endpoint::new(peer).unwrap().initial_stream_window_size(WINDOW_BYTES);
    let mut hold = acquire(1, "/a", 0);
    if let Some(Ask::Acquire(acquire)) = &mut hold.kind {
        acquire.ttl_ms = TTL.as_millis() as u32;
    }
    // Each of these is answered at once, by a refusal.
    let noise = (2..1_000).map(|call| acquire(call, "a b", 0));
    let asks: Vec<SessionRequest> = [open(API_VERSION), hold].into_iter().chain(noise).collect();
    let (stream, _open) = endless(asks);
    let mut client = LocksClient::new(endpoint.connect().await.unwrap());
    let _unread = client.session(stream).await.unwrap();
    let _ = stop.await;
    let _ = end.recv();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_client_loses_its_lock_though_it_had_read_nothing() {
    let peer = Peer::start().await;
    let other = peer.client().await;
    let (stop, stopped) = oneshot::channel();
    let (end, ended) = mpsc::channel();
    let address = format!("http://{}", peer.tcp());
    // On one thread of its own, so that all of it stands still with that.
    let holder = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(hold_without_reading(address, stopped, ended));
    });
    let begun = Instant::now();
    while !matches!(other.lock("/a").try_acquire().await, Err(AcquireError::Busy)) {
        assert!(begun.elapsed() < TTL, "it never holds the lock");
        sleep(Duration::from_millis(20)).await;
    }
    sleep(TTL * 2).await;
    let busy = other.lock("/a").try_acquire().await;
    assert!(matches!(busy, Err(AcquireError::Busy)), "who runs keeps its lock: {busy:?}");
    let begun = Instant::now();
    stop.send(()).unwrap();
    let within = TTL + Duration::from_secs(1);
    let guard = timeout(within, other.lock("/a").acquire()).await;
    drop(guard.unwrap_or_else(|_| panic!("held for {within:?} by who does not run")).unwrap());
    eprintln!("passed on {:?} after it was stopped", begun.elapsed());
    drop(end);
    holder.join().unwrap();
}

/// A peer gives up a connection on which nobody has answered for a minute. Whoever stands still there does not know that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_client_whose_connection_is_given_up_is_alone_until_its_lease_ends() {
    if std::env::var_os("SIGMALOCK_SOAK_SECONDS").is_none() {
        eprintln!(
            "SKIPPED, NOTHING TESTED: this takes a minute and a half (cargo xtask test --long)"
        );
        return;
    }
    let ttl = Duration::from_secs(80);
    let node = Node::start(Config { lease_max: Span::from_secs(80), ..config() }).await.unwrap();
    let dir = Dir::new();
    let unix = dir.0.join("peer.sock");
    let served = ServerConfig { unix: Some(unix.clone()), ..ServerConfig::default() };
    let _server = Server::start(node.handle(), served).await.unwrap();
    let address = format!("unix:{}", unix.display());
    let (hold, held) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let holder = std::thread::spawn({
        let address = address.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let client = Client::connect(&address).await.unwrap();
                let guard = client.lock("/a").ttl(ttl).acquire().await.unwrap();
                hold.send(guard.remaining()).unwrap();
                let _ = ended.recv();
            });
        }
    });
    let (remaining, begun) = (held.recv().unwrap(), Instant::now());
    assert!(remaining > Duration::from_secs(75), "{remaining:?}");
    let next = Client::connect(&address).await.unwrap();
    drop(next.lock("/a").acquire().await.unwrap());
    let waited = begun.elapsed();
    assert!(waited + Duration::from_millis(1) >= remaining, "{waited:?} of {remaining:?}");
    assert!(waited < ttl + Duration::from_secs(1), "{waited:?}");
    drop(end);
    holder.join().unwrap();
}
