//! What is stopped, or sleeps, past its time: nobody else is let in beside it, and it does not keep the lock for ever.

mod common;

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::machine::{Machine, id, lives, wait_until};
use common::work::{WAYS, guardian, spawn};
use rustix::process::{Signal, kill_process};

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
