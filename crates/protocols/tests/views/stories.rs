//! Stories that take more coincidences than torture comes to.

use sigmalock_core::{Birth, Message as _, Span};
use sigmalock_protocols::views::{Badge, Change, Message, Mutant, Request, Roster, Saved, Timer};

use crate::fleet::{Fleet, NO_CHANCE, Packet, id};

fn add(peer: usize) -> Change {
    Change::Add(id(peer), Badge(peer as u64))
}

/// Five members, and two more that want in.
fn five(mutant: Option<Mutant>) -> Fleet {
    let mut fleet = Fleet::new(7, mutant, Span::ZERO, NO_CHANCE);
    let founded = Roster::founded_by(id(0), Badge(0), 9);
    let roster = (1..5).fold(founded, |roster, peer| roster.after(add(peer)).unwrap());
    for index in 0..5 {
        let (roster, badge) = (Some(roster.clone()), Some(Badge(index as u64)));
        fleet.places[index].disk = Some(Saved { roster, badge, ..Saved::default() });
        fleet.places[index].wants_in = true;
        fleet.restart(index, true);
    }
    fleet.vouch();
    for index in 5..7 {
        fleet.start(index, Birth::First);
        fleet.ask(index, Request::Join);
    }
    fleet.packets.clear();
    fleet
}

/// Somebody proposes that another one come in.
fn propose(fleet: &mut Fleet, by: usize, newcomer: usize) {
    let message = Message::Wish { change: add(newcomer), origin: None, view: u64::MAX };
    fleet.deliver(Packet { from: newcomer, to: by, message });
    fleet.fire(by, Timer::Propose);
}

/// What of this kind is under way between one and these is heard, either way; everything else of the kind is lost.
fn hear(fleet: &mut Fleet, kind: &str, one: usize, others: &[usize]) -> Vec<Packet> {
    let packets = std::mem::take(&mut fleet.packets);
    let (heard, kept): (Vec<_>, Vec<_>) =
        packets.into_iter().partition(|packet| packet.message.kind() == kind);
    fleet.packets = kept;
    let between = |packet: &Packet| {
        (packet.from == one && others.contains(&packet.to))
            || (packet.to == one && others.contains(&packet.from))
    };
    let heard: Vec<Packet> = heard.into_iter().filter(between).collect();
    heard.iter().cloned().for_each(|packet| fleet.deliver(packet));
    heard
}

/// One proposes, with a majority that consists of itself and these; nobody else hears anything.
fn win(fleet: &mut Fleet, by: usize, newcomer: usize, others: &[usize]) {
    propose(fleet, by, newcomer);
    for kind in ["PREPARE", "PROMISE", "ACCEPT", "ACCEPTED"] {
        hear(fleet, kind, by, others);
    }
    fleet.packets.clear();
}

/// The founder's first ballot gets somebody accepted, and it stops before it hears of that. In its next life it hears
/// what it was answered in the last one.
fn a_proposer_is_restarted(mutant: Option<Mutant>) -> Option<String> {
    let mut fleet = five(mutant);
    propose(&mut fleet, 0, 5);
    hear(&mut fleet, "PREPARE", 0, &[1, 2]);
    let mut late = hear(&mut fleet, "PROMISE", 0, &[1, 2]);
    hear(&mut fleet, "ACCEPT", 0, &[1, 2]);
    late.extend(fleet.packets.drain(..).filter(|packet| packet.message.kind() == "ACCEPTED"));
    fleet.crash(0);
    fleet.restart(0, true);
    fleet.vouch();
    fleet.packets.clear();
    propose(&mut fleet, 0, 6);
    hear(&mut fleet, "PREPARE", 0, &[3]);
    hear(&mut fleet, "PROMISE", 0, &[3]);
    late.into_iter().for_each(|packet| fleet.deliver(packet));
    fleet.packets.clear();
    win(&mut fleet, 3, 6, &[1, 2]);
    assert_eq!(fleet.views(3).unwrap().roster().unwrap().last(), add(5), "it may have been chosen");
    fleet.objection
}

#[test]
fn no_ballot_is_used_twice() {
    assert_eq!(a_proposer_is_restarted(None), None);
    let objection = a_proposer_is_restarted(Some(Mutant::CountsBallotsAnew));
    assert!(objection.is_some_and(|objection| objection.contains("two successors")));
}

/// The founder alone has accepted one change, three others a newer one, which was chosen.
fn two_changes_were_accepted(mutant: Option<Mutant>) -> Option<String> {
    let mut fleet = five(mutant);
    propose(&mut fleet, 0, 5);
    hear(&mut fleet, "PREPARE", 0, &[1, 2]);
    hear(&mut fleet, "PROMISE", 0, &[1, 2]);
    fleet.packets.clear();
    win(&mut fleet, 4, 6, &[2, 3]);
    assert_eq!(fleet.views(4).unwrap().roster().unwrap().last(), add(6));
    win(&mut fleet, 1, 5, &[0, 2]);
    fleet.objection
}

#[test]
fn of_what_was_accepted_the_newest_may_have_been_chosen() {
    assert_eq!(two_changes_were_accepted(None), None);
    let objection = two_changes_were_accepted(Some(Mutant::GoesByTheOldest));
    assert!(objection.is_some_and(|objection| objection.contains("two successors")));
}
