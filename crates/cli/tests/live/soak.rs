//! Mixed load with kills and joins, for as long as one likes.

use std::time::{Duration, Instant};

use crate::fleet::Fleet;
use crate::load::Load;
use crate::witness::Witness;

const NAMES: [&str; 6] = ["/soak/a", "/soak/b", "/soak/c", "/soak/d", "/soak/e", "/soak/f"];
const PEERS: usize = 9;
/// Where the dead had more than n - m votes of a name, it pauses for the longest lease, and then some.
/// Meanwhile the next may die.
const PAUSE: Duration = Duration::from_secs(18);
/// For the others in the queue.
const QUEUE: Duration = Duration::from_secs(10);

/// `SIGMALOCK_SOAK_SECONDS` makes it longer; twenty minutes are 1200.
#[tokio::test]
async fn nine_peers_under_load_with_kills_and_joins() {
    let seconds = std::env::var("SIGMALOCK_SOAK_SECONDS").ok().and_then(|s| s.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(25));
    let mut fleet = Fleet::open(PEERS).await;
    let witness = Witness::default();
    let mut load = Load::new(&witness);
    for peer in &fleet.peers {
        load.add(peer, 3, &NAMES);
    }
    let begin = Instant::now();
    let mut turn = 0usize;
    let mut entries = 0;
    let mut memory = Vec::new();
    while begin.elapsed() < length {
        // One in three leaves in peace, the others are killed. The first peer stays, to be joined by.
        let victim = 1 + (turn * 5) % (fleet.peers.len() - 1);
        if turn % 3 == 2 {
            drop(fleet.leave(victim).await);
        } else {
            drop(fleet.kill(victim));
        }
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let joined = fleet.join(&[]).await;
        load.add(&fleet.peers[joined], 3, &NAMES);
        tokio::time::sleep(Duration::from_secs(6)).await;
        turn += 1;
        memory.push(fleet.peers[0].rss_mib());
        let now = load.entries();
        eprintln!(
            "{:>5.0} s: {now} entries (+{}), longest wait {:?}, first peer {:.1} MiB",
            begin.elapsed().as_secs_f64(),
            now - entries,
            load.longest_wait(),
            fleet.peers[0].rss_mib(),
        );
        if now == entries {
            describe(&fleet).await;
        }
        assert!(now > entries, "nobody got in for six seconds");
        assert_eq!(witness.objections(), [""; 0]);
        entries = now;
    }
    load.stop(Duration::from_secs(40)).await;
    assert_eq!(witness.objections(), [""; 0]);
    assert!(load.longest_wait() < PAUSE * 2 + QUEUE, "{:?}", load.longest_wait());
    let early = memory[memory.len() / 4];
    let late = memory[memory.len() - 1];
    assert!(late < early * 1.5 + 8.0, "memory grows: {early:.1} MiB, then {late:.1} MiB");
}

/// What an operator would look at.
async fn describe(fleet: &Fleet) {
    for peer in &fleet.peers {
        if let Ok(status) = peer.client().await.status().await {
            eprintln!("{}: {} {}", status.peer, status.can_grant, status.why_not);
        }
    }
    let client = fleet.peers[0].client().await;
    for name in NAMES {
        if let Ok(lock) = client.inspect(name).await {
            eprintln!("{name}: held by {:?}, {} wait", lock.holder, lock.waiting);
            for replica in lock.replicas {
                eprintln!("  {replica:?}");
            }
        }
    }
}
