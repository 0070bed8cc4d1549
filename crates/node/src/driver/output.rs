//! What the world gets to see, in order, and never before what it rests on is on disk.
//!
//! ```text
//!   effects ──►  gathering  ──►  committing  ──►  seen
//!                (records, and what comes after the first of them)
//!                                (one write to disk at a time)
//! ```
//!
//! Records gather while the disk is busy with the ones before, so that one write serves many. What was
//! said before the first gathered record rests only on the write under way; while nothing is being
//! written, it rests on nothing and is seen at once. Records that nothing waits for yet are in no hurry:
//! most likely the next are about the same lock.

use serde::Serialize;
use sigmalock_core::{LocalTime, LockReply, Span};
use tokio::sync::oneshot;

use super::calls::{Addressee, Calls};
use super::counters::Counters;
use super::peers::{Letter, Peers};
use crate::control::Answer;
use crate::report::ForgetError;
use crate::store::{Batch, Store};

/// So long may records that nothing waits for stay off the disk.
const UNHURRIED: Span = Span::from_millis(50);

/// What this peer's own users and operators get to see.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A reply to a session.
    Reply(Addressee, LockReply),
    /// The answer to an operator.
    Answer(oneshot::Sender<Answer>, Answer),
    /// The answer to an operator who wants a member forgotten.
    Forgotten(oneshot::Sender<Result<(), ForgetError>>, Result<(), ForgetError>),
    /// The end of a session that has given back what it held.
    Ended(u64),
    /// The end of the last session that was to end.
    Dismissed(oneshot::Sender<()>),
}

/// The outward side of a driver.
#[derive(Debug)]
pub(crate) struct Output {
    store: Option<Store>,
    /// Records ever written to it, in this life and before, and those about to be.
    writes: u64,
    /// Records for the next write, and since when there are any.
    gathering: Batch,
    gathering_since: LocalTime,
    seen: Vec<Seen>,
    /// What waits for the write under way, if there is one.
    committing: Option<Held>,
}

#[derive(Debug, Default)]
struct Held {
    letters: Vec<Letter>,
    seen: Vec<Seen>,
}

impl Output {
    /// Without a store nothing is kept, and nothing waits.
    pub(crate) fn new(store: Option<Store>, writes: u64) -> Self {
        let (gathering, gathering_since) = (Batch::default(), LocalTime::MIN);
        Self { store, writes, gathering, gathering_since, seen: Vec::new(), committing: None }
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.store.is_some()
    }

    /// How many records were ever written, those included that are about to be.
    pub(crate) const fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether everything has been written and seen.
    pub(crate) fn is_idle(&self) -> bool {
        self.committing.is_none() && self.gathering.is_empty() && self.seen.is_empty()
    }

    pub(crate) fn see(&mut self, seen: Seen) {
        self.seen.push(seen);
    }

    /// A record, which everything that follows waits for.
    pub(crate) fn persist(
        &mut self, key: &impl Serialize, value: Option<&impl Serialize>, world: &mut World<'_>,
    ) -> Result<(), postcard::Error> {
        if self.store.is_none() {
            return Ok(());
        }
        if self.gathering.is_empty() {
            self.let_go(world);
            self.gathering_since = world.now;
        }
        self.writes += 1;
        self.gathering.push(key, value)
    }

    /// The end of a batch of inputs: lets go of what may be seen, and begins to write what has to be.
    pub(crate) fn flush(&mut self, world: &mut World<'_>) {
        if self.gathering.is_empty() {
            self.let_go(world);
        } else if self.committing.is_none() {
            self.commit_if_due(world);
        }
    }

    /// When to look again, even if nothing happens.
    pub(crate) fn due_at(&self) -> LocalTime {
        if self.gathering.is_empty() || self.committing.is_some() {
            return LocalTime::NEVER;
        }
        self.gathering_since + UNHURRIED
    }

    /// The write under way is on disk.
    pub(crate) fn committed(&mut self, world: &mut World<'_>) {
        let Some(mut held) = self.committing.take() else { return };
        world.post(held.letters.drain(..));
        world.show(held.seen.drain(..));
        if !self.gathering.is_empty() {
            self.commit_if_due(world);
        }
    }

    fn commit_if_due(&mut self, world: &mut World<'_>) {
        let awaited = !self.seen.is_empty() || world.peers.are_spoken_to();
        if awaited || self.due_at() <= world.now {
            self.commit(world);
        }
    }

    /// Whether a write is done; says so once.
    pub(crate) fn poll_committed(
        &mut self, cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), crate::store::WriteError>> {
        match &mut self.store {
            Some(store) if self.committing.is_some() => store.poll_written(cx),
            _ => std::task::Poll::Pending,
        }
    }

    /// Takes the store out, to be closed.
    pub(crate) fn close(&mut self) -> Option<Store> {
        self.store.take()
    }

    /// What was gathered rests on nothing newer than the write under way.
    fn let_go(&mut self, world: &mut World<'_>) {
        match &mut self.committing {
            Some(held) => {
                held.letters.extend(world.peers.letters());
                held.seen.append(&mut self.seen);
            }
            None => {
                world.post_all();
                world.show(self.seen.drain(..));
            }
        }
    }

    fn commit(&mut self, world: &mut World<'_>) {
        let Some(store) = &mut self.store else { return };
        world.counters.commits += 1;
        store.write(std::mem::take(&mut self.gathering));
        let seen = std::mem::take(&mut self.seen);
        self.committing = Some(Held { letters: world.peers.letters().collect(), seen });
    }
}

/// Those who get to see.
pub(crate) struct World<'a> {
    pub(crate) now: LocalTime,
    pub(crate) peers: &'a mut Peers,
    pub(crate) calls: &'a Calls,
    pub(crate) counters: &'a mut Counters,
    /// Sessions that must end.
    pub(crate) ending: &'a mut Vec<u64>,
}

impl World<'_> {
    fn post_all(&mut self) {
        let letters: Vec<Letter> = self.peers.letters().collect();
        self.post(letters.into_iter());
    }

    fn post(&mut self, letters: impl Iterator<Item = Letter>) {
        for letter in letters {
            self.counters.letters += 1;
            self.counters.bytes_out += letter.len() as u64;
            self.peers.post(letter);
        }
    }

    fn show(&mut self, seen: impl Iterator<Item = Seen>) {
        for seen in seen {
            match seen {
                Seen::Reply(addressee, reply) => {
                    self.ending.extend(self.calls.deliver(addressee, reply));
                }
                Seen::Ended(session) => self.ending.push(session),
                Seen::Dismissed(done) => {
                    let _ = done.send(());
                }
                Seen::Forgotten(done, forgotten) => {
                    let _ = done.send(forgotten);
                }
                Seen::Answer(done, answer) => {
                    let _ = done.send(answer);
                }
            }
        }
    }
}
