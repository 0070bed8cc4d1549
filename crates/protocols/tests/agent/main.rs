//! The agent over Sigma: several users per peer, one replica, messages that take no time.

mod permits;

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Incarnation, Input, LocalTime, LockReply, LockRequest,
    Mode, Name, Patience, PeerId, Protocol, Refusal, Span, Surroundings, Timers, Token, WallTime,
};
use sigmalock_protocols::agent::{Agent, Config, Timer};
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::parts::hosting::Fixed;
use sigmalock_protocols::sigma::{self, Message, Sigma};

type Peer = Agent<Sigma>;

const TTL: Span = Span::from_secs(10);
const TRY: Patience = Patience::Try;
const FOREVER: Patience = Patience::Forever;

struct Around(u64);

impl Surroundings for Around {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(self.0)
    }
    fn random(&mut self) -> u64 {
        7
    }
}

/// Peers, of which the first hosts the only replica. What is said is heard at once.
struct Town {
    now: LocalTime,
    peers: Vec<(Peer, Timers<Timer<sigma::Timer>>)>,
    mail: VecDeque<(PeerId, PeerId, Message)>,
    sent: usize,
    replies: Vec<(u64, u64, LockReply)>,
}

impl Town {
    fn new(peers: u64, tokens_per_grant: u64, calls_max: usize) -> Self {
        let quorum = Quorum::new(1, 1).unwrap();
        let sigma = sigma::Config { tokens_per_grant, ..sigma::Config::new(quorum) };
        let config = Config { calls_max, ..Config::new(tokens_per_grant) };
        let peer = |id| {
            let hosting = Box::new(Fixed { hosts: 1, replicas: 1 });
            Agent::new(Sigma::new(PeerId(id), sigma.clone(), hosting), config.clone())
        };
        let peers = (0..peers).map(|id| (peer(id), Timers::new())).collect::<Vec<_>>();
        let now = LocalTime::from_micros(1_000_000);
        let mut town = Self { now, peers, mail: VecDeque::new(), sent: 0, replies: Vec::new() };
        for id in 0..town.peers.len() as u64 {
            town.input(id, Input::Start { incarnation: Incarnation(id), birth: Birth::First });
        }
        town
    }

    fn handle(&mut self, id: u64, input: Input<Peer>) {
        let (peer, timers) = &mut self.peers[id as usize];
        let mut effects = Vec::new();
        let mut around = Around(self.now.as_micros());
        peer.handle(&mut Context::new(self.now, &mut around, &mut effects), input);
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    self.sent += 1;
                    self.mail.push_back((PeerId(id), to, message));
                }
                Effect::SetTimer { timer, at } => timers.set(timer, at),
                Effect::CancelTimer(timer) => timers.cancel(&timer),
                Effect::Reply { id: call, reply } => self.replies.push((id, call.0, reply)),
                Effect::Persist { .. } | Effect::Note(_) => {}
            }
        }
    }

    fn input(&mut self, id: u64, input: Input<Peer>) {
        self.handle(id, input);
        while let Some((from, to, message)) = self.mail.pop_front() {
            self.handle(to.0, Input::Receive { from, message });
        }
    }

    fn request(&mut self, peer: u64, call: u64, request: LockRequest) -> Vec<(u64, LockReply)> {
        self.replies.clear();
        self.input(peer, Input::Request { id: CallId(call), request });
        self.heard()
    }

    /// What users were told, other than their places in queues.
    fn heard(&self) -> Vec<(u64, LockReply)> {
        let told = self.replies.iter().filter(|(_, _, r)| !matches!(r, LockReply::Queued { .. }));
        told.map(|(_, call, reply)| (*call, *reply)).collect()
    }

    fn ask(&mut self, peer: u64, call: u64, patience: Patience) -> Vec<(u64, LockReply)> {
        let wish = Acquire::exclusive(name(), TTL, patience);
        self.request(peer, call, LockRequest::Acquire(wish))
    }

    fn leave(&mut self, peer: u64, held: u64) -> Vec<(u64, LockReply)> {
        self.request(peer, 1_000 + held, LockRequest::Release { held: CallId(held) })
    }

    /// Time passes, and timers fire in order.
    fn pass(&mut self, span: Span) -> Vec<(u64, LockReply)> {
        self.replies.clear();
        let end = self.now + span;
        loop {
            let next = |(id, (_, timers)): (usize, &(Peer, Timers<_>))| Some((timers.next()?, id));
            let next = self.peers.iter().enumerate().filter_map(next).min();
            let Some((at, id)) = next.filter(|(at, _)| *at <= end) else { break };
            self.now = self.now.max(at);
            if let Some(timer) = self.peers[id].1.pop_due(self.now) {
                self.input(id as u64, Input::Fire(timer));
            }
        }
        self.now = end;
        self.heard()
    }

    fn places(&self) -> Vec<(u64, u32)> {
        let place = |(_, call, reply): &(u64, u64, LockReply)| match reply {
            LockReply::Queued { ahead, .. } => Some((*call, *ahead)),
            _ => None,
        };
        self.replies.iter().filter_map(place).collect()
    }
}

fn name() -> Name {
    Name::new("/a").unwrap()
}

/// Who was let in, and with which token.
fn entry(told: &[(u64, LockReply)]) -> Option<(u64, Token)> {
    told.iter().find_map(|(call, reply)| match reply {
        LockReply::Granted { token: Some(token), .. } => Some((*call, *token)),
        _ => None,
    })
}

const UNKNOWN: LockReply = LockReply::Refused(Refusal::UnknownCall);

impl Town {
    fn ask_as(
        &mut self, peer: u64, call: u64, mode: Mode, patience: Patience,
    ) -> Vec<(u64, LockReply)> {
        let wish = Acquire { mode, ..Acquire::exclusive(name(), TTL, patience) };
        self.request(peer, call, LockRequest::Acquire(wish))
    }
}

#[test]
fn readers_of_one_peer_are_inside_together_and_a_writer_of_another_is_not_passed() {
    let mut town = Town::new(2, 2, 9);
    for reader in [1, 2] {
        let told = town.ask_as(0, reader, Mode::Shared, FOREVER);
        assert_eq!(entry(&told).map(|(call, _)| call), Some(reader));
    }
    assert_eq!(town.ask(1, 7, FOREVER), []);
    assert_eq!(town.ask_as(0, 3, Mode::Shared, FOREVER), [], "the writer was first");
    assert_eq!(town.ask_as(0, 4, Mode::Shared, TRY), [(4, LockReply::Busy)]);
    assert_eq!(town.leave(0, 1), [(1_001, LockReply::Released)]);
    let told = town.leave(0, 2);
    assert_eq!(entry(&told).map(|(call, _)| call), Some(7));
    let told = town.leave(1, 7);
    assert_eq!(entry(&told).map(|(call, _)| call), Some(3));
    assert_eq!(town.leave(0, 9), [(1_009, UNKNOWN)]);
    let told = town.request(0, 20, LockRequest::Evict { name: name() });
    assert_eq!(told, [(3, LockReply::Lost), (20, LockReply::Released)]);
    assert_eq!(town.leave(0, 3), [(1_003, LockReply::Released)]);
}

#[test]
fn a_lock_goes_from_user_to_user_without_a_message_and_with_the_next_token() {
    let mut town = Town::new(2, 3, 99);
    let (first, token) = entry(&town.ask(1, 1, FOREVER)).unwrap();
    assert_eq!(first, 1);
    assert!(town.ask(1, 2, FOREVER).is_empty());
    assert!(town.ask(1, 3, FOREVER).is_empty());
    let sent = town.sent;
    let told = town.leave(1, 1);
    assert_eq!(told[0], (1_001, LockReply::Released));
    assert_eq!(entry(&told), Some((2, token.plus(1))));
    assert_eq!(entry(&town.leave(1, 2)), Some((3, token.plus(2))));
    assert_eq!(town.sent, sent);
    town.leave(1, 3);
    assert!(town.sent > sent, "nobody waits here: it goes back");
    assert_eq!(entry(&town.ask(1, 4, FOREVER)), Some((4, token.plus(3))), "blocks do not overlap");
}

#[test]
fn the_right_of_a_user_that_does_not_answer_ends_at_its_deadline_and_not_before() {
    for mode in [Mode::Exclusive, Mode::Shared, Mode::Permit { of: 1 }] {
        let mut town = Town::new(2, 3, 99);
        assert!(entry(&town.ask_as(1, 1, mode, FOREVER)).is_some());
        let next = if mode == Mode::Shared { Mode::Exclusive } else { mode };
        let renew = |on| LockRequest::Renew { held: CallId(1), on };
        assert_eq!(town.request(1, 20, renew(false)), [(20, LockReply::Released)], "{mode:?}");
        // It answers again in time, and keeps it for as long as it likes.
        town.pass(TTL / 2);
        assert_eq!(town.request(1, 21, renew(true)), [(21, LockReply::Released)]);
        let told = town.pass(TTL * 3);
        assert!(told.iter().all(|(_, reply)| matches!(reply, LockReply::Extended { .. })));
        assert!(entry(&town.ask_as(0, 2, next, TRY)).is_none());
        // It does not, and somebody else wants in.
        town.request(1, 22, renew(false));
        town.ask_as(0, 3, next, FOREVER);
        let told = town.pass(TTL / 2);
        assert!(entry(&told).is_none(), "{mode:?}: {told:?}");
        let told = town.pass(TTL);
        assert!(told.contains(&(1, LockReply::Lost)), "{mode:?}: {told:?}");
        assert_eq!(entry(&told).map(|(call, _)| call), Some(3), "{mode:?}");
        assert_eq!(
            town.request(1, 23, LockRequest::Renew { held: CallId(9), on: true }),
            [(23, UNKNOWN)]
        );
    }
}

#[test]
fn whoever_takes_over_from_a_user_that_did_not_answer_is_renewed() {
    let mut town = Town::new(2, 3, 99);
    town.ask(1, 1, FOREVER);
    town.ask(1, 2, FOREVER);
    town.request(1, 20, LockRequest::Renew { held: CallId(1), on: false });
    assert_eq!(entry(&town.leave(1, 1)).map(|(call, _)| call), Some(2));
    let told = town.pass(TTL * 3);
    assert!(told.iter().all(|(_, reply)| matches!(reply, LockReply::Extended { .. })), "{told:?}");
    assert_eq!(town.leave(1, 2)[0], (1_002, LockReply::Released));
}

#[test]
fn after_a_block_of_tokens_whoever_waits_at_another_peer_comes_first() {
    let mut town = Town::new(3, 2, 99);
    town.ask(1, 1, FOREVER);
    for call in 2..6 {
        town.ask(1, call, FOREVER);
    }
    town.ask(2, 9, FOREVER);
    let mut order = vec![1];
    while let Some((call, _)) = {
        let last = *order.last().unwrap();
        entry(&town.leave(if last == 9 { 2 } else { 1 }, last))
    } {
        order.push(call);
    }
    assert_eq!(order, [1, 2, 9, 3, 4, 5]);
}

#[test]
fn who_only_tries_finds_it_busy_while_anybody_here_or_elsewhere_is_inside() {
    let mut town = Town::new(3, 4, 99);
    assert_eq!(entry(&town.ask(1, 1, TRY)).map(|(call, _)| call), Some(1));
    assert_eq!(town.ask(1, 2, TRY), [(2, LockReply::Busy)]);
    assert_eq!(town.ask(2, 3, TRY), [(3, LockReply::Busy)]);
    town.leave(1, 1);
    assert_eq!(entry(&town.ask(2, 4, TRY)).map(|(call, _)| call), Some(4));
}

#[test]
fn patience_ends_for_those_who_wait_here_and_those_who_leave_the_queue_keep_nobody_waiting() {
    let mut town = Town::new(3, 4, 99);
    town.ask(2, 1, FOREVER);
    town.ask(1, 2, Patience::For(Span::from_secs(1)));
    town.ask(1, 3, Patience::For(Span::from_secs(3)));
    town.ask(1, 4, FOREVER);
    assert_eq!(town.pass(Span::from_secs(2)), [(2, LockReply::TimedOut)]);
    let cancel = LockRequest::Cancel { call: CallId(4) };
    assert_eq!(town.request(1, 5, cancel.clone()), [(4, LockReply::Cancelled)]);
    assert_eq!(town.request(1, 6, cancel), [(6, UNKNOWN)]);
    let told = town.pass(Span::from_secs(2));
    assert!(told.contains(&(3, LockReply::TimedOut)), "{told:?}");
    assert_eq!(town.leave(2, 1), [(1_001, LockReply::Released)], "nobody is left to let in");
    assert!(entry(&town.ask(2, 7, TRY)).is_some());
}

#[test]
fn who_is_evicted_is_told_and_the_next_gets_in_when_it_says_that_it_is_out() {
    let mut town = Town::new(2, 4, 99);
    town.ask(1, 1, FOREVER);
    town.ask(1, 2, FOREVER);
    let told = town.request(1, 3, LockRequest::Evict { name: name() });
    assert_eq!(told, [(3, LockReply::Released), (1, LockReply::Lost)]);
    assert_eq!(town.pass(Span::from_secs(1)), [], "it may still be on its way out");
    let told = town.leave(1, 1);
    assert_eq!(told[0], (1_001, LockReply::Released));
    assert_eq!(entry(&told).map(|(call, _)| call), Some(2));
    assert_eq!(town.leave(1, 1), [(1_001, UNKNOWN)]);
}

#[test]
fn who_is_evicted_and_says_nothing_keeps_others_out_until_its_deadline_and_no_longer() {
    let mut town = Town::new(2, 4, 99);
    town.ask(1, 1, FOREVER);
    town.ask(1, 2, FOREVER);
    town.request(1, 3, LockRequest::Evict { name: name() });
    assert_eq!(entry(&town.pass(Span::from_secs(9))), None);
    assert_eq!(entry(&town.pass(Span::from_secs(2))).map(|(call, _)| call), Some(2));
    assert_eq!(
        town.request(1, 4, LockRequest::Evict { name: Name::new("/b").unwrap() }),
        [(4, UNKNOWN)]
    );
}

#[test]
fn a_peer_that_slept_past_the_deadline_tells_its_user_and_hands_nothing_over() {
    let mut town = Town::new(2, 4, 99);
    let (_, token) = entry(&town.ask(1, 1, FOREVER)).unwrap();
    town.ask(1, 2, FOREVER);
    town.now += TTL * 2;
    let told = town.leave(1, 1);
    assert_eq!(told[..2], [(1, LockReply::Lost), (1_001, UNKNOWN)]);
    let (call, next) = entry(&town.pass(Span::from_secs(20))).or(entry(&told)).unwrap();
    assert_eq!(call, 2);
    assert!(next > token.plus(3), "{next} is of a new block, after {token}");
}

#[test]
fn more_calls_than_there_may_be_and_calls_that_are_under_way_are_refused() {
    let mut town = Town::new(2, 4, 2);
    town.ask(1, 1, FOREVER);
    assert_eq!(town.ask(1, 1, FOREVER), [(1, LockReply::Refused(Refusal::DuplicateCall))]);
    town.ask(1, 2, FOREVER);
    let refusal = Refusal::TooManyRequests { limit: 2 };
    assert_eq!(town.ask(1, 3, FOREVER), [(3, LockReply::Refused(refusal))]);
    town.leave(1, 1);
    assert_eq!(town.ask(1, 3, FOREVER), [], "there is room again");
}

#[test]
fn who_asks_for_another_lease_waits_for_a_grant_of_its_own() {
    let mut town = Town::new(2, 9, 99);
    let (_, token) = entry(&town.ask(1, 1, FOREVER)).unwrap();
    let wish = Acquire::exclusive(name(), TTL / 2, FOREVER);
    town.request(1, 2, LockRequest::Acquire(wish));
    let (call, next) = entry(&town.leave(1, 1)).unwrap();
    assert_eq!((call, next), (2, token.plus(9)));
}

#[test]
fn those_who_wait_are_told_their_places_and_again_when_they_change() {
    let mut town = Town::new(3, 9, 99);
    town.ask(1, 1, FOREVER);
    town.ask(1, 2, FOREVER);
    assert_eq!(town.places(), [(2, 1)]);
    town.ask(1, 3, FOREVER);
    assert_eq!(town.places(), [(3, 2)]);
    town.leave(1, 1);
    assert_eq!(town.places(), [(3, 1)]);
    town.ask(2, 4, FOREVER);
    assert_eq!(town.places(), [(4, 1)], "behind the request that stands for another peer");
    town.ask(2, 5, FOREVER);
    assert_eq!(town.places(), [(5, 2)]);
}

#[test]
fn a_grant_that_is_not_renewed_is_handed_on_only_while_enough_of_it_is_left() {
    let mut town = Town::new(2, 9, 99);
    let (_, token) = entry(&town.ask(1, 1, FOREVER)).unwrap();
    for call in 2..5 {
        town.ask(1, call, FOREVER);
    }
    // No timer fires: this peer is busy, and its renewals do not leave.
    town.now += Span::from_secs(7);
    assert_eq!(entry(&town.leave(1, 1)), Some((2, token.plus(1))));
    town.now += Span::from_secs(1);
    assert_eq!(entry(&town.leave(1, 2)), Some((3, token.plus(9))), "a grant of its own");
}

/// What users of two peers do.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Ask {
        ttl_s: u64,
        patience: Patience,
    },
    /// Any call made so far leaves, whether or not it is inside, or no longer wants to.
    Leave(usize),
    Cancel(usize),
    /// Any call made so far does not answer, or does again.
    Renew(usize, bool),
    Evict,
    Pass(Span),
    /// Time passes, but no timer fires.
    Sleep(Span),
}

fn deed() -> impl Strategy<Value = Deed> {
    let patience = prop_oneof![
        4 => Just(FOREVER),
        1 => Just(TRY),
        2 => (0u64..5_000).prop_map(|ms| Patience::For(Span::from_millis(ms))),
    ];
    prop_oneof![
        6 => (prop_oneof![3 => Just(10u64), 1 => Just(5)], patience)
            .prop_map(|(ttl_s, patience)| Deed::Ask { ttl_s, patience }),
        8 => any::<usize>().prop_map(Deed::Leave),
        2 => any::<usize>().prop_map(Deed::Cancel),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(call, on)| Deed::Renew(call, on)),
        1 => Just(Deed::Evict),
        3 => (0u64..4_000).prop_map(|ms| Deed::Pass(Span::from_millis(ms))),
        1 => (0u64..15_000).prop_map(|ms| Deed::Sleep(Span::from_millis(ms))),
    ]
}

/// What a town has shown so far.
#[derive(Default)]
struct Seen {
    token: Token,
    inside: Option<(u64, LocalTime)>,
    /// Who slept past its deadline, and was not told yet.
    lapsed: BTreeSet<u64>,
    answered: BTreeSet<u64>,
}

impl Seen {
    fn leave(&mut self, call: u64) -> bool {
        self.inside.take_if(|(inside, _)| *inside == call).is_some()
    }

    /// Whoever slept past its deadline is no longer inside, whether or not it knows.
    fn wake(&mut self, now: LocalTime) {
        self.lapsed.extend(self.inside.take_if(|(_, end)| *end <= now).map(|(call, _)| call));
    }

    /// Takes down what was told, and objects.
    fn look(&mut self, told: &[(u64, LockReply)]) -> Result<(), TestCaseError> {
        for (call, reply) in told.iter().filter(|(call, _)| *call < 1_000) {
            match reply {
                LockReply::Granted { token, deadline, .. } => {
                    prop_assert!(token.unwrap() > self.token, "tokens grow");
                    prop_assert!(self.answered.insert(*call), "{call} was answered twice");
                    prop_assert_eq!(self.inside, None);
                    (self.token, self.inside) = (token.unwrap(), Some((*call, *deadline)));
                }
                LockReply::Lost => {
                    let was_inside = self.leave(*call);
                    prop_assert!(was_inside || self.lapsed.remove(call), "{call} had lost nothing");
                }
                LockReply::Extended { deadline } => {
                    prop_assert!(self.leave(*call), "{call} was not inside");
                    self.inside = Some((*call, *deadline));
                }
                _ => prop_assert!(self.answered.insert(*call), "{call} was answered twice"),
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn whatever_users_do_one_is_inside_all_are_answered_and_nothing_is_left_behind(
        deeds in prop::collection::vec((1u64..3, deed()), 1..60), tokens in 1u64..5,
    ) {
        let mut town = Town::new(3, tokens, 30);
        let mut seen = Seen::default();
        let mut calls: Vec<(u64, u64)> = Vec::new();
        for (at, (peer, deed)) in deeds.into_iter().enumerate() {
            let id = 1_000 + at as u64;
            let any = |place: usize| calls.get(place % calls.len().max(1)).copied();
            let told = match deed {
                Deed::Ask { ttl_s, patience } => {
                    let call = calls.len() as u64 + 1;
                    calls.push((peer, call));
                    let wish = Acquire::exclusive(name(), Span::from_secs(ttl_s), patience);
                    town.request(peer, call, LockRequest::Acquire(wish))
                }
                Deed::Leave(place) => {
                    let Some((peer, held)) = any(place) else { continue };
                    // The user is out from the moment it says so.
                    let was_inside = seen.leave(held);
                    let told = town.request(peer, id, LockRequest::Release { held: CallId(held) });
                    let released = told.contains(&(id, LockReply::Released));
                    prop_assert_eq!(released, !told.contains(&(id, UNKNOWN)));
                    prop_assert!(released || !was_inside);
                    told
                }
                Deed::Cancel(place) => {
                    let Some((peer, call)) = any(place) else { continue };
                    town.request(peer, id, LockRequest::Cancel { call: CallId(call) })
                }
                Deed::Renew(place, on) => {
                    let Some((peer, held)) = any(place) else { continue };
                    town.request(peer, id, LockRequest::Renew { held: CallId(held), on })
                }
                Deed::Evict => town.request(peer, id, LockRequest::Evict { name: name() }),
                Deed::Pass(span) => town.pass(span),
                Deed::Sleep(span) => {
                    town.now += span;
                    seen.wake(town.now);
                    continue;
                }
            };
            seen.look(&told)?;
        }
        for _ in 0..=calls.len() {
            seen.look(&town.pass(Span::from_secs(40)))?;
            if let Some((held, _)) = seen.inside.take() {
                let (peer, _) = calls[held as usize - 1];
                let told = town.request(peer, 9_999, LockRequest::Release { held: CallId(held) });
                seen.look(&told)?;
            }
        }
        prop_assert_eq!(seen.answered.len(), calls.len());
        town.pass(Span::from_secs(60));
        prop_assert!(town.peers.iter().all(|(peer, _)| peer.is_idle()));
    }
}
