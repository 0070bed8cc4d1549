//! Watching a run from outside: for transcripts and stories, not for oracles.

use std::fmt::{Debug, Display};

use sigmalock_core::{CallId, Message, PeerId};

use crate::faults::Fault;
use crate::history::{Record, TrueTime};

/// A message of whatever protocol, to those who watch.
pub trait Spoken: Display {
    /// The kind, as counters and charts show it.
    fn kind(&self) -> &'static str;
}

impl<M: Message> Spoken for M {
    fn kind(&self) -> &'static str {
        Message::kind(self)
    }
}

/// Told of everything that happens in a run. Every method does nothing unless overridden, and the
/// compiler removes what does nothing.
#[allow(unused_variables)]
pub trait Watch {
    /// A message is handed to the network; `arrives` is `None` if that loses it.
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken,
        arrives: Option<TrueTime>,
    ) {
    }
    /// The network makes a copy of the message just sent.
    fn on_copy(&mut self, at: TrueTime, from: PeerId, to: PeerId, arrives: TrueTime) {}
    /// A message is handed to a protocol.
    fn on_deliver(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken) {}
    /// A message that has come is lost: its receiver is down, or has stood still for too long.
    fn on_lose(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken) {}
    /// A timer fires.
    fn on_fire(&mut self, at: TrueTime, peer: PeerId, timer: &dyn Debug) {}
    /// A user asks for something.
    fn on_request(&mut self, at: TrueTime, peer: PeerId, call: CallId, request: &dyn Debug) {}
    /// A protocol answers a user.
    fn on_reply(&mut self, at: TrueTime, peer: PeerId, call: CallId, reply: &dyn Debug) {}
    /// A protocol notes something.
    fn on_note(&mut self, at: TrueTime, peer: PeerId, note: &dyn Display) {}
    /// Something goes wrong, or right again.
    fn on_fault(&mut self, at: TrueTime, fault: &Fault) {}
    /// The faults are over.
    fn on_heal(&mut self, at: TrueTime) {}
    /// Something goes into the history.
    fn on_record(&mut self, record: &Record) {}
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Blind;

impl Watch for Blind {}

impl<W: Watch + ?Sized> Watch for &mut W {
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken,
        arrives: Option<TrueTime>,
    ) {
        (**self).on_send(at, from, to, message, arrives);
    }
    fn on_copy(&mut self, at: TrueTime, from: PeerId, to: PeerId, arrives: TrueTime) {
        (**self).on_copy(at, from, to, arrives);
    }
    fn on_deliver(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken) {
        (**self).on_deliver(at, from, to, message);
    }
    fn on_lose(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken) {
        (**self).on_lose(at, from, to, message);
    }
    fn on_fire(&mut self, at: TrueTime, peer: PeerId, timer: &dyn Debug) {
        (**self).on_fire(at, peer, timer);
    }
    fn on_request(&mut self, at: TrueTime, peer: PeerId, call: CallId, request: &dyn Debug) {
        (**self).on_request(at, peer, call, request);
    }
    fn on_reply(&mut self, at: TrueTime, peer: PeerId, call: CallId, reply: &dyn Debug) {
        (**self).on_reply(at, peer, call, reply);
    }
    fn on_note(&mut self, at: TrueTime, peer: PeerId, note: &dyn Display) {
        (**self).on_note(at, peer, note);
    }
    fn on_fault(&mut self, at: TrueTime, fault: &Fault) {
        (**self).on_fault(at, fault);
    }
    fn on_heal(&mut self, at: TrueTime) {
        (**self).on_heal(at);
    }
    fn on_record(&mut self, record: &Record) {
        (**self).on_record(record);
    }
}
