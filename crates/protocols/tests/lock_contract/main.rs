//! One contract for every protocol that guards locks: what [`sigmalock_core::LockRequest`] promises to whoever uses one.
//! A protocol that passes can stand in for another.

mod bench;
mod beside;
mod facts;

use sigmalock_core::{LockReply, LockRequest, PeerId, Protocol, Span};
use sigmalock_protocols::agent::{self, Agent};
use sigmalock_protocols::agreed::{self, Agreed, Beginning, OverViews};
use sigmalock_protocols::catalogue::Variant;
use sigmalock_protocols::parts::hosting::{ByView, Fixed};
use sigmalock_protocols::parts::{Ask, Beside, Hosting, Quorum, Told};
use sigmalock_protocols::sigma::{self, Literal, LiteralConfig, Sigma};
use sigmalock_protocols::strawman::{self, Strawman};

use bench::{HOSTS, Lock};

fn quorum() -> Quorum {
    Quorum::new(HOSTS as u16, 2).unwrap()
}

fn hosts(me: PeerId) -> bool {
    me.0 < HOSTS
}

/// The first peers host a replica each.
fn fixed() -> Box<dyn Hosting> {
    Box::new(Fixed { hosts: HOSTS, replicas: HOSTS as u16 })
}

fn sigma(me: PeerId) -> sigma::Config {
    sigma::Config { client_only: !hosts(me), ..sigma::Config::new(quorum()) }
}

impl Lock for Sigma {
    fn peer(me: PeerId) -> Self {
        Self::new(me, sigma(me), fixed())
    }
}

/// A protocol that can be run over views, before it is.
trait Inside: OverViews {
    fn inside(me: PeerId) -> Self;
}

impl Inside for Sigma {
    fn inside(me: PeerId) -> Self {
        Self::new(me, sigma(me), Box::new(ByView::default()))
    }
}

impl Inside for Agent<Sigma> {
    fn inside(me: PeerId) -> Self {
        Self::new(Sigma::inside(me), agent::Config::new(1))
    }
}

impl Inside for Strawman {
    fn inside(me: PeerId) -> Self {
        let config = strawman::Config::new(quorum(), Variant::Shipped);
        Self::new(me, config, Box::new(ByView::default()))
    }
}

/// Users ask the first.
impl<A: Inside, B: Inside> Inside for Beside<A, B> {
    fn inside(me: PeerId) -> Self {
        Self::new(A::inside(me), B::inside(me))
    }
}

impl<P> Lock for Agreed<P>
where
    P: Inside<Request: TryFrom<Ask, Error = Ask>, Reply: Into<Told>>,
{
    const READY: Span = Span::from_secs(60);

    fn peer(me: PeerId) -> Self {
        let beginning = match me.0 {
            0 => Beginning::Found,
            host if host < HOSTS => Beginning::Join,
            _ => Beginning::Watch,
        };
        Self::new(me, agreed::Config::new(Span::from_secs(15), beginning), P::inside(me))
    }
}

impl Lock for Literal {
    const AS_PUBLISHED: bool = true;

    fn peer(me: PeerId) -> Self {
        Self::new(me, LiteralConfig::whole(quorum()), fixed())
    }
}

impl Lock for Strawman {
    fn peer(me: PeerId) -> Self {
        Self::new(me, strawman::Config::new(quorum(), Variant::Shipped), fixed())
    }
}

impl<P> Lock for Agent<P>
where
    P: Lock + Protocol<Request = LockRequest, Reply = LockReply>,
{
    const READY: Span = P::READY;

    fn peer(me: PeerId) -> Self {
        Self::new(P::peer(me), agent::Config::new(1))
    }
}

/// The whole contract, for one protocol.
macro_rules! lock_contract {
    ($name:ident: $protocol:ty: $($fact:ident)*) => {
        mod $name {
            use super::*;
            $(#[test] fn $fact() { facts::$fact::<$protocol>(); })*
        }
    };
    ($($name:ident: $protocol:ty,)*) => {
        $(lock_contract! {
            $name: $protocol:
            who_asks_for_a_free_lock_is_let_in_once_until_a_deadline
            who_holds_a_lock_is_extended_for_as_long_as_it_likes
            who_gives_it_back_is_told_so_under_that_call_and_the_next_gets_in
            what_is_over_or_was_never_there_is_no_call
            who_waits_can_cancel_and_who_is_inside_cannot
            who_only_tries_is_answered_soon
            who_waits_for_a_time_is_told_at_its_end
            one_call_is_one_request
            who_is_cut_off_is_told_by_its_deadline_and_the_next_gets_in_after_it
            who_is_put_out_is_told_and_the_next_waits_until_it_has_left
            who_does_not_answer_is_not_renewed
            a_ttl_that_cannot_be_kept_and_a_mode_that_there_is_not_are_refused
            users_of_one_peer_take_turns
            a_new_life_knows_no_call_of_the_last_and_gets_in_after_it
            with_most_of_those_who_guard_away_nobody_gets_in
        })*
    };
}

lock_contract! {
    shipped_sigma: Sigma,
    literal_sigma: Literal,
    the_strawman: Strawman,
    agreed_sigma: Agreed<Sigma>,
    agent_over_sigma: Agent<Sigma>,
    agreed_agents: Agreed<Agent<Sigma>>,
    agent_over_the_strawman: Agent<Strawman>,
    sigma_beside_the_strawman: Agreed<Beside<Agent<Sigma>, Strawman>>,
    the_strawman_beside_sigma: Agreed<Beside<Strawman, Sigma>>,
}
