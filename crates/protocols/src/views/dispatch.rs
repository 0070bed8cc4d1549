//! Who hears which message.

use alloc::vec::Vec;

use sigmalock_core::PeerId;

use super::message::{Ballot, Message};
use super::roster::Roster;
use super::{Cx, Note, ROUNDS_AHEAD_MAX, Views};
use crate::parts::Rules;

impl<R: Rules> Views<R> {
    pub(super) fn on_message(&mut self, cx: Cx<'_, '_, R>, from: PeerId, message: Message) {
        if message.ballot().is_some_and(|ballot| self.is_far_ahead(ballot)) {
            return cx.note(Note::Malformed);
        }
        match message {
            Message::Wish { change, origin, view } => self.on_wish(cx, from, change, origin, view),
            Message::Known { view, settled, sent, writes } => {
                writes
                    .into_iter()
                    .for_each(|(start, writes)| self.note_writes(from, start, writes));
                self.on_known(cx, from, view, settled);
                self.confirm(cx, from, view, sent);
                if writes.is_some() {
                    self.compare(cx, from, view);
                }
            }
            Message::Learn(roster) => self.on_learn(cx, from, *roster),
            Message::Began { badge, start, after } => self.on_began(cx, from, badge, start, after),
            Message::Remembered { badge, start, writes } => {
                self.on_remembered(cx, from, badge, start, writes);
            }
            Message::Vouched { start } => self.on_vouched(cx, from, start),
            Message::Forgot { old_disk } => self.on_forgot(from, old_disk, cx.now()),
            Message::Blank { expects, badge } => self.on_blank(cx, from, expects, badge),
            Message::Pledge { origin, expects } => self.on_pledge(cx, from, origin, expects),
            Message::Pledged { origin } => self.on_pledged(cx, from, origin),
            Message::Declined { origin } => self.on_declined(cx, from, origin),
            Message::Confirmed { view, sent } => self.on_confirmed(cx, from, view, sent),
            Message::Prepare { view, ballot } => {
                if self.takes_part(cx, from, view) {
                    self.on_prepare(cx, from, ballot);
                }
            }
            Message::Accept { view, ballot, change } => {
                if self.takes_part(cx, from, view) {
                    self.on_accept(cx, from, ballot, change);
                }
            }
            Message::Promise { view, ballot, accepted } => {
                self.on_rescue_promise(from, view, ballot, accepted);
                if let Some((enough, campaign)) = self.campaign_of(from, view, ballot)
                    && campaign.on_promise(from, accepted, enough)
                {
                    self.ask_to_accept(cx);
                }
            }
            Message::Accepted { view, ballot } => {
                if let Some((enough, campaign)) = self.campaign_of(from, view, ballot)
                    && campaign.on_accepted(from, enough)
                {
                    self.on_chosen(cx);
                }
            }
            Message::Refused { view, ballot, promised, wait } => {
                self.on_refused(cx, from, view, ballot, promised, wait);
            }
        }
    }

    fn is_far_ahead(&self, ballot: Ballot) -> bool {
        ballot.round > self.round.saturating_add(ROUNDS_AHEAD_MAX)
    }

    /// To all members of the view, of which this peer is one.
    pub(super) fn say_to_members(&mut self, cx: Cx<'_, '_, R>, message: &Message) {
        let members: Vec<PeerId> = self.roster.iter().flat_map(Roster::members).collect();
        members.iter().for_each(|peer| self.say(cx, *peer, message.clone()));
    }

    /// Sends; what this peer has to say to itself needs no message.
    pub(super) fn say(&mut self, cx: Cx<'_, '_, R>, to: PeerId, message: Message) {
        if to == self.me {
            self.on_message(cx, to, message);
        } else {
            cx.send(to, message);
        }
    }
}
