//! Where clients take several locks at once, nobody waits in a circle: after the heal, and without faults
//! always, somebody is let in or leaves within `patience_after_heal` for as long as anybody waits.
//!
//! A lock that is held is not empty, so [`super::stall`] has nothing to say about two holders that each wait
//! for what the other has. Clients stay inside for less than that, so a world in which only leases are
//! extended for so long stands still.

use super::board::Board;
use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone)]
pub struct Progress {
    setting: Setting,
    board: Board,
    healed: Option<TrueTime>,
    moved: TrueTime,
    reported: bool,
}

impl Progress {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let healed = (!setting.faulty).then(TrueTime::default);
        let (board, moved) = (Board::default(), TrueTime::default());
        Self { setting, board, healed, moved, reported: false }
    }

    fn look(&mut self, now: TrueTime, violations: &mut Vec<Violation>) {
        let waiting: usize = self.board.locks().map(|(_, lock)| lock.waiting.len()).sum();
        let Some(healed) = self.healed.filter(|_| waiting > 0 && !self.reported) else { return };
        let span = now.since(self.moved.max(healed));
        if span > self.setting.patience_after_heal {
            self.reported = true;
            let sentence = format!("nobody came or went for {span}, and {waiting} wait");
            violations.push(Violation { oracle: "progress", at: now, sentence });
        }
    }
}

impl Oracle for Progress {
    fn name(&self) -> &'static str {
        "progress"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        self.look(record.at, violations);
        match record.what {
            What::Healed => self.healed = Some(record.at),
            What::Extended { .. } | What::Wrote { .. } => {}
            _ => (self.moved, self.reported) = (record.at, false),
        }
        self.board.see(record);
    }

    fn finish(&mut self, end: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        self.look(end, violations);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    /// Client 1 is inside, and is extended again and again, while client 2 waits.
    fn held_for(ms: u64) -> usize {
        let mut tale = vec![(0, asked(1)), (0, granted(1, 99_999)), (0, asked(2))];
        tale.extend((1..ms / 1_000).map(|s| (s * 1_000, extended(1, 99_999))));
        tale.push((ms, released(1)));
        judge(Progress::new(setting()), &tale, ms).len()
    }

    #[test]
    fn a_world_that_only_extends_leases_stands_still() {
        assert_eq!((held_for(10_000), held_for(30_000)), (0, 1), "said once");
    }

    #[test]
    fn where_nobody_waits_nothing_has_to_happen() {
        let tale = [(0, asked(1)), (0, granted(1, 99_999)), (90_000, extended(1, 199_999))];
        assert_eq!(judge(Progress::new(setting()), &tale, 99_000), []);
    }
}
