//! What a client knows about one replica.

use sigmalock_core::{Echo, Incarnation, LocalTime, PeerId, Span, Token};

use super::message::{GrantId, OtherNumber, Ticket};

/// What the client last heard of a replica, and when it will ask again.
#[derive(Debug, Clone, Hash)]
pub(super) struct Seat {
    /// Which replica it is.
    pub(super) index: u16,
    /// The host, as far as known.
    pub(super) host: Option<PeerId>,
    /// Whether a former host named it. It is believed until a question goes unanswered.
    pub(super) sent_on: bool,
    /// How often in a row this request was sent on, and when last.
    pub(super) moves: u8,
    pub(super) moved_at: LocalTime,
    /// Whether the vote that is held was given by an earlier host. That the present one knows nothing of
    /// it does not make it void: until it has run out nobody else gets one.
    pub(super) vote_is_older: bool,
    pub(super) news: News,
    /// How many are ahead in its queue and when the turn comes, if this request was queued there.
    pub(super) place: Option<(u32, Span)>,
    /// The last response taken note of.
    pub(super) heard: Option<Heard>,
    /// Somebody there means another number of permits.
    pub(super) other: Option<OtherNumber>,
    /// The life of the host that last answered and was not abstaining.
    pub(super) voting_life: Option<Incarnation>,
    /// That life as of the moment this request's token was sealed.
    pub(super) life_at_seal: Option<Incarnation>,
    /// The last grant given back. It must never be counted again: the YIELD may still be under way.
    pub(super) yielded: Option<GrantId>,
    /// When that was: what another life of the host answered to anything sent before says nothing.
    pub(super) yielded_at: LocalTime,
    /// Whether the host has yet to say that it took it back.
    pub(super) yielding: bool,
    /// The last grant that was recalled before it was heard of.
    pub(super) recalled: Option<GrantId>,
    pub(super) asked_at: LocalTime,
    pub(super) ask_at: LocalTime,
    /// How often it was asked since it last answered.
    pub(super) tries: u8,
}

/// Whose a replica's vote is, as far as this client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum News {
    /// Not known, or no longer.
    Unknown,
    /// This request's.
    Mine(Held),
    /// Somebody else's, as of then.
    Theirs(Ticket, LocalTime),
    /// Nobody's, and nobody can get it: its host is down or abstains.
    Nobody,
    /// Its host does not answer, or none is known: as good as down, but that is a guess.
    Silent,
}

/// A vote this client holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) grant: GrantId,
    pub(super) proposal: Token,
    /// When this client stops believing in it; before the host does.
    pub(super) expiry: LocalTime,
}

#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Heard {
    life: Incarnation,
    sequence: u64,
    sent: LocalTime,
}

impl Seat {
    pub(super) const fn new(index: u16) -> Self {
        Self {
            index,
            host: None,
            sent_on: false,
            moves: 0,
            moved_at: LocalTime::MIN,
            vote_is_older: false,
            news: News::Unknown,
            place: None,
            other: None,
            heard: None,
            voting_life: None,
            life_at_seal: None,
            yielded: None,
            yielded_at: LocalTime::MIN,
            yielding: false,
            recalled: None,
            asked_at: LocalTime::MIN,
            ask_at: LocalTime::NEVER,
            tries: 0,
        }
    }

    /// Takes note of a response, unless a newer one has been heard. Within one life of the host the
    /// sequence tells; between lives, which of this client's messages is being answered.
    pub(super) fn hear(&mut self, life: Incarnation, sequence: u64, echo: Echo) -> bool {
        let newer = match self.heard {
            None => echo.sent >= self.yielded_at,
            Some(heard) if heard.life == life => sequence > heard.sequence,
            Some(heard) => echo.sent > heard.sent && echo.sent >= self.yielded_at,
        };
        if newer {
            self.heard = Some(Heard { life, sequence, sent: echo.sent });
            (self.tries, self.moves) = (0, 0);
        }
        newer
    }

    pub(super) const fn held(&self) -> Option<&Held> {
        match &self.news {
            News::Mine(held) => Some(held),
            _ => None,
        }
    }

    /// The voting life of the host that was heard from before the token was sealed, or while it is in
    /// use. Every token that life may have forgotten is lower than this request's.
    pub(super) fn knew(&self) -> Option<Incarnation> {
        self.held().map(|held| held.grant.life).or(self.life_at_seal)
    }

    /// Whether the vote is known not to be this request's.
    pub(super) const fn is_foreign(&self) -> bool {
        matches!(self.news, News::Theirs(..) | News::Nobody | News::Silent)
    }

    /// Whether it is time to ask again, or nearly: asking several at once lets one wake-up do.
    pub(super) fn is_due(&self, now: LocalTime) -> bool {
        let period: Span = self.ask_at.since(self.asked_at);
        self.ask_at != LocalTime::NEVER && self.ask_at - period / 4 <= now
    }
}
