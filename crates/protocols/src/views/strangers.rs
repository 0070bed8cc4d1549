//! Peers of other swarms, of which there is nothing to be done but to say so; and of this one in another view of the same
//! number, as whole swarms that are put back make it, and a founder's disk of when it was alone. Who of the two is in
//! nobody can know: so where they meet, nobody votes, until one of them is gone.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use sigmalock_core::PeerId;

use super::message::Message;
use super::mutant::Mutant;
use super::roster::Roster;
use super::{Cx, Views};
use crate::parts::Rules;

/// So many of them are remembered; of more nothing is said.
const STRANGERS_MAX: usize = 64;

/// Those who can be reached, as far as known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Strangers {
    /// Of another swarm.
    others: BTreeSet<PeerId>,
    /// Members of another view of this one's number.
    rivals: BTreeSet<PeerId>,
}

impl Strangers {
    /// Somebody is of another swarm.
    pub(super) fn meet(&mut self, peer: PeerId) {
        if self.others.len() < STRANGERS_MAX {
            self.others.insert(peer);
        }
    }

    /// Somebody is in another view of the same number. True if that is news.
    fn meet_rival(&mut self, peer: PeerId) -> bool {
        self.rivals.len() < STRANGERS_MAX && self.rivals.insert(peer)
    }

    /// A newer view is known.
    pub(super) fn move_on(&mut self) {
        self.rivals.clear();
    }

    /// It can no longer be reached.
    pub(super) fn part(&mut self, peer: PeerId) {
        self.others.remove(&peer);
        self.rivals.remove(&peer);
    }
}

impl<R: Rules> Views<R> {
    /// Those who can be reached and are of another swarm, as far as known.
    pub fn strangers(&self) -> impl Iterator<Item = PeerId> {
        self.strangers.others.iter().copied()
    }

    /// Those who can be reached and are in another view of this one's number.
    pub fn rivals(&self) -> impl Iterator<Item = PeerId> {
        self.strangers.rivals.iter().copied()
    }

    /// Whether this peer reaches a member of another view of the same number: one of the two should not be.
    #[must_use]
    pub fn has_rivals(&self) -> bool {
        !self.strangers.rivals.is_empty() && !self.config.breaks(Mutant::GoesOnBesideAnother)
    }

    /// Somebody that is or was to be a member is at this number, but not in this view: perhaps it is in another one.
    pub(super) fn compare(&self, cx: Cx<'_, '_, R>, with: PeerId, view: u64) {
        let mine = self.roster.as_ref().filter(|roster| roster.number() == view);
        if let Some(roster) = mine.filter(|roster| !roster.contains(with)) {
            cx.send(with, Message::Learn(Box::new(roster.clone())));
        }
    }

    /// Somebody shows its view, which is not newer.
    pub(super) fn on_no_news(&mut self, cx: Cx<'_, '_, R>, from: PeerId, theirs: &Roster) {
        let Some(mine) = &self.roster else { return };
        let differs = mine.number() == theirs.number() && mine != theirs;
        if differs && theirs.contains(from) && self.strangers.meet_rival(from) {
            cx.send(from, Message::Learn(Box::new(mine.clone())));
        }
    }
}
