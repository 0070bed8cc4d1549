//! `break`: puts a holder out.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use sigmalock_core::Name;

use crate::args;
use crate::outcome::{Failure, Verdict, after_help};
use crate::reach::{Peer, not_broken};

/// Puts whoever holds a lock out: an operator's last resort
///
/// The holder is told to leave, as if it had lost the lock; the lock passes on when it has left or when its
/// lease ends. What the holder was doing is interrupted: `run` ends its command.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Break {
    /// The lock
    #[arg(value_name = "NAME", value_parser = args::name)]
    name: Name,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    peer: Peer,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock break /printer
  sigmalock break /printer --yes --json";

impl Break {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        if !self.yes && !self.is_meant()? {
            return Err(anyhow::anyhow!("{}: left as it is", self.name.as_str()));
        }
        let broken = super::block_on(async {
            let client = self.peer.connect().await?;
            let broken = client.break_lock(self.name.as_str()).await;
            broken.map_err(|error| not_broken(self.name.as_str(), &error))
        })?;
        if self.json {
            super::print_json(&broken)?;
        } else {
            let who = if broken.label.is_empty() { "whoever was inside" } else { &broken.label };
            let name = self.name.as_str();
            super::print(&format!("{name}: {who} at {} was told to leave\n", broken.peer))?;
        }
        Ok(Verdict::Holds)
    }

    /// Asks the person at the terminal.
    fn is_meant(&self) -> anyhow::Result<bool> {
        if !io::stdin().is_terminal() {
            let sentence = "break interrupts whoever holds the lock: say --yes if that is meant";
            return Err(Failure::usage(sentence).into());
        }
        let mut stderr = io::stderr();
        write!(
            stderr,
            "The holder of {} is told to leave; the lock passes on when it has, or when its lease ends.\n\
             Break it? [y/N] ",
            self.name.as_str()
        )?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}
