//! Many of everything.

use std::time::{Duration, Instant};

use crate::fleet::Fleet;

/// Ten thousand calls wait for one name, over three peers; all get in, one after the other.
#[tokio::test]
async fn ten_thousand_wait_for_one_name_and_all_get_in() {
    let fleet = Fleet::of(3).await;
    let mut waiters = Vec::new();
    let mut clients = Vec::new();
    for peer in &fleet.peers {
        clients.push(peer.client().await);
    }
    let gate = clients[0].lock("/crowds/one").ttl(Duration::from_secs(10)).acquire().await;
    let gate = gate.expect("the first gets in");
    for waiter in 0..10_000 {
        let client = clients[waiter % clients.len()].clone();
        waiters.push(tokio::spawn(async move {
            let guard = client.lock("/crowds/one").ttl(Duration::from_secs(10)).acquire().await?;
            let token = guard.token();
            guard.release().await.ok();
            Ok::<u64, sigmalock::AcquireError>(token)
        }));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let begin = Instant::now();
    gate.release().await.expect("the first leaves");
    let mut tokens = Vec::new();
    for waiter in waiters {
        let token = tokio::time::timeout(Duration::from_secs(120), waiter).await;
        tokens.push(token.expect("nobody is stuck").expect("nor panics").expect("all get in"));
    }
    eprintln!("10,000 waiters in {:?}", begin.elapsed());
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 10_000, "every entry has a token of its own");
}

/// A hundred thousand names held at once by one client, renewed all the while, and given back.
#[tokio::test]
async fn a_hundred_thousand_names_are_held_at_once() {
    let fleet = Fleet::of(3).await;
    let client = fleet.peers[0].client().await;
    let begin = Instant::now();
    let mut guards = Vec::with_capacity(100_000);
    let mut tasks = tokio::task::JoinSet::new();
    let mut next = 0u32;
    while guards.len() < 100_000 {
        while next < 100_000 && tasks.len() < 512 {
            let client = client.clone();
            let name = format!("/crowds/many/{next}");
            next += 1;
            tasks.spawn(
                async move { client.lock(&name).ttl(Duration::from_secs(15)).acquire().await },
            );
        }
        let guard = tasks.join_next().await.expect("there are tasks").expect("none panics");
        guards.push(guard.expect("each gets in"));
    }
    eprintln!("100,000 names in {:?}", begin.elapsed());
    for peer in &fleet.peers {
        eprintln!("  a peer has {:.0} MiB", peer.rss_mib());
    }
    // Longer than a lease: they live by renewal.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let lost = guards.iter().filter(|guard| guard.is_lost()).count();
    assert_eq!(lost, 0, "none is lost");
    let other = fleet.peers[1].client().await;
    for sample in [0, 49_999, 99_999] {
        let name = format!("/crowds/many/{sample}");
        assert!(other.lock(&name).try_acquire().await.is_err(), "{name} is held");
    }
    drop(guards);
    let name = "/crowds/many/99999";
    let guard = other.lock(name).wait(Duration::from_secs(20)).acquire().await;
    guard.expect("they are given back").release().await.expect("and out");
}

/// Fifty peers on one machine, joining one after the other.
#[tokio::test]
async fn fifty_peers_converge() {
    let fleet = Fleet::open(50).await;
    let took = fleet.formed_in;
    eprintln!("50 peers in {took:?}");
    assert!(took < Duration::from_secs(15), "50 peers took {took:?}");
    let client = fleet.peers[49].client().await;
    let guard = client.lock("/crowds/fifty").wait(Duration::from_secs(5)).acquire().await;
    guard.expect("and grant locks").release().await.expect("and take them back");
}
