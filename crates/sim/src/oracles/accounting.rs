//! Every message is accounted for, and every answer has a cause.
//!
//! What was sent and what the network copied was delivered or lost, or is still under way. An answer answers one
//! message that was delivered (which kinds answer which, the protocol's card says); a replica that says more than it
//! was asked floods its clients, and its counters lie.

use sigmalock_protocols::catalogue::Answers;

use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, Record, Row, TrueTime};

/// See the module.
#[derive(Debug, Clone)]
pub struct Accounting {
    answers: Answers,
}

impl Accounting {
    /// For a protocol of which these kinds of messages answer those.
    #[must_use]
    pub const fn new(setting: Setting) -> Self {
        Self { answers: setting.answers }
    }
}

impl Oracle for Accounting {
    fn name(&self) -> &'static str {
        "accounting"
    }

    fn see(&mut self, _: &Record, _: &mut Vec<Violation>) {}

    fn finish(&mut self, at: TrueTime, ledger: &Ledger, violations: &mut Vec<Violation>) {
        let balances = ledger.kinds.iter().filter_map(|(kind, row)| imbalance(kind, row));
        let answers = self.answers.iter();
        let answers = answers.filter_map(|(answer, causes)| excess(ledger, answer, causes));
        violations.extend(balances.chain(answers).map(|sentence| Violation {
            oracle: "accounting",
            at,
            sentence,
        }));
    }
}

fn imbalance(kind: &str, row: &Row) -> Option<String> {
    let (made, ended) = (row.sent + row.duplicated, row.delivered + row.lost + row.in_flight);
    if made != ended {
        Some(format!("{made} {kind} messages were sent or copied, {ended} ended somewhere"))
    } else if (row.sent == 0) != (row.sent_bytes == 0) {
        Some(format!("{} {kind} messages have {} bytes", row.sent, row.sent_bytes))
    } else {
        None
    }
}

/// Says so if there are more answers than messages to answer.
fn excess(ledger: &Ledger, answer: &str, causes: &[&str]) -> Option<String> {
    let row = |kind: &str| ledger.kinds.get(kind).copied().unwrap_or_default();
    let caused = causes.iter().map(|kind| row(kind).delivered).sum::<u64>();
    let sent = row(answer).sent;
    (sent > caused).then(|| format!("{sent} {answer} messages answer {caused} messages"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(rows: &[(&'static str, Row)]) -> Vec<String> {
        let ledger = Ledger { kinds: rows.iter().copied().collect() };
        let mut violations = Vec::new();
        let answers: Answers = &[("RESPONSE", &["REQUEST", "YIELD", "SEAL"])];
        Accounting { answers }.finish(TrueTime(0), &ledger, &mut violations);
        violations.into_iter().map(|violation| violation.sentence).collect()
    }

    fn row(sent: u64, duplicated: u64, delivered: u64, lost: u64, in_flight: u64) -> Row {
        Row { sent, sent_bytes: sent * 50, duplicated, delivered, lost, in_flight }
    }

    #[test]
    fn what_was_sent_and_copied_was_delivered_lost_or_is_under_way() {
        assert!(judge(&[("YIELD", row(10, 2, 7, 4, 1))]).is_empty());
        let missing = "10 YIELD messages were sent or copied, 9 ended somewhere";
        assert_eq!(judge(&[("YIELD", row(10, 0, 9, 0, 0))]), [missing]);
        let weightless = Row { sent_bytes: 0, ..row(1, 0, 1, 0, 0) };
        assert_eq!(judge(&[("YIELD", weightless)]), ["1 YIELD messages have 0 bytes"]);
    }

    #[test]
    fn a_replica_that_answers_twice_is_seen() {
        let requests = ("REQUEST", row(10, 2, 12, 0, 0));
        let responses = |sent| ("RESPONSE", row(sent, 0, sent, 0, 0));
        assert!(judge(&[requests, responses(12)]).is_empty());
        assert_eq!(judge(&[requests, responses(24)]), ["24 RESPONSE messages answer 12 messages"]);
    }
}
