//! Strangers that misbehave, and peers that stop.

use std::net::SocketAddr;

use futures::{AsyncReadExt as _, AsyncWriteExt as _, StreamExt as _};
use libp2p::core::Transport as _;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::upgrade::Version;
use libp2p::swarm::{NetworkBehaviour, SwarmEvent};
use libp2p::{PeerId as NetworkId, Stream, StreamProtocol, Swarm, kad, noise, tcp, yamux};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::super::handshake::{self, Failure, Me, Side};
use super::super::limits::{BALLAST_LEN, SILENCE_MAX, WEIGH_MAX};
use super::super::streams::{self, Opened, Purpose};
use super::*;
use crate::config::FaultInjection;
use crate::key::SwarmKey;
use crate::wire::{FRAME_LEN_MAX, Frames, Kind, Splitter, VERSION, frame};

#[derive(NetworkBehaviour)]
#[behaviour(prelude = "libp2p::swarm::derive_prelude")]
struct Bare {
    streams: streams::Behaviour,
    kad: kad::Behaviour<kad::store::MemoryStore>,
}

/// A stranger that speaks libp2p, and what it likes on top.
struct Stranger {
    me: NetworkId,
    swarm: Swarm<Bare>,
}

impl Stranger {
    fn new() -> Self {
        let identity = Identity::ephemeral();
        let transport = tcp::tokio::Transport::default()
            .upgrade(Version::V1Lazy)
            .authenticate(noise::Config::new(identity.keypair()).unwrap())
            .multiplex(yamux::Config::default())
            .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
            .boxed();
        let me = identity.network_id();
        let kad = kad::Behaviour::with_config(
            me,
            kad::store::MemoryStore::new(me),
            kad::Config::new(StreamProtocol::new("/sigmalock/kad/1")),
        );
        let behaviour = Bare { streams: streams::Behaviour::default(), kad };
        let settings = libp2p::swarm::Config::with_tokio_executor()
            .with_idle_connection_timeout(Duration::from_secs(60));
        Self { me, swarm: Swarm::new(transport, behaviour, me, settings) }
    }

    /// A stream for a session with this peer, opened by whoever should.
    async fn stream(mut self, to: &Peer) -> (Stream, Side, NetworkId) {
        self.swarm.dial(to.address()).unwrap();
        loop {
            match self.swarm.select_next_some().await {
                SwarmEvent::ConnectionEstablished { peer_id, connection_id, .. }
                    if self.me < peer_id =>
                {
                    let streams = &mut self.swarm.behaviour_mut().streams;
                    streams.open(peer_id, connection_id, Purpose::Session);
                }
                SwarmEvent::Behaviour(BareEvent::Streams(event)) => {
                    let (stream, side) = match event.opened {
                        Opened::ByUs(_, stream) => (stream, Side::Opener),
                        Opened::ByThem(_, stream) => (stream, Side::Accepter),
                        Opened::Failed(_, why) => panic!("{why:?}"),
                    };
                    let me = self.me;
                    tokio::spawn(async move { while self.swarm.next().await.is_some() {} });
                    return (stream, side, me);
                }
                _ => {}
            }
        }
    }

    /// A session whose handshake went well; from here on the stranger does what it likes.
    async fn session(to: &Peer) -> (Stream, NetworkId) {
        Self::session_as(to, "").await
    }

    /// The same, of one that calls itself so.
    async fn session_as(to: &Peer, card: &str) -> (Stream, NetworkId) {
        let stranger = Self::new();
        let mut me = Me::new(&config(vec![]), stranger.me, new_incarnation().unwrap());
        me.card = card.into();
        let (mut stream, side, network) = stranger.stream(to).await;
        handshake::shake(&mut stream, &me, to.me.network, side, &[]).await.unwrap();
        handshake::weigh(&mut stream, to.me.network).await.unwrap();
        (stream, network)
    }
}

/// All frames until the other side closes, or the time is over.
async fn frames(stream: &mut Stream, limit: Duration) -> (Vec<(Kind, Vec<u8>)>, bool) {
    let (mut splitter, mut found) = (Splitter::default(), vec![]);
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let space = splitter.space(1_024);
        match timeout(left, stream.read(space)).await {
            Err(_) => return (found, false),
            Ok(Ok(0) | Err(_)) => return (found, true),
            Ok(Ok(arrived)) => splitter.arrived(arrived),
        }
        while let Some((kind, body)) = splitter.next_frame().unwrap() {
            found.push((kind, body.to_vec()));
        }
    }
}

/// Two peers with a session, who must not notice what a stranger does to the first.
async fn pair() -> (Peer, Peer) {
    let mut a = Peer::start(&config(vec![])).await;
    let mut b = Peer::start(&config(vec![a.address()])).await;
    assert!(a.until_up(1, ms(2_000)).await && b.until_up(1, ms(2_000)).await);
    (a, b)
}

#[tokio::test]
async fn another_version_is_refused_with_a_sentence_on_both_sides() {
    let (a, mut b) = pair().await;
    let (mut stream, ..) = Stranger::new().stream(&a).await;
    let next = VERSION + 1;
    let hello = [&b"sgmalock"[..], &next.to_le_bytes(), b"whatever the future brings"].concat();
    stream.write_all(&frame(Kind::Hello, &hello)).await.unwrap();
    stream.flush().await.unwrap();
    let (found, closed) = frames(&mut stream, ms(3_000)).await;
    assert!(closed);
    let kinds: Vec<_> = found.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Kind::Hello, Kind::Refusal]);
    let text = String::from_utf8_lossy(&found[1].1[2..]);
    let differ = format!("ours {VERSION}, theirs {next}");
    assert!(text.contains(&differ), "{text}");
    a.refusal(ms(1_000), &differ).await;
    b.idle(ms(10)).await;
    assert!(b.down.is_empty());
}

#[tokio::test]
async fn whatever_a_peer_calls_itself_is_made_harmless() {
    for (card, name) in [
        ("\x1b[2J\x1b]0;owned\x07", Some("2J__0_owned_")),
        ("render\u{202e}7\u{200b}\u{2066}", Some("render_7__")),
        ("two words\r\nand a line", Some("two_words__and_a_line")),
        ("p14622706887153926033", None),
        (&"x".repeat(2_000), Some(&*"x".repeat(63))),
        ("", None),
    ] {
        let mut a = Peer::start(&config(vec![])).await;
        let _session = Stranger::session_as(&a, card).await;
        assert!(a.until_up(1, ms(2_000)).await, "{card:?}");
        assert_eq!(a.up[0].1.name.as_ref().map(|name| name.as_str()), name);
    }
}

#[tokio::test]
async fn a_name_that_is_longer_than_any_handshake_ends_it_and_hurts_nobody() {
    let (mut a, mut b) = pair().await;
    let stranger = Stranger::new();
    let mut me = Me::new(&config(vec![]), stranger.me, new_incarnation().unwrap());
    me.card = "x".repeat(100_000);
    let (mut stream, side, _) = stranger.stream(&a).await;
    let _ = handshake::shake(&mut stream, &me, a.me.network, side, &[]).await;
    a.refusal(ms(2_000), "a frame of an impossible length").await;
    a.idle(ms(10)).await;
    b.idle(ms(10)).await;
    assert!(a.up.len() == 1 && a.down.is_empty() && b.down.is_empty());
}

#[tokio::test]
async fn garbage_instead_of_a_handshake_ends_it_and_hurts_nobody() {
    let (a, mut b) = pair().await;
    let long = [&(FRAME_LEN_MAX as u32).to_le_bytes()[..], &[1]].concat();
    let bad_hello = [&b"sgmalock"[..], &VERSION.to_le_bytes(), &[0xff; 8]].concat();
    let bad_hello = frame(Kind::Hello, &bad_hello);
    let wrong_kind = frame(Kind::Messages, b"hello");
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &long, &[0; 64], &bad_hello, &wrong_kind] {
        let (mut stream, ..) = Stranger::new().stream(&a).await;
        stream.write_all(garbage).await.unwrap();
        stream.flush().await.unwrap();
        let (found, closed) = frames(&mut stream, ms(3_000)).await;
        assert!(closed && found.len() <= 1, "{found:?}");
    }
    a.refusal(ms(1_000), "sent a").await;
    b.idle(ms(10)).await;
    assert!(b.down.is_empty());
}

#[tokio::test]
async fn a_wrong_proof_or_a_false_name_is_refused() {
    let a = Peer::start(&config(vec![])).await;
    let stranger = Stranger::new();
    let mut me = Me::new(&config(vec![]), stranger.me, new_incarnation().unwrap());
    me.proof_key = SwarmKey::generate().unwrap().derive("another");
    let (mut stream, side, _) = stranger.stream(&a).await;
    let shaken = handshake::shake(&mut stream, &me, a.me.network, side, &[]).await;
    assert!(matches!(shaken, Err(Failure::Refused(_))), "{shaken:?}");
    a.refusal(ms(1_000), "proof").await;

    let stranger = Stranger::new();
    let mut me = Me::new(&config(vec![]), stranger.me, new_incarnation().unwrap());
    me.peer = a.me.peer;
    let (mut stream, side, _) = stranger.stream(&a).await;
    let shaken = handshake::shake(&mut stream, &me, a.me.network, side, &[]).await;
    let Err(Failure::Refused(text)) = shaken else { panic!("{shaken:?}") };
    assert!(text.contains("name"), "{text}");
}

#[tokio::test]
async fn where_large_packets_do_not_arrive_there_is_no_session_and_people_are_told() {
    let mut a = Peer::start(&config(vec![])).await;
    let stranger = Stranger::new();
    let me = Me::new(&config(vec![]), stranger.me, new_incarnation().unwrap());
    let (mut stream, side, _) = stranger.stream(&a).await;
    handshake::shake(&mut stream, &me, a.me.network, side, &[]).await.unwrap();
    let begin = Instant::now();
    a.refusal(ms(4_000), "packets of full size do not arrive").await;
    assert!(begin.elapsed() >= SILENCE_MAX, "slow ones have some time: {:?}", begin.elapsed());
    let (found, closed) = frames(&mut stream, WEIGH_MAX * 2).await;
    assert!(closed, "and then it is given up");
    let kinds: Vec<_> = found.iter().map(|(kind, body)| (*kind, body.len())).collect();
    assert_eq!(kinds, [(Kind::Ballast, BALLAST_LEN)]);
    a.idle(ms(10)).await;
    assert!(a.up.is_empty());
}

#[tokio::test]
async fn that_there_is_a_twin_is_believed_of_who_belongs_to_the_swarm_only() {
    let refusal = frame(Kind::Refusal, &(handshake::Code::Twin as u16).to_le_bytes());
    let mut a = Peer::start(&config(vec![])).await;
    let (mut stream, ..) = Stranger::new().stream(&a).await;
    stream.write_all(&refusal).await.unwrap();
    a.refusal(ms(1_000), "refused us").await;
    a.idle(ms(100)).await;
    assert_eq!(a.twins, 0);
    let (mut stream, _) = Stranger::session(&a).await;
    stream.write_all(&refusal).await.unwrap();
    assert!(a.until(ms(1_000), |a| a.twins == 1).await);
}

#[tokio::test]
async fn a_stranger_without_the_key_learns_nothing_of_the_swarm() {
    let mut settings = config(vec![]);
    settings.swarm_key = SwarmKey::generate().unwrap();
    let mut a = Peer::start(&settings).await;
    settings.join = vec![a.address()];
    let mut b = Peer::start(&settings).await;
    assert!(a.until_up(1, ms(2_000)).await && b.until_up(1, ms(2_000)).await);
    // Not from the session, which it can open but not prove anything in.
    let (mut stream, ..) = Stranger::new().stream(&a).await;
    let (found, _) = frames(&mut stream, ms(300)).await;
    assert!(found.iter().all(|(kind, _)| *kind == Kind::Hello), "{found:?}");
    // Nor from Kademlia.
    let mut stranger = Stranger::new();
    stranger.swarm.dial(a.address()).unwrap();
    let kad = &mut stranger.swarm.behaviour_mut().kad;
    kad.add_address(&a.me.network, a.me.addresses[0].clone());
    kad.get_closest_peers(b.me.network);
    let answer = async {
        loop {
            if let SwarmEvent::Behaviour(BareEvent::Kad(kad::Event::OutboundQueryProgressed {
                result: kad::QueryResult::GetClosestPeers(found),
                ..
            })) = stranger.swarm.select_next_some().await
            {
                return match found {
                    Ok(found) => found.peers,
                    Err(kad::GetClosestPeersError::Timeout { peers, .. }) => peers,
                };
            }
        }
    };
    let peers = timeout(ms(15_000), answer).await.unwrap();
    assert!(peers.iter().all(|peer| peer.peer_id != b.me.network), "{peers:?}");
}

#[tokio::test]
async fn nonsense_in_a_session_ends_that_session_only() {
    let (mut a, mut b) = pair().await;
    let long = [&(FRAME_LEN_MAX as u32 + 1).to_le_bytes()[..], &[16]].concat();
    let unknown = frame(Kind::Messages, b"x").into_iter().map(|b| if b == 16 { 99 } else { b });
    let bad_heartbeat = frame(Kind::Heartbeat, &[0xff; 30]);
    let again = frame(Kind::Hello, b"sgmalock");
    for garbage in [long, unknown.collect(), bad_heartbeat, again] {
        let (mut stream, network) = Stranger::session(&a).await;
        assert!(a.until_up(2, ms(1_000)).await);
        stream.write_all(&garbage).await.unwrap();
        stream.flush().await.unwrap();
        assert!(a.until_up(1, ms(1_000)).await);
        assert_eq!(a.down.pop().unwrap(), (crate::identity::peer_of(&network), Parting::Nonsense));
        assert!(frames(&mut stream, ms(2_000)).await.1);
    }
    b.idle(ms(10)).await;
    assert!(b.down.is_empty());
}

#[tokio::test]
async fn whoever_says_nothing_in_a_session_is_silent_after_two_seconds() {
    let (mut a, _b) = pair().await;
    let (_stream, network) = Stranger::session(&a).await;
    assert!(a.until_up(2, ms(1_000)).await);
    let begin = Instant::now();
    assert!(a.until_up(1, ms(5_000)).await);
    assert_eq!(a.down, [(crate::identity::peer_of(&network), Parting::Silent)]);
    let took = begin.elapsed();
    assert!(took > ms(1_800) && took < ms(3_200), "{took:?}");
}

#[tokio::test]
async fn a_frame_that_never_completes_ends_its_session_after_two_seconds() {
    let (mut a, _b) = pair().await;
    let (mut stream, _) = Stranger::session(&a).await;
    assert!(a.until_up(2, ms(1_000)).await);
    let begin = Instant::now();
    let slowly = tokio::spawn(async move {
        let head = [&1_000u32.to_le_bytes()[..], &[16]].concat();
        let mut bytes = head.into_iter().chain(std::iter::repeat(0));
        while stream.write_all(&[bytes.next().unwrap()]).await.is_ok() {
            let _ = stream.flush().await;
            tokio::time::sleep(ms(100)).await;
        }
    });
    assert!(a.until_up(1, ms(5_000)).await);
    assert_eq!(a.down[0].1, Parting::Silent);
    assert!(begin.elapsed() < ms(3_500), "{:?}", begin.elapsed());
    timeout(ms(2_000), slowly).await.unwrap().unwrap();
}

#[tokio::test]
async fn slow_connections_end_in_time_and_keep_nobody_out() {
    let (mut a, mut b) = pair().await;
    let port = a.me.addresses[0].iter().find_map(|part| match part {
        Protocol::Tcp(port) => Some(port),
        _ => None,
    });
    let address = SocketAddr::from(([127, 0, 0, 1], port.unwrap()));
    let begin = Instant::now();
    let mut slow = tokio::task::JoinSet::new();
    for index in 0..60 {
        slow.spawn(async move {
            let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
            let mut rest = [0; 1_024];
            loop {
                // Half of them say nothing, the others a byte at a time.
                if index % 2 == 0 && socket.write_all(b"\x13").await.is_err() {
                    return;
                }
                if let Ok(Ok(0) | Err(_)) = timeout(ms(200), socket.read(&mut rest)).await {
                    return;
                }
            }
        });
    }
    // One that connects properly, and then does not shake hands.
    let (mut stream, ..) = Stranger::new().stream(&a).await;
    tokio::time::sleep(ms(300)).await;
    let mut c = Peer::start(&config(vec![a.address()])).await;
    assert!(c.until_up(2, ms(1_000)).await, "somebody was kept out");
    let gone = async { while slow.join_next().await.is_some() {} };
    assert!(timeout(ms(9_000), gone).await.is_ok());
    let took = begin.elapsed();
    assert!(took < ms(9_000), "{took:?}");
    assert!(frames(&mut stream, ms(3_000)).await.1);
    a.idle(ms(10)).await;
    b.idle(ms(10)).await;
    assert!(a.down.is_empty() && b.down.is_empty());
}

/// Runs a peer on a thread of its own, which sleeps when told to, whatever the peer would like to do.
fn sleeper(
    config: Config,
) -> (std::sync::mpsc::Sender<Duration>, std::thread::JoinHandle<Vec<Event>>) {
    let (sender, sleeps) = std::sync::mpsc::channel::<Duration>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut peer = Peer::start(&config).await;
            let mut seen = vec![];
            loop {
                match sleeps.try_recv() {
                    Ok(time) => std::thread::sleep(time),
                    Err(std::sync::mpsc::TryRecvError::Empty) => {}
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => return seen,
                }
                if let Ok(Some(event)) = timeout(ms(5), peer.next()).await {
                    seen.push(event);
                }
            }
        })
    });
    (sender, thread)
}

#[tokio::test]
async fn a_peer_that_stops_is_silent_and_hears_nothing_old_when_it_goes_on() {
    let mut a = Peer::start(&config(vec![])).await;
    let (sleep, thread) = sleeper(config(vec![a.address()]));
    assert!(a.until_up(1, ms(2_000)).await);
    a.idle(ms(200)).await;
    sleep.send(ms(4_000)).unwrap();
    tokio::time::sleep(ms(50)).await;
    let begin = Instant::now();
    let mut old = Frames::new();
    assert!(old.push(Kind::Query, &"old"));
    assert!(a.up[0].2.send(old.take()));
    assert!(a.until_up(0, ms(4_000)).await);
    assert_eq!(a.down[0].1, Parting::Silent);
    let took = begin.elapsed();
    assert!(took > ms(1_500) && took < ms(3_000), "{took:?}");
    // It comes back, in a new session.
    assert!(a.until_up(1, ms(6_000)).await);
    let mut new = Frames::new();
    assert!(new.push(Kind::Query, &"new"));
    assert!(a.up[0].2.send(new.take()));
    a.idle(ms(500)).await;
    drop(sleep);
    let seen = thread.join().unwrap();
    let words: Vec<String> = seen
        .iter()
        .filter_map(|event| match event {
            Event::Frame { body, .. } => postcard::from_bytes(body).ok(),
            _ => None,
        })
        .collect();
    assert_eq!(words, ["new"]);
    let partings: Vec<_> = seen
        .iter()
        .filter_map(|event| match event {
            Event::Down { parting, .. } => Some(*parting),
            _ => None,
        })
        .collect();
    assert_eq!(partings, [Parting::Silent]);
}

#[tokio::test]
async fn injected_faults_make_frames_late_and_lose_messages_only() {
    let mut a = Peer::start(&config(vec![])).await;
    let mut settings = config(vec![a.address()]);
    settings.injection = Some(FaultInjection { delay: (ms(80), ms(90)), loss: 1.0 });
    let mut b = Peer::start(&settings).await;
    assert!(a.until_up(1, ms(2_000)).await && b.until_up(1, ms(2_000)).await);
    let mut frames = Frames::new();
    assert!(frames.push_message(&1u8) && frames.push(Kind::Query, &2u8));
    let begin = Instant::now();
    assert!(b.up[0].2.send(frames.take()));
    let event = timeout(ms(1_000), a.next()).await.unwrap();
    assert!(matches!(event, Some(Event::Frame { kind: Kind::Query, .. })), "{event:?}");
    assert!(begin.elapsed() >= ms(80), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_peer_that_never_says_that_it_hears_us_is_gone_after_ten_seconds() {
    let mut a = Peer::start(&config(vec![])).await;
    let (mut stream, _) = Stranger::session(&a).await;
    assert!(a.until_up(1, ms(1_000)).await);
    let begin = Instant::now();
    tokio::spawn(async move {
        let mut rest = [0; 1_024];
        let heartbeat = postcard::to_stdvec(&(1u64, 0u64)).unwrap();
        while stream.write_all(&frame(Kind::Heartbeat, &heartbeat)).await.is_ok() {
            let _ = stream.flush().await;
            let _ = timeout(ms(500), stream.read(&mut rest)).await;
        }
    });
    assert!(a.until_up(0, ms(15_000)).await);
    assert_eq!(a.down[0].1, Parting::Silent);
    let took = begin.elapsed();
    assert!(took > ms(9_000) && took < ms(12_500), "{took:?}");
}

#[tokio::test]
async fn a_connection_that_never_becomes_a_session_is_closed_after_ten_seconds() {
    let a = Peer::start(&config(vec![])).await;
    // It is the lower one that opens a session, and this one does not.
    let mut stranger = Stranger::new();
    while stranger.me > a.me.network {
        stranger = Stranger::new();
    }
    stranger.swarm.dial(a.address()).unwrap();
    let begin = Instant::now();
    let closed = async {
        while !matches!(
            stranger.swarm.select_next_some().await,
            SwarmEvent::ConnectionClosed { .. }
        ) {}
    };
    assert!(timeout(ms(13_000), closed).await.is_ok());
    assert!(begin.elapsed() > ms(9_000), "{:?}", begin.elapsed());
}
