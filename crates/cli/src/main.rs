//! The `sigmalock` command.

mod acquire;
mod addresses;
mod args;
mod cli;
mod commands;
mod config;
mod holder;
mod inside;
mod known;
mod lab;
mod outcome;
mod process;
mod progress;
mod reach;
mod swarm;
mod table;
mod words;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// The system's allocator keeps what a peer has given back, and a peer runs for months: after many names, or many
/// programs, were there once, it would look for ever as if they still were.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match config::parse() {
        Ok(cli) => outcome::report(cli.run()),
        Err(config::Unusable::Line(error)) => outcome::report_usage(&error),
        Err(config::Unusable::File(failure)) => outcome::report(Err(failure.into())),
    }
}
