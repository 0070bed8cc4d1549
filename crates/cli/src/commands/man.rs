//! `man`: the man pages.

use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::outcome::{Failure, Verdict, after_help};

/// Writes the man pages, one per command
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Man {
    /// Where to, a directory, which is made if it is missing; without it, the page of `sigmalock` itself goes to stdout
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

const EXAMPLES: &str = "  \
  sigmalock man | man -l -
  sigmalock man ~/.local/share/man/man1";

impl Man {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        match &self.dir {
            Some(dir) => {
                let made = match std::fs::create_dir(dir) {
                    Err(_) if dir.is_dir() => Ok(()),
                    // Only the last is made: what is above it was perhaps not meant.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        let above = dir.parent().unwrap_or(dir).display();
                        return Err(Failure::usage(format!("there is no directory {above}")).into());
                    }
                    made => made,
                };
                let written = made.and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
                written.with_context(|| dir.display().to_string())?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(Cli::command()).render(&mut page)?;
                super::print(&String::from_utf8_lossy(&page))?;
            }
        }
        Ok(Verdict::Holds)
    }
}
