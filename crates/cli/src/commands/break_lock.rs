//! `break`: puts a holder out.

use clap::Args;
use sigmalock_core::Name;

use crate::args;
use crate::outcome::{Verdict, after_help};
use crate::reach::{Peer, not_done};

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
        let name = self.name.as_str();
        if !self.yes && !self.is_meant()? {
            return Err(anyhow::anyhow!("{name}: left as it is"));
        }
        let broken = super::block_on(async {
            let client = self.peer.connect().await?;
            client.break_lock(name).await.map_err(|error| not_done(error).context(name.to_owned()))
        })?;
        if self.json {
            super::print_json(&broken)?;
        } else {
            let who = if broken.label.is_empty() { "whoever was inside" } else { &broken.label };
            super::print(&format!("{name}: {who} at {} was told to leave\n", broken.peer))?;
        }
        Ok(Verdict::Holds)
    }

    fn is_meant(&self) -> anyhow::Result<bool> {
        let risk = format!(
            "The holder of {} is told to leave; the lock passes on when it has, or when its lease ends.\n",
            self.name.as_str()
        );
        let unasked = "break interrupts whoever holds the lock: say --yes if that is meant";
        super::confirm(&risk, "Break it?", unasked)
    }
}
