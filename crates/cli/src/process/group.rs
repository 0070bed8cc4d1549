//! A child process and all that it starts: one process group.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, test_kill_process_group,
    waitpid,
};

/// A process group that this process started, and whose leader it waits for.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    ended: Option<u8>,
    killed: bool,
}

/// How the leader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// Stopped, as by Ctrl-Z.
    Stopped,
    /// Gone, with this exit code: its own, or 128 + the signal that ended it.
    Ended(u8),
}

/// A command that becomes `words` and dies with this process. Must be spawned by a thread that lives as
/// long as this process does.
pub(crate) fn command<S: AsRef<OsStr>>(words: &[S], foreground: bool) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("__child").arg("--parent").arg(getpid().as_raw_pid().to_string());
    if foreground {
        command.arg("--foreground");
    }
    command.arg("--").args(words).process_group(0);
    Ok(command)
}

impl Group {
    /// Starts a command in a group of its own.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        Self::of(&command.spawn()?)
    }

    fn of(child: &Child) -> io::Result<Self> {
        let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("a process without a number"))?;
        Ok(Self { leader, ended: None, killed: false })
    }

    /// Starts a command that neither reads nor prints here.
    pub(crate) fn spawn_quietly(command: &mut Command, log: Stdio) -> io::Result<Self> {
        Self::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log))
    }

    /// Starts a command that talks with this process: what it reads, and what it says.
    pub(crate) fn spawn_to_talk(
        command: &mut Command,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let group = Self::of(&child)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((group, stdin, stdout)),
            _ => Err(io::Error::other("a process without pipes")),
        }
    }

    pub(crate) fn id(&self) -> Pid {
        self.leader
    }

    /// How the leader is now. Says `Stopped` once per stop.
    pub(crate) fn look(&mut self) -> io::Result<State> {
        if self.ended.is_none() {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            if let Some((_, status)) = waitpid(Some(self.leader), options)? {
                return Ok(self.note(status));
            }
        }
        Ok(self.known())
    }

    /// How the leader is, as far as known.
    pub(crate) fn known(&self) -> State {
        self.ended.map_or(State::Running, State::Ended)
    }

    /// Whether it was a signal that ended the leader.
    pub(crate) fn was_killed(&self) -> bool {
        self.killed
    }

    /// What was learned by waiting for the leader.
    pub(crate) fn note(&mut self, status: WaitStatus) -> State {
        if status.stopped() {
            return State::Stopped;
        }
        let signal = status.terminating_signal().map(|signal| 128 + signal);
        self.killed = signal.is_some();
        let code = status.exit_status().or(signal).unwrap_or(1);
        self.ended = Some(u8::try_from(code).unwrap_or(1));
        self.known()
    }

    /// Whether the leader has been waited for and nobody else of the group is left.
    pub(crate) fn is_gone(&mut self) -> io::Result<bool> {
        let ended = matches!(self.look()?, State::Ended(_));
        Ok(ended && test_kill_process_group(self.leader) == Err(Errno::SRCH))
    }

    /// A signal for everybody in it. Those who are gone need none.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
    }

    /// Kills everybody in it, and waits for the leader.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if self.is_gone()? {
            return Ok(());
        }
        self.signal(Signal::KILL);
        while self.ended.is_none() {
            if let Some((_, status)) = waitpid(Some(self.leader), WaitOptions::empty())? {
                let signal = status.terminating_signal().unwrap_or(0);
                self.ended = Some(u8::try_from(128 + signal).unwrap_or(1));
            }
        }
        Ok(())
    }
}
