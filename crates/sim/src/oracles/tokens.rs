//! Tokens strictly increase, in the order in which holders of a lock are let in.
//!
//! A token is shown only once it is sealed, so this holds whatever was forgotten, lost or late. It
//! says nothing of protocols without tokens.

use std::collections::BTreeMap;

use sigmalock_core::{Name, Token};

use super::board::Board;
use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Default)]
pub struct Tokens {
    board: Board,
    highest: BTreeMap<Name, Token>,
}

impl Oracle for Tokens {
    fn name(&self) -> &'static str {
        "tokens"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        self.board.see(record);
        let What::Granted { request, token: Some(token), .. } = &record.what else { return };
        let Some((name, _)) = self.board.lock_of(&record.what) else { return };
        let before = self.highest.insert(name.clone(), *token);
        if let Some(before) = before.filter(|before| before >= token) {
            let sentence = format!("{request} gets token {token} for {name} after {before}");
            violations.push(Violation { oracle: self.name(), at: record.at, sentence });
            self.highest.insert(name.clone(), before);
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
    fn a_token_that_is_equal_or_lower_is_seen() {
        assert_eq!(tokens([1, 1, 2]), 1);
        assert_eq!(tokens([5, 4, 4]), 2, "both are below the highest");
    }
}
