//! The runs behind the figures: the setting of the paper, and which points of it are visited.

use std::collections::BTreeMap;

use sigmalock_core::Span;
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;

use super::Setting;
use crate::history::{Traffic, TrueTime};
use crate::lab::meter::Meter;
use crate::lab::sweep::{Load, Point, PointConfig, PointError};
use crate::latency::Latency;
use crate::subject::Subject;

/// The bounds of the one-way delays of Figures 3 and 7, in milliseconds; all have a mean of 100.
pub(crate) const DELAYS: [(u64, u64); 3] = [(90, 110), (50, 150), (0, 200)];
/// Those of Figure 8.
pub(crate) const WIDEST: (u64, u64) = (0, 200);
/// Replicas and votes.
pub(crate) const N: u16 = 32;
pub(crate) const M: u16 = 24;
/// Losers of the strawman come back within this. The paper does not say; with less the collapse is a
/// cliff, and with this it has the paper's gentle slope.
const BACK_OFF: (Span, Span) = (Span::ZERO, Span::from_secs(100));

/// What a figure compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breed {
    StrawmanLiteral,
    StrawmanShipped,
    /// Section IV: pseudo code, lease and informed backoff.
    Literal,
    /// The pseudo code of Figures 5 and 6 alone.
    PseudoCode,
    Shipped,
    /// With the longest leases by default, instead of short ones that suit short lives.
    ShippedLongLeases,
}

impl Breed {
    /// As a file spells the variant.
    pub(crate) const fn variant(self) -> &'static str {
        match self {
            Self::StrawmanLiteral | Self::Literal => "literal",
            Self::PseudoCode => "literal-pseudo-code",
            Self::StrawmanShipped | Self::Shipped => "shipped",
            Self::ShippedLongLeases => "shipped-15s-leases",
        }
    }

    fn subject(self, quorum: Quorum) -> Subject {
        let (protocol, variant) = match self {
            Self::StrawmanLiteral => (ProtocolName::Strawman, Variant::Literal),
            Self::StrawmanShipped => (ProtocolName::Strawman, Variant::Shipped),
            Self::Literal | Self::PseudoCode => (ProtocolName::Sigma, Variant::Literal),
            Self::Shipped | Self::ShippedLongLeases => (ProtocolName::Sigma, Variant::Shipped),
        };
        Subject::new(protocol, variant, quorum)
    }
}

/// One run of the simulator, and which curve it is a point of.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub(crate) breed: Breed,
    pub(crate) point: PointConfig,
}

impl Run {
    /// A point of the paper's setting without faults.
    pub(crate) fn new(
        setting: Setting, quorum: Quorum, breed: Breed, (low, high): (u64, u64), rate: f64,
    ) -> Self {
        let ms = Span::from_millis;
        let latency = Latency::Uniform { low: ms(low), high: ms(high) };
        let mut subject = breed.subject(quorum);
        subject.tuning.back_off = BACK_OFF;
        let mut point = PointConfig::new(subject, latency, Load::RatePerS(rate), setting.seed);
        point.subject.tuning.whole_paper = breed != Breed::PseudoCode;
        (point.warmup, point.duration) = setting.times();
        Self { breed, point }
    }

    /// The same with hosts that lose their memory.
    pub(crate) fn with_life(mut self, life: Span) -> Self {
        self.point.replica_life = Some(life);
        if self.breed == Breed::Shipped {
            self.point.subject.tuning.lease_max = SHORT_LEASE;
        }
        self
    }

    pub(crate) fn rate(&self) -> f64 {
        match self.point.load {
            Load::RatePerS(rate) => rate,
            Load::Clients(clients) => clients as f64,
        }
    }

    /// Measures it.
    pub fn measure(&self) -> Result<Sample, PointError> {
        let mut meter = Meter::new(TrueTime(0) + self.point.warmup);
        let (point, outcome) = self.point.measure_watched(&mut meter)?;
        let mut objections = BTreeMap::new();
        for violation in &outcome.violations {
            *objections.entry(violation.oracle).or_default() += 1;
        }
        let (asked, entries) = (meter.asked, outcome.entries_measured);
        Ok(Sample { point, asked, entries, traffic: outcome.traffic_measured, objections })
    }
}

/// The shortest lease that renewals keep alive over the widest delays: what suits hosts that forget often,
/// since after a reset a host abstains for the longest lease there may be.
pub(crate) const SHORT_LEASE: Span = Span::from_secs(1);

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Sample {
    pub(crate) point: Point,
    /// Requests made while measuring.
    pub(crate) asked: u64,
    /// Entries while measuring.
    pub(crate) entries: u64,
    /// Messages sent while measuring.
    pub(crate) traffic: Traffic,
    /// How often each oracle objected, in the whole run.
    pub(crate) objections: BTreeMap<&'static str, usize>,
}

/// Request rates of Figures 3 and 7, per second.
pub(crate) fn rates(setting: Setting) -> &'static [f64] {
    if setting.quick {
        &[0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0]
    } else {
        &[
            0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0,
            15.0, 20.0,
        ]
    }
}

/// Beyond this the literal Sigma is not run: it has stopped long before, and only its queues grow.
pub(crate) const LITERAL_RATE_MAX: f64 = 6.0;

/// Request rates of Figure 8.
pub(crate) fn rates_with_resets(setting: Setting) -> &'static [f64] {
    if setting.quick {
        &[0.5, 2.0, 3.0, 4.0, 6.0]
    } else {
        &[0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0]
    }
}

/// Mean lives of replicas in Figure 8, in seconds.
pub(crate) const LIVES_S: [u64; 5] = [30, 100, 300, 1_000, 10_000];

#[cfg(test)]
impl Sample {
    /// As if a run had come out like this.
    pub(crate) fn invented(run: &Run, throughput_per_s: f64, theory_per_s: f64) -> Self {
        let (asked, entries) = (1_000, (1_000.0 * throughput_per_s / run.rate()) as u64);
        let point = Point {
            protocol: run.point.subject.protocol.as_str(),
            variant: run.point.subject.variant.as_str(),
            latency_low_ms: 0.0,
            latency_high_ms: 0.0,
            rate_per_s: Some(run.rate()),
            throughput_per_s,
            theory_per_s,
            messages_per_entry: None,
            wait_p50_ms: None,
            wait_p99_ms: None,
            seed: 1,
            violations: 0,
        };
        let (traffic, objections) = (Traffic::default(), BTreeMap::new());
        Self { point, asked, entries, traffic, objections }
    }
}
