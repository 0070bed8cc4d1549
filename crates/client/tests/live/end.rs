//! How sessions end, and what is left of them: nothing.

use std::time::{Duration, Instant};

use sigmalock::{AcquireError, Client, ConnectError, ConnectOptions, ReleaseError};
use sigmalock_api::API_VERSION;
use sigmalock_api::v1::session_response::Kind as Say;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::peer::Peer;
use crate::raw::{acquire, endless, open, raw};

const SOON: Duration = Duration::from_secs(5);
/// What fail-over may take while the peer lives.
const FAIL_OVER: Duration = Duration::from_millis(200);

/// A tunnel to a peer. At its far end something may be put in, and it may be cut.
struct Tunnel {
    address: String,
    put_in: oneshot::Sender<(Vec<u8>, bool)>,
}

async fn tunnel(peer: String) -> Tunnel {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (put_in, mut what) = oneshot::channel::<(Vec<u8>, bool)>();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far: Box<dyn Both> = match peer.strip_prefix("unix:") {
            Some(path) => Box::new(UnixStream::connect(path).await.unwrap()),
            None => Box::new(TcpStream::connect(&peer).await.unwrap()),
        };
        tokio::select! {
            _ = copy_bidirectional(&mut near, &mut far) => {}
            Ok((frame, cut)) = &mut what => {
                far.write_all(&frame).await.unwrap();
                if !cut {
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                    return;
                }
                drop(far);
                // Nothing comes out at the near end, and nobody there is told.
                std::future::pending::<()>().await;
            }
        }
    });
    Tunnel { address, put_in }
}

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

/// A frame of HTTP/2.
fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let head = [0, 0, u8::try_from(payload.len()).unwrap(), kind, 0, 0, 0, 0, stream];
    [&head, payload].concat()
}

/// However a connection or a stream ends without a word of its client: that may be inside until its lease ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_without_a_word_of_the_client_gives_nothing_back_before_the_lease_ends() {
    let (go_away, reset) = (
        |code: u8| frame(7, 0, &[0, 0, 0, 0, 0, 0, 0, code]),
        |code: u8| frame(3, 1, &[0, 0, 0, code]),
    );
    let ends = [
        ("cut", Vec::new(), true),
        ("go away: no error", go_away(0), true),
        ("go away: enhance your calm", go_away(11), true),
        ("reset: no error", reset(0), false),
        ("reset: cancelled", reset(8), false),
        ("a frame that breaks the rules", frame(0, 0, &[0]), false),
    ];
    let peer = Peer::start().await;
    let mut tried = tokio::task::JoinSet::new();
    for ((what, put_in, cut), address) in
        ends.into_iter().flat_map(|end| [(end.clone(), peer.tcp()), (end, peer.unix())])
    {
        let (name, next) = (format!("/{}", tried.len()), peer.client().await);
        tried.spawn(async move {
            let tunnel = tunnel(address.clone()).await;
            let client = Client::connect(&tunnel.address).await.unwrap();
            let lock = client.lock(&name).ttl(Duration::from_millis(1_500));
            let guard = lock.acquire().await.unwrap();
            let until = guard.deadline();
            tunnel.put_in.send((put_in, cut)).unwrap();
            drop(next.lock(&name).wait(SOON).acquire().await.unwrap());
            // Read from the clock twice.
            let late = Instant::now() + Duration::from_millis(1);
            assert!(late >= until, "{what}, {address}: {:?} too soon", until - late);
            assert!(until.elapsed() < SOON / 2, "{what}, {address}: {:?}", until.elapsed());
        });
    }
    while let Some(tried) = tried.join_next().await {
        tried.unwrap();
    }
}

/// A program may close its connection, or be rid of it, and go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_closes_its_connection_and_lives_may_be_inside_until_its_lease_ends() {
    let peer = Peer::start().await;
    let ttl = Duration::from_secs(2);
    for address in [peer.unix(), peer.tcp()] {
        // A runtime of its own: when that goes, it closes its sockets without a word.
        let (runtime, until) = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let until = runtime.block_on(async {
                let client = Client::connect(&address).await.unwrap();
                let guard = client.lock("/a").ttl(ttl).acquire().await.unwrap();
                let until = guard.deadline();
                std::mem::forget((guard, client));
                until
            });
            (runtime, until)
        })
        .await
        .unwrap();
        runtime.shutdown_background();
        let next = peer.client().await;
        drop(next.lock("/a").wait(SOON).acquire().await.unwrap());
        assert!(Instant::now() + Duration::from_millis(1) >= until, "{:?}", until.elapsed());
        assert!(until.elapsed() < FAIL_OVER, "{:?}", until.elapsed());
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
    let begun = Instant::now();
    let Peer { node, server, dir } = peer;
    let unix = server.unix().unwrap().to_owned();
    let stopped = tokio::spawn(server.stop());
    timeout(FAIL_OVER, guard.lost()).await.expect("lost at once");
    timeout(FAIL_OVER, other.lost()).await.expect("lost at once");
    assert_eq!(guard.why_lost(), Some("this peer is stopping"));
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(matches!(other.check(), Err(ReleaseError::Lost)));
    assert!(!unix.exists(), "nobody finds it any more");
    assert!(matches!(guard.release().await, Err(ReleaseError::Lost)));
    assert!(!waiting.is_finished() && !stopped.is_finished(), "it waits for the other");
    drop(other);
    let answer = timeout(FAIL_OVER, waiting).await.unwrap().unwrap();
    assert!(
        matches!(&answer, Err(AcquireError::Disconnected { reason }) if reason.contains("stopping")),
        "{answer:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(matches!(client.lock("/a").acquire().await, Err(AcquireError::Disconnected { .. })));
    drop(client);
    stopped.await.unwrap();
    assert!(!unix.exists(), "the socket is removed");
    // Who gave it back is followed at once.
    let config = sigmalock_api::server::ServerConfig { unix: Some(unix), ..Default::default() };
    let server = sigmalock_api::server::Server::start(node.handle(), config).await.unwrap();
    let again = Peer { node, server, dir };
    let next = again.client().await;
    drop(next.locks(["/a", "/b"]).try_acquire().await.unwrap());
}

/// Whoever was told to stop by its peer may not have heard that yet.
#[tokio::test]
async fn when_the_server_stops_what_was_held_ends_with_its_lease() {
    let peer = Peer::start().await;
    let ttl = Duration::from_secs(5);
    let client = peer.client().await;
    let guard = client.lock("/a").ttl(ttl).acquire().await.unwrap();
    let until = guard.deadline();
    let begun = Instant::now();
    let Peer { node, server, dir } = peer;
    let unix = server.unix().unwrap().to_owned();
    server.stop().await;
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(4), "{took:?}");
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

/// `hold_if_cut` is about the end of a process; who ends the session in order gives everything back.
#[tokio::test]
async fn a_session_that_its_client_ends_gives_everything_back() {
    let peer = Peer::start().await;
    let next = peer.client().await;
    for hold in [false, true] {
        let options = ConnectOptions::new().hold_if_cut(hold);
        for address in [peer.unix(), peer.tcp()] {
            let client = options.connect(&address).await.unwrap();
            let guard = client.lock("/a").acquire().await.unwrap();
            let begin = Instant::now();
            drop((guard, client));
            drop(next.lock("/a").wait(SOON).acquire().await.unwrap());
            assert!(begin.elapsed() < FAIL_OVER, "{:?}", begin.elapsed());
        }
        // Though it has not said of each lock that it gives it back.
        let (asks, more) = endless(vec![open(API_VERSION), acquire(1, "/a", 0)]);
        let mut answers = raw(&peer).await.session(asks).await.unwrap().into_inner();
        while !matches!(answers.message().await.unwrap().unwrap().kind, Some(Say::Granted(_))) {}
        let begin = Instant::now();
        drop(more);
        drop(next.lock("/a").wait(SOON).acquire().await.unwrap());
        assert!(begin.elapsed() < FAIL_OVER, "{:?}", begin.elapsed());
    }
}
