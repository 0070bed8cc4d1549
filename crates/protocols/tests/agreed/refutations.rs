//! Stories that once ended with two inside, and must not.

use std::collections::BTreeMap;

use crate::town::{Agreed, Durable, DurableKey};
use sigmalock_core::{
    Birth, CallId, Effect, ForgetRefusal, Input, Inspect as _, MemberReply, MemberRequest,
    Message as _, PeerId, Span, Standing,
};
use sigmalock_protocols::agreed::Mutant;

use sigmalock_protocols::views::STARTS_MAX;

use crate::town::{ALICE, BOB, Packet, Town};

pub(crate) type Disk = BTreeMap<DurableKey, Durable>;

fn crosses(packet: &Packet, one: &[u64]) -> bool {
    one.contains(&packet.from) != one.contains(&packet.to)
}

pub(crate) fn are_two_inside(town: &Town) -> bool {
    town.is_inside(ALICE) && town.is_inside(BOB)
}

/// A peer that lost its disk meets one that has not heard of the last weeks: its view does not have the forgetful one
/// in it, being older than its membership. It must not take that for "I was removed".
#[test]
fn who_lost_its_memory_and_meets_somebody_of_yesterday_is_lost_and_lets_nobody_in() {
    let (a, q, b, p, c) = (0, 1, 2, 3, 4);
    let mut town = Town::of(3, None);
    // Q is switched off at view 3, before P comes.
    town.part(&[q], &[a, b, ALICE, BOB]);
    let heard = |packet: &Packet| !crosses(packet, &[q]);
    town.start(p, Birth::First);
    town.part(&[q], &[p]);
    town.pass(Span::from_secs(5), heard);
    assert_eq!(town.standing(p), Standing::Voting);
    town.pass(Span::from_secs(45), heard);
    assert_eq!((town.view(b), town.view(q).0), ((5, vec![a, b, p]), 3));
    // B is cut off, too, with Bob: A and P vote it out and take C in, and Alice is inside.
    town.part(&[b, BOB], &[a, p, ALICE]);
    let heard = |packet: &Packet| !crosses(packet, &[q]) && !crosses(packet, &[b, BOB]);
    town.pass(Span::from_secs(60), heard);
    town.start(c, Birth::First);
    town.part(&[c], &[q, b, BOB]);
    town.pass(Span::from_secs(5), heard);
    assert_eq!((town.view(a), town.view(b).0), ((7, vec![a, p, c]), 5));
    town.ask(ALICE);
    town.pass(Span::from_secs(2), heard);
    assert!(town.is_inside(ALICE));
    // P loses its disk, and comes back on the other side of the cut. There it meets Q first, then B.
    drop(town.stop(p));
    town.start(p, Birth::Amnesiac);
    town.part(&[p], &[a, c, ALICE, b, BOB]);
    town.packets.retain(|packet| !crosses(packet, &[p, q]));
    let two = |packet: &Packet| [packet.from, packet.to].iter().all(|peer| [p, q].contains(peer));
    town.pass(Span::from_secs(1), |packet| {
        two(packet) || (heard(packet) && !crosses(packet, &[p]))
    });
    assert_eq!((town.view(p).0, town.standing(p)), (3, Standing::Lost));
    town.meet(&[p, q], &[b, BOB]);
    let side = [q, b, BOB, p];
    town.pass(Span::from_secs(1), |packet| !crosses(packet, &side));
    assert_eq!((town.view(p).0, town.standing(p)), (5, Standing::Lost), "nobody has removed it");
    town.ask(BOB);
    town.pass(Span::from_secs(30), |packet| !crosses(packet, &side));
    assert_eq!((town.standing(p), town.view(b).0), (Standing::Lost, 5));
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
}

/// Votes are split between Alice and Bob, and neither knows yet. A newcomer, who does not hear of the fourth's vote,
/// settles: it adopts Alice's vote, with which she wins. It stops after `done` of what it wants done then, and comes back
/// with its disk, not hearing Alice. `None` if there was less to be done.
fn a_newcomer_is_torn(done: usize, mutant: Option<Mutant>) -> Option<Town> {
    let newcomer = 4;
    let mut town = Town::of(4, mutant);
    let unheard = |packet: &Packet| {
        let pair = (packet.from, packet.to);
        let split = [(ALICE, 2), (ALICE, 3), (BOB, 0), (BOB, 1)];
        (split.contains(&pair) || split.contains(&(pair.1, pair.0)))
            && packet.message.kind() != "LEARN"
    };
    // Proposals go by the wall clock, rounded to a quarter of the longest lease: nobody crosses that meanwhile.
    town.pass(Span::from_millis(1_200), |_| true);
    town.ask(ALICE);
    town.ask(BOB);
    town.pass(Span::from_millis(300), |packet| !unheard(packet));
    assert!(!town.is_inside(ALICE) && !town.is_inside(BOB));
    town.start(newcomer, Birth::First);
    town.tear = Some(Box::new(move |peer, effects: &[Effect<Agreed>]| {
        let settles = effects.iter().any(|effect| {
            matches!(effect, Effect::Persist { key: DurableKey::Votes, value: Some(_) })
        });
        (peer == newcomer && settles && done < effects.len()).then_some(done)
    }));
    let fourth = |packet: &Packet| {
        (packet.from, packet.to) == (3, newcomer) && packet.message.kind() == "VOTES"
    };
    for _ in 0..60 {
        if town.torn.is_some() && (town.is_inside(ALICE) || done == 0) {
            break;
        }
        town.pass(Span::from_millis(50), |packet| !unheard(packet) && !fourth(packet));
    }
    let disk = town.torn.take()?;
    town.start(newcomer, Birth::Recovered(disk.into_iter().collect()));
    let unheard =
        |packet: &Packet| unheard(packet) || (packet.from, packet.to) == (ALICE, newcomer);
    town.pass(Span::from_secs(4), |packet| !unheard(packet));
    Some(town)
}

#[test]
fn a_newcomer_that_stops_anywhere_while_it_settles_lets_nobody_in() {
    let mut torn = 0;
    while let Some(town) = a_newcomer_is_torn(torn, None) {
        assert!(!are_two_inside(&town), "two are inside if it is torn after {torn} effects");
        torn += 1;
    }
    assert!(torn > 5, "there was something to tear: {torn}");
    let mutant = Some(Mutant::SettlesBeforeItWrites);
    let caught =
        (0..).map_while(|done| a_newcomer_is_torn(done, mutant)).any(|t| are_two_inside(&t));
    assert!(caught, "{} is not caught", Mutant::SettlesBeforeItWrites);
}

/// An operator says of two members that they are gone for good, and that is true. But the peer that is told so was voted
/// out long ago, and does not know; nor can it.
#[test]
fn forgetting_members_that_are_gone_is_refused_to_one_of_yesterday() {
    let mut town = Town::of(3, None);
    town.part(&[0, ALICE], &[1, 2, BOB]);
    let heard = |packet: &Packet| !crosses(packet, &[0, ALICE]);
    town.pass(Span::from_secs(60), heard);
    assert_eq!(town.view(1).1, [1, 2]);
    for peer in 3..6 {
        town.start(peer, Birth::First);
        town.part(&[0, ALICE], &[peer]);
        town.pass(Span::from_secs(20), heard);
    }
    assert_eq!(town.view(1).1, [1, 2, 3, 4, 5]);
    drop(town.stop(1));
    drop(town.stop(2));
    town.ask(BOB);
    town.pass(Span::from_secs(20), heard);
    assert!(town.is_inside(BOB));
    assert_eq!(forget(&mut town, 0, &[1, 2], heard), Err(ForgetRefusal::Unverified));
    town.ask(ALICE);
    town.pass(Span::from_secs(20), heard);
    assert!(!town.is_inside(ALICE) && town.is_inside(BOB));
}

fn forget(
    town: &mut Town, by: u64, gone: &[u64], heard: impl Fn(&Packet) -> bool,
) -> Result<(), ForgetRefusal> {
    let gone = gone.iter().copied().map(PeerId).collect();
    let request = MemberRequest::Forget { gone, unverified: false }.into();
    town.give(by, Input::Request { id: CallId(9), request });
    town.pass(Span::from_secs(1), heard);
    match town.places.get_mut(&by).unwrap().answered.pop() {
        Some(MemberReply::Done) => Ok(()),
        Some(MemberReply::Refused(why)) => Err(why),
        other => panic!("{other:?}"),
    }
}

/// Two of four are gone: they alone have chosen nothing, so those who are left can go on, unless one of them has
/// accepted something, or knows better, or is not asked.
#[test]
fn half_of_the_members_can_be_forgotten_if_all_who_are_left_agree() {
    let mut town = Town::of(4, None);
    drop(town.stop(2));
    assert_eq!(forget(&mut town, 0, &[2, 3], |_| true), Err(ForgetRefusal::Here(PeerId(3))));
    drop(town.stop(3));
    let deaf = |packet: &Packet| packet.to != 1;
    assert_eq!(forget(&mut town, 0, &[2, 3], deaf), Err(ForgetRefusal::Silent(PeerId(1))));
    assert_eq!(forget(&mut town, 0, &[2, 3], |_| true), Ok(()));
    town.ask(ALICE);
    town.pass(Span::from_secs(14), |_| true);
    assert!(!town.is_inside(ALICE), "a lease has not passed");
    town.pass(Span::from_secs(3), |_| true);
    assert!(town.is_inside(ALICE) && town.view(1).1 == [0, 1]);
}

/// One of those who are left has accepted a change, which may have been decided: who is told to forget has not.
#[test]
fn nobody_is_forgotten_where_a_change_may_have_been_decided() {
    let mut town = Town::of(4, None);
    let heard = |packet: &Packet| match packet.message.kind() {
        "ACCEPT" => packet.to == 1,
        kind => kind != "ACCEPTED",
    };
    town.start(4, Birth::First);
    town.pass(Span::from_secs(3), heard);
    for peer in [0, 3, 4] {
        drop(town.stop(peer));
    }
    town.packets.clear();
    assert_eq!((town.view(1).0, town.view(2).0), (4, 4), "nothing was decided that they know of");
    assert_eq!(forget(&mut town, 2, &[0, 3], |_| true), Err(ForgetRefusal::UnderWay));
    assert_eq!(forget(&mut town, 1, &[0, 3], |_| true), Err(ForgetRefusal::UnderWay));
}

/// Somebody whom the operator's peer reaches knows a newer view: then that is the one to look at.
#[test]
fn nobody_is_forgotten_where_anybody_knows_a_newer_view() {
    let mut town = Town::of(4, None);
    // The founder does not hear that the others take a fifth in; Alice does.
    let heard = |packet: &Packet| !crosses(packet, &[0]);
    town.part(&[0], &[1, 2, 3, ALICE, BOB]);
    town.start(4, Birth::First);
    town.part(&[0], &[4]);
    town.pass(Span::from_secs(5), heard);
    assert_eq!((town.view(0).0, town.view(ALICE).0), (4, 5));
    for peer in [2, 3, 4] {
        drop(town.stop(peer));
    }
    town.packets.retain(heard);
    town.meet(&[0], &[1]);
    // They meet, and the operator speaks before the other does.
    assert_eq!(forget(&mut town, 0, &[2, 3], |_| true), Err(ForgetRefusal::NewerView));
    assert_eq!(town.view(0).1, [0, 1, 2, 3, 4]);
}

/// A peer is stopped, its disk copied, and later the copy put back: it lacks the vote that Alice counts. Its disk cannot
/// know that, but the others do, while Bob waits for its vote. Also the disk that it had meanwhile.
fn a_disk_is_put_back(mutant: Option<Mutant>) -> (Town, Disk) {
    let mut town = Town::of(3, mutant);
    let backup = town.stop(2);
    town.start(2, recovered(&backup));
    assert_eq!(town.standing(2), Standing::Unvouched);
    town.pass(Span::from_secs(1), |_| true);
    assert_eq!(town.standing(2), Standing::Voting);
    // Alice gets in with the votes of the founder and of that peer.
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    let disk = town.stop(2);
    town.start(2, recovered(&backup));
    town.ask(BOB);
    town.pass(Span::from_secs(1), |packet| !are_apart(packet));
    assert_eq!(town.standing(2), Standing::OldDisk);
    assert!(town.is_inside(ALICE));
    (town, disk)
}

/// Alice does not hear the second member, nor Bob the founder.
pub(crate) fn are_apart(packet: &Packet) -> bool {
    let pair = (packet.from, packet.to);
    [(ALICE, 1), (1, ALICE), (BOB, 0), (0, BOB)].contains(&pair)
}

pub(crate) fn recovered(disk: &Disk) -> Birth<Agreed> {
    Birth::Recovered(disk.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
}

#[test]
fn a_disk_that_is_put_back_is_noticed_and_lets_nobody_in() {
    let (mut town, disk) = a_disk_is_put_back(None);
    assert!(!town.is_inside(BOB));
    let outdated = |town: &Town, peer| town.places[&peer].agreed.view(town.now).unwrap().outdated;
    assert_eq!(outdated(&town, 0), [PeerId(2)], "and the others say so");
    // It is removed and added again.
    town.release(ALICE);
    town.pass(Span::from_secs(60), |_| true);
    assert_eq!((town.standing(2), town.view(2).1), (Standing::Voting, vec![0, 1, 2]));
    assert_eq!(outdated(&town, 0), []);
    town.stop(2);
    town.start(2, recovered(&disk));
    town.pass(Span::from_secs(1), |_| true);
    assert_eq!(town.standing(2), Standing::Lost, "it has been removed and added since");
    town.pass(Span::from_secs(60), |_| true);
    assert_eq!(town.standing(2), Standing::Voting);

    let (town, _) = a_disk_is_put_back(Some(Mutant::VotesBeforeItFollows));
    assert!(town.is_inside(BOB), "{} is not caught", Mutant::VotesBeforeItFollows);
}

/// Others met a peer with the identity of a member, and it was another one: so that member's memory is half of one.
#[test]
fn who_is_told_that_its_disk_is_not_the_only_one_lets_nobody_in() {
    let mut town = Town::of(3, None);
    town.give(2, Input::Request { id: CallId(99), request: MemberRequest::Disown.into() });
    assert_eq!(town.standing(2), Standing::OldDisk);
    let unheard = |packet: &Packet| [(ALICE, 1), (1, ALICE)].contains(&(packet.from, packet.to));
    town.ask(ALICE);
    town.pass(Span::from_millis(300), |packet| !unheard(packet));
    assert!(!town.is_inside(ALICE));
    town.pass(Span::from_secs(60), |_| true);
    assert!(town.is_inside(ALICE));
    assert_eq!((town.standing(2), town.view(2).1), (Standing::Voting, vec![0, 1, 2]));
}

/// The same with a disk of before the peer was a member: it knows of no promise that it could have forgotten.
#[test]
fn a_disk_of_before_it_was_a_member_lets_nobody_in() {
    let mut town = Town::of(2, None);
    town.start(2, Birth::First);
    town.pass(Span::from_millis(10), |packet| packet.to == 2 || packet.from != 2);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.pass(Span::from_secs(20), |_| true);
    assert_eq!(town.view(2).1, [0, 1, 2]);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| !are_apart(packet));
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.written.insert(2, written);
    town.start(2, recovered(&backup));
    town.ask(BOB);
    town.pass(Span::from_secs(1), |packet| !are_apart(packet));
    assert_eq!(town.standing(2), Standing::OldDisk);
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
}

/// Starts a peer more often than its disk remembers, without anybody hearing of it, and then once more.
fn start_often(town: &mut Town, peer: u64, mut disk: Disk) {
    for _ in 0..STARTS_MAX * 2 {
        town.start(peer, recovered(&disk));
        town.packets.retain(|packet| packet.from != peer && packet.to != peer);
        disk = town.stop(peer);
    }
    town.start(peer, recovered(&disk));
}

/// A disk that was put back is started again and again, where nobody hears it: so it comes to have as many records as
/// the others have heard of.
#[test]
fn a_disk_that_is_put_back_does_not_outrun_what_the_others_remember() {
    let mut town = Town::of(3, None);
    let (backup, written) = (town.places[&2].disk.clone(), town.written[&2]);
    town.ask(ALICE);
    town.pass(Span::from_secs(3), |_| true);
    assert!(town.is_inside(ALICE));
    drop(town.stop(2));
    town.written.insert(2, written);
    start_often(&mut town, 2, backup);
    town.pass(Span::from_secs(1), |_| true);
    assert_eq!(town.standing(2), Standing::OldDisk);
}

/// A sound disk that was started again and again, where nobody heard it, is the newest all the same.
#[test]
fn starts_that_nobody_heard_of_are_forgotten_first() {
    let mut town = Town::of(3, None);
    let disk = town.stop(2);
    start_often(&mut town, 2, disk);
    town.pass(Span::from_secs(1), |_| true);
    assert_eq!(town.standing(2), Standing::Voting);
}
