//! Changes that somebody wants.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use sigmalock_core::PeerId;

use super::message::Message;
use super::roster::{Badge, Change};
use super::{Cx, Mutant, Note, Views};
use crate::parts::Rules;

/// So many wishes of others wait at most; one more is not heard, and asked again.
const WISHES_MAX: usize = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Wish {
    change: Change,
    /// The newest view that it was said in the knowledge of.
    view: u64,
    /// Nobody asked: the peer seems to be dead.
    dead: bool,
}

/// One for each peer that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Wishes(BTreeMap<PeerId, Wish>);

impl Wishes {
    /// Somebody wants something for itself. False if there is no room.
    fn hear(&mut self, peer: PeerId, change: Change, view: u64) -> bool {
        let room = self.0.len() < WISHES_MAX;
        if room {
            self.0.insert(peer, Wish { change, view, dead: false });
        }
        room
    }

    /// This peer wants out. For that there is always room.
    pub(super) fn leave(&mut self, me: PeerId, badge: Badge) {
        self.0.insert(me, Wish { change: Change::Remove(me, badge), view: 0, dead: false });
    }

    /// A member seems to be dead; unless it wants something itself, it is to be removed.
    pub(super) fn mourn(&mut self, peer: PeerId, badge: Badge) {
        if self.0.len() < WISHES_MAX {
            let gone = Wish { change: Change::Remove(peer, badge), view: 0, dead: true };
            self.0.entry(peer).or_insert(gone);
        }
    }

    /// A peer can be reached: it is not dead.
    pub(super) fn on_up(&mut self, peer: PeerId) {
        if self.0.get(&peer).is_some_and(|wish| wish.dead) {
            self.0.remove(&peer);
        }
    }

    /// A peer cannot be reached: nobody comes in who would be missed at once.
    pub(super) fn on_down(&mut self, peer: PeerId) {
        if self.0.get(&peer).is_some_and(|wish| matches!(wish.change, Change::Add(..))) {
            self.0.remove(&peer);
        }
    }

    /// Nothing is wanted for this peer any more.
    pub(super) fn withdraw(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What to propose. Who leaves goes first, then the dead, then the new.
    pub(super) fn most_urgent(&self) -> Option<Change> {
        let urgency = |wish: &&Wish| (matches!(wish.change, Change::Add(..)), wish.dead);
        self.0.values().min_by_key(urgency).map(|wish| wish.change)
    }

    /// Any of them.
    pub(super) fn first(&self) -> Option<Change> {
        self.0.values().next().map(|wish| wish.change)
    }
}

impl<R: Rules> Views<R> {
    /// Drops what makes no sense in this view: it has been granted, perhaps.
    pub(super) fn drop_granted(&mut self) {
        let mut wishes = core::mem::take(&mut self.wishes);
        if !self.config.breaks(Mutant::KeepsOldWishes) {
            wishes.0.retain(|_, wish| !self.is_old(wish.change, wish.view));
        }
        wishes.0.retain(|_, wish| self.after(wish.change).is_some());
        self.wishes = wishes;
    }

    /// Whether somebody who wants in does not know this view: it may have been in since it said so, and out again.
    fn is_old(&self, change: Change, view: u64) -> bool {
        let old = matches!(change, Change::Add(..)) && view < self.number();
        old && !self.config.breaks(Mutant::HearsOldWishes)
    }

    /// Somebody wants in, or out. Nobody speaks for others.
    pub(super) fn on_wish(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, change: Change, origin: Option<u64>, view: u64,
    ) {
        if change.peer() != Some(from) {
            return cx.note(Note::Malformed);
        }
        let Some(roster) = &self.roster else { return };
        if origin.is_some_and(|origin| origin != roster.origin()) {
            return self.strangers.meet(from);
        }
        if !self.has_a_say() || self.is_old(change, view) || self.after(change).is_none() {
            return cx.send(from, Message::Learn(Box::new(roster.clone())));
        }
        // Nobody comes in who is not there any more: it would be missed at once.
        let there = self.up.contains(&from) || matches!(change, Change::Remove(..));
        if there && self.wishes.hear(from, change, view) {
            self.consider(cx);
        }
    }
}
