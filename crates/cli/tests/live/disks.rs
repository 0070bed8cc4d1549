//! Disks that do not give back what was written to them.

use std::path::Path;
use std::time::{Duration, Instant};

use sigmalock::Guard;

use crate::agreed::{brisk, enters, members, name_of, peers, said};
use crate::fleet::{Fleet, Manner, Peer};
use crate::witness::Witness;

const SOON: Duration = Duration::from_secs(20);
const DATABASE: &str = "votes.redb";
const JOURNAL: &str = "votes.journal";

/// How much of a file is in use, by its looks.
fn used(path: &Path) -> usize {
    let bytes = std::fs::read(path).expect("it can be read");
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

fn flip(path: &Path, place: usize) {
    let mut bytes = std::fs::read(path).expect("it can be read");
    bytes[place] ^= 4;
    std::fs::write(path, bytes).expect("it can be written");
}

fn zero(path: &Path, range: std::ops::Range<usize>) {
    let mut bytes = std::fs::read(path).expect("it can be read");
    bytes[range].fill(0);
    std::fs::write(path, bytes).expect("it can be written");
}

/// In its log and in its status a peer says that it lost its memory, and why.
fn says_that_it_lost_its_memory(peer: &Peer, why: &str) {
    let status = said(&peer.ask(&["status"]));
    for text in [peer.logged(), status] {
        assert!(text.contains("lost its memory") && text.contains(why), "{why}: {text}");
    }
}

/// Somebody gets in at a peer, within so long, and tells the witness.
async fn enter(peer: &Peer, name: &str, within: Duration, witness: &Witness) -> Option<Guard> {
    let client = peer.client().await;
    let guard = client.lock(name).ttl(Duration::from_secs(3)).wait(within).acquire().await.ok()?;
    witness.enter_by(name, guard.token(), &client.peer(), guard.lost_signal());
    Some(guard)
}

/// All show which members lost their memory.
async fn are_shown_without_memory(fleet: &Fleet, indices: &[usize]) {
    let mut names = Vec::new();
    for index in indices {
        names.push(name_of(&fleet.peers[*index]).await);
    }
    names.sort();
    for peer in &fleet.peers {
        let table = said(&peer.ask(&["peers"]));
        for name in &names {
            let row = table
                .lines()
                .find(|line| line.contains(&format!("({}", &name[..6])))
                .unwrap_or_default();
            assert!(row.contains(", lost its memory "), "{table}");
        }
        let up = format!(": 3 of 3 members up, {} without memory", names.len());
        assert!(table.contains(&up), "{table}");
        let seen = peers(peer);
        let forgot = seen.iter().filter(|peer| peer["forgot"] == true);
        let mut forgot: Vec<&str> = forgot.filter_map(|peer| peer["peer"].as_str()).collect();
        forgot.sort_unstable();
        assert_eq!(forgot, names, "{seen:?}");
    }
}

/// It does not vote, be it removed already or not, and its users get locks by the votes of others.
async fn goes_by_the_votes_of_others(peer: &Peer) {
    let begin = Instant::now();
    loop {
        let output = peer.ask(&["status"]);
        let text = said(&output);
        // It has to meet both of the others first.
        if text.contains("can grant  yes, by the votes of others") {
            assert!(text.contains("votes      no"), "{text}");
            assert_eq!(output.status.code(), Some(1), "{text}");
            break;
        }
        assert!(begin.elapsed() < SOON, "{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(enters(peer, "/disks/others", SOON).await);
}

#[tokio::test]
async fn a_member_whose_disk_was_damaged_says_so_and_is_taken_in_again() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        (JOURNAL, |dir| flip(&dir.join(JOURNAL), used(&dir.join(JOURNAL)) / 2)),
        (DATABASE, |dir| zero(&dir.join(DATABASE), 4_096..used(&dir.join(DATABASE)))),
        ("votes.journal is missing", |dir| {
            std::fs::remove_file(dir.join(JOURNAL)).expect("it is there");
        }),
    ];
    let mut fleet = Fleet::start(3, brisk(true, "30s")).await;
    let witness = Witness::default();
    let guard = enter(&fleet.peers[0], "/disks/one", SOON, &witness).await.expect("it is free");
    for (why, damage) in damages {
        let view = fleet.agrees_on(3, SOON).await;
        let dead = fleet.kill(2);
        damage(dead.data());
        let begin = Instant::now();
        let back = fleet.restart(dead).await;
        says_that_it_lost_its_memory(&fleet.peers[back], why);
        assert!(enter(&fleet.peers[back], "/disks/one", Duration::ZERO, &witness).await.is_none());
        goes_by_the_votes_of_others(&fleet.peers[back]).await;
        assert!(fleet.agrees_on(3, Duration::from_secs(40)).await >= view + 2);
        eprintln!("{why}: removed and added again after {:?}", begin.elapsed());
        let name = format!("/disks/{view}");
        let entered = enter(&fleet.peers[back], &name, SOON, &witness).await;
        assert!(entered.is_some(), "it votes again");
        assert!(!guard.lost_signal().is_lost(), "two of three kept the holder inside");
    }
    drop(guard);
    assert_eq!(witness.objections(), [""; 0]);
}

/// Both hosts of a majority come back with a bit of their journals flipped: what they gave before is
/// lost, so nobody gets anything, until an operator says that the swarm is to go on with the one that
/// remembers.
#[tokio::test]
async fn a_majority_whose_disks_were_damaged_lets_nobody_in_until_an_operator_helps() {
    let arguments = ["--lease-max", "6s", "--dead-after", "30s"].map(str::to_owned).into();
    let mut fleet = Fleet::start(3, Manner { durable: true, arguments, ..Manner::default() }).await;
    fleet.agrees_on(3, SOON).await;
    let witness = Witness::default();
    let journal = |peer: &Peer| peer.data().join(JOURNAL);
    // Nothing is under way.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before: Vec<usize> = fleet.peers[1..].iter().map(|peer| used(&journal(peer))).collect();
    let client = fleet.peers[0].client().await;
    let lock = client.lock("/disks/two").ttl(Duration::from_secs(6)).wait(SOON);
    let guard = lock.acquire().await.expect("it is free");
    witness.enter_by("/disks/two", guard.token(), "the holder", guard.lost_signal());
    // Two votes suffice: the third may still be on its way to disk, and nobody has heard of it then.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let dead = [fleet.kill(2), fleet.kill(1)];
    for (peer, before) in dead.iter().rev().zip(before) {
        assert!(used(&journal(peer)) > before + 60, "the vote is in the journal");
        flip(&journal(peer), before + 60);
    }
    for peer in dead {
        fleet.restart(peer).await;
    }
    let within = Duration::from_secs(10);
    let tries = tokio::join!(
        enter(&fleet.peers[1], "/disks/two", within, &witness),
        enter(&fleet.peers[2], "/disks/two", within, &witness),
    );
    assert_eq!(witness.objections(), [""; 0]);
    assert!(tries.0.is_none() && tries.1.is_none(), "they remember nothing, and know it");
    let (view, names) = members(&fleet.peers[0]);
    for peer in &fleet.peers[1..] {
        says_that_it_lost_its_memory(peer, JOURNAL);
    }
    are_shown_without_memory(&fleet, &[1, 2]).await;
    for peer in &fleet.peers[1..] {
        let status = peer.client().await.status().await.expect("it has a status");
        assert!(!status.can_grant && !status.votes, "{status:?}");
        assert!(status.why_not.contains("of 3 members it reaches 1 that remember"), "{status:?}");
    }
    let remembers = fleet.peers[0].client().await.status().await.expect("it has a status");
    assert!(!remembers.can_grant && remembers.votes, "{remembers:?}");
    let status = said(&fleet.peers[0].ask(&["status"]));
    assert!(status.contains("reaches 1 of 3 members of the swarm that remember"), "{status}");
    assert!(enter(&fleet.peers[0], "/disks/two", Duration::from_secs(3), &witness).await.is_none());

    // What the operator does: stops them, and has the one that remembers go on without them.
    let me = fleet.peers[0].client().await.peer();
    let gone = [fleet.leave(2).await, fleet.leave(1).await];
    let others = names.iter().map(String::as_str).filter(|name| *name != me);
    let forget = ["forget"].into_iter().chain(others).chain(["--unverified", "--yes"]);
    let forgotten = fleet.peers[0].ask(&forget.collect::<Vec<_>>());
    assert_eq!(forgotten.status.code(), Some(0), "{}", said(&forgotten));
    for peer in gone {
        fleet.restart(peer).await;
    }
    assert!(fleet.agrees_on(3, Duration::from_secs(60)).await > view);
    for peer in &fleet.peers {
        let guard = enter(peer, "/disks/two", SOON, &witness).await.expect("all is well");
        witness.leave("/disks/two", guard.token());
    }
    assert_eq!(witness.objections(), [""; 0]);
}
