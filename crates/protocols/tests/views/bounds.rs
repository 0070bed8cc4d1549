//! What others say is kept up to a bound, and no further.

use sigmalock_core::{Birth, Input, LocalTime, Span};
use sigmalock_protocols::views::{Badge, Change, Message, Request, Roster, Timer};

use crate::fleet::{Fleet, Packet, Views, id};

/// One peer, who has founded a swarm. All others are made up.
fn founder() -> Fleet {
    let mut fleet = Fleet::new(1, None, Span::from_secs(3), 7);
    fleet.start(0, Birth::First);
    fleet.ask(0, Request::Found);
    fleet
}

fn add(peer: usize) -> Change {
    Change::Add(id(peer), Badge(peer as u64))
}

fn hear(fleet: &mut Fleet, from: usize, message: Message) {
    fleet.deliver(Packet { from, to: 0, message });
}

/// Somebody is there, and wants in.
fn wish(fleet: &mut Fleet, from: usize) {
    fleet.give(0, Input::PeerUp(id(from)));
    hear(fleet, from, Message::Wish { change: add(from), origin: None, view: u64::MAX });
}

/// Whom the founder takes in next.
fn propose(fleet: &mut Fleet) -> Change {
    fleet.fire(0, Timer::Propose);
    fleet.views(0).and_then(Views::roster).map(Roster::last).unwrap()
}

#[test]
fn so_many_wishes_wait_and_one_more_is_heard_when_there_is_room_again() {
    // Of those who wait, the founder takes in the first by number.
    let full = 1_024;
    for (waiting, taken) in [(full - 1, 1), (full, 2)] {
        let mut fleet = founder();
        (2..2 + waiting).for_each(|peer| wish(&mut fleet, peer));
        wish(&mut fleet, 1);
        assert_eq!(propose(&mut fleet), add(taken), "{waiting} before it");
    }
    let mut fleet = founder();
    (2..2 + full).for_each(|peer| wish(&mut fleet, peer));
    fleet.give(0, Input::PeerDown(id(500)));
    wish(&mut fleet, 1);
    assert_eq!(propose(&mut fleet), add(1));
}

#[test]
fn so_many_strangers_are_remembered_and_no_more_until_one_is_gone() {
    let mut fleet = founder();
    let other = Box::new(Roster::founded_by(id(9_000), Badge(0), 99));
    for peer in 1..=100 {
        hear(&mut fleet, peer, Message::Learn(other.clone()));
    }
    let strangers = |fleet: &Fleet| fleet.views(0).unwrap().strangers().collect::<Vec<_>>();
    assert_eq!(strangers(&fleet), (1..=64).map(id).collect::<Vec<_>>());
    fleet.give(0, Input::PeerDown(id(5)));
    hear(&mut fleet, 100, Message::Learn(other));
    assert_eq!(strangers(&fleet).len(), 64);
    assert!(strangers(&fleet).contains(&id(100)) && !strangers(&fleet).contains(&id(5)));
}

#[test]
fn only_members_confirm_a_large_view() {
    let mut fleet = founder();
    let first = fleet.views(0).and_then(Views::roster).unwrap().clone();
    let ten = (1..10).fold(first, |roster, peer| roster.after(add(peer)).unwrap());
    let view = ten.number();
    hear(&mut fleet, 1, Message::Learn(Box::new(ten)));
    let sent = fleet.now;
    let mut confirm = |peer| {
        hear(&mut fleet, peer, Message::Confirmed { view, sent });
        fleet.views(0).unwrap().counts_until(sent)
    };
    // Six of ten are more than half, and the founder is one of them.
    assert!((100..200).chain(1..5).all(|peer| confirm(peer) == LocalTime::MIN));
    assert!(confirm(5) > sent);
}
