//! The liar: a peer that does not keep to its protocol, among others that do.
//!
//! A layer over any protocol that knows a lie ([`Deceitful`]). Who is honest is run as if the layer was not there; who
//! lies says what the protocol inside would never say. For experiments: no live peer is one.

use alloc::vec::Vec;

use sigmalock_core::{Birth, Context, Effect, Input, Protocol};

use crate::catalogue::{Card, Family, Membership, Promises, Variant};
use crate::parts::{Driven, Placement};

/// What there is to know of it.
pub const CARD: Card = Card {
    name: "liar",
    about: "some peers lie",
    source: "our own",
    family: Family::Layer,
    memberships: &[Membership::Fixed, Membership::Open],
    variants: &[Variant::Shipped],
    promises: Promises::EXCLUSION,
    answers: &[],
    mutants: &[],
};

/// A protocol that knows a lie.
pub trait Deceitful: Protocol {
    /// Does what it would do, but as one who lies.
    fn lie(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>);
}

/// A peer that may lie.
#[derive(Debug, Clone)]
pub struct Liar<P> {
    inner: P,
    lies: bool,
}

impl<P: Deceitful> Liar<P> {
    /// One that has not started yet, and whether it lies.
    #[must_use]
    pub const fn new(inner: P, lies: bool) -> Self {
        Self { inner, lies }
    }
}

impl<P: Deceitful> Protocol for Liar<P> {
    type Message = P::Message;
    type Request = P::Request;
    type Reply = P::Reply;
    type Timer = P::Timer;
    type DurableKey = P::DurableKey;
    type Durable = P::Durable;
    type Note = P::Note;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        let input = match input {
            Input::Start { incarnation, birth } => {
                let birth = match birth {
                    Birth::First => Birth::First,
                    Birth::Recovered(records) => Birth::Recovered(records),
                    Birth::Amnesiac => Birth::Amnesiac,
                };
                Input::Start { incarnation, birth }
            }
            Input::Receive { from, message } => Input::Receive { from, message },
            Input::Fire(timer) => Input::Fire(timer),
            Input::Request { id, request } => Input::Request { id, request },
            Input::PeerUp(peer) => Input::PeerUp(peer),
            Input::PeerDown(peer) => Input::PeerDown(peer),
            Input::Leave => Input::Leave,
            Input::ViewChanged(view) => Input::ViewChanged(view),
        };
        let mut effects = Vec::new();
        let inside = &mut cx.inner(&mut effects);
        if self.lies {
            self.inner.lie(inside, input);
        } else {
            self.inner.handle(inside, input);
        }
        for effect in effects {
            match effect {
                Effect::Persist { key, value } => cx.persist(key, value),
                Effect::Send { to, message } => cx.send(to, message),
                Effect::SetTimer { timer, at } => cx.set_timer(timer, at),
                Effect::CancelTimer(timer) => cx.cancel_timer(timer),
                Effect::Reply { id, reply } => cx.reply(id, reply),
                Effect::Note(note) => cx.note(note),
            }
        }
    }
}

impl<P: Deceitful + Driven> Driven for Liar<P> {
    fn placement(&self) -> Option<&Placement> {
        self.inner.placement()
    }
    fn placement_mut(&mut self) -> Option<&mut Placement> {
        self.inner.placement_mut()
    }
    fn hosted(&self) -> usize {
        self.inner.hosted()
    }
    fn may_go(&self) -> bool {
        self.inner.may_go()
    }
}
