//! Watching a run from outside: for transcripts and stories, not for oracles.

use std::fmt::Display;

use sigmalock_core::{CallId, LockReply, LockRequest, PeerId};

use crate::history::{Record, TrueTime};

/// Told of everything that happens in a run. Every method does nothing unless overridden, and the
/// compiler removes what does nothing.
#[allow(unused_variables)]
pub trait Watch {
    /// A message is handed to the network; `arrives` is `None` if that loses it.
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Display,
        arrives: Option<TrueTime>,
    ) {
    }
    /// The network makes a copy of the message just sent.
    fn on_copy(&mut self, at: TrueTime, from: PeerId, to: PeerId, arrives: TrueTime) {}
    /// A message is handed to a protocol.
    fn on_deliver(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Display) {}
    /// A user asks for something.
    fn on_request(&mut self, at: TrueTime, peer: PeerId, call: CallId, request: &LockRequest) {}
    /// A protocol answers a user.
    fn on_reply(&mut self, at: TrueTime, peer: PeerId, call: CallId, reply: &LockReply) {}
    /// A protocol notes something.
    fn on_note(&mut self, at: TrueTime, peer: PeerId, note: &dyn Display) {}
    /// Something goes wrong, or right again.
    fn on_fault(&mut self, at: TrueTime, fault: &dyn Display) {}
    /// Something goes into the history.
    fn on_record(&mut self, record: &Record) {}
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Blind;

impl Watch for Blind {}
