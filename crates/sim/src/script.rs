//! Runs that are told instead of drawn: who asks when, and what becomes of which message.

use sigmalock_core::{Name, Patience, PeerId, Span};

use crate::faults::Fault;
use crate::history::TrueTime;
use crate::workload::Errand;

/// A story: steps in time, and exceptions to the network's rules. The default is empty.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// What happens when. Steps of one instant happen in the order given.
    pub steps: Vec<Step>,
    /// Links with a delay of their own.
    pub links: Vec<Link>,
    /// What becomes of certain messages.
    pub rules: Vec<Rule>,
}

/// One step of a story.
#[derive(Debug, Clone)]
pub struct Step {
    /// When.
    pub at: TrueTime,
    /// What.
    pub action: Action,
}

/// What can be told to happen.
#[derive(Debug, Clone)]
pub enum Action {
    /// A client asks for a lock; what it does when inside is part of the errand.
    Acquire {
        /// Who. A peer that does not exist yet begins its first life.
        peer: PeerId,
        /// Which lock.
        name: Name,
        /// What it wants with it.
        errand: Errand,
    },
    /// The client leaves the critical section and gives the lock back.
    Release {
        /// Who.
        peer: PeerId,
        /// Which lock.
        name: Name,
    },
    /// The client no longer wants to wait.
    Cancel {
        /// Who.
        peer: PeerId,
        /// Which lock.
        name: Name,
    },
    /// The client writes to the register that the lock protects, with the token it last got,
    /// whether or not it still holds the lock.
    Write {
        /// Who.
        peer: PeerId,
        /// Which lock.
        name: Name,
    },
    /// Something goes wrong.
    Fault(Fault),
}

impl Script {
    /// Adds a step; for chaining.
    #[must_use]
    pub fn at(mut self, at: Span, action: Action) -> Self {
        self.steps.push(Step { at: TrueTime(at.as_micros()), action });
        self
    }

    /// Adds an acquisition that holds the lock for `hold`, or until told to release it.
    #[must_use]
    pub fn acquire(self, at: Span, peer: PeerId, name: &Name, hold: Option<Span>) -> Self {
        let errand = Errand { inside: hold, ..Errand::new(Span::from_secs(10), Patience::Forever) };
        self.at(at, Action::Acquire { peer, name: name.clone(), errand })
    }

    /// Adds a release.
    #[must_use]
    pub fn release(self, at: Span, peer: PeerId, name: &Name) -> Self {
        self.at(at, Action::Release { peer, name: name.clone() })
    }

    /// Adds a fault.
    #[must_use]
    pub fn fault(self, at: Span, fault: Fault) -> Self {
        self.at(at, Action::Fault(fault))
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }
}

/// A link with a delay of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The sender.
    pub from: PeerId,
    /// The receiver.
    pub to: PeerId,
    /// How long every message takes.
    pub delay: Span,
}

/// What becomes of certain messages. `None` means any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which kind, as [`sigmalock_core::Message::kind`] says it.
    pub kind: Option<String>,
    /// Whose.
    pub from: Option<PeerId>,
    /// To whom.
    pub to: Option<PeerId>,
    /// Only the k-th of those, counted from 1.
    pub nth: Option<u64>,
    /// What becomes of it.
    pub effect: RuleEffect,
}

impl Rule {
    pub(crate) fn matches(&self, from: PeerId, to: PeerId, kind: &str) -> bool {
        self.kind.as_ref().is_none_or(|k| k == kind)
            && self.from.is_none_or(|f| f == from)
            && self.to.is_none_or(|t| t == to)
    }
}

/// What can become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleEffect {
    /// It is lost.
    Drop,
    /// It takes exactly this long.
    Delay(Span),
    /// It arrives as usual, and a copy this long after it was sent.
    Duplicate(Span),
}
