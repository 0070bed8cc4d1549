//! Whose word about a disk counts, and from when on the others have time to object.

use sigmalock_core::{Birth, Message as _, Span, Standing};
use sigmalock_protocols::views::Mutant;

use crate::refutations::{Disk, are_two_inside, recovered};
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
