//! How long a message takes, one way.

use std::fmt;
use std::str::FromStr;

use sigmalock_core::{PeerId, Span};

use crate::duration::{self, DurationError};
use crate::rng::Rng;

/// A model of one-way delays. Its text form is what `FromStr` reads and `Display` writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Latency {
    /// `constant:100ms`
    Constant(Span),
    /// `uniform:50ms..150ms`
    Uniform {
        /// The shortest delay.
        low: Span,
        /// The longest delay.
        high: Span,
    },
    /// `lognormal:100ms,0.5`; cut off at three sigma, both ways, so that a worst case exists.
    LogNormal {
        /// Half of all messages are faster.
        median: Span,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
    /// `map:10ms,100ms,5ms`: peers lie at random on a unit square, and a message takes the base, so
    /// much per unit of distance, and up to so much jitter.
    Map {
        /// What every message takes.
        base: Span,
        /// What a distance of 1 adds.
        per_unit: Span,
        /// Up to this is added at random.
        jitter: Span,
    },
}

/// Where a log-normal delay is cut off, in standard deviations.
const SIGMAS_MAX: f64 = 3.0;
/// Between two random points of a unit square.
const MEAN_DISTANCE: f64 = 0.521_405;

impl Latency {
    /// The longest one-way delay the model has.
    #[must_use]
    pub fn worst(&self) -> Span {
        match *self {
            Self::Constant(delay) => delay,
            Self::Uniform { high, .. } => high,
            Self::LogNormal { median, sigma } => scale(median, libm::exp(SIGMAS_MAX * sigma)),
            Self::Map { base, per_unit, jitter } => {
                base + scale(per_unit, std::f64::consts::SQRT_2) + jitter
            }
        }
    }

    /// The shortest one-way delay the model has.
    #[must_use]
    pub fn best(&self) -> Span {
        match *self {
            Self::Constant(delay) => delay,
            Self::Uniform { low, .. } => low,
            Self::LogNormal { median, sigma } => scale(median, libm::exp(-SIGMAS_MAX * sigma)),
            Self::Map { base, .. } => base,
        }
    }

    /// The mean one-way delay, as good as exactly: cutting a log-normal off moves it by less than one
    /// part in a hundred up to a sigma of 0.8, and on a map the places of the peers at hand may lie closer
    /// or wider than those of all.
    #[must_use]
    pub fn mean(&self) -> Span {
        match *self {
            Self::Constant(delay) => delay,
            Self::Uniform { low, high } => (low + high) / 2,
            Self::LogNormal { median, sigma } => scale(median, libm::exp(sigma * sigma / 2.0)),
            Self::Map { base, per_unit, jitter } => {
                base + scale(per_unit, MEAN_DISTANCE) + jitter / 2
            }
        }
    }

    /// The delay of one message.
    #[inline]
    pub fn draw(&self, rng: &mut Rng, from: PeerId, to: PeerId) -> Span {
        match *self {
            Self::Constant(delay) => delay,
            Self::Uniform { low, high } => rng.span(low, high),
            Self::LogNormal { median, sigma } => {
                scale(median, libm::exp(sigma * rng.normal().clamp(-SIGMAS_MAX, SIGMAS_MAX)))
            }
            Self::Map { base, per_unit, jitter } => {
                let ((x, y), (u, v)) = (coordinates(from), coordinates(to));
                base + scale(per_unit, libm::hypot(x - u, y - v)) + rng.span(Span::ZERO, jitter)
            }
        }
    }
}

fn scale(span: Span, factor: f64) -> Span {
    Span::from_micros((span.as_micros() as f64 * factor).round() as u64)
}

/// Where a peer lies on the map: the same place in every run, so that maps compare.
fn coordinates(peer: PeerId) -> (f64, f64) {
    let mut rng = Rng::split(0x6d61_7073, peer.0);
    (rng.unit(), rng.unit())
}

/// Why a text is not a latency model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LatencyError {
    /// Not one of the models.
    #[error(
        "`{0}` is no latency model: write constant:D, uniform:LOW..HIGH, lognormal:MEDIAN,SIGMA or map:BASE,PER_UNIT,JITTER"
    )]
    Model(String),
    /// The model's parameters are not of its shape.
    #[error("`{text}` does not have the form {form}")]
    Form {
        /// What was given.
        text: String,
        /// What it should look like.
        form: &'static str,
    },
    /// A duration in it is none.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// An interval that is empty.
    #[error("the latency interval {low}..{high} is empty: the first bound should be the smaller")]
    Empty {
        /// The first bound.
        low: Span,
        /// The second bound.
        high: Span,
    },
    /// A sigma that is no usable number.
    #[error("`{0}` is no sigma of a log-normal latency: it should be a number from 0 to 3")]
    Sigma(String),
}

impl FromStr for Latency {
    type Err = LatencyError;

    fn from_str(text: &str) -> Result<Self, LatencyError> {
        let unknown = || LatencyError::Model(text.to_owned());
        let (model, rest) = text.split_once(':').ok_or_else(unknown)?;
        let form = |form| LatencyError::Form { text: text.to_owned(), form };
        match model {
            "constant" => Ok(Self::Constant(duration::parse(rest)?)),
            "uniform" => {
                let bounds = rest.split_once("..").ok_or_else(|| form("uniform:LOW..HIGH"))?;
                let (low, high) = (duration::parse(bounds.0)?, duration::parse(bounds.1)?);
                if low > high {
                    return Err(LatencyError::Empty { low, high });
                }
                Ok(Self::Uniform { low, high })
            }
            "lognormal" => {
                let parts = rest.split_once(',').ok_or_else(|| form("lognormal:MEDIAN,SIGMA"))?;
                let median = duration::parse(parts.0)?;
                let sigma = parts.1.trim().parse().ok().filter(|s| (0.0..=3.0).contains(s));
                let sigma = sigma.ok_or_else(|| LatencyError::Sigma(parts.1.to_owned()))?;
                Ok(Self::LogNormal { median, sigma })
            }
            "map" => {
                let parts: Vec<&str> = rest.split(',').collect();
                let [base, per_unit, jitter] = parts[..] else {
                    return Err(form("map:BASE,PER_UNIT,JITTER"));
                };
                let (base, per_unit) = (duration::parse(base)?, duration::parse(per_unit)?);
                Ok(Self::Map { base, per_unit, jitter: duration::parse(jitter)? })
            }
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(delay) => write!(f, "constant:{delay}"),
            Self::Uniform { low, high } => write!(f, "uniform:{low}..{high}"),
            Self::LogNormal { median, sigma } => write!(f, "lognormal:{median},{sigma}"),
            Self::Map { base, per_unit, jitter } => write!(f, "map:{base},{per_unit},{jitter}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODELS: [&str; 4] =
        ["constant:100ms", "uniform:50ms..150ms", "lognormal:100ms,0.5", "map:10ms,100ms,5ms"];

    #[test]
    fn a_model_reads_what_it_writes() {
        for text in MODELS {
            assert_eq!(text.parse::<Latency>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_model_gets_one_sentence() {
        let sentence = |text: &str| text.parse::<Latency>().unwrap_err().to_string();
        assert!(sentence("100ms").contains("no latency model"));
        assert!(sentence("gamma:1ms").contains("no latency model"));
        assert!(sentence("uniform:50ms").contains("uniform:LOW..HIGH"));
        assert!(sentence("uniform:2ms..1ms").contains("is empty"));
        assert!(sentence("uniform:1..2").contains("unit"));
        assert!(sentence("lognormal:5ms").contains("lognormal:MEDIAN,SIGMA"));
        assert!(sentence("lognormal:5ms,-1").contains("sigma"));
        assert!(sentence("lognormal:5ms,NaN").contains("sigma"));
        assert!(sentence("map:1ms,2ms").contains("map:BASE"));
    }

    #[test]
    fn no_draw_exceeds_the_worst_case_and_the_middle_is_where_it_should_be() {
        let mut rng = Rng::new(5);
        for text in MODELS {
            let model: Latency = text.parse().unwrap();
            let mut draws: Vec<Span> = (0..20_000)
                .map(|i| model.draw(&mut rng, PeerId(i % 50), PeerId(1_000 + i % 7)))
                .collect();
            draws.sort_unstable();
            assert!(draws[0] >= model.best() && draws[19_999] <= model.worst(), "{text}");
            let sum: u64 = draws.iter().map(|delay| delay.as_micros()).sum();
            let (mean, expected) = (sum as f64 / 20_000.0, model.mean().as_micros() as f64);
            let few_peers = if text.starts_with("map") { 0.15 } else { 0.02 };
            assert!((mean / expected - 1.0).abs() < few_peers, "{text}: {mean}, not {expected}");
            let middle = draws[10_000].as_micros();
            let expected = if text.starts_with("map") { 30_000..110_000 } else { 97_000..103_000 };
            assert!(expected.contains(&middle), "{text}: median {middle} us");
        }
    }
}
