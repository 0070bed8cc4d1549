//! Without faults, no reader is kept out by readers: where only readers are inside and only readers wait,
//! whoever waits is let in within 3 worst round trips. And if a semaphore has a permit left, one of those
//! who wait gets it within 5.
//!
//! That is what sharing a lock is for. (Why 3: [`super::idle`]. Whoever wants a permit first finds out that
//! the slot it asked for is taken, and may have to wait for another one to decide which of two it keeps.
//! Permits are always on their way from hand to hand, so what counts is that they move.) While a writer waits, readers that came
//! later wait with good reason. A waiter that gives up may have left votes behind that must come back, so
//! the count begins anew.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_core::{Mode, Name, RequestId, Span};

use super::board::{Board, Lock};
use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone)]
pub struct Sharing {
    limit: Span,
    limit_of_permits: Span,
    board: Board,
    /// Since when only readers are inside a lock and wait for it.
    shared_since: BTreeMap<Name, TrueTime>,
    /// Waiters whose case has been reported.
    reported: BTreeSet<RequestId>,
}

impl Sharing {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let round_trip = setting.one_way_worst * 2;
        Self {
            limit: round_trip * 3,
            limit_of_permits: round_trip * 5,
            board: Board::default(),
            shared_since: BTreeMap::new(),
            reported: BTreeSet::new(),
        }
    }

    /// Whether everybody inside would let everybody in who waits.
    fn is_shared(&self, lock: &Lock) -> bool {
        let shares =
            |one: &RequestId, other: &RequestId| one == other || self.board.share(*one, *other);
        let waits = |waits: &RequestId| {
            lock.inside.len() < self.board.room(*waits)
                && lock.inside.keys().all(|inside| shares(waits, inside))
                && lock.waiting.keys().all(|(_, other)| shares(waits, other))
        };
        !lock.inside.is_empty() && lock.waiting.keys().all(|(_, request)| waits(request))
    }

    /// Who has been kept out for too long, and for how long.
    fn kept_out(&self, name: &Name, lock: &Lock, now: TrueTime) -> Option<(RequestId, String)> {
        let since = *self.shared_since.get(name)?;
        let ((asked, request), _) = lock.waiting.first_key_value()?;
        let span = now.since(since.max(*asked));
        let inside = lock.inside.len();
        let readers = self.board.mode(*request) == Mode::Shared;
        let limit = if readers { self.limit } else { self.limit_of_permits };
        let is_news = span > limit && !self.reported.contains(request);
        let sentence = || format!("{request} was kept out of {name} for {span} by {inside}");
        is_news.then(|| (*request, sentence()))
    }
}

impl Oracle for Sharing {
    fn name(&self) -> &'static str {
        "sharing"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        let name = self.board.lock_of(&record.what).map(|(name, _)| name.clone());
        if let Some((name, lock)) = self.board.lock_of(&record.what)
            && let Some((request, sentence)) = self.kept_out(name, lock, at)
        {
            violations.push(Violation { oracle: "sharing", at, sentence });
            self.reported.insert(request);
        }
        self.board.see(record);
        let Some(name) = name else { return };
        let lock = self.board.locks().find(|(known, _)| **known == name).map(|(_, lock)| lock);
        if !lock.is_some_and(|lock| self.is_shared(lock)) {
            self.shared_since.remove(&name);
        } else if matches!(record.what, What::Ended(..) | What::Granted { slot: Some(_), .. }) {
            self.shared_since.insert(name, at);
        } else {
            self.shared_since.entry(name).or_insert(at);
        }
    }

    fn finish(&mut self, end: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        for (name, lock) in self.board.locks() {
            if let Some((_, sentence)) = self.kept_out(name, lock, end) {
                violations.push(Violation { oracle: self.name(), at: end, sentence });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    /// Client 1 reads from the beginning; client 2 asks at 100 ms and is let in at `let_in_ms`.
    fn second_reader(let_in_ms: u64, between: Option<(u64, What)>) -> usize {
        let mut tale =
            vec![(0, asked_to_read(1)), (0, granted(1, 99_999)), (100, asked_to_read(2))];
        tale.extend(between);
        tale.push((let_in_ms, granted(2, 99_999)));
        judge(Sharing::new(setting()), &tale, 90_000).len()
    }

    #[test]
    fn a_reader_is_let_in_beside_another_within_three_round_trips() {
        assert_eq!((second_reader(700, None), second_reader(701, None)), (0, 1));
        let never = [(0, asked_to_read(1)), (0, granted(1, 99_999)), (100, asked_to_read(2))];
        assert_eq!(judge(Sharing::new(setting()), &never, 9_000).len(), 1);
    }

    #[test]
    fn a_permit_that_is_left_is_given() {
        let mut tale: Vec<_> = (1..=3).map(|client| (0, asked_for_permit(client, 2))).collect();
        tale.extend([(0, granted(1, 99_999)), (100, granted(2, 99_999))]);
        assert_eq!(judge(Sharing::new(setting()), &tale, 90_000), [], "there are two");
        tale.push((5_000, released(1)));
        tale.push((6_001, granted(3, 99_999)));
        assert_eq!(judge(Sharing::new(setting()), &tale, 90_000).len(), 1);
        tale[6].0 = 6_000;
        assert_eq!(judge(Sharing::new(setting()), &tale, 90_000), []);
    }

    #[test]
    fn a_writer_that_waits_is_a_good_reason() {
        assert_eq!(second_reader(9_000, Some((50, asked(3)))), 0);
    }
}
