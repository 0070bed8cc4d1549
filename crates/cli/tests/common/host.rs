//! A machine of its own, as far as files go: /etc, /run, /var/lib and /var/tmp that no other has, in a mount namespace. What
//! a machine knows of swarms is there. Its network is that of all.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Ran;

/// Makes the namespace of a command.
const ENTER: &str = r#"set -e
mount --bind "$1/etc" /etc
mount --bind "$1/run" /run
mount --bind "$1/lib" /var/lib
mount --bind "$1/tmp" /var/tmp
mount --bind "$2" "$1/sigmalock"
shift 2
exec "$@"
"#;

/// What programs want to find in /etc.
const ETC: [&str; 5] = ["passwd", "group", "nsswitch.conf", "ld.so.cache", "hosts"];

/// Somebody, and where they are at home.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub(crate) uid: u32,
    pub(crate) home: &'static str,
}

pub(crate) const ROOT: Who = Who { uid: 0, home: "root" };
pub(crate) const ROOT_ELSEWHERE: Who = Who { uid: 0, home: "elsewhere" };
pub(crate) const NOBODY: Who = Who { uid: 65_534, home: "nobody" };
pub(crate) const NOBODY_ELSEWHERE: Who = Who { uid: 65_534, home: "nowhere" };
pub(crate) const EVERYBODY: [Who; 4] = [ROOT, ROOT_ELSEWHERE, NOBODY, NOBODY_ELSEWHERE];

/// A machine.
pub(crate) struct Host {
    dir: TempDir,
}

impl Host {
    /// `None`, and a line that says so, where none can be made.
    pub(crate) fn new() -> Option<Self> {
        let host = Self { dir: tempfile::tempdir().expect("a directory") };
        let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        open(host.path(), 0o755).expect("ours");
        for (name, mode) in [("etc", 0o755), ("run", 0o755), ("lib", 0o755), ("tmp", 0o1777)] {
            fs::create_dir(host.file(name)).expect("new");
            open(&host.file(name), mode).expect("ours");
        }
        for name in ETC {
            let _ = fs::copy(Path::new("/etc").join(name), host.file("etc").join(name));
        }
        fs::write(host.file("sigmalock"), "").expect("new");
        let works =
            host.enter(NOBODY, &[host.file("sigmalock").as_os_str(), OsStr::new("--version")]);
        let works = { works }.output().is_ok_and(|output| output.status.success());
        if !works {
            eprintln!(
                "SKIPPED, NOTHING TESTED: no mount namespaces can be made here (they take root)"
            );
            return None;
        }
        for who in EVERYBODY {
            for dir in [host.home(who), host.home(who).join("run")] {
                fs::create_dir(&dir).expect("new");
                open(&dir, 0o700).expect("ours");
                chown(&dir, Some(who.uid), Some(who.uid)).expect("we are root");
            }
        }
        Some(host)
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A file of it: `etc`, `run`, `lib` and `tmp` are its /etc, /run, /var/lib and /var/tmp.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn home(&self, who: Who) -> PathBuf {
        self.file(who.home)
    }

    /// Writes a file of it, whose directory is made if need be.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("ours");
        fs::write(path, text).expect("ours");
    }

    /// A reboot, as far as files go.
    pub(crate) fn reboot(&self) {
        for entry in fs::read_dir(self.file("run")).expect("there").flatten() {
            fs::remove_dir_all(entry.path()).expect("ours");
        }
    }

    /// Any program on it.
    pub(crate) fn enter<S: AsRef<OsStr>>(&self, who: Who, words: &[S]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(self.path());
        let uid = who.uid.to_string();
        command.args([env!("CARGO_BIN_EXE_sigmalock"), "setpriv", "--clear-groups"]);
        command.args(["--reuid", &uid, "--regid", &uid, "--"]).args(words);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("SIGMALOCK_") || name.starts_with("XDG_") {
                command.env_remove(name);
            }
        }
        command
            .env("HOME", self.home(who))
            .env("XDG_RUNTIME_DIR", self.home(who).join("run"))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// `sigmalock WORDS…` on it.
    pub(crate) fn command(&self, who: Who, words: &[&str]) -> Command {
        let mut all = vec![self.file("sigmalock").into_os_string()];
        all.extend(words.iter().map(Into::into));
        self.enter(who, &all)
    }

    pub(crate) fn spawn(&self, who: Who, words: &[&str]) -> Child {
        let mut command = self.command(who, words);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    }

    pub(crate) fn run(&self, who: Who, words: &[&str]) -> Ran {
        end(&mut self.command(who, words))
    }

    /// The same, by somebody who is a member of that group.
    pub(crate) fn run_as_member(&self, who: Who, group: u32, words: &[&str]) -> Ran {
        let (uid, group) = (who.uid.to_string(), group.to_string());
        let binary = self.file("sigmalock").display().to_string();
        let user = ["setpriv", "--reuid", &uid, "--regid", &uid, "--groups", &group, &binary];
        let all: Vec<&str> = user.iter().chain(words).copied().collect();
        let mut command = self.enter(ROOT, &all);
        end(command.env("HOME", self.home(who)).env("XDG_RUNTIME_DIR", self.home(who).join("run")))
    }

    /// What is told of somebody's private peer.
    pub(crate) fn private(&self, who: Who) -> serde_json::Value {
        let status = self.run(who, &["status", "--json", "--private"]);
        serde_json::from_str(&status.stdout).unwrap_or_default()
    }

    /// Whether anybody has ever had a private peer here.
    pub(crate) fn has_private_peers(&self) -> bool {
        let made = |who: Who| {
            self.home(who).join("run/sigmalock/private.sock").exists()
                || self.home(who).join(".local/state/sigmalock-private").exists()
        };
        EVERYBODY.into_iter().any(made)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for who in EVERYBODY.into_iter().filter(|who| self.home(*who).exists()) {
            let pid = self.private(who)["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
            if let Some(pid) = pid.and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// How a command ends.
pub(crate) fn end(command: &mut Command) -> Ran {
    let output = command.output().expect("it starts");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}
