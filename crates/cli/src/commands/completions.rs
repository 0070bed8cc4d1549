//! `completions`: what a shell needs to complete command lines.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::outcome::{Verdict, after_help};

/// Prints completions for a shell
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "  \
  sigmalock completions bash > ~/.local/share/bash-completion/completions/sigmalock
  sigmalock completions fish > ~/.config/fish/completions/sigmalock.fish";

impl Completions {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        // Into memory first: the generator panics where writing fails.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "sigmalock", &mut script);
        super::print(&String::from_utf8_lossy(&script))?;
        Ok(Verdict::Holds)
    }
}
