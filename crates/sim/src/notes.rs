//! Counting what protocols note.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::marker::PhantomData;

/// Counts notes by their words.
#[derive(Debug, Clone)]
pub(crate) struct Notes<N> {
    counts: Vec<(String, u64)>,
    /// Kept for its memory.
    words: String,
    notes: PhantomData<N>,
}

impl<N: Display> Notes<N> {
    pub(crate) const fn new() -> Self {
        Self { counts: Vec::new(), words: String::new(), notes: PhantomData }
    }

    pub(crate) fn add(&mut self, note: &N) {
        self.words.clear();
        // Writing to a string does not fail.
        let _ = write!(self.words, "{note}");
        match self.counts.iter_mut().find(|(known, _)| *known == self.words) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((self.words.clone(), 1)),
        }
    }

    pub(crate) fn by_name(&self) -> BTreeMap<String, u64> {
        self.counts.iter().cloned().collect()
    }
}
