//! Growing and restarting a swarm while everybody is busy.

use std::time::{Duration, Instant};

use crate::fleet::{Fleet, Manner};
use crate::load::Load;
use crate::witness::Witness;

/// A worker each, so that nobody waits for anybody: what is measured is the swarm.
const NAMES: [&str; 4] = ["/growth/a", "/growth/b", "/growth/c", "/growth/d"];

/// That of workers and holders.
const TTL: Duration = Duration::from_secs(3);

#[tokio::test]
async fn growing_from_one_to_nine_takes_seconds_and_delays_nobody() {
    let mut fleet = Fleet::of(1).await;
    let witness = Witness::default();
    let mut load = Load::new(&witness);
    load.add(&fleet.peers[0], NAMES.len(), &NAMES);
    let holder = fleet.peers[0].client().await;
    let held = holder.lock("/growth/held").acquire().await.expect("it is free");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (begin, entries) = (Instant::now(), load.entries());
    for size in 2..=9 {
        fleet.join(&[]).await;
        let view = fleet.agrees_on(size, Duration::from_secs(20)).await;
        eprintln!("{:>6.2?}: {size} members, view {view}", begin.elapsed());
    }
    let took = begin.elapsed();
    let entries = load.entries() - entries;
    load.stop(Duration::from_secs(10)).await;
    eprintln!("1 to 9 in {took:?}, {entries} entries, longest wait {:?}", load.longest_wait());
    assert!(!held.is_lost(), "the holder did not notice");
    let other = fleet.peers[8].client().await;
    assert!(other.lock("/growth/held").try_acquire().await.is_err(), "it is held");
    held.release().await.expect("held to the end");
    assert_eq!(witness.objections(), [""; 0]);
    assert_eq!(load.lost(), 0, "nobody loses a lock");
    assert!(entries > 100, "only {entries} entries");
    assert!(took < Duration::from_secs(10), "growing took {took:?}");
    assert!(load.longest_wait() < Duration::from_secs(1), "{:?}", load.longest_wait());
}

#[tokio::test]
async fn a_founder_says_again_how_many_votes_there_are_when_the_swarm_has_grown() {
    let mut fleet = Fleet::of(1).await;
    assert!(fleet.peers[0].logged().contains("a lock is held by 1 of 1 votes"));
    for size in 2..=5 {
        fleet.join(&[]).await;
        fleet.agrees_on(size, Duration::from_secs(20)).await;
    }
    let news = || {
        let log = fleet.peers[0].logged();
        let lines =
            log.lines().filter(|line| line.contains("can grant locks: ")).map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    let words = "view 5 has 5 members, and a lock is held by 3 of 5 votes";
    let begin = Instant::now();
    while !news().last().is_some_and(|line| line.ends_with(words)) {
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", news());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(news().len() <= 3, "not a line for each of four: {:?}", news());
}

/// Restarts all of five durable peers, one after the other. Those who hold locks are at a sixth, a client
/// only: the programs of a peer that stops lose what they hold, whoever stops it.
async fn rolling_restart(kill: bool) {
    let arguments = ["--lease-max", "3s"].map(str::to_owned).into();
    let mut fleet = Fleet::start(5, Manner { durable: true, arguments, ..Manner::default() }).await;
    fleet.agrees_on(5, Duration::from_secs(20)).await;
    let client = fleet.join(&["--client-only"]).await;
    // First in the list, it would be joined through; so it comes last and stays there.
    let client = fleet.peers.remove(client);
    let witness = Witness::default();
    let mut load = Load::new(&witness);
    load.add(&client, NAMES.len(), &NAMES);
    let holder = client.client().await;
    let held = holder.lock("/growth/held").ttl(TTL).acquire().await;
    let held = held.expect("it is free");
    let begin = Instant::now();
    for round in 1..=5 {
        // Index 0 each time: who was restarted is last.
        let peer = if kill { fleet.kill(0) } else { fleet.leave(0).await };
        tokio::time::sleep(Duration::from_millis(200)).await;
        fleet.restart(peer).await;
        let view = fleet.agrees_on(5, Duration::from_secs(30)).await;
        eprintln!(
            "{:>6.2?}: {round} restarted, view {view}, longest wait {:?}",
            begin.elapsed(),
            load.longest_wait()
        );
    }
    load.stop(Duration::from_secs(10)).await;
    let entries = load.entries();
    eprintln!("restarted in {:?}, {entries} entries", begin.elapsed());
    assert!(!held.is_lost(), "the holder did not notice");
    held.release().await.expect("held to the end");
    assert_eq!(witness.objections(), [""; 0]);
    assert_eq!(load.lost(), 0, "nobody loses a lock");
    assert!(entries > 100, "only {entries} entries");
    assert!(load.longest_wait() < Duration::from_secs(2), "{:?}", load.longest_wait());
    fleet.peers.push(client);
}

#[tokio::test]
async fn a_rolling_restart_of_five_peers_loses_no_lock_and_delays_nobody_for_long() {
    rolling_restart(false).await;
}

#[tokio::test]
async fn killing_and_restarting_five_peers_in_turn_loses_no_lock_and_delays_nobody_for_long() {
    rolling_restart(true).await;
}
