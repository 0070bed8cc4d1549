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
}

impl Campaign {
    pub(super) fn new(ballot: Ballot, change: Change) -> Self {
        Self { ballot, change, accepted: None, yes: BTreeSet::new(), prepared: false }
    }

    /// A PROMISE. True if that makes enough of them; from then on the proposal stands.
    pub(super) fn on_promise(
        &mut self, from: PeerId, accepted: Option<(Ballot, Change)>, enough: usize,
    ) -> bool {
        if self.prepared {
            return false;
        }
        if let Some((ballot, change)) = accepted
            && self.accepted.is_none_or(|best| ballot > best)
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
