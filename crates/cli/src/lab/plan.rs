//! `lab plan`: how many replicas a lock needs.

use std::io::{self, Write};

use clap::Args;
use sigmalock_core::Span;
use sigmalock_protocols::parts::Quorum;
use sigmalock_sim::lab::plan::{Odds, PEERS_MAX, PlanError, Swarm};

use crate::args::{self, Replicas};
use crate::outcome::{BadParameters, Verdict, after_lab_help};
use crate::table::{Align, Table};
use crate::words;

/// Says how many replicas a lock needs, or how safe a choice is
///
/// Peers live for a time T on average and then lose their memory; a client holds the lock for a time t.
/// Given a target, the command chooses the smallest n, with m leaving a quarter of the replicas to be
/// down; given --n and --m, it says what they are worth; given both, also for how long the lock may be held.
///
/// Two clients are inside at once if 2m − n of the holder's votes are forgotten in that time. It counts
/// peers, not replicas: replicas are hashed onto peers, some share one, and those forget together. The odds
/// are bounds, for hosts that vote again at once after they forgot; ours abstain instead.
#[derive(Debug, Args)]
#[command(after_help = after_lab_help(EXAMPLES))]
#[command(mut_arg("n", |n| n.help("n, the replicas that guard the lock [default: the fewest that meet the target]")))]
#[command(mut_arg("m", |m| m.help("m, the votes that hold it: more than half of n [default: all but a quarter of n]")))]
pub(crate) struct Plan {
    /// T, how long a peer lives on average
    #[arg(long, value_name = "DUR", default_value = "10000s", value_parser = args::positive_span)]
    #[arg(allow_hyphen_values = true)]
    life: Span,
    /// t, for how long the lock is held at most: a lease
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = args::positive_span)]
    #[arg(allow_hyphen_values = true)]
    hold: Span,
    /// How many peers there are
    #[arg(long, value_name = "N", default_value = "1000", value_parser = peers)]
    #[arg(allow_hyphen_values = true)]
    peers: usize,
    /// The probability of two inside at once that is small enough, such as 1e-9
    #[arg(long, value_name = "P", value_parser = target, allow_hyphen_values = true)]
    target: Option<f64>,
    /// The same as a number of nines: 9 is 1e-9
    #[arg(long, value_name = "K", value_parser = nines, conflicts_with = "target")]
    #[arg(allow_hyphen_values = true)]
    nines: Option<f64>,
    #[command(flatten)]
    replicas: Replicas,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lab plan --peers 1000 --life 10000s --hold 10s --nines 9
  sigmalock lab plan --peers 50 --life 1d --hold 15s --target 1e-6 --json
  sigmalock lab plan --n 32 --m 24 --peers 10000
  sigmalock lab plan --n 9 --m 6 --peers 20 --target 1e-4";

fn peers(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=PEERS_MAX).contains(count));
    count.ok_or_else(|| format!("this should be a whole number between 1 and {PEERS_MAX}"))
}

fn target(text: &str) -> Result<f64, String> {
    let target = text.parse().ok().filter(|target| *target > 0.0 && *target < 1.0);
    target.ok_or_else(|| "a target is a probability above 0 and below 1, such as 1e-9".to_owned())
}

/// More nines than this are no probability that a number can hold.
const NINES_MAX: f64 = 300.0;

fn nines(text: &str) -> Result<f64, String> {
    let nines = text.parse().ok().filter(|nines| *nines > 0.0 && *nines <= NINES_MAX);
    nines
        .map(|nines: f64| 10f64.powf(-nines))
        .ok_or_else(|| format!("this should be a number above 0 and at most {NINES_MAX}"))
}

impl Plan {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let swarm = Swarm::new(self.life, self.hold, self.peers).map_err(|why| bad(&why))?;
        let target = self.target.or(self.nines);
        let odds = match (self.replicas.quorum()?, target) {
            (Some(quorum), _) => swarm.odds(quorum),
            (None, Some(target)) => match swarm.choose(target) {
                Ok(odds) => odds,
                Err(why @ PlanError::OutOfReach { .. }) => return Err(why.into()),
                Err(why) => return Err(bad(&why).into()),
            },
            (None, None) => {
                let why = "either --target P (or --nines K) or --n N --m M is needed";
                return Err(BadParameters(why.to_owned()).into());
            }
        };
        let row = swarm.row(&odds, target);
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&row)?)?;
        } else {
            self.print_for_people(&mut out, &swarm, &odds, target)?;
        }
        Ok(if row.met == Some(false) { Verdict::Violated } else { Verdict::Holds })
    }

    fn print_for_people(
        &self, out: &mut dyn Write, swarm: &Swarm, odds: &Odds, target: Option<f64>,
    ) -> io::Result<()> {
        let quorum: Quorum = odds.quorum;
        let (n, m, k) = (quorum.n(), quorum.m(), quorum.overlap());
        writeln!(
            out,
            "n = {n}, m = {m}: {} may be down, and {k} forgotten votes let a second client in",
            words::count((n - m) as u64, "replica")
        )?;
        let mut table = Table::new([
            ("two inside at once", Align::Left),
            ("any k of n (Figure 2)", Align::Right),
            ("k of the holder's m", Align::Right),
        ]);
        let each = "every replica on a peer of its own".to_owned();
        table.row([each, odd(odds.figure_2_log10), odd(odds.tighter_log10)]);
        let hashed = format!("replicas hashed onto {} peers", self.peers);
        table.row([hashed, odd(odds.hashed_figure_2_log10), odd(odds.hashed_log10)]);
        table.print(out)?;
        writeln!(
            out,
            "per holding of {}, with peers that live {} on average; the last number is the one to go by",
            self.hold, self.life
        )?;
        let Some(target) = target else { return Ok(()) };
        let met = odds.hashed_log10 <= target.log10();
        let longest = swarm.longest_hold(quorum, target).map(about);
        let verdict = match (met, longest) {
            (true, Some(hold)) => format!("is met, also if the lock is held for up to {hold}"),
            (true, None) => "is met".to_owned(),
            (false, Some(hold)) => {
                format!("is NOT met; it is if the lock is held for up to {hold}")
            }
            (false, None) => "is NOT met, however briefly the lock is held".to_owned(),
        };
        writeln!(out, "the target of {} {verdict}", odd(target.log10()))
    }
}

fn bad(why: &PlanError) -> BadParameters {
    BadParameters(why.to_string())
}

/// 1.2e-34, also where no number can hold it.
fn odd(log10: f64) -> String {
    if log10 == f64::NEG_INFINITY {
        return "0".to_owned();
    }
    let exponent = log10.floor();
    let digits = format!("{:.1}", 10f64.powf(log10 - exponent));
    // Rounding may reach the next power.
    if digits == "10.0" {
        format!("1.0e{}", exponent + 1.0)
    } else {
        format!("{digits}e{exponent}")
    }
}

fn about(span: Span) -> String {
    words::time(std::time::Duration::from_micros(span.as_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_written_as_people_write_them() {
        assert_eq!(odd(6.0e-40_f64.log10()), "6.0e-40");
        assert_eq!(odd(-400.0), "1.0e-400");
        assert_eq!(odd(9.96e-5_f64.log10()), "1.0e-4");
        assert_eq!(odd(0.0), "1.0e0");
    }
}
