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
//! One statement a line; `#` begins a comment. `docs/scenarios.md` has the grammar.
//!
//! With agents, who asks again before it has left does so for another of its users: `anna (2)` is the user
//! that made anna's second call.

mod grammar;
mod reading;
mod telling;

use std::collections::BTreeMap;

use sigmalock_core::PeerId;

pub use self::grammar::forms;
use self::reading::Draft;
use self::telling::Teller;
pub(crate) use self::telling::Words;
use crate::oracles::Violation;
use crate::run::RunConfig;
use crate::subject::Subject;

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

impl Scenario {
    /// Reads a story; whatever comes after [`RULE`] is not part of it.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let mut draft = Draft::default();
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
        let mut teller = Teller::new(&self.cast, self.subject.entries_per_grant.is_some());
        let outcome = self.subject.run_watched(&self.config, &mut oracles, &mut teller);
        (teller.lines, outcome.violations)
    }
}
