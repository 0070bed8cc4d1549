//! `lab compare`: protocols side by side.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use clap::Args;
use sigmalock_core::Span;
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_sim::lab::compare::{Comparison, Contender, compare};
use sigmalock_sim::lab::parallel::in_parallel;
use sigmalock_sim::lab::sweep::{Load, PointConfig};
use sigmalock_sim::latency::Latency;
use sigmalock_sim::subject::Subject;
use sigmalock_sim::workload::Length;

use crate::args::{self, Jobs, Replicas};
use crate::outcome::{BadParameters, Verdict, after_lab_help};
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::words::{or_dash, seconds};

/// Puts protocols side by side: one table per level of contention
///
/// So many clients want one lock, each again as soon as it is out. Waits are from asking to entering. A
/// hand-off is from one client's leaving to the entry of the next that was waiting already, in mean
/// one-way delays: two is a perfect one. Fairness is Jain's index over the entries of the clients: 1 if all
/// had the same, 1/K if one of K had them all. A run that got out of control is said to be stopped.
#[derive(Debug, Args)]
#[command(after_help = after_lab_help(EXAMPLES))]
pub(crate) struct Compare {
    /// Protocols, each as PROTOCOL or PROTOCOL:VARIANT (literal or shipped), or `all`
    #[arg(long, value_name = "P[,P…]", default_value = "all", value_delimiter = ',')]
    #[arg(value_parser = contenders)]
    protocols: Vec<Contenders>,
    /// Levels of contention: how many clients ask again and again
    #[arg(long, value_name = "K[,K…]", default_value = "1,4,16,64", value_delimiter = ',')]
    #[arg(value_parser = args::clients, allow_hyphen_values = true)]
    clients: Vec<NonZeroUsize>,
    #[command(flatten)]
    replicas: Replicas,
    /// One-way delays: constant:D, uniform:LOW..HIGH, lognormal:MEDIAN,SIGMA or
    /// map:BASE,PER_UNIT,JITTER
    #[arg(long, value_name = "MODEL", default_value = "uniform:50ms..150ms")]
    latency: Latency,
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
    /// The seed of all that is random
    #[arg(long, value_name = "S", default_value = "1", value_parser = args::seed)]
    #[arg(allow_hyphen_values = true)]
    seed: u64,
    #[command(flatten)]
    jobs: Jobs,
    /// One JSON object per protocol and level, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lab compare --protocols sigma,strawman
  sigmalock lab compare --protocols sigma,sigma:literal,strawman --clients 2,32 --n 5 --m 3
  sigmalock lab compare --protocols all --latency constant:10ms --cs 50ms --json";

/// An item of `--protocols`.
#[derive(Debug, Clone, Copy)]
enum Contenders {
    All,
    One(Contender),
}

fn contenders(text: &str) -> Result<Contenders, String> {
    if text == "all" {
        return Ok(Contenders::All);
    }
    text.parse().map(Contenders::One).map_err(|why| format!("{why}; or all"))
}

impl Compare {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let points = self.points()?;
        let progress = Progress::new(points.len() as u64, "runs");
        let mut rows: Vec<Comparison> = Vec::new();
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
        if !self.json {
            print_for_people(&mut io::stdout().lock(), &rows)?;
        }
        measured.map(|()| Verdict::Holds)
    }

    /// Every protocol in both variants where all are wanted, each once, in the order in which they are named.
    fn contenders(&self) -> Vec<Contender> {
        let every = ProtocolName::locks().flat_map(|protocol| {
            Variant::ALL.into_iter().rev().map(move |variant| Contender { protocol, variant })
        });
        let every: Vec<Contender> = every.collect();
        let mut list = Vec::new();
        for item in &self.protocols {
            let named = match item {
                Contenders::All => every.as_slice(),
                Contenders::One(contender) => std::slice::from_ref(contender),
            };
            for contender in named {
                if !list.contains(contender) {
                    list.push(*contender);
                }
            }
        }
        list
    }

    fn points(&self) -> Result<Vec<PointConfig>, BadParameters> {
        let quorum = self.replicas.quorum_or_default()?;
        let mut points = Vec::new();
        for clients in &self.clients {
            for Contender { protocol, variant } in self.contenders() {
                let subject = Subject::new(protocol, variant, quorum);
                let load = Load::Clients(clients.get());
                let mut point = PointConfig::new(subject, self.latency, load, self.seed);
                point.inside = Length::Constant(self.cs);
                (point.warmup, point.duration) = (self.warmup, self.duration);
                points.push(point);
            }
        }
        super::sweep::refuse(&points)?;
        Ok(points)
    }
}

fn measure(point: &PointConfig) -> Result<Comparison, BadParameters> {
    compare(point).map_err(|why| BadParameters(why.to_string()))
}

fn print_for_people(out: &mut dyn Write, rows: &[Comparison]) -> io::Result<()> {
    for (index, level) in rows.chunk_by(|a, b| a.clients == b.clients).enumerate() {
        let clients = level.first().map_or(0, |row| row.clients);
        let blank = if index == 0 { "" } else { "\n" };
        writeln!(out, "{blank}{}", crate::words::count(clients as u64, "client"))?;
        let mut table = Table::new([
            ("protocol", Align::Left),
            ("variant", Align::Left),
            ("entries/s", Align::Right),
            ("messages/entry", Align::Right),
            ("bytes/entry", Align::Right),
            ("wait p50", Align::Right),
            ("wait p99", Align::Right),
            ("hand-off", Align::Right),
            ("fairness", Align::Right),
            ("violations", Align::Right),
        ]);
        for row in level {
            table.row([
                row.protocol.to_owned(),
                row.variant.to_owned(),
                row.throughput_per_s
                    .map_or_else(|| "stopped".to_owned(), |rate| format!("{rate:.2}")),
                or_dash(row.messages_per_entry, 1),
                or_dash(row.bytes_per_entry, 0),
                seconds(row.wait_p50_ms),
                seconds(row.wait_p99_ms),
                or_dash(row.hand_off_delays, 2),
                or_dash(row.fairness, 3),
                row.violations.to_string(),
            ]);
        }
        table.print(out)?;
        for row in level {
            if let Some(why) = &row.stopped {
                writeln!(out, "{} {}: {why}", row.variant, row.protocol)?;
            }
        }
    }
    writeln!(
        out,
        "\nhand-off: mean one-way delays from leaving to the next entry. fairness: Jain's index"
    )
}
