//! Networks that are cut, in every shape, under peers that agree on who is in and contenders at each of
//! them. Never are two inside; who is few gets nobody in; who is many goes on; and when the network is whole
//! again everybody is back by itself.

use std::time::{Duration, Instant};

use sigmalock::Guard;

use crate::agreed::{brisk, members, said};
use crate::contenders::Contenders;
use crate::fleet::{Fleet, Manner};
use crate::router::{Cuts, apart, unheard};

/// By then peers notice a cut: after two seconds of silence, for which they listen every half a second.
const NOTICED: Duration = Duration::from_millis(2_500);
/// Those who are many stand still for no longer, from the cut: they go on within a second of noticing.
const STILL_MAX: Duration = Duration::from_millis(3_500);
/// The longest lease: what was held when the network was cut is over then.
const LEASE_MAX: Duration = Duration::from_secs(3);
/// What a busy machine may add.
const SLACK: Duration = Duration::from_millis(400);
/// Everybody is back within so long. The network is tried again after pauses that grow.
const HEALED_MAX: Duration = Duration::from_secs(30);

const ALL: [usize; 5] = [0, 1, 2, 3, 4];

/// A fleet, its contenders, and what happened to its network. Peers are called by their machines.
struct World {
    fleet: Fleet,
    contenders: Contenders,
    cut_at: Instant,
}

impl World {
    /// Five peers at work.
    async fn new(dead_after: &str) -> Option<Self> {
        Self::of(brisk(false, dead_after)).await
    }

    async fn of(manner: Manner) -> Option<Self> {
        let fleet = Fleet::routed(5, manner).await?;
        let mut contenders = Contenders::default();
        for (machine, peer) in fleet.peers.iter().enumerate() {
            contenders.add(peer, machine);
        }
        let begin = Instant::now();
        while !contenders.all_got_in(&ALL, begin) {
            assert!(begin.elapsed() < Duration::from_secs(10), "not everybody gets in");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        eprintln!(
            "five peers formed in {:?}, at work after {:?}",
            fleet.formed_in,
            begin.elapsed()
        );
        Some(Self { fleet, contenders, cut_at: Instant::now() })
    }

    fn cut(&mut self, cuts: Cuts) {
        self.fleet.router().lose(cuts);
        self.cut_at = Instant::now();
    }

    /// Lets the cut last until so long after it began.
    async fn lasts(&self, length: Duration) {
        tokio::time::sleep_until((self.cut_at + length).into()).await;
    }

    /// Waits for each of these peers to say that it is of a minority, and says when.
    async fn know_that_they_are_few(&self, few: &[usize]) {
        for machine in few {
            let client = self.fleet.peers[*machine].client().await;
            loop {
                let status = client.status().await.expect("it has a status");
                if status.standing == "minority" && !status.can_grant {
                    assert!(status.why_not.contains("members of the swarm"), "{}", status.why_not);
                    break;
                }
                let since = self.cut_at.elapsed();
                assert!(since < NOTICED + SLACK * 2, "{machine} does not notice: {status:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        eprintln!("{few:?} know that they are few {:?} after the cut", self.cut_at.elapsed());
    }

    /// These got nobody in since the leases of before the cut were over.
    fn nothing_granted_by(&self, few: &[usize]) {
        let over = self.cut_at + LEASE_MAX;
        let count = self.contenders.count(few, over, Instant::now());
        assert_eq!(count, 0, "{few:?} grant, though they are few");
    }

    /// These stood still for a moment at most.
    fn went_on(&self, many: &[usize]) {
        let still = self.contenders.longest_gap(many, self.cut_at);
        let entries = self.contenders.count(many, self.cut_at, Instant::now());
        eprintln!("{many:?} went on: {entries} entries, stood still for {still:?} at most");
        assert!(still < STILL_MAX + SLACK, "{many:?} stood still for {still:?}");
    }

    /// Mends the network, and waits until everybody shows the same view again and gets every lock.
    async fn heals(&self, machines: &[usize]) {
        let begin = Instant::now();
        self.fleet.router().heal();
        let view = loop {
            let view = self.fleet.agrees_on(machines.len(), HEALED_MAX).await;
            let shown: Vec<_> = self.fleet.peers.iter().map(members).collect();
            let whole =
                |shown: &(u64, Vec<String>)| shown.0 == view && shown.1.len() == machines.len();
            if shown.iter().all(|one| whole(one) && *one == shown[0]) {
                break view;
            }
            // Somebody was about to be voted out, a moment too late.
            assert!(begin.elapsed() < HEALED_MAX, "{shown:?}");
        };
        let (agreed, together) = (begin.elapsed(), Instant::now());
        while !self.contenders.all_got_in(machines, together) {
            assert!(begin.elapsed() < HEALED_MAX, "not everybody gets in again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        eprintln!("healed: view {view} after {agreed:?}, all got in after {:?}", begin.elapsed());
        assert_eq!(self.contenders.objections(), [""; 0]);
    }

    async fn holds(&self, machine: usize, name: &str) -> Guard {
        let client = self.fleet.peers[machine].client().await;
        client.lock(name).ttl(LEASE_MAX).acquire().await.expect("it is free")
    }
}

#[tokio::test]
async fn three_of_five_go_on_and_two_grant_nothing() {
    let Some(mut world) = World::new("30s").await else { return };
    world.cut(apart(&[&[0, 1, 2], &[3, 4]]));
    world.know_that_they_are_few(&[3, 4]).await;
    let status = world.fleet.peers[3].ask(&["status"]);
    assert_eq!(status.status.code(), Some(1), "{}", said(&status));
    assert!(said(&status).contains("reaches 2 of 5 members"), "{}", said(&status));
    world.lasts(LEASE_MAX * 2).await;
    world.nothing_granted_by(&[3, 4]);
    world.went_on(&[0, 1, 2]);
    world.heals(&ALL).await;
}

#[tokio::test]
async fn two_and_two_and_one_grant_nothing_until_they_meet() {
    let Some(mut world) = World::new("2s").await else { return };
    world.cut(apart(&[&[0, 1], &[2, 3], &[4]]));
    world.know_that_they_are_few(&ALL).await;
    world.lasts(LEASE_MAX * 2).await;
    world.nothing_granted_by(&ALL);
    // Two of the three parts find each other.
    world.cut(apart(&[&[0, 1, 2, 3], &[4]]));
    while !world.contenders.all_got_in(&[0, 1, 2, 3], world.cut_at) {
        assert!(world.cut_at.elapsed() < HEALED_MAX, "four of five do not go on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    eprintln!("four of five got in {:?} after they met", world.cut_at.elapsed());
    world.lasts(LEASE_MAX * 2).await;
    world.nothing_granted_by(&[4]);
    world.heals(&ALL).await;
}

#[tokio::test]
async fn who_hears_but_is_not_heard_or_the_reverse_grants_nothing() {
    let Some(mut world) = World::new("30s").await else { return };
    for (few, cuts) in
        [([3, 4], unheard(&[3, 4], &[0, 1, 2])), ([0, 4], unheard(&[1, 2, 3], &[0, 4]))]
    {
        let many: Vec<usize> = ALL.into_iter().filter(|machine| !few.contains(machine)).collect();
        world.cut(cuts);
        world.know_that_they_are_few(&few).await;
        world.lasts(LEASE_MAX + Duration::from_secs(2)).await;
        world.nothing_granted_by(&few);
        world.went_on(&many);
        world.heals(&ALL).await;
    }
}

/// The counter-example to guards that count a majority of what one sees: {0, 1} and {3, 4} do not see each
/// other, and 2 sees all. Both halves see three of five.
async fn two_halves_and_one_who_sees_both(dead_after: &str) -> Option<World> {
    let mut world = World::new(dead_after).await?;
    let held = world.holds(0, "/cut/held").await;
    world.cut(apart(&[&[0, 1], &[3, 4]]));
    // What one half holds the other does not get, before it is lost.
    let other = world.fleet.peers[4].client().await;
    let lock = other.lock("/cut/held").ttl(LEASE_MAX).wait(LEASE_MAX * 2);
    let stolen = lock.acquire().await;
    assert!(held.is_lost() || stolen.is_err(), "both halves hold the same lock");
    drop((held, stolen));
    world.lasts(LEASE_MAX * 3).await;
    let half = |half: &[usize]| world.contenders.count(half, world.cut_at, Instant::now());
    eprintln!("the halves got in {} and {} times", half(&[0, 1]), half(&[3, 4]));
    Some(world)
}

#[tokio::test]
async fn one_who_sees_two_halves_that_do_not_see_each_other_lets_one_in_at_a_time() {
    let Some(world) = two_halves_and_one_who_sees_both("30s").await else { return };
    world.went_on(&ALL);
    world.heals(&ALL).await;
}

/// The same, and each half has the other voted out, as soon as it may.
#[tokio::test]
async fn two_halves_that_vote_each_other_out_let_one_in_at_a_time() {
    let Some(world) = two_halves_and_one_who_sees_both("2s").await else { return };
    world.went_on(&ALL);
    world.heals(&ALL).await;
}

#[tokio::test]
async fn links_that_flap_harm_nobody() {
    let Some(mut world) = World::new("2s").await else { return };
    let begin = world.cut_at;
    let shapes = [
        apart(&[&[0], &[1]]),
        apart(&[&[0, 1, 2], &[3, 4]]),
        unheard(&[2], &[0, 1, 3, 4]),
        apart(&[&[0, 4], &[1, 2, 3]]),
        unheard(&[0, 1], &[4]),
    ];
    let lengths = [300, 2_500, 1_200, 2_100, 600, 900].map(Duration::from_millis);
    for (turn, length) in lengths.into_iter().cycle().take(8).enumerate() {
        world.cut(shapes[turn % shapes.len()].clone());
        world.lasts(length).await;
        world.fleet.router().heal();
        tokio::time::sleep(length / 3).await;
    }
    let entries = world.contenders.count(&ALL, begin, Instant::now());
    eprintln!("{entries} entries in {:?} of flapping", begin.elapsed());
    assert!(entries > 0, "nobody got in");
    world.heals(&ALL).await;
}

#[tokio::test]
async fn a_cut_of_several_leases_ends_what_few_hold_and_nothing_that_many_hold() {
    let Some(mut world) = World::of(brisk(true, "2s")).await else { return };
    let (many, few) = (world.holds(0, "/cut/many").await, world.holds(4, "/cut/few").await);
    world.cut(apart(&[&[0, 1, 2], &[3, 4]]));
    world.know_that_they_are_few(&[3, 4]).await;
    few.lost().await;
    let lost = world.cut_at.elapsed();
    assert!(lost < LEASE_MAX, "a lease lasted for {lost:?}");
    let other = world.fleet.peers[1].client().await;
    let next = other.lock("/cut/few").wait(LEASE_MAX).acquire().await.expect("it is free again");
    eprintln!("lost after {lost:?}, and the next had it after {:?}", world.cut_at.elapsed());
    world.lasts(LEASE_MAX * 5).await;
    assert!(!many.is_lost() && !next.is_lost(), "those who are many hold what they hold");
    world.nothing_granted_by(&[3, 4]);
    world.went_on(&[0, 1, 2]);
    let status = world.fleet.peers[0].client().await.status().await.expect("it has a status");
    assert_eq!(status.members, 3, "those who are away for so long are voted out");
    world.heals(&ALL).await;
    assert!(!many.is_lost() && !next.is_lost(), "healing ends nothing");
}

#[tokio::test]
async fn a_newcomer_that_is_cut_off_with_its_contact_is_in_when_the_network_is_whole() {
    let Some(mut world) = World::new("2s").await else { return };
    // Cut while it is being added, or a moment after.
    let newcomer = world.fleet.join(&[]).await;
    world.cut(apart(&[&[1, 2, 3, 4], &[0, newcomer]]));
    let status = world.fleet.peers[newcomer].client().await.status().await;
    eprintln!("the newcomer when cut off: {}", status.expect("it has a status").standing);
    world.contenders.add(&world.fleet.peers[newcomer], newcomer);
    world.lasts(LEASE_MAX * 2).await;
    world.nothing_granted_by(&[0, newcomer]);
    world.went_on(&[1, 2, 3, 4]);
    let all = [0, 1, 2, 3, 4, newcomer];
    world.heals(&all).await;
    // Cut before it comes: its contact alone cannot add it.
    world.cut(apart(&[&[1, 2, 3, 4, newcomer], &[0, 6]]));
    let newest = world.fleet.join(&[]).await;
    world.contenders.add(&world.fleet.peers[newest], newest);
    world.lasts(LEASE_MAX + Duration::from_secs(1)).await;
    let status = world.fleet.peers[newest].client().await.status().await;
    let status = status.expect("it has a status");
    assert_eq!((status.standing.as_str(), status.can_grant), ("outside", false), "{status:?}");
    assert_eq!((status.members, status.members_up), (6, 1), "it reaches its contact: {status:?}");
    world.nothing_granted_by(&[0, newest]);
    world.went_on(&[1, 2, 3, 4, newcomer]);
    world.heals(&[0, 1, 2, 3, 4, newcomer, newest]).await;
}

#[tokio::test]
async fn who_leaves_during_a_cut_is_out_on_either_side_of_it() {
    let Some(mut world) = World::new("2s").await else { return };
    // The leaver among those who are few: nobody there can vote it out.
    world.cut(apart(&[&[0, 1, 2], &[3, 4]]));
    drop(world.fleet.leave(4).await);
    eprintln!("it left {:?} after the cut", world.cut_at.elapsed());
    world.lasts(LEASE_MAX * 2).await;
    world.nothing_granted_by(&[3]);
    world.went_on(&[0, 1, 2]);
    world.heals(&[0, 1, 2, 3]).await;
    // And among those who are many.
    let fifth = world.fleet.join(&[]).await;
    world.fleet.agrees_on(5, HEALED_MAX).await;
    let machine = 5;
    world.contenders.add(&world.fleet.peers[fifth], machine);
    world.cut(apart(&[&[0, 1, 2, machine], &[3]]));
    drop(world.fleet.leave(fifth).await);
    eprintln!("it left {:?} after the cut", world.cut_at.elapsed());
    world.lasts(LEASE_MAX * 2).await;
    world.nothing_granted_by(&[3]);
    world.went_on(&[0, 1, 2]);
    world.heals(&[0, 1, 2, 3]).await;
}

#[tokio::test]
async fn a_cut_while_a_dead_peer_is_voted_out_stops_neither() {
    let Some(mut world) = World::new("2s").await else { return };
    drop(world.fleet.kill(4));
    let begin = Instant::now();
    let client = world.fleet.peers[0].client().await;
    // The first who knows that it is out may be the only one.
    while client.status().await.expect("it has a status").members == 5 {
        assert!(begin.elapsed() < HEALED_MAX, "the dead are not voted out");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    eprintln!("voted out after {:?}", begin.elapsed());
    world.cut(apart(&[&[0, 1, 2], &[3]]));
    world.know_that_they_are_few(&[3]).await;
    world.lasts(LEASE_MAX * 2).await;
    world.nothing_granted_by(&[3]);
    world.went_on(&[0, 1, 2]);
    world.heals(&[0, 1, 2, 3]).await;
}
