//! At most one unexpired holder of a lock at any true instant, or readers only, or as
//! many as a semaphore has permits: each with a slot of its own, and all of one number.
//!
//! A holder counts from the moment it is let in until it leaves, is told that its lock is lost, or its
//! peer crashes, but never beyond the instant at which its own clock shows its deadline: who acts later
//! is not a holder, and for fencing to stop ([`super::register`]).

use sigmalock_core::RequestId;

use super::board::Board;
use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Default)]
pub struct Exclusion {
    board: Board,
}

impl Oracle for Exclusion {
    fn name(&self) -> &'static str {
        "exclusion"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        self.board.see(record);
        let (What::Granted { request, .. } | What::Extended { request, .. }) = &record.what else {
            return;
        };
        let Some((name, lock)) = self.board.lock_of(&record.what) else { return };
        let unexpired = |holder| lock.inside.get(holder).is_some_and(|until| *until > at);
        let clashes = |other: &RequestId| other != request && !self.board.share(*request, *other);
        let other = lock.inside.keys().find(|other| clashes(other) && unexpired(other));
        if let Some(other) = other.filter(|_| unexpired(request)) {
            let sentence = format!("{request} is inside {name} while {other} is");
            violations.push(Violation { oracle: self.name(), at, sentence });
        }
        let inside = lock.inside.keys().filter(|holder| unexpired(holder)).count();
        let room = self.board.room(*request);
        if room > 1 && inside > room && unexpired(request) {
            let sentence = format!("{inside} are inside {name}, which has {room} permits");
            violations.push(Violation { oracle: self.name(), at, sentence });
        }
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, _: &mut Vec<Violation>) {}
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    #[test]
    fn one_after_the_other_is_fine_however_the_first_one_ends() {
        for (at, end) in [(20, released(1)), (20, lost(1)), (20, crashed(1)), (1, extended(1, 20))]
        {
            let until = if matches!(end, What::Extended { .. }) { 10 } else { 1_000 };
            let tale = [
                (0, asked(1)),
                (0, asked(2)),
                (0, granted(1, until)),
                (at, end),
                (20, granted(2, 1_000)),
            ];
            assert_eq!(judge(Exclusion::default(), &tale, 99), []);
        }
    }

    #[test]
    fn two_at_once_are_seen_when_the_second_enters() {
        let tale = [(0, asked(1)), (0, asked(2)), (0, granted(1, 21)), (20, granted(2, 99))];
        let violations = judge(Exclusion::default(), &tale, 99);
        assert_eq!(violations[0].sentence, "p2/1 is inside /a while p1/1 is");
        assert_eq!((violations.len(), violations[0].at), (1, ms(20)));
    }

    #[test]
    fn readers_may_be_inside_together_and_a_writer_with_none_of_them() {
        let tale = [
            (0, asked_to_read(1)),
            (0, asked_to_read(2)),
            (0, asked(3)),
            (0, granted(1, 50)),
            (1, granted(2, 99)),
            (2, released(1)),
        ];
        assert_eq!(judge(Exclusion::default(), &tale, 99), []);
        let mut writer = tale.to_vec();
        writer.push((3, granted(3, 99)));
        assert_eq!(judge(Exclusion::default(), &writer, 99).len(), 1);
        writer.insert(6, (3, released(2)));
        assert_eq!(judge(Exclusion::default(), &writer, 99), []);
    }

    #[test]
    fn no_more_are_inside_a_semaphore_than_it_has_permits() {
        let mut tale: Vec<_> = (1..=3).map(|client| (0, asked_for_permit(client, 2))).collect();
        tale.extend([(0, granted(1, 50)), (1, granted(2, 99))]);
        assert_eq!(judge(Exclusion::default(), &tale, 99), []);
        tale.push((2, granted(3, 99)));
        let violations = judge(Exclusion::default(), &tale, 99);
        assert_eq!(violations[0].sentence, "3 are inside /a, which has 2 permits");
        tale[5].0 = 50;
        assert_eq!(judge(Exclusion::default(), &tale, 99), [], "one has expired");
    }

    #[test]
    fn a_permit_is_inside_with_neither_writers_nor_readers_nor_another_number_nor_its_own_slot() {
        let with = |other: What, slot| {
            let ask = [(0, asked_for_permit(1, 2)), (0, other)];
            let enter = [(0, granted_slot(1, 7, Some(0))), (1, granted_slot(2, 8, slot))];
            judge(Exclusion::default(), &[ask, enter].concat(), 99).len()
        };
        assert_eq!(with(asked_for_permit(2, 2), Some(1)), 0);
        assert_eq!(with(asked_for_permit(2, 2), Some(0)), 1);
        assert_eq!(with(asked_for_permit(2, 3), Some(1)), 1);
        assert_eq!((with(asked(2), None), with(asked_to_read(2), None)), (1, 1));
    }

    #[test]
    fn two_at_once_are_seen_when_the_first_is_extended_beyond_its_deadline() {
        let tale = [
            (0, asked(1)),
            (0, asked(2)),
            (0, granted(1, 10)),
            (20, granted(2, 99)),
            (30, extended(1, 50)),
        ];
        assert_eq!(judge(Exclusion::default(), &tale, 99).len(), 1);
    }
}
