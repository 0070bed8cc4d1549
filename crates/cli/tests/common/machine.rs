//! A machine of its own: a home and a runtime directory that nobody else uses, and the peer in them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Ran;

/// How long anything here may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A fresh machine. Its peer ends with it.
pub(crate) struct Machine {
    dir: TempDir,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let runtime = dir.path().join("run");
        std::fs::create_dir(&runtime).expect("a runtime directory");
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&runtime, private).expect("private");
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// `sigmalock` on this machine.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sigmalock"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SIGMALOCK_") {
                command.env_remove(name);
            }
        }
        command
            .args(words)
            // Whatever the machine that the tests run on belongs to.
            .env("SIGMALOCK_PRIVATE", "1")
            .env("HOME", self.path())
            .env("XDG_RUNTIME_DIR", self.path().join("run"))
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn spawn(&self, words: &[&str]) -> Child {
        self.command(words).spawn().expect("the binary starts")
    }

    /// Runs `sigmalock WORDS…` to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        let output = self.spawn(words).wait_with_output().expect("it ends");
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// The process of this machine's private peer, if it runs.
    pub(crate) fn peer(&self) -> Option<Pid> {
        let socket = format!("unix:{}", self.file("run/sigmalock/private.sock").display());
        let mut status = self.command(&["status", "--json", "--api", &socket]);
        let status = status.env("SIGMALOCK_CONFIG", "/dev/null").output().ok()?;
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).ok()?;
        Pid::from_raw(i32::try_from(status["pid"].as_i64()?).ok()?)
    }

    /// A file that commands may write to.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(peer) = self.peer() {
            let _ = kill_process(peer, Signal::KILL);
        }
    }
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a thread of a process is there; one that ended and was not waited for is not.
pub(crate) fn lives(pid: Pid) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())) else {
        return false;
    };
    threads.flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat"));
        stat.is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|s| s.starts_with(" Z")))
    })
}

/// The number in a file, once it is there.
pub(crate) fn pid_in(file: &Path) -> Pid {
    let read = || std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
    wait_until("a process wrote its number", || read().is_some());
    Pid::from_raw(read().expect("a number")).expect("a process")
}

pub(crate) fn id(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("a process")
}
