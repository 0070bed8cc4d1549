//! What names cost, and that it is given back when they have been forgotten.

use std::time::Duration;

use sigmalock::{Client, Guard};
use tokio::task::JoinSet;

use crate::fleet::Fleet;

/// A name is forgotten a minute after its last use, and looked at again within as long if it was used meanwhile.
const FORGOTTEN: Duration = Duration::from_secs(75);
/// So much more than a peer that has just started may one have that has forgotten what it knew.
const KEPT_MAX: f64 = 1.5;
/// The longest there is: so many renewals are work.
const TTL: Duration = Duration::from_secs(15);
/// Requests at a time.
const AT_A_TIME: usize = 256;

async fn hold(client: &Client, names: usize) -> Vec<Guard> {
    let (mut held, mut under_way) = (Vec::with_capacity(names), JoinSet::new());
    for number in 0..names {
        if under_way.len() == AT_A_TIME {
            held.extend(under_way.join_next().await.map(|guard| guard.expect("no panic")));
        }
        let client = client.clone();
        under_way.spawn(async move {
            let lock = client.lock(format!("/many/{number}")).ttl(TTL);
            lock.acquire().await.expect("it is free")
        });
    }
    held.extend(under_way.join_all().await);
    held
}

fn memory(fleet: &Fleet) -> Vec<f64> {
    fleet.peers.iter().map(|peer| peer.rss_mib()).collect()
}

/// `SIGMALOCK_SOAK_SECONDS` says that there is time for it, and `cargo xtask test --long` sets it.
#[tokio::test]
async fn the_memory_of_names_that_are_forgotten_is_given_back() {
    if std::env::var_os("SIGMALOCK_SOAK_SECONDS").is_none() {
        eprintln!("SKIPPED, NOTHING TESTED: this takes two minutes (cargo xtask test --long)");
        return;
    }
    let names = std::env::var("SIGMALOCK_SOAK_NAMES").ok().and_then(|names| names.parse().ok());
    let fleet = Fleet::of(3).await;
    let client = fleet.peers[0].client().await;
    drop(hold(&client, 100).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let fresh = memory(&fleet);
    let mut held = hold(&client, names.unwrap_or(30_000)).await;
    let full = memory(&fleet);
    eprintln!("fresh {fresh:.1?} MiB, with {} names held {full:.1?} MiB", held.len());
    assert!(full[0] > fresh[0] * 2.0, "so many names cost something: {full:?}");
    while let Some(guard) = held.pop() {
        // Where the machine is slow, one may have been lost.
        let _ = guard.release().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    eprintln!("released {:.1?} MiB", memory(&fleet));
    tokio::time::sleep(FORGOTTEN).await;
    let left = memory(&fleet);
    let ratios: Vec<f64> = left.iter().zip(&fresh).map(|(left, fresh)| left / fresh).collect();
    eprintln!("forgotten {left:.1?} MiB: {ratios:.2?} times what a fresh one has");
    assert!(ratios.iter().all(|ratio| *ratio < KEPT_MAX), "{ratios:?}");
}
