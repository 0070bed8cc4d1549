//! `lab torture`: many seeds, every fault, every oracle.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Args;
use indicatif::HumanCount;
use serde::Serialize;
use sigmalock_core::Span;
use sigmalock_protocols::catalogue::ProtocolName;
use sigmalock_protocols::parts::Quorum;
use sigmalock_sim::lab::torture::{Failure, TortureReport, Victim, torture};

use super::victim::VictimFlags;
use crate::args::{Protocols, SeedRuns};
use crate::outcome::{Verdict, after_lab_help, complain};
use crate::progress::Progress;
use crate::table::{Align, Table};

/// Runs a protocol under mixed faults, one run per seed, and lets every oracle look
///
/// Each seed decides delays, loss, duplicates, partitions, crashes, resets, pauses, clock errors and
/// what the clients do; then everything heals, and everybody must get on. The same seed gives the
/// same history, whatever the number of jobs. The first violation ends the command with exit code 1
/// and prints the line that replays it.
#[derive(Debug, Args)]
#[command(after_help = after_lab_help(EXAMPLES))]
pub(crate) struct Torture {
    /// Protocols, or `all`
    #[arg(long, value_name = "P[,P…]", default_value = "all", value_delimiter = ',')]
    protocol: Vec<Protocols>,
    #[command(flatten)]
    victim: VictimFlags,
    #[command(flatten)]
    runs: SeedRuns,
    /// Run all seeds, whatever the first ones show; the first 100 that violate something are told
    #[arg(long)]
    keep_going: bool,
    /// One JSON object per violated seed (of each protocol the first 100) and per protocol, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lab torture --protocol sigma --seeds 0..10000
  sigmalock lab torture --protocol all --n 5 --m 3 --seeds 0..2000 --jobs 2
  sigmalock lab torture --protocol sigma --agents --seeds 0..1000
  sigmalock lab torture --protocol sigma --modes --seeds 0..1000
  sigmalock lab torture --protocol sigma --membership agreed --seeds 0..1000
  sigmalock lab torture --protocol views --seeds 0..1000
  sigmalock lab torture --protocol sigma --mutant grants-twice --seeds 0..100";

impl Torture {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let mut protocols = Protocols::list(&self.protocol);
        // Of all protocols, those that can.
        let can = |protocol: &ProtocolName| self.victim.suits(*protocol, &self.runs.replicas);
        if protocols.iter().any(can) {
            protocols.retain(can);
        }
        let victim = |protocol| self.victim.victim(protocol, &self.runs.replicas);
        let victims: Vec<Victim> =
            protocols.iter().map(|protocol| victim(*protocol)).collect::<Result<_, _>>()?;
        let SeedRuns { seeds, jobs, .. } = &self.runs;
        let progress =
            Progress::new((seeds.end - seeds.start).saturating_mul(victims.len() as u64), "seeds");
        let mut reports = Vec::new();
        for victim in &victims {
            progress.say(victim.protocol.as_str());
            let (seeds, jobs) = (seeds.clone(), jobs.count());
            let report = torture(victim, seeds, jobs, &|_| progress.step(), !self.keep_going);
            let failed = report.failed > 0;
            reports.push((victim, report));
            if failed && !self.keep_going {
                break;
            }
        }
        let elapsed = progress.elapsed();
        drop(progress);
        let mut out = io::stdout().lock();
        if self.json {
            reports.iter().try_for_each(|(victim, report)| print_json(&mut out, victim, report))?;
        } else {
            print_for_people(&mut out, &reports)?;
            complain(format_args!("{:.1} s", elapsed.as_secs_f64()));
        }
        let failed = reports.iter().any(|(_, report)| report.failed > 0);
        Ok(if failed { Verdict::Violated } else { Verdict::Holds })
    }
}

fn print_for_people(out: &mut dyn Write, reports: &[(&Victim, TortureReport)]) -> io::Result<()> {
    let mut table = Table::new([
        ("protocol", Align::Left),
        ("variant", Align::Left),
        ("replicas", Align::Left),
        ("seeds", Align::Right),
        ("simulated", Align::Right),
        ("entries", Align::Right),
        ("messages", Align::Right),
        ("faults", Align::Right),
        ("violated", Align::Right),
    ]);
    let mut faults: BTreeMap<&str, u64> = BTreeMap::new();
    for (victim, report) in reports {
        report.faults.iter().for_each(|(kind, n)| *faults.entry(*kind).or_default() += n);
        table.row([
            victim.protocol.to_string(),
            victim.variant.to_string(),
            victim.quorum.map_or_else(|| "drawn".to_owned(), |q| format!("{}/{}", q.n(), q.m())),
            HumanCount(report.seeds).to_string(),
            rounded(report.simulated),
            HumanCount(report.entries).to_string(),
            HumanCount(report.delivered).to_string(),
            HumanCount(report.faults.values().sum()).to_string(),
            HumanCount(report.failed).to_string(),
        ]);
    }
    table.print(out)?;
    if !faults.is_empty() {
        let kinds: Vec<String> =
            faults.iter().map(|(kind, n)| format!("{} {kind}", HumanCount(*n))).collect();
        writeln!(out, "faults: {}", kinds.join(", "))?;
    }
    for (victim, report) in reports {
        report.failures.iter().try_for_each(|failure| print_failure(out, failure))?;
        let more = report.failed - report.failures.len() as u64;
        if more > 0 {
            writeln!(out, "\n… and {} more seeds of {}", HumanCount(more), victim.protocol)?;
        }
    }
    Ok(())
}

fn print_failure(out: &mut dyn Write, failure: &Failure) -> io::Result<()> {
    writeln!(out, "\nseed {}:", failure.seed)?;
    for violation in &failure.violations {
        let at = violation.at.0 as f64 / 1e6;
        writeln!(out, "  {at:.6} s  {}: {}", violation.oracle, violation.sentence)?;
    }
    writeln!(out, "  replay: {}", failure.replay)?;
    writeln!(out, "  trace: {}", failure.trace)
}

/// In a unit in which it does not look like nothing.
fn rounded(span: Span) -> String {
    match span.as_secs_f64() {
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7_200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    Violation {
        protocol: &'a str,
        variant: &'a str,
        mutant: Option<&'a str>,
        agents: bool,
        modes: bool,
        seed: u64,
        replay: &'a str,
        violations: Vec<Objection<'a>>,
    },
    Summary {
        protocol: &'a str,
        variant: &'a str,
        mutant: Option<&'a str>,
        agents: bool,
        modes: bool,
        n: Option<usize>,
        m: Option<usize>,
        seeds: u64,
        seeds_violated: u64,
        simulated_s: f64,
        entries: u64,
        messages: u64,
        faults: &'a BTreeMap<&'static str, u64>,
        notes: &'a BTreeMap<String, u64>,
        digest: String,
    },
}

#[derive(Serialize)]
struct Objection<'a> {
    oracle: &'a str,
    at_s: f64,
    sentence: &'a str,
}

fn print_json(out: &mut dyn Write, victim: &Victim, report: &TortureReport) -> anyhow::Result<()> {
    let (protocol, variant) = (victim.protocol.as_str(), victim.variant.as_str());
    let mutant = victim.mutant.map(|mutant| mutant.name);
    let (agents, modes) = (victim.has_agents(), victim.has_modes());
    for Failure { seed, replay, violations, .. } in &report.failures {
        let violations = violations.iter().map(|v| Objection {
            oracle: v.oracle,
            at_s: v.at.0 as f64 / 1e6,
            sentence: &v.sentence,
        });
        let violations = violations.collect();
        let line = Line::Violation {
            protocol,
            variant,
            mutant,
            agents,
            modes,
            seed: *seed,
            replay,
            violations,
        };
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    }
    let line = Line::Summary {
        protocol,
        variant,
        mutant,
        agents,
        modes,
        n: victim.quorum.map(Quorum::n),
        m: victim.quorum.map(Quorum::m),
        seeds: report.seeds,
        seeds_violated: report.failed,
        simulated_s: report.simulated.as_secs_f64(),
        entries: report.entries,
        messages: report.delivered,
        faults: &report.faults,
        notes: &report.notes,
        digest: format!("{:016x}", report.digest),
    };
    writeln!(out, "{}", serde_json::to_string(&line)?)?;
    Ok(())
}
