use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use sigmalock_core::{
    Acquire, CallId, Context, Effect, Input, LocalTime, LockReply, LockRequest, Name, Patience,
    PeerId, Protocol, Span, Surroundings, Token, WallTime,
};

use super::{Literal, LiteralConfig, LiteralMessage};
use crate::parts::Quorum;
use crate::parts::hosting::Fixed as Hosts;

const HOSTS: Hosts = Hosts { hosts: 3, replicas: 3 };

/// Peers 0 to 2 host the three replicas, two votes win, and peers 3 to 5 are clients. Messages wait in
/// `mail` until a test delivers them.
struct Table {
    peers: Vec<Literal>,
    mail: Vec<(PeerId, PeerId, LiteralMessage)>,
    told: Vec<(u64, LockReply)>,
    calls: u64,
}

struct Fixed;
impl Surroundings for Fixed {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(0)
    }
    fn random(&mut self) -> u64 {
        0
    }
}

impl Table {
    fn new() -> Self {
        let config =
            LiteralConfig { obvious_token: true, ..LiteralConfig::new(Quorum::new(3, 2).unwrap()) };
        let peers = (0..6)
            .map(|peer| Literal::new(PeerId(peer), config.clone(), Box::new(HOSTS)))
            .collect();
        Self { peers, mail: Vec::new(), told: Vec::new(), calls: 0 }
    }
    fn feed(&mut self, peer: u64, input: Input<Literal>) {
        let (mut effects, mut fixed) = (Vec::new(), Fixed);
        let mut cx = Context::new(LocalTime::from_micros(1), &mut fixed, &mut effects);
        self.peers[peer as usize].handle(&mut cx, input);
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.mail.push((PeerId(peer), to, message)),
                Effect::Reply { reply, .. } => self.told.push((peer, reply)),
                _ => {}
            }
        }
    }
    fn acquire(&mut self, peer: u64) -> CallId {
        let (name, ttl) = (Name::new("/a").unwrap(), Span::from_secs(9));
        let wish = Acquire::exclusive(name, ttl, Patience::Forever);
        self.calls += 1;
        let id = CallId(self.calls);
        self.feed(peer, Input::Request { id, request: LockRequest::Acquire(wish) });
        id
    }
    fn release(&mut self, peer: u64, held: CallId) {
        let request = LockRequest::Release { held };
        self.feed(peer, Input::Request { id: CallId(0), request });
    }
    /// Delivers the oldest message from one peer to another.
    fn deliver(&mut self, from: u64, to: u64) {
        let wanted = |m: &(PeerId, PeerId, LiteralMessage)| m.0.0 == from && m.1.0 == to;
        let at = self.mail.iter().position(wanted).expect("nothing under way there");
        let (from, to, message) = self.mail.remove(at);
        self.feed(to.0, Input::Receive { from, message });
    }
    fn settle(&mut self) {
        while let Some((from, to, _)) = self.mail.first() {
            self.deliver(from.0, to.0);
        }
    }
    fn granted(&self) -> Vec<(u64, Option<Token>)> {
        let grant = |(peer, reply): &(u64, LockReply)| match reply {
            LockReply::Granted { token, .. } => Some((*peer, *token)),
            _ => None,
        };
        self.told.iter().filter_map(grant).collect()
    }
    fn owners(&self) -> String {
        let mut text = String::new();
        for replica in self.peers.iter().flat_map(|peer| peer.replicas.values()) {
            let owner = replica.owner.map_or(0, |(owner, _)| owner.0);
            write!(text, "{owner}").unwrap();
        }
        text
    }
}

#[test]
fn three_clients_with_a_vote_each_yield_and_are_served_in_order_of_their_timestamps() {
    let mut t = Table::new();
    let calls = [t.acquire(3), t.acquire(4), t.acquire(5)];
    for (client, replica) in [(3, 0), (4, 1), (5, 2)] {
        t.deliver(client, replica);
    }
    assert_eq!(t.owners(), "345");
    t.settle();
    assert_eq!(t.owners(), "333");
    t.release(3, calls[0]);
    t.settle();
    t.release(4, calls[1]);
    t.settle();
    t.release(5, calls[2]);
    t.settle();
    assert_eq!(t.owners(), "000");
    assert_eq!(t.granted().iter().map(|(peer, _)| *peer).collect::<Vec<_>>(), [3, 4, 5]);
}

/// Hole 5.
#[test]
fn a_release_that_overtakes_its_request_leaves_a_ghost_that_keeps_the_vote() {
    let mut t = Table::new();
    let call = t.acquire(3);
    for replica in [0, 1] {
        t.deliver(3, replica);
        t.deliver(replica, 3);
    }
    t.release(3, call);
    // The RELEASE to replica 2 was sent last but arrives first.
    let last = t.mail.pop().unwrap();
    t.feed(2, Input::Receive { from: last.0, message: last.2 });
    t.settle();
    assert_eq!(t.owners(), "003", "client 3 has left, and nobody will ever say so");
}

/// Hole 3.
#[test]
fn a_client_that_asks_again_takes_the_votes_of_its_former_request_for_its_own() {
    let mut t = Table::new();
    let first = t.acquire(3);
    t.settle();
    t.acquire(4);
    t.settle();
    t.release(3, first);
    // The new REQUESTs overtake the old RELEASEs: every replica still says "owner is 3".
    let releases: Vec<_> = t.mail.drain(..).collect();
    t.acquire(3);
    t.settle();
    t.mail = releases;
    t.settle();
    let granted: Vec<_> = t.granted().into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(granted, [3, 3, 4], "both believe to be inside");
    assert_eq!(t.owners(), "444");
}

/// Hole 10.
#[test]
fn the_highest_grant_counter_is_no_token_because_it_goes_backwards() {
    let mut t = Table::new();
    // Client 4 reaches only replica 0, and gives up; twice.
    for _ in 0..2 {
        let call = t.acquire(4);
        t.deliver(4, 0);
        let request = LockRequest::Cancel { call };
        t.feed(4, Input::Request { id: CallId(0), request });
        t.mail.retain(|(_, to, _)| to.0 == 0);
        t.settle();
        t.mail.clear();
    }
    let call = t.acquire(5);
    t.settle();
    t.release(5, call);
    t.settle();
    t.acquire(3);
    for replica in [1, 2] {
        t.deliver(3, replica);
        t.deliver(replica, 3);
    }
    assert_eq!(t.granted(), [(5, Some(Token(3))), (3, Some(Token(2)))]);
}
