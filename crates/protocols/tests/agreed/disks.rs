//! Old disks and copies that the others can notice, each with the rule by which they do.

use crate::town::Message;
use sigmalock_core::{Birth, Span, Standing};
use sigmalock_protocols::agreed;
use sigmalock_protocols::views::{self, Mutant, STARTS_MAX};

use crate::copies::a_copy_runs_meanwhile;
use crate::refutations::{Disk, are_apart, are_two_inside, recovered};
use crate::town::{ALICE, BOB, FOUNDERS, Packet, STEP, Town};

/// A peer is out of everybody's sight, and goes on all the while. Another one runs with a copy of its disk, gives its vote to
/// Alice, and is gone again. Then the first is back, and Bob waits for its vote already.
fn the_original_comes_back(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    town.part(&[2], &[0, 1, ALICE, BOB]);
    town.packets.retain(|packet| ![packet.from, packet.to].contains(&2));
    let original = town.places.remove(&2).unwrap();
    a_copy_runs_meanwhile(&mut town, &original.disk, [0, 1]);
    town.places.insert(2, original);
    town.meet(&[2], &[0, 1, BOB]);
    town.pass(Span::from_secs(2), |packet| !are_apart(packet));
    assert_eq!(town.standing(2), Standing::OldDisk);
    town
}

#[test]
fn who_was_out_of_sight_votes_when_somebody_knows_of_no_other_in_its_place() {
    assert!(!are_two_inside(&the_original_comes_back(None)));
    let broken = Mutant::GoesOnThoughAstray;
    assert!(are_two_inside(&the_original_comes_back(Some(broken))), "{broken} is not caught");
}

#[test]
fn who_was_out_of_sight_votes_again_soon_if_there_was_no_other() {
    let mut town = Town::of(3, None);
    town.part(&[2], &[0, 1, ALICE, BOB]);
    town.pass(Span::from_secs(20), |packet| ![packet.from, packet.to].contains(&2));
    drop(town.stop(1));
    town.meet(&[2], &[0, ALICE, BOB]);
    town.ask(ALICE);
    // The other one would have shown up by then.
    town.pass(Span::from_secs(2), |_| true);
    assert!(town.is_inside(ALICE));
}

/// A peer has had more lives than its disk remembers, all of them heard of. Its disk is copied, it votes for Alice, and the
/// copy is put back and started a few times where nobody hears it: so it comes to have more records than were heard of.
#[test]
fn a_disk_of_many_lives_does_not_outrun_what_the_others_remember() {
    let mut town = Town::of(3, None);
    for _ in 0..STARTS_MAX + 2 {
        let disk = town.stop(2);
        town.start(2, recovered(&disk));
        town.pass(Span::from_secs(1), |_| true);
    }
    town.pass(Span::from_secs(8), |_| true);
    assert_eq!(town.standing(2), Standing::Voting);
    let (mut disk, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.ask(ALICE);
    town.pass(Span::from_secs(3), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.packets.retain(|packet| packet.from != 2);
    town.written.insert(2, written);
    for _ in 0..20 {
        town.start(2, recovered(&disk));
        town.packets.retain(|packet| ![packet.from, packet.to].contains(&2));
        disk = town.stop(2);
    }
    town.start(2, recovered(&disk));
    town.ask(BOB);
    town.pass(Span::from_secs(2), |packet| !are_apart(packet));
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::OldDisk, false));
}

/// An old disk is put back while Alice is inside with the vote that it lacks. Of the others only one is there, which heard how
/// much had been written, lost sight of that peer, and was restarted since.
fn who_heard_the_count_is_restarted(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    town.pass(Span::from_secs(3), |_| true);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.ask(ALICE);
    town.pass(Span::from_secs(3), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    let disk = town.stop(1);
    town.packets.clear();
    town.written.insert(2, written);
    town.part(&[0], &[BOB]);
    for (peer, disk) in [(1, &disk), (2, &backup)] {
        town.start_alone(peer, recovered(disk));
    }
    town.meet(&[1, 2], &[BOB]);
    town.meet(&[1], &[2]);
    town.ask(BOB);
    let cut = |packet: &Packet| {
        let side = |peer: u64| [0, ALICE].contains(&peer);
        side(packet.from) != side(packet.to)
    };
    town.pass(Span::from_secs(3), |packet| !cut(packet));
    town
}

#[test]
fn how_much_another_had_written_is_remembered_by_who_is_restarted() {
    let town = who_heard_the_count_is_restarted(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::OldDisk, false));
    let broken = Mutant::ForgetsCounts;
    let town = who_heard_the_count_is_restarted(Some(broken));
    assert!(are_two_inside(&town), "{broken} is not caught");
}

/// A peer was restarted, and is put back from a copy of its disk that was made while it ran since, which lacks the vote that
/// Alice counts.
fn a_later_life_is_put_back(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    let disk = town.stop(2);
    town.start(2, recovered(&disk));
    town.pass(Span::from_secs(8), |_| true);
    assert_eq!(town.standing(2), Standing::Voting);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.ask(ALICE);
    town.pass(Span::from_secs(3), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    put_back(&mut town, &backup, written);
    town
}

/// The disk of the third member is put back while Alice is inside with its vote, and Bob waits for it.
fn put_back(town: &mut Town, backup: &Disk, written: u64) {
    drop(town.stop(2));
    town.packets.retain(|packet| packet.from != 2);
    town.written.insert(2, written);
    town.start(2, recovered(backup));
    town.ask(BOB);
    let alice = |packet: &Packet| [(2, ALICE), (ALICE, 2)].contains(&(packet.from, packet.to));
    town.pass(Span::from_secs(2), |packet| !are_apart(packet) && !alice(packet));
    assert!(town.is_inside(ALICE));
}

#[test]
fn how_much_was_written_counts_from_the_first_life_on() {
    let town = a_later_life_is_put_back(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::OldDisk, false));
    let broken = Mutant::CountsThisLifeOnly;
    assert!(are_two_inside(&a_later_life_is_put_back(Some(broken))), "{broken} is not caught");
}

/// A peer was cut off, voted out, and taken in again, all in one life. It votes for Alice, and its disk is put back as it was
/// when it was a member before. How much it had written since nobody has heard.
fn a_former_membership_is_put_back(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    let others = [0, 1, ALICE, BOB];
    town.part(&[2], &others);
    town.pass(Span::from_secs(60), |packet| packet.from != 2 && packet.to != 2);
    assert_eq!(town.view(0).1, [0, 1]);
    town.meet(&[2], &others);
    let untold = |packet: &Packet| {
        let known = &packet.message;
        let fifth = matches!(known, Message::Views(views::Message::Known { view: 5, .. }));
        packet.from == 2 && fifth
    };
    town.pass(Span::from_secs(8), |packet| !untold(packet));
    assert_eq!((town.view(2).1, town.standing(2)), (vec![0, 1, 2], Standing::Voting));
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| !are_apart(packet) && !untold(packet));
    assert!(town.is_inside(ALICE));
    put_back(&mut town, &backup, written);
    town
}

#[test]
fn a_disk_of_a_former_membership_is_known_by_its_badge() {
    let town = a_former_membership_is_put_back(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::Lost, false));
    let broken = Mutant::KeepsItsBadge;
    assert!(are_two_inside(&a_former_membership_is_put_back(Some(broken))), "{broken}");
}

/// Three hosts make a swarm, and Alice gets in. All of them lose all they had, or had no disks, and make another one.
/// Alice has not heard, and Bob asks.
fn all_lose_all_they_had(broken: Option<agreed::Mutant>) -> Town {
    let mut town = Town::of(0, broken);
    drop(town.stop(BOB));
    let [first, second] = FOUNDERS;
    first.into_iter().for_each(|host| town.start(host, Birth::First));
    town.pass(Span::from_secs(25), |_| true);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    assert!(town.is_inside(ALICE));
    first.into_iter().for_each(|host| drop(town.stop(host)));
    second.into_iter().chain([BOB]).for_each(|host| town.start(host, Birth::First));
    town.ask(BOB);
    town.pass(Span::from_secs(4), |packet| packet.from != ALICE && packet.to != ALICE);
    assert!(town.is_inside(ALICE));
    town
}

#[test]
fn hosts_of_a_new_swarm_wait_for_the_promises_of_those_they_may_have_been() {
    let mut town = all_lose_all_they_had(None);
    let [_, [host, ..]] = FOUNDERS;
    assert!(!are_two_inside(&town));
    assert!(matches!(town.standing(host), Standing::Learning { .. }));
    town.pass(Span::from_secs(20), |_| true);
    assert!(!town.is_inside(ALICE) && town.is_inside(BOB));
    let broken = agreed::Mutant::VotesAtOnceInANewSwarm;
    assert!(are_two_inside(&all_lose_all_they_had(Some(broken))), "{broken} is not caught");
}

/// Six hosts that were told that they are three begin at once, three here with Alice, three there with Bob. All see each other;
/// what is said from here to there takes half a round trip.
#[test]
fn hosts_in_two_places_make_one_swarm() {
    let mut town = Town::of(0, None);
    FOUNDERS.into_iter().flatten().for_each(|host| town.start(host, Birth::First));
    let here = |peer: u64| peer == ALICE || FOUNDERS[0].contains(&peer);
    let near = |packet: &Packet| here(packet.from) == here(packet.to);
    for round in 0..150 {
        if round == 100 {
            town.ask(ALICE);
            town.ask(BOB);
        }
        town.pass(STEP * 3, near);
        town.pass(STEP, |_| true);
    }
    assert!(!are_two_inside(&town), "two are inside; {:?} {:?}", town.view(200), town.view(300));
    assert!(town.is_inside(ALICE) || town.is_inside(BOB));
}
