//! Every order of events in the smallest interesting swarm: three members, of which one wants out, and a
//! fourth peer that wants in; two proposers; messages that are lost and overtaken; a crash.
//!
//! Time stands still, and timers fire whenever they like: that each view has one successor must not be a
//! matter of time. A message that is lost is one that is never delivered.

use sigmalock_core::{Birth, Span};
use sigmalock_protocols::views::{
    Badge, Change, Message, Mutant, Request, Roster, Saved, Standing, Timer,
};
use stateright::{Checker, Model, Property};

use crate::fleet::{Fleet, NO_CHANCE, Packet, Views, id};

/// What can happen next.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Deliver(Packet),
    Propose(usize),
    /// A member crashes, and comes back with its disk.
    Restart(usize),
}

fn founded() -> Roster {
    Roster::founded_by(id(0), Badge(0), 9)
}

fn add(index: usize) -> Change {
    Change::Add(id(index), Badge(index as u64))
}

fn remove(index: usize) -> Change {
    Change::Remove(id(index), Badge(index as u64))
}

/// The disk of a member that has promised nothing yet.
fn saved(roster: &Roster, index: usize) -> Saved {
    let badge = Some(Badge(index as u64));
    Saved { roster: Some(roster.clone()), badge, ..Saved::default() }
}

struct Swarm {
    mutant: Option<Mutant>,
    /// So many proposals of each member,
    proposals_max: u8,
    /// and one crash of one of these.
    restarts: &'static [usize],
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
        let three = [add(1), add(2)]
            .into_iter()
            .fold(founded(), |view, change| view.after(change).unwrap());
        for index in 0..3 {
            fleet.places[index].disk = Some(saved(&three, index));
            fleet.places[index].wants_in = true;
            fleet.restart(index, true);
        }
        fleet.vouch();
        fleet.start(3, Birth::First);
        fleet.ask(3, Request::Join);
        let wish = Packet {
            from: 3,
            to: 0,
            message: Message::Wish { change: add(3), origin: None, view: u64::MAX },
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
        if *restarts == 0 {
            actions.extend(self.restarts.iter().copied().map(Step::Restart));
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
                fleet.vouch();
                fleet.packets = packets;
                restarts += 1;
            }
        }
        fleet.vouch();
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

fn explore_with_a_crash_of_one_of(restarts: &'static [usize]) {
    let checker = Swarm { mutant: None, proposals_max: 1, restarts }.explore();
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!("{states} states, {} steps deep", checker.max_depth());
    assert!(states > 100_000, "hardly anything was explored: {states} states");
}

#[test]
fn no_order_of_events_gives_a_view_two_successors() {
    explore_with_a_crash_of_one_of(&[1]);
}

#[test]
#[ignore = "takes minutes"]
fn no_order_of_events_gives_a_view_two_successors_whoever_crashes() {
    explore_with_a_crash_of_one_of(&[0, 1, 2]);
}

#[test]
fn a_broken_rule_is_found_by_exploring() {
    let cases: [(Mutant, &[usize]); 3] = [
        (Mutant::HalfIsEnough, &[]),
        (Mutant::ForgetsPromises, &[0, 1, 2]),
        (Mutant::IgnoresAccepted, &[]),
    ];
    for (mutant, restarts) in cases {
        let checker = Swarm { mutant: Some(mutant), proposals_max: 1, restarts }.explore();
        let found = checker.discovery("each view has one successor");
        assert!(found.is_some(), "{mutant} is not caught");
    }
}

/// Every order of events around a lost memory and a peer of yesterday. A, B and P are the members of view 5. Q knows
/// view 3, in which P was not in yet. A and B each want the other out and hear P only. P loses its memory whenever it
/// likes, once, or stops in the middle of what it does and comes back with its disk; and anybody tells anybody of the
/// view that it knows.
struct Yesterday {
    mutant: Option<Mutant>,
}

const A: usize = 0;
const Q: usize = 1;
const B: usize = 2;
const P: usize = 3;

#[derive(Debug, Clone, PartialEq)]
enum Moment {
    Deliver(Packet),
    Propose(usize),
    /// P comes back without its memory.
    Lose,
    /// P stops after so many of its next effects, and comes back with its disk.
    Tear(usize),
    /// One tells another of its view.
    Tell(usize, usize),
}

/// The peers, how many proposals A and B have made, whether P has lost its memory, and whether it was torn.
type Hour = (Fleet, [u8; 2], bool, bool);

impl Model for Yesterday {
    type State = Hour;
    type Action = Moment;

    fn init_states(&self) -> Vec<Hour> {
        let mut fleet = Fleet::new(4, self.mutant, Span::ZERO, NO_CHANCE);
        let three = [add(Q), add(B)]
            .into_iter()
            .fold(founded(), |view, change| view.after(change).unwrap());
        let five = [add(P), remove(Q)]
            .into_iter()
            .fold(three.clone(), |view, change| view.after(change).unwrap());
        for (index, view) in [(A, &five), (Q, &three), (B, &five), (P, &five)] {
            fleet.places[index].disk = Some(saved(view, index));
            fleet.places[index].wants_in = true;
            fleet.restart(index, true);
        }
        fleet.vouch();
        fleet.cut(A, B);
        // Each of them takes the other for dead.
        fleet.now += Span::from_secs(6);
        [A, B].into_iter().for_each(|index| fleet.fire(index, Timer::Look));
        fleet.packets.clear();
        vec![(fleet, [0; 2], false, false)]
    }

    fn actions(&self, (fleet, proposals, lost, torn): &Hour, actions: &mut Vec<Moment>) {
        actions.extend(fleet.packets.iter().cloned().map(Moment::Deliver));
        for (nth, index) in [A, B].into_iter().enumerate() {
            if fleet.places[index].timers.contains_key(&Timer::Propose) && proposals[nth] == 0 {
                actions.push(Moment::Propose(index));
            }
        }
        if !lost {
            actions.push(Moment::Lose);
        }
        if !torn {
            actions.extend((0..2).map(Moment::Tear));
        }
        let number = |index| fleet.views(index).and_then(Views::roster).map_or(0, Roster::number);
        for (from, to) in [(A, P), (B, P), (Q, P), (P, A), (P, B), (P, Q), (Q, A), (Q, B)] {
            if number(from) > number(to) {
                actions.push(Moment::Tell(from, to));
            }
        }
    }

    fn next_state(&self, state: &Hour, moment: Moment) -> Option<Hour> {
        let (mut fleet, mut proposals, mut lost, mut torn) = state.clone();
        match moment {
            Moment::Deliver(packet) => {
                fleet.packets.retain(|other| *other != packet);
                fleet.deliver(packet);
            }
            Moment::Propose(index) => {
                fleet.fire(index, Timer::Propose);
                proposals[usize::from(index == B)] += 1;
            }
            Moment::Lose => {
                come_back(&mut fleet, false);
                lost = true;
            }
            Moment::Tear(after) => {
                fleet.places[P].tears_after = Some(after);
                torn = true;
            }
            Moment::Tell(from, to) => {
                let roster = fleet.views(from).and_then(Views::roster).cloned()?;
                fleet.deliver(Packet { from, to, message: Message::Learn(Box::new(roster)) });
            }
        }
        if !fleet.is_up(P) {
            come_back(&mut fleet, true);
        }
        fleet.vouch();
        fleet.packets.retain(|packet| {
            use Message::{Known, Learn, Refused, Wish};
            !matches!(packet.message, Known { .. } | Wish { .. } | Refused { .. } | Learn(_))
        });
        fleet.packets.sort();
        fleet.packets.dedup();
        Some((fleet, proposals, lost, torn))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("each view has one successor", |_, (fleet, ..): &Hour| {
                fleet.objection.is_none()
            }),
            Property::sometimes("the forgetful one is lost", |_, (fleet, ..): &Hour| {
                fleet.views(P).map(Views::standing) == Some(Standing::Lost)
            }),
            Property::sometimes(
                "a view without the forgetful one is all it knows",
                |_, hour: &Hour| {
                    hour.2 && hour.0.views(P).and_then(Views::roster).map_or(0, Roster::number) == 3
                },
            ),
        ]
    }

    fn within_boundary(&self, (fleet, ..): &Hour) -> bool {
        fleet.seen.keys().all(|view| *view <= 6)
    }
}

/// P begins another life; what was under way still is.
fn come_back(fleet: &mut Fleet, with_disk: bool) {
    let packets = fleet.packets.clone();
    fleet.crash(P);
    fleet.restart(P, with_disk);
    fleet.vouch();
    fleet.packets = packets;
}

#[test]
fn a_lost_memory_that_meets_a_peer_of_yesterday_gives_no_view_two_successors() {
    let checker = Yesterday { mutant: None }.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!("{states} states, {} steps deep", checker.max_depth());
    assert!(states > 30_000, "hardly anything was explored: {states} states");
}

#[test]
fn what_a_badge_is_for_is_found_by_exploring() {
    use Mutant::{AcceptsThoughLost, RelearnsViews, TakesOldViewsForRemoval};
    for mutant in [TakesOldViewsForRemoval, RelearnsViews, AcceptsThoughLost] {
        let checker = Yesterday { mutant: Some(mutant) }.checker().threads(2).spawn_bfs().join();
        let found = checker.discovery("each view has one successor");
        assert!(found.is_some(), "{mutant} is not caught");
    }
}
