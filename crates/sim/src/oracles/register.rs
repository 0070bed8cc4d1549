//! What the locks are for: a register that knows tokens takes no write of the past, and refuses none
//! of the present.
//!
//! Once it has taken a write of a holder, it takes none of anybody let in earlier, however late that
//! one wakes up. And it never refuses the holder who was let in last, as long as that one is inside.
//! Likewise with readers: once somebody has read, no writer of before may change what was read, and
//! once somebody has written, no reader of before is served; a reader that is inside always is. And with
//! permits, each of which writes to a part of its own, the slot.

use std::collections::{BTreeMap, VecDeque};

use sigmalock_core::{Mode, Name, RequestId};

use super::board::{Board, request_of};
use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// So many holders that have left are remembered, for writes that come late. Of one that left before
/// all these nothing is asked any more.
const PAST_MAX: usize = 10_000;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Register {
    board: Board,
    locks: BTreeMap<Name, Turns>,
    /// The turn of everybody who was let in.
    turns: BTreeMap<RequestId, (Name, Mode, u64)>,
    past: VecDeque<RequestId>,
}

/// Turns count the grants of a lock.
#[derive(Debug, Clone, Default)]
struct Turns {
    granted: u64,
    by_mode: BTreeMap<Mode, Last>,
}

/// The last turns in one mode.
#[derive(Debug, Clone, Default)]
struct Last {
    granted: u64,
    accepted: u64,
}

impl Turns {
    /// The last turn of those who cannot be inside together with somebody.
    fn last(&self, mode: Mode, turn: impl Fn(&Last) -> u64) -> u64 {
        let others = self.by_mode.iter().filter(|(other, _)| !other.shares_with(mode));
        others.map(|(_, last)| turn(last)).max().unwrap_or(0)
    }
}

impl Register {
    fn judge(&mut self, at: TrueTime, request: RequestId, accepted: bool) -> Option<String> {
        let (name, mode, turn) = self.turns.get(&request)?;
        let turns = self.locks.get_mut(name)?;
        let latest = turns.last(*mode, |last| last.accepted);
        if accepted && *turn < latest {
            let did = if *mode == Mode::Shared { "read" } else { "wrote to" };
            return Some(format!(
                "{request}, let in as number {turn}, {did} {name} after {latest}"
            ));
        }
        let last = turns.last(*mode, |last| last.granted);
        let own = turns.by_mode.entry(*mode).or_default();
        if accepted {
            own.accepted = own.accepted.max(*turn);
        }
        let inside = self.board.inside_until(request).is_some_and(|until| until > at);
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
                    let turns = self.locks.entry(name.clone()).or_default();
                    let mode = self.board.mode(*request).with(*slot);
                    turns.granted += 1;
                    turns.by_mode.entry(mode).or_default().granted = turns.granted;
                    self.turns.insert(*request, (name.clone(), mode, turns.granted));
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
