//! Whose word about a disk counts, and from when on the others have time to object.

use sigmalock_core::{Birth, Inspect as _, Message as _, PeerId, Span, Standing};
use sigmalock_protocols::views::Mutant;

use crate::refutations::{Disk, are_two_inside, recovered};
use crate::rules::within;
use crate::town::{ALICE, BOB, Packet, STEP, Town};

fn is_between(packet: &Packet, one: u64, other: u64) -> bool {
    [(one, other), (other, one)].contains(&(packet.from, packet.to))
}

/// Alice sees 0, 2 and 4; Bob sees 1, 2 and 3.
fn unseen(packet: &Packet) -> bool {
    [1, 3].iter().any(|peer| is_between(packet, ALICE, *peer))
        || [0, 4].iter().any(|peer| is_between(packet, BOB, *peer))
}

/// Of five, two have been restarted, and gave their votes to Alice, who is inside with them; the first of these lives has not
/// been heard of by 1. Both are stopped. The disks of before.
fn two_of_five_are_stopped(town: &mut Town) -> [Disk; 2] {
    let backups = [2, 4].map(|peer| (town.stop(peer), town.written[&peer]));
    for (peer, (backup, _)) in [2, 4].into_iter().zip(&backups) {
        town.start(peer, recovered(backup));
    }
    town.part(&[1], &[2]);
    let there = |packet: &Packet| !is_between(packet, 1, 2) && !unseen(packet);
    town.packets.retain(there);
    town.pass(Span::from_secs(8), there);
    assert_eq!(town.standing(2), Standing::Voting);
    town.ask(ALICE);
    town.pass(Span::from_secs(2), there);
    assert!(town.is_inside(ALICE));
    [2, 4].into_iter().for_each(|peer| drop(town.stop(peer)));
    town.packets.clear();
    for (peer, (_, written)) in [2, 4].into_iter().zip(&backups) {
        town.written.insert(peer, *written);
    }
    backups.map(|(backup, _)| backup)
}

/// The disk of before meets one that has forgotten, and for long nobody else; then 1, which has not heard of the newer one,
/// and a moment later the others.
fn the_forgetful_is_met_first(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 5);
    let [backup, _] = two_of_five_are_stopped(&mut town);
    town.ask(BOB);
    town.start_alone(4, Birth::Amnesiac);
    town.start_alone(2, recovered(&backup));
    town.meet(&[2], &[4, BOB]);
    town.pass(Span::from_secs(3), |packet| !unseen(packet));
    assert_eq!(town.standing(2), Standing::Unvouched);
    town.meet(&[2], &[1]);
    town.pass(STEP * 4, |packet| !unseen(packet));
    town.meet(&[2], &[0, 3]);
    town.pass(Span::from_secs(1), |packet| !unseen(packet));
    town
}

#[test]
fn one_that_forgot_is_nobody_who_could_have_objected() {
    let town = the_forgetful_is_met_first(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::OldDisk, false));
    let broken = Mutant::WaitsFromItsStart;
    assert!(are_two_inside(&the_forgetful_is_met_first(Some(broken))), "{broken} is not caught");
}

/// Both disks of before are put back. The one meets the other only, which vouches for it, and is told too late by the others
/// that its own is not the newest.
fn an_old_disk_vouches(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 5);
    let [two, four] = two_of_five_are_stopped(&mut town);
    town.ask(BOB);
    town.start_alone(4, recovered(&four));
    town.start_alone(2, recovered(&two));
    town.meet(&[4], &[0, 1, 3]);
    town.meet(&[2], &[4, BOB]);
    let slow = |p: &Packet| p.to == 4 && p.message.kind() == "REMEMBERED" && p.from != 2;
    town.pass(STEP * 5, |p| !unseen(p) && !slow(p));
    // It is not removed at once.
    let proposal = |p: &Packet| p.message.kind() == "PREPARE";
    town.pass(Span::from_secs(2), |p| !unseen(p) && !proposal(p));
    assert_eq!(town.standing(4), Standing::OldDisk);
    town
}

#[test]
fn who_has_an_old_disk_itself_has_vouched_for_nobody() {
    let town = an_old_disk_vouches(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::Unvouched, false));
    let broken = Mutant::BelievesOldDisks;
    assert!(are_two_inside(&an_old_disk_vouches(Some(broken))), "{broken} is not caught");
}

/// The same, but the one has gone on by then, on the word of the other alone.
fn the_only_witness_has_an_old_disk(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 5);
    let [two, four] = two_of_five_are_stopped(&mut town);
    town.start_alone(4, recovered(&four));
    town.start_alone(2, recovered(&two));
    town.meet(&[4], &[1]);
    town.meet(&[2], &[4]);
    let slow = |p: &Packet| p.to == 4 && p.message.kind() == "REMEMBERED" && p.from != 2;
    town.pass(STEP * 40, |p| !unseen(p) && !slow(p));
    let proposal = |p: &Packet| p.message.kind() == "PREPARE";
    while !town.places[&2].agreed.views().has_forgotten(PeerId(4)) {
        town.pass(STEP, |p| !unseen(p) && !proposal(p));
    }
    assert_eq!(town.standing(4), Standing::OldDisk);
    town.ask(BOB);
    town.meet(&[2], &[BOB]);
    town.pass(Span::from_secs(2), |p| !unseen(p) && !proposal(p));
    town
}

#[test]
fn who_went_on_by_the_word_of_an_old_disk_stops() {
    assert!(!are_two_inside(&the_only_witness_has_an_old_disk(None)));
    let broken = Mutant::OutlivesItsWitness;
    assert!(are_two_inside(&the_only_witness_has_an_old_disk(Some(broken))), "{broken}");
}

/// The founder's disk of when it was alone is put back where only newcomers are, and takes these in; then all see each other.
/// Alice is a user of the one swarm, Bob of the other.
fn a_swarm_founded_once_more(broken: Option<Mutant>, newcomers: &[u64]) -> Town {
    let mut town = Town::without(broken, 1);
    let (backup, written) = (town.stop(0), town.written[&0]);
    town.start(0, recovered(&backup));
    for peer in [1, 2] {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(20), |_| true);
    }
    [0, BOB].into_iter().for_each(|peer| drop(town.stop(peer)));
    town.packets.clear();
    town.written.insert(0, written);
    town.start_alone(0, recovered(&backup));
    let mut side = vec![0];
    for peer in newcomers {
        town.start_alone(*peer, Birth::First);
        town.meet(&[*peer], &side);
        side.push(*peer);
        while town.view(*peer).1 != side || town.standing(*peer) != Standing::Voting {
            town.pass(STEP, |packet| within(packet, &side));
        }
    }
    while town.view(1).0 < town.view(0).0 {
        town.pass(STEP, |packet| within(packet, &side));
    }
    town.start_alone(BOB, Birth::First);
    town.meet(&[BOB], &side);
    town.pass(Span::from_secs(1), |packet| within(packet, &[&side[..], &[BOB]].concat()));
    side.push(BOB);
    town.meet(&side, &[1, 2, ALICE]);
    town.pass(Span::from_secs(2), |_| true);
    town
}

/// The others have removed the founder by then, or not yet.
#[test]
fn where_two_views_of_one_number_meet_nobody_votes_until_one_of_them_is_gone() {
    for (newcomers, first) in [(&[3, 4, 5][..], &[1, 2][..]), (&[3, 4], &[0, 1, 2])] {
        let ask = |town: &mut Town| {
            [ALICE, BOB].into_iter().for_each(|user| town.ask(user));
            town.pass(Span::from_secs(60), |_| true);
        };
        let mut town = a_swarm_founded_once_more(None, newcomers);
        assert_eq!((town.view(1).0, &town.view(1).1[..]), (town.view(3).0, first));
        ask(&mut town);
        assert!(!town.is_inside(ALICE) && !town.is_inside(BOB));
        let second = [&[0], newcomers].concat();
        let rivals = |town: &Town, peer| town.places[&peer].agreed.view(town.now).unwrap().rivals;
        assert!(rivals(&town, 1).into_iter().map(|rival| rival.0).eq(second.iter().copied()));
        assert_eq!(rivals(&town, 3), [1, 2].map(PeerId));
        assert_eq!(rivals(&town, 0), [1, 2].map(PeerId));
        assert_eq!([1, 3].map(|peer| town.standing(peer)), [Standing::Unvouched; 2]);
        second.iter().for_each(|peer| drop(town.stop(*peer)));
        town.packets.retain(|packet| !second.contains(&packet.from));
        town.pass(Span::from_secs(20), |_| true);
        assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
        let broken = Mutant::GoesOnBesideAnother;
        let mut town = a_swarm_founded_once_more(Some(broken), newcomers);
        ask(&mut town);
        assert!(are_two_inside(&town), "{broken} is not caught");
    }
}

/// Somebody wants in where members of two views of one number see each other. Whether one of the views has a successor.
fn one_of_two_swarms_goes_on(broken: Option<Mutant>) -> bool {
    let mut town = a_swarm_founded_once_more(broken, &[3, 4]);
    let number = town.view(1).0;
    town.start(5, Birth::First);
    town.pass(Span::from_secs(40), |_| true);
    [1, 3].iter().any(|peer| town.view(*peer).0 > number)
}

#[test]
fn where_two_views_of_one_number_meet_neither_has_a_successor() {
    assert!(!one_of_two_swarms_goes_on(None));
    let broken = Mutant::HasASayBesideAnother;
    assert!(one_of_two_swarms_goes_on(Some(broken)), "{broken} is not caught");
}
