//! What passes through, counted.

use core::fmt::Write as _;

/// Plain numbers since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Turns of the loop, and the inputs they took.
    pub(crate) batches: u64,
    pub(crate) inputs: u64,
    /// Messages of this peer to itself.
    pub(crate) to_self: u64,
    /// Messages that could not be sent.
    pub(crate) unsent: u64,
    /// Frames of messages received, and those among them that made no sense.
    pub(crate) frames_in: u64,
    pub(crate) bytes_in: u64,
    pub(crate) nonsense: u64,
    /// Hand-overs to the transport: one per peer and batch.
    pub(crate) letters: u64,
    pub(crate) bytes_out: u64,
    /// Writes to disk.
    pub(crate) commits: u64,
    /// Locks granted to this peer's users.
    pub(crate) grants: u64,
    pub(crate) sent: Tally,
    pub(crate) received: Tally,
    pub(crate) notes: Notes,
}

/// Messages by kind. There are a dozen kinds, so a list is quick.
#[derive(Debug, Default)]
pub(crate) struct Tally(Vec<(&'static str, u64)>);

impl Tally {
    pub(crate) fn add(&mut self, kind: &'static str) {
        match self.0.iter_mut().find(|(known, _)| core::ptr::eq(*known, kind) || *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.0.push((kind, 1)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }
}

/// How many different notes are counted apart; notes with numbers in them must not pile up.
const NOTES_MAX: usize = 64;

/// The protocol's notes by their words.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    counts: Vec<(String, u64)>,
    words: String,
}

impl Notes {
    pub(crate) fn add(&mut self, note: &impl core::fmt::Display) {
        self.words.clear();
        let _ = write!(self.words, "{note}");
        let room = self.counts.len() < NOTES_MAX;
        match self.counts.iter_mut().find(|(known, _)| *known == self.words) {
            Some((_, count)) => *count += 1,
            None if room => self.counts.push((self.words.clone(), 1)),
            None => {}
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(words, count)| (words.as_str(), *count))
    }
}
