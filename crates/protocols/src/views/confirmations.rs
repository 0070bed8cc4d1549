//! Until when a large view counts.
//!
//! Where all members vote on a name, a quorum of votes says that no view beyond the next can have come. Where
//! only some do, they may be cut off together from all the others, and never learn of later views. So there the
//! members tell each other again and again that they are in the same view:
//!
//! ```text
//!  KNOWN      I am at this view, and my clock says so ─► │
//!    │ ◄────────────────── CONFIRMED  so am I, as of that │  by members
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sigmalock_core::{LocalTime, PeerId};

use super::message::Message;
use super::{Cx, Roster, Views};
use crate::parts::Rules;

/// When this peer asked what members of its view last said that they are in it. Never more than there are
/// members.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Confirmations(BTreeMap<PeerId, LocalTime>);

impl Confirmations {
    /// A member was in the view when it answered what was asked then.
    fn note(&mut self, roster: &Roster, peer: PeerId, asked: LocalTime) {
        if roster.contains(peer) {
            let latest = self.0.entry(peer).or_insert(asked);
            *latest = asked.max(*latest);
        }
    }

    /// As of when more than half of the view are known to have been in it; `mine` is what this peer knows of
    /// itself, if it is a member.
    fn most_at(&self, roster: &Roster, mine: Option<LocalTime>) -> Option<LocalTime> {
        let mut asked: Vec<LocalTime> = mine.into_iter().chain(self.0.values().copied()).collect();
        if asked.len() < roster.majority() {
            return None;
        }
        let nth = roster.majority() - 1;
        let (_, at, _) = asked.select_nth_unstable_by(nth, |a, b| b.cmp(a));
        Some(*at)
    }
}

impl<R: Rules> Views<R> {
    /// A member of the same large view hears that this one is in it, too, as of its own message.
    pub(super) fn confirm(&self, cx: Cx<'_, '_, R>, to: PeerId, view: u64, sent: LocalTime) {
        let same = self.roster.as_ref().filter(|roster| roster.number() == view);
        if same.is_some_and(Roster::is_large) && self.has_a_say() {
            cx.send(to, Message::Confirmed { view, sent });
        }
    }

    /// A member says that it is in this view, as of something that this peer did say.
    pub(super) fn on_confirmed(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, view: u64, sent: LocalTime,
    ) {
        let same = self.roster.as_ref().filter(|roster| roster.number() == view);
        if let Some(roster) = same.filter(|_| sent <= cx.now()) {
            self.confirmed.note(roster, from, sent);
        }
    }

    /// Until when nobody can count votes in a view beyond the next: more than half of this one were in it,
    /// as they said, and accept what comes after the next no sooner than a view lasts. Where all members
    /// vote, the votes themselves say so.
    #[must_use]
    pub fn counts_until(&self, now: LocalTime) -> LocalTime {
        let Some(roster) = self.roster.as_ref().filter(|roster| roster.is_large()) else {
            return LocalTime::NEVER;
        };
        let mine = self.has_a_say().then_some(now);
        let Some(at) = self.confirmed.most_at(roster, mine) else { return LocalTime::MIN };
        at + self.config.counts_for()
    }
}
