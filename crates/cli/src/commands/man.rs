//! `man`: the man pages.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::outcome::{Verdict, after_help};

/// Writes the man pages, one per command
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Man {
    /// Where to, a directory; without it, the page of `sigmalock` itself goes to stdout
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
                let written = std::fs::create_dir_all(dir)
                    .and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
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
