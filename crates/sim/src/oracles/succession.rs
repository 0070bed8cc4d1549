//! Each view has one successor, and any two majorities, of one view or of neighbours, have a memory in common.
//!
//! Whoever is at a view of some number is at the same view. That one follows from the other by what most members
//! promised is not seen from outside; what is seen is that a member of any majority of the one is, under the same
//! badge, a member of any majority of the other.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_protocols::views::Roster;

use super::{Oracle, Violation};
use crate::history::{Ledger, OfViews, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Succession {
    views: BTreeMap<u64, Roster>,
}

impl Oracle for Succession {
    fn name(&self) -> &'static str {
        "succession"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let What::Views(OfViews::Learned { roster, .. }) = &record.what else { return };
        let mut object = |sentence| {
            violations.push(Violation { oracle: "succession", at: record.at, sentence });
        };
        let number = roster.number();
        match self.views.get(&number) {
            Some(known) if known == roster => return,
            Some(known) => return object(format!("two successors: {known}, and {roster}")),
            None => {}
        }
        let before = number.checked_sub(1).and_then(|before| self.views.get(&before));
        let after = self.views.get(&number.saturating_add(1));
        for (one, next) in [(before, Some(roster)), (Some(roster), after)] {
            if let (Some(one), Some(next)) = (one, next)
                && !share_a_memory(one, next)
            {
                object(format!("two majorities without a memory in common: {one}, and {next}"));
            }
        }
        self.views.insert(number, roster.clone());
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, _: &mut Vec<Violation>) {}
}

/// Whether any majority of the one has a member in common with any majority of the other, under one badge.
fn share_a_memory(one: &Roster, other: &Roster) -> bool {
    let memories = |roster: &Roster| -> BTreeSet<_> {
        roster.members().map(|peer| (peer, roster.badge(peer))).collect()
    };
    one.majority() + other.majority() > memories(one).union(&memories(other)).count()
}

#[cfg(test)]
mod tests {
    use super::super::tale::judge;
    use super::*;
    use sigmalock_core::{LocalTime, PeerId};
    use sigmalock_protocols::views::{Badge, Change};

    fn at(peer: u64, roster: &Roster) -> (u64, What) {
        let (peer, clock, roster) = (PeerId(peer), LocalTime::MIN, roster.clone());
        (0, What::Views(OfViews::Learned { peer, clock, roster }))
    }

    fn next(roster: &Roster, change: Change) -> Roster {
        roster.after(change).unwrap()
    }

    #[test]
    fn everybody_is_at_the_same_view_of_a_number() {
        let one = Roster::founded_by(PeerId(1), Badge(1), 9);
        let two = next(&one, Change::Add(PeerId(2), Badge(2)));
        let other = next(&one, Change::Add(PeerId(3), Badge(3)));
        assert_eq!(judge(Succession::default(), &[at(1, &one), at(1, &two), at(2, &two)], 9), []);
        assert_eq!(judge(Succession::default(), &[at(1, &two), at(3, &other)], 9).len(), 1);
    }

    #[test]
    fn a_member_that_is_replaced_by_its_new_self_takes_its_memory_along() {
        let two =
            Roster::founded_together(&[(PeerId(1), Badge(1)), (PeerId(2), Badge(2))].into(), 9);
        let gone = next(&two, Change::Remove(PeerId(2), Badge(2)));
        let back = next(&gone, Change::Add(PeerId(2), Badge(7)));
        assert_eq!(judge(Succession::default(), &[at(1, &two), at(1, &gone), at(1, &back)], 9), []);
        let three = Roster::founded_together(
            &[(PeerId(1), Badge(1)), (PeerId(2), Badge(8)), (PeerId(3), Badge(3))].into(),
            9,
        );
        let same = next(&two, Change::Add(PeerId(3), Badge(3)));
        assert!(share_a_memory(&two, &same) && !share_a_memory(&two, &three));
    }
}
