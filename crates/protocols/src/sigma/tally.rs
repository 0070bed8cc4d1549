//! What a client knows about all n replicas, and what follows from it. Nothing here speaks.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sigmalock_core::{LocalTime, Mode, PeerId, Span, Token};

use super::message::Ticket;
use super::seat::{Held, News, Seat};
use super::{Config, Mutant};
use crate::parts::{Hosting, Quorum, Rules};

/// The n seats, counted.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Tally {
    seats: Vec<Seat>,
    votes: usize,
    foreign: usize,
}

impl Tally {
    /// For these replicas, which come in ascending order.
    pub(super) fn new(replicas: impl IntoIterator<Item = u16>) -> Self {
        let seats = replicas.into_iter().map(Seat::new).collect();
        Self { seats, votes: 0, foreign: 0 }
    }

    /// For other replicas from now on. What is known of votes is void; who stays is otherwise remembered.
    pub(super) fn reseat(&mut self, replicas: &[u16]) {
        let before = core::mem::take(self);
        let mut before = before.seats.into_iter().peekable();
        for &index in replicas {
            while before.next_if(|seat| seat.index < index).is_some() {}
            let known = before.next_if(|seat| seat.index == index);
            let mut seat = known.unwrap_or_else(|| Seat::new(index));
            (seat.news, seat.other, seat.tries) = (News::Unknown, None, 0);
            self.seats.push(seat);
        }
    }

    /// Where the seat of a replica is, if it has one.
    pub(super) fn find(&self, index: u16) -> Option<usize> {
        self.seats.binary_search_by_key(&index, |seat| seat.index).ok()
    }

    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }
    pub(super) fn seat(&self, index: usize) -> &Seat {
        &self.seats[index]
    }
    /// For everything but whose the vote is, which is counted: see [`Tally::set_news`].
    pub(super) fn seat_mut(&mut self, index: usize) -> &mut Seat {
        &mut self.seats[index]
    }
    pub(super) fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.seats.iter()
    }
    pub(super) fn seats_mut(&mut self) -> impl Iterator<Item = &mut Seat> {
        self.seats.iter_mut()
    }

    /// How many votes are this request's.
    pub(super) fn votes(&self) -> usize {
        self.votes
    }
    /// How many are known not to be.
    pub(super) fn foreign(&self) -> usize {
        self.foreign
    }
    /// How many may be either.
    pub(super) fn unknown(&self) -> usize {
        self.seats.len() - self.votes - self.foreign
    }

    pub(super) fn set_news(&mut self, index: usize, news: News) {
        let seat = &mut self.seats[index];
        self.votes -= usize::from(seat.held().is_some());
        self.foreign -= usize::from(seat.is_foreign());
        seat.news = news;
        self.votes += usize::from(seat.held().is_some());
        self.foreign += usize::from(seat.is_foreign());
    }

    /// These peers cannot be reached.
    pub(super) fn mark_down(&mut self, down: &BTreeSet<PeerId>) {
        for index in 0..self.seats.len() {
            let seat = &self.seats[index];
            if seat.held().is_none() && seat.host.is_some_and(|host| down.contains(&host)) {
                self.set_news(index, News::Nobody);
            }
        }
    }

    /// The replica has another host, of which nothing is known yet. A vote that is held stays so until it
    /// runs out, and what was yielded stays yielded: both move with the replica, and it may move back.
    pub(super) fn move_seat(&mut self, index: usize, host: Option<PeerId>) {
        let held = self.seats[index].held().is_some();
        if !held {
            self.set_news(index, News::Unknown);
        }
        let before = &self.seats[index];
        self.seats[index] = Seat {
            host,
            news: before.news,
            vote_is_older: held,
            yielded: before.yielded,
            yielded_at: before.yielded_at,
            yielding: before.yielding,
            recalled: before.recalled,
            moves: before.moves,
            moved_at: before.moved_at,
            asked_at: before.asked_at,
            ask_at: before.ask_at,
            ..Seat::new(before.index)
        };
    }

    fn held(&self) -> impl Iterator<Item = &Held> {
        self.seats.iter().filter_map(Seat::held)
    }
    pub(super) fn proposals(&self) -> impl Iterator<Item = Token> {
        self.held().map(|held| held.proposal)
    }

    /// The token that m of the held votes propose, if there is one. It is then written down at m
    /// hosts, so whoever wins next meets one that goes beyond it.
    pub(super) fn agreed_token(&self, config: &Config<impl Rules>) -> Option<Token> {
        if config.breaks(Mutant::ShowsUnsealedToken) {
            return self.proposals().max();
        }
        if config.breaks(Mutant::ShowsGrantCounter) {
            return self.held().map(|held| Token(held.grant.number)).max();
        }
        // m is more than half of n: what m propose survives pairing off different proposals.
        let mut candidate = (Token::default(), 0usize);
        for proposal in self.proposals() {
            match candidate {
                (_, 0) => candidate = (proposal, 1),
                (token, count) if token == proposal => candidate = (token, count + 1),
                (token, count) => candidate = (token, count - 1),
            }
        }
        let count = self.proposals().filter(|proposal| *proposal == candidate.0).count();
        (count >= config.quorum.m()).then_some(candidate.0)
    }

    /// How many are ahead and when the turn comes: the median of what is known, if enough is. Where the
    /// vote is held, the turn has come.
    pub(super) fn place(&self, quorum: Quorum) -> Option<(u32, Span)> {
        let place = |seat: &Seat| seat.held().map(|_| (0, Span::ZERO)).or(seat.place);
        let mut places: Vec<(u32, Span)> = self.seats.iter().filter_map(place).collect();
        if places.len() < quorum.m() {
            return None;
        }
        let middle = places.len() / 2;
        Some(*places.select_nth_unstable(middle).1)
    }

    /// Until when this request may be inside: for as long as it has m votes, and not longer than they count.
    pub(super) fn deadline(&self, quorum: Quorum, hosting: &dyn Hosting) -> LocalTime {
        self.votes_end(quorum).min(hosting.counts_until())
    }

    /// The m-th latest expiry: until then m votes are this request's.
    pub(super) fn votes_end(&self, quorum: Quorum) -> LocalTime {
        let mut expiries: Vec<LocalTime> = self.held().map(|held| held.expiry).collect();
        if expiries.len() < quorum.m() {
            return LocalTime::MIN;
        }
        let (_, deadline, _) = expiries.select_nth_unstable_by(quorum.m() - 1, |a, b| b.cmp(a));
        *deadline
    }

    /// The number of permits that others mean, if it is another one and keeps this request out: so many say so
    /// of somebody that was first that it cannot win, or so many of somebody that this one may be inside. One
    /// host may remember somebody that is gone.
    pub(super) fn other_number(&self, quorum: Quorum) -> Option<u16> {
        let others = || self.seats.iter().filter_map(|seat| seat.other);
        let first = others().next()?;
        let before = others().filter(|other| other.before_you).count();
        (before > quorum.n() - quorum.m() || others().count() >= quorum.m()).then_some(first.of)
    }

    /// Whether nobody can have m votes, `mine` included, going by the news for which `counts` holds.
    /// Replicas that cannot vote count as known. To a writer readers are as one: where one has the vote, the
    /// others get it too; and so are permits that go together, to those who go with neither. But a reader that
    /// has to queue behind readers has an older writer before it, as have they perhaps, so that they cannot
    /// join each other.
    pub(super) fn nobody_can_win(
        &self, quorum: Quorum, mine: Ticket, counts: impl Fn(&Ticket, LocalTime) -> bool,
    ) -> bool {
        let mut rivals: Vec<(Ticket, usize)> = alloc::vec![(mine, self.votes)];
        let foreign = |one: &Ticket| !one.mode.shares_with(mine.mode);
        let as_one = |one: &Ticket, other: &Ticket| {
            one == other || (foreign(one) && foreign(other) && one.mode.shares_with(other.mode))
        };
        let mut known = self.votes;
        for seat in &self.seats {
            match &seat.news {
                News::Nobody | News::Silent => known += 1,
                News::Theirs(owner, heard) if counts(owner, *heard) => {
                    known += 1;
                    match rivals.iter_mut().find(|(rival, _)| rival == owner) {
                        Some((_, votes)) => *votes += 1,
                        None => rivals.push((*owner, 1)),
                    }
                }
                _ => {}
            }
        }
        let with = |rival: &Ticket| {
            let others = rivals.iter().filter(|(other, _)| as_one(rival, other));
            others.map(|(_, votes)| votes).sum()
        };
        let best = rivals.iter().map(|(rival, votes)| match rival.mode {
            Mode::Exclusive => *votes,
            Mode::Shared | Mode::Permit { .. } | Mode::Slot { .. } => with(rival),
        });
        let best = best.max().unwrap_or_default();
        quorum.nobody_can_win(known, best)
    }

    /// Forgets votes that are over; they are due to be asked for again. With `refresh` all others are
    /// too: votes that run out one after the other would never be m at once.
    pub(super) fn drop_expired(&mut self, now: LocalTime, refresh: bool) {
        let over = |seat: &Seat| seat.held().is_some_and(|held| held.expiry <= now);
        if !self.seats.iter().any(over) {
            return;
        }
        for index in 0..self.seats.len() {
            let over = over(&self.seats[index]);
            if over {
                self.set_news(index, News::Unknown);
            }
            let seat = &mut self.seats[index];
            if over || (refresh && seat.held().is_some()) {
                (seat.asked_at, seat.ask_at) = (now, now);
            }
        }
    }
}
