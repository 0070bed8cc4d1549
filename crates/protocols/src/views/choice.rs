//! How the successor of a view is chosen: what members promise and accept, and what a proposer does.

use sigmalock_core::{LocalTime, PeerId, Span};

use super::campaign::Campaign;
use super::message::{Ballot, Message};
use super::mutant::Mutant;
use super::roster::{Change, Roster};
use super::{Cx, Note, Timer, Views};
use crate::parts::Rules;

impl<R: Rules> Views<R> {
    /// Whether this peer has a say in the successor of a view, towards one of its members. Who is at
    /// another view is told, or asks.
    pub(super) fn takes_part(&mut self, cx: Cx<'_, '_, R>, from: PeerId, view: u64) -> bool {
        if view != self.number() {
            self.on_known(cx, from, view, false);
            return false;
        }
        let accepts_lost = self.config.breaks(Mutant::AcceptsThoughLost) && self.is_in(self.me);
        let has_a_say = if from == self.me { self.has_a_say_alone() } else { self.has_a_say() };
        let heard = self.is_in(from) || self.config.breaks(Mutant::ListensToOutsiders);
        heard && (has_a_say || accepts_lost)
    }

    pub(super) fn on_prepare(&mut self, cx: Cx<'_, '_, R>, from: PeerId, ballot: Ballot) {
        self.round = self.round.max(ballot.round);
        let view = self.number();
        if self.acceptor.promise(ballot) {
            let accepted = self.acceptor.accepted();
            self.say_saved(cx, from, Message::Promise { view, ballot, accepted });
        } else {
            self.refuse(cx, from, ballot, Span::ZERO);
        }
    }

    pub(super) fn on_accept(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, ballot: Ballot, change: Change,
    ) {
        self.round = self.round.max(ballot.round);
        let view = self.number();
        let wait = self.open_at().since(cx.now());
        let fits = self.after(change).is_some();
        if wait > Span::ZERO {
            cx.note(Note::TooEarly);
            self.refuse(cx, from, ballot, wait);
        } else if fits && self.acceptor.accept(ballot, change) {
            self.say_saved(cx, from, Message::Accepted { view, ballot });
        } else {
            self.refuse(cx, from, ballot, Span::ZERO);
        }
    }

    /// Says what is on disk by then.
    fn say_saved(&mut self, cx: Cx<'_, '_, R>, to: PeerId, message: Message) {
        if self.config.breaks(Mutant::SpeaksBeforeItWrites) {
            self.say(cx, to, message);
            return self.save(cx);
        }
        self.save(cx);
        self.say(cx, to, message);
    }

    fn refuse(&mut self, cx: Cx<'_, '_, R>, to: PeerId, ballot: Ballot, wait: Span) {
        let (view, promised) = (self.number(), self.acceptor.promised());
        self.say(cx, to, Message::Refused { view, ballot, promised, wait });
    }

    /// The successor of the view by this change, if it makes sense.
    pub(super) fn after(&self, change: Change) -> Option<Roster> {
        let roster = self.roster.as_ref()?;
        match change {
            Change::Add(peer, badge) if self.config.breaks(Mutant::ReplacesInOneChange) => {
                roster.after(change).or_else(|| roster.replacing(peer, badge))
            }
            _ => roster.after(change),
        }
    }

    /// From when on this peer accepts a successor of its view.
    fn open_at(&self) -> LocalTime {
        let first = self.number() == 1;
        let settled = self.settled
            && self.roster.as_ref().is_some_and(|roster| matches!(roster.last(), Change::Add(..)));
        if first || settled || self.config.breaks(Mutant::HurriesOn) {
            return LocalTime::MIN;
        }
        self.learned_at + self.config.view_min()
    }

    /// The campaign that an answer belongs to, if this peer has a say still, and how many answers are enough.
    pub(super) fn campaign_of(
        &mut self, from: PeerId, view: u64, ballot: Ballot,
    ) -> Option<(usize, &mut Campaign)> {
        let enough = self.enough();
        if !self.has_a_say() && !self.config.breaks(Mutant::CountsWithoutASay) {
            return None;
        }
        self.roster.as_ref().filter(|r| r.number() == view && r.contains(from))?;
        let campaign = self.campaign.as_mut().filter(|campaign| campaign.ballot == ballot)?;
        Some((enough, campaign))
    }

    /// So many members choose a successor.
    fn enough(&self) -> usize {
        let half = usize::from(self.config.breaks(Mutant::HalfIsEnough));
        self.roster.as_ref().map_or(0, Roster::majority).saturating_sub(half)
    }

    fn reaches_enough(&self) -> bool {
        let up = self.up.iter().filter(|peer| self.is_in(**peer)).count();
        up + 1 >= self.enough()
    }

    pub(super) fn on_refused(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, view: u64, ballot: Ballot,
        promised: Option<Ballot>, wait: Span,
    ) {
        self.on_rescue_refused(cx, view, ballot, promised);
        if self.campaign_of(from, view, ballot).is_none() {
            return;
        }
        self.round = self.round.max(promised.map_or(0, |promised| promised.round));
        if wait > Span::ZERO {
            // The others may be earlier; those who are not will be by then.
            return self.propose_at(cx, wait.min(self.config.view_min()));
        }
        if promised > Some(ballot) {
            cx.note(Note::Outbid);
            self.campaign = None;
            let pause = self.config.round_trip_worst * (2 + cx.random() % 4);
            self.propose_at(cx, pause);
        }
    }

    fn propose_at(&mut self, cx: Cx<'_, '_, R>, after: Span) {
        self.proposes_at = cx.now() + after;
        cx.set_timer(Timer::Propose, self.proposes_at);
    }

    /// If there is something to propose, sees to it that it is: first by the first of those who are up.
    pub(super) fn consider(&mut self, cx: Cx<'_, '_, R>) {
        self.drop_granted();
        if !self.has_a_say() || self.wishes.is_empty() || self.campaign.is_some() {
            return;
        }
        let rank = self.up.iter().filter(|peer| **peer < self.me && self.is_in(**peer)).count();
        let turn = self.config.round_trip_worst * 2 * (rank as u64);
        let wait = turn.max(self.open_at().since(cx.now()));
        if cx.now() + wait < self.proposes_at {
            self.propose_at(cx, wait);
        }
    }

    /// Begins a campaign, or begins it anew: messages may have been lost.
    pub(super) fn propose(&mut self, cx: Cx<'_, '_, R>) {
        self.proposes_at = LocalTime::NEVER;
        self.drop_granted();
        if !self.has_a_say() {
            // Or it would be in the way of the next, when its word counts again.
            self.campaign = None;
            return;
        }
        let Some(change) = self.wishes.most_urgent() else {
            self.campaign = None;
            return;
        };
        if let Some(wait) = Some(self.open_at().since(cx.now())).filter(|wait| *wait > Span::ZERO) {
            return self.propose_at(cx, wait);
        }
        let again = self.config.round_trip_worst * (4 + cx.random() % 4);
        self.propose_at(cx, again);
        // Who reaches too few to win would only stand in the way of an operator, who asks the same promises.
        if !self.reaches_enough() {
            self.campaign = None;
            return;
        }
        self.round += 1;
        let ballot = Ballot { round: self.round, by: self.me };
        let mut campaign = Campaign::new(ballot, change);
        if self.config.breaks(Mutant::GoesByTheOldest) {
            campaign.go_by_the_oldest();
        }
        self.campaign = Some(campaign);
        self.say_to_members(cx, &Message::Prepare { view: self.number(), ballot });
    }

    pub(super) fn ask_to_accept(&mut self, cx: Cx<'_, '_, R>) {
        let Some(Campaign { ballot, mut change, .. }) = self.campaign else { return };
        if self.config.breaks(Mutant::IgnoresAccepted)
            && let Some(wish) = self.wishes.first()
        {
            change = wish;
            self.campaign.iter_mut().for_each(|campaign| campaign.change = change);
        }
        self.say_to_members(cx, &Message::Accept { view: self.number(), ballot, change });
    }

    pub(super) fn on_chosen(&mut self, cx: Cx<'_, '_, R>) {
        let Some(campaign) = self.campaign.take() else { return };
        let Some(next) = self.after(campaign.change) else { return };
        cx.note(Note::Chosen(self.number()));
        self.install(cx, next);
        self.spread(cx);
    }
}
