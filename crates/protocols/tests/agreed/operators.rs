//! Operators who say the right thing twice, too early, or of an old disk.

use sigmalock_core::{
    Birth, CallId, ForgetRefusal, Input, MemberReply, MemberRequest, Message as _, PeerId, Span,
};
use sigmalock_protocols::views::Mutant;

use crate::refutations::{are_two_inside, recovered};
use crate::rules::within;
use crate::town::{ALICE, BOB, Packet, STEP, Town, is_learn};

fn forget(town: &mut Town, by: u64, gone: &[u64], unverified: bool) {
    let gone = gone.iter().copied().map(PeerId).collect();
    let request = MemberRequest::Forget { gone, unverified }.into();
    town.give(by, Input::Request { id: CallId(9), request });
}

/// What the operator at a peer was told last.
fn told(town: &mut Town, peer: u64) -> Option<MemberReply> {
    town.places.get_mut(&peer).unwrap().answered.pop()
}

fn refused(refusal: ForgetRefusal) -> Option<MemberReply> {
    Some(MemberReply::Refused(refusal))
}

/// Two of six are told that the same three are gone, which is true, and one of the two is cut off. Whether two are
/// inside in the end, and what both were told.
fn two_operators(
    broken: Option<Mutant>, first: u64, second: u64,
) -> (bool, [Option<MemberReply>; 2]) {
    let mut town = Town::without(broken, 6);
    [3, 4, 5].into_iter().for_each(|peer| drop(town.stop(peer)));
    town.pass(Span::from_secs(1), |_| true);
    forget(&mut town, first, &[3, 4, 5], false);
    town.pass(Span::from_millis(150), |_| true);
    forget(&mut town, second, &[3, 4, 5], false);
    town.pass(Span::from_millis(150), |_| true);
    let cut = [second, ALICE];
    town.part(&cut, &[first, 2, BOB]);
    town.packets.clear();
    town.pass(Span::from_secs(2), |packet| within(packet, &cut));
    let both = [first, second].map(|peer| told(&mut town, peer));
    for peer in 6..9 {
        town.start(peer, Birth::First);
        town.part(&cut, &[peer]);
    }
    town.pass(Span::from_secs(120), |packet| within(packet, &cut));
    let cut = [second, ALICE, 2];
    town.part(&[2], &[first, 6, 7, 8, BOB]);
    town.packets.clear();
    town.meet(&[2], &[second, ALICE]);
    town.ask(ALICE);
    town.ask(BOB);
    town.pass(Span::from_secs(40), |packet| within(packet, &cut));
    (are_two_inside(&town), both)
}

#[test]
fn of_two_operators_who_name_the_same_one_is_refused() {
    for (first, second) in [(0, 1), (1, 0)] {
        let (two, both) = two_operators(None, first, second);
        assert!(!two, "{both:?}");
        assert_eq!(both, [refused(ForgetRefusal::UnderWay), Some(MemberReply::Done)]);
        let (two, both) = two_operators(Some(Mutant::ForgetsThoughOutbid), first, second);
        assert!(two, "{both:?}");
    }
}

#[test]
fn who_is_left_and_has_promised_a_newer_ballot_is_asked_again() {
    let mut town = Town::of(4, None);
    let cut = [0];
    town.part(&cut, &[1, 2, 3]);
    // One tries in vain to remove two that have lost their memory.
    for peer in [2, 3] {
        drop(town.stop(peer));
        town.start(peer, Birth::Amnesiac);
        town.part(&cut, &[peer]);
    }
    town.pass(Span::from_secs(300), |packet| within(packet, &cut));
    [2, 3].into_iter().for_each(|peer| drop(town.stop(peer)));
    town.packets.clear();
    town.meet(&[0], &[1]);
    town.pass(Span::from_secs(5), |_| true);
    forget(&mut town, 0, &[2, 3], false);
    town.pass(Span::from_secs(2), |_| true);
    assert_eq!(told(&mut town, 0), Some(MemberReply::Done));
}

#[test]
fn a_wish_that_is_refused_does_not_make_an_old_disk_good() {
    let mut town = Town::of(3, None);
    // 2 accepts that 3 comes, and does not hear what becomes of it.
    town.start(3, Birth::First);
    town.pass(Span::from_secs(3), |packet| packet.message.kind() != "ACCEPTED");
    let backup = town.stop(2);
    drop(town.stop(3));
    town.packets.clear();
    town.start(2, recovered(&backup));
    town.pass(Span::from_secs(20), |_| true);
    town.ask(ALICE);
    // Alice does not reach 1, and so has the vote of 2.
    let apart = |packet: &Packet| {
        let ends = [packet.from, packet.to];
        !(ends.contains(&BOB) || ends.contains(&ALICE) && ends.contains(&1))
    };
    town.pass(Span::from_secs(1), apart);
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    // The backup is put back, and meets nobody.
    town.start(2, recovered(&backup));
    town.part(&[2], &[0, 1, ALICE, BOB]);
    let of_others = |packet: &Packet| packet.from != 2 && packet.to != 2;
    town.packets.retain(of_others);
    forget(&mut town, 2, &[0, 1], true);
    town.pass(Span::from_secs(2), |packet| of_others(packet) && apart(packet));
    assert_eq!(told(&mut town, 2), refused(ForgetRefusal::UnderWay));
    town.packets.retain(of_others);
    // It meets 1 and Bob; what it says of itself to 1 is late.
    town.meet(&[2], &[1, BOB]);
    town.ask(BOB);
    let side = [1, 2, BOB];
    town.pass(Span::from_secs(2), |packet| {
        let late = ["BEGAN", "REMEMBERED"].contains(&packet.message.kind());
        within(packet, &side) && !(late && side.contains(&packet.from))
    });
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
}

/// Those who were to be forgotten come meanwhile, and say that the disk is an old one. What the operator is told, and
/// whether anybody gets in in the end.
fn the_forgotten_come(broken: Option<Mutant>) -> (Option<MemberReply>, bool) {
    let mut town = Town::without(broken, 4);
    town.give(3, Input::Leave);
    while town.view(0).1.len() > 3 {
        town.pass(Span::from_millis(200), |_| true);
    }
    town.pass(Span::from_millis(400), |_| true);
    drop(town.stop(3));
    let backup = town.stop(2);
    town.start(2, recovered(&backup));
    town.pass(Span::from_secs(2), |_| true);
    drop(town.stop(2));
    town.start(2, recovered(&backup));
    town.part(&[2], &[0, 1, ALICE, BOB]);
    town.packets.retain(|packet| packet.from != 2 && packet.to != 2);
    forget(&mut town, 2, &[0, 1], true);
    town.pass(Span::from_millis(100), |packet| packet.from != 2 && packet.to != 2);
    town.meet(&[2], &[0, 1]);
    town.pass(Span::from_secs(3), |_| true);
    let told = told(&mut town, 2);
    town.pass(Span::from_secs(300), |_| true);
    town.ask(ALICE);
    town.pass(Span::from_secs(60), |_| true);
    (told, town.is_inside(ALICE))
}

#[test]
fn who_came_meanwhile_is_not_forgotten() {
    let (told, alice) = the_forgotten_come(None);
    assert!(matches!(told, Some(MemberReply::Refused(_))) && alice, "{told:?}, {alice}");
    let broken = Some(Mutant::ForgetsWhoeverComes);
    assert_eq!(the_forgotten_come(broken), (Some(MemberReply::Done), false));
}

/// The founder is cut off, and the others go on without it; a user of one of them is inside. Alice reaches all. The
/// operator, who reaches the founder only, says that the others are gone. What that one is told, and whether two are inside
/// in the end.
fn somebody_outside_knows_better(broken: Option<Mutant>) -> (Option<MemberReply>, bool) {
    let mut town = Town::without(broken, 3);
    town.part(&[0, BOB], &[1, 2]);
    town.part(&[ALICE], &[BOB]);
    town.packets.clear();
    let heard =
        |packet: &Packet| [packet.from, packet.to].contains(&ALICE) || within(packet, &[0, BOB]);
    while town.view(1).1.len() > 2 {
        town.pass(Span::from_secs(10), heard);
    }
    town.ask(1);
    town.pass(Span::from_secs(30), heard);
    forget(&mut town, 0, &[1, 2], true);
    town.pass(Span::from_secs(2), heard);
    let told = told(&mut town, 0);
    town.ask(BOB);
    town.pass(Span::from_secs(40), heard);
    assert!(town.is_inside(1));
    (told, town.is_inside(BOB))
}

#[test]
fn whoever_is_reached_is_asked_for_a_newer_view() {
    let told = refused(ForgetRefusal::NewerView);
    assert_eq!(somebody_outside_knows_better(None), (told, false));
    let broken = Some(Mutant::AsksMembersOnly);
    assert_eq!(somebody_outside_knows_better(broken), (Some(MemberReply::Done), true));
}

/// A peer was one of two once. The swarm has grown since, the other one is gone for good, and a disk of then is put back,
/// which meets nobody. An operator says truly who is gone. What that one is told, and whether two are inside in the end.
fn a_disk_of_when_it_was_one_of_two(
    broken: Option<Mutant>, unverified: bool,
) -> (Option<MemberReply>, bool) {
    let mut town = Town::without(broken, 2);
    let (backup, written) = (town.stop(0), town.written[&0]);
    town.start(0, recovered(&backup));
    for peer in 2..5 {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(20), |_| true);
    }
    [0, 1, BOB].into_iter().for_each(|peer| drop(town.stop(peer)));
    town.ask(ALICE);
    town.pass(Span::from_secs(5), |_| true);
    assert!(town.is_inside(ALICE));
    town.written.insert(0, written);
    town.start(0, recovered(&backup));
    town.start(BOB, Birth::First);
    let cut = [0, BOB];
    town.part(&cut, &[2, 3, 4, ALICE]);
    town.packets.clear();
    town.meet(&[0], &[BOB]);
    forget(&mut town, 0, &[1], unverified);
    town.pass(Span::from_secs(2), |packet| within(packet, &cut));
    let told = told(&mut town, 0);
    town.ask(BOB);
    town.pass(Span::from_secs(40), |packet| within(packet, &cut));
    (told, are_two_inside(&town))
}

#[test]
fn that_a_disk_is_the_newest_takes_a_word_where_nobody_is_left_to_vouch_for_it() {
    let told = refused(ForgetRefusal::Unvouched);
    assert_eq!(a_disk_of_when_it_was_one_of_two(None, false), (told, false));
    // Nobody can know better than somebody who says what is not true.
    let done = (Some(MemberReply::Done), true);
    assert_eq!(a_disk_of_when_it_was_one_of_two(None, true), done);
    let broken = Some(Mutant::ForgetsUnvouched);
    assert_eq!(a_disk_of_when_it_was_one_of_two(broken, false), done);
}

/// Three of four choose that a fifth comes. The second has accepted that, and is cut off before it hears what became of it;
/// so is the third, who has heard nothing. The others go on without them, take two more in, and let the founder and the
/// fourth go, who then are gone for good; Alice is inside. The operator of the two that are cut off says truly who is gone.
/// What that one is told, and whether two are inside in the end.
fn one_that_is_left_has_accepted_something(broken: Option<Mutant>) -> (Option<MemberReply>, bool) {
    let mut town = Town::without(broken, 4);
    let cut = [1, 2, BOB];
    town.part(&[2, BOB], &[0, 1, 3, ALICE]);
    town.start(4, Birth::First);
    town.part(&[2, BOB], &[4]);
    let unheard = |packet: &Packet| packet.to == 1 && is_learn(packet);
    while town.view(0).1.len() < 5 {
        town.pass(STEP, |packet| within(packet, &[2, BOB]) && !unheard(packet));
    }
    town.part(&[1], &[0, 3, 4, ALICE]);
    town.meet(&[1], &[2, BOB]);
    town.packets.clear();
    for peer in [5, 6] {
        town.start(peer, Birth::First);
        town.part(&cut, &[peer]);
    }
    town.pass(Span::from_secs(120), |packet| within(packet, &cut));
    for peer in [0, 3] {
        town.give(peer, Input::Leave);
        town.pass(Span::from_secs(20), |packet| within(packet, &cut));
        drop(town.stop(peer));
    }
    assert_eq!((town.view(4).1, town.view(1).0), (vec![4, 5, 6], 4));
    town.ask(ALICE);
    forget(&mut town, 2, &[0, 3], false);
    town.pass(Span::from_secs(2), |packet| within(packet, &cut));
    let told = told(&mut town, 2);
    town.ask(BOB);
    town.pass(Span::from_secs(40), |packet| within(packet, &cut));
    assert!(town.is_inside(ALICE));
    (told, are_two_inside(&town))
}

#[test]
fn what_one_that_is_left_has_accepted_may_have_been_chosen() {
    let told = refused(ForgetRefusal::UnderWay);
    assert_eq!(one_that_is_left_has_accepted_something(None), (told, false));
    let broken = Some(Mutant::ForgetsThoughAccepted);
    assert_eq!(one_that_is_left_has_accepted_something(broken), (Some(MemberReply::Done), true));
}
