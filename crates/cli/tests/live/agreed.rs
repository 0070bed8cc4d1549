//! Who is in: founding, joining, leaving, dying, coming back, and the operator's last resort.

use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fleet::{Fleet, Manner, Peer, Scratch};

const TWO: &str = "two peers cannot survive the crash of one: start a third";
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Views change as fast as the longest lease allows, so here it is short.
pub(crate) fn brisk(durable: bool, dead_after: &str) -> Manner {
    let flags = ["--lease-max", "3s", "--dead-after", dead_after];
    Manner { durable, arguments: flags.map(str::to_owned).into(), ..Manner::default() }
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What `peers --json` shows.
pub(crate) fn peers(peer: &Peer) -> Vec<Value> {
    let output = peer.ask(&["peers", "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The view and the members that `peers --json` shows, ascending.
pub(crate) fn members(peer: &Peer) -> (u64, Vec<String>) {
    let peers = peers(peer);
    let is_member = |peer: &&Value| peer["standing"] == "member";
    let name = |peer: &Value| peer["peer"].as_str().expect("a name").to_owned();
    let mut names: Vec<String> = peers.iter().filter(is_member).map(name).collect();
    names.sort();
    (peers[0]["view"].as_u64().expect("a view"), names)
}

pub(crate) async fn name_of(peer: &Peer) -> String {
    peer.client().await.peer()
}

pub(crate) async fn names_of(peers: &[Peer]) -> Vec<String> {
    let mut names = Vec::new();
    for peer in peers {
        names.push(name_of(peer).await);
    }
    names.sort();
    names
}

/// Gets a lock at a peer, or says how long that was tried in vain.
pub(crate) async fn enters(peer: &Peer, name: &str, within: Duration) -> bool {
    let lock = peer.client().await.lock(name).ttl(Duration::from_secs(3)).wait(within);
    let guard = lock.acquire().await;
    guard.is_ok()
}

#[tokio::test]
async fn founding_joining_and_leaving_show_in_the_view() {
    let mut fleet = Fleet::start(1, brisk(false, "30s")).await;
    assert_eq!(members(&fleet.peers[0]), (1, names_of(&fleet.peers).await));
    for size in 2..=4 {
        fleet.join(&[]).await;
        let view = fleet.agrees_on(size, SOON).await;
        for peer in &fleet.peers {
            assert_eq!(members(peer), (view, names_of(&fleet.peers).await));
        }
        let status = said(&fleet.peers[0].ask(&["status"]));
        assert_eq!(status.contains(TWO), size == 2, "{status}");
        let begin = Instant::now();
        while !std::fs::read_to_string(&fleet.peers[0].log).expect("a log").contains(TWO) {
            assert!(begin.elapsed() < Duration::from_secs(3), "the log does not say it");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    // A client is there, and no member.
    let client = fleet.join(&["--client-only"]).await;
    assert!(enters(&fleet.peers[client], "/agreed/client", SOON).await);
    let name = name_of(&fleet.peers[client]).await;
    let seen = peers(&fleet.peers[0]);
    let seen = seen.iter().find(|peer| peer["peer"] == name.as_str()).expect("it is seen");
    assert_eq!((&seen["standing"], &seen["member_since"]), (&"client".into(), &0.into()));
    drop(fleet.leave(client).await);

    for size in (1..=3).rev() {
        let begin = Instant::now();
        drop(fleet.leave(size).await);
        fleet.agrees_on(size, SOON).await;
        eprintln!("{} members left {size} in {:?}", size + 1, begin.elapsed());
        assert_eq!(members(&fleet.peers[0]).1, names_of(&fleet.peers).await);
        assert!(enters(&fleet.peers[0], "/agreed/left", SOON).await);
    }
}

#[tokio::test]
async fn a_join_to_nobody_founds_nothing_and_says_so_until_somebody_is_there() {
    // A place where nobody listens, yet.
    let place = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("known");
    let place = place.to_string();
    let mut fleet = Fleet::nobody(Manner::default()).await;
    let lost = fleet.join(&["--join", &place]).await;
    assert!(!enters(&fleet.peers[lost], "/agreed/nobody", Duration::from_secs(5)).await);
    let status = fleet.peers[lost].ask(&["status"]);
    assert_eq!(status.status.code(), Some(1), "{}", said(&status));
    let port = place.rsplit(':').next().expect("a port").to_owned();
    for words in ["in no swarm yet", "waits to be added", "nobody has answered", port.as_str()] {
        assert!(said(&status).contains(words), "{words}: {}", said(&status));
    }
    let explained = fleet.peers[lost].ask(&["explain", "/agreed/nobody"]);
    assert!(said(&explained).contains("in no swarm yet"), "{}", said(&explained));
    assert_eq!(members(&fleet.peers[lost]), (0, vec![]));

    fleet.join(&["--found", "--listen", &place]).await;
    fleet.agrees_on(2, Duration::from_secs(30)).await;
    assert!(enters(&fleet.peers[lost], "/agreed/nobody", SOON).await);
}

/// Starts `node` in a data directory and gives back how that ended, if it ended at once.
pub(crate) fn start_in(scratch: &Scratch, flags: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sigmalock"));
    child.args([
        "node",
        "--no-trace",
        "--config",
        "/dev/null",
        "--yes",
        "--listen",
        "127.0.0.1:0",
        "--idle-exit",
        "300ms",
    ]);
    child.arg("--data").arg(scratch.path().join("data")).arg("--swarm-key").arg(scratch.key());
    child.arg("--socket").arg(scratch.path().join("s"));
    child.args(flags).output().expect("the binary starts")
}

#[tokio::test]
async fn a_data_directory_is_of_one_kind_of_membership_and_founds_one_swarm() {
    for (kind, other) in [("agreed", "open"), ("open", "agreed")] {
        let scratch = Scratch::new();
        let first = start_in(&scratch, &["--found", "--membership", kind]);
        assert_eq!(first.status.code(), Some(0), "{}", said(&first));
        let refused = start_in(&scratch, &["--found", "--membership", other]);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        let words = format!("it belongs to a swarm with {kind} membership");
        assert!(said(&refused).contains(&words), "{}", said(&refused));
        let again = start_in(&scratch, &["--found", "--membership", kind]);
        assert_eq!(again.status.code(), Some(0), "{}", said(&again));
        if kind == "agreed" {
            assert!(said(&first).contains("founded a swarm"), "{}", said(&first));
            let words =
                "going on in the swarm it knows (view 1, 1 member); no second one is founded";
            assert!(said(&again).contains(words), "{}", said(&again));
        }
    }
    let scratch = Scratch::new();
    let nobody = start_in(&scratch, &[]);
    assert_eq!(nobody.status.code(), Some(64), "{}", said(&nobody));
    assert!(!scratch.path().join("data").exists(), "nothing was written");
}

/// Kills the last of a fleet, and says who they were.
async fn kill_last(fleet: &mut Fleet, count: usize) -> Vec<String> {
    let mut gone = Vec::new();
    for _ in 0..count {
        let last = fleet.peers.len() - 1;
        gone.push(name_of(&fleet.peers[last]).await);
        drop(fleet.kill(last));
    }
    gone
}

/// Waits until a peer has noticed that it reaches too few.
async fn is_of_a_minority(peer: &Peer) {
    let (begin, client) = (Instant::now(), peer.client().await);
    while client.status().await.expect("it has a status").standing != "minority" {
        assert!(begin.elapsed() < SOON, "it does not notice");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn two_of_four_forget_the_other_two_without_vouching_for_more_than_that() {
    let mut fleet = Fleet::start(4, brisk(false, "4s")).await;
    fleet.agrees_on(4, SOON).await;
    let one = kill_last(&mut fleet, 1).await;
    let needless = fleet.peers[0].ask(&["forget", &one[0], "--yes"]);
    assert_eq!(needless.status.code(), Some(64), "{}", said(&needless));
    assert!(said(&needless).contains("3 of 4 members are connected"), "{}", said(&needless));
    let gone = [one, kill_last(&mut fleet, 1).await].concat();
    is_of_a_minority(&fleet.peers[0]).await;
    let forget = ["forget", &gone[0], &gone[1], "--yes", "--json"];
    let begin = Instant::now();
    let mut forgotten = fleet.peers[0].ask(&forget);
    while said(&forgotten).contains("has just started") {
        assert!(begin.elapsed() < SOON, "{}", said(&forgotten));
        tokio::time::sleep(Duration::from_millis(200)).await;
        forgotten = fleet.peers[0].ask(&forget);
    }
    assert_eq!(forgotten.status.code(), Some(0), "{}", said(&forgotten));
    eprintln!("forgotten after {:?}", begin.elapsed());
    let json: Value = serde_json::from_slice(&forgotten.stdout).expect("JSON");
    assert_eq!((&json["members"], json["peers"].as_array().map(Vec::len)), (&2.into(), Some(2)));
    for peer in &fleet.peers {
        assert!(enters(peer, "/agreed/rescue", SOON).await);
    }
}

#[tokio::test]
async fn forgetting_rescues_two_survivors_of_five_and_only_with_yes() {
    let mut fleet = Fleet::start(5, brisk(false, "4s")).await;
    fleet.agrees_on(5, SOON).await;
    let gone_names = ["m4", "m3", "m2"];
    let gone: [String; 3] = kill_last(&mut fleet, 3).await.try_into().expect("three");
    assert!(!enters(&fleet.peers[0], "/agreed/rescue", Duration::from_secs(6)).await);
    let status = fleet.peers[0].ask(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(said(&status).contains("reaches 2 of 5 members"), "{}", said(&status));
    let run = fleet.peers[0].ask(&["lock", "/agreed/rescue", "--try"]);
    assert_eq!(run.status.code(), Some(75));
    assert!(said(&run).contains("cannot be had now; this peer reaches 2 of 5"), "{}", said(&run));
    let log = std::fs::read_to_string(&fleet.peers[0].log).unwrap();
    assert!(log.contains("cannot grant locks: this peer reaches 2 of 5 members"), "{log}");
    let before = members(&fleet.peers[0]);
    assert_eq!(before.1.len(), 5, "members that are away are shown");

    let silent = said(&fleet.peers[0].ask(&["peers"]));
    assert_eq!(silent.matches("silent for").count(), 3, "{silent}");
    let other = name_of(&fleet.peers[1]).await;
    let [first, second, third] = gone.each_ref().map(String::as_str);
    let silent = format!("{} is a member, was not named, and did not answer", gone_names[2]);
    for (words, sentence) in [
        (&[first, second, "--json"][..], "say --yes"),
        (&["q1", "--yes"], "no member"),
        (&[&other, "--yes"], "can be reached, so it is not gone"),
        (&[first, second, third, "--yes"], "cannot be verified here"),
        (&[first, second, third, "--unverified"], "say --yes"),
        // All who are gone are named at once.
        (&[first, second, "--yes"], &silent),
    ] {
        let refused = fleet.peers[0].ask(&[&["forget"], words].concat());
        assert_eq!(refused.status.code(), Some(64), "{}", said(&refused));
        assert!(said(&refused).contains(sentence), "{}", said(&refused));
    }
    assert_eq!(members(&fleet.peers[0]), before, "nothing has changed");

    let begin = Instant::now();
    let forgotten = fleet.peers[0].ask(&["forget", first, second, third, "--yes", "--unverified"]);
    assert_eq!(forgotten.status.code(), Some(0), "{}", said(&forgotten));
    eprint!("after {:?}: {}", begin.elapsed(), said(&forgotten));
    let begin = Instant::now();
    for peer in &fleet.peers {
        assert!(enters(peer, "/agreed/rescue", SOON).await);
    }
    eprintln!("two of five hold locks again after {:?}", begin.elapsed());
    fleet.agrees_on(2, SOON).await;
    for peer in &fleet.peers {
        assert!(
            peer.logged().contains("an operator had members forgotten: view "),
            "{}",
            peer.logged()
        );
    }
    assert_eq!(members(&fleet.peers[0]).1, names_of(&fleet.peers).await);
    let begin = Instant::now();
    let log = || std::fs::read_to_string(&fleet.peers[0].log).unwrap();
    while !log().contains(": can grant locks: view ") {
        assert!(begin.elapsed() < SOON, "the log does not say that all is well: {}", log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_member_that_was_voted_out_comes_back_with_its_data() {
    let mut fleet = Fleet::start(3, brisk(true, "3s")).await;
    fleet.agrees_on(3, SOON).await;
    let name = name_of(&fleet.peers[2]).await;
    let dead = fleet.kill(2);
    let begin = Instant::now();
    fleet.agrees_on(2, SOON).await;
    eprintln!("voted out after {:?}", begin.elapsed());
    assert!(enters(&fleet.peers[0], "/agreed/out", SOON).await);
    let begin = Instant::now();
    let back = fleet.restart(dead).await;
    fleet.agrees_on(3, SOON).await;
    eprintln!("back in after {:?}", begin.elapsed());
    assert_eq!(name_of(&fleet.peers[back]).await, name, "as who it was");
    assert!(enters(&fleet.peers[back], "/agreed/out", SOON).await);
}

#[tokio::test]
async fn who_founded_a_swarm_and_left_it_finds_it_again_and_founds_no_other() {
    let mut fleet = Fleet::start(3, brisk(true, "30s")).await;
    fleet.agrees_on(3, SOON).await;
    let founder = name_of(&fleet.peers[0]).await;
    let addresses = fleet.peers[0].data().join("peers");
    let known = || std::fs::read_to_string(&addresses).is_ok_and(|text| text.lines().count() == 2);
    let begin = Instant::now();
    while !known() {
        assert!(begin.elapsed() < SOON, "the addresses of others are not kept");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let left = fleet.leave(0).await;
    fleet.agrees_on(2, SOON).await;
    // As a service would: with the very flags of its first start.
    let back = fleet.restart_with(left, &["--found"]).await;
    fleet.agrees_on(3, SOON).await;
    assert_eq!(name_of(&fleet.peers[back]).await, founder);
    assert_eq!(members(&fleet.peers[back]).1, names_of(&fleet.peers).await);
}

#[tokio::test]
async fn two_foundings_do_not_become_one_swarm_and_say_why() {
    let mut fleet = Fleet::start(2, Manner::default()).await;
    fleet.agrees_on(2, SOON).await;
    let ours = fleet.peers[0].address().to_owned();
    let other = fleet.join(&["--found"]).await;
    let theirs = fleet.peers[other].address().to_owned();
    let both = fleet.join(&["--join", &ours, "--join", &theirs]).await;
    let begin = Instant::now();
    let refusal = loop {
        let status = said(&fleet.peers[both].ask(&["status"]));
        if status.contains("belongs to another swarm") && status.contains("can grant  yes") {
            break status;
        }
        assert!(begin.elapsed() < SOON, "{status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    eprintln!("{refusal}");
    let (_, joined) = members(&fleet.peers[both]);
    let sizes = [members(&fleet.peers[0]).1.len(), members(&fleet.peers[other]).1.len()];
    assert!(sizes == [3, 1] || sizes == [2, 2], "it is in one of them: {sizes:?}");
    assert_eq!(joined.len(), if sizes == [3, 1] { 3 } else { 2 });
}

#[tokio::test]
async fn a_member_that_lost_its_memory_is_removed_and_added_again() {
    let mut fleet = Fleet::start(3, brisk(true, "30s")).await;
    let view = fleet.agrees_on(3, SOON).await;
    let dead = fleet.kill(2);
    for file in ["votes.redb", "votes.journal", "votes.header"] {
        std::fs::remove_file(dead.data().join(file)).expect("it can be lost");
    }
    let begin = Instant::now();
    let back = fleet.restart(dead).await;
    let status = said(&fleet.peers[back].ask(&["status"]));
    // It may have been removed already, and wait to be added.
    let waits = ["lost its memory", "waits to be added"].iter().any(|words| status.contains(words));
    assert!(waits, "{status}");
    assert!(fleet.agrees_on(3, Duration::from_secs(40)).await >= view + 2);
    eprintln!("removed and added again after {:?}", begin.elapsed());
    assert!(enters(&fleet.peers[back], "/agreed/lost", SOON).await);
}
