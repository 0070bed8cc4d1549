//! One request, from its first REQUEST to its RELEASE.

use alloc::collections::BTreeSet;

use sigmalock_core::{
    Acquire, CallId, Echo, Lease, LocalTime, LockReply, Mode, Name, Patience, PeerId, Refusal,
    ReplicaId, Span, Token,
};

use super::message::{Answer, GrantId, Renewal, Response, Ticket, Vote};
use super::seat::{Held, News};
use super::tally::Tally;
use super::{Config, Cx, Mutant, Note};
use crate::parts::{Alarm, Guard, Rules, User};

/// A request under way.
#[derive(Debug, Clone, Hash)]
pub(super) struct Attempt {
    pub(super) ticket: Ticket,
    pub(super) name: Name,
    pub(super) ttl: Span,
    only_try: bool,
    pub(super) gives_up_at: LocalTime,
    pub(super) tally: Tally,
    pub(super) phase: Phase,
    /// Whether it has stepped out of the others' way, because too many hosts cannot vote for it to win.
    pub(super) aside: bool,
    /// Until then it is fresh news that this request's turn has come at some replica, so that what is
    /// heard of older requests elsewhere is likely out of date: they are on their way out.
    pub(super) turn_until: LocalTime,
    /// The longest answer so far.
    pub(super) round_trip: Span,
    /// Not before then does it yield again, and how long it pauses after the next time. A vote that
    /// comes straight back, there being nobody else, must not go round in circles.
    pub(super) yield_from: LocalTime,
    pub(super) yield_pause: Span,
    /// While m votes are held, but propose different tokens: when to stop waiting for more votes.
    pub(super) seal_at: LocalTime,
    /// While some votes are held, but not enough, the others are asked again and again.
    pub(super) probe_at: LocalTime,
    probe_period: Span,
    /// How many are ahead, as the user was last told.
    told_ahead: Option<u32>,
    pub(super) alarm: Alarm,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) enum Phase {
    /// Collecting votes.
    Asking,
    /// Has m votes, which propose different tokens; has asked for this one to be written down.
    Sealing(Token),
    /// The user has been told, with the block of tokens of which this is the last.
    Inside(Guard, Token),
}

/// Whether a request goes on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Continue,
    /// It is over, and this is the user's answer.
    Over(LockReply),
}

impl Attempt {
    /// Sends REQUEST to all replicas.
    pub(super) fn start(
        config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, ticket: Ticket, wish: &Acquire,
        down: &BTreeSet<PeerId>,
    ) -> Self {
        let gives_up_at = wish.patience.ends_at(cx.now());
        let mut attempt = Self {
            ticket,
            name: wish.name.clone(),
            ttl: wish.ttl,
            only_try: wish.patience == Patience::Try,
            gives_up_at,
            tally: Tally::new(cx.hosting.seats(&wish.name)),
            phase: Phase::Asking,
            aside: false,
            turn_until: LocalTime::MIN,
            round_trip: Span::ZERO,
            yield_from: LocalTime::MIN,
            yield_pause: Span::ZERO,
            seal_at: LocalTime::NEVER,
            probe_at: LocalTime::NEVER,
            probe_period: Span::ZERO,
            told_ahead: None,
            alarm: Alarm::new(),
        };
        for index in 0..attempt.tally.len() {
            attempt.ask(config, cx, index);
        }
        attempt.tally.mark_down(down);
        // Who knows no hosts yet may wait for some, or not.
        let nobody = attempt.tally.len() == 0 || attempt.cannot_win(config, cx);
        attempt.wake_by(cx, if nobody { cx.now() } else { gives_up_at });
        attempt
    }

    pub(super) fn on_response(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, from: PeerId,
        response: &Response,
    ) -> Step {
        let &Response { life, sequence, echo, answer, .. } = response;
        let now = cx.now();
        let here = self.tally.find(response.replica.index);
        let here = here.filter(|index| self.is_host(cx, from, *index, &response.replica));
        let Some(index) = here else {
            cx.note(Note::Malformed);
            return Step::Continue;
        };
        let seat = self.tally.seat_mut(index);
        let awaited = seat.tries > 0 && echo.sent == seat.asked_at;
        if !seat.hear(life, sequence, echo) && !config.breaks(Mutant::CountsStaleResponses) {
            cx.note(Note::StaleResponse);
            // A host that has been restarted knows who waits, but not since when they do.
            if matches!(answer, Answer::Yours { asked: false, .. })
                && echo.sent == LocalTime::MIN
                && self.may_ask(config, cx, index)
            {
                self.ask(config, cx, index);
            }
            return Step::Continue;
        }
        if awaited {
            let sample = now.since(echo.sent).min(config.round_trip_worst * 4);
            self.round_trip = self.round_trip.max(sample);
        }
        match answer {
            Answer::Yours { vote, asked } => {
                seat.voting_life = Some(life);
                seat.other = None;
                if !asked {
                    self.turn_until = now + self.round_trip * 2;
                }
                self.on_vote(config, cx, index, echo, vote, asked);
            }
            Answer::Queued { owner, wait, .. } | Answer::Full { owner, wait } => {
                (seat.place, seat.other) = match answer {
                    Answer::Queued { ahead, turn, other, .. } => (Some((ahead, turn)), other),
                    _ => (None, None),
                };
                if owner.is_some() {
                    seat.voting_life = Some(life);
                    if seat.yielding {
                        // Somebody was glad of it.
                        self.yield_pause = Span::ZERO;
                    }
                }
                seat.asked_at = now;
                seat.yielding = false;
                let news = owner.map_or(News::Nobody, |owner| News::Theirs(owner, now));
                if owner.is_some() || !seat.vote_is_older || seat.held().is_none() {
                    self.tally.set_news(index, news);
                }
                // The host's advice says when the turn comes; the news of it takes a while longer.
                self.ask_later(cx, index, wait + self.round_trip * 2);
                self.tell_place(config, cx);
            }
        }
        self.decide(config, cx)
    }

    /// Tells the user how many are ahead, if that is news: what the replicas say differs, so the median.
    fn tell_place(&mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        if self.only_try || !matches!(self.phase, Phase::Asking) {
            return;
        }
        if let Some((ahead, wait)) = self.tally.place(config.quorum)
            && self.told_ahead != Some(ahead)
        {
            self.told_ahead = Some(ahead);
            cx.reply(self.call(), LockReply::Queued { ahead, wait });
        }
    }

    fn on_vote(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, index: usize,
        echo: Echo, vote: Vote, asked: bool,
    ) {
        let now = cx.now();
        let yielded =
            self.tally.seat(index).yielded.filter(|yielded| yielded.life == vote.grant.life);
        if yielded.is_some_and(|yielded| vote.grant.number <= yielded.number)
            && !config.breaks(Mutant::CountsYieldedVotes)
            && !config.breaks(Mutant::CountsStaleResponses)
        {
            // Said before the YIELD arrived, or the YIELD was lost. It is said again, even if a host that
            // was not sure of its votes had answered as if it had none out.
            self.tally.set_news(index, News::Unknown);
            self.tally.seat_mut(index).yielding = true;
            if self.may_ask(config, cx, index) {
                self.ask(config, cx, index);
            }
            return;
        }
        let before = self.tally.seat(index).held().filter(|held| held.grant == vote.grant);
        let expiry = expiry(config, now, echo, vote.lease, self.ttl);
        let expiry = before.map_or(expiry, |held| held.expiry.max(expiry));
        if expiry <= now && !self.seals_blindly(config) {
            self.tally.set_news(index, News::Unknown);
            // After a long wait the margin may have eaten the lease; asking brings a fresh echo. If
            // even that is too old, the network is slow.
            if asked {
                return self.ask_later(cx, index, self.retry_after(config, 0));
            }
            return self.ask(config, cx, index);
        }
        let seat = self.tally.seat_mut(index);
        seat.ask_at = LocalTime::NEVER;
        (seat.yielding, seat.vote_is_older) = (false, false);
        let held = Held { grant: vote.grant, proposal: vote.proposal, expiry };
        self.tally.set_news(index, News::Mine(held));
        self.wake_by(cx, expiry);
        let recalled = self.tally.seat(index).recalled == Some(vote.grant);
        if recalled && self.yields(config) {
            return self.give_back(config, cx, index, vote.grant);
        }
        if let Some(guard) = self.guard() {
            let deadline = self.tally.deadline(config.quorum, cx.hosting);
            if deadline > guard.deadline() + self.ttl / 8 {
                self.extend(cx, deadline);
            }
        }
    }

    /// Tells the user of a later deadline, if renewals have brought one about.
    fn extend(&mut self, cx: Cx<'_, '_, impl Rules>, deadline: LocalTime) {
        let Phase::Inside(guard, _) = &mut self.phase else {
            return debug_assert!(false, "only who is inside is extended");
        };
        if guard.extend(cx, deadline) {
            let pause = (deadline.since(cx.now()) / 3).min(self.ttl / 3);
            let jitter = Span::from_micros(cx.random() % (pause.as_micros() / 8).max(1));
            guard.renew_next(cx.now() + (pause - jitter));
        }
    }

    /// RECALL: somebody older waits there. Yields that vote, unless this request has won.
    pub(super) fn on_recall(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, index: u16,
        grant: GrantId,
    ) {
        let Some(index) = self.tally.find(index) else {
            return cx.note(Note::Malformed);
        };
        if self.tally.seat(index).held().is_none_or(|held| held.grant != grant) {
            // It has overtaken the vote itself. Writers in that place find out soon enough that nobody can
            // win; readers, and those who want permits, may take each other for winners.
            if self.ticket.mode != Mode::Exclusive {
                self.tally.seat_mut(index).recalled = Some(grant);
            }
        } else if matches!(self.phase, Phase::Asking) {
            self.give_back(config, cx, index, grant);
        }
    }

    /// Whether this request has not won, and so makes way for an older one.
    fn yields(&self, config: &Config<impl Rules>) -> bool {
        matches!(self.phase, Phase::Asking) && self.tally.votes() < config.quorum.m()
    }

    /// RENEWED, for one vote.
    pub(super) fn on_renewal(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, renewal: Renewal,
        echo: Echo,
    ) {
        if self.guard().is_none() {
            return;
        }
        let Some(index) = self.tally.find(renewal.index) else {
            return cx.note(Note::Malformed);
        };
        match &mut self.tally.seat_mut(index).news {
            News::Mine(held)
                if renewal.good && held.grant == renewal.grant && held.expiry > cx.now() =>
            {
                let lease = Lease { given: echo.heard, ttl: self.ttl };
                held.expiry = held.expiry.max(config.margin(true).expiry(echo, lease));
                let deadline = self.tally.deadline(config.quorum, cx.hosting);
                self.extend(cx, deadline);
            }
            // Gone, or in the hands of the host's next life: asked for anew. The guard's deadline stands.
            _ => self.ask_later(cx, index, Span::ZERO),
        }
    }

    /// The timer of this request.
    pub(super) fn on_timer(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> Step {
        let now = cx.now();
        self.alarm.fired();
        if self.guard().is_none() && self.gives_up_at <= now {
            return Step::Over(LockReply::TimedOut);
        }
        let probing = self.probe_at <= now;
        if probing {
            self.probe_period = (self.probe_period * 2).min(config.retry_max);
            self.probe_at = now + self.probe_period;
        }
        self.tally.drop_expired(now, self.guard().is_none());
        for index in 0..self.tally.len() {
            let seat = self.tally.seat(index);
            if seat.is_due(now) || (probing && seat.is_foreign()) {
                // Twice without an answer: vote holders do not wait on it.
                if seat.tries >= 2 && !matches!(seat.news, News::Mine(_) | News::Nobody) {
                    self.tally.set_news(index, News::Silent);
                }
                self.ask(config, cx, index);
            }
        }
        let step = self.decide(config, cx);
        self.wake_for_next(cx);
        step
    }

    /// The host of some seats went down, or came back, or somebody else hosts them now.
    pub(super) fn on_peer(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, peer: PeerId, up: bool,
    ) -> Step {
        for index in 0..self.tally.len() {
            let seat = self.tally.seat_mut(index);
            let here = seat.host == Some(peer);
            seat.sent_on &= up || !here;
            let held = seat.held().is_some();
            if held && (up || !here) {
                continue;
            }
            let moved = cx.hosting.hands_over() && {
                let replica = ReplicaId { name: self.name.clone(), index: seat.index };
                let host = cx.hosting.host_of(&replica);
                if up { host == Some(peer) && !here } else { here && host.is_some() }
            };
            // A vote counts until it runs out, whatever became of its host; whoever hosts the replica
            // now may have been handed it, and can renew it.
            if here && !up && !held {
                self.tally.set_news(index, News::Nobody);
            }
            if moved || (here && up) {
                self.ask(config, cx, index);
            }
        }
        self.decide(config, cx)
    }

    /// Peers have agreed on another membership. Who votes on the name may have changed, and what was said in
    /// the last view does not count in this one, so all are asked. A guard stands until its deadline.
    pub(super) fn on_view(
        &mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>, down: &BTreeSet<PeerId>,
    ) -> Step {
        self.tally.reseat(&cx.hosting.seats(&self.name));
        self.tally.mark_down(down);
        for index in 0..self.tally.len() {
            self.ask(config, cx, index);
        }
        self.decide(config, cx)
    }

    /// Whether a response comes from whoever hosts the replica; it may have moved meanwhile.
    fn is_host(
        &mut self, cx: Cx<'_, '_, impl Rules>, from: PeerId, index: usize, replica: &ReplicaId,
    ) -> bool {
        if self.tally.seat(index).host == Some(from) {
            return true;
        }
        let moved = cx.hosting.hands_over() && cx.hosting.host_of(replica) == Some(from);
        if moved {
            self.tally.move_seat(index, Some(from));
        }
        moved
    }

    /// Where this request stands, and what to do about it: the paper's three outcomes.
    fn decide(&mut self, config: &Config<impl Rules>, cx: Cx<'_, '_, impl Rules>) -> Step {
        if self.guard().is_some() {
            return Step::Continue;
        }
        let cannot_win = self.cannot_win(config, cx);
        if !cannot_win && self.aside {
            self.come_back(config, cx);
        }
        if self.tally.votes() >= config.quorum.m() && self.has_won(config, cx) {
            return Step::Continue;
        }
        if let Phase::Sealing(_) = self.phase {
            cx.note(Note::SealAbandoned);
            self.phase = Phase::Asking;
        }
        self.seal_at = LocalTime::NEVER;
        if let Some(mine) = self.ticket.mode.permits()
            && let Some(of) = self.tally.other_number(config.quorum)
        {
            let of = if config.breaks(Mutant::NamesItsOwnNumber) { mine } else { of };
            let refusal = Refusal::OtherPermits { of };
            return Step::Over(LockReply::Refused(refusal));
        }
        if cannot_win {
            self.stand_aside(config, cx);
            return if self.only_try { Step::Over(LockReply::Busy) } else { Step::Continue };
        }
        let nowhere = config.quorum.n().saturating_sub(self.tally.len());
        if self.tally.foreign() + nowhere > config.quorum.n() - config.quorum.m() {
            if self.only_try {
                return Step::Over(LockReply::Busy);
            }
            if self.tally.votes() > 0 && self.nobody_can_win(config, cx.now()) {
                if self.yield_from <= cx.now() {
                    self.yield_all(config, cx);
                } else {
                    self.wake_by(cx, self.yield_from);
                }
            }
        }
        if self.tally.votes() == 0 {
            self.probe_at = LocalTime::NEVER;
        } else if self.probe_at == LocalTime::NEVER {
            self.probe_period = self.retry_after(config, 0) * 3 / 4;
            self.probe_at = cx.now() + self.probe_period;
            self.wake_by(cx, self.probe_at);
        }
        Step::Continue
    }

    pub(super) fn call(&self) -> CallId {
        self.ticket.request.call
    }

    /// The last token of the block that is the user's, if it is inside.
    pub(super) fn token(&self) -> Option<Token> {
        match self.phase {
            Phase::Inside(_, token) => Some(token),
            Phase::Asking | Phase::Sealing(_) => None,
        }
    }
}

impl User for Attempt {
    fn name(&self) -> &Name {
        &self.name
    }
    fn guard(&self) -> Option<&Guard> {
        match &self.phase {
            Phase::Inside(guard, _) => Some(guard),
            Phase::Asking | Phase::Sealing(_) => None,
        }
    }
    fn guard_mut(&mut self) -> Option<&mut Guard> {
        match &mut self.phase {
            Phase::Inside(guard, _) => Some(guard),
            Phase::Asking | Phase::Sealing(_) => None,
        }
    }
}

/// When the client stops believing in a vote.
fn expiry(
    config: &Config<impl Rules>, now: LocalTime, echo: Echo, lease: Lease, ttl: Span,
) -> LocalTime {
    if config.breaks(Mutant::CountsFromReceipt) {
        return now + lease.ttl - lease.ttl.millionths(config.margin.0);
    }
    let ttl = if config.breaks(Mutant::IgnoresClaimWindow) { ttl } else { lease.ttl };
    config.margin(false).expiry(echo, Lease { ttl, ..lease })
}
