//! Data directories that are put back, copied, and run twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sigmalock::Guard;

use crate::agreed::{brisk, enters, said};
use crate::fleet::{Fleet, Peer};
use crate::witness::Witness;

const SOON: Duration = Duration::from_secs(20);
/// Removals and additions are a lease apart.
const IN_A_WHILE: Duration = Duration::from_secs(60);
const OLD: &str = "not the newest that it had, or not the only one";

/// Copies a data directory, as `cp -r` would.
fn copy(from: &Path, to: &Path) -> PathBuf {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("a directory can be made");
    for file in std::fs::read_dir(from).expect("it can be read") {
        let path = file.expect("it can be read").path();
        let name = path.file_name().expect("it has a name");
        std::fs::copy(&path, to.join(name)).expect("it can be copied");
    }
    to.to_owned()
}

/// Waits until the log and the status of a peer both say this.
async fn says(peer: &Peer, what: &str) {
    let begin = Instant::now();
    loop {
        let texts = [peer.logged(), said(&peer.ask(&["status"]))];
        if texts.iter().all(|text| text.contains(what)) {
            return;
        }
        assert!(begin.elapsed() < SOON, "nothing about {what:?}: {texts:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Somebody gets in at a peer and tells the witness.
async fn hold(peer: &Peer, name: &str, witness: &Witness) -> Guard {
    let client = peer.client().await;
    let lock = client.lock(name).ttl(Duration::from_secs(3)).wait(SOON);
    let guard = lock.acquire().await.expect("it is free");
    witness.enter_by(name, guard.token(), &client.peer(), guard.lost_signal());
    guard
}

#[tokio::test]
async fn old_backups_of_two_of_three_let_nobody_in_and_every_log_says_so() {
    let mut fleet = Fleet::start(3, brisk(true, "60s")).await;
    fleet.agrees_on(3, SOON).await;
    let mut backups = Vec::new();
    for index in [2, 1] {
        let stopped = fleet.kill(index);
        let shelf = stopped.data().with_extension("backup");
        backups.push((stopped.data().to_owned(), copy(stopped.data(), &shelf)));
        fleet.restart(stopped).await;
        fleet.agrees_on(3, SOON).await;
    }
    let witness = Witness::default();
    let guard = hold(&fleet.peers[0], "/copies/backup", &witness).await;
    let dead = [fleet.kill(2), fleet.kill(1)];
    backups.iter().for_each(|(data, shelf)| drop(copy(shelf, data)));
    for peer in dead {
        fleet.restart(peer).await;
    }
    let within = Duration::from_secs(8);
    let [first, second] = [1, 2].map(|index| enters(&fleet.peers[index], "/copies/backup", within));
    assert_eq!(tokio::join!(first, second), (false, false));
    for peer in &fleet.peers[1..] {
        says(peer, OLD).await;
        let name = peer.client().await.peer_name();
        says(&fleet.peers[0], &name).await;
    }
    says(&fleet.peers[0], "came back with an old disk").await;
    drop(guard);
    assert_eq!(witness.objections(), [""; 0]);
}

#[tokio::test]
async fn one_directory_on_two_machines_in_turn_is_noticed_each_time() {
    let mut fleet = Fleet::start(3, brisk(true, "60s")).await;
    fleet.agrees_on(3, SOON).await;
    let stopped = fleet.kill(2);
    let mut here = stopped.data().to_owned();
    let mut there = copy(&here, &here.with_extension("copy"));
    fleet.restart(stopped).await;
    let witness = Witness::default();
    for turn in 0..3 {
        let view = fleet.agrees_on(3, IN_A_WHILE).await;
        let held = format!("/copies/turn-{turn}");
        let guard = hold(&fleet.peers[0], &held, &witness).await;
        fleet.kill(2);
        std::mem::swap(&mut here, &mut there);
        let index = fleet.start_with_data(&here).await;
        assert!(!enters(&fleet.peers[index], &held, Duration::ZERO).await);
        // The first copy is behind; the next one has been removed meanwhile, and may have found that out at once.
        if turn == 0 {
            says(&fleet.peers[index], OLD).await;
        }
        assert!(fleet.agrees_on(3, IN_A_WHILE).await >= view + 2, "it is removed and added");
        let log = fleet.peers[index].logged();
        let told = ["votes for nobody until", "is not in the swarm"];
        assert!(told.iter().any(|words| log.contains(words)), "{log}");
        assert!(!guard.lost_signal().is_lost(), "two of three kept the holder inside");
        witness.leave(&held, guard.token());
    }
    assert_eq!(witness.objections(), [""; 0]);
}

#[tokio::test]
async fn two_peers_with_one_identity_at_once_are_told_by_all_and_the_second_lets_nobody_in() {
    let mut fleet = Fleet::start(3, brisk(true, "5s")).await;
    fleet.agrees_on(3, SOON).await;
    let witness = Witness::default();
    let guard = hold(&fleet.peers[0], "/copies/both", &witness).await;
    let copied = copy(fleet.peers[2].data(), &fleet.peers[2].data().with_extension("copy"));
    let twin = fleet.start_with_data(&copied).await;
    // It knows too little yet to be told that the others are gone.
    let others = [&fleet.peers[0], &fleet.peers[1]].map(|peer| peer.ask(&["status", "--json"]));
    let others = others.map(|status| {
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
        status["peer"].as_str().expect("a name").to_owned()
    });
    let hasty = fleet.peers[twin].ask(&["forget", &others[0], &others[1], "--yes", "--unverified"]);
    assert_eq!(hasty.status.code(), Some(64), "{}", said(&hasty));
    // Who is asked, who is copied, and the copy.
    for index in [0, 2, twin] {
        says(&fleet.peers[index], "another peer has the same identity").await;
    }
    says(&fleet.peers[twin], OLD).await;
    assert!(!enters(&fleet.peers[twin], "/copies/both", Duration::from_secs(1)).await);
    assert!(!enters(&fleet.peers[twin], "/copies/other", Duration::from_secs(1)).await);
    assert!(enters(&fleet.peers[2], "/copies/another", SOON).await, "the first one goes on");
    // The first one ends: the second is a newcomer, once that has been voted out.
    fleet.kill(2);
    fleet.agrees_on(3, Duration::from_secs(90)).await;
    assert!(!guard.lost_signal().is_lost());
    drop(guard);
    assert_eq!(witness.objections(), [""; 0]);
}

/// What `run` says that waits for a few seconds in vain.
fn waits_in_vain(peer: &Peer, name: &str) -> String {
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_sigmalock"));
    let api = format!("unix:{}", peer.socket.display());
    let waited = run.args(["run", "--api", &api, "--wait", "4s", name, "true"]).output();
    let waited = waited.expect("the binary starts");
    assert_eq!(waited.status.code(), Some(75), "{}", said(&waited));
    said(&waited)
}

/// Both have let somebody in, since neither knew of the other.
#[tokio::test]
async fn a_swarm_that_became_two_lets_nobody_in_where_they_meet_and_says_so() {
    let mut fleet = Fleet::nobody(brisk(true, "60s")).await;
    fleet.join(&["--found"]).await;
    assert!(enters(&fleet.peers[0], "/copies/two", SOON).await, "it is alone, and has written so");
    let founder = fleet.kill(0);
    let shelf = copy(founder.data(), &founder.data().with_extension("backup"));
    fleet.restart(founder).await;
    fleet.join(&[]).await;
    fleet.agrees_on(2, SOON).await;
    assert!(enters(&fleet.peers[1], "/copies/two", SOON).await);
    let (second, founder) = (fleet.kill(1), fleet.kill(0));
    copy(&shelf, founder.data());
    fleet.restart(founder).await;
    fleet.join(&[]).await;
    fleet.agrees_on(2, SOON).await;
    assert!(enters(&fleet.peers[1], "/copies/two", SOON).await);
    fleet.restart(second).await;
    let words = "this swarm is two, because old data directories were put back";
    for peer in &fleet.peers {
        says(peer, words).await;
        let waited = waits_in_vain(peer, "/copies/two");
        assert!(waited.contains(words), "{waited}");
    }
}

/// Each has a founding of its own, so they are told apart at the first word, and neither is any use to the other.
#[tokio::test]
async fn two_swarms_that_were_founded_with_one_key_refuse_each_other_and_say_so() {
    let mut fleet = Fleet::nobody(brisk(true, "60s")).await;
    for index in 0..2 {
        fleet.join(&["--found"]).await;
        assert!(enters(&fleet.peers[index], "/copies/founded", SOON).await);
    }
    let contact = fleet.peers[0].address().to_owned();
    let second = fleet.kill(1);
    fleet.restart_with(second, &["--join", &contact]).await;
    for peer in &fleet.peers {
        says(peer, "it belongs to another swarm").await;
        says(peer, "a swarm is founded once, and two cannot become one").await;
    }
}
