use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Incarnation, Input, LocalTime, LockReply, LockRequest,
    Name, Patience, PeerId, Protocol, Refusal, Span, Surroundings, WallTime,
};

use super::{Body, Config, Durable, DurableKey, Message, Note, Strawman, Timer};
use crate::catalogue::Variant;
use crate::parts::Quorum;
use crate::parts::hosting::Fixed as Hosts;

const HOSTS: Hosts = Hosts { hosts: 3, replicas: 3 };

/// Peers 0, 1 and 2 host the three replicas; anybody may ask. Nothing moves unless a test moves it.
struct Table {
    config: Config,
    now: LocalTime,
    peers: BTreeMap<PeerId, Strawman>,
    mail: Vec<(PeerId, PeerId, Message)>,
    timers: BTreeMap<(PeerId, Timer), LocalTime>,
    replies: Vec<(PeerId, LockReply)>,
    notes: Vec<Note>,
    disk: BTreeMap<(PeerId, DurableKey), Durable>,
}

struct Fixed;
impl Surroundings for Fixed {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(0)
    }
    fn random(&mut self) -> u64 {
        1_000_000
    }
}

const TTL: Span = Span::from_secs(9);
const CALL: CallId = CallId(1);

impl Table {
    fn new(variant: Variant, durable: bool) -> Self {
        let config = Config { durable, ..Config::new(Quorum::new(3, 2).unwrap(), variant) };
        let mut table = Self {
            config,
            now: LocalTime::from_micros(1_000_000),
            peers: BTreeMap::new(),
            mail: Vec::new(),
            timers: BTreeMap::new(),
            replies: Vec::new(),
            notes: Vec::new(),
            disk: BTreeMap::new(),
        };
        (0..6).for_each(|peer| table.start(peer, Birth::First));
        table
    }
    fn start(&mut self, peer: u64, birth: Birth<Strawman>) {
        self.timers.retain(|(p, _), _| *p != PeerId(peer));
        self.peers.insert(
            PeerId(peer),
            Strawman::new(PeerId(peer), self.config.clone(), Box::new(HOSTS)),
        );
        self.feed(peer, Input::Start { incarnation: Incarnation(self.now.as_micros()), birth });
    }
    fn feed(&mut self, peer: u64, input: Input<Strawman>) {
        let (mut effects, mut fixed) = (Vec::new(), Fixed);
        let me = PeerId(peer);
        let mut cx = Context::new(self.now, &mut fixed, &mut effects);
        self.peers.get_mut(&me).unwrap().handle(&mut cx, input);
        for effect in effects {
            match effect {
                Effect::Persist { key, value: Some(value) } => {
                    self.disk.insert((me, key), value);
                }
                Effect::Persist { key, value: None } => {
                    self.disk.remove(&(me, key));
                }
                Effect::Send { to, message } => self.mail.push((me, to, message)),
                Effect::SetTimer { timer, at } => {
                    self.timers.insert((me, timer), at);
                }
                Effect::CancelTimer(timer) => {
                    self.timers.remove(&(me, timer));
                }
                Effect::Reply { reply, .. } => self.replies.push((me, reply)),
                Effect::Note(note) => self.notes.push(note),
            }
        }
    }
    fn ask(&mut self, peer: u64, request: LockRequest) {
        // Calls that end another need a number of their own.
        let id = if matches!(request, LockRequest::Acquire(_)) { CALL } else { CallId(99) };
        self.feed(peer, Input::Request { id, request });
    }
    fn acquire(&mut self, peer: u64, patience: Patience) {
        let name = Name::new("/a").unwrap();
        self.ask(peer, LockRequest::Acquire(Acquire::exclusive(name, TTL, patience)));
    }
    fn deliver(&mut self, (from, to, message): (PeerId, PeerId, Message)) {
        self.feed(to.0, Input::Receive { from, message });
    }
    /// Delivers everything, and what comes of it, at this instant.
    fn settle(&mut self) {
        while !self.mail.is_empty() {
            let first = self.mail.remove(0);
            self.deliver(first);
        }
    }
    /// Lets time pass, fires what is due in order, and settles after each.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some((key, at)) =
            self.timers.clone().into_iter().min_by_key(|(_, at)| *at).filter(|(_, at)| *at <= until)
        {
            self.timers.remove(&key);
            self.now = self.now.max(at);
            self.feed(key.0.0, Input::Fire(key.1));
            self.settle();
        }
        self.now = until;
    }
    fn told(&mut self) -> Vec<(u64, &'static str)> {
        let word = |reply| match reply {
            LockReply::Granted { .. } => "granted",
            LockReply::Extended { .. } => "extended",
            LockReply::Queued { .. } => "queued",
            LockReply::Lost => "lost",
            LockReply::Released => "released",
            LockReply::Busy => "busy",
            LockReply::TimedOut => "timed out",
            LockReply::Cancelled => "cancelled",
            LockReply::Refused(_) => "refused",
        };
        self.replies.drain(..).map(|(peer, reply)| (peer.0, word(reply))).collect()
    }
}

#[test]
fn m_votes_win_and_a_loser_gets_in_after_the_holder_left() {
    let mut t = Table::new(Variant::Shipped, false);
    t.acquire(4, Patience::Forever);
    t.settle();
    t.acquire(5, Patience::Forever);
    t.settle();
    assert_eq!(t.told(), [(4, "granted")]);
    t.ask(4, LockRequest::Release { held: CALL });
    t.settle();
    t.pass(Span::from_secs(2));
    assert_eq!(t.told(), [(4, "released"), (5, "granted")]);
    t.ask(5, LockRequest::Release { held: CALL });
    t.settle();
    t.pass(Span::from_secs(90));
    assert!(
        t.peers.values().all(|p| p.claims.calls().is_empty() && p.replicas.is_empty()),
        "state is evicted"
    );
    assert!(t.timers.is_empty(), "{:?}", t.timers);
}

#[test]
fn who_only_tries_is_told_busy_and_who_cancels_or_tires_is_told_so() {
    let mut t = Table::new(Variant::Shipped, false);
    t.acquire(3, Patience::Forever);
    t.settle();
    t.acquire(4, Patience::Try);
    t.settle();
    t.acquire(5, Patience::For(Span::from_secs(2)));
    t.settle();
    t.pass(Span::from_secs(4));
    assert_eq!(t.told(), [(3, "granted"), (4, "busy"), (5, "timed out"), (3, "extended")]);
    t.acquire(4, Patience::Forever);
    t.ask(4, LockRequest::Cancel { call: CALL });
    t.ask(4, LockRequest::Cancel { call: CALL });
    t.ask(3, LockRequest::Cancel { call: CALL });
    assert_eq!(t.told(), [(4, "cancelled"), (4, "refused"), (3, "refused")]);
}

#[test]
fn a_holder_that_renews_stays_in_and_one_cut_off_is_told_before_its_deadline() {
    let mut t = Table::new(Variant::Shipped, false);
    t.acquire(4, Patience::Forever);
    t.settle();
    t.pass(Span::from_secs(60));
    assert!(t.told().iter().skip(1).all(|told| *told == (4, "extended")));
    let hosts: Vec<_> = (0..3).map(|p| t.peers.remove(&PeerId(p)).unwrap()).collect();
    drop(hosts);
    while t.replies.is_empty() {
        let ((peer, timer), at) = t
            .timers
            .clone()
            .into_iter()
            .filter(|((p, _), _)| p.0 == 4)
            .min_by_key(|e| e.1)
            .unwrap();
        t.timers.remove(&(peer, timer));
        t.now = at;
        t.feed(4, Input::Fire(timer));
    }
    assert_eq!(t.told(), [(4, "lost")]);
}

#[test]
fn a_holder_that_slept_past_its_deadline_is_lost_whatever_it_sees_first() {
    let mut t = Table::new(Variant::Shipped, false);
    t.acquire(4, Patience::Forever);
    t.settle();
    t.now += TTL;
    t.ask(4, LockRequest::Release { held: CALL });
    assert_eq!(t.told(), [(4, "granted"), (4, "lost"), (4, "refused")]);
}

#[test]
fn the_lease_counts_from_the_request_and_only_literally_from_the_vote() {
    for (variant, expected) in [(Variant::Shipped, 8_910), (Variant::Literal, 9_300)] {
        let mut t = Table::new(variant, false);
        let asked = t.now;
        t.acquire(4, Patience::Forever);
        t.now += Span::from_millis(300);
        t.settle();
        let (_, LockReply::Granted { token: None, deadline, .. }) = t.replies[0] else { panic!() };
        assert_eq!(deadline.since(asked), Span::from_millis(expected), "{variant}");
    }
}

#[test]
fn a_host_without_memory_abstains_for_the_longest_lease_unless_literal() {
    for (variant, says) in [(Variant::Shipped, "busy"), (Variant::Literal, "granted")] {
        let mut t = Table::new(variant, false);
        (0..3).for_each(|host| t.start(host, Birth::Amnesiac));
        t.acquire(4, Patience::Try);
        t.settle();
        assert_eq!(t.told(), [(4, says)]);
        t.pass(Span::from_secs(16));
        t.told();
        t.acquire(5, Patience::Try);
        t.settle();
        let later = if variant == Variant::Shipped { "granted" } else { "busy" };
        assert_eq!(t.told(), [(5, later)]);
    }
}

#[test]
fn a_vote_on_disk_outlives_its_host_for_a_full_ttl_and_abstention_too() {
    let mut t = Table::new(Variant::Shipped, true);
    t.acquire(4, Patience::Forever);
    t.settle();
    t.peers.remove(&PeerId(4));
    t.timers.retain(|(p, _), _| p.0 != 4);
    t.now += Span::from_secs(8);
    let disk = |t: &Table, host| {
        let mine = t.disk.iter().filter(|((p, _), _)| *p == PeerId(host));
        Birth::Recovered(mine.map(|((_, key), value)| (key.clone(), *value)).collect())
    };
    (0..3).for_each(|host| t.start(host, disk(&t, host)));
    t.pass(Span::from_secs(8));
    t.acquire(5, Patience::Try);
    t.settle();
    assert_eq!(t.told(), [(4, "granted"), (5, "busy")]);

    (0..3).for_each(|host| t.start(host, Birth::Amnesiac));
    t.pass(Span::from_secs(14));
    (0..3).for_each(|host| t.start(host, disk(&t, host)));
    t.pass(Span::from_secs(14));
    t.acquire(5, Patience::Try);
    t.settle();
    t.pass(Span::from_secs(2));
    t.acquire(5, Patience::Try);
    t.settle();
    assert_eq!(t.told(), [(5, "busy"), (5, "granted")]);
}

#[test]
fn a_released_bid_never_comes_back_by_a_late_copy_of_its_request() {
    for (variant, ghosts) in [(Variant::Shipped, 0), (Variant::Literal, 3)] {
        let mut t = Table::new(variant, false);
        t.acquire(4, Patience::Forever);
        let copies = t.mail.clone();
        t.settle();
        t.ask(4, LockRequest::Release { held: CALL });
        t.settle();
        copies.into_iter().for_each(|copy| t.deliver(copy));
        let owners =
            t.peers.values().flat_map(|p| p.replicas.values()).filter(|s| s.owner.is_some());
        assert_eq!(owners.count(), ghosts, "{variant}");
    }
}

#[test]
fn a_vote_that_comes_after_the_round_is_given_back() {
    let mut t = Table::new(Variant::Shipped, false);
    t.acquire(4, Patience::Try);
    let late = t.mail.remove(0);
    t.mail.clear();
    t.pass(t.config.answer_wait());
    assert_eq!(t.told(), [(4, "busy")]);
    t.mail.clear();
    t.start(0, Birth::First);
    t.deliver(late);
    t.settle();
    assert_eq!(t.notes.last(), Some(&Note::StaleVote));
    assert!(t.peers[&PeerId(0)].replicas.values().all(|state| state.owner.is_none()));
}

/// Peer 3 is inside, and the answers to its renewal are still under way.
fn with_answers_under_way() -> (Table, Vec<(PeerId, PeerId, Message)>) {
    let mut table = Table::new(Variant::Shipped, false);
    table.acquire(3, Patience::Forever);
    table.settle();
    table.now += TTL / 3;
    table.feed(3, Input::Fire(Timer::Users));
    for request in core::mem::take(&mut table.mail) {
        table.deliver(request);
    }
    let answers = core::mem::take(&mut table.mail);
    assert_eq!((answers.len(), table.told()), (3, alloc::vec![(3, "granted")]));
    (table, answers)
}

#[test]
fn a_vote_that_comes_after_the_holder_was_told_to_stop_is_left_to_expire() {
    let (mut table, answers) = with_answers_under_way();
    table.ask(3, LockRequest::Evict { name: Name::new("/a").unwrap() });
    answers.into_iter().for_each(|answer| table.deliver(answer));
    assert_eq!((table.mail.len(), table.told()), (0, alloc::vec![(3, "lost"), (3, "released")]));
    table.acquire(4, Patience::Try);
    table.settle();
    assert_eq!(table.told(), [(4, "busy")], "3 may be inside until its deadline");
    // Unless it says that it has left.
    table.ask(3, LockRequest::Release { held: CALL });
    table.settle();
    table.acquire(4, Patience::Try);
    table.settle();
    assert_eq!(table.told(), [(3, "released"), (4, "granted")]);
}

#[test]
fn a_vote_of_a_former_life_is_left_to_expire() {
    let (mut table, answers) = with_answers_under_way();
    table.start(3, Birth::Amnesiac);
    answers.into_iter().for_each(|answer| table.deliver(answer));
    assert_eq!(table.mail, [], "its user may be inside until its deadline");
    table.acquire(4, Patience::Try);
    table.settle();
    assert_eq!(table.told(), [(4, "busy")]);
    table.pass(TTL);
    table.acquire(4, Patience::Try);
    table.settle();
    assert_eq!(table.told(), [(4, "granted")]);
}

#[test]
fn an_answer_after_exactly_the_worst_round_trip_counts_even_by_a_fast_clock() {
    let mut t = Table::new(Variant::Shipped, false);
    t.acquire(4, Patience::Try);
    let late = core::mem::take(&mut t.mail);
    // What a clock that is one per cent fast shows after the worst round trip.
    t.pass(t.config.round_trip_worst + t.config.round_trip_worst / 100);
    t.mail = late;
    t.settle();
    assert_eq!(t.told(), [(4, "granted")]);
}

#[test]
fn the_shortest_ttl_that_is_accepted_can_be_had_and_kept() {
    let mut t = Table::new(Variant::Shipped, false);
    t.config.round_trip_worst = Span::from_millis(26);
    (0..6).for_each(|peer| t.start(peer, Birth::First));
    let (name, ttl) = (Name::new("/a").unwrap(), t.config.ttl_min());
    t.ask(4, LockRequest::Acquire(Acquire::exclusive(name, ttl, Patience::Try)));
    t.now += t.config.round_trip_worst;
    t.settle();
    t.pass(ttl * 4);
    let told = t.told();
    assert_eq!(told[0], (4, "granted"));
    assert!(told.len() > 4 && told[1..].iter().all(|told| *told == (4, "extended")), "{told:?}");
}

#[test]
fn impossible_messages_and_wishes_change_nothing() {
    let mut t = Table::new(Variant::Shipped, false);
    t.acquire(4, Patience::Forever);
    let (from, to, honest) = t.mail[0].clone();
    let mut far = honest.clone();
    far.replica.index = 3;
    let mut long = honest.clone();
    long.body = Body::Request { ttl: t.config.lease_max + TTL, sent: t.now };
    t.mail.clear();
    t.deliver((PeerId(5), to, honest.clone()));
    t.deliver((from, to, far));
    t.deliver((from, to, long));
    assert_eq!(t.notes, [Note::Impossible; 3]);
    assert!(t.mail.is_empty());
    for ttl in [Span::from_millis(1), t.config.lease_max + Span::from_micros(1)] {
        let wish = Acquire::exclusive(honest.replica.name.clone(), ttl, Patience::Try);
        t.ask(5, LockRequest::Acquire(wish));
    }
    t.acquire(4, Patience::Try);
    let refused: Vec<_> = t.replies.drain(..).map(|(_, reply)| reply).collect();
    assert_eq!(
        refused,
        [
            LockReply::Refused(Refusal::TtlTooShort { at_least: t.config.ttl_min() }),
            LockReply::Refused(Refusal::TtlTooLong { at_most: t.config.lease_max }),
            LockReply::Refused(Refusal::DuplicateCall),
        ]
    );
}
