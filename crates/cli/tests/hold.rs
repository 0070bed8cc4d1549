//! `run` keeps hold of what it started: whatever is killed, and however a command hides its work, nobody else is
//! let in before it has ended.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::machine::{Machine, id, lives, pid_in, wait_until};
use common::work::{guardian, next_enters_after, spawn, ways};
use rustix::process::{Signal, kill_process};

#[test]
fn a_killed_run_leaves_nothing_behind_however_it_hides() {
    let machine = Machine::new();
    for (what, script) in ways() {
        let (mut run, work) = spawn(&machine, &["--kill-grace", "300ms"], script);
        kill_process(id(&run), Signal::KILL).expect("it lives");
        run.wait().expect("it ends");
        next_enters_after(&machine, work, what);
    }
}

#[test]
fn when_the_guardian_is_killed_the_front_ends_everything() {
    let machine = Machine::new();
    for (what, script) in ways() {
        let (mut run, work) = spawn(&machine, &["--ttl", "3s"], script);
        kill_process(guardian(&run), Signal::KILL).expect("it lives");
        assert_eq!(run.wait().expect("it ends").code(), Some(76), "{what}");
        assert!(!lives(work), "{what}");
        next_enters_after(&machine, work, what);
    }
}

#[test]
fn a_run_that_is_told_to_end_ends_everything_however_it_hides() {
    let machine = Machine::new();
    let quick =
        "setsid sh -c 'trap \"\" TERM INT HUP; echo $$ > $PID; sleep 60; sleep 60' & sleep 60";
    for (signal, flags) in [
        (Signal::TERM, &["--kill-grace", "300ms"][..]),
        (Signal::INT, &["--kill-grace", "300ms"]),
        (Signal::HUP, &["--kill-grace", "300ms", "--linger"]),
    ] {
        let (mut run, work) = spawn(&machine, flags, quick);
        kill_process(id(&run), signal).expect("it lives");
        next_enters_after(&machine, work, "told to end");
        assert_eq!(run.wait().expect("it ends").code(), Some(128 + signal.as_raw()));
    }
}

#[test]
fn a_run_whose_group_is_in_an_outer_pid_namespace_works() {
    let machine = Machine::new();
    let run = machine.command(&["run", "/x", "--", "echo", "hi"]);
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc"]).arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => unshare.env(name, value),
            None => unshare.env_remove(name),
        };
    }
    let ran = unshare.output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stderr);
    if said.starts_with("unshare:") {
        eprintln!("SKIPPED, NOT TESTED: no namespaces can be made here (they take root)");
        return;
    }
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"hi\n"[..]), "{said}");
}

#[test]
fn a_broken_lock_ends_everything_however_it_hides() {
    let machine = Machine::new();
    for (what, script) in ways() {
        let (mut run, work) = spawn(&machine, &["--kill-grace", "300ms"], script);
        assert_eq!(machine.run(&["break", "/x", "--yes"]).code, Some(0));
        next_enters_after(&machine, work, what);
        assert_eq!(run.wait().expect("it ends").code(), Some(76), "{what}");
    }
}

/// Each process of this starts the next and ends, in a session of its own: none is there for long enough to be found in
/// the process table. It says that it goes on in `$PID.beat`.
const QUICK: &str = "python3 -c \"
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
open(os.environ['PID'], 'w').write(str(os.getpid()))
beat = os.open(os.environ['PID'] + '.beat', os.O_CREAT | os.O_RDWR)
end = time.time() + 30
while time.time() < end:
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    os.pwrite(beat, b'%d' % time.monotonic_ns(), 0)\" & sleep 60";

#[test]
fn work_that_is_never_the_same_process_for_long_is_ended_as_well() {
    let machine = Machine::new();
    let file = machine.file("pid.beat");
    for what in ["front", "guardian", "break"] {
        let (mut run, _) = spawn(&machine, &["--ttl", "3s", "--kill-grace", "300ms"], QUICK);
        wait_until("it beats", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
        match what {
            "front" => kill_process(id(&run), Signal::KILL).expect("it lives"),
            "guardian" => kill_process(guardian(&run), Signal::KILL).expect("it lives"),
            _ => assert_eq!(machine.run(&["break", "/x", "--yes"]).code, Some(0)),
        }
        let script = format!("cp {0} {0}.then; sleep 0.5; cmp {0} {0}.then", file.display());
        let next = machine.run(&["run", "/x", "--wait", "20s", "--", "sh", "-c", &script]);
        assert_eq!(next.code, Some(0), "{what}: it goes on: {}{}", next.stdout, next.stderr);
        run.wait().expect("it ends");
        fs::remove_file(&file).expect("it was there");
    }
}

#[test]
fn a_peer_that_was_started_on_the_way_has_nothing_of_whoever_started_it() {
    let machine = Machine::new();
    let file = machine.file("flock");
    let flock = machine.command(&["run", "/x", "--", "true"]);
    let words: Vec<_> = std::iter::once(flock.get_program().to_owned())
        .chain(flock.get_args().map(ToOwned::to_owned))
        .collect();
    let mut outer = std::process::Command::new("flock");
    outer.arg(&file).args(words).stdin(Stdio::null());
    for (name, value) in flock.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    assert!(outer.status().expect("it ends").success());
    let peer = machine.peer().expect("the peer is there").as_raw_pid();
    let free = std::process::Command::new("flock").arg("-n").arg(&file).arg("true").status();
    assert!(free.expect("it ends").success(), "the peer has no descriptor of it");
    let stat = fs::read_to_string(format!("/proc/{peer}/stat")).expect("it lives");
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(fields[4], "0", "it has no terminal: {stat}");
    let cwd = fs::read_link(format!("/proc/{peer}/cwd")).expect("it lives");
    assert_eq!(cwd.to_str(), Some("/"));
}

/// Whoever ends everything below it must not find the peer there; also where what starts it is slow to end.
#[test]
fn a_peer_that_was_started_on_the_way_is_none_of_what_is_ended() {
    let machine = Machine::new();
    let slow = machine.file("slow");
    let sigmalock = env!("CARGO_BIN_EXE_sigmalock");
    let script = format!("#!/bin/sh\n{sigmalock} node --private &\nsleep 1\n");
    fs::write(&slow, script).expect("a script");
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let pid = machine.file("pid");
    let words = ["run", "/x", "--", "sh", "-c", "echo $$ > $PID; sleep 60"];
    let run = machine.command(&words).env("SIGMALOCK_BIN", &slow).env("PID", &pid).spawn();
    let mut run = run.expect("it starts");
    pid_in(&pid);
    let peer = machine.peer().expect("the peer is there");
    kill_process(guardian(&run), Signal::KILL).expect("it lives");
    assert_eq!(run.wait().expect("it ends").code(), Some(76));
    assert_eq!(machine.peer(), Some(peer), "it was not ended as well");
}

#[test]
fn what_a_command_leaves_behind_is_told_or_waited_for() {
    let machine = Machine::new();
    // The command ends when what it leaves behind has got its name.
    let script = "setsid sleep 3 > /dev/null 2>&1 & \
                  until grep -q sleep /proc/$!/comm; do :; done;";
    let told = machine.run(&["run", "/x", "--", "sh", "-c", script]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(
        told.stderr.contains("/x was given back, and what the command left behind still runs: "),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains(" (sleep); --linger waits for it"), "{}", told.stderr);
    let begin = Instant::now();
    let waited =
        machine.run(&["run", "/x", "--linger", "--", "sh", "-c", &format!("{script} exit 5")]);
    assert_eq!((waited.code, waited.stderr.as_str()), (Some(5), ""));
    assert!(begin.elapsed() >= Duration::from_secs(3), "{:?}", begin.elapsed());
}

#[test]
fn the_command_inherits_nothing_of_ours_and_what_it_was_given() {
    let machine = Machine::new();
    let show = "ls -l /proc/self/fd; echo $SIGMALOCK_HOLDER; cat <&7";
    let given = machine.file("given");
    fs::write(&given, "given\n").expect("it can be written");
    let command = format!(
        "exec 7< {}; exec {} run /x -- sh -c '{show}'",
        given.display(),
        env!("CARGO_BIN_EXE_sigmalock")
    );
    let mut shell = machine.command::<&str>(&[]);
    let environment: Vec<_> =
        shell.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
    shell = std::process::Command::new("sh");
    for (name, value) in environment {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.args(["-c", &command]).output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("given\n"), "{text}");
    assert!(!text.contains("socket:"), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with('p') && line.matches('/').count() == 3),
        "{text}"
    );
}
