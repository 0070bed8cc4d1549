//! `lock`: holds a lock until told to let go, for scripts and other programs.

use std::mem::ManuallyDrop;

use clap::Args;
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::acquire::{Held, Names, Wish, joined, names};
use crate::outcome::{Failure, Verdict, after_help};
use crate::process::signals::{ENDING, Signals, exit_code};
use crate::process::supervise::Right;
use crate::reach::Peer;
use crate::words;

/// Holds a lock until stdin closes or a signal comes
///
/// Prints the fencing token (of several names, all tokens, with commas; a dash where the lock protocol of the swarm gives
/// none) as soon as the lock is held, and `lost` if it is lost. What is read from stdin does not matter, only that it ends.
/// If no peer is running, and this machine is of no swarm, your private one is started in the background.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Lock {
    /// The lock; several, with commas between them, are held all or none
    #[arg(value_name = "NAME[,NAME…]", value_parser = names)]
    names: Names,
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
  sigmalock lock /printer --wait 1m --json
  sigmalock lock /config --shared";

impl Lock {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        super::block_on(self.hold())
    }

    async fn hold(&self) -> anyhow::Result<Verdict> {
        let mut signals = Signals::new(&ENDING)?;
        let label = format!("lock ({})", std::process::id());
        let held = async {
            let client = self.peer.connect_or_start(&label).await?;
            self.wish.acquire(&client, &self.names).await
        };
        let held = tokio::select! {
            held = held => held?,
            signal = signals.next() => return Ok(Verdict::Like(exit_code(signal))),
        };
        let tokens = held.tokens().into_iter().map(words::token).collect::<Vec<_>>();
        self.tell("held", &joined(&tokens), Some(&held))?;
        let verdict = tokio::select! {
            biased;
            () = held.lost() => {
                // Who reads that it is lost may be inside for a moment yet: nobody says that it is not.
                let _kept = ManuallyDrop::new(held);
                return self.lost();
            }
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
        Err(Failure::lost(format!("{}: the lock was lost", self.names.joined())).into())
    }

    fn tell(&self, event: &str, words: &str, held: Option<&Held>) -> anyhow::Result<()> {
        if !self.json {
            return super::print(&format!("{words}\n"));
        }
        let tokens = held.filter(|held| held.has_tokens()).map(Held::tokens).unwrap_or_default();
        let slots = held.map(Held::slots).unwrap_or_default();
        super::print_json(&json!({
            "event": event,
            "name": self.names.joined(),
            "token": tokens.first(),
            "tokens": tokens,
            "slots": slots,
        }))
    }
}

/// Whatever is said there is not listened to.
async fn stdin_closes() {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0; 1024];
    while !matches!(stdin.read(&mut ignored).await, Ok(0) | Err(_)) {}
}
