//! How a swarm begins: hosts that are all told the same make one, or none.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::agreed::{SOON, brisk, enters, members, name_of, names_of, said};
use crate::fleet::{Fleet, Peer, Scratch};
use crate::router::{Router, apart};

/// What hosts that begin a swarm together are told, all of them the same; each listens at one of the addresses.
struct Hosts {
    addresses: Vec<String>,
    join: String,
    expect: String,
}

impl Hosts {
    fn at(addresses: Vec<String>) -> Self {
        let (join, expect) = (addresses.join(","), addresses.len().to_string());
        Self { addresses, join, expect }
    }

    /// So many at free ports of this machine.
    fn here(count: usize) -> Self {
        let bind = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
        let ports: Vec<TcpListener> = (0..count).map(bind).collect();
        let address = |port: &TcpListener| port.local_addr().expect("known").to_string();
        Self::at(ports.iter().map(address).collect())
    }

    /// The flags of one of them: only where it listens differs, which on machines of their own it would not.
    fn flags(&self, host: usize) -> [&str; 6] {
        let Self { addresses, join, expect } = self;
        ["--expect", expect, "--join", join, "--listen", &addresses[host]]
    }
}

/// Waits until a peer says this of itself.
async fn says(peer: &Peer, words: &str) {
    let begin = Instant::now();
    loop {
        let status = said(&peer.ask(&["status"]));
        if status.contains(words) {
            return;
        }
        assert!(begin.elapsed() < SOON, "it does not say that {words}: {status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until its log says this.
async fn logs(peer: &Peer, words: &str) {
    let begin = Instant::now();
    while !peer.logged().contains(words) {
        assert!(begin.elapsed() < SOON, "it does not log that {words}: {}", peer.logged());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn nobody_enters(fleet: &Fleet, name: &str) {
    for peer in &fleet.peers {
        assert!(!enters(peer, name, Duration::from_secs(1)).await, "{}", peer.logged());
    }
}

#[tokio::test]
async fn three_hosts_with_one_command_line_make_one_swarm_and_a_fourth_joins_it() {
    let hosts = Hosts::here(3);
    let mut fleet = Fleet::nobody(brisk(true, "30s")).await;
    for (host, words) in [
        "this swarm has 1 of the 3 hosts it expects; nothing is granted before all have been in",
        "this swarm has 2 of the 3 hosts it expects; nothing is granted before all have been in",
    ]
    .into_iter()
    .enumerate()
    {
        fleet.join(&hosts.flags(host)).await;
        for peer in &fleet.peers {
            says(peer, words).await;
            assert_eq!(peer.ask(&["status"]).status.code(), Some(1));
            logs(peer, words).await;
            assert!(said(&peer.ask(&["peers"])).contains(words));
        }
        nobody_enters(&fleet, "/founding/three").await;
    }
    let waits = fleet.peers[0].ask(&["lock", "/founding/three", "--wait", "4s"]);
    assert_eq!(waits.status.code(), Some(75), "{}", said(&waits));
    assert!(said(&waits).contains("this swarm has 2 of the 3 hosts"), "{}", said(&waits));

    let begin = Instant::now();
    fleet.join(&hosts.flags(2)).await;
    says(&fleet.peers[0], "this swarm is new: had its hosts been another one").await;
    fleet.agrees_on(3, SOON).await;
    eprintln!("the third came, and they have a swarm that grants after {:?}", begin.elapsed());
    assert_eq!(members(&fleet.peers[0]), (1, names_of(&fleet.peers).await));
    for (peer, own) in fleet.peers.iter().zip(&hosts.addresses) {
        assert!(enters(peer, "/founding/three", SOON).await);
        // Each was told its own address, too.
        let itself = format!("{} cannot be reached", own.replace(':', "/tcp/"));
        assert!(!peer.logged().contains(&itself), "{}", peer.logged());
    }
    fleet.join(&["--join", &hosts.join]).await;
    fleet.agrees_on(4, SOON).await;
    assert!(enters(&fleet.peers[3], "/founding/three", SOON).await);
}

#[tokio::test]
async fn a_founder_whose_directory_is_lost_founds_nothing_and_is_taken_in_again() {
    let hosts = Hosts::here(3);
    let mut fleet = Fleet::nobody(brisk(true, "3s")).await;
    for host in 0..3 {
        fleet.join(&hosts.flags(host)).await;
    }
    fleet.agrees_on(3, SOON).await;
    let former = name_of(&fleet.peers[0]).await;
    let lost = fleet.kill(0);
    std::fs::remove_dir_all(lost.data()).expect("it can be lost");
    // The others are there, and do not answer.
    fleet.peers.iter().for_each(|peer| peer.signal(Signal::STOP));
    let back = fleet.restart_with(lost, &hosts.flags(0)).await;
    says(&fleet.peers[back], "this swarm has 1 of the 3 hosts it expects").await;
    assert!(!enters(&fleet.peers[back], "/founding/lost", Duration::from_secs(5)).await);
    assert_eq!(members(&fleet.peers[back]).1, [""; 0]);
    fleet.peers[..back].iter().for_each(|peer| peer.signal(Signal::CONT));
    let begin = Instant::now();
    fleet.agrees_on(3, Duration::from_secs(60)).await;
    eprintln!("taken in again after {:?}", begin.elapsed());
    assert!(!members(&fleet.peers[back]).1.contains(&former), "as somebody else");
    for peer in &fleet.peers {
        assert!(enters(peer, "/founding/lost", SOON).await);
    }
}

#[tokio::test]
async fn two_of_three_that_do_not_reach_the_third_at_first_grant_nothing_until_they_do() {
    let Some(mut fleet) = Fleet::machines(3, brisk(true, "30s")).await else { return };
    let hosts = Hosts::at((0..3).map(|host| format!("{}:7421", Router::address(host))).collect());
    fleet.router().lose(apart(&[&[0, 1], &[2]]));
    for host in 0..3 {
        fleet.join(&hosts.flags(host)).await;
    }
    for (peer, here) in [(0, 2), (1, 2), (2, 1)] {
        says(&fleet.peers[peer], &format!("this swarm has {here} of the 3 hosts")).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    nobody_enters(&fleet, "/founding/cut").await;
    assert_eq!(members(&fleet.peers[0]), (0, vec![]));
    let begin = Instant::now();
    fleet.router().heal();
    fleet.agrees_on(3, Duration::from_secs(30)).await;
    eprintln!("they met, and have a swarm after {:?}", begin.elapsed());
    assert_eq!(members(&fleet.peers[2]), (1, names_of(&fleet.peers).await));
    for peer in &fleet.peers {
        assert!(enters(peer, "/founding/cut", SOON).await);
    }
}

#[tokio::test]
async fn hosts_that_expect_different_numbers_make_no_swarm_and_say_why() {
    let hosts = Hosts::here(2);
    let mut fleet = Fleet::nobody(brisk(false, "30s")).await;
    fleet.join(&hosts.flags(0)).await;
    let other = ["--expect", "3", "--join", &hosts.join, "--listen", &hosts.addresses[1]];
    fleet.join(&other).await;
    for (peer, own, other) in [(0, 2, 3), (1, 3, 2)] {
        let name = format!("m{}", 1 - peer);
        let words =
            format!("this peer was told to --expect {own}, and {name} to --expect {other}:");
        says(&fleet.peers[peer], &words).await;
        logs(&fleet.peers[peer], &words).await;
    }
    nobody_enters(&fleet, "/founding/differ").await;
}

/// How a `node` begins that is told to end soon, or is killed.
fn node(scratch: &Scratch, flags: &[&str]) -> Command {
    let path = |name: &str| scratch.path().join(name);
    let mut node = Command::new(env!("CARGO_BIN_EXE_sigmalock"));
    node.args([
        "node",
        "--no-trace",
        "--config",
        "/dev/null",
        "--listen",
        "127.0.0.1:0",
        "--idle-exit",
        "300ms",
    ]);
    node.arg("--data").arg(path("data")).arg("--socket").arg(path("s")).args(flags);
    node.arg("--swarm-key").arg(scratch.key());
    node.stdin(Stdio::null());
    node
}

#[test]
fn a_founder_that_is_killed_at_any_moment_of_its_first_start_founds_at_the_next_or_goes_on() {
    let (mut founded, mut resumed) = (0, 0);
    for moment in (0..40).step_by(2) {
        let scratch = Scratch::new();
        let mut first = node(&scratch, &["--found", "--yes"]);
        let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(moment));
        first.kill().and_then(|()| first.wait()).expect("it can be killed");
        let second = node(&scratch, &["--found", "--yes"]).output().expect("the binary starts");
        assert_eq!(second.status.code(), Some(0), "{}", said(&second));
        founded += usize::from(said(&second).contains("founded a swarm"));
        resumed += usize::from(said(&second).contains("going on in the swarm it knows"));
    }
    assert_eq!(founded + resumed, 20, "{founded} founded, {resumed} went on");
}

/// Starts `node` and gives back how that ended, if it ended at once.
fn start(scratch: &Scratch, flags: &[&str]) -> Output {
    node(scratch, flags).output().expect("the binary starts")
}

#[test]
fn a_swarm_is_founded_alone_only_by_somebody_who_says_so() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    for alone in [&["--found"][..], &["--expect", "1"]] {
        let refused = start(&scratch, alone);
        assert_eq!(refused.status.code(), Some(64), "{}", said(&refused));
        assert!(said(&refused).contains("say --yes if there is none"), "{}", said(&refused));
        assert!(!data.exists(), "nothing was written");
        let founded = start(&scratch, &[alone, &["--yes"]].concat());
        assert_eq!(founded.status.code(), Some(0), "{}", said(&founded));
        // With its data it founds nothing, and need not be asked.
        let again = start(&scratch, alone);
        assert_eq!(again.status.code(), Some(0), "{}", said(&again));
        assert!(said(&again).contains("going on in the swarm it knows"), "{}", said(&again));
        std::fs::remove_dir_all(&data).expect("it can be lost");
    }
}
