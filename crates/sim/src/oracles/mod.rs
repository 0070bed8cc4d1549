//! What must be true of every history, one property a file. Each has a mutant that it must catch.

use sigmalock_core::Span;

use crate::history::{Ledger, Record, TrueTime};

/// What an oracle may know of the run beside its history.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Replicas per lock.
    pub replicas: usize,
    /// The longest one-way delay the network model has, late duplicates aside.
    pub one_way_worst: Span,
    /// Whether any fault, loss, duplication, clock error or crash is possible in this run.
    pub faulty: bool,
    /// How long after the heal a request may still wait.
    pub patience_after_heal: Span,
}

/// A property that a history does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle says so.
    pub oracle: &'static str,
    /// When it became visible.
    pub at: TrueTime,
    /// What is wrong, in a sentence.
    pub sentence: String,
}

/// Watches a history go by and objects. Keeps no more than it needs, so that runs can be long.
pub trait Oracle {
    /// Its name, as violations and the documentation spell it.
    fn name(&self) -> &'static str;
    /// The next record, in true-time order.
    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>);
    /// The run is over.
    fn finish(&mut self, end: TrueTime, ledger: &Ledger, violations: &mut Vec<Violation>);
}
