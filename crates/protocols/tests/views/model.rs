//! Every order of events in the smallest interesting swarm: three members, of which one wants out, and a
//! fourth peer that wants in; two proposers; messages that are lost and overtaken; a crash.
//!
//! Time stands still, and timers fire whenever they like: that each view has one successor must not be a
//! matter of time. A message that is lost is one that is never delivered.

use sigmalock_core::{Birth, Span};
use sigmalock_protocols::views::{
    Acceptor, Change, Message, Mutant, Request, Roster, Saved, Timer, Views,
};
use stateright::{Checker, Model, Property};

use crate::fleet::{Fleet, NO_CHANCE, Packet, id};

/// What can happen next.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Deliver(Packet),
    Propose(usize),
    /// A member crashes, and comes back with its disk.
    Restart(usize),
}

struct Swarm {
    mutant: Option<Mutant>,
    /// So many proposals of each member, and so many crashes in all.
    proposals_max: u8,
    restarts_max: u8,
}

/// The peers, how many proposals each has made, and how many crashes there were.
type State = (Fleet, [u8; 3], u8);

fn view((fleet, ..): &State, index: usize) -> Option<&Roster> {
    fleet.views(index).and_then(Views::roster)
}

impl Model for Swarm {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut fleet = Fleet::new(4, self.mutant, Span::ZERO, NO_CHANCE);
        let three = Roster::founded_by(id(0), 9).after(Change::Add(id(1)));
        let three = three.and_then(|two| two.after(Change::Add(id(2)))).unwrap();
        for index in 0..3 {
            fleet.places[index].disk = Some(Saved::View(three.clone(), Acceptor::default()));
            fleet.places[index].wants_in = true;
            fleet.restart(index, true);
        }
        fleet.start(3, Birth::First);
        fleet.ask(3, Request::Join);
        let wish = Packet {
            from: 3,
            to: 0,
            message: Message::Wish { change: Change::Add(id(3)), origin: None },
        };
        fleet.deliver(wish);
        fleet.leave(2);
        fleet.packets.clear();
        vec![(fleet, [0; 3], 0)]
    }

    fn actions(&self, (fleet, proposals, restarts): &State, actions: &mut Vec<Step>) {
        actions.extend(fleet.packets.iter().cloned().map(Step::Deliver));
        let may_propose = |index: &usize| {
            let wants = fleet.places[*index].timers.contains_key(&Timer::Propose);
            wants && proposals[*index] < self.proposals_max
        };
        actions.extend((0..3).filter(may_propose).map(Step::Propose));
        if *restarts < self.restarts_max {
            actions.extend((0..3).map(Step::Restart));
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let (mut fleet, mut proposals, mut restarts) = state.clone();
        match step {
            Step::Deliver(packet) => {
                fleet.packets.retain(|other| *other != packet);
                fleet.deliver(packet);
            }
            Step::Propose(index) => {
                fleet.fire(index, Timer::Propose);
                proposals[index] += 1;
            }
            Step::Restart(index) => {
                let packets = fleet.packets.clone();
                fleet.crash(index);
                fleet.restart(index, true);
                fleet.packets = packets;
                restarts += 1;
            }
        }
        // Who meets whom, and who knows how much, is not what this is about.
        fleet.packets.retain(|packet| {
            use Message::{Known, Refused, Wish};
            !matches!(packet.message, Known { .. } | Wish { .. } | Refused { .. })
        });
        fleet.packets.sort();
        fleet.packets.dedup();
        Some((fleet, proposals, restarts))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("each view has one successor", |_, (fleet, ..): &State| {
                fleet.objection.is_none()
            }),
            Property::sometimes("the fourth gets in", |_, state| {
                view(state, 3).is_some_and(|roster| roster.contains(id(3)))
            }),
            Property::sometimes("the third gets out", |_, state| {
                view(state, 2).is_some_and(|roster| !roster.contains(id(2)))
            }),
        ]
    }

    fn within_boundary(&self, (fleet, ..): &State) -> bool {
        fleet.seen.keys().all(|view| *view <= 4)
    }
}

impl Swarm {
    fn explore(self) -> impl Checker<Self> {
        self.checker().threads(2).spawn_bfs().join()
    }
}

#[test]
fn no_order_of_events_gives_a_view_two_successors() {
    let checker = Swarm { mutant: None, proposals_max: 1, restarts_max: 1 }.explore();
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!("{states} states, {} steps deep", checker.max_depth());
    assert!(states > 100_000, "hardly anything was explored: {states} states");
}

#[test]
fn a_broken_rule_is_found_by_exploring() {
    for mutant in [Mutant::HalfIsEnough, Mutant::ForgetsPromises, Mutant::IgnoresAccepted] {
        let restarts_max = u8::from(mutant == Mutant::ForgetsPromises);
        let checker = Swarm { mutant: Some(mutant), proposals_max: 1, restarts_max }.explore();
        let found = checker.discovery("each view has one successor");
        assert!(found.is_some(), "{mutant} is not caught");
    }
}
