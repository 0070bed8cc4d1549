//! Without faults, permits of different numbers do not wait for each other: whoever asks for one while another
//! number is in force is told that number within 3 worst round trips. And nobody is told of a number that nobody
//! means.
//!
//! A number is in force while somebody is inside with a permit, or while nobody is and somebody waits for one:
//! the number of whoever asked first. It must have been for a while, and because of the same request, so that
//! every replica knows it ([`super::fifo`] says how long that takes); otherwise whoever asks may have been first
//! at some of them, and finds out when it asks again. Whoever is told of a number may have asked while the
//! last of those who meant it left.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_core::{Name, RequestId, Span};

use super::board::{Board, Lock, request_of};
use super::{Oracle, Setting, Violation};
use crate::history::{Ending, Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone)]
pub struct Refusals {
    head_start: Span,
    limit: Span,
    board: Board,
    /// Whether anybody has ever asked for a permit. Before that there is nothing to see.
    permits: bool,
    /// The number in force of each name, whose it is, and since when.
    in_force: BTreeMap<Name, (u16, RequestId, TrueTime)>,
    /// When somebody that meant a number was last there.
    meant: BTreeMap<(Name, u16), TrueTime>,
    /// Waiters whose case has been reported.
    reported: BTreeSet<RequestId>,
}

impl Refusals {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self {
            head_start: setting.one_way_worst * 3,
            limit: setting.one_way_worst * 2 * 3,
            board: Board::default(),
            permits: false,
            in_force: BTreeMap::new(),
            meant: BTreeMap::new(),
            reported: BTreeSet::new(),
        }
    }

    /// The number in force, and who of those that mean it asked first.
    fn number(&self, lock: &Lock) -> Option<(u16, RequestId)> {
        let permit = |request: &RequestId| Some((self.board.mode(*request).permits()?, *request));
        let asked = |(_, request): &(u16, RequestId)| self.board.asked(*request);
        let inside = lock.inside.keys().filter_map(permit).min_by_key(asked);
        inside.or_else(|| lock.waiting.keys().find_map(|(_, request)| permit(request)))
    }

    /// Who has waited for too long with another number.
    fn unanswered(&self, name: &Name, lock: &Lock, now: TrueTime) -> Vec<(RequestId, String)> {
        let Some((number, first, since)) = self.in_force.get(name) else { return Vec::new() };
        let Some(first_asked) = self.board.asked(*first) else { return Vec::new() };
        let known_from = first_asked.max(*since) + self.head_start;
        let late = lock.waiting.keys().filter(|(asked, request)| {
            let other = self.board.mode(*request).permits().is_some_and(|of| of != *number);
            other && known_from < *asked && now.since(*asked) > self.limit
        });
        let sentence = |asked: TrueTime, request: RequestId| {
            let span = now.since(asked);
            format!("{request} waits for {name} for {span}, which is in use with {number} permits")
        };
        let news = late.filter(|(_, request)| !self.reported.contains(request));
        news.map(|(asked, request)| (*request, sentence(*asked, *request))).collect()
    }

    /// Objects to a refusal for a number that nobody else means.
    fn unfounded(&self, record: &Record) -> Option<String> {
        let What::Ended(request, Ending::OtherPermits(of)) = &record.what else { return None };
        let (name, lock) = self.board.lock_of(&record.what)?;
        let mut there = lock.inside.keys().chain(lock.waiting.keys().map(|(_, request)| request));
        let means = |other: &RequestId| self.board.mode(*other).permits() == Some(*of);
        let lately = self.meant.get(&(name.clone(), *of));
        let lately = lately.is_some_and(|at| record.at.since(*at) <= self.limit);
        let founded = lately || there.any(|other| other != request && means(other));
        (!founded).then(|| format!("{request} is told that {name} is in use with {of} permits"))
    }

    fn look(&mut self, name: &Name, now: TrueTime, violations: &mut Vec<Violation>) {
        let lock = self.board.locks().find(|(known, _)| *known == name).map(|(_, lock)| lock);
        for (request, sentence) in
            lock.map_or_else(Vec::new, |lock| self.unanswered(name, lock, now))
        {
            violations.push(Violation { oracle: "refusals", at: now, sentence });
            self.reported.insert(request);
        }
    }
}

impl Oracle for Refusals {
    fn name(&self) -> &'static str {
        "refusals"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        self.permits |=
            matches!(&record.what, What::Asked { mode, .. } if mode.permits().is_some());
        if !self.permits {
            return self.board.see(record);
        }
        let name = match &record.what {
            What::Asked { name, .. } => Some(name.clone()),
            what => self.board.lock_of(what).map(|(name, _)| name.clone()),
        };
        if let Some(sentence) = self.unfounded(record) {
            violations.push(Violation { oracle: "refusals", at, sentence });
        }
        if let Some(name) = &name {
            self.look(name, at, violations);
        }
        let mode = request_of(&record.what).map(|request| self.board.mode(request));
        self.board.see(record);
        let Some(name) = name else { return };
        if let Some(of) = mode.and_then(|mode| mode.permits()) {
            self.meant.insert((name.clone(), of), at);
        }
        let lock = self.board.locks().find(|(known, _)| **known == name).map(|(_, lock)| lock);
        match lock.and_then(|lock| self.number(lock)) {
            Some((number, first)) => {
                let known = self.in_force.get(&name).filter(|(of, ..)| *of == number);
                let since = known.map_or(at, |(_, _, since)| *since);
                self.in_force.insert(name, (number, first, since));
            }
            None => drop(self.in_force.remove(&name)),
        }
    }

    fn finish(&mut self, end: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        let names: Vec<Name> = self.board.locks().map(|(name, _)| name.clone()).collect();
        for name in names {
            self.look(&name, end, violations);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    fn refused(client: u64, of: u16) -> What {
        What::Ended(request(client), Ending::OtherPermits(of))
    }

    /// Client 1 is inside with one of 2 permits, or waits for one; client 2 asks for one of 3 at `asked_ms`,
    /// and is told something at `told_ms`.
    fn second(inside: bool, asked_ms: u64, told_ms: u64, of: u16) -> usize {
        let mut tale = vec![(0, asked_for_permit(1, 2))];
        if inside {
            tale.push((0, granted(1, 99_999)));
        }
        tale.extend([(asked_ms, asked_for_permit(2, 3)), (told_ms, refused(2, of))]);
        judge(Refusals::new(setting()), &tale, told_ms).len()
    }

    #[test]
    fn who_means_another_number_is_told_so_within_three_round_trips() {
        for inside in [false, true] {
            assert_eq!(second(inside, 301, 901, 2), 0);
            assert_eq!(second(inside, 301, 902, 2), 1, "too late");
            assert_eq!(second(inside, 300, 9_000, 2), 0, "it may have been first somewhere");
        }
    }

    #[test]
    fn nobody_is_told_of_a_number_that_nobody_means() {
        assert_eq!(second(true, 400, 500, 3), 1, "its own");
        assert_eq!(second(true, 400, 500, 4), 1);
        let after = |told_ms| {
            let tale = [
                (0, asked_for_permit(1, 2)),
                (1, granted(1, 99_999)),
                (10, asked_for_permit(2, 3)),
                (20, released(1)),
                (told_ms, refused(2, 2)),
            ];
            judge(Refusals::new(setting()), &tale, told_ms).len()
        };
        assert_eq!((after(620), after(621)), (0, 1), "they are long gone");
    }

    #[test]
    fn who_means_the_same_number_may_wait() {
        let tale =
            [(0, asked_for_permit(1, 1)), (0, granted(1, 99_999)), (400, asked_for_permit(2, 1))];
        assert_eq!(judge(Refusals::new(setting()), &tale, 9_000), []);
    }
}
