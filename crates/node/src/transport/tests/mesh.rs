//! Peers find each other, and lose each other.

use std::net::TcpListener;

use futures::StreamExt as _;
use libp2p::Swarm;
use libp2p::swarm::SwarmEvent;

use super::super::swarm::{self, Behaviour, BehaviourEvent};
use super::*;
use crate::wire::{Frames, Kind};

#[tokio::test]
async fn two_peers_have_a_session_within_200_ms() {
    let mut a = Peer::start(&config(vec![])).await;
    let begin = Instant::now();
    let mut b = Peer::start(&config(vec![a.address()])).await;
    assert!(b.until_up(1, ms(1_000)).await && a.until_up(1, ms(1_000)).await);
    assert!(begin.elapsed() < ms(200), "{:?}", begin.elapsed());
    let (ours, theirs) = (&a.up[0].1, &b.me);
    assert_eq!(
        (ours.peer, ours.network, ours.key, ours.incarnation, &ours.addresses),
        (theirs.peer, theirs.network, theirs.key, theirs.incarnation, &theirs.addresses)
    );
}

#[tokio::test]
async fn an_address_without_the_name_of_its_peer_is_joined_too() {
    let mut a = Peer::start(&config(vec![])).await;
    let mut b = Peer::start(&config(vec![a.me.addresses[0].clone()])).await;
    assert!(b.until_up(1, ms(1_000)).await && a.until_up(1, ms(1_000)).await);
}

/// All hosts of a swarm may be told the same, and so each is told its own address, too.
#[tokio::test]
async fn peers_that_are_told_to_join_all_and_so_themselves_meet_and_nobody_complains() {
    let ports: Vec<u16> = [(); 3].map(|()| free_port()).into();
    let address = |port: &u16| format!("/ip4/127.0.0.1/tcp/{port}").parse::<Multiaddr>().unwrap();
    let all: Vec<Multiaddr> = ports.iter().map(address).collect();
    let mut peers = Vec::new();
    for own in &all {
        let config = Config { listen: vec![own.clone()], ..config(all.clone()) };
        peers.push(Peer::start(&config).await);
    }
    for peer in &mut peers {
        assert!(peer.until_up(2, ms(3_000)).await, "only {}", peer.up.len());
    }
    for peer in &mut peers {
        peer.idle(ms(300)).await;
        assert_eq!((peer.up.len(), &peer.down), (2, &vec![]));
        assert_eq!(peer.describe().await.refusals, [""; 0]);
        assert!(peer.up.iter().all(|(_, other, _)| other.network != peer.me.network));
    }
}

/// One that nobody has at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn frames_of_the_driver_arrive_in_order_with_their_kinds() {
    let mut a = Peer::start(&config(vec![])).await;
    let mut b = Peer::start(&config(vec![a.address()])).await;
    assert!(b.until_up(1, ms(1_000)).await && a.until_up(1, ms(1_000)).await);
    let session = b.up[0].0;
    for number in 0..1_000u32 {
        let mut frames = Frames::new();
        assert!(frames.push_message(&number) && frames.push(Kind::Query, &number));
        assert!(a.up[0].2.send(frames.take()));
    }
    for number in 0..1_000u32 {
        for kind in [Kind::Messages, Kind::Query] {
            let Ok(Some(Event::Frame { session: s, from, kind: k, body })) =
                timeout(ms(1_000), b.next()).await
            else {
                panic!("no frame")
            };
            assert_eq!((s, from, k), (session, a.me.peer, kind));
            assert_eq!(postcard::from_bytes::<u32>(&body), Ok(number));
        }
    }
}

#[tokio::test]
async fn twenty_peers_that_know_one_contact_all_meet() {
    let mut peers = vec![Peer::start(&config(vec![])).await];
    let contact = peers[0].address();
    let begin = Instant::now();
    for _ in 1..20 {
        peers.push(Peer::start(&config(vec![contact.clone()])).await);
    }
    for peer in &mut peers {
        assert!(peer.until_up(19, ms(10_000)).await, "only {}", peer.up.len());
    }
    println!("20 peers met after {:?}", begin.elapsed());
    // It stays that way: duplicates are gone, and no session went with them.
    for peer in &mut peers {
        peer.down.clear();
    }
    tokio::time::sleep(ms(5_000)).await;
    for peer in &mut peers {
        peer.idle(ms(1)).await;
        assert_eq!(peer.up.len(), 19);
        assert_eq!(peer.down, [], "{}", peer.me.network);
        assert_eq!(peer.describe().await.table_len, 19);
    }
}

#[tokio::test]
async fn two_that_join_by_different_contacts_at_the_same_time_meet() {
    let mut x = Peer::start(&config(vec![])).await;
    let mut y = Peer::start(&config(vec![x.address()])).await;
    assert!(x.until_up(1, ms(1_000)).await && y.until_up(1, ms(1_000)).await);
    let mut a = Peer::start(&config(vec![x.address()])).await;
    let mut b = Peer::start(&config(vec![y.address()])).await;
    assert!(a.until_up(3, ms(2_000)).await && b.until_up(3, ms(2_000)).await);
}

#[tokio::test]
async fn a_peer_that_is_killed_is_down_at_once_and_up_again_when_it_returns() {
    let identity = Identity::ephemeral();
    let mut a = Peer::start(&config(vec![])).await;
    let b = Peer::start_as(&config(vec![a.address()]), &identity).await;
    assert!(a.until_up(1, ms(1_000)).await);
    let (name, life) = (b.me.peer, b.me.incarnation);
    let mut settings = config(vec![]);
    settings.listen.clone_from(&b.me.addresses);
    drop(b);
    let begin = Instant::now();
    assert!(a.until_up(0, ms(1_000)).await);
    assert!(begin.elapsed() < ms(200), "{:?}", begin.elapsed());
    assert_eq!(a.down, [(name, Parting::Closed)]);
    // It knows nobody, but it is dialed.
    let b = Peer::start_as(&settings, &identity).await;
    assert!(a.until_up(1, ms(3_000)).await);
    assert_eq!(a.up[0].1.incarnation, b.me.incarnation);
    assert_ne!(b.me.incarnation, life);
}

#[tokio::test]
async fn a_peer_that_leaves_says_goodbye_and_ends() {
    let mut a = Peer::start(&config(vec![])).await;
    let mut b = Peer::start(&config(vec![a.address()])).await;
    assert!(a.until_up(1, ms(1_000)).await && b.until_up(1, ms(1_000)).await);
    let mut frames = Frames::new();
    assert!(frames.push_message(&7u8));
    assert!(b.up[0].2.send(frames.take()));
    b.commands.send(Command::Leave).await.unwrap();
    let last = timeout(ms(1_000), a.next()).await.unwrap();
    assert!(matches!(last, Some(Event::Frame { .. })), "what waited is sent first");
    assert!(a.until_up(0, ms(1_000)).await);
    assert_eq!(a.down, [(b.me.peer, Parting::Goodbye)]);
    let ends = async { while b.next().await.is_some() {} };
    assert!(timeout(ms(1_000), ends).await.is_ok());
    assert_eq!(a.describe().await.table_len, 0);
}

#[tokio::test]
async fn a_contact_that_comes_up_late_is_joined_all_the_same() {
    let reserved = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address: Multiaddr = format!("/ip4/127.0.0.1/tcp/{}", reserved.port()).parse().unwrap();
    let mut b = Peer::start(&config(vec![address.clone()])).await;
    b.idle(ms(700)).await;
    let mut settings = config(vec![]);
    settings.listen = vec![address];
    let _a = Peer::start(&settings).await;
    assert!(b.until_up(1, ms(5_000)).await);
}

#[tokio::test]
async fn a_look_up_leads_to_sessions_beyond_the_mesh() {
    let mut hosts = vec![Peer::start(&config(vec![])).await];
    for _ in 1..6 {
        hosts.push(Peer::start(&config(vec![hosts[0].address()])).await);
    }
    for host in &mut hosts {
        assert!(host.until_up(5, ms(5_000)).await);
    }
    let mut settings = config(vec![hosts[0].address()]);
    settings.role = Role::ClientOnly;
    settings.mesh_max = 1;
    let mut client = Peer::start(&settings).await;
    assert!(client.until_up(1, ms(1_000)).await);
    let place = b"/some/lock:1".to_vec();
    let (done, over) = oneshot::channel();
    client.commands.send(Command::LookUp { place: place.clone(), done }).await.unwrap();
    timeout(ms(6_000), over).await.unwrap().unwrap();
    client.idle(ms(50)).await;
    let key = libp2p::kad::KBucketKey::new(place);
    let closest = hosts
        .iter()
        .map(|host| host.me.network)
        .min_by_key(|network| libp2p::kad::KBucketKey::from(*network).distance(&key));
    assert!(client.up.iter().any(|(_, info, _)| Some(info.network) == closest));
    assert!(client.up.iter().all(|(_, info, _)| info.role == Role::Host));
}

#[tokio::test]
async fn bare_round_trips_are_timed() {
    let mut a = Peer::start(&config(vec![])).await;
    let mut b = Peer::start(&config(vec![a.address()])).await;
    assert!(a.until_up(1, ms(1_000)).await && b.until_up(1, ms(1_000)).await);
    let (done, times) = oneshot::channel();
    let command = Command::Measure { peer: a.me.peer, rounds: 100, done };
    b.commands.send(command).await.unwrap();
    let times = timeout(ms(5_000), times).await.unwrap().unwrap().unwrap();
    assert!(times.len() == 100 && times.iter().all(|time| *time > 0));
    let (done, times) = oneshot::channel();
    let command = Command::Measure { peer: sigmalock_core::PeerId(1), rounds: 100, done };
    b.commands.send(command).await.unwrap();
    assert!(times.await.unwrap().is_err());
}

#[tokio::test]
async fn a_reset_ends_all_sessions_and_they_come_back() {
    let mut a = Peer::start(&config(vec![])).await;
    let mut b = Peer::start(&config(vec![a.address()])).await;
    assert!(a.until_up(1, ms(1_000)).await && b.until_up(1, ms(1_000)).await);
    a.commands.send(Command::Reset).await.unwrap();
    assert!(a.until(ms(1_000), |peer| !peer.down.is_empty()).await);
    assert!(a.until_up(1, ms(3_000)).await && b.until(ms(1_000), |b| !b.down.is_empty()).await);
    assert!(b.until_up(1, ms(3_000)).await);
}

#[tokio::test]
async fn quic_is_spoken_where_an_address_says_so() {
    let mut settings = config(vec![]);
    settings.listen = vec!["/ip4/127.0.0.1/udp/0/quic-v1".parse().unwrap()];
    let mut a = Peer::start(&settings).await;
    settings.join = vec![a.address()];
    let mut b = Peer::start(&settings).await;
    assert!(b.until_up(1, ms(3_000)).await && a.until_up(1, ms(3_000)).await);
}

#[tokio::test]
async fn a_peer_that_only_a_relay_can_reach_is_reached() {
    let mut settings = config(vec![]);
    settings.relay = true;
    let mut relay = Peer::start(&settings).await;
    let mut hidden = settings.clone();
    hidden.listen = vec![relay.address().with(Protocol::P2pCircuit)];
    let mut hidden = Peer::start(&hidden).await;
    let end = Instant::now() + ms(3_000);
    while hidden.describe().await.listening.is_empty() {
        assert!(Instant::now() < end, "the relay did not take it");
        hidden.idle(ms(20)).await;
    }
    settings.join = vec![hidden.describe().await.listening.remove(0)];
    let mut c = Peer::start(&settings).await;
    assert!(c.until_up(2, ms(5_000)).await, "{:?}", c.up.len());
    assert!(c.up.iter().any(|(_, info, _)| info.network == hidden.me.network));
    relay.idle(ms(1)).await;
}

/// Whether somebody gets the address at a relay, or the connection by way of it, that it asks for.
async fn is_relayed(settings: &Config, asks: impl FnOnce(&mut Swarm<Behaviour>)) -> bool {
    let mut stranger = swarm::build(settings, &Identity::ephemeral()).unwrap();
    asks(&mut stranger);
    // It never answers a handshake, nor ends it: until that is over, it has all the time there is.
    let mut handshakes = Vec::new();
    let asked = async {
        loop {
            match stranger.select_next_some().await {
                SwarmEvent::Behaviour(BehaviourEvent::Streams(event)) => handshakes.push(event),
                SwarmEvent::NewListenAddr { .. } => return true,
                SwarmEvent::ConnectionEstablished { endpoint, .. } if endpoint.is_relayed() => {
                    return true;
                }
                SwarmEvent::ListenerClosed { .. } | SwarmEvent::OutgoingConnectionError { .. } => {
                    return false;
                }
                _ => {}
            }
        }
    };
    timeout(ms(4_000), asked).await.unwrap_or(false)
}

#[tokio::test]
async fn a_stranger_is_relayed_to_nobody_and_reached_by_nobody() {
    let mut settings = config(vec![]);
    settings.relay = true;
    let mut relay = Peer::start(&settings).await;
    let mut hidden = settings.clone();
    hidden.listen = vec![relay.address().with(Protocol::P2pCircuit)];
    let mut hidden = Peer::start(&hidden).await;
    let end = Instant::now() + ms(3_000);
    while hidden.describe().await.listening.is_empty() {
        assert!(Instant::now() < end, "the relay did not take it");
        hidden.idle(ms(20)).await;
    }
    let berth = relay.address().with(Protocol::P2pCircuit);
    let listens = |stranger: &mut Swarm<_>| assert!(stranger.listen_on(berth).is_ok());
    assert!(!is_relayed(&settings, listens).await, "it got an address at the relay");
    let there = hidden.describe().await.listening.remove(0);
    let dials = |stranger: &mut Swarm<_>| stranger.dial(there).unwrap();
    assert!(!is_relayed(&settings, dials).await, "it got through to the hidden peer");
    relay.idle(ms(1)).await;
}

#[tokio::test]
async fn two_that_dial_each_other_have_one_session() {
    let mut pairs = vec![];
    for _ in 0..10 {
        let [a, b] = [(); 2].map(|()| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            format!("/ip4/127.0.0.1/tcp/{port}").parse::<Multiaddr>().unwrap()
        });
        let (mut one, mut other) = (config(vec![b.clone()]), config(vec![a.clone()]));
        (one.listen, other.listen) = (vec![a], vec![b]);
        pairs.push(tokio::join!(Peer::start(&one), Peer::start(&other)));
    }
    for (a, b) in &mut pairs {
        assert!(a.until_up(1, ms(3_000)).await && b.until_up(1, ms(3_000)).await);
    }
    // Longer than a second connection is kept.
    tokio::time::sleep(ms(5_000)).await;
    for (a, b) in &mut pairs {
        for peer in [a, b] {
            peer.idle(ms(1)).await;
            assert_eq!((peer.up.len(), &peer.down), (1, &vec![]));
        }
    }
}

#[tokio::test]
async fn an_address_with_the_name_of_a_machine_is_joined() {
    let mut a = Peer::start(&config(vec![])).await;
    let port = a.me.addresses[0].iter().last().unwrap();
    let name: Multiaddr = "/dns4/localhost".parse().unwrap();
    let mut b = Peer::start(&config(vec![name.with(port)])).await;
    assert!(b.until_up(1, ms(3_000)).await && a.until_up(1, ms(3_000)).await);
}
