//! Work under `run`, and who looks after it.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, getuid, kill_process};

use super::machine::{Machine, lives, pid_in, wait_until};

/// Ways to start work that a killer does not find easily. Each writes its number to `$PID`, and then does nothing for a
/// minute, whatever it is told by SIGTERM.
pub(crate) const WAYS: [(&str, &str); 7] = [
    ("a child", "sh -c 'trap \"\" TERM; echo $$ > $PID; sleep 60 & wait; wait' & wait"),
    (
        "its own session",
        "setsid sh -c 'trap \"\" TERM; echo $$ > $PID; sleep 60 & wait; wait' & wait",
    ),
    (
        "forked twice",
        "( setsid sh -c 'trap \"\" TERM; echo $$ > $PID; sleep 60 & wait; wait' & ) ; sleep 60",
    ),
    (
        "closed descriptors",
        "exec python3 -c \"
import os, subprocess
p = subprocess.Popen(['sleep', '60'], close_fds=True, start_new_session=True)
open(os.environ['PID'], 'w').write(str(p.pid))
p.wait()\"",
    ),
    ("stopped", "sh -c 'echo $$ > $PID; kill -STOP $$; sleep 60' & wait"),
    (
        "without its first thread",
        "exec python3 -c \"
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
open(os.environ['PID'], 'w').write(str(os.getpid()))
ctypes.CDLL(None).pthread_exit(None)\"",
    ),
    (
        "a name that is no text",
        "python3 -c \"
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0)
open(os.environ['PID'], 'w').write(str(os.getpid()))
time.sleep(60)\" & wait",
    ),
];

/// In a PID and a mount namespace of its own, where it is the first process. It says what it is called outside.
const CONFINED: (&str, &str) = (
    "a PID and mount namespace",
    "unshare --pid --mount --fork sh -c \
     'trap \"\" TERM; read pid rest < /proc/self/stat; echo $pid > $PID; setsid sleep 60 & wait; wait' & wait",
);

/// All of them that can be had here.
pub(crate) fn ways() -> Vec<(&'static str, &'static str)> {
    let unshare = Command::new("unshare").args(["--pid", "--mount", "--fork", "true"]).status();
    if unshare.is_ok_and(|ended| ended.success()) {
        return [&WAYS[..], &[CONFINED]].concat();
    }
    eprintln!("SKIPPED, NOT TESTED: no namespaces can be made here (they take root)");
    WAYS.to_vec()
}

/// `run /x` of a script that writes to `$PID`; and the process that did.
pub(crate) fn spawn(machine: &Machine, flags: &[&str], script: &str) -> (Child, Pid) {
    let file = machine.file("pid");
    let _ = fs::remove_file(&file);
    let words = [&["run", "/x"], flags, &["--", "sh", "-c", script]].concat();
    let mut run = machine.command(&words);
    let run = run.env("PID", &file).stdout(Stdio::null()).stderr(Stdio::null());
    let run = run.spawn().expect("it starts");
    (run, pid_in(&file))
}

/// The guardian of a `run`.
pub(crate) fn guardian(run: &Child) -> Pid {
    child(super::machine::id(run))
}

/// The only child of a process, once it has no other: what it needed to get there may take a moment to end.
pub(crate) fn child(of: Pid) -> Pid {
    let children = || {
        let children = format!("/proc/{0}/task/{0}/children", of.as_raw_pid());
        fs::read_to_string(children).expect("it lives")
    };
    let only = || children().trim().parse().ok().and_then(Pid::from_raw);
    wait_until("it has one child", || only().is_some());
    only().expect("a process")
}

/// Whoever wants in next gets in, and then nobody of that work is left.
pub(crate) fn next_enters_after(machine: &Machine, work: Pid, what: &str) {
    let script = format!("grep -qs '^State:.[^Z]' /proc/{}/task/*/status", work.as_raw_pid());
    let next = machine.run(&["run", "/x", "--wait", "20s", "--", "sh", "-c", &script]);
    assert!(matches!(next.code, Some(1 | 2)), "{what}: {:?}: {}", next.code, next.stderr);
    assert!(!lives(work), "{what}");
}

/// Work of another user below `run`, which its user cannot kill. Only root can arrange that.
pub(crate) struct Foreign {
    pub(crate) machine: Machine,
}

impl Foreign {
    /// Everything that the ordinary user needs is in a place that it can reach; a helper with the s bit is the other user.
    pub(crate) fn new() -> Option<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        if !getuid().is_root() {
            eprintln!("SKIPPED, NOTHING TESTED: only root can be two users");
            return None;
        }
        let machine = Machine::new();
        let helper = machine.file("helper");
        fs::copy("/usr/bin/python3", &helper).expect("a copy");
        for (path, mode) in [(machine.path().to_owned(), 0o755), (helper, 0o4755)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        }
        for path in [machine.path().to_owned(), machine.file("run")] {
            std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).expect("it is ours");
        }
        Some(Self { machine })
    }

    /// `sigmalock WORDS…` of the ordinary user.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = self.machine.command(words);
        command.uid(65_534).gid(65_534).env("SIGMALOCK_BIN", env!("CARGO_BIN_EXE_sigmalock"));
        command
    }

    /// How that ends.
    pub(crate) fn code(&self, words: &[&str]) -> Option<i32> {
        self.command(words).output().expect("it ends").status.code()
    }

    /// `run /x` of the ordinary user; and the other user's process, which ends after so long.
    pub(crate) fn spawn(&self, ttl: &str, seconds: u32) -> (Child, Pid) {
        let file = self.machine.file("pid");
        let _ = fs::remove_file(&file);
        // It tells its number when it has become the other user; until then it may be killed.
        let sleep = format!(
            "import os; os.setuid(0); print(os.getpid(), file=open(\"{}\", \"w\"), flush=True); \
             os.execv(\"/bin/sleep\", [\"sleep\", \"{seconds}\"])",
            file.display()
        );
        let helper = self.machine.file("helper");
        let script = format!("{} -ISc '{sleep}' & wait", helper.display());
        let words = ["run", "/x", "--ttl", ttl, "--", "sh", "-c", &script];
        let mut run = self.command(&words);
        let run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        (run, pid_in(&file))
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // Only its own user may ask it.
        let status = self.command(&["status", "--json"]).output().expect("it ends");
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        let peer = status["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(peer) = peer {
            let _ = kill_process(peer, Signal::KILL);
        }
    }
}
