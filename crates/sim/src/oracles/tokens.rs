//! Tokens strictly increase, in the order in which holders of a lock are let in; those of readers lie
//! between the writers around them, in whatever order. For a semaphore this holds slot by slot.
//!
//! A token is shown only once it is sealed, so this holds whatever was forgotten, lost or late. It
//! says nothing of protocols without tokens.

use std::collections::BTreeMap;

use sigmalock_core::{Mode, Name, Token};

use super::board::Board;
use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Default)]
pub struct Tokens {
    board: Board,
    /// For each lock, and for each slot of a semaphore.
    highest: BTreeMap<(Name, Option<u16>), Highest>,
}

/// The highest that were shown for a name.
#[derive(Debug, Default)]
struct Highest {
    by_anybody: Option<Token>,
    by_writers: Option<Token>,
}

impl Oracle for Tokens {
    fn name(&self) -> &'static str {
        "tokens"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        self.board.see(record);
        let What::Granted { request, token: Some(token), slot, .. } = &record.what else { return };
        let Some((name, _)) = self.board.lock_of(&record.what) else { return };
        let writes = self.board.mode(*request) != Mode::Shared;
        let highest = self.highest.entry((name.clone(), *slot)).or_default();
        let before = if writes { highest.by_anybody } else { highest.by_writers };
        if let Some(before) = before.filter(|before| before >= token) {
            let sentence = format!("{request} gets token {token} for {name} after {before}");
            violations.push(Violation { oracle: "tokens", at: record.at, sentence });
        }
        highest.by_anybody = highest.by_anybody.max(Some(*token));
        if writes {
            highest.by_writers = highest.by_writers.max(Some(*token));
        }
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
    fn a_token_that_is_equal_or_lower_is_seen() {
        assert_eq!(tokens([1, 1, 2]), 1);
        assert_eq!(tokens([5, 4, 4]), 2, "both are below the highest");
    }
}
