//! A command that runs under a lock, and never for longer than the lock is held.
//!
//! ```text
//!   lost, or the deadline is near ──► SIGTERM to all
//!                                      │ grace
//!                                      ▼
//!                                     SIGKILL ── reserve ── deadline: others may enter
//! ```

use std::future::Future;
use std::io;
use std::time::Duration;

use rustix::process::Signal;
use sigmalock_node::clock;
use tokio::time::sleep;

use super::front::{Front, GO_ON, STOP};
use super::group::State;
use super::signals::{ENDING, Signals};
use super::tree::{Process, Tree};

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

/// How a supervised command came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with this exit code, and whom it left behind; or by a signal passed on, and then nobody is left.
    Ended(u8, Vec<Process>),
    /// It was put out because the lock was lost. Those who are left belong to other users.
    PutOut(Vec<Process>),
    /// It was put out because the front is gone, and nobody is left.
    Orphaned,
}

/// How to deal with a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// How long from SIGTERM to SIGKILL, at most.
    pub(crate) grace: Duration,
    /// Whether to wait for all that it leaves behind.
    pub(crate) linger: bool,
}

/// A command under a lock.
pub(crate) struct Supervisor<R> {
    tree: Tree,
    front: Front,
    /// Whether the terminal was the front's to give.
    has_terminal: bool,
    right: R,
    manner: Manner,
    /// The latest deadline heard of. It outlives the right: until then nobody else is let in.
    deadline_us: u64,
    /// How long the right was to last when that was heard. At first it may be short, until the hosts
    /// know that somebody is there.
    lease: Duration,
    /// Whether the user wants it to end. What it leaves behind is ended as well then.
    told: bool,
}

impl<R: Right> Supervisor<R> {
    pub(crate) fn new(
        tree: Tree, front: Front, has_terminal: bool, right: R, manner: Manner,
    ) -> Self {
        let (deadline_us, lease) = (0, Duration::ZERO);
        Self { tree, front, has_terminal, right, manner, deadline_us, lease, told: false }
    }

    /// How long the command has between SIGTERM and SIGKILL. A part of the lease: that a renewal is
    /// due must not look like the end.
    fn grace(&self) -> Duration {
        self.manner.grace.min(self.lease / 4)
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
        let end = self.watch_tree(signals).await;
        if self.has_terminal {
            self.front.take_terminal(self.tree.group());
        }
        end
    }

    async fn watch_tree(&mut self, signals: &mut Signals) -> io::Result<End> {
        loop {
            let spare = self.spare();
            if spare.is_zero() {
                return Ok(End::PutOut(self.put_out().await));
            }
            tokio::select! {
                biased;
                () = self.right.lost() => return Ok(End::PutOut(self.put_out().await)),
                () = self.front.gone() => return Ok(self.end_all(End::Orphaned).await),
                signal = signals.next() => match signal {
                    Signal::CHILD => {}
                    STOP => self.tree.signal(Signal::TSTP),
                    GO_ON => self.go_on(),
                    signal => {
                        self.told |= ENDING.contains(&signal);
                        self.tree.signal(signal);
                    }
                },
                () = sleep(spare.min(LOOK_EVERY)) => {}
            }
            match self.tree.look()? {
                // If it cannot be known who is left, nothing is given back.
                State::Ended(code) => match self.tree.left() {
                    Ok(left) if left.is_empty() => return Ok(End::Ended(code, left)),
                    Ok(_) | Err(_) if self.told => {
                        return Ok(self.end_all(End::Ended(code, Vec::new())).await);
                    }
                    Ok(left) if !self.manner.linger => return Ok(End::Ended(code, left)),
                    Ok(_) | Err(_) => {}
                },
                // The shell wants to see the front stop as well.
                State::Stopped if self.has_terminal => {
                    self.front.take_terminal(self.tree.group());
                    self.front.stop();
                }
                State::Stopped | State::Running => {}
            }
        }
    }

    /// The user has the command go on. If the lock is lost by then, it will be put out.
    fn go_on(&mut self) {
        if self.has_terminal {
            self.front.give_terminal(self.tree.group());
        }
        self.tree.signal(Signal::CONT);
    }

    /// Nobody wants the command any more. It is ended, and the lock is kept until all of it has: then this is the end.
    async fn end_all(&mut self, end: End) -> End {
        while !self.put_out().await.is_empty() {
            tokio::select! {
                biased;
                () = self.right.lost() => return End::PutOut(self.put_out().await),
                () = sleep(LOOK_EVERY) => {}
            }
        }
        end
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

    /// When this ends, nobody is left but those who belong to other users, and the deadline has not come, unless this
    /// process slept.
    async fn put_out(&mut self) -> Vec<Process> {
        let latest_us = self.deadline_us.saturating_sub(micros(self.reserve()));
        let until_us = latest_us.min(now_us() + micros(self.grace()));
        if now_us() < until_us {
            self.tree.signal_all(Signal::TERM);
            // A stopped process would notice only when it goes on.
            self.tree.signal_all(Signal::CONT);
        }
        while now_us() < until_us && !self.tree.left().is_ok_and(|left| left.is_empty()) {
            sleep(ENDED_EVERY).await;
        }
        self.tree.kill().await
    }
}

fn now_us() -> u64 {
    clock::now().as_micros()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 2)
}
