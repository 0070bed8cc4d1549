//! `run`: a command that runs while a lock is held, and not a moment longer.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;

use crate::acquire::{Held, Names, Wish, joined, names};
use crate::args;
use crate::inside;
use crate::outcome::{Failure, Verdict, after_help, complain};
use crate::process::front::{self, Front, ORDERS, Post, STOP};
use crate::process::group;
use crate::process::signals::{ENDING, Signals, exit_code};
use crate::process::supervise::{End, Manner, Right, Supervisor};
use crate::process::terminal;
use crate::process::tree::{Process, Tree};
use crate::reach::Peer;

/// Runs a command while holding a lock, and never for longer
///
/// The command begins after `--`, or without it at the first word after NAME that is no flag; flags behind that are the
/// command's own. Waits for the lock, runs the command, and gives the lock back. The command finds the name, the fencing
/// token and who it is to the fence in SIGMALOCK_NAME, SIGMALOCK_TOKEN and SIGMALOCK_HOLDER (several names:
/// several of each, with commas, in the order of SIGMALOCK_NAME); with --permits, which permit it has, counted
/// from 0, in SIGMALOCK_SLOT. A `run` or `lock` inside of it that wants the same lock would wait for itself, and is refused
/// (exit code 64), unless there is room for both (--shared in both, --permits); it goes by SIGMALOCK_INSIDE.
///
/// If the lock is lost, the command and all it started, however it was started, get SIGTERM and then SIGKILL,
/// before anybody else can be let in. If `run` itself is killed, so are they, and the lock is kept until they are
/// gone; also those that belong to other users, which can only be waited for. A signal that asks `run` to end is passed on
/// to the command, and once that has ended, what it left behind is ended in the same way before the lock is given back.
/// What is left when the command has ended by itself is told. Work that another daemon starts when the command asks it to (systemd-run, at, docker) is not
/// looked after: have the command wait for it.
///
/// Where the lock protocol of the swarm gives no tokens (`sigmalock status` says which it runs), there is no SIGMALOCK_TOKEN,
/// and `run` says so.
///
/// The exit code is the command's own; 128 + the signal that ended it; or one of those below. If no
/// peer is running, and this machine is of no swarm, your private one is started in the background.
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
    /// Keep the lock until everything has ended that the command started, also in the background
    #[arg(long)]
    linger: bool,
    #[command(flatten)]
    peer: Peer,
    /// The process that this one is the guardian of
    #[arg(long, hide = true)]
    guards: Option<i32>,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "  \
  sigmalock run backup rsync -a /home /mnt/backup
  sigmalock run /deploy --wait 5m -- make deploy
  sigmalock run /cron/cleanup --try -- sh -c 'cleanup --token $SIGMALOCK_TOKEN'
  sigmalock run /a,/b --ttl 5s -- ./move-from-a-to-b
  sigmalock run /config --shared -- ./read-it
  sigmalock run /gpu --permits 4 -- sh -c 'CUDA_VISIBLE_DEVICES=$SIGMALOCK_SLOT train'";

impl Run {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        self.begins_where_it_says(&std::env::args_os().collect::<Vec<_>>())?;
        match self.guards {
            None => super::block_on(self.stand_in_front()),
            Some(front) => {
                terminal::write_from_behind();
                super::block_on(self.guard(front))
            }
        }
    }

    /// Refuses a line in which `--` stands anywhere but right before the command: it may have been meant to begin there.
    fn begins_where_it_says(&self, line: &[OsString]) -> Result<(), Failure> {
        let (before, command) = line.split_at(line.len().saturating_sub(self.command.len()));
        let is_mark = |word: &OsString| word == "--";
        if before.last().is_some_and(is_mark) || !line.iter().any(is_mark) {
            return Ok(());
        }
        let mark = OsString::from("--");
        let own = before.iter().skip(1).filter(|word| !is_mark(word));
        let command: Vec<_> = command.iter().skip_while(|word| is_mark(word)).collect();
        let words: Vec<String> =
            own.chain([&mark]).chain(command.iter().copied()).map(|word| quoted(word)).collect();
        let first = command.first().map_or_else(String::new, |word| quoted(word));
        Err(Failure::usage(format!(
            "`--` should stand right before the command; if that begins with {first}, say: sigmalock {} (several locks \
             are one word, /a,/b)",
            words.join(" ")
        )))
    }

    /// What the user sees of it. The peer is started here, so that it is none of what the guardian holds on to.
    async fn stand_in_front(&self) -> anyhow::Result<Verdict> {
        self.peer.start_if_need_be().await?;
        match front::stand_before_a_guardian().await? {
            front::End::Ended(code) => Ok(Verdict::Like(code)),
            front::End::Killed(left) => {
                let and =
                    if left.is_empty() { "the command was ended".into() } else { not_ended(&left) };
                Err(self.lost(&format!("because its guardian was killed, and {and}")).into())
            }
        }
    }

    async fn guard(&self, front: i32) -> anyhow::Result<Verdict> {
        let mut signals = Signals::new(&ORDERS)?;
        let Some(front) = Front::of(front)? else {
            return Ok(Verdict::Like(exit_code(Signal::KILL)));
        };
        let held = async {
            let client = self.peer.connect_as(&self.label()).await?;
            self.wish.acquire(&client, &self.names).await.map(|held| (client, held))
        };
        let (client, held) = tokio::select! {
            biased;
            end = wait_no_longer(&front, &mut signals) => return Ok(Verdict::Like(exit_code(end))),
            held = held => held?,
        };
        let verdict = self.run_under(front, held, signals).await;
        drop(client);
        verdict
    }

    /// What people see of the holder.
    fn label(&self) -> String {
        let program = Path::new(&self.command[0]);
        let program = program.file_name().unwrap_or(program.as_os_str());
        format!("run {} ({})", program.display(), self.front())
    }

    /// The process that the user sees.
    fn front(&self) -> i32 {
        self.guards.unwrap_or_default()
    }

    async fn run_under(
        &self, front: Front, held: Held, mut signals: Signals,
    ) -> anyhow::Result<Verdict> {
        // This process may have slept since.
        if held.remaining().is_zero() {
            held.release().await;
            return Err(self.lost("before the command began").into());
        }
        let has_terminal = front.has_terminal();
        let tree = match self.command(&held, has_terminal).and_then(|mut it| Tree::spawn(&mut it)) {
            Ok(tree) => tree,
            Err(error) => {
                held.release().await;
                return Err(error.into());
            }
        };
        let post = Post;
        let manner = Manner { grace: self.kill_grace, linger: self.linger };
        let mut supervisor = Supervisor::new(tree, front, has_terminal, held, manner);
        let end = supervisor.watch(&mut signals).await;
        let end = end.inspect_err(|error| complain(format_args!("sigmalock: {error}")))?;
        post.leave();
        match end {
            End::Ended(code, left) => {
                if !supervisor.into_right().release().await {
                    return Err(self.lost("while the command ran").into());
                }
                if !left.is_empty() {
                    let (names, left) = (self.names.joined(), listed(&left));
                    complain(format_args!(
                        "sigmalock: {names} was given back, and what the command left behind still runs: {left}; \
                         --linger waits for it"
                    ));
                }
                Ok(Verdict::Like(code))
            }
            End::Orphaned => {
                supervisor.into_right().release().await;
                Ok(Verdict::Like(exit_code(Signal::KILL)))
            }
            End::PutOut(left) => {
                let held = supervisor.into_right();
                let why = held.why_lost();
                if left.is_empty() {
                    // The next need not wait for the end of the lease.
                    held.release().await;
                    return Err(self.lost(&format!("{why}and the command was ended")).into());
                }
                // Nothing is given back: they are inside, until the lease ends and longer.
                Err(self.lost(&format!("{why}and {}", not_ended(&left))).into())
            }
        }
    }

    /// What is run, and what it is told.
    fn command(&self, held: &Held, has_terminal: bool) -> io::Result<Command> {
        let mut command = group::command(&self.command, has_terminal)?;
        command.env("SIGMALOCK_NAME", self.names.joined());
        if held.has_tokens() {
            command.env("SIGMALOCK_TOKEN", joined(&held.tokens()));
        } else {
            // That of an outer `run` is for other locks.
            command.env_remove("SIGMALOCK_TOKEN");
            complain(format_args!(
                "sigmalock: the lock protocol of this swarm gives no fencing tokens: the command finds no SIGMALOCK_TOKEN, \
                 and no resource can refuse it if it oversleeps"
            ));
        }
        let outer = std::env::var_os(inside::VARIABLE);
        let told = inside::told(&self.names, &held.tokens(), self.front(), outer.as_deref());
        command.env(inside::VARIABLE, told);
        command.env("SIGMALOCK_HOLDER", joined(&held.holders()));
        if !held.slots().is_empty() {
            command.env("SIGMALOCK_SLOT", joined(&held.slots()));
        }
        Ok(command)
    }

    fn lost(&self, what: &str) -> Failure {
        Failure::lost(format!("{}: the lock was lost {what}", self.names.joined()))
    }
}

/// Until the user does not want to wait for the lock any more, or is gone; by which signal.
async fn wait_no_longer(front: &Front, signals: &mut Signals) -> Signal {
    loop {
        tokio::select! {
            () = front.gone() => return Signal::KILL,
            signal = signals.next() => match signal {
                STOP => front.stop(),
                signal if ENDING.contains(&signal) => return signal,
                _ => {}
            }
        }
    }
}

/// A word as a shell would take it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/,.:=@%+-_".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Those who can only be waited for.
fn not_ended(left: &[Process]) -> String {
    format!("what belongs to other users could not be ended: {}", listed(left))
}

/// Processes as people want them: not too many.
fn listed(processes: &[Process]) -> String {
    let shown: Vec<String> = processes.iter().take(LISTED_MAX).map(Process::to_string).collect();
    let more = processes.len().saturating_sub(LISTED_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    shown.join(", ") + &more
}

/// So many processes are named.
const LISTED_MAX: usize = 5;
