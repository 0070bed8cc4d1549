//! At most one unexpired holder of a lock at any true instant, or readers only, or as
//! many as a semaphore has permits: each with a slot of its own, and all of one number.
//!
//! A holder counts from the moment it is let in until it leaves, but never beyond the instant at which its
//! own clock shows its deadline: who acts later is not a holder, and for fencing to stop
//! ([`super::register`]). That it was told to stop, or that its peer crashed, does not put it outside: it
//! may be inside until its deadline, unless it says that it has left.

use std::collections::BTreeMap;

use sigmalock_core::{Mode, Name, RequestId};

use super::board::{Board, may_share};
use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Exclusion {
    board: Board,
    /// Who was told to stop, or whose peer crashed, before its deadline, and has not said that it has left.
    lingering: BTreeMap<Name, Vec<Holder>>,
}

/// Somebody who may be inside.
#[derive(Debug, Clone, Copy)]
struct Holder {
    request: RequestId,
    mode: Mode,
    until: TrueTime,
}

impl Exclusion {
    /// Nobody counts on this one any more, but it may be inside for a while.
    fn linger(&mut self, request: RequestId, at: TrueTime) {
        let Some(until) = self.board.inside_until(request).filter(|until| *until > at) else {
            return;
        };
        let mode = self.board.mode(request);
        if let Some(name) = self.board.name_of(request) {
            let holder = Holder { request, mode, until };
            self.lingering.entry(name.clone()).or_default().push(holder);
        }
    }

    fn take_leave(&mut self, request: RequestId) {
        self.lingering.retain(|_, holders| {
            holders.retain(|holder| holder.request != request);
            !holders.is_empty()
        });
    }
}

impl Oracle for Exclusion {
    fn name(&self) -> &'static str {
        "exclusion"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        match &record.what {
            What::Lost(request) => self.linger(*request, at),
            What::Crashed(peer) => {
                let theirs = self.board.requests_of(*peer);
                theirs.into_iter().for_each(|request| self.linger(request, at));
            }
            What::Left(request) => self.take_leave(*request),
            _ => {}
        }
        self.board.see(record);
        let (What::Granted { request, .. } | What::Extended { request, .. }) = &record.what else {
            return;
        };
        let Some((name, lock)) = self.board.lock_of(&record.what) else { return };
        if lock.inside.get(request).is_none_or(|until| *until <= at) {
            return;
        }
        let lingering = self.lingering.get_mut(name).map_or(&[][..], |holders| {
            holders.retain(|holder| holder.until > at);
            holders
        });
        let inside = lock.inside.iter().filter(|(_, until)| **until > at).map(|(other, _)| *other);
        let inside = inside.map(|other| (other, self.board.mode(other)));
        let holders = inside.chain(lingering.iter().map(|holder| (holder.request, holder.mode)));
        let mode = self.board.mode(*request);
        let clashes = |(other, of): &(RequestId, Mode)| other != request && !may_share(mode, *of);
        if let Some((other, _)) = holders.clone().find(clashes) {
            let sentence = format!("{request} is inside {name} while {other} is");
            violations.push(Violation { oracle: "exclusion", at, sentence });
        }
        let (inside, room) = (holders.count(), self.board.room(*request));
        if room > 1 && inside > room {
            let sentence = format!("{inside} are inside {name}, which has {room} permits");
            violations.push(Violation { oracle: "exclusion", at, sentence });
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
        let ends = [(1_000, released(1)), (10, lost(1)), (20, crashed(1)), (10, extended(1, 20))];
        for (until, end) in ends {
            let at = until.min(10);
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
    fn who_is_told_to_stop_or_whose_peer_crashes_may_be_inside_until_its_deadline() {
        for end in [lost(1), crashed(1)] {
            let tale = |at| {
                let asked = [(0, asked(1)), (0, asked(2)), (0, granted(1, 50))];
                [&asked[..], &[(10, end.clone()), (at, granted(2, 99))]].concat()
            };
            let violations = judge(Exclusion::default(), &tale(49), 99);
            assert_eq!(violations[0].sentence, "p2/1 is inside /a while p1/1 is");
            assert_eq!((violations.len(), violations[0].at), (1, ms(49)));
            assert_eq!(judge(Exclusion::default(), &tale(50), 99), []);
        }
    }

    #[test]
    fn who_was_told_to_stop_and_says_that_it_has_left_is_out() {
        let tale = [
            (0, asked(1)),
            (0, asked(2)),
            (0, granted(1, 50)),
            (10, lost(1)),
            (20, left(1)),
            (20, granted(2, 99)),
        ];
        assert_eq!(judge(Exclusion::default(), &tale, 99), []);
    }

    #[test]
    fn a_crash_of_one_peer_says_nothing_of_the_requests_of_another() {
        let tale = [
            (0, asked(1)),
            (0, asked(2)),
            (0, granted(1, 50)),
            (10, crashed(2)),
            (20, released(1)),
            (20, asked(3)),
            (20, granted(3, 99)),
        ];
        assert_eq!(judge(Exclusion::default(), &tale, 99), []);
    }

    #[test]
    fn readers_and_permits_count_until_their_deadlines_too() {
        let reader =
            [(0, asked_to_read(1)), (0, asked_to_read(2)), (0, granted(1, 50)), (1, lost(1))];
        let mut tale = reader.to_vec();
        tale.push((2, granted(2, 99)));
        assert_eq!(judge(Exclusion::default(), &tale, 99), []);
        tale.extend([(3, released(2)), (3, asked(3)), (4, granted(3, 99))]);
        assert_eq!(judge(Exclusion::default(), &tale, 99).len(), 1, "a writer beside a reader");
        let mut tale: Vec<_> = (1..=3).map(|client| (0, asked_for_permit(client, 2))).collect();
        tale.extend([(0, granted(1, 50)), (1, granted(2, 99)), (2, crashed(1))]);
        tale.push((3, granted(3, 99)));
        let violations = judge(Exclusion::default(), &tale, 99);
        assert_eq!(violations[0].sentence, "3 are inside /a, which has 2 permits");
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
