//! `lab sweep`: throughput, waiting times and message cost at chosen points.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use clap::Args;
use sigmalock_core::Span;
use sigmalock_protocols::catalogue::Variant;
use sigmalock_sim::lab::parallel::in_parallel;
use sigmalock_sim::lab::sweep::{Load, Point, PointConfig, PointError};
use sigmalock_sim::latency::Latency;
use sigmalock_sim::subject::Subject;
use sigmalock_sim::workload::Length;

use crate::args::{self, Jobs, Protocols, Replicas};
use crate::outcome::{BadParameters, Verdict, after_lab_help};
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::words::{or_dash, seconds};

/// Measures protocols at chosen loads: throughput, messages per entry, waiting times
///
/// One run per protocol, variant and rate, on one lock. Delays are one-way. Theory is what a perfect
/// hand-off reaches without faults: one over the mean time in which the m-th of n votes travels from
/// the old holder over its replica to the next. Violations are counted, not judged: the exit code is 0,
/// unless a run had to be stopped.
#[derive(Debug, Args)]
#[command(after_help = after_lab_help(EXAMPLES))]
pub(crate) struct Sweep {
    /// Protocols, or `all`
    #[arg(long, value_name = "P[,P…]", default_value = "sigma", value_delimiter = ',')]
    protocol: Vec<Protocols>,
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
    #[arg(long, value_name = "K", value_parser = args::clients, allow_hyphen_values = true)]
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
    /// How long losers of the strawman wait before they bid again [default: 0s..4s]
    #[arg(long, value_name = "LOW..HIGH", value_parser = args::span_range)]
    #[arg(allow_hyphen_values = true)]
    back_off: Option<(Span, Span)>,
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

const EXAMPLES: &str = "  \
  sigmalock lab sweep --protocol sigma,strawman --n 32 --m 24 --rate 1,2,5,10,20
  sigmalock lab sweep --n 32 --m 24 --latency uniform:0ms..200ms --rate 20 --json
  sigmalock lab sweep --variant literal,shipped --clients 10 --cs 100ms --loss 0.01";

impl Sweep {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let points = self.points()?;
        let progress = Progress::new(points.len() as u64, "points");
        let mut rows = Vec::new();
        let measured = in_parallel(&points, self.jobs.count(), measure, |row| {
            progress.step();
            let row = row?;
            if self.json {
                let line = serde_json::to_string(&row)?;
                progress.around(|| writeln!(io::stdout(), "{line}"))?;
            }
            rows.push(row);
            anyhow::Ok(())
        });
        drop(progress);
        if !self.json && !rows.is_empty() {
            print_for_people(&mut io::stdout().lock(), &rows)?;
        }
        measured.map(|()| Verdict::Holds)
    }

    fn points(&self) -> Result<Vec<PointConfig>, BadParameters> {
        let quorum = self.replicas.quorum_or_default()?;
        let rates = self.rate.iter().map(|rate| Load::RatePerS(*rate));
        let clients = self.clients.map(|clients| Load::Clients(clients.get()));
        let loads: Vec<Load> = rates.chain(clients).collect();
        if loads.is_empty() {
            return Err(BadParameters("either --rate R[,R…] or --clients K is needed".to_owned()));
        }
        let mut points = Vec::new();
        for protocol in Protocols::locks(&self.protocol) {
            for variant in &self.variant {
                let mut subject = Subject::new(protocol, *variant, quorum);
                subject.tuning.back_off = self.back_off.unwrap_or(subject.tuning.back_off);
                points.extend(loads.iter().map(|load| self.point(subject, *load)));
            }
        }
        refuse(&points)?;
        Ok(points)
    }

    fn point(&self, subject: Subject, load: Load) -> PointConfig {
        let mut point = PointConfig::new(subject, self.latency, load, self.seed);
        point.network.pairwise = self.pairwise;
        point.network.fifo = self.fifo;
        point.network.loss = self.loss;
        point.network.duplication = self.dup;
        point.inside = Length::Constant(self.cs);
        point.warmup = self.warmup;
        point.duration = self.duration;
        point.replica_life = self.replica_life;
        point
    }
}

/// Says so before anything runs, if something cannot be measured.
pub(super) fn refuse(points: &[PointConfig]) -> Result<(), BadParameters> {
    let bad = points.iter().find_map(|point| point.check().err());
    bad.map_or(Ok(()), |why| Err(BadParameters(why.to_string())))
}

fn measure(point: &PointConfig) -> anyhow::Result<Point> {
    let Subject { protocol, variant, .. } = point.subject;
    let load = match point.load {
        Load::RatePerS(rate) => format!("{rate} requests per second"),
        Load::Clients(clients) => format!("{clients} clients"),
    };
    match point.measure() {
        Ok((row, _)) => Ok(row),
        Err(why @ PointError::Stopped(_)) => {
            Err(anyhow::Error::new(why).context(format!("{variant} {protocol}, {load}")))
        }
        Err(why) => Err(BadParameters(why.to_string()).into()),
    }
}

fn print_for_people(out: &mut dyn Write, rows: &[Point]) -> io::Result<()> {
    let mut table = Table::new([
        ("protocol", Align::Left),
        ("variant", Align::Left),
        ("requests/s", Align::Right),
        ("entries/s", Align::Right),
        ("theory", Align::Right),
        ("messages/entry", Align::Right),
        ("wait p50", Align::Right),
        ("wait p99", Align::Right),
        ("violations", Align::Right),
    ]);
    for row in rows {
        table.row([
            row.protocol.to_owned(),
            row.variant.to_owned(),
            row.rate_per_s.map_or_else(|| "closed".to_owned(), |rate| rate.to_string()),
            format!("{:.2}", row.throughput_per_s),
            format!("{:.2}", row.theory_per_s),
            or_dash(row.messages_per_entry, 1),
            seconds(row.wait_p50_ms),
            seconds(row.wait_p99_ms),
            row.violations.to_string(),
        ]);
    }
    table.print(out)
}
