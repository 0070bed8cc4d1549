//! From the text of a story to what can be run.

use std::fmt::Display;

use sigmalock_core::{Mode, Name, Patience, PeerId, Span};
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;

use super::grammar::{Deed, Fate, Statement, Wish};
use super::{Cast, Scenario};
use crate::duration;
use crate::faults::{Fault, Memory};
use crate::latency::Latency;
use crate::network::Network;
use crate::run::RunConfig;
use crate::script::{Action, Link, Rule, RuleEffect, Script};
use crate::subject::{Subject, Tuning};
use crate::workload::{Arrivals, Errand, Workload};

/// What is known of a story after some of its lines.
#[derive(Default)]
pub(super) struct Draft {
    protocol: Option<ProtocolName>,
    variant: Variant,
    quorum: Option<Quorum>,
    latency: Option<Latency>,
    durable: bool,
    entries_per_grant: Option<u64>,
    script: Script,
    end: Option<Span>,
    cast: Cast,
    names: Vec<Name>,
}

impl Draft {
    pub(super) fn statement(&mut self, text: &str) -> Result<(), String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (first, rest) = words.split_first().ok_or("there is nothing here")?;
        let numbered = first.starts_with(|c: char| c.is_ascii_digit());
        let statement = if numbered { Some(Statement::Every) } else { Statement::of(first) };
        let statement = statement
            .ok_or_else(|| format!("`{text}` is no statement; there are: {}", Statement::list()))?;
        match (statement, rest) {
            (Statement::Protocol, [name]) => self.protocol = Some(name.parse().map_err(say)?),
            (Statement::Protocol, [name, variant]) => {
                self.protocol = Some(name.parse().map_err(say)?);
                self.variant = variant.parse().map_err(say)?;
            }
            (Statement::Replicas, [n, "quorum", m]) => {
                let n = n.trim_end_matches(',').parse().map_err(say)?;
                let quorum = Quorum::new(n, m.parse().map_err(say)?).map_err(say)?;
                for index in 0..n {
                    self.cast.add(format!("r{}", index + 1), PeerId(u64::from(index)));
                }
                self.quorum = Some(quorum);
            }
            (Statement::Latency, [latency]) => self.latency = Some(latency.parse().map_err(say)?),
            (Statement::Durable, []) => self.durable = true,
            (Statement::Agents, [entries, "entries", "per", "grant"]) => {
                self.entries_per_grant = Some(entries.parse().map_err(say)?);
            }
            (Statement::Link, [from, "->", to, "takes", delay]) => {
                let (from, to) = (self.cast.id(from), self.cast.id(to));
                self.script.links.push(Link { from, to, delay: span(delay)? });
            }
            (Statement::End, ["at", end]) => self.end = Some(span(end)?),
            (Statement::At, [at, who, what @ ..]) => {
                let action = self.action(who, what)?;
                self.script = std::mem::take(&mut self.script).at(span(at)?, action);
            }
            (Statement::Every, [kind, rest @ ..]) => {
                let rule = self.rule(first, kind, rest)?;
                self.script.rules.push(rule);
            }
            _ => return Err(format!("`{text}` should be: {}", statement.form())),
        }
        Ok(())
    }

    fn action(&mut self, who: &str, what: &[&str]) -> Result<Action, String> {
        let peer = self.cast.id(who);
        let name = |text: &str| Name::new(text.trim_end_matches(',')).map_err(say);
        let deed = what.first().and_then(|word| Deed::of(word)).ok_or_else(|| {
            let (what, deeds) = (what.join(" "), Deed::list());
            format!("`{what}` is nothing {who} can do; there are: {deeds}")
        })?;
        Ok(match (deed, &what[1..]) {
            (Deed::Asks, ["for", lock, rest @ ..]) => {
                let name = name(lock)?;
                if !self.names.contains(&name) {
                    self.names.push(name.clone());
                }
                Action::Acquire { peer, name, errand: errand(rest)? }
            }
            (Deed::Leaves, [lock]) => Action::Release { peer, name: name(lock)? },
            (Deed::Cancels, [lock]) => Action::Cancel { peer, name: name(lock)? },
            (Deed::Writes, [lock]) => Action::Write { peer, name: name(lock)? },
            (Deed::Crashes, []) => Action::Fault(Fault::Crash(peer)),
            (Deed::Restarts, []) => Action::Fault(Fault::Restart { peer, memory: Memory::Disk }),
            (Deed::Restarts, ["empty"]) => {
                Action::Fault(Fault::Restart { peer, memory: Memory::None })
            }
            (Deed::Forgets, []) => Action::Fault(Fault::Reset(peer)),
            (Deed::Sleeps, [time]) => Action::Fault(Fault::Pause { peer, span: span(time)? }),
            _ => return Err(format!("`{}` should be: {}", what.join(" "), deed.form())),
        })
    }

    fn rule(&mut self, nth: &str, kind: &str, mut rest: &[&str]) -> Result<Rule, String> {
        let digits = nth.trim_end_matches(|c: char| !c.is_ascii_digit());
        let nth = if digits.is_empty() { None } else { Some(digits.parse().map_err(say)?) };
        let (mut from, mut to) = (None, None);
        while let [word @ ("from" | "to"), who, more @ ..] = rest {
            let id = Some(self.cast.id(who));
            *(if *word == "from" { &mut from } else { &mut to }) = id;
            rest = more;
        }
        let fate = rest.first().and_then(|word| Fate::of(word)).ok_or_else(|| {
            let (what, fates) = (rest.join(" "), Fate::list());
            format!("`{what}` is nothing a message can do; there are: {fates}")
        })?;
        let effect = match (fate, &rest[1..]) {
            (Fate::Lost, ["lost"]) => RuleEffect::Drop,
            (Fate::Takes, [delay]) => RuleEffect::Delay(span(delay)?),
            (Fate::Repeats, ["after", delay]) => RuleEffect::Duplicate(span(delay)?),
            _ => return Err(format!("`{}` should be: {}", rest.join(" "), fate.form())),
        };
        Ok(Rule { kind: Some(kind.to_owned()), from, to, nth, effect })
    }

    pub(super) fn finish(self) -> Result<Scenario, String> {
        let quorum = self.quorum.ok_or("there should be a line `replicas N, quorum M`")?;
        let latency = self.latency.ok_or("there should be a line `latency MODEL`")?;
        let end = self.end.ok_or("there should be a line `end at T`")?;
        let name = self.names.first().ok_or("nobody asks for anything")?.clone();
        let network = Network::perfect(latency);
        let protocol = self.protocol.unwrap_or(ProtocolName::Sigma);
        if !protocol.is_lock() {
            return Err(format!("{protocol} guards no locks, and stories are about locks"));
        }
        let mut subject = Subject::new(protocol, self.variant, quorum);
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
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let wish = Wish::of(word).ok_or_else(|| {
            format!("`{word}` says nothing about a request; there are: {}", Wish::list())
        })?;
        let mut length = || match words.next() {
            Some(length) => span(length),
            None => Err(format!("`{word}` should be: {}", wish.form())),
        };
        match wish {
            Wish::Stays => errand.inside = Some(length()?),
            Wish::Ttl => errand.ttl = length()?,
            Wish::Waits => errand.patience = Patience::For(length()?),
            Wish::Tries => errand.patience = Patience::Try,
            Wish::ToRead => errand.mode = Mode::Shared,
            Wish::Overstays => errand.overstay = Some(length()?),
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
