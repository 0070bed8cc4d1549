//! Newcomers that do not ask all, or remember too much: stories that end well with the rule, and badly without.

use crate::town::Message;
use sigmalock_core::{
    Birth, CallId, Input, LockRequest, Message as _, Name, PeerId, Span, Standing,
};
use sigmalock_protocols::parts::{Driven as _, hosting};
use sigmalock_protocols::sigma::{self, Mutant};
use sigmalock_protocols::views::{self, Badge, Change, Roster};

use crate::refutations::{are_two_inside, recovered};
use crate::town::{ALICE, BOB, Packet, STEP, Town, is_learn, name};

fn is_between(packet: &Packet, one: u64, others: &[u64]) -> bool {
    let between = |a, b| a == one && others.contains(&b);
    between(packet.from, packet.to) || between(packet.to, packet.from)
}

/// Alice has the vote of the third member, and is cut off; that one is stopped. The two others vote for Bob, and the third
/// out; it comes back with its disk, and is taken in again. One of Bob's voters no longer hears him, and is free when it
/// hears Alice, and so does the third.
fn who_was_voted_out_is_taken_in_again(broken: Option<Mutant>) -> Town {
    let mut town = Town::breaking(broken, 3);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |packet| !is_between(packet, ALICE, &[0, 1]));
    let disk = town.stop(2);
    town.part(&[ALICE], &[0, 1]);
    town.packets.clear();
    town.ask(BOB);
    town.pass(Span::from_secs(60), |packet| packet.from != ALICE);
    assert_eq!((town.view(0).1, town.is_inside(BOB)), (vec![0, 1], true));
    let heard = |packet: &Packet| !is_between(packet, BOB, &[1]);
    town.pass(Span::from_secs(4), heard);
    town.start_alone(2, recovered(&disk));
    town.meet(&[2], &[0, 1, BOB]);
    town.pass(Span::from_secs(7), heard);
    assert_eq!((town.view(2).1, town.standing(2)), (vec![0, 1, 2], Standing::Voting));
    town.meet(&[ALICE], &[1, 2]);
    town.pass(Span::from_secs(2), |packet| heard(packet) && !is_between(packet, ALICE, &[0]));
    assert!(town.is_inside(BOB));
    town
}

#[test]
fn who_is_taken_in_again_has_not_given_the_votes_that_it_gave_before() {
    assert!(!are_two_inside(&who_was_voted_out_is_taken_in_again(None)));
    let broken = Mutant::KeepsOldVotes;
    assert!(are_two_inside(&who_was_voted_out_is_taken_in_again(Some(broken))), "{broken}");
}

/// Six of thirteen members vote for Alice; from then on she hears nobody, and no newcomer hears the six say so. Three come,
/// who vote in place of three of the six. Then Bob wants in.
fn three_hear_seven_of_thirteen(broken: Option<Mutant>) -> Town {
    let mut town = Town::breaking(broken, 13);
    let thirteen = town.places[&0].agreed.views().roster().unwrap().clone();
    let add = |roster: Roster, peer| roster.after(Change::Add(PeerId(peer), Badge(peer))).unwrap();
    let sixteen = (13..16).fold(thirteen.clone(), add);
    let voters = |roster: &Roster, name: &Name| -> Vec<u64> {
        hosting::voters(&roster.seats(), name).into_iter().map(|voter| voter.peer.0).collect()
    };
    let mut names = (0..).map(|k| Name::new(&format!("/job/{k}")).unwrap());
    let name = names.find(|name| (13..16).all(|peer| voters(&sixteen, name).contains(&peer)));
    let name = name.unwrap();
    let mut six = voters(&thirteen, &name);
    six.sort_by_key(|peer| voters(&sixteen, &name).contains(peer));
    six.truncate(6);
    town.ask_for(ALICE, CallId(1), name.clone());
    town.pass(Span::from_millis(500), |packet| packet.from != ALICE || six.contains(&packet.to));
    assert!(town.is_inside(ALICE));
    let heard = |packet: &Packet| {
        let votes =
            |m: &Message| matches!(m, Message::Inside { message: sigma::Message::Votes(_), .. });
        let unheard = six.contains(&packet.from) && votes(&packet.message);
        ![packet.from, packet.to].contains(&ALICE) && !unheard
    };
    for peer in 13..16 {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(2), heard);
    }
    town.ask_for(BOB, CallId(1), name);
    town.pass(STEP * 20, heard);
    assert!(town.is_inside(ALICE));
    town
}

#[test]
fn the_newcomer_of_a_large_view_asks_all() {
    let town = three_hear_seven_of_thirteen(None);
    assert_eq!((town.view(0).1.len(), town.is_inside(BOB)), (14, false));
    let town = three_hear_seven_of_thirteen(Some(Mutant::SettlesWithMost));
    assert_eq!((town.view(0).1.len(), town.is_inside(BOB)), (16, true));
}

/// Votes are split between Alice and Bob, and neither knows yet. A newcomer that does not hear of the fourth's vote would
/// adopt Alice's, with which she wins; but users have left it no room for another name. Those are gone when it comes back with
/// its disk, and hears all.
fn a_newcomer_has_no_room_for_all_votes(broken: Option<Mutant>) -> Town {
    let newcomer = 4;
    let mut town = Town::breaking(broken, 4);
    let is_later = |other: &Name| *other > name();
    let other = (0..).map(|k| Name::new(&format!("/other/{k}")).unwrap()).find(is_later);
    town.ask_for(ALICE, CallId(9), other.unwrap());
    // Proposals go by the wall clock, rounded to a quarter of the longest lease: nobody crosses that meanwhile.
    town.pass(Span::from_millis(1_200), |_| true);
    town.places.get_mut(&ALICE).unwrap().told.clear();
    let apart = |p: &Packet| {
        let votes = is_between(p, ALICE, &[2, 3]) || is_between(p, BOB, &[0, 1]);
        votes && !is_learn(p)
    };
    [ALICE, BOB].into_iter().for_each(|user| town.ask(user));
    town.pass(STEP * 6, |p| !apart(p));
    assert!(!town.is_inside(ALICE) && !town.is_inside(BOB));
    town.replicas_max = Some(4);
    town.start(newcomer, Birth::First);
    let users = |p: &Packet| p.to == newcomer && [ALICE, BOB].contains(&p.from);
    let told = |p: &Packet| p.to == newcomer && p.message.kind() == "VOTES";
    while !town.view(newcomer).1.contains(&newcomer) {
        town.pass(STEP, |p| !apart(p) && !users(p));
    }
    town.pass(STEP, |p| !apart(p) && !users(p) && !told(p));
    town.packets.retain(|p| !users(p));
    let thirds = (10..13).map(|k| (CallId(k), Name::new(&format!("/third/{k}")).unwrap()));
    thirds.clone().for_each(|(call, third)| town.ask_for(BOB, call, third));
    let early = |p: &Packet| !apart(p) && !is_between(p, BOB, &[2, 3]);
    town.pass(STEP * 2, |p| early(p) && !told(p) && p.from != ALICE);
    assert_eq!(town.places[&newcomer].agreed.hosted(), 3);
    let fourth = |p: &Packet| (p.from, p.to) == (3, newcomer) && told(p);
    town.pass(STEP * 30, |p| early(p) && !fourth(p) && !users(p));
    assert!(matches!(town.standing(newcomer), Standing::Learning { .. }));
    town.pass(STEP * 10, |p| early(p) && !fourth(p) && !is_between(p, BOB, &[newcomer]));
    for (call, _) in thirds {
        town.give(
            BOB,
            Input::Request { id: CallId(99), request: LockRequest::Cancel { call }.into() },
        );
    }
    let disk = town.stop(newcomer);
    town.start(newcomer, recovered(&disk));
    town.pass(STEP * 30, |p| early(p) && !users(p));
    assert_eq!(town.standing(newcomer), Standing::Voting);
    town.pass(STEP * 60, |p| !apart(p) && !is_between(p, ALICE, &[newcomer]));
    town
}

#[test]
fn a_newcomer_takes_on_all_votes_or_none() {
    let town = a_newcomer_has_no_room_for_all_votes(None);
    assert_eq!((town.is_inside(ALICE), town.is_inside(BOB)), (false, true));
    let broken = Mutant::TakesOnWhatFits;
    assert!(are_two_inside(&a_newcomer_has_no_room_for_all_votes(Some(broken))), "{broken}");
}

/// One of two leaves. What it said when it wanted in comes once more, late.
fn an_old_wish_is_heard(broken: Option<views::Mutant>) -> Town {
    let mut town = Town::without(broken, 2);
    let roster = town.places[&0].agreed.views().roster().unwrap().clone();
    let change = Change::Add(PeerId(1), roster.badge(PeerId(1)).unwrap());
    let (origin, view) = (Some(roster.origin()), 1);
    town.give(1, Input::Leave);
    town.pass(Span::from_secs(30), |_| true);
    assert_eq!(town.view(0).1, [0]);
    let message = Message::Views(views::Message::Wish { change, origin, view });
    town.give(0, Input::Receive { from: PeerId(1), message });
    town.pass(Span::from_secs(60), |_| true);
    town.ask(ALICE);
    town.pass(Span::from_secs(30), |_| true);
    town
}

#[test]
fn who_has_left_is_not_taken_in_again_by_what_it_said_before() {
    let town = an_old_wish_is_heard(None);
    assert!(town.is_inside(ALICE) && town.view(0).1 == [0]);
    let town = an_old_wish_is_heard(Some(views::Mutant::HearsOldWishes));
    assert!(!town.is_inside(ALICE), "half of a view has no say");
}

/// The last of three hears that a fourth wants in, and is out of sight of the others while that one comes and goes again. Then
/// they leave, too; the fourth is still there, and wants nothing. Whether it is taken in again all the same.
fn a_wish_is_kept_while_views_move_on(broken: Option<views::Mutant>) -> bool {
    let mut town = Town::without(broken, 3);
    town.start_alone(3, Birth::First);
    town.meet(&[3], &[0, 1, 2]);
    let wish = |p: &Packet| {
        let wish = matches!(p.message, Message::Views(views::Message::Wish { view: 3, .. }));
        wish && (p.from, p.to) == (3, 2)
    };
    while !town.packets.iter().any(wish) {
        town.pass(STEP, |p| is_between(p, 3, &[2]));
    }
    town.pass(STEP, wish);
    town.part(&[2], &[0, 1]);
    let apart = |p: &Packet| is_between(p, 2, &[0, 1, ALICE, BOB]) || (p.from, p.to) == (3, 2);
    town.packets.retain(|p| !apart(p));
    town.pass(Span::from_secs(18), |p| !apart(p));
    assert_eq!(town.view(0).1, [0, 1, 2, 3]);
    town.give(3, Input::Leave);
    town.pass(Span::from_secs(4), |p| !apart(p));
    assert_eq!((town.view(3), town.view(2).0), ((5, vec![0, 1, 2]), 3));
    town.packets.retain(|p| !apart(p));
    town.meet(&[2], &[0, 1]);
    [0, 1].into_iter().for_each(|leaver| town.give(leaver, Input::Leave));
    (0..90).any(|_| {
        town.pass(Span::from_secs(1), |_| true);
        town.view(2).1.contains(&3)
    })
}

#[test]
fn who_has_left_is_not_taken_in_again_by_a_wish_that_was_kept() {
    assert!(!a_wish_is_kept_while_views_move_on(None));
    assert!(a_wish_is_kept_while_views_move_on(Some(views::Mutant::KeepsOldWishes)));
}
