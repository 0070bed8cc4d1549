//! The outward side of a simulated driver: what the world gets to see, and never before what it rests on is on disk.
//!
//! A disk writes in no time and never fails, unless a fault says otherwise: then nothing gathers and nothing waits, and a
//! peer has no [`Output`]. One that is slow, or about to fail, is written to as live peers do it (`node/driver/output.rs`):
//!
//! - records gather while the disk is busy with the ones before;
//! - what was said before the first gathered record waits for the write under way, if there is one, and for nothing else;
//!   what is said after it waits for the next;
//! - records that nothing waits for stay off the disk for a while;
//! - what a peer says to itself waits for nothing;
//! - if a write fails, the peer stops, and nobody hears what waited for it.
//!
//! A crash in the middle of a write leaves all of its records or none: entries of the journal have checksums.

use std::collections::VecDeque;

use sigmalock_core::{CallId, PeerId, Protocol, Span};
use sigmalock_protocols::parts::Driven;
use sigmalock_protocols::parts::mutants::mutants;

use crate::crowd::Crowd;
use crate::history::TrueTime;
use crate::peer::Disk;
use crate::watch::Watch;
use crate::world::{Event, World};

/// So long may records that nothing waits for stay off the disk, as in live peers.
const UNHURRIED: Span = Span::from_millis(50);
/// No disk loses more records than this that it said were written.
pub(crate) const LOST_MAX: usize = 64;

mutants! {
    /// A deliberately broken driver: one of its rules left out.
    enum Mutant;
    /// A driver goes on after a write that failed.
    GoesOnAfterFailures = "goes-on-after-failures": "tokens",
    /// A driver says what rests on a record before the disk has it.
    SpeaksBeforeTheDisk = "speaks-before-the-disk": "tokens",
}

/// A record: a key and its value; no value: the key is to be forgotten.
pub(crate) type Change<P> = (<P as Protocol>::DurableKey, Option<<P as Protocol>::Durable>);

/// What others get to see.
#[derive(Clone)]
pub(crate) enum Said<P: Protocol> {
    Message(PeerId, P::Message),
    Reply(CallId, P::Reply),
}

/// How a write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its records are on the disk all the same.
    pub(crate) found: bool,
}

/// A disk that takes time, or is about to fail, and what waits for it.
#[derive(Clone)]
pub(crate) struct Output<P: Protocol> {
    /// What a write takes.
    slowness: Span,
    /// What becomes of the next.
    failure: Option<Failure>,
    gathering: Vec<Change<P>>,
    gathering_since: TrueTime,
    waiting: Vec<Said<P>>,
    committing: Option<Write<P>>,
}

#[derive(Clone)]
struct Write<P: Protocol> {
    done_at: TrueTime,
    failure: Option<Failure>,
    records: Vec<Change<P>>,
    held: Vec<Said<P>>,
}

impl<P: Protocol> Default for Output<P> {
    fn default() -> Self {
        let (slowness, gathering_since) = (Span::ZERO, TrueTime(0));
        let (gathering, waiting) = (Vec::new(), Vec::new());
        Self { slowness, failure: None, gathering, gathering_since, waiting, committing: None }
    }
}

impl<P: Protocol> Output<P> {
    /// How many records are not on disk yet.
    pub(crate) fn pending(&self) -> u64 {
        let committing = self.committing.as_ref().map_or(0, |write| write.records.len());
        (self.gathering.len() + committing) as u64
    }

    /// Whether there are records that are not on disk yet.
    fn is_busy(&self) -> bool {
        !self.gathering.is_empty() || self.committing.is_some()
    }

    /// Whether it is as any other.
    fn is_over(&self) -> bool {
        self.slowness == Span::ZERO && self.failure.is_none() && !self.is_busy()
    }

    /// Keeps what was said until what it rests on is on disk.
    fn hold(&mut self, said: Said<P>) {
        match &mut self.committing {
            Some(write) if self.gathering.is_empty() => write.held.push(said),
            _ => self.waiting.push(said),
        }
    }

    fn gather(&mut self, now: TrueTime, change: Change<P>) {
        if self.gathering.is_empty() {
            self.gathering_since = now;
        }
        self.gathering.push(change);
    }

    /// Begins to write, if there is something that has to be written; says when to look again.
    fn flush(&mut self, now: TrueTime, hurried: bool) -> Option<TrueTime> {
        if self.gathering.is_empty() || self.committing.is_some() {
            return None;
        }
        let due_at = self.gathering_since + UNHURRIED;
        if self.waiting.is_empty() && !hurried && now < due_at {
            return Some(due_at);
        }
        let done_at = now + self.slowness;
        let (records, held) =
            (std::mem::take(&mut self.gathering), std::mem::take(&mut self.waiting));
        let failure = self.failure.take();
        self.committing = Some(Write { done_at, failure, records, held });
        Some(done_at)
    }

    fn done(&mut self, now: TrueTime) -> Option<Write<P>> {
        self.committing.take_if(|write| write.done_at <= now)
    }
}

impl<P: Driven, C: Crowd<P>, W: Watch> World<'_, P, C, W> {
    /// A protocol wants something written.
    #[inline]
    pub(crate) fn persist(&mut self, index: usize, key: P::DurableKey, value: Option<P::Durable>) {
        let now = self.now;
        let peer = &mut self.peers[index];
        match &mut peer.output {
            None => peer.disk.write(key, value),
            Some(output) => output.gather(now, (key, value)),
        }
    }

    /// Whether what a protocol says now, to a peer or to its users, has to wait for the disk.
    #[inline]
    pub(crate) fn waits(&self, index: usize, to: Option<PeerId>) -> bool {
        self.peers[index].output.as_ref().is_some_and(|output| {
            output.is_busy()
                && to != Some(self.population.name(index))
                && self.config.driver != Some(Mutant::SpeaksBeforeTheDisk)
        })
    }

    /// Keeps it until the disk is ready.
    pub(crate) fn hold(&mut self, index: usize, said: Said<P>) {
        if let Some(output) = &mut self.peers[index].output {
            output.hold(said);
        }
    }

    fn let_go(&mut self, index: usize, said: Said<P>) {
        match said {
            Said::Message(to, message) => self.send(index, to, message),
            Said::Reply(id, reply) => self.reply(index, id, reply),
        }
    }

    /// The end of an input: begins to write what has to be written.
    pub(crate) fn flush(&mut self, index: usize) {
        let hurried = self.config.driver == Some(Mutant::SpeaksBeforeTheDisk);
        let Some(output) = &mut self.peers[index].output else { return };
        if let Some(at) = output.flush(self.now, hurried) {
            self.queue.push(at, Event::Disk { peer: index as u32 });
        } else if output.is_over() {
            self.peers[index].output = None;
        }
    }

    /// A write may be done, or one may be due.
    pub(crate) fn on_disk(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let Some(output) = &mut peer.output else { return };
        if peer.protocol.is_none() || peer.paused_until.is_some() {
            return;
        }
        let goes_on = self.config.driver == Some(Mutant::GoesOnAfterFailures);
        match output.done(self.now) {
            Some(Write { failure: Some(failure), records, .. }) if !goes_on => {
                peer.disk.settle(records, failure.found);
                return self.crash(index);
            }
            Some(Write { failure, records, held, .. }) => {
                peer.disk.settle(records, failure.is_none_or(|failure| failure.found));
                held.into_iter().for_each(|said| self.let_go(index, said));
            }
            None => {}
        }
        self.flush(index);
    }

    /// From now on a write takes so long.
    pub(crate) fn slow_down(&mut self, index: usize, slowness: Span) {
        self.peers[index].output.get_or_insert_default().slowness = slowness;
        self.flush(index);
    }

    /// The next write will fail.
    pub(crate) fn fail_write(&mut self, index: usize, failure: Failure) {
        self.peers[index].output.get_or_insert_default().failure = Some(failure);
    }

    /// What becomes of the write under way when the peer stops: what was not begun is lost, and whether the rest was
    /// done is anybody's guess. The disk stays as slow as it was.
    pub(crate) fn cut_write_short(&mut self, index: usize) {
        let Some(output) = self.peers[index].output.take() else { return };
        if let Some(Write { done_at, failure, records, .. }) = output.committing {
            let done = match failure {
                Some(failure) => failure.found,
                None => done_at <= self.now || self.rng.below(2) == 0,
            };
            self.peers[index].disk.settle(records, done);
        }
        if output.slowness > Span::ZERO {
            self.slow_down(index, output.slowness);
        }
    }

    /// The disk is as good as any, from the next write on.
    pub(crate) fn heal_disk(&mut self, index: usize) {
        if let Some(output) = &mut self.peers[index].output {
            (output.slowness, output.failure) = (Span::ZERO, None);
            if let Some(write) = &mut output.committing {
                write.failure = None;
            }
            self.flush(index);
        }
    }
}

impl<P: Protocol> Disk<P> {
    /// A record, which is on disk when this returns.
    #[inline]
    pub(crate) fn write(&mut self, key: P::DurableKey, value: Option<P::Durable>) {
        self.writes += 1;
        if let Some(undone) = &mut self.undone {
            undone.push_back((key.clone(), self.records.get(&key).cloned()));
            if undone.len() > LOST_MAX {
                undone.pop_front();
            }
        }
        match value {
            Some(value) => self.records.insert(key, value),
            None => self.records.remove(&key),
        };
    }

    fn settle(&mut self, records: Vec<Change<P>>, done: bool) {
        if done {
            records.into_iter().for_each(|(key, value)| self.write(key, value));
        }
    }

    /// The last records are as if they had never been written.
    pub(crate) fn lose(&mut self, count: usize) {
        for _ in 0..count {
            let Some((key, before)) = self.undone.as_mut().and_then(VecDeque::pop_back) else {
                return;
            };
            self.writes -= 1;
            match before {
                Some(value) => self.records.insert(key, value),
                None => self.records.remove(&key),
            };
        }
    }
}
