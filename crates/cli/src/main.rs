//! The `sigmalock` command.

mod args;
mod lab;
mod outcome;
mod parallel;
mod progress;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match args::Cli::try_parse() {
        Ok(cli) => outcome::report(cli.run()),
        Err(error) => outcome::report_usage(&error),
    }
}
