//! Developer commands: `cargo xtask` without arguments lists them.

mod skipped;
mod step;
mod suite;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use suite::Extent;

const USAGE: &str = "\
cargo xtask COMMAND

  test [--quick | --long]
                   everything that must hold: format, lints, documentation, tests, fixed-seed simulation
                   (--quick leaves the simulation out, --long has many more seeds and takes hours)
  bench            messages per second that the simulator delivers on one core
  bless            write the scenario transcripts anew, to be read and committed
  figures          draw docs/figures anew: the figures of the papers, minutes of simulation";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent")?;
    std::env::set_current_dir(root).with_context(|| format!("cannot enter {}", root.display()))?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => suite::test(Extent::Ordinary),
        ["test", "--quick"] => suite::test(Extent::Quick),
        ["test", "--long"] => suite::test(Extent::Long),
        ["bench"] => suite::bench(),
        ["bless"] => suite::bless(),
        ["figures"] => suite::figures(),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("there is no command `{}`\n\n{USAGE}", arguments.join(" ")),
    }
}
