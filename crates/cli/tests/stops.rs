//! What is stopped, or sleeps, past its time: nobody else is let in beside it, and it does not keep the lock for ever.

mod common;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::machine::{Machine, id, lives, pid_in, wait_until};
use common::work::{WAYS, child, guardian, next_enters_after, spawn};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_stopped_run_changes_nothing() {
    let machine = Machine::new();
    let flags = ["--ttl", "3s", "--kill-grace", "300ms"];
    let (mut run, work) = spawn(&machine, &flags, WAYS[1].1);
    kill_process(id(&run), Signal::STOP).expect("it lives");
    std::thread::sleep(Duration::from_secs(4));
    assert!(lives(work), "it holds the lock, and goes on");
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    // Its guardian is not stopped for long.
    kill_process(id(&run), Signal::CONT).expect("it lives");
    kill_process(guardian(&run), Signal::STOP).expect("it lives");
    std::thread::sleep(Duration::from_secs(4));
    assert!(lives(work), "it holds the lock, and goes on");
    kill_process(id(&run), Signal::STOP).expect("it lives");
    // The deadline counts all the same.
    kill_process(machine.peer().expect("a peer"), Signal::KILL).expect("it lives");
    let begin = Instant::now();
    wait_until("the work is gone", || !lives(work));
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    kill_process(id(&run), Signal::CONT).expect("it lives");
    assert_eq!(run.wait().expect("it ends").code(), Some(76));
}

#[test]
fn a_run_that_is_stopped_as_a_whole_keeps_its_lock_and_its_clock() {
    let machine = Machine::new();
    let flags = ["--ttl", "3s", "--kill-grace", "300ms"];
    let (mut run, work) = spawn(&machine, &flags, WAYS[1].1);
    let stop = || {
        for process in [id(&run), guardian(&run)] {
            kill_process(process, Signal::STOP).expect("it lives");
        }
    };
    stop();
    sleep(Duration::from_secs(5));
    assert!(lives(work), "it holds the lock, and goes on");
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    let peer = machine.peer().expect("a peer");
    stop();
    kill_process(peer, Signal::KILL).expect("it lives");
    let begin = Instant::now();
    wait_until("the work is gone", || !lives(work));
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    kill_process(id(&run), Signal::CONT).expect("it lives");
    assert_eq!(run.wait().expect("it ends").code(), Some(76));
}

/// That its peer says nothing any more is no reason to go on, either.
#[test]
fn a_stopped_run_whose_peer_is_stopped_as_well_ends_its_work_in_time() {
    let machine = Machine::new();
    let flags = ["--ttl", "3s", "--kill-grace", "300ms"];
    let (mut run, work) = spawn(&machine, &flags, WAYS[1].1);
    let peer = machine.peer().expect("a peer");
    let stopped = [id(&run), peer];
    stopped.iter().for_each(|process| kill_process(*process, Signal::STOP).expect("it lives"));
    let begin = Instant::now();
    wait_until("the work is gone", || !lives(work));
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    stopped.iter().for_each(|process| kill_process(*process, Signal::CONT).expect("it lives"));
    assert_eq!(run.wait().expect("it ends").code(), Some(76));
    assert_eq!(machine.run(&["run", "/x", "--wait", "20s", "--", "true"]).code, Some(0));
}

/// Below another `run`, where the system does not by itself continue a guardian whose front is gone.
#[test]
fn a_stopped_guardian_whose_front_is_killed_ends_the_work() {
    let machine = Machine::new();
    let file = machine.file("pid");
    let inner = "\"$0\" run /x --ttl 3s --kill-grace 300ms -- sh -c \"$WORK\" & wait; sleep 60";
    let binary = env!("CARGO_BIN_EXE_sigmalock");
    let mut outer = machine.command(&["run", "/outer", "--", "sh", "-c", inner, binary]);
    let outer = outer.env("WORK", WAYS[1].1).env("PID", &file);
    let mut outer = outer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let work = pid_in(&file);
    let front = child(child(guardian(&outer)));
    let guardian = child(front);
    // The front would have it go on.
    for process in [front, guardian] {
        kill_process(process, Signal::STOP).expect("it lives");
    }
    kill_process(front, Signal::KILL).expect("it lives");
    next_enters_after(&machine, work, "the front of a stopped guardian was killed");
    kill_process(id(&outer), Signal::TERM).expect("it lives");
    outer.wait().expect("it ends");
}

/// A debugger that keeps a process from running, whatever signals it gets, until this is dropped.
struct Freezer(Child);

const FREEZE: &str = "
import ctypes, os, sys
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid = int(sys.argv[1])
for request in (0x4206, 0x4207): # seize, interrupt
    assert ptrace(request, pid, None, None) == 0, os.strerror(ctypes.get_errno())
os.waitpid(pid, 0x40000000)
print('frozen', flush=True)
sys.stdin.read()
";

impl Freezer {
    fn of(process: Pid) -> Self {
        let mut python = Command::new("python3");
        let python = python.args(["-c", FREEZE, &process.as_raw_pid().to_string()]);
        let mut python =
            python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let said = BufReader::new(python.stdout.take().expect("a pipe")).read_line(&mut line);
        assert!(said.is_ok() && line == "frozen\n", "{line}");
        Self(python)
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_command_is_not_begun_under_a_lock_whose_time_is_up_by_then() {
    let machine = Machine::new();
    let mut lock = machine.command(&["lock", "/x"]);
    let mut lock = lock.stdin(Stdio::piped()).spawn().expect("it starts");
    wait_until("it is held", || machine.run(&["locks", "/x"]).stdout.contains("/x"));
    let began = machine.file("began");
    let began = began.to_str().expect("text");
    let run = machine.spawn(&["run", "/x", "--ttl", "2s", "--", "touch", began]);
    sleep(Duration::from_secs(1));
    let frozen = Freezer::of(guardian(&run));
    drop(lock.stdin.take());
    lock.wait().expect("it ends");
    sleep(Duration::from_secs(4));
    drop(frozen);
    let run = run.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(75), "{said}");
    assert!(said.contains("its time was up before this process woke"), "{said}");
    assert!(!std::path::Path::new(began).exists());
}

#[test]
fn a_program_that_does_not_run_for_its_ttl_loses_its_lock_and_not_before() {
    let machine = Machine::new();
    let mut lock = machine.command(&["lock", "/x", "--ttl", "3s"]);
    let mut lock = lock.stdin(Stdio::piped()).spawn().expect("it starts");
    wait_until("it is held", || machine.run(&["locks", "/x"]).stdout.contains("/x"));
    for _ in 0..2 {
        kill_process(id(&lock), Signal::STOP).expect("it lives");
        sleep(Duration::from_millis(1_500));
        kill_process(id(&lock), Signal::CONT).expect("it lives");
        sleep(Duration::from_millis(3_500));
        assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    }
    kill_process(id(&lock), Signal::STOP).expect("it lives");
    let begin = Instant::now();
    assert_eq!(machine.run(&["run", "/x", "--wait", "20s", "--", "true"]).code, Some(0));
    let waited = begin.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(4)).contains(&waited), "{waited:?}");
    kill_process(id(&lock), Signal::CONT).expect("it lives");
    assert_eq!(lock.wait().expect("it ends").code(), Some(76), "it hears that it lost it");
}
