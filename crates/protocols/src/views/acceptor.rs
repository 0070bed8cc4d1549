//! A member's memory of what it promised about the successor of its view. It is on disk before anybody
//! hears of it.

use super::message::Ballot;
use super::roster::Change;

/// The promises of one member about one view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Acceptor {
    promised: Option<Ballot>,
    accepted: Option<(Ballot, Change)>,
}

impl Acceptor {
    /// The newest ballot that was promised something.
    #[must_use]
    pub const fn promised(&self) -> Option<Ballot> {
        self.promised
    }

    /// What was accepted, and under which ballot.
    #[must_use]
    pub const fn accepted(&self) -> Option<(Ballot, Change)> {
        self.accepted
    }

    /// For a rule to break on purpose.
    pub(super) fn forget_accepted(&mut self) {
        self.accepted = None;
    }

    /// Promises to look at no older ballot, unless a newer one was promised that.
    pub(super) fn promise(&mut self, ballot: Ballot) -> bool {
        let newer = self.promised.is_none_or(|promised| ballot > promised);
        if newer {
            self.promised = Some(ballot);
        }
        newer
    }

    /// Accepts a successor, unless a newer ballot was promised something.
    pub(super) fn accept(&mut self, ballot: Ballot, change: Change) -> bool {
        let fits = self.promised.is_none_or(|promised| ballot >= promised);
        if fits {
            (self.promised, self.accepted) = (Some(ballot), Some((ballot, change)));
        }
        fits
    }
}
