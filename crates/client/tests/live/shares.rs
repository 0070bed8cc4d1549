//! What another user of the machine may have of a peer: each share exceeded, while the peer's own user gets through.

use std::time::{Duration, Instant};

use sigmalock_api::v1::locks_client::LocksClient;
use sigmalock_api::v1::session_request::Kind as Ask;
use sigmalock_api::v1::session_response::Kind as Say;
use sigmalock_api::v1::{self, SessionRequest};
use sigmalock_api::{API_VERSION, server};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use crate::neighbours::{OTHER, is_root, open_to_all};
use crate::peer::Peer;
use crate::raw::{acquire, endless, open};

const SOON: Duration = Duration::from_secs(5);
/// For what takes some work.
const IN_TIME: Duration = Duration::from_secs(60);
/// As `docs/api.md` says.
const SESSIONS: usize = 256;
const WATCHES: usize = 32;
const CALLS: usize = 8_192;
/// So many more than there is room for.
const EXCESS: usize = 100;

/// A connection of whoever calls it.
async fn connect(socket: &str, window_bytes: Option<u32>) -> LocksClient<Channel> {
    let endpoint = Endpoint::new(socket.to_owned()).unwrap();
    LocksClient::new(endpoint.initial_stream_window_size(window_bytes).connect().await.unwrap())
}

/// Has another user take something of the peer, and keep it while the peer's own user gets through. Returns how much it got.
async fn while_another<Kept>(
    peer: &Peer, take: impl AsyncFnOnce(&str) -> (usize, Kept) + Send + 'static,
) -> usize {
    open_to_all(peer);
    let own = peer.client().await;
    let socket = peer.unix();
    let (full, is_full) = oneshot::channel();
    let (enough, is_enough) = oneshot::channel::<()>();
    let other = std::thread::spawn(move || {
        // Users are a thread's, to the system, and sockets are of who connects them.
        let uid = rustix::process::Uid::from_raw(OTHER);
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (got, _kept) = take(&socket).await;
            full.send(got).unwrap();
            let _ = is_enough.await;
        });
    });
    let got = timeout(IN_TIME * 2, is_full).await.expect("in time").expect("no panic");
    let get_through = async {
        own.lock("/own").acquire().await.unwrap().release().await.unwrap();
        let again = peer.client().await;
        again.lock("/own").acquire().await.unwrap().release().await.unwrap();
        again.status().await.unwrap();
    };
    timeout(SOON, get_through).await.expect("the peer's own user gets through");
    drop(enough);
    other.join().unwrap();
    got
}

/// How many were let in, of answers that are either that or a refusal for want of room.
fn let_in<T>(answers: &[Result<T, Status>]) -> usize {
    let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
    for status in refused {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains("of one user at once"), "{status}");
    }
    answers.iter().filter(|answer| answer.is_ok()).count()
}

/// More sessions than it may have, on as many connections as they take.
async fn sessions(socket: &str) -> (usize, impl Sized + use<>) {
    let (mut answers, mut kept) = (Vec::new(), Vec::new());
    let mut client = connect(socket, None).await;
    for number in 1..=SESSIONS + EXCESS {
        if number % server::STREAMS_MAX as usize == 0 {
            client = connect(socket, None).await;
        }
        let (asks, more) = endless(vec![open(API_VERSION)]);
        answers.push(timeout(SOON, client.session(asks)).await.expect("an answer"));
        kept.push(more);
    }
    (let_in(&answers), (answers, kept))
}

async fn watches(socket: &str) -> (usize, impl Sized + use<>) {
    let mut client = connect(socket, None).await;
    let mut answers = Vec::new();
    for _ in 0..WATCHES + EXCESS {
        let watch = v1::WatchRequest { name: "/a".into() };
        answers.push(timeout(SOON, client.watch(watch)).await.expect("an answer"));
    }
    (let_in(&answers), answers)
}

/// Questions, all at once, that take a moment: who may break locks is looked up.
async fn questions(socket: &str) -> (usize, ()) {
    let client = connect(socket, None).await;
    let mut asked = JoinSet::new();
    for _ in 0..20 * EXCESS {
        let mut client = client.clone();
        asked.spawn(async move { client.r#break(v1::BreakRequest { name: "/a".into() }).await });
    }
    let answers = asked.join_all().await.into_iter().map(|answer| match answer {
        Err(status) if status.code() == Code::PermissionDenied => Ok(()),
        other => other.map(|_| panic!("another user is no operator")),
    });
    (let_in(&answers.collect::<Vec<_>>()), ())
}

/// A session that asks for so many locks of its own, for as short as may be.
async fn hold_many(
    client: &mut LocksClient<Channel>, count: usize,
) -> (Streaming<v1::SessionResponse>, impl Sized + use<>) {
    let ask = |call: usize| {
        let mut ask = acquire(call as u64, &format!("/other/{call}"), 0);
        if let Some(Ask::Acquire(acquire)) = &mut ask.kind {
            acquire.patience = None;
            acquire.ttl_ms = 1_250;
        }
        ask
    };
    let asks: Vec<SessionRequest> =
        [open(API_VERSION)].into_iter().chain((1..=count).map(ask)).collect();
    let (asks, more) = endless(asks);
    (client.session(asks).await.unwrap().into_inner(), more)
}

/// More calls than it may have, asked for all at once: they wait to be looked at, and each is answered.
async fn calls(socket: &str) -> (usize, impl Sized + use<>) {
    let (mut answers, more) = hold_many(&mut connect(socket, None).await, CALLS + EXCESS).await;
    let (mut taken, mut refused) = (0, 0);
    while taken + refused < CALLS + EXCESS {
        let answer = timeout(SOON, answers.message()).await.expect("an answer");
        match answer.expect("the session goes on").unwrap().kind.unwrap() {
            Say::Granted(_) => taken += 1,
            Say::Refused(answer) => {
                assert_eq!(answer.code(), v1::RefusalCode::TooMany, "{answer:?}");
                refused += 1;
            }
            _ => {}
        }
    }
    (taken, (answers, more))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_has_its_share_of_everything_and_the_owner_gets_through() {
    if !is_root() {
        return;
    }
    let peer = Peer::start().await;
    assert_eq!(while_another(&peer, sessions).await, SESSIONS);
    let peer = Peer::start().await;
    assert_eq!(while_another(&peer, watches).await, WATCHES);
    let peer = Peer::start_with(|config| config.operators = Some("root".into())).await;
    let heard = while_another(&peer, questions).await;
    assert!(heard > 0 && heard < 20 * EXCESS, "{heard}");
    let peer = Peer::start().await;
    assert_eq!(while_another(&peer, calls).await, CALLS);
}

/// It holds locks, is told of each renewal, and reads none of that until its session has been ended for it.
async fn unread(socket: &str) -> (usize, ()) {
    let mut client = connect(socket, Some(1_024)).await;
    // Another session of the same user reads, and is none the worse for it.
    let mut reader = connect(socket, None).await;
    let (asks, more) =
        endless(vec![open(API_VERSION), acquire(1, "/read", 0), acquire(2, "/read-too", 0)]);
    let mut read = reader.session(asks).await.unwrap().into_inner();
    let reading = tokio::spawn(async move {
        let mut granted = 0;
        while let Ok(Some(answer)) = read.message().await {
            granted += u32::from(matches!(answer.kind, Some(Say::Granted(_))));
            if granted == 3 {
                return;
            }
        }
        panic!("the session that reads was ended");
    });
    let (mut answers, _more) = hold_many(&mut client, CALLS - 3).await;
    let mut held_max = 0;
    loop {
        let status = client.status(v1::StatusRequest {}).await.unwrap().into_inner();
        if status.held <= 2 && held_max > 2 {
            break;
        }
        held_max = held_max.max(status.held as usize);
        sleep(Duration::from_millis(100)).await;
    }
    let end = async {
        loop {
            if let Err(status) = answers.message().await {
                return status;
            }
        }
    };
    let end = timeout(SOON, end).await.expect("an end");
    assert_eq!(end.code(), Code::ResourceExhausted, "{end}");
    assert!(end.message().contains("were not read"), "the peer does not stop: {end}");
    more.send(acquire(3, "/read-at-last", 0)).await.unwrap();
    timeout(SOON, reading).await.expect("it goes on").unwrap();
    (held_max, ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_who_does_not_read_loses_that_session_and_the_owner_gets_through() {
    if !is_root() {
        return;
    }
    let peer = Peer::start().await;
    let begun = Instant::now();
    let held = while_another(&peer, unread).await;
    eprintln!("ended after {:?}, with {held} locks", begun.elapsed());
}
