//! Stories in a text file: what happens, and the transcript of what then came of it.
//!
//! ```text
//! # Anna gets the printer, uses it, and gives it back.
//! replicas 3, quorum 2
//! latency constant:10ms
//! at 0ms anna asks for /printer, stays 50ms
//! end at 1s
//! ---
//!      0ms  anna asks for /printer
//!     10ms  anna → r1  REQUEST anna/1
//!     …
//! ```
//!
//! One statement a line; `#` begins a comment. Hosts are `r1 … rn`, every other word that does
//! something is a client. The statements:
//!
//! ```text
//! protocol sigma|strawman [literal|shipped]     at T X asks for NAME[, stays D][, ttl D]
//! replicas N, quorum M                                     [, waits D | , tries]
//! latency SPEC                                  at T X leaves|cancels|writes NAME
//! durable                                       at T X crashes|restarts|restarts empty|forgets
//! agents, K entries per grant                   at T X sleeps D
//! link X -> Y takes D
//! nth K [from X] [to Y] is lost|takes D|repeats after D       (1st, 2nd, … or every)
//! end at T
//! ```
//!
//! With agents, who asks again before it has left does so for another of its users: `anna (2)` is the user
//! that made anna's second call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use sigmalock_core::{Mode, Name, Patience, PeerId, RequestId, Span};
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;

use crate::duration;
use crate::faults::{Fault, Memory};
use crate::history::{Ending, Record, TrueTime, What};
use crate::network::Network;
use crate::oracles::Violation;
use crate::run::RunConfig;
use crate::script::{Action, Link, Rule, RuleEffect, Script};
use crate::subject::{Subject, Tuning};
use crate::watch::Watch;
use crate::workload::{Arrivals, Errand, Workload};

/// What separates a story from its transcript.
pub const RULE: &str = "---";

/// A story that can be run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The protocol it is about.
    pub subject: Subject,
    pub(crate) config: RunConfig,
    pub(crate) cast: Cast,
}

/// A line that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {sentence}")]
pub struct ScenarioError {
    /// Which, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub sentence: String,
}

/// Names of peers and their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cast {
    ids: BTreeMap<String, PeerId>,
    names: BTreeMap<PeerId, String>,
}

impl Cast {
    fn add(&mut self, name: String, id: PeerId) {
        self.names.insert(id, name.clone());
        self.ids.insert(name, id);
    }
    fn id(&mut self, name: &str) -> PeerId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let clients = self.ids.values().filter(|id| id.0 >= 1_000).count();
        let id = PeerId(1_000 + clients as u64);
        self.add(name.to_owned(), id);
        id
    }
    pub(crate) fn name(&self, id: PeerId) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }
    /// Puts names where a text has ids.
    pub(crate) fn rename(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (id, name)| {
            text.replace(&format!("{id}/"), &format!("{name}/"))
        })
    }
    /// The same where ids are words of their own.
    pub(crate) fn rename_words(&self, text: &str) -> String {
        let text = self.names.iter().fold(format!("{text} "), |text, (id, name)| {
            text.replace(&format!("{id} "), &format!("{name} "))
        });
        text.trim_end().to_owned()
    }
}

struct Draft {
    protocol: ProtocolName,
    variant: Variant,
    quorum: Option<Quorum>,
    latency: Option<crate::latency::Latency>,
    durable: bool,
    entries_per_grant: Option<u64>,
    script: Script,
    end: Option<Span>,
    cast: Cast,
    names: Vec<Name>,
}

impl Scenario {
    /// Reads a story; whatever comes after [`RULE`] is not part of it.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let mut draft = Draft {
            protocol: ProtocolName::Sigma,
            variant: Variant::Shipped,
            quorum: None,
            latency: None,
            durable: false,
            entries_per_grant: None,
            script: Script::default(),
            end: None,
            cast: Cast::default(),
            names: Vec::new(),
        };
        for (index, line) in text.lines().take_while(|line| *line != RULE).enumerate() {
            let statement = line.split('#').next().unwrap_or_default().trim();
            if !statement.is_empty() {
                draft
                    .statement(statement)
                    .map_err(|sentence| ScenarioError { line: index + 1, sentence })?;
            }
        }
        draft.finish().map_err(|sentence| ScenarioError { line: text.lines().count(), sentence })
    }

    /// Runs it. Returns the transcript, and what the oracles objected to.
    #[must_use]
    pub fn run(&self) -> (Vec<String>, Vec<Violation>) {
        let mut oracles = self.subject.oracles(&self.config);
        let mut teller = Teller {
            cast: &self.cast,
            several_users: self.subject.entries_per_grant.is_some(),
            words: Words::default(),
            lines: Vec::new(),
        };
        let outcome = self.subject.run_watched(&self.config, &mut oracles, &mut teller);
        (teller.lines, outcome.violations)
    }
}

impl Draft {
    fn statement(&mut self, text: &str) -> Result<(), String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["protocol", name] => self.protocol = name.parse().map_err(say)?,
            ["protocol", name, variant] => {
                self.protocol = name.parse().map_err(say)?;
                self.variant = variant.parse().map_err(say)?;
            }
            ["replicas", n, "quorum", m] => {
                let n = n.trim_end_matches(',').parse().map_err(say)?;
                let quorum = Quorum::new(n, m.parse().map_err(say)?).map_err(say)?;
                for index in 0..n {
                    self.cast.add(format!("r{}", index + 1), PeerId(u64::from(index)));
                }
                self.quorum = Some(quorum);
            }
            ["latency", latency] => self.latency = Some(latency.parse().map_err(say)?),
            ["durable"] => self.durable = true,
            ["agents,", entries, "entries", "per", "grant"] => {
                self.entries_per_grant = Some(entries.parse().map_err(say)?);
            }
            ["link", from, "->", to, "takes", delay] => {
                let (from, to) = (self.cast.id(from), self.cast.id(to));
                self.script.links.push(Link { from, to, delay: span(delay)? });
            }
            ["end", "at", end] => self.end = Some(span(end)?),
            ["at", at, who, ref what @ ..] => {
                let action = self.action(who, what)?;
                self.script = std::mem::take(&mut self.script).at(span(at)?, action);
            }
            [nth, kind, ref rest @ ..] if nth == "every" || nth.starts_with(char::is_numeric) => {
                let rule = self.rule(nth, kind, rest)?;
                self.script.rules.push(rule);
            }
            _ => return Err(format!("`{text}` is no statement")),
        }
        Ok(())
    }

    fn action(&mut self, who: &str, what: &[&str]) -> Result<Action, String> {
        let peer = self.cast.id(who);
        let name = |text: &str| Name::new(text.trim_end_matches(',')).map_err(say);
        Ok(match what {
            ["asks", "for", lock, rest @ ..] => {
                let name = name(lock)?;
                if !self.names.contains(&name) {
                    self.names.push(name.clone());
                }
                Action::Acquire { peer, name, errand: errand(rest)? }
            }
            ["leaves", lock] => Action::Release { peer, name: name(lock)? },
            ["cancels", lock] => Action::Cancel { peer, name: name(lock)? },
            ["writes", lock] => Action::Write { peer, name: name(lock)? },
            ["crashes"] => Action::Fault(Fault::Crash(peer)),
            ["restarts"] => Action::Fault(Fault::Restart { peer, memory: Memory::Disk }),
            ["restarts", "empty"] => Action::Fault(Fault::Restart { peer, memory: Memory::None }),
            ["forgets"] => Action::Fault(Fault::Reset(peer)),
            ["sleeps", time] => Action::Fault(Fault::Pause { peer, span: span(time)? }),
            _ => return Err(format!("`{}` is nothing {who} can do", what.join(" "))),
        })
    }

    fn rule(&mut self, nth: &str, kind: &str, mut rest: &[&str]) -> Result<Rule, String> {
        let digits = nth.trim_end_matches(|c: char| !c.is_ascii_digit());
        let nth = if nth == "every" { None } else { Some(digits.parse().map_err(say)?) };
        let (mut from, mut to) = (None, None);
        while let [word @ ("from" | "to"), who, more @ ..] = rest {
            let id = Some(self.cast.id(who));
            *(if *word == "from" { &mut from } else { &mut to }) = id;
            rest = more;
        }
        let effect = match rest {
            ["is", "lost"] => RuleEffect::Drop,
            ["takes", delay] => RuleEffect::Delay(span(delay)?),
            ["repeats", "after", delay] => RuleEffect::Duplicate(span(delay)?),
            _ => return Err(format!("`{}` is nothing a message can do", rest.join(" "))),
        };
        Ok(Rule { kind: Some(kind.to_owned()), from, to, nth, effect })
    }

    fn finish(self) -> Result<Scenario, String> {
        let quorum = self.quorum.ok_or("there should be a line `replicas N, quorum M`")?;
        let latency = self.latency.ok_or("there should be a line `latency SPEC`")?;
        let end = self.end.ok_or("there should be a line `end at T`")?;
        let name = self.names.first().ok_or("nobody asks for anything")?.clone();
        let network = Network::perfect(latency);
        let mut subject = Subject::new(self.protocol, self.variant, quorum);
        subject.entries_per_grant = self.entries_per_grant;
        subject.tuning = Tuning { durable: self.durable, ..Tuning::default() };
        let mut workload = Workload::new(name, Arrivals::Scripted);
        workload.names = self.names;
        let mut config = RunConfig::new(1, quorum.n(), network, workload);
        config.script = Some(self.script);
        config.duration = end;
        Ok(Scenario { subject, config, cast: self.cast })
    }
}

fn errand(words: &[&str]) -> Result<Errand, String> {
    let mut errand = Errand::new(Span::from_secs(10), Patience::Forever);
    let mut words = words.iter().map(|word| word.trim_end_matches(','));
    while let Some(word) = words.next() {
        let mut length = || span(words.next().unwrap_or_default());
        match word {
            "stays" => errand.inside = Some(length()?),
            "ttl" => errand.ttl = length()?,
            "waits" => errand.patience = Patience::For(length()?),
            "tries" => errand.patience = Patience::Try,
            "to-read" => errand.mode = Mode::Shared,
            "overstays" => errand.overstay = Some(length()?),
            _ => return Err(format!("`{word}` says nothing about a request")),
        }
    }
    Ok(errand)
}

fn span(text: &str) -> Result<Span, String> {
    duration::parse(text.trim_end_matches(',')).map_err(say)
}

fn say(error: impl Display) -> String {
    error.to_string()
}

/// Tells a run in lines that a reader enjoys.
struct Teller<'a> {
    cast: &'a Cast,
    /// Whether it takes more than the peer to say who somebody is.
    several_users: bool,
    words: Words,
    lines: Vec<String>,
}

impl Teller<'_> {
    fn line(&mut self, at: TrueTime, what: impl Display) {
        let time = Span::from_micros(at.0).to_string();
        self.lines.push(format!("{:>9}  {what}", if at.0 == 0 { "0ms" } else { &time }));
    }
    fn message(&mut self, at: TrueTime, from: PeerId, to: PeerId, text: &dyn Display, end: &str) {
        let route = format!("{} → {}", self.cast.name(from), self.cast.name(to));
        let text = self.cast.rename(&text.to_string());
        self.line(at, format_args!("{route:<12} {text}{end}"));
    }
}

impl Watch for Teller<'_> {
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Display,
        arrives: Option<TrueTime>,
    ) {
        if arrives.is_none() {
            self.message(at, from, to, message, "   … is lost");
        }
    }
    fn on_deliver(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Display) {
        self.message(at, from, to, message, "");
    }
    fn on_note(&mut self, at: TrueTime, peer: PeerId, note: &dyn Display) {
        self.line(at, format_args!("             ({}: {note})", self.cast.name(peer)));
    }
    fn on_fault(&mut self, at: TrueTime, fault: &dyn Display) {
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
            | What::Healed => return None,
        })
    }
}
