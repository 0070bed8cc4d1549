//! What a member says that it promised is on its disk, it is there in its next life, and it is kept.
//!
//! Whoever has told another one that it looks at no older ballot never says, as the same member of the same view, that it
//! has accepted something under one: whatever became of its disk.

use std::collections::BTreeMap;

use sigmalock_core::PeerId;
use sigmalock_protocols::views::{Badge, Ballot};

use super::{Oracle, Violation};
use crate::history::{Ledger, OfViews, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Promises {
    /// The newest ballot that each member has promised something, about which view.
    said: BTreeMap<(PeerId, Option<Badge>, u64), Ballot>,
}

impl Promises {
    fn objection(&mut self, deed: &OfViews) -> Option<String> {
        match deed {
            OfViews::Recalls { peer, recalls: false, .. } => {
                Some(format!("{peer} has come back, and does not know what it accepted"))
            }
            OfViews::Promised { peer, badge, view, ballot, accepts, written } => {
                let said = self.said.entry((*peer, *badge, *view)).or_insert(*ballot);
                let broken = *accepts && *ballot < *said;
                *said = (*said).max(*ballot);
                let what = if *accepts { "an acceptance" } else { "a promise" };
                if !written {
                    Some(format!("{peer} speaks of {what} in view {view} that is not on its disk"))
                } else if broken {
                    Some(format!("{peer} accepts what it promised not to look at, in view {view}"))
                } else {
                    None
                }
            }
            _ => None,
        }
    }
}

impl Oracle for Promises {
    fn name(&self) -> &'static str {
        "promises"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let What::Views(deed) = &record.what else { return };
        if let Some(sentence) = self.objection(deed) {
            violations.push(Violation { oracle: self.name(), at: record.at, sentence });
        }
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, _: &mut Vec<Violation>) {}
}

#[cfg(test)]
mod tests {
    use super::super::tale::judge;
    use super::*;
    use sigmalock_core::LocalTime;
    use sigmalock_protocols::views::Standing;

    fn said(round: u64, accepts: bool, written: bool) -> OfViews {
        let (peer, badge, view) = (PeerId(1), Some(Badge(1)), 3);
        let ballot = Ballot { round, by: PeerId(2) };
        OfViews::Promised { peer, badge, view, ballot, accepts, written }
    }

    fn objections(deeds: &[OfViews]) -> usize {
        let tale: Vec<_> = deeds.iter().map(|deed| (0, What::Views(deed.clone()))).collect();
        judge(Promises::default(), &tale, 9).len()
    }

    #[test]
    fn what_is_said_is_on_disk_and_kept() {
        assert_eq!(objections(&[said(1, false, true), said(1, true, true)]), 0);
        assert_eq!(objections(&[said(1, false, false)]), 1);
        assert_eq!(objections(&[said(2, false, true), said(1, true, true)]), 1);
        assert_eq!(objections(&[said(2, true, true), said(1, false, true)]), 0, "that is late");
    }

    #[test]
    fn who_comes_back_knows_what_it_accepted() {
        let recalls = |recalls| {
            let (peer, standing, clock) = (PeerId(1), Standing::Member, LocalTime::MIN);
            OfViews::Recalls { peer, recalls, standing, clock }
        };
        assert_eq!((objections(&[recalls(true)]), objections(&[recalls(false)])), (0, 1));
    }
}
