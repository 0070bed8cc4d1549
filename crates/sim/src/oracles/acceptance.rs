//! Nobody accepts the successor of a view but a member that knows all it promised, and not too soon.
//!
//! - It is a member. What it promised in views that had it in when it lost its memory, nobody knows, so of those it
//!   accepts no successor; and if it came back as a member, somebody has vouched for its disk since.
//! - Votes of older views have run out: it has been at the view for the longest lease, by its own clock and in this life;
//!   or the view is the first, or its newcomer has been told that it knows of them.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_core::{LocalTime, PeerId, Span};
use sigmalock_protocols::views::{Change, Roster, Standing};

use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, OfViews, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone)]
pub struct Acceptance {
    lease_max: Span,
    members: BTreeMap<PeerId, Member>,
    /// All views, with those who are in, and the newcomer's that have been settled.
    views: BTreeMap<u64, Roster>,
    settled: BTreeSet<u64>,
}

#[derive(Debug, Clone)]
struct Member {
    /// Views that had it in when it lost its memory.
    forgotten: BTreeSet<u64>,
    /// Somebody has vouched for the disk that it came back with, or need not.
    vouched_for: bool,
    /// Since when, in this life, it has been at its view.
    since: LocalTime,
}

impl Default for Member {
    fn default() -> Self {
        Self { forgotten: BTreeSet::new(), vouched_for: true, since: LocalTime::MIN }
    }
}

impl Acceptance {
    /// The oracle for one run.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let (members, views, settled) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { lease_max: setting.lease_max, members, views, settled }
    }

    fn objection(
        &self, peer: PeerId, view: u64, standing: Standing, clock: LocalTime,
    ) -> Option<&'static str> {
        let member = self.members.get(&peer)?;
        let came = matches!(self.views.get(&view).map(Roster::last), Some(Change::Add(..)));
        let settled = view == 1 || (came && self.settled.contains(&view));
        if standing != Standing::Member {
            Some("which is no member")
        } else if member.forgotten.contains(&view) {
            Some("which has lost what it promised about it")
        } else if !member.vouched_for {
            Some("for whose disk nobody has vouched")
        } else if !settled && clock.since(member.since) < self.lease_max {
            Some("where votes of older views may be out")
        } else {
            None
        }
    }

    fn see_deed(&mut self, deed: &OfViews) {
        match deed {
            OfViews::Began { peer, forgot: true } => {
                let had_it = self.views.iter().filter(|(_, roster)| roster.contains(*peer));
                let forgotten: Vec<u64> = had_it.map(|(view, _)| *view).collect();
                self.members.entry(*peer).or_default().forgotten.extend(forgotten);
            }
            OfViews::Recalls { peer, standing, clock, .. } => {
                let member = self.members.entry(*peer).or_default();
                member.vouched_for = *standing != Standing::Member;
                member.since = *clock;
            }
            OfViews::Learned { peer, clock, roster } => {
                let member = self.members.entry(*peer).or_default();
                member.since = *clock;
                member.vouched_for |= !roster.contains(*peer) || roster.members().len() == 1;
                self.views.entry(roster.number()).or_insert_with(|| roster.clone());
            }
            OfViews::Vouched(peer) => {
                self.members.entry(*peer).or_default().vouched_for = true;
            }
            OfViews::Settled(view) => {
                self.settled.insert(*view);
            }
            _ => {}
        }
    }
}

impl Oracle for Acceptance {
    fn name(&self) -> &'static str {
        "acceptance"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let What::Views(deed) = &record.what else { return };
        self.see_deed(deed);
        if let OfViews::Accepted { peer, view, standing, clock } = deed
            && let Some(why) = self.objection(*peer, *view, *standing, *clock)
        {
            let sentence = format!("a successor of view {view} is accepted by {peer}, {why}");
            violations.push(Violation { oracle: self.name(), at: record.at, sentence });
        }
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, _: &mut Vec<Violation>) {}
}

#[cfg(test)]
mod tests {
    use super::super::tale::{judge, setting};
    use super::*;
    use sigmalock_protocols::views::Badge;

    const PEER: PeerId = PeerId(2);

    fn clock(ms: u64) -> LocalTime {
        LocalTime::from_micros(ms * 1_000)
    }

    /// The view in which the peer comes, as it learns of it.
    fn comes() -> OfViews {
        let one = Roster::founded_by(PeerId(1), Badge(1), 9);
        let roster = one.after(Change::Add(PEER, Badge(2))).unwrap();
        OfViews::Learned { peer: PEER, clock: clock(0), roster }
    }

    fn accepts(ms: u64) -> OfViews {
        OfViews::Accepted { peer: PEER, view: 2, standing: Standing::Member, clock: clock(ms) }
    }

    fn recalls(standing: Standing, ms: u64) -> OfViews {
        OfViews::Recalls { peer: PEER, recalls: true, standing, clock: clock(ms) }
    }

    fn objections(deeds: &[OfViews]) -> usize {
        let setting = Setting { lease_max: Span::from_secs(5), ..setting() };
        let tale: Vec<_> = deeds.iter().map(|deed| (0, What::Views(deed.clone()))).collect();
        judge(Acceptance::new(setting), &tale, 9).len()
    }

    #[test]
    fn a_member_waits_for_a_lease_or_until_the_newcomer_knows() {
        assert_eq!(objections(&[comes(), accepts(4_999)]), 1);
        assert_eq!(objections(&[comes(), accepts(5_000)]), 0);
        assert_eq!(objections(&[comes(), OfViews::Settled(2), accepts(1)]), 0);
        let again = recalls(Standing::Member, 9_000);
        assert_eq!(objections(&[comes(), again, OfViews::Vouched(PEER), accepts(9_500)]), 1);
    }

    #[test]
    fn who_forgot_or_is_no_member_or_has_an_unknown_disk_accepts_nothing() {
        let forgot = OfViews::Began { peer: PEER, forgot: true };
        assert_eq!(objections(&[comes(), forgot, accepts(9_000)]), 1);
        let back = || recalls(Standing::Member, 0);
        assert_eq!(objections(&[comes(), back(), accepts(9_000)]), 1);
        assert_eq!(objections(&[comes(), back(), OfViews::Vouched(PEER), accepts(9_000)]), 0);
        let standing = Standing::Lost;
        let lost = OfViews::Accepted { peer: PEER, view: 2, standing, clock: clock(9_000) };
        assert_eq!(objections(&[comes(), lost]), 1);
    }
}
