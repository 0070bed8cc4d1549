//! What is cut off, however and for however long, is back two seconds after the network is whole again; and a network
//! that loses large packets only is no network.
//!
//! Cuts of over a minute are made where `SIGMALOCK_SOAK_SECONDS` is set, as by `cargo xtask test --long`.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::agreed::{brisk, said};
use crate::contenders::Contenders;
use crate::fleet::Fleet;
use crate::router::{Cuts, Router, apart};

/// By then everybody gets every lock again.
const BACK_MAX: Duration = Duration::from_secs(2);
/// What a busy machine may add.
const SLACK: Duration = Duration::from_millis(500);

const ALL: [usize; 5] = [0, 1, 2, 3, 4];

async fn at_work(dead_after: &str) -> Option<(Fleet, Contenders)> {
    let fleet = Fleet::routed(5, brisk(false, dead_after)).await?;
    let mut contenders = Contenders::default();
    for (machine, peer) in fleet.peers.iter().enumerate() {
        contenders.add(peer, machine);
    }
    back(&contenders, Instant::now(), Duration::from_secs(10)).await;
    Some((fleet, contenders))
}

/// How long it took from then until everybody had got every lock.
async fn back(contenders: &Contenders, since: Instant, within: Duration) -> Duration {
    while !contenders.all_got_in(&ALL, since) {
        assert!(since.elapsed() < within, "not everybody gets in within {within:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    since.elapsed()
}

/// A way to cut a network, and to mend it.
struct Cut {
    name: &'static str,
    cut: fn(&Router),
    mend: fn(&Router),
}

fn parts() -> Cuts {
    apart(&[&[0, 1, 2], &[3, 4]])
}

const CUTS: [Cut; 3] = [
    Cut { name: "3/2, packets vanish", cut: |router| router.lose(parts()), mend: Router::heal },
    Cut {
        name: "all apart, packets vanish",
        cut: |router| router.lose(apart(&[&[0], &[1], &[2], &[3], &[4]])),
        mend: Router::heal,
    },
    Cut {
        name: "two cables pulled",
        cut: |router| [3, 4].into_iter().for_each(|index| router.unplug(index)),
        mend: |router| [3, 4].into_iter().for_each(|index| router.plug(index)),
    },
];

/// Cuts of this length, of every kind.
async fn everybody_is_back(fleet: &Fleet, contenders: &Contenders, seconds: &[f64]) {
    for (seconds, kind) in
        seconds.iter().flat_map(|seconds| CUTS.iter().map(move |c| (*seconds, c)))
    {
        (kind.cut)(fleet.router());
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        (kind.mend)(fleet.router());
        let back = back(contenders, Instant::now(), Duration::from_secs(30)).await;
        eprintln!("{}, for {seconds} s: everybody got in {back:?} after it was mended", kind.name);
        assert!(back < BACK_MAX + SLACK, "{} for {seconds} s: {back:?}", kind.name);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(contenders.objections(), [""; 0]);
}

#[tokio::test]
async fn whoever_was_cut_off_is_back_within_two_seconds() {
    let Some((fleet, contenders)) = at_work("120s").await else { return };
    everybody_is_back(&fleet, &contenders, &[1.0, 2.3, 3.1, 12.0]).await;
}

/// So long that the others have voted them out. `SIGMALOCK_SOAK_SECONDS` says that there is time for it, and
/// `cargo xtask test --long` sets it.
#[tokio::test]
async fn whoever_was_cut_off_for_over_a_minute_is_back_within_two_seconds() {
    if std::env::var_os("SIGMALOCK_SOAK_SECONDS").is_none() {
        eprintln!("SKIPPED, NOTHING TESTED: this takes seven minutes (cargo xtask test --long)");
        return;
    }
    for dead_after in ["30s", "120s"] {
        let Some((fleet, contenders)) = at_work(dead_after).await else { return };
        everybody_is_back(&fleet, &contenders, &[70.0]).await;
    }
}

#[tokio::test]
async fn where_large_packets_vanish_status_says_so_and_nobody_waits_in_the_dark() {
    let Some((fleet, contenders)) = at_work("120s").await else { return };
    let mut crowd = JoinSet::new();
    let client = fleet.peers[0].client().await;
    for number in 0..150 {
        let client = client.clone();
        crowd.spawn(async move {
            loop {
                if let Ok(guard) = client.lock(format!("/crowd/{number}")).acquire().await {
                    let _ = guard.release().await;
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    fleet.router().takes(1_300);
    let hole = Instant::now();
    let status = loop {
        let status = client.status().await.expect("it has a status");
        if !status.can_grant {
            break status;
        }
        assert!(hole.elapsed() < Duration::from_secs(4), "status says that it can grant");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    eprintln!("cannot grant, {:?} after the hole: {}", hole.elapsed(), status.why_not);
    loop {
        let status = fleet.peers[0].ask(&["status"]);
        if said(&status).contains("packets of full size do not arrive") {
            eprintln!("why, {:?} after the hole:\n{}", hole.elapsed(), said(&status));
            assert_eq!(status.status.code(), Some(1));
            break;
        }
        assert!(hole.elapsed() < Duration::from_secs(10), "{}", said(&status));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // It stays that way: small words of peers are no reason to believe that they are there.
    let until = Instant::now() + Duration::from_secs(8);
    while Instant::now() < until {
        let status = client.status().await.expect("it has a status");
        assert!(!status.can_grant, "it can grant again: {status:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let waited = fleet.peers[0].ask(&["lock", "/hole", "--wait", "4s"]);
    assert_eq!(waited.status.code(), Some(75), "{}", said(&waited));
    assert!(said(&waited).contains("look at the MTU"), "{}", said(&waited));
    fleet.router().takes(1_500);
    let back = back(&contenders, Instant::now(), Duration::from_secs(15)).await;
    eprintln!("everybody got in {back:?} after large packets went through again");
    assert_eq!(contenders.objections(), [""; 0]);
}
