//! A command that runs under a lock, and never for longer than the lock is held.
//!
//! ```text
//!   lost, or the deadline is near ──► SIGTERM to the whole group
//!                                      │ grace
//!                                      ▼
//!                                     SIGKILL ── reserve ── deadline: others may enter
//! ```

use std::future::Future;
use std::io;
use std::time::Duration;

use rustix::process::{Signal, getpgrp, getpid, kill_process};
use sigmalock_node::clock;
use tokio::time::sleep;

use super::group::{Group, State};
use super::signals::Signals;
use super::terminal;

/// The right under which a command runs.
pub(crate) trait Right {
    /// How long it lasts if nothing extends it; zero when it is gone.
    fn remaining(&self) -> Duration;
    /// Ends when it is lost.
    fn lost(&self) -> impl Future<Output = ()>;
}

/// How long the killed have to be gone before the deadline, or less if the lease is short.
const RESERVE_MAX: Duration = Duration::from_millis(100);

/// The clock that sees the machine sleep is looked at this often; timers do not see it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often to see whether a group that was asked to end has ended.
const ENDED_EVERY: Duration = Duration::from_millis(5);

/// After a stop, what the peer said meanwhile takes a moment to be read.
const CATCH_UP: Duration = Duration::from_millis(50);

/// What is passed on to the command; and those that tell how it is.
pub(crate) const SIGNALS: [Signal; 9] = [
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

/// How a supervised command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, or by a signal passed on, with this exit code.
    Ended(u8),
    /// It was put out because the lock was lost.
    PutOut,
}

/// A command under a lock.
pub(crate) struct Supervisor<R> {
    group: Group,
    right: R,
    grace_max: Duration,
    /// Whether the terminal was ours to give.
    has_terminal: bool,
    /// The latest deadline heard of. It outlives the right: until then nobody else is let in.
    deadline_us: u64,
    /// How long the right was to last when that was heard. At first it may be short, until the hosts
    /// know that somebody is there.
    lease: Duration,
}

impl<R: Right> Supervisor<R> {
    pub(crate) fn new(group: Group, right: R, grace: Duration, has_terminal: bool) -> Self {
        let (deadline_us, lease) = (0, Duration::ZERO);
        Self { group, right, grace_max: grace, has_terminal, deadline_us, lease }
    }

    /// How long the command has between SIGTERM and SIGKILL. A part of the lease: that a renewal is
    /// due must not look like the end.
    fn grace(&self) -> Duration {
        self.grace_max.min(self.lease / 4)
    }

    /// How long the dead have to be dead before the deadline.
    fn reserve(&self) -> Duration {
        RESERVE_MAX.min(self.lease / 20)
    }

    /// The right, once the command has ended.
    pub(crate) fn into_right(self) -> R {
        self.right
    }

    /// Until the command has ended, or had to be put out.
    pub(crate) async fn watch(&mut self, signals: &mut Signals) -> io::Result<End> {
        let end = self.watch_group(signals).await;
        if self.has_terminal && terminal::belongs_to(self.group.id()) {
            terminal::give_to(getpgrp());
        }
        end
    }

    async fn watch_group(&mut self, signals: &mut Signals) -> io::Result<End> {
        loop {
            let spare = self.spare();
            if spare.is_zero() {
                return self.put_out().await;
            }
            tokio::select! {
                biased;
                () = self.right.lost() => return self.put_out().await,
                signal = signals.next() => {
                    if signal != Signal::CHILD {
                        self.group.signal(signal);
                    }
                }
                () = sleep(spare.min(LOOK_EVERY)) => {}
            }
            match self.group.look()? {
                State::Ended(code) => return Ok(End::Ended(code)),
                State::Stopped if self.has_terminal => self.stop_too().await,
                State::Stopped | State::Running => {}
            }
        }
    }

    /// How long until the command has to be told to end, if nothing extends the right.
    fn spare(&mut self) -> Duration {
        let remaining = self.right.remaining();
        let deadline_us = now_us() + micros(remaining);
        // The clock is read twice, so an old deadline may seem to be a little later.
        if deadline_us > self.deadline_us + 1_000 {
            (self.deadline_us, self.lease) = (deadline_us, remaining);
        }
        remaining.saturating_sub(self.grace() + self.reserve())
    }

    /// The user stopped the command: the shell wants to see this process stop as well. When it goes on,
    /// the command does, if the lock is still held.
    async fn stop_too(&mut self) {
        if terminal::belongs_to(self.group.id()) {
            terminal::give_to(getpgrp());
        }
        // Fails for no process of our own.
        let _ = kill_process(getpid(), Signal::STOP);
        sleep(CATCH_UP).await;
        if !self.spare().is_zero() {
            if terminal::belongs_to(getpgrp()) {
                terminal::give_to(self.group.id());
            }
            self.group.signal(Signal::CONT);
        }
    }

    /// Nobody of the group is left when this ends, and the deadline has not come, unless this process
    /// slept.
    async fn put_out(&mut self) -> io::Result<End> {
        let latest_us = self.deadline_us.saturating_sub(micros(self.reserve()));
        let until_us = latest_us.min(now_us() + micros(self.grace()));
        if now_us() < until_us {
            self.group.signal(Signal::TERM);
            // A stopped process would notice only when it goes on.
            self.group.signal(Signal::CONT);
        }
        while now_us() < until_us && !self.group.is_gone()? {
            sleep(ENDED_EVERY).await;
        }
        self.group.kill()?;
        Ok(End::PutOut)
    }
}

fn now_us() -> u64 {
    clock::now().as_micros()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 2)
}
