//! Copies of a running peer's disk, and originals that come back, each of which once ended with two inside.

use crate::town::Message;
use sigmalock_core::{Birth, CallId, Input, MemberRequest, Message as _, PeerId, Span, Standing};
use sigmalock_protocols::views::{self, Ballot, Mutant};

use crate::refutations::{Disk, are_apart, are_two_inside, recovered};
use crate::town::{ALICE, BOB, Packet, Place, STEP, Town};

fn involves(packet: &Packet, peer: u64) -> bool {
    [packet.from, packet.to].contains(&peer)
}

fn is_between(packet: &Packet, one: u64, other: u64) -> bool {
    [(one, other), (other, one)].contains(&(packet.from, packet.to))
}

/// Two is told that its disk is not the only one, removed and added again, all in one session with the others. Then a
/// copy of its disk is put back that was made while it ran since, which lacks Alice's vote.
fn who_was_added_again_is_put_back(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    town.give(2, Input::Request { id: CallId(99), request: MemberRequest::Disown.into() });
    town.pass(Span::from_secs(60), |_| true);
    assert_eq!((town.standing(2), town.view(2).1), (Standing::Voting, vec![0, 1, 2]));
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.ask(ALICE);
    town.pass(Span::from_secs(5), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.packets.retain(|packet| packet.from != 2);
    town.written.insert(2, written);
    town.start(2, recovered(&backup));
    town.ask(BOB);
    town.pass(Span::from_secs(2), |packet| !are_apart(packet));
    town
}

#[test]
fn an_old_disk_of_who_was_added_again_is_noticed() {
    let town = who_was_added_again_is_put_back(None);
    assert!(!are_two_inside(&town), "two are inside; {:?}", town.standing(2));
    let broken = Mutant::KeepsItsWitnesses;
    assert!(are_two_inside(&who_was_added_again_is_put_back(Some(broken))), "{broken}");
}

/// Two is out of sight. A copy of its disk runs under its name, votes for Alice, and is gone; Bob waits for its vote. Alice
/// is seen by the nearer of the others only, Bob by the farther one.
pub(crate) fn a_copy_runs_meanwhile(town: &mut Town, disk: &Disk, [near, far]: [u64; 2]) {
    let apart = |p: &Packet| is_between(p, ALICE, far) || is_between(p, BOB, near);
    town.start(2, recovered(disk));
    town.pass(Span::from_secs(8), |packet| !apart(packet));
    assert_eq!(town.standing(2), Standing::Voting);
    for user in [ALICE, BOB] {
        town.ask(user);
        town.pass(Span::from_secs(1), |packet| !apart(packet));
    }
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
    drop(town.stop(2));
    town.packets.retain(|packet| packet.from != 2);
    town.pass(Span::from_secs(1), |packet| !apart(packet));
}

/// The original comes back after that, and what others remember of it is slow.
fn a_copy_runs_and_the_original_comes_back(town: &mut Town, original: Place, others: [u64; 2]) {
    a_copy_runs_meanwhile(town, &original.disk, others);
    let [near, far] = others;
    town.places.insert(2, original);
    town.meet(&[2], &[near, far, BOB]);
    let apart = |p: &Packet| is_between(p, ALICE, far) || is_between(p, BOB, near);
    let late = |p: &Packet| p.to == 2 && p.message.kind() == "REMEMBERED";
    town.pass(STEP * 10, |packet| !apart(packet) && !late(packet));
}

/// The only one that two sees leaves the swarm, and tells it so; then it is out of sight.
#[test]
fn who_sees_the_last_that_knew_it_leave_doubts_itself() {
    let mut town = Town::of(4, None);
    let others = [0, 3, ALICE, BOB];
    town.part(&[2], &others);
    let cut = |p: &Packet| others.iter().any(|other| is_between(p, 2, *other));
    town.packets.retain(|p| !cut(p));
    town.give(1, Input::Leave);
    town.pass(Span::from_secs(20), |p| !cut(p));
    assert_eq!(town.view(2).1, [0, 2, 3]);
    drop(town.stop(1));
    town.packets.retain(|p| !involves(p, 1) && !involves(p, 2));
    let original = town.places.remove(&2).unwrap();
    a_copy_runs_and_the_original_comes_back(&mut town, original, [0, 3]);
    assert!(!are_two_inside(&town), "two are inside; {:?}", town.standing(2));
}

/// A newcomer is out of sight before anybody's word on its start has reached it.
#[test]
fn who_is_out_of_sight_before_anybody_knew_it_doubts_itself() {
    let mut town = Town::of(2, None);
    town.start(2, Birth::First);
    let vouched = |p: &Packet| p.to == 2 && p.message.kind() == "VOUCHED";
    town.pass(Span::from_secs(2), |p| !vouched(p));
    assert_eq!(town.standing(2), Standing::Voting);
    town.part(&[2], &[0, 1, ALICE, BOB]);
    town.packets.retain(|p| !involves(p, 2));
    let original = town.places.remove(&2).unwrap();
    a_copy_runs_and_the_original_comes_back(&mut town, original, [0, 1]);
    assert!(!are_two_inside(&town), "two are inside; {:?}", town.standing(2));
}

/// Two is out of sight, a copy of its disk meets the founder alone. Then two meets both, and the founder's word is slow.
fn one_knows_of_the_copy_and_is_slow(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    town.part(&[2], &[0, 1, ALICE, BOB]);
    town.packets.retain(|p| !involves(p, 2));
    let original = town.places.remove(&2).unwrap();
    town.start_alone(2, recovered(&original.disk));
    town.meet(&[2], &[0, ALICE]);
    let unseen = |p: &Packet| is_between(p, 1, 2) || is_between(p, 2, BOB) || are_apart(p);
    town.pass(Span::from_secs(8), |p| !unseen(p));
    assert_eq!(town.standing(2), Standing::Voting);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |p| !unseen(p));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.packets.retain(|p| !involves(p, 2));
    town.places.insert(2, original);
    town.ask(BOB);
    town.meet(&[2], &[0, 1, BOB]);
    let slow = |p: &Packet| (p.from, p.to) == (0, 2);
    town.pass(STEP * 10, |p| !slow(p) && !are_apart(p));
    town
}

#[test]
fn who_doubts_itself_waits_for_all_who_are_there() {
    let town = one_knows_of_the_copy_and_is_slow(None);
    assert!(!are_two_inside(&town), "two are inside; {:?}", town.standing(2));
    for broken in [Mutant::BelievesTheFirst, Mutant::GoesOnThoughAstray] {
        assert!(are_two_inside(&one_knows_of_the_copy_and_is_slow(Some(broken))), "{broken}");
    }
}

/// One sees two all the while, and the founder does not. A copy of two's disk meets the founder alone, which votes with it
/// for Alice. Two meets the founder, whose word is slow, and loses sight of one for a moment.
fn one_that_is_there_is_slow(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    town.part(&[2], &[0, ALICE, BOB]);
    town.packets.retain(|p| !involves(p, 2));
    let original = town.places.remove(&2).unwrap();
    town.start_alone(2, recovered(&original.disk));
    town.meet(&[2], &[0, ALICE]);
    let unseen = |p: &Packet| is_between(p, 1, 2) || is_between(p, 2, BOB) || are_apart(p);
    town.pass(Span::from_secs(8), |p| !unseen(p));
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |p| !unseen(p));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.packets.retain(|p| !involves(p, 2));
    town.places.insert(2, original);
    town.ask(BOB);
    town.meet(&[2], &[0, BOB]);
    town.part(&[2], &[1]);
    town.meet(&[2], &[1]);
    let slow = |p: &Packet| (p.from, p.to) == (0, 2);
    town.pass(STEP * 50, |p| !slow(p) && !are_apart(p));
    town
}

#[test]
fn who_was_there_all_the_while_is_waited_for() {
    let town = one_that_is_there_is_slow(None);
    assert!(!are_two_inside(&town), "two are inside; {:?}", town.standing(2));
    let broken = Mutant::OverlooksWhoIsThere;
    assert!(are_two_inside(&one_that_is_there_is_slow(Some(broken))), "{broken}");
}

/// Two is restarted, and one vouches for its disk; the founder's word is slow. Then nobody sees two for long, a copy of its
/// disk runs meanwhile, and two is back.
fn who_vouched_is_out_of_sight(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    let disk = town.stop(2);
    town.start(2, recovered(&disk));
    town.pass(STEP * 30, |p| (p.from, p.to) != (0, 2));
    assert_eq!(town.standing(2), Standing::Unvouched);
    town.part(&[2], &[0, 1, ALICE, BOB]);
    town.packets.retain(|p| !involves(p, 2));
    town.pass(Span::from_secs(8), |p| !involves(p, 2));
    let original = town.places.remove(&2).unwrap();
    a_copy_runs_and_the_original_comes_back(&mut town, original, [0, 1]);
    town
}

#[test]
fn the_word_of_the_absent_is_not_believed() {
    let town = who_vouched_is_out_of_sight(None);
    assert!(!are_two_inside(&town), "two are inside; {:?}", town.standing(2));
    let broken = Mutant::BelievesTheAbsent;
    assert!(are_two_inside(&who_vouched_is_out_of_sight(Some(broken))), "{broken}");
}

/// Two is out of sight. A copy of its disk and the second member take a third in, of which the founder hears nothing. The
/// original comes back, and the founder wants to take a fourth in; the second member's word is slow.
fn the_original_is_asked_for_another_successor(broken: Option<Mutant>) -> bool {
    let mut town = Town::without(broken, 3);
    town.part(&[2], &[0, 1, ALICE, BOB]);
    town.part(&[0], &[1]);
    town.packets.clear();
    let original = town.places.remove(&2).unwrap();
    town.start_alone(2, recovered(&original.disk));
    town.start_alone(3, Birth::First);
    town.meet(&[1, 2], &[3]);
    town.meet(&[1], &[2]);
    town.pass(Span::from_secs(20), |p| !involves(p, 0));
    assert_eq!(town.view(1).1, [0, 1, 2, 3]);
    drop(town.stop(2));
    town.packets.clear();
    town.places.insert(2, original);
    town.start_alone(4, Birth::First);
    town.meet(&[0], &[4]);
    town.meet(&[2], &[0, 1]);
    let slow = |p: &Packet| (p.from, p.to) == (1, 2);
    let heard = |p: &Packet| [0, 1, 2, 4].contains(&p.from) && !is_between(p, 0, 1);
    town.pass(Span::from_secs(5), |p| heard(p) && !slow(p));
    town.view(0).1.contains(&4)
}

#[test]
fn who_doubts_itself_has_no_say_in_who_is_in() {
    assert!(!the_original_is_asked_for_another_successor(None), "two successors of one view");
    let broken = Mutant::HasASayThoughAstray;
    assert!(the_original_is_asked_for_another_successor(Some(broken)), "{broken} is not caught");
}

/// As in `who_heard_the_count_is_restarted`, but the one that heard the count stops before the other does.
#[test]
fn how_much_was_written_is_remembered_by_who_crashes_first() {
    let mut town = Town::of(3, None);
    town.pass(Span::from_secs(3), |_| true);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.ask(ALICE);
    town.pass(Span::from_secs(3), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    let disk = town.stop(1);
    drop(town.stop(2));
    town.packets.clear();
    town.written.insert(2, written);
    town.part(&[0], &[BOB]);
    for (peer, disk) in [(1, &disk), (2, &backup)] {
        town.start_alone(peer, recovered(disk));
    }
    town.meet(&[1, 2], &[BOB]);
    town.meet(&[1], &[2]);
    town.ask(BOB);
    let side = |peer: u64| [0, ALICE].contains(&peer);
    town.pass(Span::from_secs(3), |p| side(p.from) == side(p.to));
    assert!(!are_two_inside(&town), "two are inside; {:?}", town.standing(2));
}

/// All three lose power at once; one is put back from a snapshot of its running machine. All see each other.
#[test]
fn how_much_was_written_is_remembered_when_all_lose_power() {
    let mut town = Town::of(3, None);
    town.pass(Span::from_secs(3), |_| true);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.ask(ALICE);
    town.pass(Span::from_secs(3), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    // Nobody sees anybody go.
    let disks = [0, 1].map(|peer| town.places.remove(&peer).unwrap().disk);
    drop(town.places.remove(&2));
    for peer in [ALICE, BOB] {
        (0..3).for_each(|gone| town.give(peer, Input::PeerDown(PeerId(gone))));
    }
    town.packets.clear();
    town.written.insert(2, written);
    town.start(0, recovered(&disks[0]));
    town.start(1, recovered(&disks[1]));
    town.start(2, recovered(&backup));
    town.ask(BOB);
    town.pass(Span::from_secs(3), |p| !are_apart(p));
    assert!(!are_two_inside(&town), "two are inside; {:?}", town.standing(2));
}

/// Copies of what some said when they vouched come late, in another session, when two is back; what they remember comes later
/// still.
fn vouchers_come_late(of: &[u64]) -> Town {
    let mut town = Town::of(3, None);
    town.part(&[2], of);
    town.packets.retain(|p| !of.iter().any(|other| is_between(p, 2, *other)));
    town.meet(&[2], of);
    let mut vouchers = Vec::new();
    while vouchers.len() < of.len() {
        town.pass(STEP, |_| true);
        let said = town.packets.iter().filter(|p| p.to == 2 && p.message.kind() == "VOUCHED");
        vouchers.extend(said.map(|p| (PeerId(p.from), p.message.clone())));
    }
    town.pass(Span::from_secs(1), |_| true);
    town.part(&[2], &[0, 1, ALICE, BOB]);
    town.packets.retain(|p| !involves(p, 2));
    let original = town.places.remove(&2).unwrap();
    a_copy_runs_meanwhile(&mut town, &original.disk, [0, 1]);
    town.places.insert(2, original);
    town.meet(&[2], &[0, 1, BOB]);
    for (from, message) in vouchers {
        town.give(2, Input::Receive { from, message });
    }
    let late = |p: &Packet| p.to == 2 && p.message.kind() == "REMEMBERED";
    town.pass(Span::from_secs(2), |p| !are_apart(p) && !late(p));
    town
}

/// One is not enough. Those of all would be: so the driver hears nothing of a session that is over.
#[test]
fn late_vouchers_say_nothing_about_now_and_those_of_all_are_not_to_be_heard() {
    assert!(!are_two_inside(&vouchers_come_late(&[0])));
    assert!(are_two_inside(&vouchers_come_late(&[0, 1])));
}

/// A member says a ballot of the last round that there is: the next proposal is of a later one.
#[test]
fn a_ballot_of_the_last_round_stops_nobody() {
    let mut town = Town::of(3, None);
    let ballot = Ballot { round: u64::MAX, by: PeerId(1) };
    let view = town.view(0).0;
    let message = Message::Views(views::Message::Prepare { view, ballot });
    town.give(0, Input::Receive { from: PeerId(1), message });
    town.start(3, Birth::First);
    town.pass(Span::from_secs(20), |_| true);
    assert_eq!(town.view(1).1, [0, 1, 2, 3]);
}

/// Those who are left had not yet told each other of their starts, or have lost sight of each other for a moment.
#[test]
fn a_member_that_forgot_and_is_taken_in_again_costs_no_holder_its_lock() {
    for apart in [false, true] {
        let mut town = Town::of(3, None);
        town.ask(ALICE);
        town.pass(Span::from_secs(2), |_| true);
        assert!(town.is_inside(ALICE));
        drop(town.stop(2));
        if apart {
            town.part(&[0], &[1]);
            town.meet(&[0], &[1]);
        }
        town.start(2, Birth::Amnesiac);
        for _ in 0..600 {
            town.pass(STEP * 2, |_| true);
            assert!(town.is_inside(ALICE), "{:?} {:?}", town.standing(0), town.standing(1));
        }
        assert_eq!((town.view(0).1, town.standing(2)), (vec![0, 1, 2], Standing::Voting));
    }
}
