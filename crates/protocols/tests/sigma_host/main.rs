//! A Sigma host, spoken to message by message: the paper's replica, its bounds, and what it makes of
//! nonsense. The driver here is a few lines; the world of real delays is the simulator's.

mod permits;

use proptest::prelude::*;
use sigmalock_core::{
    Acquire, Birth, CallId, Context, Echo, Effect, Incarnation, Input, Inspect, LocalTime,
    LockReply, LockRequest, Mode, Name, Patience, PeerId, Protocol, Refusal, ReplicaId, RequestId,
    Span, Surroundings, Token, WallTime,
};
use sigmalock_protocols::parts::{Driven, Hlc, Hosting, Quorum};
use sigmalock_protocols::sigma::message::{
    Answer, Ask, Claim, GrantId, Message, OtherNumber, Renewal, Response, Spent, Ticket, Used,
};
use sigmalock_protocols::sigma::{Config, Durable, DurableKey, Note, Sigma, Timer};

const ME: PeerId = PeerId(1);
const WALL: WallTime = WallTime::from_micros(1_750_000_000_000_000);

struct Fixed;

impl Surroundings for Fixed {
    fn wall(&self) -> WallTime {
        WALL
    }
    fn random(&mut self) -> u64 {
        4
    }
}

/// Replica i is at peer i + 1.
#[derive(Debug, Clone)]
struct OneByOne;

impl Hosting for OneByOne {
    fn host_of(&self, replica: &ReplicaId) -> Option<PeerId> {
        Some(PeerId(u64::from(replica.index) + 1))
    }
    fn seats(&self, _: &Name) -> Vec<u16> {
        vec![0, 1, 2]
    }
    fn has_replica(&self, index: u16) -> bool {
        index < 3
    }
    fn copy(&self) -> Box<dyn Hosting> {
        Box::new(self.clone())
    }
    fn digest(&self, _: &mut dyn std::hash::Hasher) {}
}

/// One peer and its clock.
struct Peer {
    sigma: Sigma,
    now: LocalTime,
}

impl Peer {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        Self::born(Birth::First, change)
    }

    fn born(birth: Birth<Sigma>, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(Quorum::new(3, 2).unwrap());
        change(&mut config);
        let mut peer = Self {
            sigma: Sigma::new(ME, config, Box::new(OneByOne)),
            now: LocalTime::from_micros(1_000_000_000),
        };
        peer.give(Input::Start { incarnation: Incarnation(7), birth });
        peer
    }

    fn give(&mut self, input: Input<Sigma>) -> Vec<Effect<Sigma>> {
        let mut effects = Vec::new();
        self.sigma.handle(&mut Context::new(self.now, &mut Fixed, &mut effects), input);
        effects
    }

    fn hear(&mut self, from: PeerId, message: Message) -> Vec<(PeerId, Message)> {
        sent(self.give(Input::Receive { from, message }))
    }

    fn notes(&mut self, from: PeerId, message: Message) -> Vec<Note> {
        let note = |effect| if let Effect::Note(note) = effect { Some(note) } else { None };
        self.give(Input::Receive { from, message }).into_iter().filter_map(note).collect()
    }

    fn request(&mut self, client: u64) -> Answer {
        let (to, message) = only(self.hear(PeerId(client), Message::Request(ask(client))));
        assert_eq!(to, PeerId(client));
        answer(message)
    }

    fn release(&mut self, client: u64, spent: Spent) -> Vec<(PeerId, Message)> {
        let Ask { replica, ticket, .. } = ask(client);
        self.hear(PeerId(client), Message::Release { replica, ticket, spent })
    }

    fn wait(&mut self, span: Span) -> Vec<Effect<Sigma>> {
        self.now += span;
        self.give(Input::Fire(Timer::Replica(replica())))
    }
}

fn sent(effects: Vec<Effect<Sigma>>) -> Vec<(PeerId, Message)> {
    let send = |effect| match effect {
        Effect::Send { to, message } => Some((to, message)),
        _ => None,
    };
    effects.into_iter().filter_map(send).collect()
}

fn only<T: std::fmt::Debug>(list: Vec<T>) -> T {
    assert_eq!(list.len(), 1, "{list:?}");
    list.into_iter().next().unwrap()
}

fn answer(message: Message) -> Answer {
    match message {
        Message::Response(Response { answer, .. }) => answer,
        other => panic!("not a response: {other:?}"),
    }
}

fn vote(answer: &Answer) -> (GrantId, Token, Span) {
    match answer {
        Answer::Yours { vote, .. } => (vote.grant, vote.proposal, vote.lease.ttl),
        other => panic!("not a vote: {other:?}"),
    }
}

fn replica() -> ReplicaId {
    ReplicaId { name: Name::new("/a").unwrap(), index: 0 }
}

/// The request of a client: lower numbers asked earlier.
fn ticket(client: u64) -> Ticket {
    let request =
        RequestId { client: PeerId(client), incarnation: Incarnation(1), call: CallId(1) };
    Ticket { order: Hlc::from_raw(client), request, mode: mode(client) }
}

/// Those in their fifties and seventies read, all others write.
fn mode(client: u64) -> Mode {
    if matches!(client, 50..60 | 70..80) { Mode::Shared } else { Mode::Exclusive }
}

fn ask(client: u64) -> Ask {
    let (ttl, sent) = (Span::from_secs(10), LocalTime::from_micros(5));
    Ask { replica: replica(), ticket: ticket(client), ttl, sent, inside: false }
}

fn used(token: Token) -> Spent {
    Spent::Token(Used { token, knew: Some(Incarnation(7)) })
}

#[test]
fn section_iv_a_free_replica_grants_outright_and_an_owned_one_queues_and_names_its_owner() {
    let mut host = Peer::new(|_| {});
    assert!(matches!(host.request(10), Answer::Yours { asked: true, .. }));
    assert!(
        matches!(host.request(11), Answer::Queued { owner: Some(owner), .. } if owner == ticket(10))
    );
}

#[test]
fn section_iv_release_by_the_owner_notifies_the_next_and_release_by_a_waiter_leaves_the_queue() {
    let mut host = Peer::new(|_| {});
    let token = vote(&host.request(10)).1;
    host.request(11);
    host.request(12);
    assert!(host.release(11, Spent::Nothing).is_empty());
    let (to, message) = only(host.release(10, used(token)));
    assert_eq!(to, PeerId(12));
    assert!(matches!(answer(message), Answer::Yours { asked: false, .. }));
}

#[test]
fn section_iv_yield_is_a_release_and_a_request_and_the_earliest_is_chosen() {
    let mut host = Peer::new(|_| {});
    let grant = vote(&host.request(12)).0;
    let replies = host.hear(PeerId(11), Message::Request(ask(11)));
    assert!(matches!(replies[0], (PeerId(12), Message::Recall { .. })), "an older one waits");
    assert!(matches!(answer(replies[1].1.clone()), Answer::Queued { .. }));
    let replies = host.hear(PeerId(12), Message::Yield(ask(12), grant));
    assert_eq!(replies[0].0, PeerId(11));
    assert!(matches!(answer(replies[0].1.clone()), Answer::Yours { .. }));
    assert_eq!(replies[1].0, PeerId(12));
    assert!(
        matches!(answer(replies[1].1.clone()), Answer::Queued { owner: Some(o), .. } if o == ticket(11))
    );
    // Having asked again, the one who yielded comes next.
    assert_eq!(only(host.release(11, Spent::Nothing)).0, PeerId(12));
}

fn withdraw(client: u64, grant: Option<GrantId>) -> Message {
    Message::Withdraw { replica: replica(), ticket: ticket(client), grant }
}

#[test]
fn who_withdraws_gives_its_vote_and_its_place_to_the_others_and_may_ask_again() {
    let mut host = Peer::new(|_| {});
    let grant = vote(&host.request(10)).0;
    host.request(11);
    host.request(12);
    assert!(host.hear(PeerId(11), withdraw(11, None)).is_empty());
    let (to, message) = only(host.hear(PeerId(10), withdraw(10, Some(grant))));
    assert_eq!(to, PeerId(12));
    assert!(matches!(answer(message), Answer::Yours { asked: false, .. }));
    let replies = host.hear(PeerId(10), Message::Request(ask(10)));
    let (_, message) = replies.last().cloned().unwrap();
    assert!(matches!(answer(message), Answer::Queued { ahead: 1, .. }), "it is not dead");
    assert_eq!(only(host.release(12, Spent::Nothing)).0, PeerId(10));
}

#[test]
fn a_withdrawal_that_comes_late_or_from_somebody_else_takes_no_vote_away() {
    let mut host = Peer::new(|_| {});
    let earlier = vote(&host.request(10)).0;
    host.hear(PeerId(10), Message::Yield(ask(10), earlier));
    let later = vote(&host.request(10)).0;
    assert_ne!(earlier, later);
    host.request(11);
    assert!(host.hear(PeerId(10), withdraw(10, Some(earlier))).is_empty());
    assert!(host.hear(PeerId(10), withdraw(10, None)).is_empty());
    assert!(host.hear(PeerId(11), withdraw(10, Some(later))).is_empty());
    assert_eq!(vote(&host.request(10)).0, later);
}

#[test]
fn section_iv_the_advised_wait_is_the_mean_critical_section_times_the_place_and_a_half() {
    let mut host = Peer::new(|config| config.service_default = Span::from_secs(2));
    host.request(10);
    let advice = |answer| match answer {
        Answer::Queued { wait, .. } => wait,
        other => panic!("not queued: {other:?}"),
    };
    assert_eq!(advice(host.request(11)), Span::from_secs(1));
    assert_eq!(advice(host.request(12)), Span::from_secs(3));
    assert_eq!(advice(host.request(13)), Span::from_secs(5));
    // "T_w is always updated upon the reception of a retry": two have left since.
    host.release(11, Spent::Nothing);
    host.release(12, Spent::Nothing);
    assert_eq!(advice(host.request(13)), Span::from_secs(1));
}

#[test]
fn section_iv_an_expired_lease_passes_the_vote_to_the_next() {
    let mut host = Peer::new(|_| {});
    host.request(10);
    host.request(11);
    assert!(sent(host.wait(Span::from_secs(9))).is_empty());
    assert_eq!(only(sent(host.wait(Span::from_secs(1)))).0, PeerId(11));
}

#[test]
fn a_request_is_idempotent_and_by_its_owner_renews() {
    let mut host = Peer::new(|_| {});
    let first = vote(&host.request(10)).0;
    host.now += Span::from_secs(6);
    let later = Ask { sent: LocalTime::from_micros(6_000_005), ..ask(10) };
    let (_, answered) = only(host.hear(PeerId(10), Message::Request(later)));
    assert_eq!(vote(&answer(answered)).0, first);
    assert!(sent(host.wait(Span::from_secs(6))).is_empty(), "renewed six seconds ago");
    host.request(11);
    host.request(11);
    assert_eq!(only(host.release(10, Spent::Nothing)).0, PeerId(11));
    assert!(host.release(11, Spent::Nothing).is_empty(), "queued once only");
}

#[test]
fn a_released_request_never_comes_back() {
    let mut host = Peer::new(|_| {});
    host.release(10, Spent::Nothing);
    let notes = host.notes(PeerId(10), Message::Request(ask(10)));
    assert_eq!(notes, [Note::RequestOfTheDead]);
    assert!(matches!(host.request(11), Answer::Yours { .. }), "no ghost owns the vote");
}

#[test]
fn a_yield_of_an_older_grant_gives_nothing_away() {
    let mut host = Peer::new(|_| {});
    let old = vote(&host.request(10)).0;
    let replies = host.hear(PeerId(10), Message::Yield(ask(10), old));
    let new = vote(&answer(only(replies).1)).0;
    assert_ne!(old, new);
    host.request(11);
    let replies = host.hear(PeerId(10), Message::Yield(ask(10), old));
    assert_eq!(vote(&answer(only(replies).1)).0, new, "still the owner");
}

#[test]
fn a_vote_from_the_queue_is_short_until_it_is_claimed() {
    let mut host = Peer::new(|_| {});
    let token = vote(&host.request(10)).1;
    host.request(11);
    let grant = answer(only(host.release(10, used(token))).1);
    let (id, proposal, ttl) = vote(&grant);
    assert_eq!(ttl, Span::from_secs(2));
    host.request(12);
    let claim = Claim {
        replica: replica(),
        ticket: ticket(11),
        grant: id,
        used: Used { token: proposal, knew: None },
    };
    host.now += Span::from_secs(1);
    let renew = Message::Renew { sent: LocalTime::from_micros(9), claims: vec![claim] };
    let (_, renewed) = only(host.hear(PeerId(11), renew));
    let Message::Renewed { renewals, echo } = renewed else { panic!("{renewed:?}") };
    assert_eq!(renewals, [Renewal { call: CallId(1), index: 0, grant: id, good: true }]);
    assert_eq!(echo, Echo { sent: LocalTime::from_micros(9), heard: host.now.stamp() });
    assert!(sent(host.wait(Span::from_secs(9))).is_empty(), "claimed: a full lease from then");
    assert_eq!(only(sent(host.wait(Span::from_secs(1)))).0, PeerId(12));
}

#[test]
fn an_unclaimed_vote_passes_on_after_the_claim_window() {
    let mut host = Peer::new(|_| {});
    let token = vote(&host.request(10)).1;
    host.request(11);
    host.request(12);
    host.release(10, used(token));
    assert_eq!(only(sent(host.wait(Span::from_secs(2)))).0, PeerId(12));
}

#[test]
fn who_cannot_be_reached_does_not_wait_but_keeps_its_vote_and_its_place_when_it_is_back() {
    let mut host = Peer::new(|_| {});
    let token = vote(&host.request(10)).1;
    for client in [11, 12, 13] {
        host.request(client);
    }
    for gone in [10, 11, 12] {
        assert!(sent(host.give(Input::PeerDown(PeerId(gone)))).is_empty());
    }
    let back = host.request(12);
    let Answer::Queued { owner, ahead, .. } = back else { panic!("not queued: {back:?}") };
    assert_eq!(
        (owner, ahead),
        (Some(ticket(10)), 1),
        "11 does not wait, and 10 still has the vote"
    );
    let (to, _) = only(host.release(10, used(token)));
    assert_eq!(to, PeerId(12), "13 has waited for less long");
}

#[test]
fn tokens_follow_the_wall_clock_first_and_count_on_from_there() {
    let mut host = Peer::new(|_| {});
    let first = vote(&host.request(10)).1;
    assert!(first >= Token(WALL.as_micros()), "no memory of the name: not below the wall clock");
    host.release(10, used(first));
    let second = vote(&host.request(11)).1;
    assert_eq!(second, first.next());
    host.release(11, Spent::Nothing);
    assert_eq!(vote(&host.request(12)).1, second, "an unused proposal is made again");
    host.wait(Span::from_secs(10));
    assert_eq!(vote(&host.request(13)).1, second.next(), "a lapsed one may have been shown");
}

#[test]
fn a_seal_is_for_the_present_grant_and_never_below_its_proposal() {
    let mut host = Peer::new(|_| {});
    let (grant, proposal, _) = vote(&host.request(10));
    let mut seal = |from: u64, grant, token| {
        let replies = host.hear(PeerId(from), Message::Seal(ask(from), grant, token));
        answer(replies.last().unwrap().1.clone())
    };
    assert_eq!(vote(&seal(10, grant, Token(1))).1, proposal, "too low");
    let other = GrantId { number: grant.number + 1, ..grant };
    assert_eq!(vote(&seal(10, other, Token(u64::MAX))).1, proposal, "another grant");
    assert!(matches!(seal(11, grant, Token(u64::MAX)), Answer::Queued { .. }), "not the owner");
    let higher = Token(proposal.0 + 5);
    assert_eq!(vote(&seal(10, grant, higher)).1, higher);
}

#[test]
fn a_host_without_memory_queues_but_abstains_for_the_longest_lease() {
    let mut host = Peer::born(Birth::Amnesiac, |_| {});
    assert!(matches!(host.request(10), Answer::Queued { owner: None, .. }));
    assert!(sent(host.wait(Span::from_millis(14_999))).is_empty());
    assert_eq!(only(sent(host.wait(Span::from_millis(1)))).0, PeerId(10));
}

#[test]
fn a_durable_host_persists_before_it_sends_and_comes_back_with_its_vote() {
    let mut host = Peer::new(|config| config.durable = true);
    let effects =
        host.give(Input::Receive { from: PeerId(10), message: Message::Request(ask(10)) });
    let persist = effects.iter().position(|e| matches!(e, Effect::Persist { .. }));
    let send = effects.iter().position(|e| matches!(e, Effect::Send { .. }));
    assert!(persist.is_some() && persist < send);
    let disk = effects.into_iter().filter_map(|effect| match effect {
        Effect::Persist { key, value } => value.map(|value| (key, value)),
        _ => None,
    });
    // What every durable life writes when it starts.
    let mut disk: Vec<_> = disk.collect();
    disk.push((DurableKey::Floor, Durable::Floor(Token(0))));
    let mut reborn = Peer::born(Birth::Recovered(disk), |config| config.durable = true);
    assert!(matches!(reborn.request(11), Answer::Queued { owner: Some(o), .. } if o == ticket(10)));
    assert!(
        sent(reborn.wait(Span::from_millis(9_999))).is_empty(),
        "a full lease from the restart"
    );
    assert_eq!(only(sent(reborn.wait(Span::from_millis(1)))).0, PeerId(11));
}

#[test]
fn a_full_queue_says_so_and_loses_nobody() {
    let mut host = Peer::new(|config| config.limits.queue_len_max = 2);
    for client in 10..13 {
        host.request(client);
    }
    assert!(matches!(host.request(13), Answer::Full { owner: Some(_), .. }));
    assert!(matches!(host.request(12), Answer::Queued { .. }), "who was queued still is");
    assert_eq!(only(host.release(10, Spent::Nothing)).0, PeerId(11));
    assert!(matches!(host.request(13), Answer::Queued { .. }), "there is room again");
}

#[test]
fn a_host_takes_so_many_replicas_and_no_more_until_some_are_idle() {
    let mut host = Peer::new(|config| config.limits.replicas_max = 1);
    host.request(10);
    let mut other = ask(11);
    other.replica.name = Name::new("/b").unwrap();
    assert_eq!(host.notes(PeerId(11), Message::Request(other.clone())), [Note::TooManyReplicas]);
    host.release(10, Spent::Nothing);
    for _ in 0..4 {
        host.wait(Span::from_secs(61));
    }
    assert_eq!(host.sigma.hosted(), 0, "an idle replica is forgotten");
    assert_eq!(host.hear(PeerId(11), Message::Request(other)).len(), 1);
}

#[test]
fn a_forgotten_name_never_proposes_below_what_it_once_knew() {
    let mut host = Peer::new(|_| {});
    host.request(10);
    let far = Token(u64::MAX / 2);
    host.release(10, used(far));
    for _ in 0..4 {
        host.wait(Span::from_secs(61));
    }
    assert_eq!(host.sigma.hosted(), 0);
    assert!(vote(&host.request(11)).1 > far);
}

#[test]
fn an_old_token_heard_after_the_name_was_forgotten_does_not_bring_tokens_back() {
    let mut host = Peer::new(|_| {});
    let old = vote(&host.request(10)).1;
    host.wait(Span::from_secs(10));
    let newer = vote(&host.request(11)).1;
    host.release(11, used(newer));
    for _ in 0..4 {
        host.wait(Span::from_secs(61));
    }
    assert_eq!(host.sigma.hosted(), 0);
    // The first holder overslept, and only now says that it is done.
    host.release(10, used(old));
    assert!(vote(&host.request(12)).1 > newer);
}

#[test]
fn a_disk_that_never_held_a_vote_is_no_memory() {
    let mut host = Peer::born(Birth::Recovered(Vec::new()), |config| config.durable = true);
    assert!(matches!(host.request(10), Answer::Queued { owner: None, .. }), "it abstains");
}

#[test]
fn a_host_that_forgot_and_restarts_with_its_disk_still_abstains() {
    let durable = |config: &mut Config| config.durable = true;
    let mut config = Config::new(Quorum::new(3, 2).unwrap());
    durable(&mut config);
    let mut forgetful = Sigma::new(ME, config, Box::new(OneByOne));
    let mut disk = Vec::new();
    let start = Input::Start { incarnation: Incarnation(8), birth: Birth::Amnesiac };
    forgetful.handle(&mut Context::new(LocalTime::MIN, &mut Fixed, &mut disk), start);
    let written: Vec<_> = disk
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Persist { key, value } => value.map(|value| (key, value)),
            _ => None,
        })
        .collect();
    let mut again = Peer::born(Birth::Recovered(written), durable);
    assert!(matches!(again.request(10), Answer::Queued { owner: None, .. }), "it abstains");
}

#[test]
fn who_yields_keeps_a_place_in_a_full_queue() {
    let mut host = Peer::new(|config| config.limits.queue_len_max = 1);
    let grant = vote(&host.request(10)).0;
    host.request(11);
    let replies = host.hear(PeerId(10), Message::Yield(ask(10), grant));
    assert!(matches!(answer(only(replies).1), Answer::Yours { .. }), "it is still the oldest");
    assert!(matches!(host.request(11), Answer::Queued { .. }));
}

#[test]
fn the_first_in_the_queue_asks_again_soon_however_long_the_owner_stays() {
    let mut host = Peer::new(|_| {});
    host.request(10);
    for _ in 0..720 {
        host.now += Span::from_secs(5);
        let renewed = Ask { sent: host.now, ..ask(10) };
        host.hear(PeerId(10), Message::Request(renewed));
    }
    let Answer::Queued { owner: Some(owner), ahead, wait, .. } = host.request(11) else {
        panic!("not queued")
    };
    assert_eq!((owner, ahead), (ticket(10), 1), "the same owner for an hour");
    assert!(wait <= Span::from_secs(10), "{wait}");
}

#[test]
fn a_late_copy_of_a_request_does_not_renew_the_lease() {
    let mut host = Peer::new(|_| {});
    host.request(10);
    host.request(11);
    host.now += Span::from_secs(9);
    host.request(10);
    assert_eq!(only(sent(host.wait(Span::from_secs(1)))).0, PeerId(11));
}

#[test]
fn forged_and_impossible_messages_are_noted_and_dropped() {
    let mut host = Peer::new(|_| {});
    let malformed = |host: &mut Peer, message| host.notes(PeerId(10), message) == [Note::Malformed];
    assert!(malformed(&mut host, Message::Request(ask(11))), "in another's name");
    let release =
        Message::Release { replica: replica(), ticket: ticket(11), spent: Spent::Nothing };
    assert!(malformed(&mut host, release));
    for ttl in [Span::ZERO, Span::from_secs(16), Span::MAX] {
        assert!(malformed(&mut host, Message::Request(Ask { ttl, ..ask(10) })));
    }
    let index = ReplicaId { index: 3, ..replica() };
    assert!(malformed(&mut host, Message::Request(Ask { replica: index, ..ask(10) })));
    for mode in [Mode::Permit { of: 2 }, Mode::Slot { of: 2, index: 2 }] {
        let ticket = Ticket { mode, ..ticket(10) };
        assert!(malformed(&mut host, Message::Request(Ask { ticket, ..ask(10) })));
    }
    assert_eq!(host.sigma.hosted(), 0);
}

#[test]
fn a_client_refuses_what_it_cannot_do_and_says_what_it_can() {
    let mut peer = Peer::new(|config| config.limits.requests_max = 2);
    let mut ask = |id: u64, ttl: Span| {
        let name = Name::new("/a").unwrap();
        let request = LockRequest::Acquire(Acquire::exclusive(name, ttl, Patience::Forever));
        peer.give(Input::Request { id: CallId(id), request }).into_iter().find_map(|effect| {
            match effect {
                Effect::Reply { reply: LockReply::Refused(refusal), .. } => Some(refusal),
                _ => None,
            }
        })
    };
    let ttl = Span::from_secs(10);
    let (at_least, at_most) = (Span::from_millis(1_250), Span::from_secs(15));
    assert_eq!(ask(1, Span::from_millis(1_249)), Some(Refusal::TtlTooShort { at_least }));
    assert_eq!(ask(1, Span::from_secs(16)), Some(Refusal::TtlTooLong { at_most }));
    assert_eq!(ask(1, ttl), None);
    assert_eq!(ask(1, ttl), Some(Refusal::DuplicateCall));
    assert_eq!(ask(2, ttl), None);
    assert_eq!(ask(3, ttl), Some(Refusal::TooManyRequests { limit: 2 }));
}

#[test]
fn readers_have_the_vote_together_and_who_leaves_takes_only_its_own_along() {
    let mut host = Peer::new(|_| {});
    let token = vote(&host.request(50)).1;
    assert_eq!(vote(&host.request(51)).1, token, "they may show the same");
    assert!(
        matches!(host.request(60), Answer::Queued { owner: Some(o), ahead: 2, .. } if o == ticket(50))
    );
    assert!(host.release(50, used(token)).is_empty(), "one still reads");
    let (to, message) = only(host.release(51, used(token)));
    assert_eq!((to, vote(&answer(message)).1), (PeerId(60), token.next()));
}

#[test]
fn a_writer_that_waits_stops_later_readers_but_not_earlier_ones() {
    let mut host = Peer::new(|_| {});
    let token = vote(&host.request(51)).1;
    host.request(60);
    assert!(matches!(host.request(70), Answer::Queued { ahead: 2, .. }));
    host.request(71);
    assert!(matches!(host.request(50), Answer::Yours { .. }), "it asked before the writer");
    assert!(host.release(50, Spent::Nothing).is_empty());
    assert_eq!(only(host.release(51, used(token))).0, PeerId(60));
    let readers = host.release(60, Spent::Nothing);
    assert_eq!(readers.iter().map(|(to, _)| to.0).collect::<Vec<_>>(), [70, 71], "both at once");
}

#[test]
fn younger_readers_are_recalled_for_a_writer_each_of_them() {
    let mut host = Peer::new(|_| {});
    let grants = [70, 71].map(|reader| vote(&host.request(reader)).0);
    let replies = host.hear(PeerId(60), Message::Request(ask(60)));
    let recalled = |(to, message): &(PeerId, Message)| match message {
        Message::Recall { grant, .. } => Some((to.0, *grant)),
        _ => None,
    };
    let recalled: Vec<_> = replies.iter().filter_map(recalled).collect();
    assert_eq!(recalled, [(70, grants[0]), (71, grants[1])]);
    host.hear(PeerId(70), Message::Yield(ask(70), grants[0]));
    let replies = host.hear(PeerId(71), Message::Yield(ask(71), grants[1]));
    assert_eq!(replies[0].0, PeerId(60), "when the last has yielded");
}

#[test]
fn tokens_of_readers_lie_between_those_of_the_writers_around_them() {
    let mut host = Peer::new(|_| {});
    let written = vote(&host.request(10)).1;
    host.release(10, used(written));
    let read = vote(&host.request(50)).1;
    assert_eq!(read, written.next());
    host.release(50, used(read));
    assert_eq!(vote(&host.request(51)).1, read, "nobody has written since");
    // Somebody has shown a higher one elsewhere.
    host.release(52, used(read.plus(5)));
    assert_eq!(vote(&host.request(53)).1, read.plus(5));
    host.release(51, used(read));
    host.release(53, Spent::Nothing);
    assert_eq!(vote(&host.request(60)).1, read.plus(6));
}

#[test]
fn each_reader_has_a_lease_of_its_own_and_the_vote_passes_on_with_the_last() {
    let mut host = Peer::new(|_| {});
    host.request(50);
    host.wait(Span::from_secs(4));
    host.request(51);
    host.request(60);
    assert!(sent(host.wait(Span::from_secs(6))).is_empty(), "one has lapsed");
    assert_eq!(only(sent(host.wait(Span::from_secs(4)))).0, PeerId(60));
}

/// A host that was asked for its vote by these, and restarted with its disk.
fn reborn_after<const N: usize>(asks: [Ask; N]) -> Peer {
    let mut disk = std::collections::BTreeMap::new();
    let mut host = Peer::new(|config| config.durable = true);
    for ask in asks {
        let from = ask.ticket.request.client;
        for effect in host.give(Input::Receive { from, message: Message::Request(ask) }) {
            if let Effect::Persist { key, value: Some(value) } = effect {
                disk.insert(key, value);
            }
        }
    }
    disk.insert(DurableKey::Floor, Durable::Floor(Token(0)));
    let birth = Birth::Recovered(disk.into_iter().collect());
    Peer::born(birth, |config| config.durable = true)
}

#[test]
fn all_readers_survive_a_restart_with_the_disk() {
    let mut reborn = reborn_after([50, 51].map(ask));
    assert!(matches!(reborn.request(60), Answer::Queued { ahead: 2, .. }));
    assert!(matches!(reborn.request(50), Answer::Yours { .. }));
    reborn.release(50, Spent::Nothing);
    assert_eq!(only(reborn.release(51, Spent::Nothing)).0, PeerId(60));
}

fn any_message() -> impl Strategy<Value = Message> {
    let slot = (0u16..4, 0u16..4).prop_map(|(of, index)| Mode::Slot { of, index });
    let odd = prop_oneof![Just(Mode::Permit { of: 2 }), Just(Mode::Slot { of: 99, index: 80 })];
    let mode = prop_oneof![Just(Mode::Exclusive), Just(Mode::Shared), slot, odd];
    let ticket = (0u64..4, 0u64..3, 0u64..3, mode).prop_map(|(order, client, call, mode)| Ticket {
        order: Hlc::from_raw(order),
        mode,
        request: RequestId {
            client: PeerId(client),
            incarnation: Incarnation(7),
            call: CallId(call),
        },
    });
    let replica = (0u16..4).prop_map(|index| ReplicaId { index, ..replica() });
    let grant =
        (6u64..8, 0u64..6).prop_map(|(host, number)| GrantId { life: Incarnation(host), number });
    let time = prop_oneof![0u64..3_000_000_000, Just(u64::MAX)].prop_map(LocalTime::from_micros);
    let token = prop_oneof![0u64..10, Just(u64::MAX)].prop_map(Token);
    let ttl = prop_oneof![0u64..20_000_000, Just(u64::MAX)].prop_map(Span::from_micros);
    let call = (replica, ticket, ttl, time).prop_map(|(replica, ticket, ttl, sent)| Ask {
        replica,
        ticket,
        ttl,
        sent,
        inside: false,
    });
    (0u8..10, call, grant, token, any::<bool>(), 0u64..9).prop_map(
        |(kind, call, grant, token, flag, sequence)| {
            let Ask { replica, ticket, ttl, sent, .. } = call.clone();
            let used = Used { token, knew: flag.then_some(grant.life) };
            let echo = Echo { sent, heard: sent.stamp() };
            let lease = sigmalock_core::Lease { given: sent.stamp(), ttl };
            let vote = sigmalock_protocols::sigma::message::Vote { grant, lease, proposal: token };
            let life = grant.life;
            match kind {
                0 => Message::Request(call),
                1 => Message::Yield(call, grant),
                2 => Message::Seal(call, grant, token),
                3 => Message::Release { replica, ticket, spent: Spent::Token(used) },
                4 => Message::Renew { sent, claims: vec![Claim { replica, ticket, grant, used }] },
                5 => Message::Recall { replica, ticket, grant },
                9 => Message::Withdraw { replica, ticket, grant: flag.then_some(grant) },
                6 => {
                    let (call, index) = (ticket.request.call, replica.index);
                    Message::Renewed {
                        echo,
                        renewals: vec![Renewal { call, index, grant, good: flag }],
                    }
                }
                _ => {
                    let answer = if kind == 7 {
                        Answer::Yours { vote, asked: flag }
                    } else {
                        Answer::Queued {
                            owner: flag.then_some(ticket),
                            ahead: 1,
                            turn: ttl,
                            wait: ttl,
                            other: flag.then_some(OtherNumber { of: 3, before_you: flag }),
                        }
                    };
                    let clock = ticket.order;
                    Message::Response(Response {
                        replica,
                        ticket,
                        life,
                        sequence,
                        echo,
                        clock,
                        answer,
                    })
                }
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever a dishonest peer sends, in whatever order, an honest one neither panics nor grows.
    #[test]
    fn no_sequence_of_messages_hurts(
        inputs in prop::collection::vec((0u64..3, any_message(), 0u64..4_000_000), 0..120),
    ) {
        let mut peer = Peer::new(|config| {
            config.limits.replicas_max = 2;
            config.limits.queue_len_max = 2;
        });
        for (id, mode) in [(0, Mode::Exclusive), (1, Mode::Slot { of: 2, index: 0 })] {
            let name = Name::new("/a").unwrap();
            let (ttl, patience) = (Span::from_secs(10), Patience::Forever);
            let wish = Acquire { mode, ..Acquire::exclusive(name, ttl, patience) };
            let request = LockRequest::Acquire(wish);
            peer.give(Input::Request { id: CallId(id), request });
        }
        for (from, message, pause_us) in inputs {
            peer.now += Span::from_micros(pause_us);
            let effects = peer.give(Input::Receive { from: PeerId(from), message });
            prop_assert!(effects.len() < 64, "a storm of {} effects", effects.len());
            for timer in [Timer::Renewal, Timer::Request(CallId(0)), Timer::Replica(replica())] {
                peer.give(Input::Fire(timer));
            }
            prop_assert!(peer.sigma.hosted() <= 2);
        }
    }
}

#[test]
fn what_is_hosted_and_who_waits_can_be_looked_into() {
    let mut peer = Peer::new(|_| ());
    peer.request(11);
    peer.request(12);
    let name = replica().name;
    let report = only(peer.sigma.replicas(peer.now, &name));
    assert_eq!(report.owners[0].request, ticket(11).request);
    assert_eq!((report.waiters, report.waiting), (vec![ticket(12).request], 1));
    let wish = Acquire::exclusive(name.clone(), Span::from_secs(5), Patience::Forever);
    peer.give(Input::Request { id: CallId(3), request: LockRequest::Acquire(wish) });
    let local = peer.sigma.local(peer.now, &name);
    assert_eq!((local.holders, local.waiters), (vec![], vec![CallId(3)]));
    assert_eq!(local.votes.map(|votes| votes.unknown), Some(3));
    assert_eq!(peer.sigma.names(None, 9), std::slice::from_ref(&name));
    assert!(peer.sigma.names(Some(&name), 9).is_empty() && peer.sigma.names(None, 0).is_empty());
}
