//! One point of a sweep: a protocol under a load, measured.

use serde::Serialize;
use sigmalock_core::{Name, NameError, Span};
use sigmalock_protocols::catalogue::ProtocolName;

use crate::latency::Latency;
use crate::network::Network;
use crate::oracles::Violation;
use crate::run::{Outcome, RunConfig};
use crate::subject::{Subject, Tuning};
use crate::theory::saturated_rate_per_s;
use crate::watch::{Blind, Watch};
use crate::workload::{Arrivals, Length, Workload};

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Open: so many requests a second.
    RatePerS(f64),
    /// Closed: so many clients that ask again at once.
    Clients(usize),
}

/// Everything that makes a point.
#[derive(Debug, Clone, PartialEq)]
pub struct PointConfig {
    /// What is measured.
    pub subject: Subject,
    /// The network.
    pub network: Network,
    /// How much is asked for.
    pub load: Load,
    /// How long holders stay inside.
    pub inside: Length,
    /// Not measured.
    pub warmup: Span,
    /// Measured.
    pub duration: Span,
    /// Hosts are reset after exponential lifetimes of this mean.
    pub replica_life: Option<Span>,
    /// Where all random numbers come from.
    pub seed: u64,
}

/// Why a point cannot be measured.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PointError {
    /// No rate.
    #[error("a rate should be above 0 and at most {RATE_MAX} requests per second, not {0}")]
    Rate(f64),
    /// No clients, or too many.
    #[error("there should be between 1 and {CLIENTS_MAX} clients, not {0}")]
    Clients(usize),
    /// No probability.
    #[error("a probability of {what} should lie between 0 and 1, not be {value}")]
    Probability {
        /// Of what.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// There is nothing to measure.
    #[error("{0} guards no locks, so there is nothing to measure")]
    NoLock(ProtocolName),
    /// No time to measure.
    #[error("the duration should be longer than 0")]
    NoDuration,
    /// A host that lives no time never votes.
    #[error("the life of a replica should be longer than 0")]
    NoLife,
    /// The lock has no proper name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The engine gave up in the middle, so there is nothing to measure.
    #[error("the run was stopped at {:.3} s: {}", .0.at.0 as f64 / 1e6, .0.sentence)]
    Stopped(Violation),
}

/// A measured point: one row of a table, one dot of a plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Which protocol.
    pub protocol: &'static str,
    /// Which variant.
    pub variant: &'static str,
    /// The shortest one-way delay.
    pub latency_low_ms: f64,
    /// The longest one-way delay.
    pub latency_high_ms: f64,
    /// Requests per second; none if the load was closed.
    pub rate_per_s: Option<f64>,
    /// Entries per second.
    pub throughput_per_s: f64,
    /// What a saturated lock could do at best.
    pub theory_per_s: f64,
    /// Messages sent per entry, both while measuring; none without entries.
    pub messages_per_entry: Option<f64>,
    /// Half of those who entered had waited no longer; none without entries.
    pub wait_p50_ms: Option<f64>,
    /// Ninety-nine in a hundred of those who entered had waited no longer; none without entries.
    pub wait_p99_ms: Option<f64>,
    /// Where the random numbers came from.
    pub seed: u64,
    /// How often an oracle objected.
    pub violations: usize,
}

/// The most clients a load may bring to life at once; those who arrive beyond are turned away.
pub const CLIENTS_MAX: usize = 20_000;
/// The most requests per second an open load may make.
pub const RATE_MAX: f64 = 10_000.0;

impl PointConfig {
    /// A point with the defaults of the laboratory, its numbers made to fit the latency.
    #[must_use]
    pub fn new(subject: Subject, latency: Latency, load: Load, seed: u64) -> Self {
        let network = Network::perfect(latency);
        let tuning = Tuning { back_off: subject.tuning.back_off, ..Tuning::for_network(&network) };
        Self {
            subject: Subject { tuning, ..subject },
            network,
            load,
            inside: Length::ZERO,
            warmup: Span::from_secs(60),
            duration: Span::from_secs(600),
            replica_life: None,
            seed,
        }
    }

    /// The run behind the point.
    pub fn run_config(&self) -> Result<RunConfig, PointError> {
        self.check()?;
        let arrivals = match self.load {
            Load::RatePerS(per_s) => {
                Arrivals::Poisson { per_s, clients_min: 0, clients_max: CLIENTS_MAX }
            }
            Load::Clients(clients) => Arrivals::Loops { clients, think: Length::ZERO },
        };
        let ttl = Span::from_secs(10).max(self.subject.tuning.round_trip_worst * 3);
        let mut workload = Workload::new(Name::new("/sweep")?, arrivals);
        workload.ttl = Length::Constant(ttl.min(self.subject.tuning.lease_max));
        workload.inside = self.inside;
        let n = self.subject.quorum.n();
        let mut config = RunConfig::new(self.seed, n, self.network.clone(), workload);
        config.warmup = self.warmup;
        config.duration = self.duration;
        config.faults.replica_life = self.replica_life;
        Ok(config)
    }

    /// Whether it can be measured.
    pub fn check(&self) -> Result<(), PointError> {
        if !self.subject.protocol.is_lock() {
            return Err(PointError::NoLock(self.subject.protocol));
        }
        match self.load {
            Load::RatePerS(rate) if !(rate > 0.0 && rate <= RATE_MAX) => {
                return Err(PointError::Rate(rate));
            }
            Load::Clients(clients) if !(1..=CLIENTS_MAX).contains(&clients) => {
                return Err(PointError::Clients(clients));
            }
            Load::RatePerS(_) | Load::Clients(_) => {}
        }
        let Network { loss, duplication, late, .. } = self.network;
        for (what, value) in [("loss", loss), ("duplication", duplication), ("late copies", late)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(PointError::Probability { what, value });
            }
        }
        if self.duration == Span::ZERO {
            return Err(PointError::NoDuration);
        }
        if self.replica_life == Some(Span::ZERO) {
            return Err(PointError::NoLife);
        }
        Ok(())
    }

    /// Measures the point.
    pub fn measure(&self) -> Result<(Point, Outcome), PointError> {
        self.measure_watched(&mut Blind)
    }

    /// Measures the point, with somebody watching.
    pub fn measure_watched(&self, watch: &mut impl Watch) -> Result<(Point, Outcome), PointError> {
        let config = self.run_config()?;
        let oracles = &mut self.subject.oracles(&config);
        let outcome = self.subject.run_watched(&config, oracles, watch);
        match outcome.violations.iter().find(|violation| violation.oracle == "engine") {
            Some(stopped) => Err(PointError::Stopped(stopped.clone())),
            None => Ok((self.row(&outcome), outcome)),
        }
    }

    fn row(&self, outcome: &Outcome) -> Point {
        let Subject { protocol, variant, quorum, .. } = self.subject;
        let latency = &self.network.latency;
        let entries = outcome.entries_measured;
        let waits = &outcome.waits;
        let wait_ms = |share| (waits.count() > 0).then(|| ms(waits.quantile(share)));
        Point {
            protocol: protocol.as_str(),
            variant: variant.as_str(),
            latency_low_ms: ms(latency.best()),
            latency_high_ms: ms(latency.worst()),
            rate_per_s: match self.load {
                Load::RatePerS(rate) => Some(rate),
                Load::Clients(_) => None,
            },
            throughput_per_s: outcome.throughput_per_s,
            theory_per_s: saturated_rate_per_s(quorum, latency, self.inside.mean(), self.seed),
            messages_per_entry: (entries > 0)
                .then(|| outcome.traffic_measured.messages() as f64 / entries as f64),
            wait_p50_ms: wait_ms(0.50),
            wait_p99_ms: wait_ms(0.99),
            seed: self.seed,
            violations: outcome.violations.len(),
        }
    }
}

fn ms(span: Span) -> f64 {
    span.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use sigmalock_protocols::catalogue::Variant;
    use sigmalock_protocols::parts::Quorum;

    fn point(load: Load) -> PointConfig {
        let quorum = Quorum::new(3, 2).unwrap();
        let subject = Subject::new(ProtocolName::Sigma, Variant::Shipped, quorum);
        PointConfig::new(subject, "uniform:50ms..150ms".parse().unwrap(), load, 1)
    }

    #[test]
    fn what_cannot_be_measured_gets_one_sentence() {
        let error = |point: PointConfig| point.run_config().unwrap_err().to_string();
        assert!(error(point(Load::RatePerS(-1.0))).contains("rate"));
        assert!(error(point(Load::RatePerS(f64::NAN))).contains("rate"));
        assert!(error(point(Load::RatePerS(10_001.0))).contains("at most 10000 requests"));
        assert!(error(point(Load::Clients(0))).contains("client"));
        assert!(error(point(Load::Clients(20_001))).contains("between 1 and 20000 clients"));
        let mut bad = point(Load::Clients(1));
        bad.subject.protocol = ProtocolName::Views;
        assert!(error(bad).contains("views guards no locks"));
        let mut bad = point(Load::Clients(1));
        bad.network.loss = 1.5;
        assert!(error(bad).contains("loss"));
        let mut bad = point(Load::Clients(1));
        bad.duration = Span::ZERO;
        assert!(error(bad).contains("duration"));
        let mut bad = point(Load::Clients(1));
        bad.replica_life = Some(Span::ZERO);
        assert!(error(bad).contains("life"));
    }

    #[test]
    fn a_light_load_gets_what_it_asks_for() {
        let (row, outcome) = point(Load::RatePerS(0.5)).measure().unwrap();
        assert!((row.throughput_per_s - 0.5).abs() < 0.1, "{row:?}");
        assert!(row.wait_p50_ms >= Some(100.0) && row.wait_p50_ms <= row.wait_p99_ms, "{row:?}");
        assert_eq!(outcome.violations, []);
    }
}
