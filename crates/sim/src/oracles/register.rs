//! What the locks are for: a register that knows tokens takes no write of the past, and refuses none
//! of the present.
//!
//! Once it has taken a write of a holder, it takes none of anybody let in earlier, however late that
//! one wakes up. And it never refuses the holder who was let in last, as long as that one is inside.

use std::collections::{BTreeMap, VecDeque};

use sigmalock_core::{Name, RequestId};

use super::board::{Board, request_of};
use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// So many holders that have left are remembered, for writes that come late. Of one that left before
/// all these nothing is asked any more.
const PAST_MAX: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub struct Register {
    board: Board,
    locks: BTreeMap<Name, Turns>,
    /// The turn of everybody who was let in.
    turns: BTreeMap<RequestId, (Name, u64)>,
    past: VecDeque<RequestId>,
}

/// Turns count the grants of a lock.
#[derive(Debug, Default)]
struct Turns {
    granted: u64,
    written: u64,
}

impl Register {
    fn judge(&mut self, at: TrueTime, request: RequestId, accepted: bool) -> Option<String> {
        let (name, turn) = self.turns.get(&request)?;
        let turns = self.locks.get_mut(name)?;
        let latest = turns.written;
        if accepted && *turn < latest {
            return Some(format!(
                "{request}, let in as number {turn}, wrote to {name} after {latest}"
            ));
        }
        if accepted {
            turns.written = *turn;
        }
        let inside = self.board.inside_until(request).is_some_and(|until| until > at);
        (!accepted && inside && *turn == turns.granted)
            .then(|| format!("{request} is inside {name} and was refused"))
    }
}

impl Oracle for Register {
    fn name(&self) -> &'static str {
        "register"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        match &record.what {
            What::Granted { request, .. } => {
                if let Some((name, _)) = self.board.lock_of(&record.what) {
                    let turns = self.locks.entry(name.clone()).or_default();
                    turns.granted += 1;
                    self.turns.insert(*request, (name.clone(), turns.granted));
                }
            }
            What::Lost(_) | What::Released(_) => self.past.extend(request_of(&record.what)),
            What::Crashed(peer) => self.past.extend(self.board.requests_of(*peer)),
            What::Wrote { request, accepted, .. } => {
                if let Some(sentence) = self.judge(at, *request, *accepted) {
                    violations.push(Violation { oracle: self.name(), at, sentence });
                }
            }
            _ => {}
        }
        while self.past.len() > PAST_MAX {
            let forgotten = self.past.pop_front();
            forgotten.and_then(|request| self.turns.remove(&request));
        }
        self.board.see(record);
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, _: &mut Vec<Violation>) {}
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    fn two_holders(rest: &[(u64, What)]) -> Vec<String> {
        let mut tale = vec![
            (0, asked(1)),
            (0, asked(2)),
            (1, granted(1, 10)),
            (2, wrote(1, true)),
            (20, granted(2, 90)),
        ];
        tale.extend_from_slice(rest);
        judge(Register::default(), &tale, 99).into_iter().map(|v| v.sentence).collect()
    }

    #[test]
    fn late_writes_may_be_taken_until_the_next_one_writes() {
        let fine =
            [(21, wrote(1, true)), (22, wrote(2, true)), (23, lost(1)), (24, wrote(1, false))];
        assert!(two_holders(&fine).is_empty());
    }

    #[test]
    fn a_write_of_the_past_is_seen() {
        let late = [(22, wrote(2, true)), (23, lost(1)), (24, wrote(1, true))];
        let sentence = "p1/1, let in as number 1, wrote to /a after 2";
        assert_eq!(two_holders(&late), [sentence]);
    }

    #[test]
    fn a_refused_holder_is_seen_unless_its_time_is_over() {
        assert_eq!(two_holders(&[(22, wrote(2, false))]), ["p2/1 is inside /a and was refused"]);
        assert!(two_holders(&[(90, wrote(2, false))]).is_empty());
    }
}
