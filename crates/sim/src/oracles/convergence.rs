//! After the heal all who want in are members of one view, the newest, and nobody else is: within `patience_after_heal`.
//!
//! A world that is never healed asks nothing.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_core::PeerId;
use sigmalock_protocols::views::{Roster, Standing};

use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, OfViews, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone)]
pub struct Convergence {
    setting: Setting,
    healed: Option<TrueTime>,
    newest: Option<Roster>,
    /// Those who are up, and want in,
    want_in: BTreeSet<PeerId>,
    /// and how each stands, and at which view.
    at: BTreeMap<PeerId, (Option<Standing>, u64)>,
}

impl Convergence {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let (want_in, at) = (BTreeSet::new(), BTreeMap::new());
        Self { setting, healed: None, newest: None, want_in, at }
    }

    /// Who is not where it wants to be.
    fn astray(&self) -> Vec<PeerId> {
        let Some(newest) = &self.newest else { return self.want_in.iter().copied().collect() };
        let there = |peer: &&PeerId| {
            let in_newest = (Some(Standing::Member), newest.number());
            newest.contains(**peer) && self.at.get(*peer) == Some(&in_newest)
        };
        let out = self.want_in.iter().filter(|peer| !there(peer)).copied();
        let alone = newest.members().len() == 1;
        let stays = newest.members().filter(|peer| !alone && !self.want_in.contains(peer));
        out.chain(stays).collect()
    }
}

impl Oracle for Convergence {
    fn name(&self) -> &'static str {
        "convergence"
    }

    fn see(&mut self, record: &Record, _: &mut Vec<Violation>) {
        match &record.what {
            What::Healed => self.healed = Some(record.at),
            What::Crashed(peer) => {
                self.want_in.remove(peer);
                self.at.remove(peer);
            }
            What::Views(OfViews::Began { peer, .. }) => {
                self.want_in.insert(*peer);
            }
            What::Views(OfViews::Leaves(peer)) => {
                self.want_in.remove(peer);
            }
            What::Views(OfViews::Learned { peer, roster, .. }) => {
                self.at.entry(*peer).or_default().1 = roster.number();
                if self.newest.as_ref().is_none_or(|newest| newest.number() < roster.number()) {
                    self.newest = Some(roster.clone());
                }
            }
            What::Views(OfViews::Stands { peer, standing }) => {
                self.at.entry(*peer).or_default().0 = Some(*standing);
            }
            _ => {}
        }
    }

    fn finish(&mut self, end: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        let Some(healed) = self.healed else { return };
        let astray = self.astray();
        if end.since(healed) > self.setting.patience_after_heal && !astray.is_empty() {
            let who: Vec<String> = astray.iter().map(PeerId::to_string).collect();
            let newest = self.newest.as_ref().map_or_else(String::new, Roster::to_string);
            let sentence = format!("not in, or not out: {} ({newest})", who.join(", "));
            violations.push(Violation { oracle: self.name(), at: end, sentence });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::{judge, setting};
    use super::*;
    use sigmalock_core::LocalTime;
    use sigmalock_protocols::views::{Badge, Change};

    /// Two peers, of whom both want in; the second is told to leave.
    fn end(is_in: bool, leaves: bool, healed: bool) -> usize {
        let [one, two] = [PeerId(1), PeerId(2)];
        let first = Roster::founded_by(one, Badge(1), 9);
        let both = first.after(Change::Add(two, Badge(2))).unwrap();
        let newest = if is_in { both } else { first };
        let mut tale: Vec<OfViews> = Vec::new();
        for peer in [one, two] {
            let (clock, roster) = (LocalTime::MIN, newest.clone());
            let standing = if roster.contains(peer) { Standing::Member } else { Standing::Outside };
            tale.push(OfViews::Began { peer, forgot: false });
            tale.push(OfViews::Learned { peer, clock, roster });
            tale.push(OfViews::Stands { peer, standing });
        }
        if leaves {
            tale.push(OfViews::Leaves(two));
        }
        let mut tale: Vec<_> = tale.into_iter().map(|deed| (0, What::Views(deed))).collect();
        if healed {
            tale.push((0, What::Healed));
        }
        judge(Convergence::new(setting()), &tale, 60_000).len()
    }

    #[test]
    fn who_wants_in_gets_in_and_who_leaves_gets_out() {
        assert_eq!((end(true, false, true), end(false, true, true)), (0, 0));
        assert_eq!((end(false, false, true), end(true, true, true)), (1, 1));
        assert_eq!(end(false, false, false), 0, "nothing is asked of a world that is not healed");
    }
}
