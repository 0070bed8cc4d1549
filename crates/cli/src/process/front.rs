//! `run` is two processes, so that killing one of them, or stopping it, does not leave a command without its lock.
//!
//! ```text
//!   shell ──► front ───────────► guardian ───────────► command
//!             signals, terminal,  the session with the
//!             exit code           peer, and the clock
//! ```
//!
//! If the front is killed, the guardian ends the command, and only then gives the lock back. If the guardian is killed,
//! the front ends the command, and the lock stays until its lease ends. Stopping the front stops nothing else; the guardian
//! is not stopped for long, because a clock of the system has it go on; unless it is stopped so often (thousands of times a
//! second) that a stop takes back a signal of that clock before it arrives, for then the clock is not set again.

use std::ffi::OsString;
use std::io::{self, IsTerminal, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{SigEvent, SigevNotify};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};
use tokio::sync::watch;

use super::group::State;
use super::signals::Signals;
use super::terminal;
use super::tree::{Process, Tree, group_of};

/// The flag that makes a `run` the guardian of another.
pub(crate) const FLAG: &str = "--guards";

/// What the system tells a guardian: that its front has ended, and, every so often, that it is to go on. Both reach it also
/// when it is stopped.
const AWAKE: Signal = Signal::CONT;
/// For so long it can be stopped: much less than a peer takes to miss it.
const AWAKE_EVERY: Duration = Duration::from_millis(250);

/// What the front listens to, and passes on.
const SIGNALS: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
    Signal::CHILD,
];

/// As which a guardian gets them. What has it go on also takes back a SIGTSTP that it has yet to see, and means nothing to the
/// command. So two that mean nothing else are for the command: that it is to stop, and to go on.
pub(crate) const ORDERS: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    STOP,
    GO_ON,
    Signal::CHILD,
];
pub(crate) const STOP: Signal = Signal::WINCH;
pub(crate) const GO_ON: Signal = Signal::URG;

/// The process that the user sees, as its guardian knows it.
#[derive(Debug)]
pub(crate) struct Front {
    pid: Pid,
    /// Its process group, to which the terminal belongs when the command does not have it.
    /// None in an outer PID namespace, where it has no number here.
    group: Option<Pid>,
    ended: watch::Receiver<bool>,
    /// Whoever stops this process stops it for no longer than until the next tick.
    _ticks: Timer,
}

impl Front {
    /// The parent of this process, if that is still the one that started it.
    pub(crate) fn of(pid: i32) -> io::Result<Option<Self>> {
        let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
        let mut signals = Signals::new(&[AWAKE])?;
        let (tell, ended) = watch::channel(false);
        tokio::spawn(async move {
            // Anybody may say that the front is gone; then the parent is another one.
            while getppid() == Some(pid) {
                signals.next().await;
            }
            tell.send_replace(true);
        });
        set_parent_process_death_signal(Some(AWAKE))?;
        let ticks = ticks()?;
        if getppid() != Some(pid) {
            return Ok(None);
        }
        let group = group_of(pid);
        Ok(Some(Self { pid, group, ended, _ticks: ticks }))
    }

    /// Ends when the front has.
    pub(crate) async fn gone(&self) {
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// The user wants the shell back.
    pub(crate) fn stop(&self) {
        let _ = kill_process(self.pid, Signal::STOP);
    }

    /// Whether the terminal is the front's to give, and nobody whom the command writes to, such as a pager, needs it as
    /// well.
    pub(crate) fn has_terminal(&self) -> bool {
        stdin().is_terminal() && stdout().is_terminal() && self.owns_terminal()
    }

    fn owns_terminal(&self) -> bool {
        self.group.is_some_and(terminal::belongs_to)
    }

    /// Takes the terminal back from that group.
    pub(crate) fn take_terminal(&self, from: Pid) {
        if let Some(group) = self.group
            && terminal::belongs_to(from)
        {
            terminal::give_to(group);
        }
    }

    /// Gives the terminal to that group, if the front has it.
    pub(crate) fn give_terminal(&self, to: Pid) {
        if self.owns_terminal() {
            terminal::give_to(to);
        }
    }
}

/// How a guardian came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with this exit code.
    Ended(u8),
    /// It was killed; everything that it had started has been, but for these, who belong to other users.
    Killed(Vec<Process>),
}

/// Has this very command line carried out by a guardian, and is to the outside what that does.
pub(crate) async fn stand_before_a_guardian() -> io::Result<End> {
    let mut signals = Signals::new(&SIGNALS)?;
    let mut guardian = Tree::spawn(&mut command()?)?;
    let id = guardian.group();
    loop {
        match guardian.look()? {
            State::Ended(_) if guardian.was_killed() => {
                return Ok(End::Killed(guardian.kill().await));
            }
            State::Ended(code) => return Ok(End::Ended(code)),
            // It has a clock to look at.
            State::Stopped => drop(kill_process(id, Signal::CONT)),
            State::Running => {}
        }
        match signals.next().await {
            Signal::CHILD => {}
            Signal::TSTP => drop(kill_process(id, STOP)),
            Signal::CONT => drop(kill_process(id, GO_ON)),
            signal => drop(kill_process(id, signal)),
        }
    }
}

/// Has this process go on, every so often.
fn ticks() -> io::Result<Timer> {
    let signal = nix::sys::signal::Signal::SIGCONT;
    let event = SigEvent::new(SigevNotify::SigevSignal { signal, si_value: 0 });
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, event)?;
    timer.set(Expiration::Interval(AWAKE_EVERY.into()), TimerSetTimeFlags::empty())?;
    Ok(timer)
}

/// While a guardian has this, it ends by being killed, whatever goes wrong: so its front ends what it leaves behind.
#[derive(Debug)]
pub(crate) struct Post;

impl Post {
    /// Nobody is left, or what is left is known.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// This command line, for a guardian of this process.
fn command() -> io::Result<Command> {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let guards = [FLAG.into(), getpid().as_raw_pid().to_string().into()];
    words.splice(1..1, guards);
    let mut command = Command::new(std::env::current_exe()?);
    // A signal for the front's group is not meant for it.
    command.args(words).process_group(0);
    Ok(command)
}
