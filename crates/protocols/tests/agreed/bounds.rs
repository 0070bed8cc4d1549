//! What others say is kept up to a bound, and no further.

use std::cell::RefCell;

use crate::town::Message;
use sigmalock_core::{
    Birth, CallId, Echo, Incarnation, Input, Lease, LocalTime, Mode, Name, PeerId, ReplicaId,
    RequestId, Span, Standing, Token,
};
use sigmalock_protocols::parts::Driven as _;
use sigmalock_protocols::parts::Hlc;
use sigmalock_protocols::sigma::message::{
    Answer, GrantId, Message as Lock, Response, Ticket, Vote, Votes,
};
use sigmalock_protocols::views::{self, Badge, Change};

use crate::town::{ALICE, BOB, Packet, Town, is_learn, name};

/// The vote of a host for a request that this first life of peer 0 no longer has: it is returned.
fn unwanted_vote(call: u64) -> Lock {
    let life = Incarnation(1);
    let request = RequestId { client: PeerId(0), incarnation: life, call: CallId(call) };
    let ticket = Ticket { order: Hlc::from_raw(call), request, mode: Mode::Exclusive };
    let at = LocalTime::from_micros(9);
    let lease = Lease { given: at.stamp(), ttl: Span::from_secs(10) };
    let grant = GrantId { life, number: call };
    Lock::Response(Response {
        replica: ReplicaId { name: name(), index: 1 },
        ticket,
        life,
        sequence: call,
        echo: Echo { sent: at, heard: at.stamp() },
        clock: Hlc::from_raw(call),
        answer: Answer::Yours { vote: Vote { grant, lease, proposal: Token(1) }, asked: true },
    })
}

fn is_release(packet: &&Packet) -> bool {
    matches!(packet.message, Message::Inside { message: Lock::Release { .. }, .. })
}

#[test]
fn of_promises_from_later_views_so_many_are_kept_and_no_more() {
    let mut town = Town::of(2, None);
    let next =
        town.places[&0].agreed.views().roster().unwrap().after(Change::Add(PeerId(2), Badge(2)));
    let next = next.unwrap();
    for call in 0..1_500 {
        let message = Message::Inside { view: next.number(), message: unwanted_vote(call) };
        town.give(0, Input::Receive { from: PeerId(1), message });
    }
    assert_eq!(town.packets.iter().filter(is_release).count(), 0);
    let learn = Message::Views(views::Message::Learn(Box::new(next)));
    town.give(0, Input::Receive { from: PeerId(1), message: learn });
    assert_eq!(town.packets.iter().filter(is_release).count(), 1_024);
}

fn votes(packet: &Packet) -> Option<&Votes> {
    match &packet.message {
        Message::Inside { message: Lock::Votes(votes), .. } => Some(votes),
        _ => None,
    }
}

/// One member, who has given its vote on so many names to Alice.
fn many_names(count: u64) -> Town {
    let mut town = Town::of(1, None);
    for k in 0..count {
        town.ask_for(ALICE, CallId(k), Name::new(&format!("/job/{k}")).unwrap());
    }
    town.pass(Span::from_secs(1), |_| true);
    assert_eq!(town.places[&0].agreed.hosted() as u64, count);
    town
}

#[test]
fn a_newcomer_is_told_of_all_votes_page_by_page_and_no_page_is_longer_than_the_bound() {
    let mut town = many_names(400);
    town.start(1, Birth::First);
    let pages = RefCell::new(Vec::new());
    town.pass(Span::from_secs(2), |packet| {
        pages.borrow_mut().extend(votes(packet).map(|votes| (votes.names.len(), votes.more)));
        true
    });
    // What is asked again may come again.
    let mut pages = pages.into_inner();
    pages.dedup();
    assert_eq!(pages, [(256, true), (144, false)]);
    assert_eq!(town.standing(1), Standing::Voting);
    assert_eq!(town.places[&1].agreed.hosted(), 400);
}

#[test]
fn a_newcomer_that_has_no_room_for_all_votes_waits_until_they_have_run_out() {
    let mut town = many_names(3);
    town.replicas_max = Some(3);
    town.start(1, Birth::First);
    // Before it hears of the three, somebody asks it for a fourth.
    let early = |packet: &Packet| votes(packet).is_none() && packet.from != ALICE;
    town.pass(Span::from_secs(1), early);
    town.ask_for(BOB, CallId(1), Name::new("/other").unwrap());
    town.pass(Span::from_secs(1), early);
    assert_eq!(town.places[&1].agreed.hosted(), 1);
    town.pass(Span::from_secs(5), |packet| packet.from != ALICE);
    assert!(matches!(town.standing(1), Standing::Learning { .. }), "{:?}", town.standing(1));
    town.pass(Span::from_secs(20), |_| true);
    assert_eq!(town.standing(1), Standing::Voting);
}

#[test]
fn a_page_of_votes_that_is_longer_than_the_bound_is_not_believed() {
    let mut town = many_names(300);
    town.start(1, Birth::First);
    town.pass(Span::from_secs(2), |packet| votes(packet).is_none());
    let (view, page) = (town.view(1).0, town.packets.iter().find_map(votes).unwrap().clone());
    assert_eq!(page.names.len(), 256);
    let tell = |town: &mut Town, names: usize| {
        let names = page.names.iter().cycle().take(names).cloned().collect();
        let message = Lock::Votes(Box::new(Votes { names, more: false, ..page.clone() }));
        let message = Message::Inside { view, message };
        town.give(1, Input::Receive { from: PeerId(0), message });
        town.standing(1)
    };
    assert!(matches!(tell(&mut town, 257), Standing::Learning { .. }));
    assert_eq!(tell(&mut town, 256), Standing::Voting);
}

/// Whether somebody at no view who speaks of locks is told of the newest.
fn is_told(town: &mut Town, peer: u64) -> bool {
    town.packets.clear();
    let message = Message::Inside { view: 0, message: Lock::Fetch { after: None } };
    town.give(0, Input::Receive { from: PeerId(peer), message });
    town.packets.iter().any(|packet| packet.to == peer && is_learn(packet))
}

#[test]
fn who_knows_less_is_told_once_and_so_many_who_were_are_remembered_and_no_more() {
    let mut town = Town::of(1, None);
    // Alice and Bob are remembered, too.
    let others = 1_000..1_000 + 4_094;
    assert!(others.clone().all(|peer| is_told(&mut town, peer)));
    assert!(!others.clone().any(|peer| is_told(&mut town, peer)));
    assert!(is_told(&mut town, others.end));
    assert!(is_told(&mut town, others.start));
    assert!(!is_told(&mut town, others.start));
}
