//! What the API does with those who do not play by its rules. None of it may disturb the others.

use std::time::{Duration, Instant};

use sigmalock::{AcquireError, Client};
use sigmalock_api::v1::locks_client::LocksClient;
use sigmalock_api::v1::session_request::Kind as Ask;
use sigmalock_api::v1::session_response::Kind as Say;
use sigmalock_api::v1::{self, SessionRequest};
use sigmalock_api::{API_VERSION, MESSAGE_LEN_MAX};
use sigmalock_core::Span;
use sigmalock_node::handle::CALLS_PER_SESSION_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::peer::Peer;
use crate::raw::{Queue, acquire, endless, open, raw};

const SOON: Duration = Duration::from_secs(5);

/// Says all this, keeps the stream open, and returns so many answers.
async fn converse(peer: &Peer, asks: Vec<SessionRequest>, count: usize) -> Vec<Say> {
    let (stream, _open) = endless(asks);
    let mut answers = raw(peer).await.session(stream).await.unwrap().into_inner();
    let mut said = Vec::new();
    while said.len() < count {
        let answer = timeout(SOON, answers.message()).await.unwrap().unwrap().unwrap();
        said.push(answer.kind.unwrap());
    }
    said
}

async fn still_serves(peer: &Peer) {
    let client = peer.client().await;
    drop(timeout(SOON, client.lock("/fine").acquire()).await.unwrap().unwrap());
}

#[tokio::test]
async fn bad_names_are_refused_with_a_sentence() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    for name in ["", "a b", "a//b", "x/../y", &"x".repeat(256), "a\nb"] {
        let answer = client.lock(name).acquire().await;
        assert!(matches!(answer, Err(AcquireError::BadName { .. })), "{name:?}: {answer:?}");
    }
    let answer = client.lock("/a").ttl(Duration::from_secs(3_600)).acquire().await;
    let Err(AcquireError::Refused { text }) = answer else { panic!("{answer:?}") };
    assert!(text.contains("15s"), "{text}");
    let text = client.lock("a b").acquire().await.unwrap_err().to_string();
    assert!(text.contains("no spaces"), "{text}");
    drop(client.lock("/a").acquire().await.unwrap());
    client.inspect("a b").await.unwrap_err();
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_and_the_session_goes_on() {
    let peer = Peer::start().await;
    let no_permits = v1::Mode::Permit as i32;
    let asks = vec![
        open(API_VERSION),
        SessionRequest { kind: None },
        open(API_VERSION),
        acquire(1, "/a", no_permits),
        acquire(2, "/a", 77),
        acquire(3, "a b", 0),
        SessionRequest { kind: Some(Ask::Release(v1::Release { call: 9 })) },
        SessionRequest { kind: Some(Ask::Cancel(v1::Cancel { call: 9 })) },
        acquire(4, "/a", 0),
        acquire(4, "/b", 0),
    ];
    let said = converse(&peer, asks, 10).await;
    let mut granted = false;
    let mut refusals = Vec::new();
    for say in &said {
        match say {
            Say::Refused(refused) => {
                assert!(!refused.text.is_empty());
                refusals.push((refused.call, refused.code()));
            }
            Say::Granted(grant) => granted = grant.call == 4,
            Say::Opened(opened) => assert_eq!(opened.api_version, API_VERSION),
            other => panic!("{other:?}"),
        }
    }
    use v1::RefusalCode as Code;
    for expected in [
        (0, Code::UnknownRequest),
        (1, Code::BadMode),
        (2, Code::BadMode),
        (3, Code::BadName),
        (9, Code::UnknownCall),
        (4, Code::DuplicateCall),
    ] {
        assert!(refusals.contains(&expected), "{expected:?} in {refusals:?}");
    }
    assert!(granted, "{said:?}");
}

#[tokio::test]
async fn another_version_and_a_session_without_open_are_told_why_they_end() {
    let peer = Peer::start().await;
    for (asks, word) in [
        (vec![open(API_VERSION + 1)], "version"),
        (vec![acquire(1, "/a", 0)], "Open"),
        (vec![SessionRequest { kind: None }], "Open"),
    ] {
        let (stream, _open) = endless(asks);
        let status = raw(&peer).await.session(stream).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::FailedPrecondition);
        assert!(status.message().contains(word), "{status}");
    }
}

#[tokio::test]
async fn a_session_that_says_nothing_is_ended_after_five_seconds() {
    let peer = Peer::start().await;
    let begun = Instant::now();
    let (stream, _open) = endless(Vec::new());
    let status = timeout(SOON * 2, raw(&peer).await.session(stream)).await.unwrap().unwrap_err();
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
    assert!(begun.elapsed() > Duration::from_secs(4));
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_its_session_only() {
    let peer = Peer::start().await;
    let bystander = peer.client().await;
    let guard = bystander.lock("/b").acquire().await.unwrap();
    let long = "x".repeat(MESSAGE_LEN_MAX + 1);
    let mut hold = acquire(1, "/a", 0);
    if let Some(Ask::Acquire(acquire)) = &mut hold.kind {
        acquire.ttl_ms = 2_000;
    }
    let (stream, _open) = endless(vec![open(API_VERSION), hold, acquire(2, &long, 0)]);
    let mut answers = raw(&peer).await.session(stream).await.unwrap().into_inner();
    let status = loop {
        match timeout(SOON, answers.message()).await.unwrap() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("ended without a word"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), tonic::Code::OutOfRange, "{status}");
    assert!(!guard.is_lost());
    // It may be inside: it has read nothing.
    let busy = bystander.lock("/a").try_acquire().await;
    assert!(matches!(busy, Err(AcquireError::Busy)), "{busy:?}");
    drop(bystander.lock("/a").wait(SOON).acquire().await.unwrap());
    still_serves(&peer).await;
}

#[tokio::test]
async fn garbage_on_the_sockets_closes_the_connection_and_nothing_else() {
    let peer = Peer::start().await;
    let bystander = peer.client().await;
    let guard = bystander.lock("/b").acquire().await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let mut garbage = vec![
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0xff; 4_096],
        vec![0; 65_536],
        // A frame of 16 MiB, announced.
        [&preface[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(),
        // Frames on a stream that was never opened.
        [&preface[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0], &[0, 0, 1, 0, 0, 0, 0, 0, 3, 9]].concat(),
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..50 {
        let mut bytes = preface.clone();
        for _ in 0..200 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.push((state >> 56) as u8);
        }
        garbage.push(bytes);
    }
    for bytes in garbage {
        let mut unix = UnixStream::connect(peer.server.unix().unwrap()).await.unwrap();
        let mut tcp = TcpStream::connect(peer.tcp()).await.unwrap();
        let _ = unix.write_all(&bytes).await;
        let _ = tcp.write_all(&bytes).await;
        // Ours is over now; theirs must follow, if it has not cut us off before.
        let _ = (unix.shutdown().await, tcp.shutdown().await);
        let mut rest = Vec::new();
        let _ = timeout(SOON, unix.read_to_end(&mut rest)).await.expect("closed");
        let _ = timeout(SOON, tcp.read_to_end(&mut rest)).await.expect("closed");
    }
    assert!(!guard.is_lost());
    still_serves(&peer).await;
}

#[tokio::test]
async fn a_connection_that_dribbles_its_first_bytes_is_cut() {
    let peer = Peer::start().await;
    let mut silent = UnixStream::connect(peer.server.unix().unwrap()).await.unwrap();
    let mut slow = TcpStream::connect(peer.tcp()).await.unwrap();
    let begun = Instant::now();
    let dribble = async {
        for byte in b"PRI * HTTP/2.0\r\n\r\n" {
            if slow.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let mut rest = Vec::new();
    let cut = async { drop(silent.read_to_end(&mut rest).await) };
    let both = async { tokio::join!(dribble, cut) };
    timeout(SOON * 3, both).await.unwrap();
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(
        begun.elapsed() < Duration::from_secs(9),
        "the dribbler was cut: {:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_asks_for_too_much_is_refused_for_that_and_loses_nothing() {
    const EXCESS: usize = 200;
    // So many are renewed at leisure.
    let ttl = Duration::from_secs(300);
    let peer = Peer::with_lease_max(Span::from_secs(ttl.as_secs())).await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let mut client = raw(&peer).await;
    let asks = tokio::spawn(async move {
        sender.send(open(API_VERSION)).await.unwrap();
        for call in 0..CALLS_PER_SESSION_MAX + EXCESS {
            let mut ask = acquire(call as u64 + 1, &format!("/n/{call}"), 0);
            if let Some(Ask::Acquire(acquire)) = &mut ask.kind {
                acquire.patience = None;
                acquire.ttl_ms = u32::try_from(ttl.as_millis()).unwrap();
            }
            // One at a time, so that each is a frame of its own.
            sender.send(ask).await.unwrap();
        }
        sender
    });
    let mut answers = client.session(Queue(receiver)).await.unwrap().into_inner();
    // It reads nothing at first, until its peer stops reading, too.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (mut granted, mut refused) = (0, 0);
    while granted + refused < CALLS_PER_SESSION_MAX + EXCESS {
        let answer = timeout(SOON * 12, answers.message()).await.unwrap();
        match answer.expect("the session goes on").unwrap().kind.unwrap() {
            Say::Granted(_) => granted += 1,
            Say::Refused(answer) => {
                assert_eq!(answer.code(), v1::RefusalCode::TooMany, "{answer:?}");
                refused += 1;
            }
            Say::Lost(lost) => panic!("{lost:?} after {granted} grants"),
            _ => {}
        }
    }
    assert_eq!((granted, refused), (CALLS_PER_SESSION_MAX, EXCESS));
    let _sender = asks.await.unwrap();
    let held = peer.client().await.status().await.unwrap().held;
    assert_eq!(held as usize, CALLS_PER_SESSION_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_its_answers_harms_only_itself() {
    let peer = Peer::start().await;
    let address = format!("http://{}", peer.tcp());
    let (stuck, is_stuck) = tokio::sync::oneshot::channel();
    // With a runtime of its own, so that its end is that of its connection.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.spawn(async move {
        let mut client = LocksClient::connect(address).await.unwrap();
        let (sender, receiver) = tokio::sync::mpsc::channel(1_024);
        sender.try_send(open(API_VERSION)).unwrap();
        let _unread = client.session(Queue(receiver)).await.unwrap();
        // Each of these is answered at once, by a refusal that nobody reads.
        let flood = async {
            for call in 1..2_000_000 {
                sender.send(acquire(call, "a b", 0)).await.unwrap();
            }
        };
        // At some point it is not read from any more.
        stuck.send(timeout(Duration::from_secs(3), flood).await.is_err()).unwrap();
        std::future::pending::<()>().await;
    });
    assert!(is_stuck.await.unwrap(), "all was taken from a client that reads nothing");
    let client = Client::connect(&peer.unix()).await.unwrap();
    let begun = Instant::now();
    for _ in 0..100 {
        client.lock("/fine").acquire().await.unwrap().release().await.unwrap();
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    drop(client);
    runtime.shutdown_background();
    let all_ended = async {
        while peer.server.idle_for().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, all_ended).await.expect("its session is over");
}
