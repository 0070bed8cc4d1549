//! Stories of locks among peers that agree on who is in, told message by message.

use std::collections::BTreeMap;

use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Incarnation, Input, Inspect, Key, LocalTime,
    LockReply, LockRequest, Name, Patience, PeerId, Protocol, ReplicaId, Span, Standing,
    Surroundings, WallTime,
};
use sigmalock_protocols::agreed::{
    Agreed, Beginning, Config, Durable, DurableKey, Message, Mutant, Timer,
};
use sigmalock_protocols::views;

const LEASE_MAX: Span = Span::from_secs(15);
const TTL: Span = Span::from_secs(10);
const STEP: Span = Span::from_millis(50);
/// Two peers that only use the swarm.
const ALICE: u64 = 10;
const BOB: u64 = 11;

struct Packet {
    from: u64,
    to: u64,
    message: Message,
}

/// One peer, its timers, its disk, and what its users were told.
struct Place {
    agreed: Agreed,
    timers: BTreeMap<Timer, LocalTime>,
    disk: BTreeMap<DurableKey, Durable>,
    told: Vec<LockReply>,
}

/// Some peers, all of whom hear each other, as far as the story lets their messages through.
struct Town {
    places: BTreeMap<u64, Place>,
    packets: Vec<Packet>,
    now: LocalTime,
    mutant: Option<Mutant>,
    lives: u64,
}

struct Around(LocalTime);

impl Surroundings for Around {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(1_000_000_000 + self.0.as_micros())
    }
    fn random(&mut self) -> u64 {
        7
    }
    fn next_hop(&self, _: &Key) -> Option<PeerId> {
        None
    }
    fn host_of(&self, _: &ReplicaId) -> Option<PeerId> {
        None
    }
}

fn name() -> Name {
    Name::new("/job").unwrap()
}

fn is_learn(packet: &Packet) -> bool {
    matches!(packet.message, Message::Views(views::Message::Learn(_)))
}

impl Town {
    /// A swarm of so many, with Alice and Bob.
    fn of(members: u64, mutant: Option<Mutant>) -> Self {
        let (places, packets, now) = (BTreeMap::new(), Vec::new(), LocalTime::from_micros(5_000));
        let mut town = Self { places, packets, now, mutant, lives: 0 };
        for peer in (0..members).chain([ALICE, BOB]) {
            town.start(peer, Birth::First);
        }
        town.pass(Span::from_secs(4), |_| true);
        for peer in 0..members {
            assert_eq!(town.standing(peer), Standing::Voting, "{peer}");
        }
        town
    }

    fn start(&mut self, peer: u64, birth: Birth<Agreed>) {
        let beginning = match peer {
            0 => Beginning::Found,
            ALICE | BOB => Beginning::Watch,
            _ => Beginning::Join,
        };
        let mut config = Config::new(LEASE_MAX, beginning);
        config.locks.durable = true;
        config.mutant = self.mutant;
        self.lives += 1;
        let incarnation = Incarnation(self.lives);
        let disk = self.places.remove(&peer).map(|place| place.disk).unwrap_or_default();
        let agreed = Agreed::new(PeerId(peer), config);
        let place = Place { agreed, timers: BTreeMap::new(), disk, told: Vec::new() };
        self.places.insert(peer, place);
        self.give(peer, Input::Start { incarnation, birth });
        for other in self.places.keys().copied().filter(|other| *other != peer).collect::<Vec<_>>()
        {
            self.give(peer, Input::PeerUp(PeerId(other)));
            self.give(other, Input::PeerUp(PeerId(peer)));
        }
    }

    fn stop(&mut self, peer: u64) -> BTreeMap<DurableKey, Durable> {
        let place = self.places.remove(&peer).unwrap();
        self.packets.retain(|packet| packet.to != peer);
        for other in self.places.keys().copied().collect::<Vec<_>>() {
            self.give(other, Input::PeerDown(PeerId(peer)));
        }
        place.disk
    }

    fn give(&mut self, peer: u64, input: Input<Agreed>) {
        let Some(place) = self.places.get_mut(&peer) else { return };
        let mut effects = Vec::new();
        let mut around = Around(self.now);
        place.agreed.handle(&mut Context::new(self.now, &mut around, &mut effects), input);
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    self.packets.push(Packet { from: peer, to: to.0, message });
                }
                Effect::Persist { key, value: Some(value) } => {
                    drop(place.disk.insert(key, value));
                }
                Effect::Persist { key, value: None } => drop(place.disk.remove(&key)),
                Effect::SetTimer { timer, at } => drop(place.timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(place.timers.remove(&timer)),
                Effect::Reply { reply, .. } => place.told.push(reply),
                Effect::Note(_) => {}
            }
        }
    }

    /// Time passes, in steps, in each of which what was said before is heard; unless the story holds it back.
    fn pass(&mut self, span: Span, heard: impl Fn(&Packet) -> bool) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            let (now, held): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.packets).into_iter().partition(&heard);
            self.packets = held;
            for Packet { from, to, message } in now {
                self.give(to, Input::Receive { from: PeerId(from), message });
            }
            for peer in self.places.keys().copied().collect::<Vec<_>>() {
                let timers = &self.places[&peer].timers;
                let due = timers.iter().filter(|(_, at)| **at <= self.now);
                for timer in due.map(|(timer, _)| timer.clone()).collect::<Vec<_>>() {
                    self.places.get_mut(&peer).unwrap().timers.remove(&timer);
                    self.give(peer, Input::Fire(timer));
                }
            }
        }
    }

    fn ask(&mut self, peer: u64) {
        let wish = Acquire::exclusive(name(), TTL, Patience::Forever);
        self.give(peer, Input::Request { id: CallId(1), request: LockRequest::Acquire(wish) });
    }

    fn release(&mut self, peer: u64) {
        let request = LockRequest::Release { held: CallId(1) };
        self.give(peer, Input::Request { id: CallId(2), request });
    }

    fn standing(&self, peer: u64) -> Standing {
        self.places[&peer].agreed.view(self.now).unwrap().standing
    }

    fn view(&self, peer: u64) -> (u64, Vec<u64>) {
        let view = self.places[&peer].agreed.view(self.now).unwrap();
        (view.number, view.members.iter().map(|member| member.peer.0).collect())
    }

    fn is_inside(&self, peer: u64) -> bool {
        let told = &self.places[&peer].told;
        told.iter().any(|reply| matches!(reply, LockReply::Granted { .. }))
            && !told.contains(&LockReply::Lost)
    }
}

/// Three members take a fourth in. Two of them learn of that late, and vote for Alice meanwhile, after the
/// newcomer has asked; the first does not hear her. Then a fifth comes, and Bob wants in.
fn a_newcomer_asks_early(mutant: Option<Mutant>) -> (bool, bool) {
    let mut town = Town::of(3, mutant);
    let unheard = |packet: &Packet| {
        (packet.from, packet.to) == (ALICE, 0) || (is_learn(packet) && packet.to == ALICE)
    };
    let late =
        |packet: &Packet| unheard(packet) || (is_learn(packet) && [1, 2].contains(&packet.to));
    town.start(3, Birth::First);
    town.pass(Span::from_millis(600), |packet| !late(packet));
    assert_eq!((town.view(0).0, town.view(3).0, town.view(1).0), (4, 4, 3));
    town.ask(ALICE);
    town.pass(Span::from_millis(300), |packet| !late(packet));
    assert!(town.is_inside(ALICE));
    town.start(4, Birth::First);
    town.pass(Span::from_secs(2), |packet| !unheard(packet));
    assert_eq!(town.view(0), (5, vec![0, 1, 2, 3, 4]));
    town.ask(BOB);
    town.pass(Span::from_secs(2), |packet| !unheard(packet));
    (town.is_inside(ALICE), town.is_inside(BOB))
}

#[test]
fn a_newcomer_that_asks_those_who_are_not_yet_in_its_view_lets_two_in() {
    assert_eq!(a_newcomer_asks_early(None), (true, false));
    assert_eq!(a_newcomer_asks_early(Some(Mutant::HearsVotesOfBefore)), (true, true));
}

#[test]
fn a_holder_notices_nothing_of_joins_leaves_and_a_crash() {
    let mut town = Town::of(3, None);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    for peer in 3..6 {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(2), |_| true);
    }
    assert_eq!(town.view(ALICE).1, [0, 1, 2, 3, 4, 5]);
    town.ask(BOB);
    town.stop(1);
    town.pass(Span::from_secs(20), |_| true);
    town.give(2, Input::Leave);
    // The dead one is voted out, and the other let go, each at least a lease after the view before.
    town.pass(Span::from_secs(60), |_| true);
    assert_eq!(town.view(ALICE).1, [0, 3, 4, 5]);
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
    town.release(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    assert!(town.is_inside(BOB));
}

#[test]
fn who_was_replaced_and_comes_back_with_its_old_disk_is_new() {
    let mut town = Town::of(3, None);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    let disk = town.stop(2);
    town.pass(Span::from_secs(60), |_| true);
    assert_eq!(town.view(0).1, [0, 1]);
    town.release(ALICE);
    town.ask(BOB);
    town.pass(Span::from_secs(1), |_| true);
    assert!(town.is_inside(BOB));
    // Its disk says that it is a member, and that its vote is Alice's. What it says is not heard until it has
    // learned better; then it is added again, and takes the others' word.
    town.start(2, Birth::Recovered(disk.into_iter().collect()));
    assert_eq!(town.view(2).0, 3);
    town.pass(Span::from_secs(40), |_| true);
    assert_eq!((town.view(2).1, town.standing(2)), (vec![0, 1, 2], Standing::Voting));
    let around = Around(town.now);
    let replicas = town.places[&2].agreed.replicas(&around, town.now, &name());
    let owner = replicas[0].owners.first().map(|owner| owner.request.client);
    assert_eq!(owner, Some(PeerId(BOB)));
    assert!(town.is_inside(BOB));
}

#[test]
fn who_lost_its_memory_votes_again_when_it_was_removed_and_added() {
    let mut town = Town::of(3, None);
    let _lost = town.stop(1);
    town.pass(Span::from_secs(1), |_| true);
    town.start(1, Birth::Amnesiac);
    town.pass(STEP, |_| true);
    assert_eq!(town.standing(1), Standing::Lost);
    town.pass(Span::from_secs(40), |_| true);
    assert_eq!(town.standing(1), Standing::Voting);
    let (number, members) = town.view(1);
    assert_eq!((number, members), (5, vec![0, 1, 2]));
}

#[test]
fn an_operator_can_go_on_without_a_majority_after_a_lease() {
    let mut town = Town::of(3, None);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    town.stop(1);
    town.stop(2);
    town.ask(BOB);
    let forget = |town: &mut Town, peer| {
        let request = LockRequest::Forget { peer: PeerId(peer) };
        town.give(0, Input::Request { id: CallId(9), request });
        town.places.get_mut(&0).unwrap().told.pop()
    };
    let refused = Some(LockReply::Refused(sigmalock_core::Refusal::NotAMember));
    assert_eq!(forget(&mut town, 7), refused);
    assert_eq!(forget(&mut town, 0), refused);
    assert_eq!(forget(&mut town, 1), Some(LockReply::Released));
    assert_eq!(forget(&mut town, 2), Some(LockReply::Released));
    town.pass(Span::from_secs(14), |_| true);
    assert!(!town.is_inside(BOB));
    town.pass(Span::from_secs(20), |_| true);
    assert_eq!(town.view(0).1, [0]);
    assert!(town.is_inside(ALICE) != town.is_inside(BOB), "one of them is inside");
}

#[test]
fn a_newcomer_that_is_answered_after_it_has_begun_to_vote_does_not_vote_twice() {
    let mut town = Town::of(2, None);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    // Nobody answers the newcomer for a lease, and Alice does not reach it.
    let unheard = |packet: &Packet| {
        let fetch = sigmalock_core::Message::kind(&packet.message) == "FETCH";
        fetch || (packet.from, packet.to) == (ALICE, 2)
    };
    town.start(2, Birth::First);
    town.pass(Span::from_secs(5), |packet| !unheard(packet));
    assert!(matches!(town.standing(2), Standing::Learning { .. }));
    town.ask(BOB);
    town.pass(Span::from_secs(15), |packet| !unheard(packet));
    assert_eq!(town.standing(2), Standing::Voting);
    let owners = |town: &Town| {
        let replicas = town.places[&2].agreed.replicas(&Around(town.now), town.now, &name());
        let owners = replicas.iter().flat_map(|replica| &replica.owners);
        owners.map(|owner| owner.request.client.0).collect::<Vec<_>>()
    };
    assert_eq!(owners(&town), [BOB]);
    town.pass(Span::from_secs(2), |packet| (packet.from, packet.to) != (ALICE, 2));
    assert_eq!(owners(&town), [BOB]);
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
}

#[test]
fn a_swarm_of_another_origin_is_left_alone() {
    let mut town = Town::of(2, None);
    // Somebody else has founded a swarm, too: its view is newer by number.
    let mut other = views::Roster::founded_by(PeerId(8), 99);
    for peer in 20..26 {
        other = other.after(views::Change::Add(PeerId(peer))).unwrap();
    }
    let message = Message::Views(views::Message::Learn(Box::new(other)));
    town.give(0, Input::Receive { from: PeerId(8), message });
    assert_eq!(town.view(0), (2, vec![0, 1]));
    assert_eq!(town.places[&0].agreed.view(town.now).unwrap().strangers, [PeerId(8)]);
}
