//! Without faults, who asked well before another is let in before it.
//!
//! The paper's "quasi-FCFS", made precise. REQUESTs may overtake each other, so requests that ask within
//! 3 worst one-way delays of each other may come in any order. Beyond that the earlier one is known to
//! every replica (one delay), knows its answers (two), and what it yielded is queued again (three), all
//! before the later one asks: wherever both wait, the earlier one is ahead, and nobody overtakes it.
//! Only requests that wait for ever count as overtaken; others may be about to give up. And among readers
//! that may be inside together nobody is overtaken, whoever hears first that it may enter; but no reader
//! may enter before a writer that asked well before it.

use std::collections::BTreeSet;

use sigmalock_core::{RequestId, Span};

use super::board::{Board, request_of};
use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone)]
pub struct Fifo {
    head_start: Span,
    board: Board,
    /// Waiters whose case has been reported.
    overtaken: BTreeSet<RequestId>,
}

impl Fifo {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let head_start = setting.one_way_worst * 3;
        Self { head_start, board: Board::default(), overtaken: BTreeSet::new() }
    }

    /// Who still waits though it asked well before `request`.
    fn overtaken_by(&self, what: &What, request: RequestId) -> Vec<RequestId> {
        let (Some((_, lock)), Some(asked)) = (self.board.lock_of(what), self.board.asked(request))
        else {
            return Vec::new();
        };
        let earlier = lock.waiting.iter().take_while(|((at, _), _)| *at + self.head_start < asked);
        let earlier = earlier.filter(|(_, forever)| **forever).map(|((_, waits), _)| *waits);
        earlier.filter(|waits| !self.board.share(*waits, request)).collect()
    }
}

impl Oracle for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        if let What::Granted { request, .. } = &record.what {
            for early in self.overtaken_by(&record.what, *request) {
                if self.overtaken.insert(early) {
                    let sentence = format!("{request} overtook {early}, which asked well before");
                    violations.push(Violation { oracle: "fifo", at: record.at, sentence });
                }
            }
        }
        self.board.see(record);
        if let Some(request) = request_of(&record.what)
            && !self.board.is_waiting(request)
        {
            self.overtaken.remove(&request);
        }
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, _: &mut Vec<Violation>) {}
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    /// Client 1 asks at 0 and waits while others, who ask at `asked_ms`, come and go.
    fn overtakers(asked_ms: u64, count: u64) -> Vec<Violation> {
        let mut tale = vec![(0, asked(1))];
        for client in 2..2 + count {
            let at = asked_ms + client;
            tale.extend([
                (at, asked(client)),
                (at, granted(client, 9_999)),
                (at, released(client)),
            ]);
        }
        judge(Fifo::new(setting()), &tale, 9_999)
    }

    #[test]
    fn who_asks_at_about_the_same_time_may_come_first() {
        assert!(overtakers(100, 100).is_empty());
    }

    #[test]
    fn readers_do_not_overtake_each_other_but_a_writer() {
        let pass = |first: What| {
            let tale = [(0, first), (400, asked_to_read(2)), (500, granted(2, 9_999))];
            judge(Fifo::new(setting()), &tale, 9_999).len()
        };
        assert_eq!((pass(asked_to_read(1)), pass(asked(1))), (0, 1));
    }

    #[test]
    fn who_asks_well_after_may_not() {
        let violations = overtakers(300, 9);
        assert_eq!(violations.len(), 1, "said once");
        assert_eq!(violations[0].sentence, "p2/1 overtook p1/1, which asked well before");
    }
}
