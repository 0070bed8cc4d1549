//! What the locks are for: a register that knows tokens takes no write of the past, and refuses none
//! of the present.
//!
//! Once it has taken a write of a holder, it takes none of anybody let in earlier, however late that
//! one wakes up. And it never refuses the holder who was let in last, as long as that one is inside.
//! Likewise with readers: once somebody has read, no writer of before may change what was read, and
//! once somebody has written, no reader of before is served; a reader that is inside always is.

use std::collections::{BTreeMap, VecDeque};

use sigmalock_core::{Mode, Name, RequestId};

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
    /// For each lock, and for each slot of a semaphore.
    locks: BTreeMap<Place, Turns>,
    /// The turn of everybody who was let in.
    turns: BTreeMap<RequestId, (Place, Mode, u64)>,
    past: VecDeque<RequestId>,
}

/// A lock, or a slot of a semaphore.
type Place = (Name, Option<u16>);

/// Turns count the grants of a lock.
#[derive(Debug, Default)]
struct Turns {
    granted: u64,
    granted_to_writers: u64,
    written: u64,
    read: u64,
}

impl Register {
    fn judge(&mut self, at: TrueTime, request: RequestId, accepted: bool) -> Option<String> {
        let (lock, mode, turn) = self.turns.get(&request)?;
        let turns = self.locks.get_mut(lock)?;
        let (name, writes) = (&lock.0, *mode != Mode::Shared);
        let latest = if writes { turns.written.max(turns.read) } else { turns.written };
        if accepted && *turn < latest {
            let did = if writes { "wrote to" } else { "read" };
            return Some(format!(
                "{request}, let in as number {turn}, {did} {name} after {latest}"
            ));
        }
        match (accepted, writes) {
            (true, true) => turns.written = *turn,
            (true, false) => turns.read = turns.read.max(*turn),
            (false, _) => {}
        }
        let inside = self.board.inside_until(request).is_some_and(|until| until > at);
        let last = if writes { turns.granted } else { turns.granted_to_writers };
        (!accepted && inside && *turn >= last)
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
            What::Granted { request, slot, .. } => {
                if let Some((name, _)) = self.board.lock_of(&record.what) {
                    let lock = (name.clone(), *slot);
                    let turns = self.locks.entry(lock.clone()).or_default();
                    let mode = self.board.mode(*request);
                    turns.granted += 1;
                    if mode != Mode::Shared {
                        turns.granted_to_writers = turns.granted;
                    }
                    self.turns.insert(*request, (lock, mode, turns.granted));
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
    fn readers_are_served_in_any_order_but_neither_before_nor_after_their_time() {
        let tale = [
            (0, asked(1)),
            (0, asked_to_read(2)),
            (0, asked_to_read(3)),
            (0, asked(4)),
            (1, granted(1, 5)),
            (10, granted(2, 90)),
            (11, granted(3, 90)),
            (12, wrote(3, true)),
            (13, wrote(2, true)),
        ];
        let judged = |rest: &[(u64, What)]| {
            let tale = [&tale[..], rest].concat();
            judge(Register::default(), &tale, 999).len()
        };
        assert_eq!(judged(&[]), 0);
        assert_eq!(judged(&[(14, wrote(1, true))]), 1, "it changes what was read");
        assert_eq!(judged(&[(14, wrote(2, false))]), 1, "it is inside");
        let next = [(95, granted(4, 200)), (96, wrote(4, true))];
        assert_eq!(judged(&[&next[..], &[(97, wrote(2, true))]].concat()), 1, "it is late");
        assert_eq!(judged(&[&next[..], &[(97, wrote(2, false))]].concat()), 0);
    }

    #[test]
    fn a_refused_holder_is_seen_unless_its_time_is_over() {
        assert_eq!(two_holders(&[(22, wrote(2, false))]), ["p2/1 is inside /a and was refused"]);
        assert!(two_holders(&[(90, wrote(2, false))]).is_empty());
    }
}
