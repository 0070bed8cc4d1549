//! Rules of views, each left out in turn: stories that end well with it, and badly without.

use crate::town::{Durable, DurableKey, Message};
use sigmalock_core::{
    Birth, CallId, ForgetRefusal, Input, MemberReply, MemberRequest, Message as _, PeerId, Span,
    Standing,
};
use sigmalock_protocols::sigma;
use sigmalock_protocols::views::{self, Mutant};

use crate::refutations::{Disk, are_apart, are_two_inside, recovered};
use crate::town::{ALICE, BOB, Packet, STEP, Town};

/// Neither hears the other side.
pub(crate) fn within(packet: &Packet, side: &[u64]) -> bool {
    side.contains(&packet.from) == side.contains(&packet.to)
}

/// One of five is gone, and the founder is told so. All the others promise it to look at no older ballot; then it is cut
/// off, and they go on with newer ones. What it is answered, and whether two are inside in the end.
fn a_minority_is_forgotten(broken: Option<Mutant>) -> (Option<MemberReply>, bool) {
    let mut town = Town::without(broken, 5);
    drop(town.stop(4));
    let request = MemberRequest::Forget { gone: [PeerId(4)].into(), unverified: false }.into();
    town.give(0, Input::Request { id: CallId(9), request });
    town.pass(Span::from_millis(150), |_| true);
    // It does not hear that the dead one is voted out, nor that others come.
    let founder = [0, BOB];
    town.part(&founder, &[1, 2, 3, ALICE]);
    town.pass(Span::from_secs(1), |packet| within(packet, &founder));
    let told = town.places.get_mut(&0).unwrap().answered.pop();
    for peer in 5..8 {
        town.start(peer, Birth::First);
        town.part(&founder, &[peer]);
    }
    town.pass(Span::from_secs(120), |packet| within(packet, &founder));
    assert_eq!(town.view(3).1, [1, 2, 3, 5, 6, 7]);
    // It meets two of them, who are cut off from the others.
    let founder = [0, 1, 2, BOB];
    town.packets.clear();
    town.part(&[1, 2], &[3, 5, 6, 7, ALICE]);
    town.meet(&[0, BOB], &[1, 2]);
    town.ask(ALICE);
    town.ask(BOB);
    town.pass(Span::from_secs(40), |packet| within(packet, &founder));
    (told, are_two_inside(&town))
}

#[test]
fn nobody_is_forgotten_where_those_who_are_left_can_choose_what_comes_next() {
    let refused = MemberReply::Refused(ForgetRefusal::EnoughAreLeft);
    assert_eq!(a_minority_is_forgotten(None), (Some(refused), false));
    let broken = Some(Mutant::ForgetsThoughEnoughAreLeft);
    assert_eq!(a_minority_is_forgotten(broken), (Some(MemberReply::Done), true));
}

/// Whether it is between these two.
fn is_between(packet: &Packet, one: u64, other: u64) -> bool {
    [(one, other), (other, one)].contains(&(packet.from, packet.to))
}

/// What is there after a life that one has not heard of.
struct Unheard {
    town: Town,
    /// The disk of before.
    backup: Disk,
    /// What the founder said when it vouched for that life,
    voucher: Message,
    /// and its disk, while it saw that peer.
    founder: Disk,
}

fn view_on_disk(town: &Town, peer: u64) -> (DurableKey, Durable) {
    let mut records = town.places[&peer].disk.iter();
    let view = records.find(|(key, _)| matches!(key, DurableKey::View(_))).unwrap();
    (view.0.clone(), view.1.clone())
}

/// A peer was restarted, which the second member has not heard of, and gave its vote to Alice, who is inside with that and
/// the founder's. Then it was stopped.
fn a_life_that_one_has_not_heard_of(broken: Option<Mutant>) -> Unheard {
    let mut town = Town::without(broken, 3);
    let (backup, written) = (town.stop(2), town.written[&2]);
    town.start(2, recovered(&backup));
    town.part(&[1], &[2]);
    let mut voucher = None;
    while voucher.is_none() {
        town.pass(STEP, |packet| !is_between(packet, 1, 2));
        let said = town.packets.iter().find(|p| p.to == 2 && p.message.kind() == "VOUCHED");
        voucher = said.map(|packet| packet.message.clone());
    }
    let (view, then) = view_on_disk(&town, 0);
    town.pass(Span::from_secs(8), |packet| !is_between(packet, 1, 2));
    assert_eq!(town.standing(2), Standing::Voting);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| !is_between(packet, 1, 2) && !are_apart(packet));
    assert!(town.is_inside(ALICE));
    // As if it had not come to write down how much others had written.
    let mut founder = town.places[&0].disk.clone();
    founder.insert(view, then);
    drop(town.stop(2));
    town.packets.retain(|packet| packet.from != 2);
    town.written.insert(2, written);
    Unheard { town, backup, voucher: voucher.unwrap(), founder }
}

/// That disk of before is put back. The second member vouches for it, and the founder would not, but is slow.
fn one_vouches_before_the_other_objects(broken: Option<Mutant>, late_voucher: bool) -> Town {
    let Unheard { mut town, backup, voucher, .. } = a_life_that_one_has_not_heard_of(broken);
    town.start(2, recovered(&backup));
    if late_voucher {
        town.give(2, Input::Receive { from: PeerId(0), message: voucher });
    }
    town.ask(BOB);
    let slow = |packet: &Packet| (packet.from, packet.to) == (0, 2);
    town.pass(Span::from_secs(1), |packet| !slow(packet) && !are_apart(packet));
    town
}

#[test]
fn who_came_back_waits_for_all_who_are_there_and_for_their_word_about_this_start() {
    for (mutant, late_voucher) in
        [(Mutant::BelievesTheFirst, false), (Mutant::HearsAnyVoucher, true)]
    {
        let mut town = one_vouches_before_the_other_objects(None, late_voucher);
        assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::Unvouched, false));
        town.pass(Span::from_millis(200), |packet| !are_apart(packet));
        assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::OldDisk, false));
        let town = one_vouches_before_the_other_objects(Some(mutant), late_voucher);
        assert!(are_two_inside(&town), "{mutant} is not caught");
    }
}

/// A disk of before its peer was a member is put back while Alice is inside with that peer's vote. It hears that it is in,
/// as the newcomer, and which votes are out, before it hears what the others remember of it.
fn a_disk_of_before_is_put_back(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 2);
    town.start(2, Birth::First);
    town.pass(STEP, |packet| packet.from != 2);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.pass(Span::from_secs(20), |_| true);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.written.insert(2, written);
    town.start(2, recovered(&backup));
    town.ask(BOB);
    let late = |packet: &Packet| packet.message.kind() == "REMEMBERED";
    let heard = |packet: &Packet| !are_apart(packet) && !is_between(packet, 2, ALICE);
    town.pass(Span::from_secs(2), |packet| heard(packet) && !late(packet));
    town
}

#[test]
fn a_disk_of_before_its_peer_was_a_member_takes_somebodys_word_too() {
    let town = a_disk_of_before_is_put_back(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::Unvouched, false));
    assert!(are_two_inside(&a_disk_of_before_is_put_back(Some(Mutant::TrustsDisksOfBefore))));
}

/// A disk of before its peer was a member is put back. Only the founder has heard of what became of that peer, and the
/// disk meets somebody else first, after a long time: the founder comes a moment later.
fn a_disk_of_before_meets_the_founder_last(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 2);
    town.start(2, Birth::First);
    town.pass(STEP, |packet| packet.from != 2);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    let untold = |packet: &Packet| {
        (packet.from, packet.to) == (2, 1) && ["BEGAN", "KNOWN"].contains(&packet.message.kind())
    };
    town.pass(Span::from_secs(40), |packet| !untold(packet));
    assert_eq!(town.standing(2), Standing::Voting);
    town.packets.clear();
    let disk = town.stop(2);
    town.start(2, recovered(&disk));
    town.part(&[1], &[2]);
    town.pass(Span::from_secs(8), |packet| !is_between(packet, 1, 2));
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| !is_between(packet, 1, 2) && !are_apart(packet));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.packets.clear();
    town.written.insert(2, written);
    town.start_alone(2, recovered(&backup));
    town.pass(Span::from_secs(2), |packet| packet.to != 2 && !are_apart(packet));
    town.packets.retain(|packet| packet.to != 2);
    town.ask(BOB);
    town.meet(&[2], &[1, BOB]);
    town.pass(STEP * 5, |packet| !is_between(packet, 0, 2) && !are_apart(packet));
    town.meet(&[2], &[0]);
    town.pass(Span::from_secs(1), |packet| !is_between(packet, 2, ALICE) && !are_apart(packet));
    town
}

#[test]
fn members_have_time_to_show_up_from_when_it_is_known_who_they_are() {
    let town = a_disk_of_before_meets_the_founder_last(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::OldDisk, false));
    let broken = Some(Mutant::WaitsFromItsStart);
    assert!(are_two_inside(&a_disk_of_before_meets_the_founder_last(broken)));
}

/// One member was there and is gone before it says anything about a peer that came back; the other one vouches.
fn one_of_those_who_were_there_is_gone(broken: Option<Mutant>) -> Standing {
    let mut town = Town::without(broken, 3);
    let disk = town.stop(2);
    town.start(2, recovered(&disk));
    drop(town.stop(1));
    town.packets.retain(|packet| packet.from != 1);
    town.pass(Span::from_secs(120), |_| true);
    town.standing(2)
}

#[test]
fn who_came_back_does_not_wait_for_ever_for_one_that_is_gone() {
    assert_eq!(one_of_those_who_were_there_is_gone(None), Standing::Voting);
    let broken = Some(Mutant::WaitsForAllItSaw);
    assert_eq!(one_of_those_who_were_there_is_gone(broken), Standing::Unvouched);
}

/// The founder, who alone has heard of that life, is restarted before the disk of before is put back. It did not see that
/// peer go.
fn who_vouched_is_restarted(broken: Option<Mutant>) -> Town {
    let Unheard { mut town, backup, founder, .. } = a_life_that_one_has_not_heard_of(broken);
    drop(town.stop(0));
    town.start(0, recovered(&founder));
    town.start(2, recovered(&backup));
    town.ask(BOB);
    town.pass(Span::from_secs(2), |packet| !are_apart(packet));
    town
}

#[test]
fn a_start_is_on_disk_before_it_is_vouched_for() {
    let town = who_vouched_is_restarted(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::OldDisk, false));
    assert!(are_two_inside(&who_vouched_is_restarted(Some(Mutant::VouchesBeforeItWrites))));
}

/// The disk of before is put back, and the founder tells it so. It is started once more, where there is only the other one.
fn who_was_told_is_restarted(broken: Option<Mutant>) -> Standing {
    let Unheard { mut town, backup, .. } = a_life_that_one_has_not_heard_of(broken);
    town.start(2, recovered(&backup));
    town.pass(Span::from_millis(200), |packet| !is_between(packet, 1, 2) && !are_apart(packet));
    assert_eq!(town.standing(2), Standing::OldDisk);
    let disk = town.stop(2);
    drop(town.stop(0));
    town.packets.retain(|packet| ![0, 2].contains(&packet.from));
    town.start(2, recovered(&disk));
    town.pass(Span::from_secs(2), |packet| !are_apart(packet));
    town.standing(2)
}

#[test]
fn who_was_told_of_a_newer_disk_knows_it_after_a_restart() {
    assert_eq!(who_was_told_is_restarted(None), Standing::OldDisk);
    // It would promise something else about the next view than it has, and vote in a lease.
    let broken = Some(Mutant::DisownsForNow);
    assert!(matches!(who_was_told_is_restarted(broken), Standing::Learning { .. }));
}

/// A peer loses sight of the founder, and of nobody else. There a copy of its disk runs under its name, and votes for Alice.
fn another_was_there_meanwhile(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 3);
    town.part(&[2], &[0, ALICE]);
    town.packets.retain(|packet| ![packet.from, packet.to].contains(&2));
    let away = town.places.remove(&2).unwrap();
    town.start_alone(2, recovered(&away.disk));
    town.meet(&[2], &[0, ALICE]);
    let there = |packet: &Packet| !is_between(packet, 1, 2) && !is_between(packet, 2, BOB);
    town.pass(Span::from_secs(8), there);
    assert_eq!(town.standing(2), Standing::Voting);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| there(packet) && !are_apart(packet));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.packets.retain(|packet| packet.from != 2);
    town.places.insert(2, away);
    for peer in [1, BOB] {
        town.give(peer, Input::PeerUp(PeerId(2)));
    }
    town.meet(&[2], &[0]);
    let heard = |packet: &Packet| !are_apart(packet) && !is_between(packet, 2, ALICE);
    town.pass(STEP * 5, heard);
    town.ask(BOB);
    town.pass(Span::from_secs(1), heard);
    town
}

#[test]
fn who_was_away_while_another_ran_under_its_name_lets_nobody_in() {
    let town = another_was_there_meanwhile(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::OldDisk, false));
    assert!(are_two_inside(&another_was_there_meanwhile(Some(Mutant::IntroducesItselfOnce))));
}

/// One of five lost its memory, and another one an old disk put back; both voted for Alice, and these two are cut off from the
/// other members, but not from Bob. Who has forgotten everything has not heard of any newer disk, either.
fn one_that_forgot_vouches(broken: Option<Mutant>) -> Town {
    let mut town = Town::without(broken, 5);
    let (backup, written) = (town.stop(2), town.written[&2]);
    town.start(2, recovered(&backup));
    town.pass(Span::from_secs(8), |_| true);
    assert_eq!(town.standing(2), Standing::Voting);
    town.ask(ALICE);
    let apart = |packet: &Packet| {
        let ends = [packet.from, packet.to];
        ends.contains(&ALICE) && (ends.contains(&1) || ends.contains(&4))
    };
    town.pass(Span::from_secs(1), |packet| !apart(packet));
    assert!(town.is_inside(ALICE));
    [2, 3].into_iter().for_each(|peer| drop(town.stop(peer)));
    town.packets.clear();
    town.written.insert(2, written);
    town.start_alone(3, Birth::Amnesiac);
    town.start_alone(2, recovered(&backup));
    town.meet(&[2, 3], &[BOB]);
    town.meet(&[2], &[3]);
    town.ask(BOB);
    let cut = |packet: &Packet| {
        let one = |peer: u64| [2, 3].contains(&peer);
        one(packet.from) != one(packet.to) && packet.from != BOB && packet.to != BOB
    };
    let bob_alone = |packet: &Packet| {
        let ends = [packet.from, packet.to];
        ends.contains(&BOB) && ends.contains(&0)
    };
    town.pass(Span::from_secs(8), |packet| !apart(packet) && !cut(packet) && !bob_alone(packet));
    town
}

#[test]
fn who_lost_its_memory_vouches_for_nobody() {
    let town = one_that_forgot_vouches(None);
    assert_eq!((town.standing(2), are_two_inside(&town)), (Standing::Unvouched, false));
    assert!(are_two_inside(&one_that_forgot_vouches(Some(Mutant::VouchesThoughForgetful))));
}

/// One of the three that voted for Alice is started with a disk of before. Two newcomers ask it and those who have not voted
/// who has votes, before it was told that its disk is an old one. Then Bob wants in.
fn newcomers_ask_an_old_disk(broken: Option<sigma::Mutant>) -> Town {
    let mut town = Town::breaking(broken, 5);
    let (backup, written) = (town.stop(2), town.written[&2]);
    town.start(2, recovered(&backup));
    town.pass(Span::from_secs(8), |_| true);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| packet.from != ALICE || packet.to < 3);
    assert!(town.is_inside(ALICE));
    town.stop(2);
    town.written.insert(2, written);
    town.start(2, recovered(&backup));
    let unheard = |packet: &Packet| {
        let remembers = |message: &views::Message| {
            matches!(message, views::Message::Remembered { .. } | views::Message::Vouched { .. })
        };
        match &packet.message {
            Message::Views(message) => packet.to == 2 && remembers(message),
            Message::Inside { message: sigma::Message::Votes(_), .. } => packet.from < 2,
            Message::Inside { .. } => [packet.from, packet.to].contains(&ALICE),
        }
    };
    for peer in [5, 6] {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(2), |packet| !unheard(packet));
    }
    town.ask(BOB);
    town.pass(Span::from_secs(2), |packet| !unheard(packet));
    town
}

#[test]
fn who_does_not_know_whether_its_disk_is_the_newest_tells_no_newcomer_of_votes() {
    assert!(!are_two_inside(&newcomers_ask_an_old_disk(None)));
    assert!(are_two_inside(&newcomers_ask_an_old_disk(Some(sigma::Mutant::AnswersThoughItWaits))));
}

/// The founder takes a third in with the vote of 1, and is cut off before it has said so. The others are asked to take in a
/// fourth. What the next view is on either side.
fn another_proposes_something_else(broken: Option<Mutant>) -> [(u64, Vec<u64>); 2] {
    let mut town = Town::without(broken, 3);
    town.start_alone(3, Birth::First);
    town.meet(&[3], &[0]);
    let proposal = |packet: &Packet| ["PREPARE", "ACCEPT"].contains(&packet.message.kind());
    while town.view(0).1.len() == 3 {
        town.pass(STEP, |p| p.from != 0 || p.to == 3 || (p.to == 1 && proposal(p)));
    }
    let side = [0, 3];
    town.part(&side, &[1, 2]);
    town.packets.clear();
    town.start_alone(4, Birth::First);
    town.meet(&[4], &[1, 2]);
    while town.view(1).1.len() == 3 {
        town.pass(STEP, |packet| within(packet, &side));
    }
    [town.view(0), town.view(1)]
}

#[test]
fn what_may_have_been_chosen_is_proposed_again() {
    let [one, other] = another_proposes_something_else(None);
    assert_eq!(one, other);
    let [one, other] = another_proposes_something_else(Some(Mutant::IgnoresAccepted));
    assert_eq!((one.0, &other.1[..]), (other.0, &[0, 1, 2, 4][..]), "two successors of one view");
}
