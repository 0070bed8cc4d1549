//! PostgreSQL behind a fence: a real cluster, made for this test.

use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::{Dir, recipe};

/// A cluster of its own, reachable only through a socket in its directory.
struct Cluster {
    dir: Dir,
    bin: PathBuf,
}

impl Cluster {
    /// `None`, and a loud word, where PostgreSQL is not installed.
    fn start() -> Option<Self> {
        let Some(bin) = newest_installation() else {
            eprintln!("SKIPPED, NOTHING TESTED: no PostgreSQL in /usr/lib/postgresql");
            return None;
        };
        let dir = Dir::new("fence-postgres");
        if let Some((uid, gid)) = other_user() {
            chown(&dir.0, Some(uid), Some(gid)).unwrap();
        }
        let cluster = Self { dir, bin };
        let data = cluster.data();
        cluster.run("initdb", &["-D", &data, "-A", "trust", "-U", "postgres", "-N"]);
        let options = format!("-c listen_addresses= -c fsync=off -k {}", cluster.dir.0.display());
        let log = cluster.dir.0.join("log").display().to_string();
        cluster.run("pg_ctl", &["-D", &data, "-w", "-l", &log, "-o", &options, "start"]);
        Some(cluster)
    }

    fn data(&self) -> String {
        self.dir.0.join("data").display().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(&self.dir.0).stdin(Stdio::null());
        // The server refuses to run as root.
        if let Some((uid, gid)) = other_user() {
            command.uid(uid).gid(gid);
        }
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        // Not a pipe: the server would keep it open.
        let status = self.command(program).args(arguments).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{program}: {status}");
    }

    fn psql(&self, variables: &[(&str, &str)], sql: &str) -> Output {
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"]);
        command.args(["-U", "postgres", "-h"]).arg(&self.dir.0);
        for (name, value) in variables {
            command.arg("-v").arg(format!("{name}={value}"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// The recipe's transaction, with a line of ours before its end.
    fn add(&self, token: &str, holder: &str, amount: &str, before_commit: &str) -> Output {
        let variables =
            [("name", "/accounts"), ("token", token), ("holder", holder), ("amount", amount)];
        let sql = recipe("sql use").replace("COMMIT;", &format!("{before_commit}\nCOMMIT;"));
        self.psql(&variables, &sql)
    }

    fn balance(&self) -> String {
        let output = self.psql(&[], "SELECT balance FROM accounts WHERE id = 1;");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let stop = ["-D", &self.data(), "-m", "immediate", "stop"];
        let _ = self.command("pg_ctl").args(stop).stdout(Stdio::null()).status();
    }
}

fn newest_installation() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut bins: Vec<_> = versions.flatten().map(|version| version.path().join("bin")).collect();
    bins.retain(|bin| bin.join("initdb").exists());
    bins.sort();
    bins.pop()
}

/// Whom to run the server as, if this is root.
fn other_user() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string(Path::new("/etc/passwd")).ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut numbers = line.split(':').skip(2).map_while(|field| field.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn stale(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("SL001")
}

#[test]
fn a_holder_that_overslept_does_not_write_to_postgresql() {
    let Some(cluster) = Cluster::start() else { return };
    let setup = recipe("sql setup")
        + "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
           INSERT INTO accounts VALUES (1, 0);";
    let output = cluster.psql(&[], &setup);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    assert!(cluster.add("7", "alice", "1", "").status.success());
    assert!(cluster.add("7", "alice", "1", "").status.success());
    assert!(cluster.add("8", "bob", "10", "").status.success());
    assert_eq!(cluster.balance(), "12");

    let late = cluster.add("7", "alice", "100", "");
    assert!(stale(&late), "{}", String::from_utf8_lossy(&late.stderr));
    let posing = cluster.add("8", "alice", "100", "");
    assert!(stale(&posing), "{}", String::from_utf8_lossy(&posing.stderr));
    assert_eq!(cluster.balance(), "12");

    // Alice passes the check, and is paused before she commits. Bob does not overtake her.
    std::thread::scope(|scope| {
        let alice = scope.spawn(|| cluster.add("9", "alice", "1", "SELECT pg_sleep(0.5);"));
        let reached = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(%';";
        let sleeps = || cluster.psql(&[], reached).stdout.starts_with(b"1");
        while !sleeps() {
            assert!(!alice.is_finished(), "the pause was over before it was seen");
        }
        let started = std::time::Instant::now();
        assert!(cluster.add("10", "bob", "10", "").status.success());
        assert!(alice.join().unwrap().status.success());
        assert!(started.elapsed().as_millis() > 50, "nobody waited");
    });
    assert_eq!(cluster.balance(), "23");
}
