//! A named command, timed, with the line that repeats it.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::skipped::{self, Skipped};

/// One thing that must succeed.
pub(crate) struct Step {
    name: String,
    line: String,
    environment: Vec<(&'static str, String)>,
}

impl Step {
    /// `line` is split at white space; nothing in it is quoted.
    pub(crate) fn new(name: impl Into<String>, line: impl Into<String>) -> Self {
        Self { name: name.into(), line: line.into(), environment: Vec::new() }
    }

    /// With an environment variable set.
    pub(crate) fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((key, value.into()));
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(&self) -> Result<()> {
        eprintln!("\n── {} ── {self}", self.name);
        let status = self.command()?.status().with_context(|| format!("cannot start `{self}`"))?;
        self.judge(status)
    }

    /// The same, and of tests which were skipped.
    fn run_and_hear(&self, skipped: &mut Skipped) -> Result<()> {
        if !self.line.contains(skipped::SHOW) {
            return self.run();
        }
        eprintln!("\n── {} ── {self}", self.name);
        let child = self.command()?.stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start `{self}`"))?;
        let said = child.stdout.take().context("a pipe")?;
        for line in BufReader::new(said).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            if skipped.hear(&line) {
                println!("{line}");
            }
        }
        self.judge(child.wait()?)
    }

    fn judge(&self, status: ExitStatus) -> Result<()> {
        if !status.success() {
            bail!("step `{}` failed ({status}); to repeat it:\n  {self}", self.name);
        }
        Ok(())
    }

    fn command(&self) -> Result<Command> {
        let mut words = self.line.split_whitespace();
        let mut command = Command::new(words.next().context("an empty command line")?);
        command.args(words).envs(self.environment.iter().cloned());
        Ok(command)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.environment {
            write!(f, "{key}='{value}' ")?;
        }
        f.write_str(&self.line)
    }
}

/// Runs steps until one fails, then says how long each took, and what was not tested, beside what was `skipped` already.
pub(crate) fn run_all(steps: &[Step], mut skipped: Skipped) -> Result<()> {
    let begin = Instant::now();
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut outcome = Ok(());
    for step in steps {
        let begin = Instant::now();
        outcome = step.run_and_hear(&mut skipped);
        times.push((&step.name, begin.elapsed()));
        if outcome.is_err() {
            break;
        }
    }
    eprintln!();
    let width = steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
    for (index, (name, elapsed)) in times.iter().enumerate() {
        let failed = outcome.is_err() && index + 1 == times.len();
        let verdict = if failed { "FAILED" } else { "ok" };
        eprintln!("  {name:width$}  {:>6.1} s  {verdict}", elapsed.as_secs_f64());
    }
    for step in &steps[times.len()..] {
        eprintln!("  {:width$}  {:>8}  not run", step.name, "");
    }
    if skipped.count() > 0 {
        eprintln!("\n{} tests TESTED NOTHING:", skipped.count());
        skipped.lines().for_each(|line| eprintln!("{line}"));
    }
    if outcome.is_ok() {
        let but = if skipped.count() > 0 { ", except for what they did not test" } else { "" };
        let seconds = begin.elapsed().as_secs_f64();
        eprintln!("all {} steps passed in {seconds:.0} s{but}", times.len());
    }
    outcome
}
