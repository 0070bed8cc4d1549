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
    pub throughput_per_s: Option<f64>,
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
    /// Why the run had to be stopped, if it had to be: then there are no numbers.
    pub stopped: Option<String>,
    /// Where the random numbers came from.
    pub seed: u64,
}

/// Measures a point with a closed load.
pub fn compare(point: &PointConfig) -> Result<Comparison, PointError> {
    let Load::Clients(clients) = point.load else { return Err(PointError::Clients(0)) };
    let mut meter = Meter::new(TrueTime(0) + point.warmup);
    let (row, outcome) = match point.measure_watched(&mut meter) {
        Ok(measured) => measured,
        Err(why @ PointError::Stopped(_)) => return Ok(stopped(point, clients, &why)),
        Err(why) => return Err(why),
    };
    let entries = outcome.entries_measured;
    let hand_offs = &meter.hand_offs;
    let one_way = point.network.latency.mean().as_secs_f64();
    let delays = || hand_offs.mean().as_secs_f64() / one_way.max(1e-6);
    Ok(Comparison {
        clients,
        protocol: row.protocol,
        variant: row.variant,
        throughput_per_s: Some(row.throughput_per_s),
        messages_per_entry: row.messages_per_entry,
        bytes_per_entry: (entries > 0)
            .then(|| outcome.traffic_measured.bytes() as f64 / entries as f64),
        wait_p50_ms: row.wait_p50_ms,
        wait_p99_ms: row.wait_p99_ms,
        hand_off_delays: (hand_offs.count() > 0).then(delays),
        fairness: meter.fairness(clients),
        violations: row.violations,
        stopped: None,
        seed: row.seed,
    })
}

fn stopped(point: &PointConfig, clients: usize, why: &PointError) -> Comparison {
    Comparison {
        clients,
        protocol: point.subject.protocol.as_str(),
        variant: point.subject.variant.as_str(),
        throughput_per_s: None,
        messages_per_entry: None,
        bytes_per_entry: None,
        wait_p50_ms: None,
        wait_p99_ms: None,
        hand_off_delays: None,
        fairness: None,
        violations: 1,
        stopped: Some(why.to_string()),
        seed: point.seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::Violation;
    use crate::subject::Subject;
    use sigmalock_core::Span;
    use sigmalock_protocols::parts::Quorum;

    fn measured(contender: &str, clients: usize, latency: &str) -> Comparison {
        let Contender { protocol, variant } = contender.parse().unwrap();
        let subject = Subject::new(protocol, variant, Quorum::new(9, 6).unwrap());
        let latency = latency.parse().unwrap();
        let mut point = PointConfig::new(subject, latency, Load::Clients(clients), 1);
        (point.warmup, point.duration) = (Span::from_secs(10), Span::from_secs(120));
        compare(&point).unwrap()
    }

    const CONSTANT: &str = "constant:100ms";

    #[test]
    fn a_contender_reads_what_it_writes_and_is_shipped_unless_it_says_so() {
        for text in ["sigma:literal", "sigma:shipped", "strawman:literal"] {
            assert_eq!(text.parse::<Contender>().unwrap().to_string(), text);
        }
        assert_eq!("sigma".parse::<Contender>().unwrap().variant, Variant::Shipped);
        assert!("paxos".parse::<Contender>().is_err() && "sigma:new".parse::<Contender>().is_err());
    }

    /// A RELEASE and a GRANT, each a one-way delay: no hand-off is faster, and Sigma's is that. Queues share
    /// fairly. Of the strawman's clients the first one in asks again at once, is closest to its own RELEASE,
    /// and keeps all others out for ever.
    #[test]
    fn under_constant_delays_sigma_hands_over_in_two_of_them_and_the_strawman_never_does() {
        let (sigma, strawman) = (measured("sigma", 8, CONSTANT), measured("strawman", 8, CONSTANT));
        assert!((sigma.hand_off_delays.unwrap() - 2.0).abs() < 0.02, "{sigma:?}");
        assert!(sigma.fairness > Some(0.99) && sigma.violations == 0, "{sigma:?}");
        assert_eq!((strawman.hand_off_delays, strawman.fairness), (None, Some(1.0 / 8.0)));
    }

    #[test]
    fn under_varying_delays_the_strawman_takes_much_longer_to_hand_over() {
        let hand_off = |who| measured(who, 8, "uniform:50ms..150ms").hand_off_delays.unwrap();
        assert!(hand_off("strawman") > 2.0 * hand_off("sigma"));
    }

    #[test]
    fn one_client_alone_hands_over_to_nobody() {
        let alone = measured("sigma", 1, CONSTANT);
        assert_eq!((alone.hand_off_delays, alone.fairness), (None, Some(1.0)));
        // In after a round trip; REQUEST, RESPONSE and RELEASE to each of 9.
        assert!((alone.throughput_per_s.unwrap() - 5.0).abs() < 0.1, "{alone:?}");
        assert!((alone.messages_per_entry.unwrap() - 27.0).abs() < 0.5, "{alone:?}");
        assert!(alone.bytes_per_entry > Some(27.0 * 20.0), "{alone:?}");
    }

    #[test]
    fn a_run_that_had_to_be_stopped_is_a_row_that_says_why() {
        let Contender { protocol, variant } = "sigma:literal".parse().unwrap();
        let subject = Subject::new(protocol, variant, Quorum::new(9, 6).unwrap());
        let point = PointConfig::new(subject, CONSTANT.parse().unwrap(), Load::Clients(1), 1);
        let sentence = "messages breed".to_owned();
        let why = Violation { oracle: "engine", at: TrueTime(4_000_000), sentence };
        let row = stopped(&point, 1, &PointError::Stopped(why));
        assert_eq!((row.protocol, row.variant, row.throughput_per_s), ("sigma", "literal", None));
        assert_eq!(row.stopped.as_deref(), Some("the run was stopped at 4.000 s: messages breed"));
    }
}
