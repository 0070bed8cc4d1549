//! `lab figures`: the figures of the paper, as tables, drawings and a page.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use sigmalock_sim::lab::figures::{Figure, FigureName, Figures, Sample, Setting};
use sigmalock_sim::lab::parallel::in_parallel;

use crate::args::{self, Jobs};
use crate::outcome::{Verdict, after_lab_help, complain};
use crate::progress::Progress;
use crate::table::{Align, Table};

/// Draws the figures of the Sigma paper, and says of each claim whether it holds
///
/// Writes NAME.csv and NAME.svg for each figure, and index.html with all of them, what to see, what the
/// paper says, a verdict computed from the data, and the command to do it again. The same seed gives the
/// same bytes, whatever the number of jobs. A verdict is a result, not a failure: the exit code is 0.
#[derive(Debug, Args)]
#[command(name = "figures", after_help = after_lab_help(EXAMPLES))]
pub(crate) struct FiguresCommand {
    /// Where the files go; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Only these figures: sigma-fig2, sigma-fig3, sigma-fig7, sigma-fig8, sigma-messages
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    only: Vec<FigureName>,
    /// Shorter runs at fewer points: less than a minute instead of several
    #[arg(long)]
    quick: bool,
    /// The seed of all that is random
    #[arg(long, value_name = "S", default_value = "1", value_parser = args::seed)]
    #[arg(allow_hyphen_values = true)]
    seed: u64,
    #[command(flatten)]
    jobs: Jobs,
    /// One JSON object per figure, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lab figures --quick --out out
  sigmalock lab figures --only sigma-fig7,sigma-fig8 --seed 2 --out figures
  sigmalock lab figures --only sigma-fig2 --json";

/// A line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    figure: &'a str,
    verdict: &'a str,
    because: &'a str,
    csv: String,
    svg: String,
}

impl FiguresCommand {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let all = FigureName::ALL.as_slice();
        let names = if self.only.is_empty() { all } else { &self.only };
        let figures = Figures::new(names, Setting { quick: self.quick, seed: self.seed })?;
        // Nobody wants to hear after minutes that nothing can be written.
        fs::create_dir_all(&self.out).with_context(|| cannot_write(&self.out))?;
        let runs = figures.runs();
        let progress = Progress::new(runs.len() as u64, "runs");
        let mut samples: Vec<Sample> = Vec::with_capacity(runs.len());
        in_parallel(
            runs,
            self.jobs.count(),
            |run| run.measure(),
            |sample| {
                progress.step();
                samples.push(sample?);
                anyhow::Ok(())
            },
        )?;
        let elapsed = progress.elapsed();
        drop(progress);
        let drawn = figures.draw(&samples);
        for file in figures.files(&drawn) {
            let path = self.out.join(&file.name);
            fs::write(&path, &file.text).with_context(|| cannot_write(&path))?;
        }
        self.tell(&mut io::stdout().lock(), &drawn)?;
        if !self.json {
            complain(format_args!("{:.1} s", elapsed.as_secs_f64()));
        }
        Ok(Verdict::Holds)
    }

    fn tell(&self, out: &mut dyn Write, figures: &[Figure]) -> anyhow::Result<()> {
        let path =
            |name: &str, ending| self.out.join(format!("{name}.{ending}")).display().to_string();
        if self.json {
            for figure in figures {
                let name = figure.name.as_str();
                let (csv, svg) = (path(name, "csv"), path(name, "svg"));
                let (verdict, because) = (figure.verdict.as_str(), figure.because.as_str());
                let line = Line { figure: name, verdict, because, csv, svg };
                writeln!(out, "{}", serde_json::to_string(&line)?)?;
            }
            return Ok(());
        }
        let mut table = Table::new([
            ("figure", Align::Left),
            ("shows", Align::Left),
            ("what the paper says", Align::Left),
        ]);
        for Figure { name, title, verdict, .. } in figures {
            table.row([name.to_string(), (*title).to_owned(), verdict.as_str().to_owned()]);
        }
        table.print(out)?;
        writeln!(out, "the figures, and why: {}", path("index", "html"))?;
        Ok(())
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
