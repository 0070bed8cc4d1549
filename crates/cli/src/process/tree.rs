//! A command and all that it started, whatever became of it since.
//!
//! ```text
//!   this process ──► leader ──► child ──► grandchild      nobody leaves by setsid, or by forking twice: who loses
//!        └─────────────────────────────► orphan           its parent becomes a child of this process
//! ```

use std::fmt;
use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process,
    kill_process_group, pidfd_open, pidfd_send_signal, set_child_subreaper, wait, waitid,
};
use tokio::time::sleep;

use super::group::{Group, State};

/// How often to see whether those who were killed are gone.
const GONE_EVERY: Duration = Duration::from_millis(2);

/// How often the process table is read if it does not show a child that there must be.
const TABLE_READS: u32 = 16;

/// How often children are killed as they appear, before the process table is read again.
const CHASES_MAX: u32 = 1_000;

/// Everything below this process. There is one command.
#[derive(Debug)]
pub(crate) struct Tree {
    leader: Group,
}

/// A process of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pid: Pid,
    parent: i32,
    group: i32,
    name: String,
    /// When it was started: another process of the same number has another time.
    born: u64,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pid.as_raw_pid(), self.name)
    }
}

impl Tree {
    /// Starts a command as the only one of this process, in a group of its own.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Self { leader: Group::spawn(command)? })
    }

    /// The command's process group.
    pub(crate) fn group(&self) -> Pid {
        self.leader.id()
    }

    /// Whether it was a signal that ended the command.
    pub(crate) fn was_killed(&self) -> bool {
        self.leader.was_killed()
    }

    /// How the command is now. Says `Stopped` once per stop.
    pub(crate) fn look(&mut self) -> io::Result<State> {
        let mut state = self.leader.known();
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if pid == self.group() => state = self.leader.note(status),
                // An orphan has ended, or was stopped.
                Ok(Some(_)) => {}
                Ok(None) | Err(Errno::CHILD) => return Ok(state),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A signal for the command and its process group, as from a terminal.
    pub(crate) fn signal(&self, signal: Signal) {
        self.leader.signal(signal);
    }

    /// A signal for everybody. Those who are gone need none; returns those who belong to other users.
    pub(crate) fn signal_all(&self, signal: Signal) -> Vec<Process> {
        let refuses = |process: &Process| process.signal(signal) == Err(Errno::PERM);
        living().into_iter().filter(refuses).collect()
    }

    /// Nobody is left when this ends; but for those who belong to other users, whom it returns.
    pub(crate) async fn kill(&mut self) -> io::Result<Vec<Process>> {
        loop {
            // Nobody escapes from that by starting others in the same group.
            living().iter().for_each(Process::kill_group);
            self.chase()?;
            let others = self.signal_all(Signal::KILL);
            let left = self.left()?;
            if left.iter().all(|process| others.contains(process)) {
                return Ok(left);
            }
            sleep(GONE_EVERY).await;
        }
    }

    /// Kills children as they appear. Whoever starts another and ends, again and again, is gone before the process table
    /// has been read; but all of them become children of this process, which can be asked for these alone.
    fn chase(&mut self) -> io::Result<()> {
        let mut before = Vec::new();
        for _ in 0..CHASES_MAX {
            self.look()?;
            let children = children();
            if children == before {
                break;
            }
            // Nobody else gets the number of a child before it has been waited for.
            for child in &children {
                let _ = kill_process(*child, Signal::KILL);
            }
            before = children;
        }
        Ok(())
    }

    /// Everybody who still runs.
    pub(crate) fn left(&mut self) -> io::Result<Vec<Process>> {
        for _ in 0..TABLE_READS {
            self.look()?;
            let left = living();
            // Whoever starts another and ends while the table is read may not be in it, nor the other. But somebody is a
            // child of this process then.
            if !left.is_empty() || has_no_child()? {
                return Ok(left);
            }
        }
        // Those who are too quick to be seen; and not those whom a debugger keeps though they are dead.
        let quick = |child: Pid| match read(child) {
            Some((_, false)) => None,
            Some((process, true)) => Some(process),
            None => Some(Process::unseen(child)),
        };
        Ok(children().into_iter().filter_map(quick).collect())
    }
}

impl Process {
    /// One of which nothing is known but that it was here.
    fn unseen(pid: Pid) -> Self {
        Self { pid, parent: 0, group: 0, name: "gone before it could be looked at".into(), born: 0 }
    }

    /// Kills its group, if it leads one.
    fn kill_group(&self) {
        let is_it = || read(self.pid).is_some_and(|(now, _)| now.born == self.born);
        if self.group == self.pid.as_raw_pid() && is_it() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let process = pidfd_open(self.pid, PidfdFlags::empty())?;
        // It may have ended before that, and another have got its number.
        if read(self.pid).is_none_or(|(now, _)| now.born != self.born) {
            return Err(Errno::SRCH);
        }
        pidfd_send_signal(process, signal)
    }
}

fn has_no_child() -> io::Result<bool> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::All, look) {
        Ok(_) => Ok(false),
        Err(Errno::CHILD) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// The children of this process, dead ones included. None, where the system does not tell.
fn children() -> Vec<Pid> {
    let me = getpid().as_raw_pid();
    let list = fs::read_to_string(format!("/proc/{me}/task/{me}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect()
}

/// All that this process started and that still runs, as far as the process table tells.
pub(crate) fn living() -> Vec<Process> {
    let Ok(table) = fs::read_dir("/proc") else { return Vec::new() };
    let pid = |entry: io::Result<fs::DirEntry>| {
        let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(number)
    };
    let all: Vec<(Process, bool)> = table.filter_map(pid).filter_map(read).collect();
    let mut below = vec![getpid().as_raw_pid()];
    let mut found = Vec::new();
    while let Some(parent) = below.pop() {
        for (process, lives) in all.iter().filter(|(process, _)| process.parent == parent) {
            below.push(process.pid.as_raw_pid());
            if *lives {
                found.push(process.clone());
            }
        }
    }
    found
}

/// What the process table says of a process, and whether it runs: one that has ended and was not waited for does not. If
/// only its first thread has ended, others run.
fn read(pid: Pid) -> Option<(Process, bool)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(14)?.parse().ok()?;
    let born = fields.nth(1)?.parse().ok()?;
    let lives = !matches!(state, "Z" | "X") || threads > 1;
    Some((Process { pid, parent, group, name: name.to_owned(), born }, lives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_table_knows_this_process() {
        let (me, lives) = read(getpid()).unwrap();
        assert!(lives && me.born > 0 && !me.name.is_empty());
        let (parent, _) = read(Pid::from_raw(me.parent).unwrap()).unwrap();
        assert!(parent.born <= me.born);
    }
}
