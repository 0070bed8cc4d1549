//! Strangers, and peers that do not fit.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::agreed::{SOON, brisk, enters, name_of, said};
use crate::fleet::{Fleet, Manner, Scratch};

/// Runs `sigmalock LINE` to its end.
fn sigmalock(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_sigmalock")).args(arguments).output().expect("it starts")
}

fn new_key(scratch: &Scratch, name: &str) -> String {
    let path = scratch.path().join(name);
    let path = path.to_str().expect("a plain path").to_owned();
    let output = sigmalock(&["key", "new", &path]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// Starts a peer that does not fit, and waits until both sides have said why.
async fn refused(fleet: &mut Fleet, extra: &[&str], word: &str) {
    let index = fleet.join(extra).await;
    let begin = Instant::now();
    loop {
        let (ours, theirs) = (fleet.peers[0].logged(), fleet.peers[index].logged());
        if ours.contains(word) && theirs.contains(word) {
            break;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "both sides should say `{word}`:\n--- ours\n{ours}\n--- theirs\n{theirs}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let client = fleet.peers[index].client().await;
    let peers = client.peers().await.expect("it answers");
    assert_eq!(peers.iter().filter(|peer| !peer.is_self).count(), 0, "it is alone");
    let status = client.status().await.expect("it answers");
    if status.membership == "agreed" {
        let why = &status.why_not;
        assert!(why.contains("lets it in: ") && why.contains(word), "{why}");
    }
    drop(fleet.kill(index));
}

#[tokio::test]
async fn who_has_another_key_or_none_is_refused_and_both_sides_say_why() {
    let scratch = Scratch::new();
    let (ours, other) = (new_key(&scratch, "ours"), new_key(&scratch, "other"));
    let arguments = vec!["--swarm-key".to_owned(), ours];
    let mut fleet = Fleet::start(3, Manner { arguments, ..Manner::default() }).await;
    refused(&mut fleet, &["--swarm-key", &other], "swarm key").await;
    let client = fleet.peers[1].client().await;
    let guard = client.lock("/intruders/key").wait(Duration::from_secs(5)).acquire().await;
    guard.expect("the swarm goes on").release().await.expect("undisturbed");
}

/// In the middle of a change of the key two halves refuse each other: both live, and neither is forgotten.
#[tokio::test]
async fn members_that_answer_and_are_refused_are_not_forgotten() {
    let scratch = Scratch::new();
    let (ours, other) = (new_key(&scratch, "ours"), new_key(&scratch, "other"));
    let Manner { durable, mut arguments, .. } = brisk(true, "30s");
    arguments.extend(["--swarm-key".to_owned(), ours]);
    let mut fleet = Fleet::start(4, Manner { durable, arguments, ..Manner::default() }).await;
    fleet.agrees_on(4, SOON).await;
    let mut names = Vec::new();
    for peer in &fleet.peers {
        names.push(name_of(peer).await);
    }
    for peer in [fleet.kill(3), fleet.kill(2)] {
        fleet.restart_with(peer, &["--swarm-key", &other]).await;
    }
    // All come to the first one; the second has heard of nobody.
    for peer in [&fleet.peers[0], &fleet.peers[2], &fleet.peers[3]] {
        let begin = Instant::now();
        let words = "there, but refused or refusing this peer: ";
        while !said(&peer.ask(&["status"])).contains(words) {
            assert!(begin.elapsed() < SOON, "{}", said(&peer.ask(&["status"])));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let me = name_of(peer).await;
        let mine = |name: &&String| names[..2].contains(*name) == names[..2].contains(&me);
        let others = names.iter().filter(|name| !mine(name)).map(String::as_str);
        let forget = ["forget"].into_iter().chain(others).chain(["--yes"]);
        let refused = peer.ask(&forget.collect::<Vec<_>>());
        assert_eq!(refused.status.code(), Some(64), "{}", said(&refused));
        assert!(said(&refused).contains("is not gone: it answered"), "{}", said(&refused));
        assert!(!enters(peer, "/intruders/halves", Duration::ZERO).await);
    }
}

#[tokio::test]
async fn who_counts_other_votes_is_refused_and_both_sides_say_why() {
    let mut fleet = Fleet::open(2).await;
    refused(&mut fleet, &["--replicas", "5", "--quorum", "3"], "5").await;
    refused(&mut fleet, &["--lease-max", "7s"], "7 s").await;
}

#[tokio::test]
async fn open_and_agreed_membership_refuse_each_other_and_both_sides_say_why() {
    let words = "the kinds of membership differ";
    let mut fleet = Fleet::of(2).await;
    refused(&mut fleet, &["--membership", "open"], words).await;
    goes_on(&fleet, "/intruders/membership").await;
    drop(fleet);
    let mut fleet = Fleet::open(2).await;
    refused(&mut fleet, &["--membership", "agreed"], words).await;
}

/// Whether the fleet still grants locks, quickly.
async fn goes_on(fleet: &Fleet, name: &str) {
    let client = fleet.peers[0].client().await;
    let guard = client.lock(name).wait(Duration::from_secs(3)).acquire().await;
    guard.expect("the swarm goes on").release().await.expect("undisturbed");
}

fn tcp_address(multiaddr: &str) -> String {
    let parts: Vec<&str> = multiaddr.split('/').collect();
    format!("{}:{}", parts[2], parts[4])
}

#[tokio::test]
async fn garbage_and_silence_on_the_peer_port_hurt_nobody() {
    let fleet = Fleet::of(3).await;
    let address = tcp_address(fleet.peers[0].address());
    let mut garbage: Vec<u8> = Vec::new();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    while garbage.len() < 1 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        garbage.extend_from_slice(&state.to_le_bytes());
    }
    let mut silent: Vec<TcpStream> = Vec::new();
    for round in 0..40 {
        let mut stream = TcpStream::connect(&address).expect("the port is open");
        stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout can be set");
        let _ = match round % 4 {
            0 => stream.write_all(&garbage),
            1 => stream.write_all(b"\x13/multistream/1.0.0\n"),
            2 => stream.write_all(&u32::MAX.to_le_bytes()),
            _ => Ok(()),
        };
        silent.push(stream);
    }
    goes_on(&fleet, "/intruders/garbage").await;
    // Whoever says nothing sensible is shown the door.
    let begin = Instant::now();
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
        let mut sink = [0u8; 4_096];
        while stream.read(&mut sink).is_ok_and(|n| n > 0) {}
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "silent strangers stay too long");
    assert!(fleet.peers[0].rss_mib() < 60.0, "{} MiB", fleet.peers[0].rss_mib());
    goes_on(&fleet, "/intruders/garbage").await;
}

#[tokio::test]
async fn garbage_and_slow_writers_on_the_api_hurt_nobody() {
    let fleet = Fleet::of(3).await;
    let socket = fleet.peers[0].socket.clone();
    let mut streams = Vec::new();
    for round in 0..30u8 {
        let mut stream = UnixStream::connect(&socket).expect("the socket is open");
        stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout can be set");
        let _ = match round % 3 {
            0 => stream.write_all(&[round; 100_000]),
            // The preface of HTTP/2, then a frame that claims to be 16 MiB long.
            1 => stream
                .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x01"),
            _ => stream.write_all(b"PRI * HT"),
        };
        streams.push(stream);
    }
    goes_on(&fleet, "/intruders/api").await;
    drop(streams);
    goes_on(&fleet, "/intruders/api").await;
}

#[test]
fn without_a_key_there_is_no_peer_of_a_swarm() {
    let scratch = Scratch::new();
    let socket = scratch.path().join("s").display().to_string();
    for flags in
        [&["--found", "--yes"][..], &["--join", "127.0.0.1:1"], &["--expect", "1", "--yes"]]
    {
        let words = [&["node", "--ephemeral", "--no-trace", "--socket", &socket], flags].concat();
        let refused = sigmalock(&words);
        assert_eq!(refused.status.code(), Some(64), "{flags:?}");
        assert!(said(&refused).contains("share a secret"), "{}", said(&refused));
    }
}
