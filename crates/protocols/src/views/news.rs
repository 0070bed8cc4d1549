//! How those who know less hear of a newer view.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use sigmalock_core::{LocalTime, PeerId};

use super::message::Message;
use super::roster::Roster;
use super::{Cx, Note, Views};

impl Views {
    /// Somebody says how far it is: who knows less is told.
    pub(super) fn on_known(&mut self, cx: Cx<'_, '_>, from: PeerId, view: u64, settled: bool) {
        let mine = self.number();
        match &self.roster {
            Some(roster) if view < mine => cx.send(from, Message::Learn(Box::new(roster.clone()))),
            Some(roster) if view == mine && settled && roster.is_newcomer(from) => {
                self.settled = true;
                self.consider(cx);
            }
            _ if view > mine => cx.send(from, self.known(cx.now())),
            _ => {}
        }
    }

    pub(super) fn known(&self, sent: LocalTime) -> Message {
        let view = self.number();
        Message::Known { view, settled: self.settled && self.is_newcomer(view), sent }
    }

    /// A newer view, perhaps; whoever told of it learns that this peer knows it now.
    pub(super) fn on_learn(&mut self, cx: Cx<'_, '_>, from: PeerId, roster: Roster) {
        if !roster.is_sane() {
            return cx.note(Note::Malformed);
        }
        if !self.may_learn(roster.origin()) {
            return self.strangers.meet(from);
        }
        if roster.number() > self.number() {
            self.install(cx, roster);
            cx.send(from, self.known(cx.now()));
        }
    }

    /// Tells everybody of this view, those who are not in it included, as far as they can be reached.
    pub(super) fn spread(&self, cx: Cx<'_, '_>) {
        let Some(roster) = &self.roster else { return };
        let peers: BTreeSet<PeerId> = roster.members().chain(self.up.iter().copied()).collect();
        for peer in peers.into_iter().filter(|peer| *peer != self.me) {
            cx.send(peer, Message::Learn(Box::new(roster.clone())));
        }
    }
}
