//! Whoever is awake is told that its lock is lost, before its deadline and not after.
//!
//! A holder that is still inside at the instant its own clock shows its deadline, and was not told,
//! believes in a lock that others may get. Only a holder whose peer slept through the deadline may be
//! told later: for that there is the token.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_core::{PeerId, RequestId};

use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Notice {
    /// Holders that were not told yet, and their deadlines.
    inside: BTreeMap<RequestId, TrueTime>,
    asleep: BTreeSet<PeerId>,
}

impl Notice {
    fn forget(&mut self, peer: PeerId) {
        self.inside.retain(|request, _| request.client != peer);
    }

    /// Those whose deadline has passed while they were awake.
    fn look(&mut self, now: TrueTime, violations: &mut Vec<Violation>) {
        let asleep = &self.asleep;
        self.inside.retain(|request, until| {
            let late = *until < now && !asleep.contains(&request.client);
            if late {
                let sentence = format!("{request} was not told that its lock was lost");
                violations.push(Violation { oracle: "notice", at: *until, sentence });
            }
            !late
        });
    }
}

impl Oracle for Notice {
    fn name(&self) -> &'static str {
        "notice"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        self.look(record.at, violations);
        match &record.what {
            What::Granted { request, until, .. } | What::Extended { request, until } => {
                self.inside.insert(*request, *until);
            }
            What::Lost(request) | What::Released(request) => {
                self.inside.remove(request);
            }
            What::Crashed(peer) => {
                self.asleep.remove(peer);
                self.forget(*peer);
            }
            What::FellAsleep(peer) => {
                self.asleep.insert(*peer);
            }
            // What it slept through it is told of late, with good reason, but in this very instant.
            What::Woke(peer) => {
                self.asleep.remove(peer);
                let of_peer = self.inside.iter_mut().filter(|(request, _)| request.client == *peer);
                of_peer.for_each(|(_, until)| *until = (*until).max(record.at));
            }
            _ => {}
        }
    }

    fn finish(&mut self, end: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        self.look(end, violations);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    #[test]
    fn told_or_gone_by_the_deadline_is_fine() {
        for end in [lost(1), released(1), crashed(1), extended(1, 500)] {
            let tale = [(0, asked(1)), (0, granted(1, 100)), (100, end)];
            assert_eq!(judge(Notice::default(), &tale, 400), []);
        }
    }

    #[test]
    fn a_deadline_that_passes_in_silence_is_seen() {
        let tale = [(0, asked(1)), (0, granted(1, 100)), (101, lost(1))];
        let violations = judge(Notice::default(), &tale, 400);
        assert_eq!(violations[0].sentence, "p1/1 was not told that its lock was lost");
        assert_eq!((violations.len(), violations[0].at), (1, ms(100)));
        assert_eq!(judge(Notice::default(), &[(0, granted(1, 100))], 400).len(), 1);
    }

    #[test]
    fn who_slept_through_its_deadline_may_be_told_later() {
        let (asleep, woke) = (What::FellAsleep(PeerId(1)), What::Woke(PeerId(1)));
        let tale =
            [(0, granted(1, 100)), (50, asleep.clone()), (200, woke.clone()), (200, lost(1))];
        assert_eq!(judge(Notice::default(), &tale, 400), []);
        let never_told = [(0, granted(1, 100)), (50, asleep.clone()), (200, woke.clone())];
        assert_eq!(judge(Notice::default(), &never_told, 400).len(), 1);
        let awake_again = [(0, granted(1, 100)), (50, asleep), (60, woke)];
        assert_eq!(judge(Notice::default(), &awake_again, 400).len(), 1);
    }
}
