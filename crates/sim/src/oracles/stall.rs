//! After the heal no lock stays empty for long while somebody waits.
//!
//! Not that every request is let in within a fixed time, for a queue takes the time that those ahead
//! spend inside; but that it moves: from the heal on, whenever nobody unexpired is inside and somebody
//! waits, the next one is let in (or the last one gives up) within `patience_after_heal`. That covers
//! the longest lease of a dead holder and the abstention of a host without memory, both at their worst.

use sigmalock_core::Name;

use super::board::{Board, Lock};
use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone)]
pub struct Stall {
    setting: Setting,
    board: Board,
    healed: Option<TrueTime>,
}

impl Stall {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self { setting, board: Board::default(), healed: None }
    }

    fn objection(&self, name: &Name, lock: &Lock, now: TrueTime) -> Option<String> {
        let since = lock.idle_since(now)?.max(self.healed?);
        let span = now.since(since);
        (span > self.setting.patience_after_heal)
            .then(|| format!("{name} stood still for {span} after the heal"))
    }
}

impl Oracle for Stall {
    fn name(&self) -> &'static str {
        "stall"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        if let Some((name, lock)) = self.board.lock_of(&record.what)
            && let Some(sentence) = self.objection(name, lock, at)
        {
            violations.push(Violation { oracle: self.name(), at, sentence });
        }
        if record.what == What::Healed {
            self.healed = Some(at);
        }
        self.board.see(record);
    }

    fn finish(&mut self, end: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        for (name, lock) in self.board.locks() {
            if let Some(sentence) = self.objection(name, lock, end) {
                violations.push(Violation { oracle: self.name(), at: end, sentence });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    /// Client 1 has waited from the beginning, through the faults, which end at 50 s.
    fn let_in_at(granted_ms: Option<u64>) -> Vec<Violation> {
        let mut tale = vec![(0, asked(1)), (50_000, What::Healed), (51_000, asked(2))];
        tale.extend(granted_ms.map(|at_ms| (at_ms, granted(1, 99_999))));
        judge(Stall::new(setting()), &tale, 99_000)
    }

    #[test]
    fn before_the_heal_anything_goes_and_soon_after_it_the_lock_moves() {
        assert!(let_in_at(Some(59_000)).is_empty());
    }

    #[test]
    fn a_lock_that_stands_still_after_the_heal_is_seen() {
        assert_eq!(let_in_at(Some(61_000))[0].sentence, "/a stood still for 11s after the heal");
        assert_eq!(let_in_at(None)[0].sentence, "/a stood still for 49s after the heal");
    }

    #[test]
    fn a_long_queue_that_moves_is_fine() {
        let mut tale = vec![(0, What::Healed)];
        tale.extend((1..=9).map(|client| (1, asked(client))));
        for client in 1..=9 {
            let at = client * 9_000;
            tale.extend([(at, granted(client, 999_999)), (at + 5_000, released(client))]);
        }
        assert!(judge(Stall::new(setting()), &tale, 99_000).is_empty());
    }
}
