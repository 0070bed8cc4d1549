//! Processes that are killed, stopped and started again.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::fleet::{Fleet, Manner, Peer};
use crate::load::Load;
use crate::witness::Witness;

const TTL: Duration = Duration::from_secs(3);

/// A process of its own that takes a lock and keeps it: `sigmalock lock NAME`.
pub(crate) fn holder_process(peer: &Peer, name: &str) -> std::process::Child {
    use std::io::BufRead as _;
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_sigmalock"))
        .args(["lock", name, "--ttl", "3s", "--api"])
        .arg(format!("unix:{}", peer.socket.display()))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output is piped");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("it says that it is in");
    assert!(!line.is_empty(), "the holder got in");
    child
}

/// Its script may go on for a moment: what closes stdin lets go at once, what kills it does not.
#[tokio::test]
async fn a_lock_whose_script_ends_lets_the_next_in_at_once_and_a_killed_one_after_the_lease() {
    let fleet = Fleet::of(5).await;
    let (here, there) = (fleet.peers[0].client().await, fleet.peers[1].client().await);
    let rounds = [(&here, false), (&there, false), (&here, true), (&there, true)];
    for (round, (client, killed)) in rounds.into_iter().enumerate() {
        let name = format!("/deaths/holder-{round}");
        let mut holder = holder_process(&fleet.peers[0], &name);
        let next = client.lock(&name).ttl(TTL).acquire();
        let kill = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            if killed {
                holder.kill().expect("the holder can be killed");
            }
            drop(holder.stdin.take());
            let _ = holder.wait();
            Instant::now()
        };
        let (next, ended) = tokio::join!(async { (next.await, Instant::now()) }, kill);
        let (guard, entered) = next;
        guard.expect("the next gets in").release().await.expect("and leaves");
        let took = entered.saturating_duration_since(ended);
        let at_once = took < Duration::from_millis(200);
        let after_the_lease = took > TTL / 2 && took < TTL + Duration::from_secs(1);
        assert!(if killed { after_the_lease } else { at_once }, "{killed}: {took:?}");
    }
}

#[tokio::test]
async fn a_dead_machine_lets_the_next_in_after_the_lease() {
    // A lease of 3 s in the whole swarm, so that what the dead machine hosted is back as soon.
    let arguments = vec!["--lease-max".to_owned(), "3s".to_owned()];
    let mut fleet = Fleet::start(5, Manner { arguments, ..Manner::default() }).await;
    let name = fleet.name_without(4, "/deaths/machine").await;
    let holder = fleet.peers[4].client().await;
    let guard = holder.lock(&name).ttl(TTL).acquire().await.expect("the holder gets in");
    let waiter = fleet.peers[1].client().await;
    let next = tokio::spawn(async move {
        let guard = waiter.lock(&name).ttl(TTL).acquire().await.expect("the next gets in");
        (Instant::now(), guard.token())
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(fleet.kill(4));
    let killed = Instant::now();
    guard.lost().await;
    let (entered, token) = next.await.expect("the waiter does not panic");
    assert!(token > guard.token());
    let took = entered.saturating_duration_since(killed);
    assert!(took < TTL + Duration::from_secs(1), "fail-over took {took:?}");
}

/// `run` ends its command, and says so, before its peer has left; so nobody has to wait for the lease, nor for the next view.
#[tokio::test]
async fn the_lock_of_a_run_whose_peer_leaves_is_free_at_once() {
    let mut fleet = Fleet::of(3).await;
    for (round, command) in
        ["exec sleep 60", "trap 'sleep 0.5; exit' TERM; sleep 60 & wait"].iter().enumerate()
    {
        let name = format!("/deaths/heeds-{round}");
        let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_sigmalock"));
        let api = format!("unix:{}", fleet.peers[2 - round].socket.display());
        let run = run.args(["run", &name, "--api", &api, "sh", "-c", command]);
        let run = run.stderr(std::process::Stdio::piped()).spawn().expect("the binary starts");
        let waiter = fleet.peers[0].client().await;
        while waiter.inspect(&name).await.expect("a picture").holder.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let told = Instant::now();
        let next = async {
            let guard = waiter.lock(&name).acquire().await.expect("the next gets in");
            (guard, told.elapsed())
        };
        let ((guard, took), _) = tokio::join!(next, fleet.leave(2 - round));
        eprintln!(
            "the next is in {took:?} after SIGTERM, and the peer gone after {:?}",
            told.elapsed()
        );
        assert!(took < Duration::from_millis(1_500), "{took:?}");
        drop(guard);
        let ended = run.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let why = "the lock was lost because this peer is stopping, and the command was ended";
        assert!(ended.status.code() == Some(76) && said.contains(why), "{said}");
    }
}

/// It holds what it was told to hold, for as long as it was told, and does not know better before it goes on.
#[tokio::test]
async fn a_stopped_holder_whose_peer_leaves_is_alone_until_its_lease_ends() {
    let arguments = ["--lease-max", "4s"].map(str::to_owned).into();
    let mut fleet = Fleet::start(3, Manner { arguments, ..Manner::default() }).await;
    fleet.agrees_on(3, Duration::from_secs(20)).await;
    let mut holder = holder_process(&fleet.peers[2], "/deaths/leave");
    let pid = rustix::process::Pid::from_raw(holder.id() as i32).expect("a process");
    rustix::process::kill_process(pid, Signal::STOP).expect("it lives");
    let stopped = Instant::now();
    fleet.leave(2).await;
    let next = fleet.peers[0].client().await;
    let guard = next.lock("/deaths/leave").ttl(TTL).acquire().await.expect("the next gets in");
    let waited = stopped.elapsed();
    // It was told, at the latest a third of its ttl ago, that it has that; and meanwhile a member went.
    let (least, most) = (TTL * 2 / 3 - Duration::from_millis(100), Duration::from_secs(15));
    assert!(waited > least && waited < most, "{waited:?}");
    drop(guard);
    let _ = holder.kill().and_then(|()| holder.wait());
}

#[tokio::test]
async fn a_killed_waiter_is_not_waited_for() {
    let mut fleet = Fleet::of(5).await;
    let name = fleet.name_without(4, "/deaths/waiter").await;
    let first = fleet.peers[0].client().await;
    let guard = first.lock(&name).ttl(TTL).acquire().await.expect("the first gets in");
    let doomed = fleet.peers[4].client().await;
    let lock = doomed.lock(&name).ttl(TTL);
    let waiting = tokio::spawn(async move { lock.acquire().await.is_ok() });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let third = fleet.peers[2].client().await;
    let third = tokio::spawn(async move {
        let guard = third.lock(&name).ttl(TTL).acquire().await.expect("the third gets in");
        drop(guard);
        Instant::now()
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(fleet.kill(4));
    assert!(!waiting.await.expect("the waiter does not panic"), "a waiter dies with its peer");
    let released = Instant::now();
    guard.release().await.expect("the first leaves");
    let entered = third.await.expect("the third does not panic");
    let took = entered.saturating_duration_since(released);
    assert!(took < Duration::from_secs(3), "a dead waiter cost {took:?}");
}

#[tokio::test]
async fn the_death_of_a_host_delays_nobody_for_long() {
    let mut fleet = Fleet::of(9).await;
    let witness = Witness::default();
    let mut load = Load::new(&witness);
    let mut names = Vec::new();
    for stem in ["/deaths/host-a", "/deaths/host-b", "/deaths/host-c"] {
        names.push(fleet.name_without(8, stem).await);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for peer in &fleet.peers[..5] {
        load.add(peer, 2, &names);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = load.entries();
    assert!(before > 20, "only {before} entries in a second");
    drop(fleet.kill(8));
    tokio::time::sleep(Duration::from_secs(4)).await;
    load.stop(Duration::from_secs(20)).await;
    assert!(load.entries() > before, "nobody got in after the host died");
    assert!(load.longest_wait() < Duration::from_secs(4), "{:?}", load.longest_wait());
    assert_eq!(witness.objections(), [""; 0]);
}

#[tokio::test]
async fn a_holder_stopped_past_its_lease_finds_its_guard_lost_and_is_refused() {
    use std::io::BufRead as _;
    let scratch = crate::fleet::Scratch::new();
    let store = scratch.path().join("store");
    let arguments = vec!["--lease-max".to_owned(), "3s".to_owned()];
    let fleet = Fleet::start(3, Manner { arguments, ..Manner::default() }).await;
    // The whole machine sleeps: the peer and the process that holds the lock.
    let name = "/deaths/sleeper";
    let mut sleeper = std::process::Command::new(env!("CARGO_BIN_EXE_sigmalock"))
        .args(["lock", name, "--ttl", "2s", "--json", "--api"])
        .arg(format!("unix:{}", fleet.peers[2].socket.display()))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = std::io::BufReader::new(sleeper.stdout.take().expect("piped")).lines();
    let first = lines.next().expect("it says that it is in").expect("in UTF-8");
    let first: serde_json::Value = serde_json::from_str(&first).expect("as JSON");
    let old = first["token"].as_u64().expect("with a token");
    let pid = rustix::process::Pid::from_raw(sleeper.id() as i32).expect("a pid");
    rustix::process::kill_process(pid, Signal::STOP).expect("it can be stopped");
    fleet.peers[2].signal(Signal::STOP);

    let fence = sigmalock::fence::Fence::new(sigmalock::fence::FileStore::new(&store));
    fence.check(name, old, "sleeper").expect("before it fell asleep its writes were accepted");
    let client = fleet.peers[0].client().await;
    let guard = client.lock(name).ttl(TTL).wait(Duration::from_secs(20)).acquire().await;
    let guard = guard.expect("somebody else gets in");
    fence.check(name, guard.token(), "other").expect("the new holder is accepted");
    fleet.peers[2].signal(Signal::CONT);
    rustix::process::kill_process(pid, Signal::CONT).expect("it can go on");
    assert!(fence.check(name, old, "sleeper").is_err(), "the sleeper is refused");
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    let code = sleeper.wait().expect("it ends").code();
    assert_eq!(code, Some(76), "it says that the lock was lost: {said:?}");
    assert!(!guard.is_lost(), "the new holder is not disturbed");
    guard.release().await.expect("and leaves when it wants to");
}

#[tokio::test]
async fn a_restarted_peer_with_its_data_still_knows_its_votes() {
    let mut fleet = Fleet::start(3, Manner { durable: true, ..Manner::default() }).await;
    let witness = Witness::default();
    let mut load = Load::new(&witness);
    for peer in &fleet.peers[..2] {
        load.add(peer, 3, &["/deaths/restart"]);
    }
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let peer = fleet.kill(2);
        tokio::time::sleep(Duration::from_millis(300)).await;
        fleet.restart(peer).await;
        fleet.converged(Duration::from_secs(10)).await;
    }
    let before = load.entries();
    tokio::time::sleep(Duration::from_secs(4)).await;
    load.stop(Duration::from_secs(30)).await;
    assert!(load.entries() > before, "nobody got in after the restarts");
    assert_eq!(witness.objections(), [""; 0]);
}

#[tokio::test]
async fn peers_that_come_back_without_data_abstain_and_nobody_gets_in_twice() {
    let mut fleet =
        Fleet::start(5, Manner { durable: true, open: true, ..Manner::default() }).await;
    let name = "/deaths/amnesia";
    let holder = fleet.peers[0].client().await;
    let guard = holder.lock(name).ttl(Duration::from_secs(10)).acquire().await.expect("gets in");
    for _ in 0..4 {
        // Index 1 each time: those behind it move up.
        let peer = fleet.kill(1);
        std::fs::remove_dir_all(peer.data()).expect("its data can be lost");
        fleet.restart(peer).await;
    }
    fleet.converged(Duration::from_secs(10)).await;
    let other = fleet.peers[1].client().await;
    let busy = other.lock(name).ttl(TTL).wait(Duration::from_secs(2)).acquire().await;
    assert!(busy.is_err(), "everybody has forgotten the holder, and yet it is alone");
    drop(guard);
}

/// What forwards connections to another socket, as `ssh -L` does.
const PROXY: &str = "
import os, socket, sys, threading
def pump(a, b):
    while data := a.recv(65536): b.sendall(data)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1]); server.listen()
print('listens', flush=True)
while True:
    near, _ = server.accept()
    far = socket.socket(socket.AF_UNIX); far.connect(sys.argv[2])
    for pair in (near, far), (far, near): threading.Thread(target=pump, args=pair, daemon=True).start()
";

/// It made the connection, and its end says nothing of the program behind it.
#[tokio::test]
async fn a_killed_proxy_gives_nothing_back_of_who_is_behind_it() {
    use std::io::BufRead as _;
    let fleet = Fleet::of(1).await;
    let scratch = crate::fleet::Scratch::new();
    let socket = scratch.path().join("proxy.sock");
    let mut proxy = std::process::Command::new("python3");
    let proxy = proxy.args(["-c", PROXY]).arg(&socket).arg(&fleet.peers[0].socket);
    let mut proxy = proxy.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let stdout = proxy.stdout.take().expect("piped");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("it says that it listens");
    let client = sigmalock::ConnectOptions::new();
    let client = client.connect(&format!("unix:{}", socket.display())).await.expect("it forwards");
    let guard = client.lock("/deaths/proxy").ttl(TTL).acquire().await.expect("it is free");
    proxy.kill().and_then(|()| proxy.wait()).expect("it can be killed");
    let next = fleet.peers[0].client().await;
    let next = next.lock("/deaths/proxy").ttl(TTL).wait(Duration::from_secs(10)).acquire().await;
    assert!(guard.remaining().is_zero(), "two are inside");
    drop(next.expect("the next gets in"));
}
