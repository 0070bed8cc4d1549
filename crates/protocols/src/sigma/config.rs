//! The numbers Sigma goes by.

use sigmalock_core::{Margin, Span, Token};

use super::mutant::Mutant;
use crate::parts::{Quorum, Rules, Sound};

/// What all peers of a swarm must agree on, and a few things a peer may choose.
#[derive(Debug, Clone, Hash)]
pub struct Config<R = Sound> {
    /// Replicas and votes.
    pub quorum: Quorum,
    /// The longest lease anybody may ask for; so long does a host abstain that lost its memory.
    pub lease_max: Span,
    /// How long a vote from the queue lasts until its owner first renews or seals it.
    pub claim_window: Span,
    /// What covers the difference of clock rates.
    pub margin: Margin,
    /// The worst round trip to expect; a request measures its own as answers come in.
    pub round_trip_worst: Span,
    /// The longest a message can be under way. The driver drops older ones.
    pub flight_max: Span,
    /// The longest a waiting client goes without asking again, if its turn is near.
    pub retry_max: Span,
    /// What a host takes for the length of a critical section before it has seen any.
    pub service_default: Span,
    /// How many tokens in a row the winner of one grant may show. The same in the whole swarm.
    pub tokens_per_grant: u64,
    /// Whether this peer uses a swarm without hosting anything.
    pub client_only: bool,
    /// Whether votes are persisted before they are given.
    pub durable: bool,
    /// What everything is bounded by.
    pub limits: Limits,
    /// Which rules it keeps.
    pub rules: R,
}

/// The bounds, in one place.
#[derive(Debug, Clone, Hash)]
pub struct Limits {
    /// Requests that a peer's users have under way; one more is refused.
    pub requests_max: usize,
    /// Replicas a peer hosts; what is asked of one more is dropped, as if lost.
    pub replicas_max: usize,
    /// Waiters in a replica's queue; one more is told that it is full.
    pub queue_len_max: usize,
    /// Tombstones per replica; one more drops the oldest.
    pub tombstones_max: usize,
    /// Claims in one RENEW; more go into further messages.
    pub claims_max: usize,
    /// How long a replica is kept after its last use.
    pub idle_after: Span,
}

impl Config {
    /// The defaults, for a quorum.
    #[must_use]
    pub fn new(quorum: Quorum) -> Self {
        Self::with_rules(quorum, Sound)
    }
}

impl<R: Rules> Config<R> {
    /// The same, by these rules.
    #[must_use]
    pub fn with_rules(quorum: Quorum, rules: R) -> Self {
        Self {
            quorum,
            lease_max: Span::from_secs(15),
            claim_window: Span::from_secs(2),
            margin: Margin::ONE_PERCENT,
            round_trip_worst: Span::from_millis(500),
            flight_max: Span::from_secs(30),
            retry_max: Span::from_secs(10),
            service_default: Span::from_secs(1),
            tokens_per_grant: 1,
            client_only: false,
            durable: false,
            limits: Limits {
                requests_max: 1 << 20,
                replicas_max: 1 << 20,
                queue_len_max: 1 << 16,
                tombstones_max: 1 << 16,
                claims_max: 1_024,
                idle_after: Span::from_secs(60),
            },
            rules,
        }
    }

    /// The shortest lease that renewals can keep alive over this network: 2.5 worst round trips.
    #[must_use]
    pub fn ttl_min(&self) -> Span {
        self.round_trip_worst * 5 / 2
    }

    /// The last token of the first block that lies above this one.
    pub(super) fn block_above(&self, token: Token) -> Token {
        let tokens = if self.breaks(Mutant::OverlapsBlocks) { 1 } else { self.tokens_per_grant };
        token.plus(tokens.max(1))
    }

    /// The first token of the block that ends with this one.
    pub(super) fn block_start(&self, top: Token) -> Token {
        Token(top.0.saturating_sub(self.tokens_per_grant.max(1) - 1))
    }

    /// When the turn comes of a waiter with so many ahead: the paper's T_w = T_CS · (P + ½).
    pub(super) fn turn_in(&self, service: Span, ahead: u64) -> Span {
        service * (2 * ahead + 1) / 2
    }

    /// How long to wait before asking again, with so many ahead: until the turn comes, but not all of
    /// that. Who asks only when its turn should have come finds out too late that a replica
    /// has forgotten it; who asks at a fixed pace, among thousands, is a nuisance. So at most a quarter
    /// of the time that those ahead will take, each time, and `retry_max` if that is less.
    pub(super) fn ask_again_in(&self, service: Span, ahead: u64) -> Span {
        self.turn_in(service, ahead).min(self.retry_max.max(service * ahead / 4))
    }

    /// What a client gives up of the lease of a vote, and of one that is renewed.
    pub(super) fn margin(&self, renewed: bool) -> Margin {
        let bold = self.breaks(Mutant::IgnoresClockRates)
            || renewed && self.breaks(Mutant::RenewsWithoutMargin);
        if bold { Margin(0) } else { self.margin }
    }

    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.rules.breaks(mutant)
    }
}
