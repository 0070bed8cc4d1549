//! `lock`: holds a lock until told to let go, for scripts and other programs.

use clap::Args;
use serde_json::json;
use sigmalock_core::Name;
use tokio::io::AsyncReadExt;

use crate::acquire::{Held, Wish};
use crate::args;
use crate::outcome::{Failure, Verdict, after_help};
use crate::process::signals::{ENDING, Signals, exit_code};
use crate::process::supervise::Right;
use crate::reach::Peer;

/// Holds a lock until stdin closes or a signal comes
///
/// Prints the fencing token as soon as the lock is held, and `lost` if it is lost. What is read from
/// stdin does not matter, only that it ends. If no peer is running, your own is started in the
/// background.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Lock {
    /// The lock
    #[arg(value_name = "NAME", value_parser = args::name)]
    name: Name,
    #[command(flatten)]
    wish: Wish,
    #[command(flatten)]
    peer: Peer,
    /// One JSON object per event, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lock /printer
  sigmalock lock /printer --wait 1m --json";

impl Lock {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        super::block_on(self.hold())
    }

    async fn hold(&self) -> anyhow::Result<Verdict> {
        let mut signals = Signals::new(&ENDING)?;
        let label = format!("lock ({})", std::process::id());
        let held = async {
            let client = self.peer.connect_or_start(&label, false).await?;
            self.wish.acquire(&client, std::slice::from_ref(&self.name)).await
        };
        let held = tokio::select! {
            held = held => held?,
            signal = signals.next() => return Ok(Verdict::Like(exit_code(signal))),
        };
        let token = held.tokens()[0];
        self.tell("held", &token.to_string(), Some(token))?;
        let verdict = tokio::select! {
            biased;
            () = held.lost() => return self.lost(),
            () = stdin_closes() => Verdict::Holds,
            signal = signals.next() => Verdict::Like(exit_code(signal)),
        };
        self.let_go(held, verdict).await
    }

    async fn let_go(&self, held: Held, verdict: Verdict) -> anyhow::Result<Verdict> {
        if held.release().await { Ok(verdict) } else { self.lost() }
    }

    fn lost(&self) -> anyhow::Result<Verdict> {
        self.tell("lost", "lost", None)?;
        Err(Failure::lost(format!("{}: the lock was lost", self.name.as_str())).into())
    }

    fn tell(&self, event: &str, words: &str, token: Option<u64>) -> anyhow::Result<()> {
        if self.json {
            super::print_json(&json!({"event": event, "name": self.name.as_str(), "token": token}))
        } else {
            super::print(&format!("{words}\n"))
        }
    }
}

/// Whatever is said there is not listened to.
async fn stdin_closes() {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0; 1024];
    while !matches!(stdin.read(&mut ignored).await, Ok(0) | Err(_)) {}
}
