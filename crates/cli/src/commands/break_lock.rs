//! `break`: puts a holder out.

use std::fmt::Write;

use clap::Args;
use sigmalock::Client;
use sigmalock_core::Name;

use crate::acquire::{self, Names};
use crate::holder;
use crate::known::Known;
use crate::outcome::{Verdict, after_help, complain};
use crate::reach::{Peer, not_answered, not_done};

/// Puts whoever holds a lock out: an operator's last resort
///
/// The holder is told to leave, as if it had lost the lock, and so are all of several; the lock passes on when they have
/// left or when their leases end. What they were doing is interrupted: `run` ends its command. Of several locks each is
/// broken, whatever becomes of the others; if one of them was not, the exit code is that of the first.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Break {
    /// The lock, or several
    #[arg(value_name = "NAME[,NAME…]", value_parser = acquire::names)]
    names: Names,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    peer: Peer,
    /// One JSON object per lock that was broken, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock break /printer
  sigmalock break /printer,/scanner --yes --json";

const UNASKED: &str = "break interrupts whoever holds the lock: say --yes if that is meant";

impl Break {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        if !self.yes {
            super::a_person(UNASKED)?;
        }
        let mut outcome = Ok(Verdict::Holds);
        let (results, known) = super::block_on(async {
            let client = self.peer.connect().await?;
            let known = Known::of(&client.peers().await.map_err(not_answered)?);
            if !self.yes && !self.is_meant(&client).await? {
                return Err(anyhow::anyhow!("{}: left as it is", self.names.joined()));
            }
            let mut results = Vec::new();
            for name in &self.names.0 {
                results.push((name, client.break_lock(name.as_str()).await));
            }
            anyhow::Ok((results, known))
        })?;
        for (name, result) in results {
            let name: &Name = name;
            match result {
                Ok(broken) if self.json => {
                    let mut shape = serde_json::to_value(&broken)?;
                    shape["name"] = name.as_str().into();
                    super::print_json(&shape)?;
                }
                Ok(broken) => {
                    let peer = known.show(&broken.peer);
                    let who = match broken.label.as_str() {
                        "" => format!("whoever was inside at {peer}"),
                        label => format!("{label} at {peer}"),
                    };
                    let told = match broken.others {
                        0 => format!("{who} was told to leave"),
                        more => format!("{who} and {more} more were told to leave"),
                    };
                    super::print(&format!("{}: {told}\n", name.as_str()))?;
                }
                Err(error) => {
                    let error = not_done(error).context(name.as_str().to_owned());
                    // The last word is for the first that failed.
                    if outcome.is_ok() {
                        outcome = Err(error);
                    } else {
                        complain(format_args!("sigmalock: {error:#}"));
                    }
                }
            }
        }
        outcome
    }

    /// Asks, and says first who would be put out.
    async fn is_meant(&self, client: &Client) -> anyhow::Result<bool> {
        let mut risk = String::new();
        for name in &self.names.0 {
            let holder = holder::of(client, name.as_str()).await;
            let holder = holder.unwrap_or_else(|| "nobody is known to hold it".to_owned());
            let _ = writeln!(risk, "{name}: {holder}.");
        }
        let one = self.names.0.len() == 1;
        let _ = writeln!(
            risk,
            "Whoever is inside is told to leave; {} passes on when they have, or when their leases end.",
            if one { "the lock" } else { "each" }
        );
        super::confirm(&risk, if one { "Break it?" } else { "Break them?" }, UNASKED)
    }
}
