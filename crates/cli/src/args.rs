//! What flags of several commands have in common, and a parser with a sentence for each kind of value.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use sigmalock_core::{Name, Span};
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::parts::quorum::REPLICAS_MAX;
use sigmalock_protocols::views::MEMBERS_MAX;
use sigmalock_sim::lab::sweep::{CLIENTS_MAX, RATE_MAX};

use crate::outcome::BadParameters;

/// How many replicas guard a lock, and how many votes win it.
#[derive(Debug, Args)]
pub(crate) struct Replicas {
    /// Replicas that guard each lock [default: 9 where one world is measured, else drawn by each seed]
    #[arg(long, value_name = "N", requires = "m", value_parser = replica_count)]
    #[arg(allow_hyphen_values = true)]
    n: Option<u16>,
    /// Votes that win it: more than half of N [default: 6 where N is 9 by default, else drawn]
    #[arg(long, value_name = "M", requires = "n", value_parser = replica_count)]
    #[arg(allow_hyphen_values = true)]
    m: Option<u16>,
}

impl Replicas {
    /// What was asked for, if anything was.
    pub(crate) fn quorum(&self) -> Result<Option<Quorum>, BadParameters> {
        let (Some(n), Some(m)) = (self.n, self.m) else { return Ok(None) };
        let quorum = Quorum::new(n, m);
        quorum.map(Some).map_err(|why| BadParameters(format!("--n {n} --m {m}: {why}")))
    }

    /// What was asked for, or 6 of 9.
    pub(crate) fn quorum_or_default(&self) -> Result<Quorum, BadParameters> {
        let default = Quorum::new(9, 6).map_err(|why| BadParameters(why.to_string()))?;
        Ok(self.quorum()?.unwrap_or(default))
    }
}

/// How many simulations run at once. Results do not depend on it.
#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Simulations to run at once [default: one per core]
    #[arg(long, value_name = "J", value_parser = positive_count, allow_hyphen_values = true)]
    jobs: Option<NonZeroUsize>,
}

impl Jobs {
    pub(crate) fn count(&self) -> usize {
        let cores = || std::thread::available_parallelism().ok();
        self.jobs.or_else(cores).map_or(1, NonZeroUsize::get)
    }
}

/// What experiments with a run per seed have in common.
#[derive(Debug, Args)]
pub(crate) struct SeedRuns {
    #[command(flatten)]
    pub(crate) replicas: Replicas,
    /// Seeds to run, B not included
    #[arg(long, value_name = "A..B", default_value = "0..1000", value_parser = seeds)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) seeds: Range<u64>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

/// An item of `--protocol`: one of them, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocols {
    All,
    One(ProtocolName),
}

impl Protocols {
    /// Those that a list of items means, each once, in the order in which they are named.
    pub(crate) fn list(items: &[Self]) -> Vec<ProtocolName> {
        Self::list_of(items, ProtocolName::ALL)
    }

    /// The same where only those that guard locks are of use: they are all.
    pub(crate) fn locks(items: &[Self]) -> Vec<ProtocolName> {
        Self::list_of(items, &ProtocolName::locks().collect::<Vec<_>>())
    }

    fn list_of(items: &[Self], all: &[ProtocolName]) -> Vec<ProtocolName> {
        let mut list = Vec::new();
        for item in items {
            let named = match item {
                Self::All => all,
                Self::One(protocol) => std::slice::from_ref(protocol),
            };
            for protocol in named {
                if !list.contains(protocol) {
                    list.push(*protocol);
                }
            }
        }
        list
    }
}

impl FromStr for Protocols {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        text.parse().map(Self::One).map_err(|_| {
            let names: Vec<&str> = ProtocolName::ALL.iter().map(|name| name.as_str()).collect();
            format!("there is no such protocol; there are: {}, and all", names.join(", "))
        })
    }
}

/// A half-open range of seeds, never empty.
pub(crate) fn seeds(text: &str) -> Result<Range<u64>, String> {
    let (from, to) =
        text.split_once("..").ok_or("seeds are given as a range A..B, B not included")?;
    let (from, to) = (seed(from)?, seed(to)?);
    if from < to {
        Ok(from..to)
    } else if from == to {
        Err("this range of seeds is empty; B is not included".to_owned())
    } else {
        Err("this range of seeds runs backwards".to_owned())
    }
}

pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a seed is a whole number below 2^64".to_owned())
}

pub(crate) fn variant(text: &str) -> Result<Variant, String> {
    text.parse().map_err(|why: sigmalock_protocols::catalogue::UnknownName| why.to_string())
}

/// Requests per second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX => Ok(rate),
        _ => Err(format!("a rate should be above 0 and at most {RATE_MAX} requests per second")),
    }
}

pub(crate) fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("a probability is a number between 0 and 1".to_owned()),
    }
}

/// A length of time, such as `100ms`, `10s` or `5m`; zero is allowed.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    if text == "0" {
        return Ok(Span::ZERO);
    }
    let parsed = humantime::parse_duration(text)
        .map_err(|_| "a duration is a number with a unit, such as 100ms, 10s or 5m".to_owned())?;
    let micros = u64::try_from(parsed.as_micros()).ok().filter(|us| *us <= SPAN_MAX.as_micros());
    micros.map(Span::from_micros).ok_or_else(|| format!("a duration is at most {SPAN_MAX_WORDS}"))
}

/// The longest duration a command takes; simulated time stays far from overflowing.
const SPAN_MAX: Span = Span::from_secs(366 * 86_400);
const SPAN_MAX_WORDS: &str = "a year";

/// A length of time that is not zero.
pub(crate) fn positive_span(text: &str) -> Result<Span, String> {
    match span(text)? {
        Span::ZERO => Err("this duration must be longer than nothing".to_owned()),
        span => Ok(span),
    }
}

/// Two durations, the first not longer than the second.
pub(crate) fn span_range(text: &str) -> Result<(Span, Span), String> {
    let (low, high) = text.split_once("..").ok_or("this is a range of durations, LOW..HIGH")?;
    match (span(low)?, span(high)?) {
        (low, high) if low <= high => Ok((low, high)),
        _ => Err("this range of durations runs backwards".to_owned()),
    }
}

/// A length of real time, longer than nothing.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    positive_span(text).map(real)
}

/// A length of real time; zero is allowed.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    span(text).map(real)
}

fn real(span: Span) -> Duration {
    Duration::from_micros(span.as_micros())
}

/// The name of one lock. A comma may be in it, but not here: elsewhere it would be taken for two.
pub(crate) fn name(text: &str) -> Result<Name, String> {
    if text.contains(',') {
        return Err("this should be one name, without a comma".to_owned());
    }
    Name::new(text).map_err(|why| why.to_string())
}

pub(crate) fn positive_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "this should be a whole number, at least 1".to_owned())
}

/// Clients of a closed load.
pub(crate) fn clients(text: &str) -> Result<NonZeroUsize, String> {
    let count = text.parse().ok().filter(|count: &NonZeroUsize| count.get() <= CLIENTS_MAX);
    count.ok_or_else(|| format!("this should be a whole number between 1 and {CLIENTS_MAX}"))
}

pub(crate) fn replica_count(text: &str) -> Result<u16, String> {
    let count = text.parse().ok().filter(|count| *count <= REPLICAS_MAX);
    count.ok_or_else(|| format!("this should be a whole number, at most {REPLICAS_MAX}"))
}

/// How many hosts begin a swarm together.
pub(crate) fn host_count(text: &str) -> Result<u16, String> {
    let count = text.parse().ok().filter(|count| (1..=MEMBERS_MAX).contains(&usize::from(*count)));
    count.ok_or_else(|| format!("this should be a whole number between 1 and {MEMBERS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_range_is_half_open() {
        assert_eq!(seeds("0..1"), Ok(0..1));
        assert_eq!(seeds("7..18446744073709551615"), Ok(7..u64::MAX));
        for bad in ["", "7", "7..", "..7", "7..7", "9..3", "-1..3", "1..=3", "1...3", "a..b"] {
            assert!(seeds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_and_probabilities_are_ordinary_numbers() {
        assert_eq!(rate("0.5"), Ok(0.5));
        for bad in ["", "0", "-1", "NaN", "inf", "-inf", "1e999", "10001", "ten"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        assert_eq!((probability("0"), probability("1")), (Ok(0.0), Ok(1.0)));
        for bad in ["", "-0.1", "1.1", "NaN", "inf", "5%"] {
            assert!(probability(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_list_of_protocols_has_each_of_them_once() {
        let list = |text: &str| {
            let items: Result<Vec<Protocols>, _> = text.split(',').map(str::parse).collect();
            items.map(|items| Protocols::list(&items))
        };
        assert_eq!(list("all"), Ok(ProtocolName::ALL.to_vec()));
        let all = [ProtocolName::Strawman, ProtocolName::Sigma, ProtocolName::Views];
        assert_eq!(list("strawman,all"), Ok(all.to_vec()));
        assert_eq!(
            Protocols::locks(&[Protocols::All]),
            [ProtocolName::Sigma, ProtocolName::Strawman]
        );
        assert_eq!(list("sigma,sigma"), Ok(vec![ProtocolName::Sigma]));
        assert!(list("sigma,").is_err() && list("ALL").is_err());
    }

    #[test]
    fn durations_are_what_people_write() {
        assert_eq!(span("100ms"), Ok(Span::from_millis(100)));
        assert_eq!(span("1m 30s"), Ok(Span::from_secs(90)));
        assert_eq!(span("0"), Ok(Span::ZERO));
        for bad in ["", "10", "-1s", "1 parsec", "500y", "99999999999999999999s"] {
            assert!(span(bad).is_err(), "{bad}");
        }
        assert!(positive_span("0s").is_err() && positive_span("0").is_err());
    }
}
