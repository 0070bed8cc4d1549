//! Counting what protocols note.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::mem::{Discriminant, discriminant};

/// Counts notes by their variant, and puts each into words only once.
#[derive(Debug)]
pub(crate) struct Notes<N> {
    counts: Vec<(Discriminant<N>, String, u64)>,
}

impl<N: Display> Notes<N> {
    pub(crate) const fn new() -> Self {
        Self { counts: Vec::new() }
    }

    pub(crate) fn add(&mut self, note: &N) {
        let variant = discriminant(note);
        match self.counts.iter_mut().find(|(known, ..)| *known == variant) {
            Some((_, _, count)) => *count += 1,
            None => self.counts.push((variant, note.to_string(), 1)),
        }
    }

    pub(crate) fn by_name(&self) -> BTreeMap<String, u64> {
        self.counts.iter().map(|(_, name, count)| (name.clone(), *count)).collect()
    }
}
