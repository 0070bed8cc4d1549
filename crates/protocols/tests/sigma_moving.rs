//! How replicas move between hosts, message by message, with the [`Placement`] that drivers use.

use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Incarnation, Input, Key, LocalTime, LockRequest, Mode,
    Name, Patience, PeerId, Protocol, ReplicaId, RequestId, Span, Surroundings, Token, WallTime,
};
use sigmalock_protocols::parts::hosting::Open;
use sigmalock_protocols::parts::placement::key_of;
use sigmalock_protocols::parts::{Driven, Hlc, Placement, Quorum};
use sigmalock_protocols::sigma::message::{
    Answer, Ask, Claim, GrantId, HandOff, Hello, Message, Spent, Ticket, Used,
};
use sigmalock_protocols::sigma::{Config, Durable, DurableKey, Sigma, Timer};

const LEASE_MAX: Span = Span::from_secs(15);
const TTL: Span = Span::from_secs(10);
/// A client.
const CLIENT: PeerId = PeerId(100);

struct Around;

impl Surroundings for Around {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(1_750_000_000_000_000)
    }
    fn random(&mut self) -> u64 {
        4
    }
}

/// A peer, its disk and its clock.
struct Peer {
    sigma: Sigma,
    now: LocalTime,
    disk: Vec<(DurableKey, Durable)>,
}

/// Peer 1 is next to the replica, peer 2 a bit farther, peer 3 and so on farther still.
fn key(id: u64) -> Key {
    let mut key = key_of(&replica());
    key.0[0] ^= id as u8;
    key
}

impl Peer {
    fn new(id: u64) -> Self {
        Self::born(id, id, Birth::First)
    }

    fn born(id: u64, life: u64, birth: Birth<Sigma>) -> Self {
        let mut config = Config::new(Quorum::new(3, 2).unwrap());
        config.durable = true;
        let placement = Placement::new(PeerId(id), key(id), true, LEASE_MAX, Span::ZERO);
        let sigma = Sigma::new(PeerId(id), config, Box::new(Open::new(placement, 3)));
        let now = LocalTime::from_micros(id * 1_000_000_000);
        let mut peer = Self { sigma, now, disk: Vec::new() };
        peer.give(Input::Start { incarnation: Incarnation(life), birth });
        peer
    }

    fn give(&mut self, input: Input<Sigma>) -> Vec<(PeerId, Message)> {
        let mut effects = Vec::new();
        self.sigma.handle(&mut Context::new(self.now, &mut Around, &mut effects), input);
        let mut sent = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => sent.push((to, message)),
                Effect::Persist { key, value } => {
                    self.disk.retain(|(known, _)| *known != key);
                    self.disk.extend(value.map(|value| (key, value)));
                }
                _ => {}
            }
        }
        sent
    }

    fn placement(&mut self) -> &mut Placement {
        self.sigma.placement_mut().unwrap()
    }
    fn hear(&mut self, from: u64, message: Message) -> Vec<(PeerId, Message)> {
        self.give(Input::Receive { from: PeerId(from), message })
    }
    fn sees(&mut self, id: u64) -> Vec<(PeerId, Message)> {
        let now = self.now;
        self.placement().up(PeerId(id), key(id), true, now);
        self.give(Input::PeerUp(PeerId(id)))
    }
    fn loses(&mut self, id: u64) -> Vec<(PeerId, Message)> {
        let now = self.now;
        self.placement().down(PeerId(id), now, false);
        self.give(Input::PeerDown(PeerId(id)))
    }
    fn request(&mut self, call: u64) -> Option<Answer> {
        let sent = self.hear(CLIENT.0, Message::Request(ask(call)));
        sent.into_iter().find_map(|(_, message)| match message {
            Message::Response(response) => Some(response.answer),
            _ => None,
        })
    }
    fn renew(&mut self, call: u64, grant: GrantId) -> Vec<(PeerId, Message)> {
        let used = Used { token: Token(1), knew: None };
        let claim = Claim { replica: replica(), ticket: ticket(call), grant, used };
        self.hear(CLIENT.0, Message::Renew { sent: LocalTime::MIN, claims: vec![claim] })
    }
    /// Wakes the replica's timer after a while.
    fn wait(&mut self, span: Span) -> Vec<(PeerId, Message)> {
        self.now += span;
        self.give(Input::Fire(Timer::Replica(replica())))
    }
}

fn replica() -> ReplicaId {
    ReplicaId { name: Name::new("/a").unwrap(), index: 0 }
}
fn ticket(call: u64) -> Ticket {
    let request = RequestId { client: CLIENT, incarnation: Incarnation(9), call: CallId(call) };
    // Calls from 50 on read.
    let mode = if call < 50 { Mode::Exclusive } else { Mode::Shared };
    Ticket { order: Hlc::from_raw(call), request, mode }
}
fn ask(call: u64) -> Ask {
    let sent = LocalTime::from_micros(77);
    Ask { replica: replica(), ticket: ticket(call), ttl: TTL, sent, inside: false }
}
fn hello(of: &Peer, life: u64) -> Message {
    Message::Hello(Hello { life: Incarnation(life), sent: of.now })
}
fn hand_off(sent: &[(PeerId, Message)]) -> Box<HandOff> {
    let found = sent.iter().find_map(|(_, message)| match message {
        Message::HandOff(hand_off) => Some(hand_off.clone()),
        _ => None,
    });
    found.expect("a HAND-OFF")
}
fn says_handed_over(sent: &[(PeerId, Message)]) -> bool {
    sent.iter().any(|(_, message)| matches!(message, Message::HandedOver { .. }))
}
fn grant(answer: Option<Answer>) -> GrantId {
    match answer {
        Some(Answer::Yours { vote, .. }) => vote.grant,
        other => panic!("not a vote: {other:?}"),
    }
}
fn is_queued_behind_nobody(answer: Option<Answer>) -> bool {
    matches!(answer, Some(Answer::Queued { owner: None, .. }))
}

/// Peer 2 is alone and has given its vote to call 1; call 2 waits. Then peer 1, which is closer, appears.
fn old_host() -> (Peer, GrantId, Peer, Box<HandOff>) {
    let mut old = Peer::new(2);
    let given = grant(old.request(1));
    assert!(matches!(old.request(2), Some(Answer::Queued { owner: Some(_), .. })));
    let mut new = Peer::new(1);
    new.sees(2);
    old.sees(1);
    let sent = old.hear(1, hello(&new, 1));
    assert!(!says_handed_over(&sent), "not before all is acknowledged");
    let moved = hand_off(&sent);
    (old, given, new, moved)
}

#[test]
fn the_votes_of_all_readers_move_and_those_of_two_hosts_go_together() {
    let mut old = Peer::new(2);
    let grants = [50, 51].map(|reader| grant(old.request(reader)));
    let mut new = Peer::new(1);
    new.sees(2);
    old.sees(1);
    let moved = hand_off(&old.hear(1, hello(&new, 1)));
    assert_eq!(moved.owners.len(), 2);
    new.hear(2, Message::HandOff(moved));
    let good = |sent: Vec<(PeerId, Message)>| match &sent[..] {
        [(_, Message::Renewed { renewals, .. })] => renewals.iter().all(|renewal| renewal.good),
        other => panic!("not renewed: {other:?}"),
    };
    assert!(good(new.renew(50, grants[0])) && good(new.renew(51, grants[1])));
    assert!(matches!(new.request(52), Some(Answer::Yours { .. })), "a third joins them");
    assert!(matches!(new.request(1), Some(Answer::Queued { ahead: 3, .. })));
}

#[test]
fn a_vote_moves_with_its_replica_and_is_renewed_at_the_new_host() {
    let (mut old, given, mut new, moved) = old_host();
    assert!(is_queued_behind_nobody(new.request(1)), "it knows nothing yet");
    let taken = new.hear(2, Message::HandOff(moved));
    assert!(taken.iter().any(|(to, m)| *to == PeerId(2) && matches!(m, Message::Taken { .. })));
    let renewed = new.renew(1, given);
    let good = |m: &Message| matches!(m, Message::Renewed { renewals, .. } if renewals[0].good);
    assert!(renewed.iter().any(|(_, m)| good(m)), "{renewed:?}");
    assert_eq!(grant(new.request(1)), given);
    let all = taken.into_iter().flat_map(|(_, message)| old.hear(1, message)).collect::<Vec<_>>();
    assert!(says_handed_over(&all));
}

#[test]
fn the_old_host_forgets_the_replica_on_disk_too_and_sends_clients_on() {
    let (mut old, given, ..) = old_host();
    assert!(old.disk.iter().all(|(key, _)| *key == DurableKey::Floor), "{:?}", old.disk);
    let moved = |sent: Vec<(PeerId, Message)>| {
        let to_new = |m: &Message| matches!(m, Message::Moved { to: PeerId(1), .. });
        sent.len() == 1 && sent[0].0 == CLIENT && to_new(&sent[0].1)
    };
    assert!(moved(old.hear(CLIENT.0, Message::Request(ask(3)))));
    assert!(moved(old.renew(1, given)));
    let release = Message::Release { replica: replica(), ticket: ticket(1), spent: Spent::Nothing };
    assert!(moved(old.hear(CLIENT.0, release)));
}

#[test]
fn a_copy_of_a_hand_off_is_acknowledged_and_changes_nothing() {
    let (_, _, mut new, moved) = old_host();
    new.hear(2, Message::HandOff(moved.clone()));
    let release = Message::Release { replica: replica(), ticket: ticket(1), spent: Spent::Nothing };
    let sent = new.hear(CLIENT.0, release);
    let next = |m: &Message| matches!(m, Message::Response(r) if r.ticket == ticket(2));
    assert!(sent.iter().any(|(_, m)| next(m)), "call 2 came along and has its turn");
    let again = new.hear(2, Message::HandOff(moved.clone()));
    assert!(matches!(again[..], [(PeerId(2), Message::Taken { .. })]));
    let owner = new.request(3);
    assert!(matches!(owner, Some(Answer::Queued { owner: Some(o), .. }) if o == ticket(2)));
    let mut reborn = Peer::born(1, 11, Birth::Amnesiac);
    assert!(reborn.hear(2, Message::HandOff(moved)).is_empty(), "it was for another life");
}

#[test]
fn a_newcomer_votes_when_the_former_host_says_that_was_all_or_has_had_its_time() {
    let mut new = Peer::new(1);
    let greeting = new.sees(2);
    let [(PeerId(2), Message::Hello(hello))] = greeting[..] else { panic!("{greeting:?}") };
    assert!(is_queued_behind_nobody(new.request(1)));
    let word = |unsure| Message::HandedOver { hello, floor: Token(5), unsure, leaving: false };
    let stale = Hello { sent: LocalTime::MIN, ..hello };
    let floor = Token(5);
    let early = Message::HandedOver { hello: stale, floor, unsure: Span::ZERO, leaving: false };
    assert!(new.hear(2, early).is_empty(), "of an earlier session");
    assert!(new.hear(2, word(Span::from_secs(3))).is_empty(), "it cannot vouch for others yet");
    assert!(is_queued_behind_nobody(new.request(1)));
    let sent = new.wait(Span::from_secs(3));
    assert!(matches!(sent[..], [(CLIENT, Message::Response(_))]), "{sent:?}");
    let mut other = Peer::new(1);
    other.sees(2);
    assert!(is_queued_behind_nobody(other.request(1)));
    assert!(other.wait(LEASE_MAX - Span::from_secs(1)).is_empty());
    assert_eq!(other.wait(Span::from_secs(1)).len(), 1, "all former votes have run out");
}

#[test]
fn what_was_not_acknowledged_comes_back_without_its_vote_and_abstains() {
    let (mut old, _, _, moved) = old_host();
    let mut third = Peer::new(3);
    third.sees(2);
    old.sees(3);
    old.now += Span::from_secs(60);
    let again = old.give(Input::Fire(Timer::Neighbour(PeerId(1))));
    assert_eq!(hand_off(&again), moved, "it is repeated, not taken back");
    old.loses(1);
    assert!(is_queued_behind_nobody(old.request(1)), "nobody knows whether the vote was used");
    assert!(old.wait(LEASE_MAX - Span::from_secs(1)).is_empty());
    let sent = old.wait(Span::from_secs(1));
    assert!(sent.iter().any(|(to, _)| *to == CLIENT), "{sent:?}");
}

#[test]
fn who_sees_too_few_neither_votes_nor_renews_and_is_not_certain_afterwards() {
    let mut host = Peer::new(1);
    host.sees(2);
    host.sees(3);
    host.now += LEASE_MAX;
    let given = grant(host.request(1));
    host.loses(2);
    assert_eq!(host.renew(1, given).len(), 1, "two of three");
    host.loses(3);
    assert!(host.renew(1, given).is_empty(), "one of three");
    assert!(is_queued_behind_nobody(host.request(1)));
    host.sees(3);
    assert!(host.renew(1, given).is_empty(), "3 may have hosted it meanwhile");
}

#[test]
fn a_leaving_host_hands_all_over_and_says_that_it_leaves() {
    let mut host = Peer::new(1);
    grant(host.request(1));
    let mut next = Peer::new(2);
    next.sees(1);
    host.sees(2);
    assert!(says_handed_over(&host.hear(2, hello(&next, 2))), "2 hosts nothing of this");
    host.placement().leave();
    let moved = hand_off(&host.give(Input::Leave));
    let taken = next.hear(1, Message::HandOff(moved));
    let said = taken.into_iter().flat_map(|(_, m)| host.hear(2, m)).collect::<Vec<_>>();
    let leaving = |m: &Message| matches!(m, Message::HandedOver { leaving: true, .. });
    assert!(said.iter().any(|(_, m)| leaving(m)), "{said:?}");
}

#[test]
fn a_queue_survives_a_restart_one_record_a_waiter() {
    let mut host = Peer::new(1);
    grant(host.request(1));
    (2..=4).for_each(|call| assert!(host.request(call).is_some()));
    let release = Message::Release { replica: replica(), ticket: ticket(3), spent: Spent::Nothing };
    host.hear(CLIENT.0, release);
    let waiting = |peer: &Peer| {
        let waiters = peer.disk.iter().filter(|(key, _)| matches!(key, DurableKey::Waiter { .. }));
        waiters.count()
    };
    assert_eq!(waiting(&host), 2);
    let mut disk = host.disk;
    disk.reverse();
    let mut again = Peer::born(1, 8, Birth::Recovered(disk));
    let release = Message::Release { replica: replica(), ticket: ticket(1), spent: Spent::Nothing };
    let sent = again.hear(CLIENT.0, release);
    let next = |m: &Message| matches!(m, Message::Response(r) if r.ticket == ticket(2));
    assert!(sent.iter().any(|(_, m)| next(m)), "{sent:?}");
}

#[test]
fn a_client_follows_a_redirect_at_once_but_not_in_circles() {
    let mut client = Peer::new(9);
    client.sees(2);
    let wish = Acquire::exclusive(replica().name, TTL, Patience::Forever);
    let sent = client.give(Input::Request { id: CallId(1), request: LockRequest::Acquire(wish) });
    let Some(Message::Request(asked)) = sent.into_iter().find_map(|(to, message)| {
        let about = matches!(&message, Message::Request(ask) if ask.replica == replica());
        (about && to == PeerId(2)).then_some(message)
    }) else {
        panic!("peer 2 was not asked")
    };
    let moved = |to| Message::Moved { replica: replica(), ticket: asked.ticket, to: PeerId(to) };
    let followed = client.hear(2, moved(1));
    assert!(matches!(followed[..], [(PeerId(1), Message::Request(_))]), "{followed:?}");
    assert!(client.hear(1, moved(2)).is_empty(), "not round in circles");
    assert!(client.hear(7, moved(3)).is_empty(), "nobody asked peer 7");
}
