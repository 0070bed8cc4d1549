//! Peers that come and go while everybody is busy.

use std::time::{Duration, Instant};

use crate::fleet::Fleet;
use crate::load::Load;
use crate::witness::Witness;

#[tokio::test]
async fn three_peers_exclude_each_other() {
    exclude_each_other(3).await;
}

#[tokio::test]
async fn five_peers_exclude_each_other() {
    exclude_each_other(5).await;
}

#[tokio::test]
async fn twenty_peers_exclude_each_other() {
    exclude_each_other(20).await;
}

async fn exclude_each_other(size: usize) {
    let fleet = Fleet::of(size).await;
    // The tenth waits for a lease before it votes, and the others for it.
    fleet.agrees_on(size, Duration::from_secs(30)).await;
    eprintln!("{size} members after {:?}", fleet.begin.elapsed());
    let witness = Witness::default();
    let mut load = Load::new(&witness);
    for peer in &fleet.peers {
        load.add(peer, 2, &["/moves/one", "/moves/two"]);
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    load.stop(Duration::from_secs(30)).await;
    assert!(witness.entries() > 50, "only {} entries", witness.entries());
    assert_eq!(load.lost(), 0, "nobody loses a lock in peace");
    assert_eq!(witness.objections(), [""; 0]);
}

#[tokio::test]
async fn joins_and_clean_leaves_under_load_lose_no_vote() {
    let mut fleet = Fleet::open(3).await;
    let witness = Witness::default();
    let mut load = Load::new(&witness);
    for peer in &fleet.peers {
        load.add(peer, 2, &["/moves/busy-1", "/moves/busy-2"]);
    }
    // Held all the while, so that its votes move from host to host.
    let keeper = fleet.peers[0].client().await;
    let held = keeper.lock("/moves/held").ttl(Duration::from_secs(3)).acquire().await;
    let held = held.expect("the keeper gets in");
    for _ in 0..6 {
        fleet.join(&[]).await;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    fleet.converged(Duration::from_secs(15)).await;
    for _ in 0..6 {
        let begin = Instant::now();
        fleet.leave(3).await;
        assert!(begin.elapsed() < Duration::from_secs(5), "a leave took {:?}", begin.elapsed());
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let intruder = fleet.peers[1].client().await;
    assert!(
        intruder.lock("/moves/held").try_acquire().await.is_err(),
        "the votes of the held lock are where they should be"
    );
    assert!(!held.is_lost(), "the holder did not notice any of it");
    let token = held.token();
    held.release().await.expect("and leaves");
    let next = intruder.lock("/moves/held").wait(Duration::from_secs(5)).acquire().await;
    assert!(next.expect("the next gets in").token() > token);
    load.stop(Duration::from_secs(30)).await;
    assert_eq!(witness.objections(), [""; 0]);
    // Six newcomers in a row, each of which looks around for three seconds before it votes.
    assert!(load.longest_wait() < Duration::from_secs(10), "{:?}", load.longest_wait());
    assert_eq!(load.lost(), 0);
}

#[tokio::test]
async fn a_client_only_peer_uses_the_swarm_and_hosts_nothing() {
    let mut fleet = Fleet::of(3).await;
    let index = fleet.join(&["--client-only"]).await;
    let client = fleet.peers[index].client().await;
    for round in 0..20 {
        let name = format!("/moves/client-{round}");
        let guard = client.lock(&name).wait(Duration::from_secs(5)).acquire().await;
        guard.expect("it gets in").release().await.expect("and out");
    }
    let status = client.status().await.expect("it has a status");
    assert_eq!(status.hosted, 0);
}

#[tokio::test]
async fn an_idle_peer_is_small_and_quiet() {
    let fleet = Fleet::of(5).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before: Vec<Duration> = fleet.peers.iter().map(|peer| peer.cpu()).collect();
    tokio::time::sleep(Duration::from_secs(5)).await;
    for (peer, before) in fleet.peers.iter().zip(before) {
        let used = peer.cpu() - before;
        assert!(peer.rss_mib() < 30.0, "{} MiB", peer.rss_mib());
        // One per cent is 50 ms; a test machine is not quiet enough for less than twice that.
        assert!(used <= Duration::from_millis(100), "{used:?} in 5 s");
    }
}
