//! Protocols side by side: the same clients, the same network, the same columns.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sigmalock_protocols::catalogue::{ProtocolName, UnknownName, Variant};

use super::meter::Meter;
use super::sweep::{Load, PointConfig, PointError};
use crate::history::TrueTime;

/// A protocol as it takes part: `sigma`, or `sigma:literal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    /// Which protocol.
    pub protocol: ProtocolName,
    /// Which variant.
    pub variant: Variant,
}

impl FromStr for Contender {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let (protocol, variant) = match text.split_once(':') {
            Some((protocol, variant)) => (protocol, variant.parse()?),
            None => (text, Variant::default()),
        };
        Ok(Self { protocol: protocol.parse()?, variant })
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.protocol, self.variant)
    }
}

/// One protocol at one level of contention: a row of a table. Where nobody entered, there is nothing to
/// divide by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// How many clients ask again as soon as they are out.
    pub clients: usize,
    /// Which protocol.
    pub protocol: &'static str,
    /// Which variant.
    pub variant: &'static str,
    /// Entries per second.
    pub throughput_per_s: f64,
    /// Messages per entry.
    pub messages_per_entry: Option<f64>,
    /// Their bytes, per entry.
    pub bytes_per_entry: Option<f64>,
    /// Half of those who entered had waited no longer.
    pub wait_p50_ms: Option<f64>,
    /// Ninety-nine in a hundred of those who entered had waited no longer.
    pub wait_p99_ms: Option<f64>,
    /// From somebody's leaving to the entry of one who waited, on average, in mean one-way delays; none if
    /// nobody ever waited.
    pub hand_off_delays: Option<f64>,
    /// Jain's index over the entries of the clients: 1 if all had the same, 1/clients if one had them all.
    pub fairness: Option<f64>,
    /// How often an oracle objected.
    pub violations: usize,
    /// Where the random numbers came from.
    pub seed: u64,
}

/// Measures a point with a closed load.
pub fn compare(point: &PointConfig) -> Result<Comparison, PointError> {
    let Load::Clients(clients) = point.load else { return Err(PointError::Clients(0)) };
    let mut meter = Meter::new(TrueTime(0) + point.warmup);
    let (row, outcome) = point.measure_watched(&mut meter)?;
    let entries = outcome.entries_measured;
    let hand_offs = &meter.hand_offs;
    let one_way = point.network.latency.mean().as_secs_f64();
    let delays = || hand_offs.mean().as_secs_f64() / one_way.max(1e-6);
    Ok(Comparison {
        clients,
        protocol: row.protocol,
        variant: row.variant,
        throughput_per_s: row.throughput_per_s,
        messages_per_entry: row.messages_per_entry,
        bytes_per_entry: (entries > 0)
            .then(|| outcome.traffic_measured.bytes() as f64 / entries as f64),
        wait_p50_ms: row.wait_p50_ms,
        wait_p99_ms: row.wait_p99_ms,
        hand_off_delays: (hand_offs.count() > 0).then(delays),
        fairness: meter.fairness(clients),
        violations: row.violations,
        seed: row.seed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Subject;
    use sigmalock_core::Span;
    use sigmalock_protocols::parts::Quorum;

    fn measured(contender: &str, clients: usize) -> Comparison {
        let Contender { protocol, variant } = contender.parse().unwrap();
        let subject = Subject::new(protocol, variant, Quorum::new(5, 3).unwrap());
        let latency = "constant:100ms".parse().unwrap();
        let mut point = PointConfig::new(subject, latency, Load::Clients(clients), 1);
        (point.warmup, point.duration) = (Span::from_secs(10), Span::from_secs(120));
        compare(&point).unwrap()
    }

    #[test]
    fn a_contender_reads_what_it_writes_and_is_shipped_unless_it_says_so() {
        for text in ["sigma:literal", "sigma:shipped", "strawman:literal"] {
            assert_eq!(text.parse::<Contender>().unwrap().to_string(), text);
        }
        assert_eq!("sigma".parse::<Contender>().unwrap().variant, Variant::Shipped);
        assert!("paxos".parse::<Contender>().is_err() && "sigma:new".parse::<Contender>().is_err());
    }

    /// A RELEASE and a GRANT, each a one-way delay: no hand-off is faster, and Sigma's is that. Queues share
    /// fairly; the strawman lets the lucky come again.
    #[test]
    fn under_constant_delays_sigma_hands_over_in_two_of_them_and_shares_better_than_the_strawman() {
        let (sigma, strawman) = (measured("sigma", 8), measured("strawman", 8));
        let delays = sigma.hand_off_delays.unwrap();
        assert!((delays - 2.0).abs() < 0.02, "{sigma:?}");
        assert!(strawman.hand_off_delays.unwrap() > 2.0 * delays, "{strawman:?}");
        assert!(sigma.fairness > Some(0.99) && sigma.fairness > strawman.fairness, "{strawman:?}");
        assert_eq!(sigma.violations, 0);
    }

    #[test]
    fn one_client_alone_hands_over_to_nobody() {
        let alone = measured("sigma", 1);
        assert_eq!((alone.hand_off_delays, alone.fairness), (None, Some(1.0)));
        // 3 of 5 within a round trip, and REQUEST, RESPONSE and RELEASE to each of 5.
        assert!((alone.throughput_per_s - 5.0).abs() < 0.1, "{alone:?}");
        assert!((alone.messages_per_entry.unwrap() - 15.0).abs() < 0.5, "{alone:?}");
        assert!(alone.bytes_per_entry > Some(15.0 * 20.0), "{alone:?}");
    }
}
