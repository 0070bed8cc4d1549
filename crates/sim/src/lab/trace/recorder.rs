//! Keeps the steps of a run that are to be shown.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;

use sigmalock_core::{PeerId, RequestId};

use super::{Kind, State, Step, View};
use crate::faults::Fault;
use crate::history::{Record, TrueTime, What};
use crate::oracles::Violation;
use crate::scenario::{Cast, Words};
use crate::watch::{Spoken, Watch};

/// Messages under way whose time of sending is remembered. Beyond, arrows are drawn level.
const UNDER_WAY_MAX: usize = 100_000;

pub(super) struct Recorder<'a> {
    cast: &'a Cast,
    several_users: bool,
    view: &'a View,
    /// If steps are to be kept around a moment: that, and how many before it.
    around: Option<(TrueTime, usize)>,
    under_way: BTreeMap<(PeerId, PeerId, String), VecDeque<TrueTime>>,
    last_sent: Option<(PeerId, PeerId, String)>,
    sealing: Vec<PeerId>,
    /// Those who were refused while inside, and when: what an oracle objects to is harm.
    wronged: Vec<(TrueTime, String)>,
    words: Words,
    before: State,
    steps: VecDeque<Step>,
    left_out: (usize, usize),
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        cast: &'a Cast, several_users: bool, view: &'a View, violations: &[Violation],
    ) -> Self {
        let first = violations.iter().map(|violation| violation.at).min();
        let around = first.filter(|_| view.window.is_none()).map(|at| (at, view.steps() * 3 / 4));
        let wronged = violations.iter().filter(|violation| violation.oracle == "register");
        let wronged = wronged.filter_map(|violation| {
            let (request, _) = violation.sentence.split_once(" is inside ")?;
            Some((violation.at, request.to_owned()))
        });
        Self {
            cast,
            several_users,
            view,
            around,
            under_way: BTreeMap::new(),
            last_sent: None,
            sealing: Vec::new(),
            wronged: wronged.collect(),
            words: Words::default(),
            before: State::default(),
            steps: VecDeque::new(),
            left_out: (0, 0),
        }
    }

    /// The steps with the violations among them, how things stood before, and how many are left out before
    /// and after.
    pub(super) fn finish(self, violations: &[Violation]) -> (Vec<Step>, State, (usize, usize)) {
        let mut steps: Vec<Step> = self.steps.into();
        let shown = match (steps.first(), steps.last(), self.view.window) {
            (_, _, Some((from, to))) => from.as_micros()..=to.as_micros(),
            (Some(first), Some(last), None) => first.at.0..=last.at.0,
            _ => 0..=u64::MAX,
        };
        for violation in violations.iter().filter(|violation| shown.contains(&violation.at.0)) {
            let text = format!("{}: {}", violation.oracle, violation.sentence);
            let step = Step::new(violation.at, Kind::Violation, None, self.cast.rename(&text));
            // After all that happened at that moment: one of those things caused it.
            let place = steps.partition_point(|step| step.at <= violation.at);
            steps.insert(place, step);
        }
        (steps, self.before, self.left_out)
    }

    fn push(&mut self, step: Step) {
        let name = |peer: Option<PeerId>| peer.map(|peer| self.cast.name(peer));
        let seen = |peer| name(peer).is_none_or(|name| self.view.shows(&name));
        let visible = seen(step.peer) && seen(step.to);
        let (from, to) =
            self.view.window.map_or((0, u64::MAX), |(from, to)| (from.as_micros(), to.as_micros()));
        if step.at.0 < from || !visible {
            self.before.apply(&step);
            self.left_out.0 += usize::from(visible);
        } else if step.at.0 > to {
            self.left_out.1 += 1;
        } else {
            self.keep(step);
        }
    }

    fn keep(&mut self, step: Step) {
        let max = self.view.steps();
        match self.around {
            Some((moment, before_max)) if step.at <= moment => {
                self.steps.push_back(step);
                while self.steps.len() > before_max.max(1) {
                    if let Some(dropped) = self.steps.pop_front() {
                        self.before.apply(&dropped);
                        self.left_out.0 += 1;
                    }
                }
            }
            _ if self.steps.len() < max => self.steps.push_back(step),
            _ => self.left_out.1 += 1,
        }
    }

    fn mark(&mut self, at: TrueTime, kind: Kind, peer: PeerId, text: String) {
        self.push(Step::new(at, kind, Some(peer), text));
    }

    fn note_sent(&mut self, at: TrueTime) {
        if let Some(key) = self.last_sent.clone()
            && self.under_way.len() < UNDER_WAY_MAX
        {
            self.under_way.entry(key).or_default().push_back(at);
        }
    }

    fn was_sent(&mut self, key: &(PeerId, PeerId, String)) -> Option<TrueTime> {
        let times = self.under_way.get_mut(key)?;
        let sent = times.pop_front();
        if times.is_empty() {
            self.under_way.remove(key);
        }
        sent
    }
}

impl Watch for Recorder<'_> {
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken,
        arrives: Option<TrueTime>,
    ) {
        let text = message.to_string();
        if arrives.is_none() {
            let text = format!("{} … is lost", self.cast.rename(&text));
            let step = Step::new(at, Kind::LostMessage, Some(from), text);
            self.push(Step { to: Some(to), ..step });
        }
        self.last_sent = Some((from, to, text));
        if arrives.is_some() {
            self.note_sent(at);
        }
    }

    fn on_copy(&mut self, at: TrueTime, _: PeerId, _: PeerId, _: TrueTime) {
        self.note_sent(at);
    }

    fn on_deliver(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken) {
        let key = (from, to, message.to_string());
        let sent = self.was_sent(&key).unwrap_or(at);
        let step = Step::new(at, Kind::Message, Some(from), self.cast.rename(&key.2));
        self.push(Step { to: Some(to), sent, ..step });
    }

    fn on_note(&mut self, at: TrueTime, peer: PeerId, note: &dyn Display) {
        let note = note.to_string();
        match note.as_str() {
            "token needs sealing" => self.sealing.push(peer),
            "seal abandoned" => self.sealing.retain(|sealing| *sealing != peer),
            _ => {}
        }
        self.mark(at, Kind::Note, peer, format!("{}: {note}", self.cast.name(peer)));
    }

    fn on_heal(&mut self, at: TrueTime) {
        self.push(Step::new(at, Kind::Fault, None, "the world is healed".to_owned()));
    }

    fn on_fault(&mut self, at: TrueTime, fault: &Fault) {
        let text = self.cast.rename_words(&fault.to_string());
        // Crashes, restarts and pauses go on record with their peer.
        let told = ["crash of", "restart with", "restart without"];
        if !told.iter().any(|start| text.starts_with(start)) && !text.contains(" pauses for ") {
            self.push(Step::new(at, Kind::Fault, None, text));
        }
    }

    fn on_record(&mut self, record: &Record) {
        let (cast, several_users) = (self.cast, self.several_users);
        let who = |request: &RequestId| match cast.name(request.client) {
            name if several_users => format!("{name} ({})", request.call.0),
            name => name,
        };
        let words = self.words.tell(&record.what, &who).unwrap_or_default();
        let (kind, peer, text) = match &record.what {
            What::Asked { request, .. } => (Kind::Asked, request.client, words),
            What::Granted { request, .. } => {
                let sealed = self.sealing.contains(&request.client);
                self.sealing.retain(|peer| *peer != request.client);
                let end = if sealed { ", sealed" } else { "" };
                (Kind::Granted, request.client, format!("{words}{end}"))
            }
            What::Extended { request, .. } => (Kind::Extended, request.client, words),
            What::Lost(request) => (Kind::Lost, request.client, words),
            What::Released(request) | What::Left(request) => {
                (Kind::Released, request.client, words)
            }
            What::Ended(request, _) => (Kind::Ended, request.client, words),
            What::Wrote { accepted: true, .. } => return,
            What::Wrote { request, .. } if self.is_wronged(record.at, request) => {
                (Kind::Refused, request.client, words)
            }
            What::Wrote { request, .. } => {
                (Kind::Fenced, request.client, format!("{words} by the fence, no harm"))
            }
            What::Views(_) if words.is_empty() => return,
            What::Views(_) => return self.push(Step::new(record.at, Kind::Note, None, words)),
            other => return self.note_peer(record.at, other),
        };
        let right = match &record.what {
            What::Granted { request, until, .. } | What::Extended { request, until } => {
                Some((*request, *until))
            }
            What::Lost(request) | What::Released(request) | What::Left(request) => {
                Some((*request, record.at))
            }
            _ => None,
        };
        self.push(Step { right, ..Step::new(record.at, kind, Some(peer), text) });
    }
}

impl Recorder<'_> {
    /// What happens to a peer, or to the world.
    fn note_peer(&mut self, at: TrueTime, what: &What) {
        let (kind, peer, deed) = match what {
            What::Crashed(peer) => (Kind::Down, *peer, "stops"),
            What::FellAsleep(peer) => (Kind::Asleep, *peer, "falls asleep"),
            // Those who begin their first life are no news.
            What::Started(peer) | What::Woke(peer) if !self.is_down(*peer) => return,
            What::Started(peer) => (Kind::Up, *peer, "is back"),
            What::Woke(peer) => (Kind::Up, *peer, "wakes"),
            What::Healed => {
                let text = "from here on nothing goes wrong any more".to_owned();
                return self.push(Step::new(at, Kind::Fault, None, text));
            }
            _ => return,
        };
        self.mark(at, kind, peer, format!("{} {deed}", self.cast.name(peer)));
    }

    fn is_wronged(&self, at: TrueTime, request: &RequestId) -> bool {
        let request = request.to_string();
        self.wronged.iter().any(|(when, who)| *when == at && *who == request)
    }

    fn is_down(&self, peer: PeerId) -> bool {
        let latest = self.steps.iter().rev().find(|step| {
            step.peer == Some(peer) && matches!(step.kind, Kind::Down | Kind::Asleep | Kind::Up)
        });
        match latest {
            Some(step) => step.kind != Kind::Up,
            None => self.before.is_down(peer),
        }
    }
}
