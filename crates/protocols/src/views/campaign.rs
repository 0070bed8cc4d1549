//! A member's attempt to have a successor of its view chosen.

use alloc::collections::BTreeSet;

use sigmalock_core::PeerId;

use super::message::Ballot;
use super::roster::Change;

/// One ballot of this peer, from PREPARE to the choice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Campaign {
    pub(super) ballot: Ballot,
    /// What it proposes: its own wish, until it hears that something else may have been chosen.
    pub(super) change: Change,
    /// Under which ballot that was accepted somewhere, if it was.
    accepted: Option<Ballot>,
    /// Who promised, and then who accepted.
    yes: BTreeSet<PeerId>,
    pub(super) prepared: bool,
    /// For a rule to break on purpose.
    oldest: bool,
}

impl Campaign {
    pub(super) fn new(ballot: Ballot, change: Change) -> Self {
        let (yes, prepared) = (BTreeSet::new(), false);
        Self { ballot, change, accepted: None, yes, prepared, oldest: false }
    }

    /// For a rule to break on purpose: of what was accepted it goes by the oldest.
    pub(super) fn go_by_the_oldest(&mut self) {
        self.oldest = true;
    }

    /// A PROMISE. True if that makes enough of them; from then on the proposal stands.
    pub(super) fn on_promise(
        &mut self, from: PeerId, accepted: Option<(Ballot, Change)>, enough: usize,
    ) -> bool {
        if self.prepared {
            return false;
        }
        if let Some((ballot, change)) = accepted
            && self.accepted.is_none_or(|best| (ballot > best) != self.oldest)
        {
            (self.accepted, self.change) = (Some(ballot), change);
        }
        self.yes.insert(from);
        self.prepared = self.yes.len() >= enough;
        if self.prepared {
            self.yes.clear();
        }
        self.prepared
    }

    /// An ACCEPTED. True if that makes enough of them: the successor is chosen.
    pub(super) fn on_accepted(&mut self, from: PeerId, enough: usize) -> bool {
        self.prepared && self.yes.insert(from) && self.yes.len() >= enough
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::super::roster::Badge;
    use super::*;

    const fn ballot(round: u64) -> Ballot {
        Ballot { round, by: PeerId(1) }
    }

    const fn add(peer: u64) -> Change {
        Change::Add(PeerId(peer), Badge(peer))
    }

    /// The older one cannot have been chosen, or the newer one would not have been proposed.
    #[test]
    fn of_what_was_accepted_the_newest_is_proposed_whoever_speaks_first() {
        let (old, new) = ((ballot(1), add(7)), (ballot(2), add(8)));
        for promised in [[Some(old), Some(new), None], [Some(new), None, Some(old)]] {
            let mut campaign = Campaign::new(ballot(3), add(9));
            let enough = |(from, accepted)| campaign.on_promise(PeerId(from), accepted, 3);
            let ready: Vec<bool> = (0..).zip(promised).map(enough).collect();
            assert_eq!((ready, campaign.change), (vec![false, false, true], add(8)));
        }
    }

    #[test]
    fn who_promises_or_accepts_twice_counts_once() {
        let mut campaign = Campaign::new(ballot(1), add(9));
        assert!(!campaign.on_accepted(PeerId(5), 1), "nobody has promised yet");
        assert!(
            !campaign.on_promise(PeerId(5), None, 2) && !campaign.on_promise(PeerId(5), None, 2)
        );
        assert!(campaign.on_promise(PeerId(6), None, 2));
        assert!(!campaign.on_accepted(PeerId(5), 2) && !campaign.on_accepted(PeerId(5), 2));
        assert!(campaign.on_accepted(PeerId(6), 2));
    }
}
