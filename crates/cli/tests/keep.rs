//! `run` keeps the lock where it cannot see, or cannot end, what is below it.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use common::machine::{Machine, id, lives, wait_until};
use common::work::{Foreign, guardian, next_enters_after, spawn, ways};
use rustix::process::{Pid, Signal, kill_process};

/// From now on that process can open nothing, not even the process table.
fn starve(process: Pid) {
    let user = fs::metadata(format!("/proc/{}", process.as_raw_pid())).expect("it lives");
    let mut prlimit = Command::new("prlimit");
    let prlimit = prlimit.args(["--nofile=3:3", "--pid", &process.as_raw_pid().to_string()]);
    let starved = prlimit.uid(user.uid()).gid(user.gid()).status().expect("it starts");
    assert!(starved.success());
}

#[test]
fn a_guardian_that_can_open_nothing_keeps_the_lock_until_all_has_ended() {
    let machine = Machine::new();
    for (what, script) in ways() {
        let (mut run, work) = spawn(&machine, &["--kill-grace", "300ms"], script);
        starve(guardian(&run));
        kill_process(id(&run), Signal::KILL).expect("it lives");
        run.wait().expect("it ends");
        next_enters_after(&machine, work, what);
    }
}

#[test]
fn a_front_that_can_open_nothing_ends_everything() {
    let machine = Machine::new();
    for (what, script) in ways() {
        let (mut run, work) = spawn(&machine, &["--ttl", "3s"], script);
        starve(id(&run));
        kill_process(guardian(&run), Signal::KILL).expect("it lives");
        assert_eq!(run.wait().expect("it ends").code(), Some(76), "{what}");
        assert!(!lives(work), "{what}");
    }
}

#[test]
fn a_guardian_that_can_open_nothing_lingers_all_the_same() {
    let machine = Machine::new();
    let script = "setsid sh -c 'echo $$ > $PID; sleep 4' & sleep 1; exit 5";
    let (mut run, work) = spawn(&machine, &["--linger"], script);
    starve(guardian(&run));
    assert_eq!(run.wait().expect("it ends").code(), Some(5));
    assert!(!lives(work));
}

#[test]
fn work_of_another_user_keeps_the_lock_until_it_has_ended() {
    let Some(foreign) = Foreign::new() else { return };
    for sees in [true, false] {
        let (mut run, work) = foreign.spawn("2s", 4);
        if !sees {
            starve(guardian(&run));
        }
        kill_process(id(&run), Signal::KILL).expect("it lives");
        run.wait().expect("it ends");
        assert_eq!(foreign.code(&["run", "/x", "--wait", "500ms", "--", "true"]), Some(75));
        assert!(lives(work));
        assert_eq!(foreign.code(&["run", "/x", "--wait", "20s", "--", "true"]), Some(0));
        assert!(!lives(work), "it was waited for");
    }
}

/// `run` cannot end it, and ends itself; it gives nothing back.
#[test]
fn a_lock_that_is_broken_over_work_of_another_user_lasts_until_its_lease_ends() {
    let Some(foreign) = Foreign::new() else { return };
    let (mut run, work) = foreign.spawn("6s", 12);
    let broken = Instant::now();
    assert_eq!(foreign.code(&["break", "/x", "--yes"]), Some(0));
    assert_eq!(run.wait().expect("it ends").code(), Some(76));
    assert!(broken.elapsed() < Duration::from_secs(3), "{:?}", broken.elapsed());
    assert_eq!(foreign.code(&["run", "/x", "--wait", "20s", "--", "true"]), Some(0));
    // It was renewed a third of its ttl ago, or less.
    let lasted = Duration::from_millis(3_500)..Duration::from_secs(7);
    assert!(lasted.contains(&broken.elapsed()), "{:?}", broken.elapsed());
    assert!(lives(work), "the fence catches it");
    wait_until("it ends", || !lives(work));
}
