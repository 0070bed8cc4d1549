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

/// Writes one line for everything that happens.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    /// The lines so far.
    pub lines: Vec<String>,
}

impl Transcript {
    fn line(&mut self, at: TrueTime, what: impl Display) {
        self.lines.push(format!("{:>10.3}ms  {what}", at.0 as f64 / 1e3));
    }
}

impl Watch for Transcript {
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Display,
        arrives: Option<TrueTime>,
    ) {
        let lost = if arrives.is_none() { "  (lost)" } else { "" };
        self.line(at, format_args!("{from} → {to}  {message}{lost}"));
    }
    fn on_copy(&mut self, at: TrueTime, from: PeerId, to: PeerId, arrives: TrueTime) {
        let later = arrives.since(at);
        self.line(at, format_args!("{from} → {to}  (a copy arrives {later} later)"));
    }
    fn on_deliver(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Display) {
        self.line(at, format_args!("{to} ← {from}  {message}"));
    }
    fn on_request(&mut self, at: TrueTime, peer: PeerId, call: CallId, request: &LockRequest) {
        self.line(at, format_args!("{peer} asks  {}: {request:?}", call.0));
    }
    fn on_reply(&mut self, at: TrueTime, peer: PeerId, call: CallId, reply: &LockReply) {
        self.line(at, format_args!("{peer} is told  {}: {reply:?}", call.0));
    }
    fn on_note(&mut self, at: TrueTime, peer: PeerId, note: &dyn Display) {
        self.line(at, format_args!("{peer} notes  {note}"));
    }
    fn on_fault(&mut self, at: TrueTime, fault: &dyn Display) {
        self.line(at, format_args!("*** {fault}"));
    }
}
