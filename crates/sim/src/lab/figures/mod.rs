//! The figures of the Sigma paper: from runs to tables, charts and a page that says what to see in them.
//!
//! ```text
//!   Figures::new ── runs ──► (measured anywhere, in any order) ── samples ──► Figures::files
//! ```
//!
//! Every figure is a file: which runs it needs, and what it makes of their samples. Figures share runs.
//! Nothing here knows threads or files, so whoever measures decides about both, and the result is a
//! function of the setting alone.

pub(crate) mod chart;
mod fig2;
mod fig3;
mod fig7;
mod fig8;
mod grid;
mod messages;
mod page;

use std::fmt;
use std::str::FromStr;

use sigmalock_core::Span;
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::parts::quorum::QuorumError;

pub use self::grid::{Run, Sample};

/// The figures there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureName {
    /// The odds that resets break exclusion.
    SigmaFig2,
    /// Throughput of the strawman.
    SigmaFig3,
    /// Throughput of Sigma.
    SigmaFig7,
    /// Throughput while replicas forget.
    SigmaFig8,
    /// What an entry costs.
    SigmaMessages,
}

impl FigureName {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::SigmaFig2, Self::SigmaFig3, Self::SigmaFig7, Self::SigmaFig8, Self::SigmaMessages];

    /// The name as commands and files spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SigmaFig2 => "sigma-fig2",
            Self::SigmaFig3 => "sigma-fig3",
            Self::SigmaFig7 => "sigma-fig7",
            Self::SigmaFig8 => "sigma-fig8",
            Self::SigmaMessages => "sigma-messages",
        }
    }
}

impl fmt::Display for FigureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such figure; there are: {}", FigureName::ALL.map(FigureName::as_str).join(", "))]
pub struct UnknownFigure;

impl FromStr for FigureName {
    type Err = UnknownFigure;
    fn from_str(text: &str) -> Result<Self, UnknownFigure> {
        Self::ALL.into_iter().find(|name| name.as_str() == text).ok_or(UnknownFigure)
    }
}

/// How thoroughly, and from which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Shorter runs at fewer points: for a first look.
    pub quick: bool,
    /// Where all random numbers come from.
    pub seed: u64,
}

impl Setting {
    /// How long runs warm up, and how long they are measured: five and ten minutes, as in the paper.
    fn times(self) -> (Span, Span) {
        let minutes = |minutes: u64| Span::from_secs(60 * minutes);
        if self.quick { (minutes(2), minutes(2)) } else { (minutes(5), minutes(10)) }
    }
}

/// Whether what the paper says is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Holds,
    /// It is, under a condition that the paper does not make.
    HoldsIf,
    /// It is not.
    DoesNot,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsIf => "holds if",
            Self::DoesNot => "does not hold",
        }
    }
}

/// A figure with all that is said about it.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Which.
    pub name: FigureName,
    /// What it shows.
    pub title: &'static str,
    /// Its numbers, a row a point.
    pub csv: String,
    /// Its drawing.
    pub svg: String,
    /// What to look at.
    pub see: String,
    /// What the paper says.
    pub claim: &'static str,
    /// Whether that is so.
    pub verdict: Verdict,
    /// How far, in numbers.
    pub because: String,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Some figures, and the runs that they need.
#[derive(Debug)]
pub struct Figures {
    names: Vec<FigureName>,
    setting: Setting,
    quorum: Quorum,
    runs: Vec<Run>,
}

impl Figures {
    /// These figures, each once, in the order of the paper.
    pub fn new(names: &[FigureName], setting: Setting) -> Result<Self, QuorumError> {
        let quorum = Quorum::new(grid::N, grid::M)?;
        let names: Vec<_> =
            FigureName::ALL.into_iter().filter(|name| names.contains(name)).collect();
        let mut runs: Vec<Run> = Vec::new();
        for run in names.iter().flat_map(|name| needed(*name, setting, quorum)) {
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        // The longest first, so that no thread begins one when all others are done.
        runs.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
        Ok(Self { names, setting, quorum, runs })
    }

    /// What must be measured.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// What the samples of all runs, in their order, show.
    #[must_use]
    pub fn draw(&self, samples: &[Sample]) -> Vec<Figure> {
        let samples =
            Samples { runs: &self.runs, samples, setting: self.setting, quorum: self.quorum };
        let draw = |name: &FigureName| match name {
            FigureName::SigmaFig2 => fig2::draw(),
            FigureName::SigmaFig3 => fig3::draw(&samples),
            FigureName::SigmaFig7 => fig7::draw(&samples),
            FigureName::SigmaFig8 => fig8::draw(&samples),
            FigureName::SigmaMessages => messages::draw(&samples),
        };
        self.names.iter().map(draw).collect()
    }

    /// All files: a table and a drawing of each figure, and the page.
    #[must_use]
    pub fn files(&self, figures: &[Figure]) -> Vec<File> {
        let mut files = Vec::new();
        for figure in figures {
            files.push(File { name: format!("{}.csv", figure.name), text: figure.csv.clone() });
            files.push(File { name: format!("{}.svg", figure.name), text: figure.svg.clone() });
        }
        files
            .push(File { name: "index.html".to_owned(), text: page::write(figures, self.setting) });
        files
    }
}

fn needed(name: FigureName, setting: Setting, quorum: Quorum) -> Vec<Run> {
    match name {
        FigureName::SigmaFig2 => Vec::new(),
        FigureName::SigmaFig3 => fig3::runs(setting, quorum),
        FigureName::SigmaFig7 => fig7::runs(setting, quorum),
        FigureName::SigmaFig8 => fig8::runs(setting, quorum),
        FigureName::SigmaMessages => messages::runs(setting, quorum),
    }
}

/// All that was measured.
struct Samples<'a> {
    runs: &'a [Run],
    samples: &'a [Sample],
    setting: Setting,
    quorum: Quorum,
}

impl Samples<'_> {
    /// Those of some runs, in their order.
    fn of(&self, runs: Vec<Run>) -> Vec<(Run, &Sample)> {
        let sample = |run: &Run| {
            let place = self.runs.iter().position(|known| known == run)?;
            self.samples.get(place)
        };
        runs.into_iter().filter_map(|run| sample(&run).map(|sample| (run, sample))).collect()
    }
}

/// Rows under a heading, as a file.
fn csv(heading: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("{heading}\n");
    for row in rows {
        text.push_str(&row.join(","));
        text.push('\n');
    }
    text
}

/// A number as files have it: no more than four digits behind the point.
fn number(value: f64) -> String {
    let value = (value * 1e4).round() / 1e4;
    // There is no minus zero in a table.
    (value + 0.0).to_string()
}

/// The same, or nothing.
fn maybe(value: Option<f64>) -> String {
    value.map(number).unwrap_or_default()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_as_it_is_written_and_the_error_lists_them_all() {
        for name in FigureName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            assert!(UnknownFigure.to_string().contains(name.as_str()));
        }
        assert_eq!("fig2".parse::<FigureName>(), Err(UnknownFigure));
    }

    #[test]
    fn figures_share_their_runs() {
        let setting = Setting { quick: true, seed: 1 };
        let count = |names: &[FigureName]| Figures::new(names, setting).unwrap().runs().len();
        let seven = count(&[FigureName::SigmaFig7]);
        let both = count(&[FigureName::SigmaMessages, FigureName::SigmaFig7]);
        assert!(seven > 0 && both == seven, "{seven}, {both}");
        assert_eq!(count(&[FigureName::SigmaFig2]), 0);
    }

    #[test]
    fn numbers_are_short_and_plain() {
        assert_eq!(number(4.870_04), "4.87");
        assert_eq!(number(-0.000_01), "0");
        assert_eq!((maybe(None), maybe(Some(2.0))), (String::new(), "2".to_owned()));
    }
}
