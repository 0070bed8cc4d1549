//! `lab protocols`: what there is to know of each protocol and layer.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;
use sigmalock_protocols::catalogue::{Card, Family, LAYERS, ProtocolName};

use crate::outcome::{Verdict, after_lab_help};
use crate::table::{Align, Table};

/// Lists the protocols and layers there are, and what each promises
#[derive(Debug, Args)]
#[command(after_help = after_lab_help(EXAMPLES))]
pub(crate) struct Protocols {
    /// One JSON object per protocol or layer, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lab protocols
  sigmalock lab protocols --json";

/// A line of `--json`.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    family: &'static str,
    about: &'static str,
    source: &'static str,
    variants: Vec<&'static str>,
    memberships: Vec<&'static str>,
    queue: bool,
    tokens: bool,
    modes: bool,
    mutants: Vec<&'static str>,
}

impl Row {
    fn of(card: &Card) -> Self {
        Self {
            name: card.name,
            family: card.family.as_str(),
            about: card.about,
            source: card.source,
            variants: card.variants.iter().map(|variant| variant.as_str()).collect(),
            memberships: card.memberships.iter().map(|kind| kind.as_str()).collect(),
            queue: card.promises.queue,
            tokens: card.promises.tokens,
            modes: card.promises.modes,
            mutants: card.mutants.iter().map(|mutant| mutant.name).collect(),
        }
    }

    fn promises(&self) -> String {
        if self.family != Family::Lock.as_str() {
            return String::new();
        }
        let promises = [(self.queue, "order"), (self.tokens, "tokens"), (self.modes, "sharing")];
        let more = promises.into_iter().filter(|(kept, _)| *kept).map(|(_, what)| what);
        std::iter::once("exclusion").chain(more).collect::<Vec<_>>().join(", ")
    }
}

impl Protocols {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let mut out = io::stdout().lock();
        let cards = ProtocolName::ALL.iter().map(|name| name.card()).chain(LAYERS.iter().copied());
        let rows: Vec<Row> = cards.map(Row::of).collect();
        if self.json {
            for row in &rows {
                writeln!(out, "{}", serde_json::to_string(row)?)?;
            }
        } else {
            print_for_people(&mut out, &rows)?;
        }
        Ok(Verdict::Holds)
    }
}

fn print_for_people(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let mut table = Table::new([
        ("name", Align::Left),
        ("for", Align::Left),
        ("promises", Align::Left),
        ("membership", Align::Left),
        ("rules to break", Align::Right),
        ("what it does", Align::Left),
    ]);
    for row in rows {
        table.row([
            row.name.to_owned(),
            row.family.to_owned(),
            row.promises(),
            row.memberships.join(", "),
            row.mutants.len().to_string(),
            row.about.to_owned(),
        ]);
    }
    table.print(out)
}
