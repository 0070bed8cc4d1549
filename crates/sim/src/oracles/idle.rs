//! Without faults, no lock is empty for longer than 3 worst round trips while somebody waits.
//!
//! The first round trip tells a waiter that nobody wins, the YIELDs of the second agree on a winner, and
//! the third is for votes that propose different tokens. What takes longer has lost sight of a vote.
//! A waiter that gives up may have been the winner, so the count begins anew.

use std::collections::BTreeMap;

use sigmalock_core::{Name, Span};

use super::board::{Board, Lock};
use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, Record, TrueTime};

/// See the module.
#[derive(Debug, Clone)]
pub struct Idle {
    limit: Span,
    board: Board,
    /// Spells that have been reported, by when they began.
    reported: BTreeMap<Name, TrueTime>,
}

impl Idle {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let limit = setting.one_way_worst * 2 * 3;
        Self { limit, board: Board::default(), reported: BTreeMap::new() }
    }

    fn objection(&self, name: &Name, lock: &Lock, now: TrueTime) -> Option<(TrueTime, String)> {
        let since = lock.idle_since(now)?;
        let span = now.since(since);
        let is_news = span > self.limit && self.reported.get(name) != Some(&since);
        let waiting = lock.waiting.len();
        is_news.then(|| (since, format!("{name} was empty for {span} while {waiting} waited")))
    }
}

impl Oracle for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        if let Some((name, lock)) = self.board.lock_of(&record.what)
            && let Some((since, sentence)) = self.objection(name, lock, record.at)
        {
            violations.push(Violation { oracle: self.name(), at: record.at, sentence });
            self.reported.insert(name.clone(), since);
        }
        self.board.see(record);
    }

    fn finish(&mut self, end: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        for (name, lock) in self.board.locks() {
            if let Some((_, sentence)) = self.objection(name, lock, end) {
                violations.push(Violation { oracle: self.name(), at: end, sentence });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;
    use crate::history::What;

    /// Client 1 comes and goes at 1 s; client 2, waiting since 0.5 s, is let in at `next_ms`.
    fn hand_over(next_ms: u64) -> Vec<Violation> {
        let tale: [(u64, What); 5] = [
            (0, asked(1)),
            (100, granted(1, 5_000)),
            (500, asked(2)),
            (1_000, released(1)),
            (next_ms, granted(2, 9_999)),
        ];
        judge(Idle::new(setting()), &tale, 9_000)
    }

    #[test]
    fn a_hand_over_within_three_round_trips_is_fine() {
        assert!(hand_over(1_600).is_empty());
    }

    #[test]
    fn a_longer_one_is_seen_once_and_so_is_one_that_never_comes() {
        let violations = hand_over(1_601);
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].sentence, "/a was empty for 601ms while 1 waited");
        let never = [(0, asked(1)), (700, asked(2)), (800, asked(3))];
        assert_eq!(judge(Idle::new(setting()), &never, 900).len(), 1);
    }

    #[test]
    fn an_empty_lock_that_nobody_wants_is_not_idle() {
        let tale = [(0, asked(1)), (9, ended(1)), (5_000, asked(2)), (5_100, granted(2, 9_999))];
        assert!(judge(Idle::new(setting()), &tale, 9_000).is_empty());
    }
}
