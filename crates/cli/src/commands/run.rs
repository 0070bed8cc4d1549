//! `run`: a command that runs while a lock is held, and not a moment longer.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::acquire::{Held, Names, Wish, joined, names};
use crate::args;
use crate::outcome::{Failure, Verdict, after_help};
use crate::process::group::{self, Group};
use crate::process::signals::{ENDING, Signals, exit_code};
use crate::process::supervise::{End, SIGNALS, Supervisor};
use crate::process::terminal;
use crate::reach::Peer;

/// Runs a command while holding a lock, and never for longer
///
/// Waits for the lock, runs the command, and gives the lock back. The command finds the name and the
/// fencing token in SIGMALOCK_NAME and SIGMALOCK_TOKEN (several names: several tokens, with commas, in
/// the order of SIGMALOCK_NAME); with --permits, which permit it has, counted from 0, in SIGMALOCK_SLOT. If the lock is lost, the command and all it started get SIGTERM and then
/// SIGKILL, before anybody else can be let in. If `run` itself is killed, so is the command.
///
/// The exit code is the command's own; 128 + the signal that ended it; or one of those below. If no
/// peer is running, your own is started in the background.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Run {
    /// The lock; several, with commas between them, are held all or none
    #[arg(value_name = "NAME[,NAME…]", value_parser = names)]
    names: Names,
    #[command(flatten)]
    wish: Wish,
    /// When the lock is lost: how long from SIGTERM to SIGKILL, at most a quarter of the lease
    #[arg(long, value_name = "D", default_value = "2s", value_parser = args::duration_or_zero)]
    kill_grace: Duration,
    #[command(flatten)]
    peer: Peer,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "  \
  sigmalock run /backup -- rsync -a /home /mnt/backup
  sigmalock run /deploy --wait 5m -- make deploy
  sigmalock run /cron/cleanup --try -- sh -c 'cleanup --token $SIGMALOCK_TOKEN'
  sigmalock run /a,/b --ttl 5s -- ./move-from-a-to-b
  sigmalock run /config --shared -- ./read-it
  sigmalock run /gpu --permits 4 -- sh -c 'CUDA_VISIBLE_DEVICES=$SIGMALOCK_SLOT train'";

impl Run {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        super::block_on(self.hold_and_run())
    }

    async fn hold_and_run(&self) -> anyhow::Result<Verdict> {
        let mut signals = Signals::new(&ENDING)?;
        let program = Path::new(&self.command[0]);
        let program = program.file_name().unwrap_or(program.as_os_str());
        let label = format!("run {} ({})", program.display(), std::process::id());
        let held = async {
            let client = self.peer.connect_or_start(&label, true).await?;
            self.wish.acquire(&client, &self.names).await.map(|held| (client, held))
        };
        let (client, held) = tokio::select! {
            held = held => held?,
            signal = signals.next() => return Ok(Verdict::Like(exit_code(signal))),
        };
        let all_signals = Signals::new(&SIGNALS)?;
        if let Some(signal) = signals.pending() {
            return Ok(Verdict::Like(exit_code(signal)));
        }
        let verdict = self.run_under(held, all_signals).await;
        // Its socket, which the command has inherited, is the session.
        drop(client);
        verdict
    }

    async fn run_under(&self, held: Held, mut signals: Signals) -> anyhow::Result<Verdict> {
        let has_terminal = terminal::is_ours();
        let mut command: Command = group::command(&self.command, has_terminal)?;
        command.env("SIGMALOCK_NAME", self.names.joined());
        command.env("SIGMALOCK_TOKEN", joined(&held.tokens()));
        if !held.slots().is_empty() {
            command.env("SIGMALOCK_SLOT", joined(&held.slots()));
        }
        let group = Group::spawn(&mut command)?;
        let mut supervisor = Supervisor::new(group, held, self.kill_grace, has_terminal);
        match supervisor.watch(&mut signals).await? {
            End::Ended(code) => {
                if !supervisor.into_right().release().await {
                    return Err(self.lost("while the command ran").into());
                }
                Ok(Verdict::Like(code))
            }
            End::PutOut => Err(self.lost("and the command was ended").into()),
        }
    }

    fn lost(&self, what: &str) -> Failure {
        Failure::lost(format!("{}: the lock was lost {what}", self.names.joined()))
    }
}
