//! What a peer notices by itself: who is dead, who knows less, and that it is not where it wants to be.

use alloc::vec::Vec;

use sigmalock_core::{LocalTime, PeerId};

use super::message::Message;
use super::mutant::Mutant;
use super::roster::{Change, Roster};
use super::{Cx, Standing, Timer, Views};
use crate::parts::Rules;

impl<R: Rules> Views<R> {
    /// Looks around: who is dead, who knows less; asks again for what this peer itself wants.
    pub(super) fn look(&mut self, cx: Cx<'_, '_, R>) {
        let now = cx.now();
        cx.set_timer(Timer::Look, now + self.config.round_trip_worst * 2);
        match self.standing() {
            Standing::Outside | Standing::Lost => {
                self.found(cx);
                self.ask_around(cx);
            }
            Standing::Member => {
                if let Some(badge) = self.badge.filter(|_| self.leaving) {
                    self.wishes.leave(self.me, badge);
                }
                self.mourn(now);
                self.save_counts(cx);
                self.introduce(cx);
                self.tell_all(cx);
                self.consider(cx);
            }
        }
    }

    /// Asks the first of those who are up, who will propose what this peer wants, and one more: what is
    /// the newest view, and whether this peer may come in, or must be seen to be out.
    pub(super) fn ask_around(&mut self, cx: Cx<'_, '_, R>) {
        let known = |peer: &PeerId| self.roster.is_none() || self.is_in(*peer);
        let mut asked: Vec<PeerId> = self.up.iter().copied().filter(known).collect();
        // Who is told nothing by its former friends asks anybody.
        if asked.is_empty() {
            asked = self.up.iter().copied().collect();
        }
        // In a large view everybody is needed to confirm it.
        if asked.len() > 2 && !self.roster.as_ref().is_some_and(Roster::is_large) {
            let other = 1 + (cx.random() % (asked.len() as u64 - 1)) as usize;
            asked.swap(1, other);
            asked.truncate(2);
        }
        asked.into_iter().for_each(|peer| self.ask(cx, peer));
    }

    fn ask(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        self.tell(cx, peer);
        self.warn(cx, peer);
        let known = self.roster.as_ref().and_then(|roster| roster.badge(self.me));
        let change = match (self.standing(), known) {
            (Standing::Outside, _) if self.wants_in => Change::Add(self.me, self.badge(cx)),
            (Standing::Lost, _) if self.config.breaks(Mutant::ReplacesInOneChange) => {
                Change::Add(self.me, self.badge(cx))
            }
            (Standing::Lost, Some(badge)) if self.may_quarrel(badge) => {
                Change::Remove(self.me, badge)
            }
            _ => return,
        };
        let origin = self.roster.as_ref().map(Roster::origin);
        cx.send(peer, Message::Wish { change, origin, view: self.number() });
    }

    fn mourn(&mut self, now: LocalTime) {
        let Some(roster) = &self.roster else { return };
        let others = roster.members().filter(|peer| *peer != self.me && !self.up.contains(peer));
        for (peer, badge) in others.filter_map(|peer| Some((peer, roster.badge(peer)?))) {
            let since = *self.down.entry(peer).or_insert(now);
            if now.since(since) >= self.config.dead_after {
                self.wishes.mourn(peer, badge);
            }
        }
    }

    pub(super) fn tell_all(&self, cx: Cx<'_, '_, R>) {
        let Some(roster) = &self.roster else { return };
        for peer in roster.members().filter(|peer| *peer != self.me) {
            self.tell(cx, peer);
        }
    }

    pub(super) fn on_up(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        self.up.insert(peer);
        self.meet(peer);
        self.down.remove(&peer);
        self.wishes.on_up(peer);
        self.ask(cx, peer);
        self.introduce_to(cx, peer);
        self.found(cx);
    }

    pub(super) fn on_down(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        self.up.remove(&peer);
        self.strangers.part(peer);
        self.founding.part(peer);
        self.part(peer, cx.now());
        self.wishes.on_down(peer);
        if self.is_in(peer) {
            self.down.entry(peer).or_insert(cx.now());
        }
    }
}
