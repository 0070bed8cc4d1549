//! A command and all that it started, whatever became of it since.
//!
//! ```text
//!   this process ──► leader ──► child ──► grandchild      nobody leaves by setsid, or by forking twice: who loses
//!        └─────────────────────────────► orphan           its parent becomes a child of this process
//! ```

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
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
///
/// What cannot be seen may be there: nobody is left only where the system says that this process has no child.
#[derive(Debug)]
pub(crate) struct Tree {
    leader: Group,
    children: Children,
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
        let children = Children::open()?;
        Ok(Self { leader: Group::spawn(command)?, children })
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

    /// A signal for everybody who can be seen. Those who are gone need none.
    pub(crate) fn signal_all(&self, signal: Signal) {
        match living() {
            Ok(all) => {
                for process in all {
                    let _ = process.signal(signal);
                }
            }
            Err(_) => self.signal(signal),
        }
    }

    /// Nobody is left when this ends; but for those who belong to other users, whom it returns. It goes on for as long as
    /// it cannot know that.
    pub(crate) async fn kill(&mut self) -> Vec<Process> {
        loop {
            // Nobody escapes from that by starting others in the same group.
            living().iter().flatten().for_each(Process::kill_group);
            // It takes nothing but what is there, and will do where the process table cannot be read.
            let _ = self.chase();
            self.signal_all(Signal::KILL);
            let is_anothers = |process: &Process| process.signal(Signal::KILL) == Err(Errno::PERM);
            if let Ok(left) = self.left()
                && left.iter().all(is_anothers)
            {
                return left;
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
            let children = self.children.list()?;
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

    /// Everybody who still runs; an error, if somebody may.
    pub(crate) fn left(&mut self) -> io::Result<Vec<Process>> {
        for _ in 0..TABLE_READS {
            self.look()?;
            // Whoever loses its parent becomes a child of this process: who has none has nobody below it.
            if has_no_child()? {
                return Ok(Vec::new());
            }
            // Whoever starts another and ends while the table is read may not be in it, nor the other.
            match living() {
                Ok(left) if left.is_empty() => {}
                Ok(left) => return Ok(left),
                Err(_) => break,
            }
        }
        let children = self.children.list()?;
        if children.is_empty() {
            return Err(io::Error::other("somebody is left who cannot be seen"));
        }
        // Those who are too quick to be seen, or hidden; and not those whom a debugger keeps though they are dead.
        let hidden = |child: Pid| match read(child) {
            Ok(Some((_, false))) => None,
            Ok(Some((process, true))) => Some(process),
            Ok(None) | Err(_) => Some(Process::unseen(child)),
        };
        Ok(children.into_iter().filter_map(hidden).collect())
    }
}

impl Process {
    /// A child of which nothing is known but that it was here.
    fn unseen(pid: Pid) -> Self {
        let parent = getpid().as_raw_pid();
        Self { pid, parent, group: 0, name: "which cannot be looked at".into(), born: 0 }
    }

    /// Whether its number still is that of the same process.
    fn is_here(&self) -> bool {
        read(self.pid).is_ok_and(|now| now.is_some_and(|(now, _)| now.born == self.born))
    }

    /// Kills its group, if it leads one.
    fn kill_group(&self) {
        if self.group == self.pid.as_raw_pid() && self.is_here() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), Errno> {
        // Nobody else gets the number of a child before it has been waited for.
        if self.parent == getpid().as_raw_pid() {
            return kill_process(self.pid, signal);
        }
        let process = pidfd_open(self.pid, PidfdFlags::empty())?;
        // It may have ended before that, and another have got its number.
        if self.is_here() { pidfd_send_signal(process, signal) } else { Err(Errno::SRCH) }
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

/// The list of children of this process. It is kept open, so that it can be read where nothing can be opened any more.
#[derive(Debug)]
struct Children(Option<File>);

impl Children {
    fn open() -> io::Result<Self> {
        let me = getpid().as_raw_pid();
        match File::open(format!("/proc/{me}/task/{me}/children")) {
            Ok(file) => Ok(Self(Some(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }

    /// All of them, dead ones included. None, where the system does not tell.
    fn list(&self) -> io::Result<Vec<Pid>> {
        let Some(mut file) = self.0.as_ref() else { return Ok(Vec::new()) };
        let mut list = String::new();
        file.rewind()?;
        file.read_to_string(&mut list)?;
        Ok(list.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect())
    }
}

/// All that this process started and that still runs, as far as the process table tells.
fn living() -> io::Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let number = entry?.file_name().to_str().and_then(|number| number.parse().ok());
        if let Some(seen) = number.and_then(Pid::from_raw).map(read).transpose()?.flatten() {
            all.push(seen);
        }
    }
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
    Ok(found)
}

/// What the process table says of a process, and whether it runs: one that has ended and was not waited for does not. If
/// only its first thread has ended, others run. `None` if it is gone, or hidden from this user.
fn read(pid: Pid) -> io::Result<Option<(Process, bool)>> {
    // A name can be any bytes.
    let stat = match fs::read(format!("/proc/{}/stat", pid.as_raw_pid())) {
        Ok(stat) => String::from_utf8_lossy(&stat).into_owned(),
        Err(error) => {
            let errno = Errno::from_io_error(&error);
            let is_none = [Errno::NOENT, Errno::SRCH, Errno::ACCESS, Errno::PERM];
            return if errno.is_some_and(|e| is_none.contains(&e)) { Ok(None) } else { Err(error) };
        }
    };
    parse(pid, &stat).map(Some).ok_or_else(|| io::Error::other("the process table makes no sense"))
}

/// The process group of a process. None if its leader has no number in this PID namespace, of which the system itself would
/// say 0: that is none that may be asked for.
pub(crate) fn group_of(pid: Pid) -> Option<Pid> {
    read(pid).ok().flatten().and_then(|(process, _)| Pid::from_raw(process.group))
}

fn parse(pid: Pid, stat: &str) -> Option<(Process, bool)> {
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
        let (me, lives) = read(getpid()).unwrap().unwrap();
        assert!(lives && me.born > 0 && !me.name.is_empty());
        let (parent, _) = read(Pid::from_raw(me.parent).unwrap()).unwrap().unwrap();
        assert!(parent.born <= me.born);
    }
}
