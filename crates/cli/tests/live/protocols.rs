//! Every lock protocol of the catalogue, live: what the users of a swarm may count on, whichever it runs. The next one is
//! among them as soon as it has its line there.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sigmalock_protocols::catalogue::ProtocolName;

use crate::agreed::{SOON, said, start_in};
use crate::deaths::holder_process;
use crate::fleet::{Fleet, Manner, Peer, Scratch};
use crate::load::Load;
use crate::witness::Witness;

/// The lease, and the longest of the swarm.
const TTL: Duration = Duration::from_secs(3);
/// How much longer it may take until the next is in: who has no queue asks again at random.
const LATER: Duration = Duration::from_secs(4);

/// So many peers that agree on who is in, and guard locks like that.
async fn swarm(protocol: ProtocolName, size: usize) -> Fleet {
    let flags = ["--protocol", protocol.as_str(), "--lease-max", "3s"];
    let arguments = flags.map(str::to_owned).into();
    let fleet = Fleet::start(size, Manner { arguments, ..Manner::default() }).await;
    fleet.agrees_on(size, SOON).await;
    fleet
}

fn witness(protocol: ProtocolName) -> Witness {
    match protocol.card().promises.tokens {
        true => Witness::default(),
        false => Witness::without_tokens(),
    }
}

#[tokio::test]
async fn contending_workers_are_never_inside_together() {
    for protocol in ProtocolName::locks() {
        let fleet = swarm(protocol, 3).await;
        let witness = witness(protocol);
        let mut load = Load::new(&witness);
        for peer in &fleet.peers {
            load.add(peer, 4, &["/protocols/a", "/protocols/b"]);
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        load.stop(SOON * 2).await;
        let (entries, longest) = (load.entries(), load.longest_wait());
        eprintln!("{protocol}: {entries} entries, longest wait {longest:?}");
        assert_eq!(witness.objections(), [""; 0], "{protocol}");
        assert!(entries > 30 && load.lost() == 0, "{protocol}: {entries}, {} lost", load.lost());
        assert_eq!(witness.entries(), entries, "{protocol}");
    }
}

#[tokio::test]
async fn after_a_killed_holder_the_next_is_in_within_the_lease() {
    for protocol in ProtocolName::locks() {
        let fleet = swarm(protocol, 3).await;
        for (round, peer) in fleet.peers.iter().enumerate().take(2) {
            let name = format!("/protocols/holder-{round}");
            let mut holder = holder_process(&fleet.peers[0], &name);
            let client = peer.client().await;
            assert!(client.lock(&name).ttl(TTL).try_acquire().await.is_err(), "{protocol}");
            holder.kill().expect("the holder can be killed");
            let _ = holder.wait();
            let killed = Instant::now();
            let guard = client.lock(&name).ttl(TTL).wait(SOON).acquire().await;
            guard.expect("the next gets in").release().await.expect("and leaves");
            let took = killed.elapsed();
            eprintln!("{protocol}: the next was in after {took:?}");
            assert!(took < TTL + LATER, "{protocol}: fail-over took {took:?}");
        }
    }
}

#[tokio::test]
async fn after_a_killed_machine_the_next_is_in_after_the_lease_and_not_before() {
    for protocol in ProtocolName::locks() {
        let mut fleet = swarm(protocol, 5).await;
        let name = "/protocols/machine";
        let holder = fleet.peers[4].client().await;
        let guard = holder.lock(name).ttl(TTL).acquire().await.expect("the holder gets in");
        let waiter = fleet.peers[1].client().await;
        let next = tokio::spawn(async move {
            let guard = waiter.lock(name).ttl(TTL).acquire().await.expect("the next gets in");
            (Instant::now(), guard.token())
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        // It may be extended once more before its peer is dead, and ends no earlier.
        let until = guard.deadline();
        drop(fleet.kill(4));
        let killed = Instant::now();
        let (entered, token) = next.await.expect("the waiter does not panic");
        let took = entered.saturating_duration_since(killed);
        eprintln!("{protocol}: the next was in after {took:?}");
        assert!(entered >= until, "{protocol}: the next was in {:?} early", until - entered);
        assert!(took < TTL + LATER, "{protocol}: fail-over took {took:?}");
        let tokens = protocol.card().promises.tokens;
        assert!(if tokens { token > guard.token() } else { token == 0 }, "{protocol}: {token}");
        drop(guard);
    }
}

#[tokio::test]
async fn the_others_go_on_without_a_killed_peer() {
    for protocol in ProtocolName::locks() {
        let mut fleet = swarm(protocol, 5).await;
        let witness = witness(protocol);
        let mut load = Load::new(&witness);
        for peer in &fleet.peers[..4] {
            load.add(peer, 2, &["/protocols/a", "/protocols/b", "/protocols/c"]);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        drop(fleet.kill(4));
        let before = load.entries();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let meanwhile = load.entries() - before;
        load.stop(SOON * 2).await;
        let longest = load.longest_wait();
        eprintln!("{protocol}: {meanwhile} entries after it, longest wait {longest:?}");
        assert!(
            meanwhile > 20 && load.lost() == 0,
            "{protocol}: {meanwhile}, {} lost",
            load.lost()
        );
        assert_eq!(witness.objections(), [""; 0], "{protocol}");
    }
}

/// Runs the binary for programs of a peer.
fn command(peer: &Peer, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sigmalock"));
    command.env("SIGMALOCK_API", format!("unix:{}", peer.socket.display()));
    // As if this were a command of an outer `run`, with a token of another lock.
    command.env("SIGMALOCK_TOKEN", "7").stdin(Stdio::null());
    command.args(words).output().expect("the binary starts")
}

#[tokio::test]
async fn a_swarm_says_which_protocol_it_runs_and_what_its_users_do_without() {
    for protocol in ProtocolName::locks() {
        let fleet = swarm(protocol, 1).await;
        let (peer, promises) = (&fleet.peers[0], protocol.card().promises);
        let status: Value =
            serde_json::from_slice(&peer.ask(&["status", "--json"]).stdout).expect("JSON");
        assert_eq!(status["protocol"], protocol.as_str());
        let shown = said(&peer.ask(&["status"]));
        assert!(shown.contains(&format!("\nprotocol   {protocol}")), "{shown}");
        assert_eq!(shown.contains("no fencing tokens"), !promises.tokens, "{shown}");

        let tell = "echo token=${SIGMALOCK_TOKEN-none}";
        let ran = command(peer, &["run", "/protocols/run", "--", "sh", "-c", tell]);
        assert!(ran.status.success(), "{}", said(&ran));
        assert_eq!(said(&ran).contains("token=none"), !promises.tokens, "{}", said(&ran));
        assert!(!said(&ran).contains("token=7\n"), "{}", said(&ran));
        let words = "gives no fencing tokens: the command finds no SIGMALOCK_TOKEN";
        assert_eq!(said(&ran).contains(words), !promises.tokens, "{}", said(&ran));
        let held = command(peer, &["lock", "/protocols/lock", "--json"]);
        let held: Value = serde_json::from_slice(&held.stdout).expect("JSON");
        assert_eq!(held["token"].is_null(), !promises.tokens, "{held}");

        for mode in [&["--shared"][..], &["--permits", "2"]] {
            let line = [&["lock", "/protocols/modes", "--wait", "5s"], mode].concat();
            let ended = command(peer, &line);
            assert_eq!(ended.status.success(), promises.modes, "{}", said(&ended));
            let refused = said(&ended).contains("the lock protocol of this swarm has no ");
            assert_eq!(refused, !promises.modes, "{}", said(&ended));
        }
    }
}

#[tokio::test]
async fn a_peer_with_another_lock_protocol_is_let_in_by_nobody_and_both_say_why() {
    let mut fleet = Fleet::of(1).await;
    let other = fleet.join(&["--protocol", "strawman"]).await;
    let kinds = [(0, "(ours sigma, theirs strawman)"), (other, "(ours strawman, theirs sigma)")];
    for (index, kind) in kinds {
        let client = fleet.peers[index].client().await;
        let (begin, words) = (Instant::now(), format!("the lock protocols differ {kind}"));
        loop {
            let refusals = client.status().await.expect("it has a status").refusals;
            if refusals.iter().any(|refusal| refusal.contains(&words)) {
                break;
            }
            assert!(begin.elapsed() < SOON, "{refusals:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn a_data_directory_is_of_one_lock_protocol() {
    for (one, other) in [("sigma", "strawman"), ("strawman", "sigma")] {
        let scratch = Scratch::new();
        let first = start_in(&scratch, &["--found", "--protocol", one]);
        assert_eq!(first.status.code(), Some(0), "{}", said(&first));
        let refused = start_in(&scratch, &["--found", "--protocol", other]);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        let words = format!("it belongs to a swarm whose lock protocol is {one}");
        assert!(said(&refused).contains(&words), "{}", said(&refused));
        let again = start_in(&scratch, &["--found", "--protocol", one]);
        assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    }
    let scratch = Scratch::new();
    let never = start_in(&scratch, &["--protocol", "strawman", "--membership", "open"]);
    assert_eq!(never.status.code(), Some(64), "{}", said(&never));
    assert!(said(&never).contains("strawman does not run with open"), "{}", said(&never));
    assert!(!scratch.path().join("data").exists(), "nothing was written");
}
