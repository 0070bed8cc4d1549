//! Asking, waiting, holding, giving back.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sigmalock::AcquireError;
use tokio::time::timeout;

use crate::peer::Peer;

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_lock_is_held_by_one_and_then_by_the_next_with_a_higher_token() {
    let peer = Peer::start().await;
    for address in [peer.unix(), peer.tcp()] {
        let client = sigmalock::Client::connect(&address).await.unwrap();
        let first = client.lock("/a").ttl(Duration::from_secs(4)).acquire().await.unwrap();
        assert_eq!(first.name(), "/a");
        assert!(!first.is_lost());
        assert!(first.remaining() > Duration::from_secs(3), "{:?}", first.remaining());
        assert!(first.remaining() <= Duration::from_secs(4), "{:?}", first.remaining());
        assert!(first.deadline() > Instant::now());
        assert!(matches!(client.lock("/a").try_acquire().await, Err(AcquireError::Busy)));
        let (token, holder) = (first.token(), first.holder_id());
        first.release().await.unwrap();
        let second = client.lock("/a").try_acquire().await.unwrap();
        assert!(second.token() > token);
        assert_ne!(second.holder_id(), holder);
    }
}

#[tokio::test]
async fn a_guard_is_extended_for_as_long_as_it_is_kept() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let ttl = Duration::from_secs(2);
    let guard = client.lock("/a").ttl(ttl).acquire().await.unwrap();
    assert!(timeout(ttl * 2, guard.lost()).await.is_err(), "lost without a reason");
    guard.check().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn dropping_a_guard_releases_it() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    drop(client.lock("/a").acquire().await.unwrap());
    let next = timeout(SOON, client.lock("/a").acquire()).await.unwrap().unwrap();
    let signal = next.lost_signal();
    drop(next);
    assert!(signal.is_lost());
}

#[tokio::test]
async fn patience_ends_and_says_how_long_it_was() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let _held = client.lock("/a").acquire().await.unwrap();
    let patience = Duration::from_millis(300);
    let begun = Instant::now();
    let answer = client.lock("/a").wait(patience).acquire().await;
    assert!(
        matches!(answer, Err(AcquireError::TimedOut { waited }) if waited == patience),
        "{answer:?}"
    );
    let took = begun.elapsed();
    assert!(took >= patience && took < patience * 4, "{took:?}");
}

#[tokio::test]
async fn the_longest_patience_is_for_ever() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let held = client.lock("/a").acquire().await.unwrap();
    let waiting = tokio::spawn(client.lock("/a").wait(Duration::MAX).acquire());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    held.release().await.unwrap();
    drop(timeout(SOON, waiting).await.unwrap().unwrap().unwrap());
}

#[tokio::test]
async fn waiters_hear_their_place_and_come_in_in_order() {
    let peer = Peer::start().await;
    let holder = peer.labelled("holder").await;
    let held = holder.lock("/a").acquire().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let places = Arc::new(Mutex::new(vec![Vec::new(); 3]));
    let mut waiters = Vec::new();
    for number in 0..3 {
        let client = peer.labelled(&format!("waiter {number}")).await;
        let (order, seen, places) = (Arc::clone(&order), Arc::clone(&places), Arc::clone(&places));
        waiters.push(tokio::spawn(async move {
            let guard = client
                .lock("/a")
                .on_queue(move |place| seen.lock().unwrap()[number].push(place.ahead))
                .acquire()
                .await
                .unwrap();
            order.lock().unwrap().push(number);
            guard.release().await.unwrap();
        }));
        // The next comes only when this one waits.
        let queued = async {
            while places.lock().unwrap()[number].is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, queued).await.expect("a waiter hears that it waits");
    }
    held.release().await.unwrap();
    for waiter in waiters {
        timeout(SOON, waiter).await.unwrap().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    let firsts: Vec<u32> = places.lock().unwrap().iter().map(|places| places[0]).collect();
    assert!(firsts.is_sorted() && firsts[0] < firsts[2], "{firsts:?}");
}

#[tokio::test]
async fn dropping_the_future_takes_the_request_back() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let held = client.lock("/a").acquire().await.unwrap();
    for _ in 0..10 {
        let waiting = client.lock("/a").acquire();
        assert!(timeout(Duration::from_millis(20), waiting).await.is_err());
    }
    let nobody_waits = async {
        while client.status().await.unwrap().waiting > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, nobody_waits).await.expect("no orphan waits");
    held.release().await.unwrap();
    // Nobody who was dropped has got it since.
    drop(client.lock("/a").try_acquire().await.unwrap());
}

#[tokio::test]
async fn a_grant_that_crosses_its_cancellation_is_given_back() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    for round in 0..200_u32 {
        // Dropped at every stage, from before it was asked to after it was answered.
        let asking = client.lock("/a").acquire();
        let _ = timeout(Duration::from_micros(u64::from(round) * 10), asking).await;
    }
    let free = async {
        loop {
            let status = client.status().await.unwrap();
            if status.held == 0 && status.waiting == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, free).await.expect("everything is given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_locks_are_acquired_at_once_by_one_client() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let tasks: Vec<_> = (0..1_000)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { client.lock(format!("/a/{number}")).acquire().await })
        })
        .collect();
    let mut guards = Vec::new();
    for task in tasks {
        guards.push(timeout(SOON, task).await.unwrap().unwrap().unwrap());
    }
    assert_eq!(client.status().await.unwrap().held, 1_000);
    let releases: Vec<_> = guards.into_iter().map(|guard| tokio::spawn(guard.release())).collect();
    for release in releases {
        timeout(SOON, release).await.unwrap().unwrap().unwrap();
    }
    assert_eq!(client.status().await.unwrap().held, 0);
}
