//! Where a run's history goes: to the oracles, into a digest, and into memory only if asked for.

use std::hash::{Hash, Hasher};

use crate::history::{Ledger, Record, TrueTime, What};
use crate::oracles::{Oracle, Violation};

/// A broken protocol may violate a property at every step; so many violations say enough.
const VIOLATIONS_MAX: usize = 100;

/// Who judges: somebody's for this run, or its own.
pub(crate) enum Oracles<'a> {
    Lent(&'a mut [Box<dyn Oracle>]),
    Own(Vec<Box<dyn Oracle>>),
}

impl Oracles<'_> {
    fn iter_mut(&mut self) -> std::slice::IterMut<'_, Box<dyn Oracle>> {
        match self {
            Self::Lent(oracles) => oracles.iter_mut(),
            Self::Own(oracles) => oracles.iter_mut(),
        }
    }
}

/// Each of two runs has its own from then on.
impl Clone for Oracles<'_> {
    fn clone(&self) -> Self {
        Self::Own(match self {
            Self::Lent(oracles) => oracles.to_vec(),
            Self::Own(oracles) => oracles.clone(),
        })
    }
}

#[derive(Clone)]
pub(crate) struct Recorder<'a> {
    oracles: Oracles<'a>,
    violations: Vec<Violation>,
    kept: Option<Vec<Record>>,
    digest: Digest,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(oracles: Oracles<'a>, keep: bool) -> Self {
        let kept = keep.then(Vec::new);
        Self { oracles, violations: Vec::new(), kept, digest: Digest::default() }
    }

    pub(crate) fn record(&mut self, at: TrueTime, what: What) -> Record {
        let record = Record { at, what };
        record.hash(&mut self.digest);
        if self.violations.len() < VIOLATIONS_MAX {
            for oracle in self.oracles.iter_mut() {
                oracle.see(&record, &mut self.violations);
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.push(record.clone());
        }
        record
    }

    /// Makes a delivered message part of the digest.
    #[inline]
    pub(crate) fn deliver(&mut self, at: TrueTime, from: u32, to: u32, kind: u8) {
        self.digest.mix(at.0);
        self.digest.mix((u64::from(from) << 32) | u64::from(to));
        self.digest.mix(u64::from(kind));
    }

    pub(crate) fn object(&mut self, oracle: &'static str, at: TrueTime, sentence: String) {
        // In front: it says that the run is no measurement, and must not be cut off with the rest.
        self.violations.insert(0, Violation { oracle, at, sentence });
    }

    pub(crate) fn violated(&self) -> bool {
        !self.violations.is_empty()
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    pub(crate) fn finish(mut self, end: TrueTime, ledger: &Ledger) -> Verdict {
        if self.violations.len() < VIOLATIONS_MAX {
            for oracle in self.oracles.iter_mut() {
                oracle.finish(end, ledger, &mut self.violations);
            }
        }
        self.violations.truncate(VIOLATIONS_MAX);
        let digest = self.digest.finish();
        Verdict { violations: self.violations, history: self.kept, digest }
    }
}

/// What remains of a history.
pub(crate) struct Verdict {
    pub(crate) violations: Vec<Violation>,
    pub(crate) history: Option<Vec<Record>>,
    pub(crate) digest: u64,
}

/// A fingerprint of what was recorded, and of who sent which kind of message to whom and when: runs that
/// differ have different ones, for all practical purposes.
#[derive(Debug, Clone, Default)]
struct Digest(u64);

impl Digest {
    #[inline]
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
    // Lengths, and which variant of an enum it is: as wide on every machine.
    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
