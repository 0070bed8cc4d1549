//! Tokens strictly increase, in the order in which holders of a lock are let in, as far as they cannot be inside
//! together: those of readers lie between the writers around them, in whatever order; those of permits, too, and
//! they increase slot by slot.
//!
//! A token is shown only once it is sealed, so this holds whatever was forgotten, lost or late. It
//! says nothing of protocols without tokens.

use std::collections::BTreeMap;

use sigmalock_core::{Mode, Name, Token};

use super::board::Board;
use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    board: Board,
    /// The highest that was shown for each lock, in each mode.
    highest: BTreeMap<Name, BTreeMap<Mode, Token>>,
}

impl Oracle for Tokens {
    fn name(&self) -> &'static str {
        "tokens"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        self.board.see(record);
        let What::Granted { request, token: Some(token), .. } = &record.what else { return };
        let Some((name, _)) = self.board.lock_of(&record.what) else { return };
        let mode = self.board.mode(*request);
        let highest = self.highest.entry(name.clone()).or_default();
        let others = highest.iter().filter(|(other, _)| !other.shares_with(mode));
        let before = others.map(|(_, token)| token).max();
        if let Some(before) = before.filter(|before| *before >= token) {
            let sentence = format!("{request} gets token {token} for {name} after {before}");
            violations.push(Violation { oracle: "tokens", at: record.at, sentence });
        }
        let highest = highest.entry(mode).or_default();
        *highest = (*highest).max(*token);
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, _: &mut Vec<Violation>) {}
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    fn tokens(tokens: [u64; 3]) -> usize {
        let one = |(client, token)| {
            [(client, asked(client)), (client, granted_with(client, token)), (client, lost(client))]
        };
        let tale: Vec<_> = (1..).zip(tokens).flat_map(one).collect();
        judge(Tokens::default(), &tale, 9).len()
    }

    #[test]
    fn growing_tokens_are_fine_gaps_included() {
        assert_eq!(tokens([1, 2, 9]), 0);
    }

    #[test]
    fn tokens_of_readers_lie_between_those_of_the_writers_around_them() {
        let judged = |tokens: [u64; 4]| {
            let asks = [asked(1), asked_to_read(2), asked_to_read(3), asked(4)];
            let one =
                |((client, ask), token)| [(client, ask), (client, granted_with(client, token))];
            let tale: Vec<_> = (1..).zip(asks).zip(tokens).flat_map(one).collect();
            judge(Tokens::default(), &tale, 9).len()
        };
        assert_eq!(judged([1, 2, 2, 3]), 0, "equal");
        assert_eq!(judged([1, 5, 3, 6]), 0, "in any order");
        assert_eq!(judged([2, 2, 3, 4]), 1, "the writer's before");
        assert_eq!(judged([1, 5, 3, 4]), 1, "above the writer's after");
    }

    #[test]
    fn tokens_of_permits_grow_slot_by_slot_between_those_of_writers_and_readers() {
        let judged = |tokens: [u64; 6]| {
            let permit = |client| asked_for_permit(client, 2);
            let asks = [asked(1), permit(2), permit(3), permit(4), asked_to_read(5), asked(6)];
            let slots = [None, Some(0), Some(1), Some(0), None, None];
            let one = |(((client, ask), token), slot)| {
                [(client, ask), (client, granted_slot(client, token, slot))]
            };
            let tale: Vec<_> = (1..).zip(asks).zip(tokens).zip(slots).flat_map(one).collect();
            judge(Tokens::default(), &tale, 9).len()
        };
        assert_eq!(judged([1, 2, 2, 3, 4, 5]), 0, "equal in different slots");
        assert_eq!(judged([1, 5, 2, 6, 7, 8]), 0, "in any order");
        assert_eq!(judged([2, 2, 3, 4, 5, 6]), 1, "the writer's before");
        assert_eq!(judged([1, 3, 2, 3, 5, 6]), 1, "twice in one slot");
        assert_eq!(judged([1, 3, 6, 4, 6, 7]), 1, "a reader with a permit's");
        assert_eq!(judged([1, 3, 6, 4, 7, 7]), 1, "a writer with a reader's");
    }

    #[test]
    fn a_token_that_is_equal_or_lower_is_seen() {
        assert_eq!(tokens([1, 1, 2]), 1);
        assert_eq!(tokens([5, 4, 4]), 2, "both are below the highest");
    }
}
