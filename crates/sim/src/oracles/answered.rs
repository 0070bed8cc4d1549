//! Every request is answered, and once, or there is an explanation.
//!
//! The conversation of a request is: asked, then let in or ended; once in, extended any number of
//! times, then released or lost. Anything else is a violation. A peer's crash ends its conversations.
//! A holder whose right ends is told by its deadline, unless it sleeps; after the heal nobody does. Who
//! waits for a time is answered by the end of it, unless it sleeps.
//!
//! Who gives a lock back, or has somebody put out, is answered once, there and then: that it is so, or that there is no
//! such call. Who no longer wants to wait is answered only if it did not wait.
//!
//! Who still waits at the end of a run is explained if the lock went round: somebody is inside, or it
//! passed from hand to hand a short while ago. Who is still inside at the end is explained unless its
//! deadline is long past and nobody told it. If the run was never healed, anybody may have been cut off
//! for all of it, and the end asks nothing.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_core::{LockReply, Name, PeerId, Refusal, RequestId};

use super::board::{Board, request_of};
use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, Record, TrueTime, What, Word};

/// See the module.
#[derive(Debug, Clone)]
pub struct Answered {
    setting: Setting,
    board: Board,
    healed: Option<TrueTime>,
    /// When a lock last passed from hand to hand.
    moved: BTreeMap<Name, TrueTime>,
    /// Until when those who wait for a time do.
    patience: BTreeMap<RequestId, TrueTime>,
    asleep: BTreeSet<PeerId>,
}

impl Answered {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let healed = (!setting.faulty).then(TrueTime::default);
        Self {
            setting,
            board: Board::default(),
            healed,
            moved: BTreeMap::new(),
            patience: BTreeMap::new(),
            asleep: BTreeSet::new(),
        }
    }

    /// Looks after the patience of those who wait for a time.
    fn time(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        match &record.what {
            What::Asked { request, until: Some(until), .. } => {
                self.patience.insert(*request, *until);
            }
            What::Granted { request, .. } | What::Ended(request, _) => {
                let until = self.patience.remove(request);
                if let Some(until) = until.filter(|until| *until < at) {
                    self.object_to_waiting(*request, until, at, violations);
                }
            }
            What::Crashed(peer) => {
                self.asleep.remove(peer);
                self.patience.retain(|request, _| request.client != *peer);
            }
            What::FellAsleep(peer) => {
                self.asleep.insert(*peer);
            }
            What::Woke(peer) => {
                self.asleep.remove(peer);
                let theirs = self.patience.iter_mut().filter(|(r, _)| r.client == *peer);
                theirs.for_each(|(_, until)| *until = (*until).max(at));
            }
            _ => {}
        }
    }

    fn object_to_waiting(
        &self, request: RequestId, until: TrueTime, at: TrueTime, violations: &mut Vec<Violation>,
    ) {
        let sentence = format!("{request} waited {} longer than it wanted to", at.since(until));
        violations.push(Violation { oracle: self.name(), at, sentence });
    }

    fn objection(&self, record: &Record, request: RequestId) -> Option<&'static str> {
        let waiting = self.board.is_waiting(request);
        let until = self.board.inside_until(request);
        let inside = until.is_some();
        let awake = |until: &TrueTime| self.healed.is_some_and(|healed| healed < *until);
        let overdue = until.filter(awake).is_some_and(|until| until < record.at);
        match &record.what {
            What::Extended { .. } | What::Lost(_) | What::Released(_) if overdue => {
                Some("was inside beyond its deadline, and nobody had told it")
            }
            What::Asked { .. } => (waiting || inside).then_some("asked twice"),
            What::Granted { .. } => (!waiting).then_some("was let in, but was not waiting"),
            What::Ended(..) => (!waiting).then_some("was sent away, but was not waiting"),
            What::Extended { .. } => (!inside).then_some("was extended, but was not inside"),
            What::Lost(_) => (!inside).then_some("lost a lock that it did not have"),
            What::Released(_) => (!inside).then_some("gave back a lock that it did not have"),
            What::Answered { word, replies, .. } => objection_to_answers(*word, replies),
            _ => None,
        }
    }
}

/// What is wrong with the answers to a word, if anything.
fn objection_to_answers(word: Word, replies: &[LockReply]) -> Option<&'static str> {
    const UNKNOWN: LockReply = LockReply::Refused(Refusal::UnknownCall);
    match (word, replies) {
        (Word::Release | Word::Evict, [LockReply::Released | UNKNOWN]) => None,
        (Word::Cancel, [] | [UNKNOWN]) => None,
        (Word::Release, _) => {
            Some("gave a lock back, and was not told once that it is so, or why not")
        }
        (Word::Evict, _) => {
            Some("had somebody put out, and was not told once that it is so, or why not")
        }
        (Word::Cancel, _) => Some("no longer wanted to wait, and was answered under another call"),
        (Word::Nothing, _) => Some("was told that something is done that it did not ask for"),
    }
}

impl Oracle for Answered {
    fn name(&self) -> &'static str {
        "answered"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        if record.what == What::Healed {
            self.healed = Some(at);
        }
        if let Some(request) = request_of(&record.what)
            && let Some(objection) = self.objection(record, request)
        {
            let sentence = format!("{request} {objection}");
            violations.push(Violation { oracle: self.name(), at, sentence });
        }
        self.time(record, violations);
        self.board.see(record);
        if let (What::Granted { .. }, Some((name, _))) =
            (&record.what, self.board.lock_of(&record.what))
        {
            self.moved.insert(name.clone(), at);
        }
    }

    fn finish(&mut self, end: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        for (request, until) in &self.patience {
            if *until < end && !self.asleep.contains(&request.client) {
                self.object_to_waiting(*request, *until, end, violations);
            }
        }
        let Some(healed) = self.healed else { return };
        let patience = self.setting.patience_after_heal;
        let is_long_ago = |at: TrueTime| end.since(at.max(healed)) > patience;
        let mut object = |sentence| {
            violations.push(Violation { oracle: "answered", at: end, sentence });
        };
        for (name, lock) in self.board.locks() {
            let moved = self.moved.get(name).copied().unwrap_or_default();
            let stands = lock.inside.values().all(|until| *until <= end) && is_long_ago(moved);
            for (asked, request) in lock.waiting.keys().filter(|(asked, _)| is_long_ago(*asked)) {
                if stands {
                    let waited = end.since(*asked);
                    object(format!("{request} waits for {name} since {waited}, unanswered"));
                }
            }
            for (request, until) in lock.inside.iter().filter(|(_, until)| is_long_ago(**until)) {
                let ago = end.since(*until);
                object(format!("{request} was due out of {name} {ago} ago and nobody told it"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    fn sentences(tale: &[(u64, What)], end_ms: u64) -> Vec<String> {
        let violations = judge(Answered::new(setting()), tale, end_ms);
        violations.into_iter().map(|violation| violation.sentence).collect()
    }

    #[test]
    fn a_request_is_asked_granted_extended_and_released_or_ends() {
        let tale = [
            (0, asked(1)),
            (0, asked(2)),
            (0, asked(3)),
            (1, granted(1, 10)),
            (2, extended(1, 20)),
            (3, released(1)),
            (4, ended(2)),
            (5, crashed(3)),
        ];
        assert!(sentences(&tale, 99_999).is_empty());
    }

    #[test]
    fn answers_out_of_turn_are_seen() {
        assert_eq!(sentences(&[(0, granted(1, 9))], 9), ["p1/1 was let in, but was not waiting"]);
        let twice = [(0, asked(1)), (1, granted(1, 9)), (2, granted(1, 9)), (3, released(1))];
        assert_eq!(sentences(&twice, 9).len(), 1);
        let after = [(0, asked(1)), (1, ended(1)), (2, granted(1, 9)), (3, lost(1))];
        assert_eq!(sentences(&after, 9).len(), 2);
        let silent = [(0, asked(1)), (1, crashed(1)), (2, released(1))];
        assert_eq!(sentences(&silent, 9), ["p1/1 gave back a lock that it did not have"]);
    }

    #[test]
    fn a_holder_is_told_by_its_deadline_unless_it_may_have_slept() {
        let late = [(0, asked(1)), (0, granted(1, 10)), (11, released(1))];
        let sentence = "p1/1 was inside beyond its deadline, and nobody had told it";
        assert_eq!(sentences(&late, 99), [sentence]);
        let in_time = [(0, asked(1)), (0, granted(1, 10)), (10, lost(1))];
        assert!(sentences(&in_time, 99).is_empty());
        let faulty = Answered::new(Setting { faulty: true, ..setting() });
        assert!(judge(faulty, &late, 99).is_empty());
    }

    #[test]
    fn who_waits_at_the_end_is_explained_only_if_the_lock_went_round() {
        let queue = [(0, asked(1)), (0, asked(2)), (1, granted(1, 5_000)), (2, released(1))];
        assert!(sentences(&queue, 9_000).is_empty(), "there is still time");
        assert_eq!(sentences(&queue, 19_000), ["p2/1 waits for /a since 19s, unanswered"]);
        let held = [(0, asked(1)), (0, asked(2)), (1, granted(1, 20_000))];
        assert!(sentences(&held, 19_000).is_empty(), "somebody is inside");
    }

    #[test]
    fn who_overstays_its_deadline_unknowingly_is_seen() {
        let tale = [(0, asked(1)), (0, granted(1, 1_000))];
        let sentence = "p1/1 was due out of /a 19s ago and nobody told it";
        assert_eq!(sentences(&tale, 20_000), [sentence]);
    }

    #[test]
    fn who_says_something_is_answered_once_under_that_call() {
        const UNKNOWN: LockReply = LockReply::Refused(Refusal::UnknownCall);
        let is_fine = |word, replies: &[LockReply]| {
            let what = What::Answered { request: request(1), word, replies: replies.to_vec() };
            sentences(&[(0, what)], 9).is_empty()
        };
        for word in [Word::Release, Word::Evict] {
            assert!(is_fine(word, &[LockReply::Released]) && is_fine(word, &[UNKNOWN]));
            assert!(!is_fine(word, &[]) && !is_fine(word, &[LockReply::Released; 2]));
        }
        assert!(is_fine(Word::Cancel, &[]) && is_fine(Word::Cancel, &[UNKNOWN]));
        assert!(!is_fine(Word::Cancel, &[LockReply::Released]));
        assert!(!is_fine(Word::Nothing, &[LockReply::Released]));
    }

    #[test]
    fn who_waits_for_a_time_is_answered_by_then_unless_it_sleeps() {
        let waits = |tale: &[(u64, What)]| sentences(tale, 900);
        assert!(waits(&[(0, asked_until(1, 500)), (500, ended(1))]).is_empty());
        let late = "p1/1 waited 200ms longer than it wanted to";
        assert_eq!(waits(&[(0, asked_until(1, 500)), (700, granted(1, 9_999))]), [late]);
        assert_eq!(waits(&[(0, asked_until(1, 700))]), [late], "or never");
        let asleep = [
            (0, asked_until(1, 500)),
            (400, What::FellAsleep(PeerId(1))),
            (600, What::Woke(PeerId(1))),
            (600, ended(1)),
        ];
        assert!(waits(&asleep).is_empty());
    }
}
