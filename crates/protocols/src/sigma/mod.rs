//! Sigma: mutual exclusion by queuing and cooperation at n logical replicas.
//!
//! Shi-Ding Lin, Qiao Lian, Ming Chen, Zheng Zhang: *A Practical Distributed Mutual Exclusion Protocol
//! in Dynamic Peer-to-Peer Systems*, 2004. [`literal`] is the paper's pseudo code and nothing else;
//! this module is what it takes to live with it.
//!
//! # The idea
//!
//! A name is guarded by n replicas, each with one vote and a queue. A client asks all of them; with
//! the votes of m, more than half, it is inside. Who does not get a vote is queued, in the order of
//! the tickets, and is told when its turn comes. When votes are split so that nobody can win, those who
//! hold some yield them, and the queues, being in the same order everywhere, agree on a winner.
//! [`message`] tells the conversation.
//!
//! # What it assumes
//!
//! - Messages may be lost, doubled, delayed up to `flight_max` and overtaken, but not forged: peers crash,
//!   they do not lie.
//! - Which peer hosts a replica does not change; or, with [`crate::parts::hosting::Open`], hosts hand their replicas over
//!   and views of the swarm settle within the time that [`crate::parts::Placement`] allows for.
//! - Clock rates differ by less than the margin (±0.5 % each); offsets and wall clocks do not matter
//!   for exclusion.
//! - Fewer than 2m − n hosts of a name *claim* to remember what they have forgotten: a host that knows
//!   that it lost its memory abstains for the longest lease, during which all its votes run out.
//!
//! # What it guarantees
//!
//! - At most one request holds an unexpired guard for a name, or readers only, or one for each slot of a
//!   semaphore, whatever crashes, pauses and partitions there are.
//! - Tokens grow from guard to guard, so that a resource that refuses lower ones is never touched by
//!   a holder that overslept. For hosts that lost their memory this rests on their wall clocks too.
//! - Whoever waits gets in, roughly in the order of asking, as long as it can reach m hosts; who cannot is in
//!   nobody's way.
//!
//! It does *not* guarantee that a sleeping holder knows that its time is up (that is what the token is
//! for), nor first-come-first-served to the letter (REQUESTs may overtake each other).
//!
//! # Votes
//!
//! A vote is lent, not given: for the `ttl` asked for if it answers a REQUEST, only for the *claim window*
//! if it comes to a waiter from the queue, who may be dead or asleep; its first RENEW or SEAL makes it a
//! full lease. The client stops believing in it before the host does ([`sigmalock_core::lease`]).
//!
//! # Tokens
//!
//! With each grant a host *proposes* a token, one above the highest it knows of, and keeps the proposal
//! for as long as the vote is out. When m votes propose the same token it is written down at m hosts and
//! may be shown: it is *sealed*, at no extra cost. Otherwise the winner has the voters write down one above
//! them all (SEAL). Each of those hosts either is told the token (RENEW, RELEASE) or, when the vote lapses,
//! takes its proposal for shown. So whoever wins later meets a host that proposes more.
//!
//! What is called a token here is the last of a block of `tokens_per_grant`: all of the block lie above
//! every block before, and all count as shown once one is. The winner's user is given the first; whoever
//! hands the lock on locally ([`crate::agent`]) shows the others, in order.
//!
//! Forgetting would break this. A host that does not remember a name is *amnesiac*: it proposes what its
//! wall clock says, if that is more. This ends once it knows a token that is higher than all it can have
//! forgotten: its own proposal, when shown or perhaps shown; or one whose winner had, when it was sealed,
//! heard from this very life of the host as a voter.
//!
//! # Where to read on
//!
//! [`message`] first.
//!
//! The host's side: `host` keeps the table of replicas; `replica` is one of them, with its vote and
//! `owners`, `queue`, tombstones and `tokens`; `answering` is what it says to those who ask, `saving` what it
//! writes down. `moving` is how replicas move, `handing` and `payload` what one takes along, `neighbours` what
//! a host knows of other peers, `state_transfer` how the newcomer of a view finds out which votes are out; `lying` what it
//! does in experiments where some lie.
//!
//! The client's side: `client` keeps the table of requests; `attempt` is one of them, with the paper's
//! three outcomes in `decide`; `winning` is the first of them, `yielding` the third, `withdrawal` what it does while it cannot win,
//! `sealing` what it does about tokens, `speech` what it says and when; `tally` is what it knows of all
//! replicas, `seat` of one. What is the same with every lock is in [`crate::parts::users`].

mod answering;
mod attempt;
mod client;
mod config;
mod handing;
mod host;
mod inspect;
pub mod literal;
mod lying;
pub mod message;
mod moving;
mod mutant;
mod neighbours;
mod owners;
mod payload;
mod queue;
mod replica;
mod saving;
mod sealing;
mod seat;
mod speech;
mod state_transfer;
mod tally;
mod tokens;
mod winning;
mod withdrawal;
mod yielding;

use alloc::boxed::Box;
use core::fmt;

use sigmalock_core::{
    CallId, Context, Input, LockReply, LockRequest, PeerId, Protocol, ReplicaId, Span, Token,
};

pub use config::{Config, Limits};
pub use literal::{Literal, LiteralConfig};
pub use message::{GrantId, Message, Ticket};
pub use mutant::Mutant;
pub use saving::Saved;

use client::Client;
use host::Host;

use crate::agreed::OverViews;
use crate::catalogue::{Card, Family, Listed, Membership, Plan, Promises, Variant};
use crate::parts::hosting::{Hosting, Terms, World};
use crate::parts::{Driven, GoesBy, Placement, Rules, Sound};

/// What either side is given for one input.
type Cx<'a, 'b, R> = &'a mut World<'b, Sigma<R>>;

/// What there is to know of it.
pub const CARD: Card = Card {
    name: "sigma",
    about: "queues at each replica, losers yield",
    source: "Lin, Lian, Chen, Zhang 2004",
    family: Family::Lock,
    memberships: &Membership::ALL,
    variants: &Variant::ALL,
    promises: Promises::ALL,
    answers: &[("RESPONSE", &["REQUEST", "YIELD", "SEAL"]), ("RENEWED", &["RENEW"])],
    mutants: Mutant::CARDS,
};

/// One peer's share of Sigma: a client and a host at once.
#[derive(Debug, Clone, Hash)]
pub struct Sigma<R = Sound> {
    me: PeerId,
    config: Config<R>,
    hosting: Box<dyn Hosting>,
    /// Both sides, from `Start` on.
    roles: Option<(Client<R>, Host<R>)>,
}

/// What Sigma sets timers for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The next renewal, or the next deadline of a guard.
    Renewal,
    /// Something is due for a request: an answer is late, patience ends, a vote runs out.
    Request(CallId),
    /// Something is due at a replica: a lease ends, or it has been idle for long.
    Replica(ReplicaId),
    /// A peer that was greeted, or was handed something, has not answered.
    Neighbour(PeerId),
    /// A newcomer has not been answered by all; or something else has let it vote.
    Join,
}

/// Where Sigma keeps what must survive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum DurableKey {
    /// As high as every token of every forgotten name. Its presence shows that every vote is on disk.
    Floor,
    /// A replica.
    Replica(ReplicaId),
    /// One who waits at it: a record each, so that a long queue is not written anew with every arrival.
    Waiter {
        /// The replica.
        replica: ReplicaId,
        /// The request.
        ticket: Ticket,
    },
}

/// What Sigma keeps there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Durable {
    /// Under [`DurableKey::Floor`].
    Floor(Token),
    /// Under [`DurableKey::Replica`].
    Replica(Saved),
    /// Under [`DurableKey::Waiter`]: the lease it wants.
    Waiter(Span),
}

/// Moments worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// A response was overtaken by a newer one, and dropped.
    StaleResponse,
    /// A REQUEST arrived after the RELEASE of the same request, and was dropped.
    RequestOfTheDead,
    /// A vote came back by YIELD.
    Yielded,
    /// An owner was asked to yield to an older request.
    Recalled,
    /// A vote from the queue was not claimed in time and passed on.
    ClaimLapsed,
    /// A lease ran out and its vote passed on.
    LeaseLapsed,
    /// A waiter was not heard from for too long and was dropped.
    WaiterExpired,
    /// A waiter was told that the queue is full.
    QueueFull,
    /// The votes proposed different tokens: one more round trip.
    SealedSlowly,
    /// Votes ran out while their token was being sealed.
    SealAbandoned,
    /// A vote came for a request that is over, and was sent back.
    LateVoteReturned,
    /// This host has as many replicas as it takes; a message was dropped.
    TooManyReplicas,
    /// A replica went to another host.
    HandedOff,
    /// A replica came from another host.
    TakenOver,
    /// A client was told who hosts the replica it asked about.
    SentOn,
    /// A message that makes no sense here was dropped.
    Malformed,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StaleResponse => "stale response dropped",
            Self::RequestOfTheDead => "request of the dead dropped",
            Self::Yielded => "vote yielded",
            Self::Recalled => "younger owner recalled",
            Self::ClaimLapsed => "unclaimed vote passed on",
            Self::LeaseLapsed => "lease lapsed",
            Self::WaiterExpired => "silent waiter dropped",
            Self::QueueFull => "queue full",
            Self::SealedSlowly => "token needs sealing",
            Self::SealAbandoned => "seal abandoned",
            Self::LateVoteReturned => "late vote returned",
            Self::TooManyReplicas => "too many replicas",
            Self::HandedOff => "replica handed off",
            Self::TakenOver => "replica taken over",
            Self::SentOn => "client sent on to another host",
            Self::Malformed => "malformed message dropped",
        })
    }
}

impl<R: Rules> Sigma<R> {
    /// A peer that has not started yet.
    #[must_use]
    pub fn new(me: PeerId, config: Config<R>, hosting: Box<dyn Hosting>) -> Self {
        Self { me, config, hosting, roles: None }
    }
}

impl<R: Rules> Listed<R> for Sigma<R> {
    fn plan(me: PeerId, plan: &Plan<R>) -> Self {
        let config = Config {
            lease_max: plan.lease_max,
            claim_window: plan.claim_window,
            round_trip_worst: plan.round_trip_worst,
            flight_max: plan.flight_max,
            tokens_per_grant: plan.tokens_per_grant,
            client_only: plan.client_only,
            durable: plan.durable,
            ..Config::with_rules(plan.quorum, plan.rules)
        };
        Self::new(me, config, plan.hosting.clone())
    }
}

impl<R: Rules> Driven for Sigma<R> {
    fn placement(&self) -> Option<&Placement> {
        self.hosting.placement()
    }
    fn placement_mut(&mut self) -> Option<&mut Placement> {
        self.hosting.placement_mut()
    }
    fn hosted(&self) -> usize {
        self.roles.as_ref().map_or(0, |(_, host)| host.len())
    }
    fn may_go(&self) -> bool {
        self.roles.as_ref().is_none_or(|(_, host)| host.has_handed_over())
    }
}

impl<R: Rules> OverViews for Sigma<R> {
    fn is_promise(message: &Message) -> bool {
        message.is_promise()
    }
    fn stand(&mut self, terms: Terms) {
        self.hosting.stand(terms);
    }
    fn go_on(&mut self, cx: &mut Context<'_, Self>) {
        self.handle(cx, Input::Fire(Timer::Join));
    }
    fn settled(&self) -> u64 {
        self.roles.as_ref().map_or(0, |(_, host)| host.settled())
    }
}

impl<R: Rules> GoesBy<R> for Sigma<R> {}

impl<R: Rules> Protocol for Sigma<R> {
    type Message = Message;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = Timer;
    type DurableKey = DurableKey;
    type Durable = Durable;
    type Note = Note;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        if self.config.breaks(Mutant::PersistsLast) {
            mutant::persist_last(cx, |cx| self.take_in(cx, input));
        } else {
            self.take_in(cx, input);
        }
    }
}

impl<R: Rules> Sigma<R> {
    fn take_in(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        let follows = match &input {
            Input::ViewChanged(view) => self.hosting.follow(view),
            _ => true,
        };
        let cx = &mut World::new(cx, &*self.hosting);
        if let Input::Start { incarnation, birth } = input {
            let host = Host::start(self.me, self.config.clone(), cx, incarnation, birth);
            self.roles = Some((Client::new(self.config.clone(), self.me, incarnation), host));
            return;
        }
        let Some((client, host)) = &mut self.roles else { return };
        client.check_guards(cx);
        match input {
            Input::Receive { from, message } => receive(client, host, cx, from, message),
            Input::Request { id, request } => client.on_request(cx, id, request),
            Input::Fire(Timer::Renewal) => client.renew(cx),
            Input::Fire(Timer::Request(call)) => client.on_timer(cx, call),
            Input::Fire(Timer::Replica(id)) => host.on_timer(cx, &id),
            Input::Fire(Timer::Neighbour(peer)) => host.on_neighbour_timer(cx, peer),
            Input::PeerUp(peer) => {
                host.on_peer_up(cx, peer);
                client.on_peer(cx, peer, true);
            }
            Input::PeerDown(peer) => {
                host.on_peer_down(cx, peer);
                client.on_peer(cx, peer, false);
            }
            Input::Leave => host.on_leave(cx),
            Input::Fire(Timer::Join) => host.fetch(cx),
            Input::ViewChanged(view) if follows => {
                host.on_view(cx, &view);
                client.on_view(cx, &view);
            }
            Input::Start { .. } | Input::ViewChanged(_) => {}
        }
    }
}

fn receive<R: Rules>(
    client: &mut Client<R>, host: &mut Host<R>, cx: Cx<'_, '_, R>, from: PeerId, message: Message,
) {
    match message {
        Message::Request(ask) => host.on_request(cx, from, &ask),
        Message::Yield(ask, grant) => host.on_yield(cx, from, &ask, grant),
        Message::Seal(ask, grant, token) => host.on_seal(cx, from, &ask, grant, token),
        Message::Withdraw { replica, ticket, grant } => {
            host.on_withdraw(cx, from, &replica, ticket, grant);
        }
        Message::Release { replica, ticket, spent } => {
            host.on_release(cx, from, &replica, ticket, spent);
        }
        Message::Renew { sent, claims } => host.on_renew(cx, from, sent, &claims),
        Message::Response(response) => client.on_response(cx, from, &response),
        Message::Recall { replica, ticket, grant } => {
            client.on_recall(cx, from, &replica, ticket, grant);
        }
        Message::Renewed { echo, renewals } => client.on_renewed(cx, echo, &renewals),
        Message::Moved { replica, ticket, to } => client.on_moved(cx, from, &replica, ticket, to),
        Message::Hello(hello) => host.on_hello(cx, from, hello),
        Message::HandOff(hand_off) => host.on_hand_off(cx, from, &hand_off),
        Message::Taken { id, replica } => host.on_taken(cx, from, id, &replica),
        Message::HandedOver { hello, floor, unsure, leaving } => {
            host.on_handed_over(cx, from, hello, floor, unsure, leaving);
        }
        Message::Fetch { after } => host.on_fetch(cx, from, after),
        Message::Votes(votes) => host.on_votes(cx, from, *votes),
    }
}
