//! What comes from others is believed only of those whose business it is.

use std::collections::BTreeSet;
use std::ops::Range;

use sigmalock_core::{Birth, Input, LocalTime, Message as _, Span};
use sigmalock_protocols::views::{
    Badge, Ballot, Change, Loss, Message, Mutant, Request, Roster, Saved, Standing, Start, Timer,
};

use crate::fleet::{Fleet, Packet, Views, id};

fn add(peer: usize) -> Change {
    Change::Add(id(peer), Badge(peer as u64))
}

/// One peer, that has only just begun. All others are made up.
fn alone(broken: Option<Mutant>) -> Fleet {
    let mut fleet = Fleet::new(1, broken, Span::from_secs(3), 7);
    fleet.start(0, Birth::First);
    fleet
}

/// It hears something, and says this, by kind.
fn answers(fleet: &mut Fleet, from: usize, message: Message) -> Vec<&'static str> {
    fleet.packets.clear();
    fleet.deliver(Packet { from, to: 0, message });
    fleet.packets.iter().map(|packet| packet.message.kind()).collect()
}

/// It has founded a swarm and taken these in, one after the other.
fn in_a_view_with(others: Range<usize>) -> (Fleet, Roster) {
    without(None, others)
}

/// The same, without a rule.
fn without(broken: Option<Mutant>, others: Range<usize>) -> (Fleet, Roster) {
    let mut fleet = alone(broken);
    fleet.ask(0, Request::Found);
    let first = fleet.views(0).and_then(Views::roster).unwrap().clone();
    let roster = others.fold(first, |roster, peer| roster.after(add(peer)).unwrap());
    answers(&mut fleet, 1, Message::Learn(Box::new(roster.clone())));
    (fleet, roster)
}

#[test]
fn only_members_are_promised_anything() {
    let prepare = |broken, by| {
        let (mut fleet, roster) = without(broken, 1..3);
        let ballot = Ballot { round: 1, by: id(by) };
        answers(&mut fleet, by, Message::Prepare { view: roster.number(), ballot })
    };
    assert_eq!(prepare(None, 8), [""; 0]);
    assert_eq!(prepare(None, 1), ["PROMISE"]);
    assert_eq!(prepare(Some(Mutant::ListensToOutsiders), 8), ["PROMISE"]);
}

#[test]
fn only_the_newcomer_says_that_it_knows_what_the_others_promised() {
    let accept = |broken, settled| {
        let (mut fleet, roster) = without(broken, 1..3);
        let view = roster.number();
        let known = Message::Known { view, settled: true, sent: LocalTime::MIN, writes: None };
        answers(&mut fleet, settled, known);
        fleet.ask(0, Request::Settled { view });
        let ballot = Ballot { round: 1, by: id(1) };
        answers(&mut fleet, 1, Message::Accept { view, ballot, change: add(5) })
    };
    assert_eq!(accept(None, 1), ["REFUSED"], "a lease has not passed");
    assert_eq!(accept(None, 2), ["ACCEPTED"]);
    assert_eq!(accept(Some(Mutant::SettledByAnybody), 1), ["ACCEPTED"]);
}

#[test]
fn who_confirmed_one_view_has_not_confirmed_the_next() {
    let counts_until = |broken| {
        let (mut fleet, ten) = without(broken, 1..10);
        let (view, sent) = (ten.number(), fleet.now);
        for peer in 1..10 {
            answers(&mut fleet, peer, Message::Confirmed { view, sent });
        }
        assert!(fleet.views(0).unwrap().counts_until(sent) > sent);
        let eleven = ten.after(add(10)).unwrap();
        answers(&mut fleet, 1, Message::Learn(Box::new(eleven)));
        fleet.views(0).unwrap().counts_until(sent)
    };
    assert_eq!(counts_until(None), LocalTime::MIN);
    assert!(counts_until(Some(Mutant::KeepsConfirmations)) > LocalTime::MIN);
}

/// Its disk may be an old one, and so may the view be that it knows.
#[test]
fn who_is_not_vouched_for_neither_confirms_a_large_view_nor_counts_itself() {
    let mut fleet = Fleet::new(1, None, Span::from_secs(3), 7);
    let first = Roster::founded_by(id(0), Badge(0), 9);
    let ten = (1..10).fold(first, |roster, peer| roster.after(add(peer)).unwrap());
    let view = ten.number();
    fleet.places[0].disk =
        Some(Saved { roster: Some(ten), badge: Some(Badge(0)), ..Saved::default() });
    fleet.restart(0, true);
    fleet.packets.clear();
    (1..10).for_each(|peer| fleet.give(0, Input::PeerUp(id(peer))));
    let began = fleet.packets.iter().find_map(|packet| match packet.message {
        Message::Began { start, .. } => Some(start),
        _ => None,
    });
    let (start, sent) = (began.unwrap(), fleet.now);
    let known = || Message::Known { view, settled: false, sent, writes: None };
    assert_eq!(answers(&mut fleet, 1, known()), [""; 0]);
    for peer in 1..6 {
        answers(&mut fleet, peer, Message::Confirmed { view, sent });
    }
    assert_eq!(fleet.views(0).unwrap().counts_until(sent), LocalTime::MIN, "five of ten");
    for peer in 1..10 {
        answers(&mut fleet, peer, Message::Vouched { start });
    }
    assert_eq!(answers(&mut fleet, 1, known()), ["CONFIRMED"]);
    assert!(fleet.views(0).unwrap().counts_until(sent) > sent, "six of ten");
}

#[test]
fn only_members_vouch_for_a_disk() {
    let mut fleet = Fleet::new(1, None, Span::from_secs(3), 7);
    let first = Roster::founded_by(id(0), Badge(0), 9);
    let three = (1..3).fold(first, |roster, peer| roster.after(add(peer)).unwrap());
    fleet.places[0].disk =
        Some(Saved { roster: Some(three), badge: Some(Badge(0)), ..Saved::default() });
    fleet.restart(0, true);
    [1, 8].into_iter().for_each(|peer| fleet.give(0, Input::PeerUp(id(peer))));
    let began = fleet.packets.iter().find_map(|packet| match packet.message {
        Message::Began { start, .. } => Some(start),
        _ => None,
    });
    let start = began.unwrap();
    fleet.now += Span::from_secs(100);
    answers(&mut fleet, 8, Message::Vouched { start });
    assert!(!fleet.views(0).unwrap().is_vouched_for());
    answers(&mut fleet, 1, Message::Vouched { start });
    assert!(!fleet.views(0).unwrap().is_vouched_for(), "the other has two round trips to show up");
    fleet.now += Span::from_secs(1);
    fleet.fire(0, Timer::Look);
    assert!(fleet.views(0).unwrap().is_vouched_for());
}

/// Two of four are to be forgotten, and the one that is left answers this to the question that it was asked.
fn members_when_told(broken: Option<Mutant>, answer: impl Fn(u64, Ballot) -> Message) -> usize {
    let (mut fleet, roster) = without(broken, 1..4);
    fleet.give(0, Input::PeerUp(id(1)));
    fleet.packets.clear();
    fleet.ask(0, Request::Forget { gone: [id(2), id(3)].into(), unverified: false });
    let asked = fleet.packets.iter().find_map(|packet| match packet.message {
        Message::Prepare { ballot, .. } if packet.to == 1 => Some(ballot),
        _ => None,
    });
    answers(&mut fleet, 1, answer(roster.number(), asked.unwrap()));
    fleet.fire(0, Timer::Rescue);
    fleet.views(0).and_then(Views::roster).unwrap().members().len()
}

#[test]
fn an_answer_to_another_question_is_no_word_for_forgetting() {
    let promise = |view, ballot| Message::Promise { view, ballot, accepted: None };
    assert_eq!(members_when_told(None, promise), 2);
    assert_eq!(members_when_told(None, |view, ballot| promise(view + 1, ballot)), 4);
    let other = |view, ballot: Ballot| promise(view, Ballot { round: ballot.round + 1, ..ballot });
    assert_eq!(members_when_told(None, other), 4);
    assert_eq!(members_when_told(Some(Mutant::HearsAnyPromise), other), 2);
    let accepted = |ballot| Some((ballot, add(5)));
    let under_way = |view, ballot| Message::Promise { view, ballot, accepted: accepted(ballot) };
    assert_eq!(members_when_told(None, under_way), 4);
}

#[test]
fn who_finds_its_disk_to_be_an_old_one_proposes_nothing_more() {
    for disowned in [false, true] {
        let (mut fleet, roster) = in_a_view_with(1..3);
        fleet.give(0, Input::PeerUp(id(1)));
        let asked = |fleet: &Fleet| {
            fleet.packets.iter().find_map(|packet| match packet.message {
                Message::Prepare { ballot, .. } if packet.to == 1 => Some(ballot),
                _ => None,
            })
        };
        // The third is silent until it is taken for dead.
        while asked(&fleet).is_none() {
            fleet.tick();
        }
        let (view, ballot) = (roster.number(), asked(&fleet).unwrap());
        if disowned {
            fleet.ask(0, Request::Disown);
        }
        let said = answers(&mut fleet, 1, Message::Promise { view, ballot, accepted: None });
        assert_eq!(said.contains(&"ACCEPT"), !disowned, "{said:?}");
    }
}

/// A member of another view of that number.
fn rival(roster: &Roster) -> Message {
    let before = Roster::founded_by(id(0), roster.badge(id(0)).unwrap(), roster.origin());
    let other = (7..).take(roster.members().len() - 1);
    Message::Learn(Box::new(other.fold(before, |roster, peer| roster.after(add(peer)).unwrap())))
}

#[test]
fn what_others_answer_counts_for_who_has_a_say_only() {
    let wins = |broken, beside: bool| {
        let (mut fleet, roster) = without(broken, 1..3);
        fleet.give(0, Input::PeerUp(id(1)));
        let asked = |fleet: &Fleet| {
            fleet.packets.iter().find_map(|packet| match packet.message {
                Message::Prepare { ballot, .. } => Some(ballot),
                _ => None,
            })
        };
        while asked(&fleet).is_none() {
            fleet.tick();
        }
        let (view, ballot) = (roster.number(), asked(&fleet).unwrap());
        if beside {
            answers(&mut fleet, 7, rival(&roster));
        }
        let promise = Message::Promise { view, ballot, accepted: None };
        answers(&mut fleet, 1, promise).contains(&"ACCEPT")
    };
    assert!(wins(None, false) && !wins(None, true));
    assert!(wins(Some(Mutant::CountsWithoutASay), true));
}

#[test]
fn of_another_view_it_matters_only_whether_it_has_the_number_of_this_one() {
    let has_a_say = |broken| {
        let (mut fleet, roster) = without(broken, 1..3);
        answers(&mut fleet, 7, rival(&roster));
        assert!(!fleet.views(0).unwrap().has_a_say());
        answers(&mut fleet, 1, Message::Learn(Box::new(roster.after(add(5)).unwrap())));
        fleet.views(0).unwrap().has_a_say()
    };
    assert!(has_a_say(None) && !has_a_say(Some(Mutant::KeepsItsRivals)));
}

#[test]
fn only_members_under_their_own_badge_are_vouched_for() {
    let (mut fleet, _) = in_a_view_with(1..3);
    let began = |badge| Message::Began { badge: Badge(badge), start: Start(1), after: None };
    assert_eq!(answers(&mut fleet, 8, began(8)), [""; 0]);
    assert_eq!(answers(&mut fleet, 1, began(8)), [""; 0]);
    // This one is as new to it.
    assert_eq!(answers(&mut fleet, 1, began(1)), ["VOUCHED", "BEGAN"]);
    assert_eq!(answers(&mut fleet, 1, began(1)), ["VOUCHED"]);
}

/// It would never learn that it was added, and be missed at once: a swarm of one would stand still for good.
#[test]
fn nobody_of_another_swarm_is_taken_in() {
    let (mut fleet, _) = in_a_view_with(1..1);
    fleet.give(0, Input::PeerUp(id(1)));
    let last = |fleet: &Fleet| fleet.views(0).and_then(Views::roster).map(Roster::last);
    for (origin, taken) in [(Some(99), Change::Found), (None, add(1))] {
        answers(&mut fleet, 1, Message::Wish { change: add(1), origin, view: u64::MAX });
        fleet.fire(0, Timer::Propose);
        assert_eq!(last(&fleet), Some(taken));
    }
    assert!(fleet.views(0).unwrap().strangers().eq([id(1)]));
}

/// One that has begun, expects to be one of three, and has looked around; the two others are there.
fn one_of_three(broken: Option<Mutant>) -> Fleet {
    let mut fleet = alone(broken);
    fleet.ask(0, Request::Expect { hosts: 3 });
    (1..4).for_each(|peer| fleet.give(0, Input::PeerUp(id(peer))));
    assert_eq!(answers(&mut fleet, 1, Message::Pledge { origin: 5, expects: 3 }), ["DECLINED"]);
    (0..20).for_each(|_| fleet.tick());
    fleet
}

#[test]
fn who_expects_another_number_of_hosts_gets_no_pledge_and_one_ends_by_the_word_of_who_has_it() {
    let declined = |broken, by| {
        let mut fleet = one_of_three(broken);
        let pledge = |expects| Message::Pledge { origin: 5, expects };
        assert_eq!(answers(&mut fleet, 1, pledge(2)), ["DECLINED"]);
        assert_eq!(answers(&mut fleet, 1, pledge(3)), ["PLEDGED"]);
        answers(&mut fleet, by, Message::Declined { origin: 5 });
        fleet.views(0).unwrap().pledged_to()
    };
    assert_eq!((declined(None, 2), declined(None, 1)), (Some(id(1)), None));
    assert_eq!(declined(Some(Mutant::HearsAnyDecline), 2), None);
}

#[test]
fn a_pledge_counts_of_those_who_were_asked_for_it() {
    let mut fleet = one_of_three(None);
    for peer in [1, 2] {
        answers(&mut fleet, peer, Message::Blank { expects: 3, badge: Badge(peer as u64) });
    }
    let asked = |fleet: &Fleet| {
        fleet.packets.iter().find_map(|packet| match packet.message {
            Message::Pledge { origin, .. } => Some(origin),
            _ => None,
        })
    };
    assert_eq!(asked(&fleet), None, "it looks around first");
    while asked(&fleet).is_none() {
        fleet.tick();
    }
    let origin = asked(&fleet).unwrap();
    let mut begins = |from| {
        answers(&mut fleet, from, Message::Pledged { origin });
        fleet.views(0).unwrap().roster().is_some()
    };
    assert_eq!([1, 3, 2].map(&mut begins), [false, false, true]);
}

/// Beyond that there is another one alive under its name, and they would remove each other for ever.
#[test]
fn a_peer_asks_twice_at_most_that_who_is_in_under_its_name_be_removed() {
    let mut fleet = alone(None);
    fleet.ask(0, Request::Join);
    fleet.give(0, Input::PeerUp(id(1)));
    let mut roster = Roster::founded_by(id(1), Badge(1), 9);
    let mut asked = BTreeSet::new();
    for badge in [100, 101, 102] {
        let added = roster.after(Change::Add(id(0), Badge(badge))).unwrap();
        answers(&mut fleet, 1, Message::Learn(Box::new(added.clone())));
        fleet.fire(0, Timer::Look);
        asked.extend(fleet.packets.iter().filter_map(|packet| match packet.message {
            Message::Wish { change: Change::Remove(_, badge), .. } => Some(badge),
            _ => None,
        }));
        roster = added.after(Change::Remove(id(0), Badge(badge))).unwrap();
    }
    assert!(asked.into_iter().eq([Badge(100), Badge(101)]));
}

/// Everything that is said is heard, for so long.
fn pass(fleet: &mut Fleet, ticks: usize) {
    for _ in 0..ticks {
        let packets = std::mem::take(&mut fleet.packets);
        packets.into_iter().for_each(|packet| fleet.deliver(packet));
        fleet.tick();
    }
}

#[test]
fn a_late_wish_to_leave_ends_no_later_membership() {
    let mut fleet = Fleet::new(3, None, Span::from_secs(3), 7);
    fleet.start(0, Birth::First);
    fleet.ask(0, Request::Found);
    (1..3).for_each(|index| fleet.start(index, Birth::First));
    (1..3).for_each(|index| fleet.ask(index, Request::Join));
    let badge = |fleet: &Fleet| {
        let rosters = (0..2).map(|index| fleet.views(index).and_then(Views::roster).unwrap());
        let badges: Vec<Option<Badge>> = rosters.map(|roster| roster.badge(id(1))).collect();
        (badges[0] == badges[1]).then_some(badges[0])
    };
    pass(&mut fleet, 100);
    let first = badge(&fleet).flatten().unwrap();
    fleet.leave(1);
    pass(&mut fleet, 100);
    assert_eq!(badge(&fleet), Some(None));
    fleet.ask(1, Request::Join);
    pass(&mut fleet, 100);
    let second = badge(&fleet).flatten();
    assert!(second.is_some() && second != Some(first));
    let message =
        Message::Wish { change: Change::Remove(id(1), first), origin: None, view: u64::MAX };
    fleet.deliver(Packet { from: 1, to: 0, message });
    pass(&mut fleet, 100);
    assert_eq!(badge(&fleet).flatten(), second);
}

/// What it has on its disk since then says nothing of what it promised before.
#[test]
fn who_lost_its_memory_knows_that_after_a_restart() {
    let (mut fleet, _) = in_a_view_with(1..3);
    for with_disk in [false, true, true] {
        fleet.crash(0);
        fleet.restart(0, with_disk);
        let views = fleet.views(0).unwrap();
        assert_eq!((views.standing(), views.loss()), (Standing::Lost, Some(Loss::Gone)));
    }
}
