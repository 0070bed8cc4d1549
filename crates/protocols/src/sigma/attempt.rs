//! One request, from its first REQUEST to its RELEASE.

use alloc::vec::Vec;

use sigmalock_core::{
    Acquire, CallId, Context, Echo, Incarnation, Lease, LocalTime, LockReply, Name, Patience,
    PeerId, ReplicaId, Span, Token,
};

use super::message::{Answer, Call, Claim, GrantId, Message, Response, Spent, Ticket, Used, Vote};
use super::seat::{Held, News, Seat};
use super::{Config, Mutant, Note, Sigma, Timer};
use crate::parts::Alarm;

/// A request under way.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) ticket: Ticket,
    name: Name,
    ttl: Span,
    only_try: bool,
    gives_up_at: LocalTime,
    seats: Vec<Seat>,
    phase: Phase,
    /// How many seats are `Mine`, and how many are known not to be.
    votes: usize,
    foreign: usize,
    /// Until then it is fresh news that this request's turn has come at some replica, so that what is
    /// heard of older requests elsewhere is likely out of date: they are on their way out.
    turn_until: LocalTime,
    /// The longest answer so far.
    round_trip: Span,
    /// Not before then does it yield again, and how long it pauses after the next time. A vote that
    /// comes straight back, there being nobody else, must not go round in circles.
    yield_from: LocalTime,
    yield_pause: Span,
    /// While m votes are held, but propose different tokens: when to stop waiting for more votes.
    seal_at: LocalTime,
    /// While some votes are held, but not enough, the others are asked again and again.
    probe_at: LocalTime,
    probe_period: Span,
    alarm: Alarm,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Collecting votes.
    Asking,
    /// Has m votes, which propose different tokens; has asked for this one to be written down.
    Sealing(Token),
    /// The user has been told.
    Inside(Guard),
}

/// The right to be inside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guard {
    pub(super) token: Token,
    /// The m-th latest expiry of the votes, as the user was told.
    pub(super) deadline: LocalTime,
    /// The user is told to stop this early.
    pub(super) lost_at: LocalTime,
    /// The user has been told to stop, and nothing can change that.
    pub(super) lost: bool,
    pub(super) renew_at: LocalTime,
}

/// Whether a request goes on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Continue,
    /// It is over, and this is the user's answer.
    Over(LockReply),
}

type Cx<'a, 'b> = &'a mut Context<'b, Sigma>;

impl Attempt {
    /// Sends REQUEST to all replicas.
    pub(super) fn start(config: &Config, cx: Cx<'_, '_>, ticket: Ticket, wish: &Acquire) -> Self {
        let gives_up_at = match wish.patience {
            Patience::For(span) => cx.now() + span,
            Patience::Try | Patience::Forever => LocalTime::NEVER,
        };
        let mut attempt = Self {
            ticket,
            name: wish.name.clone(),
            ttl: wish.ttl,
            only_try: wish.patience == Patience::Try,
            gives_up_at,
            seats: (0..config.quorum.n()).map(|_| Seat::new()).collect(),
            phase: Phase::Asking,
            votes: 0,
            foreign: 0,
            turn_until: LocalTime::MIN,
            round_trip: Span::ZERO,
            yield_from: LocalTime::MIN,
            yield_pause: Span::ZERO,
            seal_at: LocalTime::NEVER,
            probe_at: LocalTime::NEVER,
            probe_period: Span::ZERO,
            alarm: Alarm::new(),
        };
        for index in 0..attempt.seats.len() {
            attempt.ask(config, cx, index);
        }
        attempt.wake_by(cx, gives_up_at);
        attempt
    }

    pub(super) fn on_response(
        &mut self, config: &Config, cx: Cx<'_, '_>, from: PeerId, response: &Response,
    ) -> Step {
        let &Response { host: life, sequence, echo, answer, .. } = response;
        let now = cx.now();
        let index = usize::from(response.replica.index);
        let Some(seat) = self.seats.get_mut(index).filter(|seat| seat.host == Some(from)) else {
            cx.note(Note::Malformed);
            return Step::Continue;
        };
        let awaited = seat.tries > 0 && echo.sent == seat.asked_at;
        if !seat.hear(life, sequence, echo) && !config.breaks(Mutant::CountsStaleResponses) {
            cx.note(Note::StaleResponse);
            return Step::Continue;
        }
        if awaited {
            let sample = now.since(echo.sent).min(config.round_trip_worst * 4);
            self.round_trip = self.round_trip.max(sample);
        }
        match answer {
            Answer::Yours { vote, asked } => {
                seat.voting_life = Some(life);
                if !asked {
                    self.turn_until = now + self.round_trip * 2;
                }
                self.on_vote(config, cx, index, echo, vote, asked);
            }
            Answer::Queued { owner, wait } | Answer::Full { owner, wait } => {
                if owner.is_some() {
                    seat.voting_life = Some(life);
                    self.yield_pause = Span::ZERO;
                }
                seat.asked_at = now;
                seat.yielding = false;
                let news = owner.map_or(News::Nobody, |owner| News::Theirs(owner, now));
                self.set_news(index, news);
                // The host's advice says when the turn comes; the news of it takes a while longer.
                self.ask_in(cx, index, wait + self.round_trip * 2);
            }
        }
        self.decide(config, cx)
    }

    fn on_vote(
        &mut self, config: &Config, cx: Cx<'_, '_>, index: usize, echo: Echo, vote: Vote,
        asked: bool,
    ) {
        let now = cx.now();
        let yielded = self.seats[index].yielded.filter(|yielded| yielded.host == vote.grant.host);
        if yielded.is_some_and(|yielded| vote.grant.number <= yielded.number)
            && !config.breaks(Mutant::CountsYieldedVotes)
            && !config.breaks(Mutant::CountsStaleResponses)
        {
            // Said before the YIELD arrived, or the YIELD was lost.
            self.set_news(index, News::Unknown);
            if self.may_ask(cx, index) {
                self.ask(config, cx, index);
            }
            return;
        }
        let expiry = expiry(config, now, echo, vote.lease, self.ttl);
        if expiry <= now && !self.seals_blindly(config) {
            self.set_news(index, News::Unknown);
            // After a long wait the margin may have eaten the lease; asking brings a fresh echo. If
            // even that is too old, the network is slow.
            if asked {
                return self.ask_in(cx, index, self.retry_after(config, 0));
            }
            return self.ask(config, cx, index);
        }
        let seat = &mut self.seats[index];
        seat.ask_at = LocalTime::NEVER;
        seat.yielding = false;
        let before = seat.held().filter(|held| held.grant == vote.grant);
        let expiry = before.map_or(expiry, |held| held.expiry.max(expiry));
        let held = Held { grant: vote.grant, proposal: vote.proposal, expiry };
        self.set_news(index, News::Mine(held));
        self.wake_by(cx, expiry);
        if let Phase::Inside(guard) = self.phase
            && self.deadline(config) > guard.deadline + self.ttl / 8
        {
            self.extend(config, cx);
        }
    }

    /// RECALL: somebody older waits there. Yields that vote, unless this request has won.
    pub(super) fn on_recall(
        &mut self, config: &Config, cx: Cx<'_, '_>, index: u16, grant: GrantId,
    ) {
        let index = usize::from(index);
        let held = self.seats.get(index).and_then(Seat::held);
        if matches!(self.phase, Phase::Asking) && held.is_some_and(|held| held.grant == grant) {
            self.give_back(config, cx, index, grant);
        }
    }

    /// RENEWED, for one vote.
    pub(super) fn on_renewal(
        &mut self, config: &Config, cx: Cx<'_, '_>, index: u16, life: Incarnation, echo: Echo,
        good: bool,
    ) {
        let now = cx.now();
        let Some(seat) = self.seats.get_mut(usize::from(index)) else { return };
        match &mut seat.news {
            News::Mine(held) if good && held.grant.host == life && held.expiry > now => {
                let lease = Lease { given: echo.heard, ttl: self.ttl };
                held.expiry = held.expiry.max(config.margin.expiry(echo, lease));
            }
            // Gone, or in the hands of the host's next life: the vote is believed to its end, and
            // asked for anew.
            _ => self.ask_in(cx, usize::from(index), Span::ZERO),
        }
    }

    /// The timer of this request.
    pub(super) fn on_timer(&mut self, config: &Config, cx: Cx<'_, '_>) -> Step {
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
        self.drop_expired(now);
        for index in 0..self.seats.len() {
            let seat = &self.seats[index];
            let foreign = matches!(seat.news, News::Theirs(..) | News::Nobody);
            if seat.is_due(now) || (probing && foreign) {
                if seat.tries >= 2 && seat.held().is_none() {
                    self.set_news(index, News::Nobody);
                }
                self.ask(config, cx, index);
            }
        }
        let step = self.decide(config, cx);
        self.wake_for_next(cx);
        step
    }

    /// The host of some seats went down, or came back.
    pub(super) fn on_peer(
        &mut self, config: &Config, cx: Cx<'_, '_>, peer: PeerId, up: bool,
    ) -> Step {
        for index in 0..self.seats.len() {
            let seat = &self.seats[index];
            if seat.host == Some(peer) && seat.held().is_none() {
                if up {
                    self.ask(config, cx, index);
                } else {
                    self.set_news(index, News::Nobody);
                }
            }
        }
        self.decide(config, cx)
    }

    /// Where this request stands, and what to do about it: the paper's three outcomes.
    fn decide(&mut self, config: &Config, cx: Cx<'_, '_>) -> Step {
        if matches!(self.phase, Phase::Inside(_)) {
            return Step::Continue;
        }
        if self.votes >= config.quorum.m() && self.enter(config, cx) {
            return Step::Continue;
        }
        if let Phase::Sealing(_) = self.phase {
            cx.note(Note::SealAbandoned);
            self.phase = Phase::Asking;
        }
        self.seal_at = LocalTime::NEVER;
        if self.foreign > config.quorum.n() - config.quorum.m() {
            if self.only_try {
                return Step::Over(LockReply::Busy);
            }
            if self.votes > 0 && self.nobody_can_win(config, cx.now()) {
                if self.yield_from <= cx.now() {
                    self.yield_all(config, cx);
                } else {
                    self.wake_by(cx, self.yield_from);
                }
            }
        }
        if self.votes == 0 {
            self.probe_at = LocalTime::NEVER;
        } else if self.probe_at == LocalTime::NEVER {
            self.probe_period = self.retry_after(config, 0) * 3 / 4;
            self.probe_at = cx.now() + self.probe_period;
            self.wake_by(cx, self.probe_at);
        }
        Step::Continue
    }

    /// Outcome 1: this request has m votes. In, if m of them have written down the same token; else
    /// that is arranged first. False if the votes turn out to be too old.
    fn enter(&mut self, config: &Config, cx: Cx<'_, '_>) -> bool {
        let now = cx.now();
        if !self.seals_blindly(config) {
            self.drop_expired(now);
        }
        if self.votes < config.quorum.m() {
            self.wake_by(cx, now);
            return false;
        }
        let Some(token) = self.agreed_token(config) else {
            if !self.awaits_agreement(config, cx) {
                self.seal(config, cx);
            }
            return true;
        };
        let deadline = self.deadline(config);
        let lost_at = deadline - self.ttl / 50;
        if lost_at <= now && !self.seals_blindly(config) {
            // Too late to be of use: ask for fresh leases first.
            for index in 0..self.seats.len() {
                if self.seats[index].held().is_some() && self.may_ask(cx, index) {
                    self.ask(config, cx, index);
                }
            }
            return true;
        }
        for seat in &mut self.seats {
            seat.life_at_seal = seat.voting_life;
            if seat.held().is_some() {
                seat.ask_at = LocalTime::NEVER;
            }
        }
        let renew_at = now + deadline.since(now) / 3;
        self.phase = Phase::Inside(Guard { token, deadline, lost_at, lost: false, renew_at });
        self.probe_at = LocalTime::NEVER;
        cx.reply(self.call(), LockReply::Granted { token: Some(token), deadline });
        true
    }

    /// Whether answers that are still out may bring m votes to agree on a token, and are worth a
    /// moment: cheaper than the round trip of a SEAL.
    fn awaits_agreement(&mut self, config: &Config, cx: Cx<'_, '_>) -> bool {
        if self.seal_at == LocalTime::NEVER {
            self.seal_at = cx.now() + self.round_trip / 4;
            self.wake_by(cx, self.seal_at);
        }
        let out = self.seats.len() - self.votes - self.foreign;
        let best = self.proposals().max();
        let agreeing = self.proposals().filter(|proposal| Some(*proposal) == best).count();
        matches!(self.phase, Phase::Asking)
            && cx.now() < self.seal_at
            && agreeing + out >= config.quorum.m()
    }

    /// The token that m of the held votes propose, if there is one. It is then written down at m
    /// hosts, so whoever wins next meets one that goes beyond it.
    fn agreed_token(&self, config: &Config) -> Option<Token> {
        let held = || self.seats.iter().filter_map(Seat::held);
        if config.breaks(Mutant::ShowsUnsealedToken) {
            return held().map(|held| held.proposal).max();
        }
        if config.breaks(Mutant::ShowsGrantCounter) {
            return held().map(|held| Token(held.grant.number)).max();
        }
        // m is more than half of n: what m propose survives pairing off different proposals.
        let mut candidate = (Token::default(), 0usize);
        for held in held() {
            match candidate {
                (_, 0) => candidate = (held.proposal, 1),
                (token, count) if token == held.proposal => candidate = (token, count + 1),
                (token, count) => candidate = (token, count - 1),
            }
        }
        let count = held().filter(|held| held.proposal == candidate.0).count();
        (count >= config.quorum.m()).then_some(candidate.0)
    }

    /// Asks the voters to write down a token higher than all they proposed.
    fn seal(&mut self, config: &Config, cx: Cx<'_, '_>) {
        let token = match self.phase {
            // Enough voters can still accept the one already asked for.
            Phase::Sealing(token)
                if self.proposals().filter(|p| *p <= token).count() >= config.quorum.m() =>
            {
                token
            }
            _ => {
                cx.note(Note::SealedSlowly);
                self.proposals().max().unwrap_or_default().next()
            }
        };
        let fresh = !matches!(self.phase, Phase::Sealing(asked) if asked == token);
        self.phase = Phase::Sealing(token);
        for index in 0..self.seats.len() {
            let seat = &self.seats[index];
            let lower = seat.held().is_some_and(|held| held.proposal < token);
            if lower && (fresh || self.may_ask(cx, index)) {
                self.ask(config, cx, index);
            }
        }
    }

    fn seals_blindly(&self, config: &Config) -> bool {
        config.breaks(Mutant::SealsAfterDeadline) && matches!(self.phase, Phase::Sealing(_))
    }

    fn proposals(&self) -> impl Iterator<Item = Token> {
        self.seats.iter().filter_map(Seat::held).map(|held| held.proposal)
    }

    /// Outcome 3: going by what is known and fresh, nobody can have m votes. What was heard longer
    /// than a round trip ago, or of somebody who is on the way out, says nothing about now; replicas
    /// that cannot vote count as known.
    fn nobody_can_win(&self, config: &Config, now: LocalTime) -> bool {
        let leaving = |owner: &Ticket| *owner < self.ticket && now < self.turn_until;
        let mut counts: Vec<(Ticket, usize)> = Vec::new();
        let mut known = self.votes;
        for seat in &self.seats {
            match &seat.news {
                News::Nobody => known += 1,
                News::Theirs(owner, heard)
                    if now.since(*heard) <= self.round_trip && !leaving(owner) =>
                {
                    known += 1;
                    match counts.iter_mut().find(|(ticket, _)| ticket == owner) {
                        Some((_, count)) => *count += 1,
                        None => counts.push((*owner, 1)),
                    }
                }
                _ => {}
            }
        }
        let best = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(self.votes);
        config.quorum.nobody_can_win(known, best)
    }

    fn yield_all(&mut self, config: &Config, cx: Cx<'_, '_>) {
        self.yield_pause = (self.yield_pause * 2).max(self.round_trip).min(config.retry_max);
        self.yield_from = cx.now() + self.yield_pause;
        for index in 0..self.seats.len() {
            if let Some(&Held { grant, .. }) = self.seats[index].held() {
                self.give_back(config, cx, index, grant);
            }
        }
    }

    fn give_back(&mut self, config: &Config, cx: Cx<'_, '_>, index: usize, grant: GrantId) {
        self.set_news(index, News::Unknown);
        self.seats[index].yielded = Some(grant);
        self.seats[index].yielding = true;
        self.ask(config, cx, index);
    }

    /// Sends the message that moves this seat forward: a YIELD for a vote that the host has yet to take
    /// back, a SEAL for one that has yet to write the token down, else a REQUEST. All are harmless to
    /// repeat.
    fn ask(&mut self, config: &Config, cx: Cx<'_, '_>, index: usize) {
        let call = self.call_to(index, cx.now());
        let host = cx.host_of(&call.replica);
        let seat = &mut self.seats[index];
        if seat.host != host {
            *seat = Seat::new();
            seat.host = host;
            self.votes = self.seats.iter().filter(|seat| seat.held().is_some()).count();
            self.foreign = self.seats.iter().filter(|seat| is_foreign(&seat.news)).count();
        }
        let Some(host) = host else {
            self.set_news(index, News::Nobody);
            return self.ask_in(cx, index, self.retry_after(config, 4));
        };
        let seat = &self.seats[index];
        let message = match (self.phase, seat.held(), seat.yielded) {
            (Phase::Sealing(token), Some(held), _) if held.proposal < token => {
                Message::Seal(call, held.grant, token)
            }
            (_, _, Some(grant)) if seat.yielding => Message::Yield(call, grant),
            _ => Message::Request(call),
        };
        cx.send(host, message);
        self.await_answer(config, cx, index);
    }

    /// Whether an answer may be answered at once. If something was said to this replica less than a
    /// round trip ago, the timer will do: otherwise copies of messages breed copies without end.
    fn may_ask(&mut self, cx: Cx<'_, '_>, index: usize) -> bool {
        let again_at = self.seats[index].asked_at + self.round_trip;
        if again_at > cx.now() {
            self.ask_in(cx, index, again_at.since(cx.now()));
        }
        again_at <= cx.now()
    }

    fn await_answer(&mut self, config: &Config, cx: Cx<'_, '_>, index: usize) {
        let seat = &mut self.seats[index];
        let tries = seat.tries;
        seat.asked_at = cx.now();
        seat.tries = tries.saturating_add(1);
        self.ask_in(cx, index, self.retry_after(config, tries));
    }

    fn call_to(&self, index: usize, sent: LocalTime) -> Call {
        let replica = ReplicaId { name: self.name.clone(), index: index as u16 };
        Call { replica, ticket: self.ticket, ttl: self.ttl, sent }
    }

    fn ask_in(&mut self, cx: Cx<'_, '_>, index: usize, span: Span) {
        let at = cx.now() + span;
        self.seats[index].ask_at = at;
        self.wake_by(cx, at);
    }

    /// How long to wait for an answer that was asked for so many times already.
    fn retry_after(&self, config: &Config, tries: u8) -> Span {
        let round_trip =
            if self.round_trip > Span::ZERO { self.round_trip } else { config.round_trip_worst };
        (round_trip * 2 * (1 << tries.min(10))).min(config.retry_max)
    }

    fn set_news(&mut self, index: usize, news: News) {
        let seat = &mut self.seats[index];
        self.votes -= usize::from(seat.held().is_some());
        self.foreign -= usize::from(is_foreign(&seat.news));
        seat.news = news;
        self.votes += usize::from(seat.held().is_some());
        self.foreign += usize::from(is_foreign(&seat.news));
    }

    /// Votes that are over are forgotten, and asked for again at the next chance. Outside, all others
    /// are refreshed with them: votes that run out one after the other would never be m at once.
    fn drop_expired(&mut self, now: LocalTime) {
        let over = |seat: &Seat| seat.held().is_some_and(|held| held.expiry <= now);
        if !self.seats.iter().any(over) {
            return;
        }
        let outside = self.guard().is_none();
        for index in 0..self.seats.len() {
            let over = over(&self.seats[index]);
            if over {
                self.set_news(index, News::Unknown);
            }
            let seat = &mut self.seats[index];
            if over || (outside && seat.held().is_some()) {
                (seat.asked_at, seat.ask_at) = (now, now);
            }
        }
    }

    fn wake_by(&mut self, cx: Cx<'_, '_>, at: LocalTime) {
        if self.alarm.must_set(at) {
            cx.set_timer(Timer::Request(self.call()), at);
        }
    }

    fn wake_for_next(&mut self, cx: Cx<'_, '_>) {
        let inside = self.guard().is_some();
        let seal_at = if self.seal_at > cx.now() { self.seal_at } else { LocalTime::NEVER };
        let yield_from =
            if self.yield_from > cx.now() { self.yield_from } else { LocalTime::NEVER };
        let outside = self.gives_up_at.min(self.probe_at).min(seal_at).min(yield_from);
        let mut next = if inside { LocalTime::NEVER } else { outside };
        for seat in &self.seats {
            next = next.min(seat.ask_at);
            if let Some(held) = seat.held() {
                next = next.min(held.expiry);
            }
        }
        self.wake_by(cx, next);
    }

    // What the client needs of a request that is inside.

    pub(super) fn guard(&self) -> Option<Guard> {
        match self.phase {
            Phase::Inside(guard) => Some(guard),
            _ => None,
        }
    }

    /// The m-th latest expiry: until then m votes are this request's.
    fn deadline(&self, config: &Config) -> LocalTime {
        let mut expiries: Vec<LocalTime> =
            self.seats.iter().filter_map(Seat::held).map(|held| held.expiry).collect();
        let m = config.quorum.m();
        if expiries.len() < m {
            return LocalTime::MIN;
        }
        let (_, deadline, _) = expiries.select_nth_unstable_by(m - 1, |a, b| b.cmp(a));
        *deadline
    }

    /// The guard's time is up, or nearly: tells the user to stop, once. True at the deadline itself,
    /// when the votes are to be given back; until then the user may still be on its way out.
    pub(super) fn lose(&mut self, cx: Cx<'_, '_>) -> bool {
        let call = self.call();
        let Phase::Inside(guard) = &mut self.phase else { return false };
        if guard.lost_at <= cx.now() && !guard.lost {
            guard.lost = true;
            guard.renew_at = LocalTime::NEVER;
            guard.lost_at = guard.deadline;
            cx.reply(call, LockReply::Lost);
        }
        guard.lost && guard.deadline <= cx.now()
    }

    /// Tells the user of a later deadline, if renewals have brought one about.
    pub(super) fn extend(&mut self, config: &Config, cx: Cx<'_, '_>) {
        let deadline = self.deadline(config);
        let now = cx.now();
        let jitter = Span::from_micros(cx.random() % (self.ttl.as_micros() / 16).max(1));
        let call = self.call();
        if let Phase::Inside(guard) = &mut self.phase
            && deadline > guard.deadline
            && !guard.lost
        {
            guard.deadline = deadline;
            guard.lost_at = deadline - self.ttl / 50;
            guard.renew_at = now + self.ttl / 3 - jitter;
            cx.reply(call, LockReply::Extended { deadline });
        }
    }

    /// The votes to renew, by host. The next renewal is tried sooner, should this one not get through.
    pub(super) fn claims(&mut self, now: LocalTime) -> impl Iterator<Item = (PeerId, Claim)> {
        let (ticket, name) = (self.ticket, self.name.clone());
        let mut token = Token::default();
        if let Phase::Inside(guard) = &mut self.phase {
            let pause = (guard.deadline.since(now) / 3).max(self.round_trip / 2);
            guard.renew_at = now + pause.max(Span::from_millis(1));
            token = guard.token;
        }
        self.seats.iter().enumerate().filter_map(move |(index, seat)| {
            let used = Used { token, knew: seat.life_at_seal };
            let replica = ReplicaId { name: name.clone(), index: index as u16 };
            let grant = seat.held()?.grant;
            Some((seat.host?, Claim { replica, ticket, grant, used }))
        })
    }

    /// RELEASE to all replicas; with the token, if one was shown.
    pub(super) fn release(&self, cx: Cx<'_, '_>) {
        for (index, seat) in self.seats.iter().enumerate() {
            let Some(host) = seat.host else { continue };
            let knew = seat.life_at_seal;
            let spent = self
                .guard()
                .map_or(Spent::Nothing, |guard| Spent::Token(Used { token: guard.token, knew }));
            let replica = ReplicaId { name: self.name.clone(), index: index as u16 };
            cx.send(host, Message::Release { replica, ticket: self.ticket, spent });
        }
        cx.cancel_timer(Timer::Request(self.call()));
    }

    fn call(&self) -> CallId {
        self.ticket.request.call
    }
}

fn is_foreign(news: &News) -> bool {
    matches!(news, News::Theirs(..) | News::Nobody)
}

/// When the client stops believing in a vote.
fn expiry(config: &Config, now: LocalTime, echo: Echo, lease: Lease, ttl: Span) -> LocalTime {
    if config.breaks(Mutant::CountsFromReceipt) {
        return now + lease.ttl - lease.ttl.millionths(config.margin.0);
    }
    let ttl = if config.breaks(Mutant::IgnoresClaimWindow) { ttl } else { lease.ttl };
    config.margin.expiry(echo, Lease { ttl, ..lease })
}
