//! Leases that are safe without synchronised clocks.
//!
//! A host lends its vote for `ttl` on *its* clock, from the moment stamped in the grant. The client
//! must stop believing in the vote before the host does, but cannot read the host's clock. So every
//! message to a host carries the client's time `sent`, and every answer echoes it together with the
//! host's time `heard` at which that message arrived:
//!
//! ```text
//! client   ──sent────────────────────────────────────► expiry (here)
//!              ╲ REQUEST                ╱ RESPONSE {echo: (sent, heard), lease: (given, ttl)}
//! host     ─────heard ─ ─ ─ ─ ─ given ──────────────────────► given + ttl (there)
//! ```
//!
//! The host's clock read `heard` no earlier than the client's read `sent`. Hence the vote ends, on
//! the host's clock, `(given − heard) + ttl` after an instant that is no earlier than `sent`; the
//! client counts that span from `sent`, less a [`Margin`] for the difference of the clocks' rates.

use crate::time::{LocalTime, Span, Stamp};

/// A vote lent for a time, in the words of the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lease {
    /// When the host gave it, on the host's clock.
    pub given: Stamp,
    /// For how long.
    pub ttl: Span,
}

/// "I heard, at `heard` on my clock, what you sent at `sent` on yours."
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Echo {
    /// The client's clock when it sent the message.
    pub sent: LocalTime,
    /// The host's clock when it received it.
    pub heard: Stamp,
}

impl Echo {
    /// The echo of the message that was sent later. A copy of an old message that arrives late makes
    /// a true echo too, but one that says little.
    #[must_use]
    pub fn newer(self, other: Self) -> Self {
        if other.sent > self.sent { other } else { self }
    }
}

/// What a client gives up of every span to cover clock rates, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Margin(pub u32);

impl Margin {
    /// One per cent: covers rates within ±0.5 % each, with nothing to spare.
    pub const ONE_PERCENT: Self = Self(10_000);

    /// The client's expiry of a vote. Echo and lease must be of one incarnation of the host.
    #[must_use]
    pub fn expiry(self, echo: Echo, lease: Lease) -> LocalTime {
        let end = lease.given.as_micros().saturating_add(lease.ttl.as_micros());
        let span = Span::from_micros(end.saturating_sub(echo.heard.as_micros()));
        echo.sent + (span - span.millionths(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TTL: Span = Span::from_secs(10);

    fn expiry(sent: u64, heard: u64, given: u64) -> u64 {
        let echo = Echo { sent: LocalTime::from_micros(sent), heard: Stamp::from_micros(heard) };
        let lease = Lease { given: Stamp::from_micros(given), ttl: TTL };
        Margin::ONE_PERCENT.expiry(echo, lease).as_micros()
    }

    #[test]
    fn a_vote_given_on_the_spot_counts_from_the_request_not_from_its_receipt() {
        assert_eq!(expiry(5_000_000, 777_000_000, 777_000_000), 5_000_000 + 9_900_000);
    }

    #[test]
    fn time_spent_in_the_queue_is_added_on_the_hosts_clock() {
        assert_eq!(expiry(0, 1_000_000, 4_000_000), 13_000_000 - 130_000);
    }

    #[test]
    fn a_vote_that_was_over_before_the_message_arrived_is_over_at_once() {
        assert_eq!(expiry(3, 20_000_000, 5_000_000), 3);
    }

    proptest! {
        /// Both clocks run at any rate within ±0.5 %, from any offset; the message takes any time.
        #[test]
        fn the_client_stops_believing_before_the_host_does(
            client_ppm in -5_000i64..=5_000, host_ppm in -5_000i64..=5_000,
            client_zero in 0u64..1 << 40, host_zero in 0u64..1 << 40,
            sent in 0u64..1 << 36, flight in 0u64..10_000_000, queued in 0u64..100_000_000,
        ) {
            let read = |zero: u64, ppm: i64, t: u64| {
                zero + t.saturating_add_signed(t as i64 * ppm / 1_000_000)
            };
            let client = |t| read(client_zero, client_ppm, t);
            let host = |t| read(host_zero, host_ppm, t);
            let heard = sent + flight;
            let given = heard + queued;
            let expiry = expiry(client(sent), host(heard), host(given));
            // The first true instant at which the host's clock shows the end of the lease.
            let host_end = host(given) + TTL.as_micros();
            let mut end = given + TTL.as_micros() * 990 / 1_000;
            while host(end) < host_end { end += 100; }
            // Three microseconds for the rounding of the simulated clocks.
            prop_assert!(expiry <= client(end) + 3, "{expiry} > {}", client(end));
        }
    }
}
