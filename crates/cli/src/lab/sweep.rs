//! `lab sweep`: throughput, waiting times and message cost at chosen points.

use std::num::NonZeroUsize;

use clap::Args;
use sigmalock_core::Span;
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_sim::latency::Latency;

use crate::args::{self, Jobs, Replicas};
use crate::outcome::{BadParameters, Verdict, after_help};

/// Measures protocols at chosen loads: throughput, messages per entry, waiting times
///
/// One run per protocol, variant and rate, on one lock. Delays are one-way. Without faults, theory is
/// what a perfect hand-off would reach: one over the mean time in which the m-th of n votes travels
/// from the old holder over its replica to the next.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Sweep {
    /// Protocols
    #[arg(long, value_name = "P[,P…]", default_value = "sigma", value_delimiter = ',')]
    #[arg(value_parser = args::protocol)]
    protocol: Vec<ProtocolName>,
    /// Variants: as published (literal), or with what it takes to survive (shipped)
    #[arg(long, value_name = "V[,V]", default_value = "shipped", value_delimiter = ',')]
    #[arg(value_parser = args::variant)]
    variant: Vec<Variant>,
    #[command(flatten)]
    replicas: Replicas,
    /// One-way delays: constant:D, uniform:LOW..HIGH, lognormal:MEDIAN,SIGMA or
    /// map:BASE,PER_UNIT,JITTER
    #[arg(long, value_name = "MODEL", default_value = "uniform:50ms..150ms")]
    latency: Latency,
    /// Draw the delay once per pair of peers, not per message
    #[arg(long)]
    pairwise: bool,
    /// Messages between two peers never overtake each other
    #[arg(long)]
    fifo: bool,
    /// Requests per second, arriving at random (Poisson); one run each
    #[arg(long, value_name = "R[,R…]", value_delimiter = ',', value_parser = args::rate)]
    #[arg(allow_hyphen_values = true, conflicts_with = "clients")]
    rate: Vec<f64>,
    /// Instead of a rate: so many clients, each asking again as soon as it is out
    #[arg(long, value_name = "K", value_parser = args::positive_count, allow_hyphen_values = true)]
    clients: Option<NonZeroUsize>,
    /// Time spent inside the critical section
    #[arg(long, value_name = "DUR", default_value = "0", value_parser = args::span)]
    #[arg(allow_hyphen_values = true)]
    cs: Span,
    /// Simulated time before measuring
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = args::span)]
    #[arg(allow_hyphen_values = true)]
    warmup: Span,
    /// Simulated time that is measured
    #[arg(long, value_name = "DUR", default_value = "5m", value_parser = args::positive_span)]
    #[arg(allow_hyphen_values = true)]
    duration: Span,
    /// Probability that a message is lost
    #[arg(long, value_name = "P", default_value = "0", value_parser = args::probability)]
    #[arg(allow_hyphen_values = true)]
    loss: f64,
    /// Probability that a message arrives twice
    #[arg(long, value_name = "P", default_value = "0", value_parser = args::probability)]
    #[arg(allow_hyphen_values = true)]
    dup: f64,
    /// Mean time after which a replica loses its memory [default: never]
    #[arg(long, value_name = "DUR", value_parser = args::positive_span, allow_hyphen_values = true)]
    replica_life: Option<Span>,
    /// The seed of all that is random
    #[arg(long, value_name = "S", default_value = "1", value_parser = args::seed)]
    #[arg(allow_hyphen_values = true)]
    seed: u64,
    #[command(flatten)]
    jobs: Jobs,
    /// One JSON object per point, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
  sigmalock lab sweep --protocol sigma,strawman --n 32 --m 24 --rate 1,2,5,10,20
  sigmalock lab sweep --n 32 --m 24 --latency uniform:0ms..200ms --rate 20 --json
  sigmalock lab sweep --variant literal,shipped --clients 10 --cs 100ms --loss 0.01";

impl Sweep {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let quorum = self.replicas.quorum()?;
        if self.rate.is_empty() && self.clients.is_none() {
            let why = "either --rate R[,R…] or --clients K is needed";
            return Err(BadParameters(why.to_owned()).into());
        }
        println!("{self:?} {quorum:?}");
        Ok(Verdict::Holds)
    }
}
