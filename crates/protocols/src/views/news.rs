//! How those who know less hear of a newer view.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use sigmalock_core::{Context, PeerId};

use super::message::Message;
use super::mutant::Mutant;
use super::roster::Roster;
use super::{Cx, Note, Standing, Views};
use crate::parts::Rules;

impl<R: Rules> Views<R> {
    /// Somebody says how far it is: who knows less is told.
    pub(super) fn on_known(&mut self, cx: Cx<'_, '_, R>, from: PeerId, view: u64, settled: bool) {
        let mine = self.number();
        let anybody = self.config.breaks(Mutant::SettledByAnybody);
        let knows = |roster: &Roster| roster.is_newcomer(from) || anybody;
        match &self.roster {
            Some(roster) if view < mine => cx.send(from, Message::Learn(Box::new(roster.clone()))),
            Some(roster) if view == mine && settled && knows(roster) => {
                self.settled = true;
                self.consider(cx);
            }
            _ if view > mine => self.tell(cx, from),
            _ => {}
        }
    }

    /// Says at which view this peer is.
    pub(super) fn tell(&self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let known = self.known(cx);
        cx.send(peer, known);
    }

    fn known(&self, cx: &Context<'_, Self>) -> Message {
        let view = self.number();
        let settled = self.settled && self.is_newcomer(view);
        let writes = self.start().map(|start| (start, self.told(cx)));
        Message::Known { view, settled, sent: cx.now(), writes }
    }

    /// A newer view, perhaps; whoever told of it learns that this peer knows it now.
    pub(super) fn on_learn(&mut self, cx: Cx<'_, '_, R>, from: PeerId, roster: Roster) {
        if !roster.is_sane() {
            return cx.note(Note::Malformed);
        }
        if !self.may_learn(roster.origin()) {
            return self.strangers.meet(from);
        }
        if roster.number() > self.number() {
            self.install(cx, roster);
            self.tell(cx, from);
            if self.standing() == Standing::Outside && self.wants_in {
                // What it has said does not count any more: it did not know this view.
                self.ask_around(cx);
            }
        } else {
            self.on_no_news(cx, from, &roster);
        }
    }

    /// Tells everybody of this view, those who are not in it included, as far as they can be reached.
    pub(super) fn spread(&self, cx: Cx<'_, '_, R>) {
        let Some(roster) = &self.roster else { return };
        let peers: BTreeSet<PeerId> = roster.members().chain(self.up.iter().copied()).collect();
        for peer in peers.into_iter().filter(|peer| *peer != self.me) {
            cx.send(peer, Message::Learn(Box::new(roster.clone())));
        }
    }
}
