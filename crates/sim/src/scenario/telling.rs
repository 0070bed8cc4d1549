//! A run in lines that a reader enjoys.

use std::collections::BTreeSet;
use std::fmt::Display;

use sigmalock_core::{Mode, PeerId, RequestId, Span};
use sigmalock_protocols::views::{Standing, count};

use super::Cast;
use crate::faults::Fault;
use crate::history::{Ending, OfViews, Record, TrueTime, What};
use crate::watch::{Spoken, Watch};

/// Tells a run.
pub(super) struct Teller<'a> {
    cast: &'a Cast,
    /// Whether it takes more than the peer to say who somebody is.
    several_users: bool,
    words: Words,
    pub(super) lines: Vec<String>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(cast: &'a Cast, several_users: bool) -> Self {
        Self { cast, several_users, words: Words::default(), lines: Vec::new() }
    }
    fn line(&mut self, at: TrueTime, what: impl Display) {
        let time = Span::from_micros(at.0).to_string();
        self.lines.push(format!("{:>9}  {what}", if at.0 == 0 { "0ms" } else { &time }));
    }
    fn message(&mut self, at: TrueTime, from: PeerId, to: PeerId, text: &dyn Spoken, end: &str) {
        let route = format!("{} → {}", self.cast.name(from), self.cast.name(to));
        let text = self.cast.rename(&text.to_string());
        self.line(at, format_args!("{route:<12} {text}{end}"));
    }
}

impl Watch for Teller<'_> {
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken,
        arrives: Option<TrueTime>,
    ) {
        if arrives.is_none() {
            self.message(at, from, to, message, "   … is lost");
        }
    }
    fn on_deliver(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken) {
        self.message(at, from, to, message, "");
    }
    fn on_note(&mut self, at: TrueTime, peer: PeerId, note: &dyn Display) {
        self.line(at, format_args!("             ({}: {note})", self.cast.name(peer)));
    }
    fn on_heal(&mut self, at: TrueTime) {
        self.line(at, "*** the world is healed");
    }
    fn on_fault(&mut self, at: TrueTime, fault: &Fault) {
        self.line(at, format_args!("*** {}", self.cast.rename_words(&fault.to_string())));
    }
    fn on_record(&mut self, record: &Record) {
        let (cast, several_users) = (self.cast, self.several_users);
        let who = |request: &RequestId| match cast.name(request.client) {
            name if several_users => format!("{name} ({})", request.call.0),
            name => name,
        };
        let Some(text) = self.words.tell(&record.what, &who) else { return };
        self.line(record.at, format_args!("▶ {text}"));
    }
}

/// Finds words for what happens.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Requests that only read.
    readers: BTreeSet<RequestId>,
}

impl Words {
    /// What happened, if it is of interest to clients.
    pub(crate) fn tell(
        &mut self, what: &What, who: &dyn Fn(&RequestId) -> String,
    ) -> Option<String> {
        Some(match what {
            What::Asked { request, name, mode: Mode::Shared, .. } => {
                self.readers.insert(*request);
                format!("{} asks to read {name}", who(request))
            }
            What::Asked { request, name, .. } => format!("{} asks for {name}", who(request)),
            What::Granted { request, token: Some(token), until, .. } => {
                let until = Span::from_micros(until.0);
                format!("{} is inside with token {token}, until {until}", who(request))
            }
            What::Granted { request, token: None, until, .. } => {
                format!("{} is inside, until {}", who(request), Span::from_micros(until.0))
            }
            What::Extended { request, until } => {
                format!("{} may stay until {}", who(request), Span::from_micros(until.0))
            }
            What::Lost(request) => format!("{} has lost the lock", who(request)),
            What::Released(request) | What::Left(request) => format!("{} leaves", who(request)),
            What::Ended(request, ending) => {
                let why = match ending {
                    Ending::Busy => "finds it busy",
                    Ending::TimedOut => "has waited long enough",
                    Ending::Cancelled => "no longer wants it",
                    Ending::Refused => "is refused",
                    Ending::OtherPermits(of) => &format!("is told that others mean {of} permits"),
                };
                format!("{} {why}", who(request))
            }
            What::Wrote { request, token, accepted } => {
                let verdict = if *accepted { "accepted" } else { "REFUSED" };
                let does = if self.readers.contains(request) { "reads" } else { "writes" };
                format!("{} {does} with token {token}: {verdict}", who(request))
            }
            What::Crashed(_)
            | What::Started(_)
            | What::FellAsleep(_)
            | What::Woke(_)
            | What::Answered { .. }
            | What::Doubled(_)
            | What::Noticed(_)
            | What::Healed => return None,
            What::Views(deed) => return of_views(deed),
        })
    }
}

/// The same among peers that agree on who is in.
fn of_views(deed: &OfViews) -> Option<String> {
    Some(match deed {
        OfViews::Learned { peer, roster, .. } => format!("{peer} is at {roster}"),
        OfViews::Stands { peer, standing: Standing::Member } => format!("{peer} is a member"),
        OfViews::Stands { peer, standing: Standing::Lost } => format!("{peer} has lost its memory"),
        OfViews::Stands { peer, standing: Standing::Outside } => format!("{peer} is outside"),
        OfViews::Leaves(peer) => format!("{peer} is told to leave"),
        OfViews::Settled(view) => format!("the newcomer of view {} knows enough", count(*view)),
        OfViews::Accepted { peer, view, .. } => {
            format!("{peer} accepts a successor of view {}", count(*view))
        }
        OfViews::Began { .. }
        | OfViews::Recalls { .. }
        | OfViews::Vouched(_)
        | OfViews::Promised { .. } => return None,
    })
}
