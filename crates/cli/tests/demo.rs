//! `demo` and `bench` from beginning to end: real peers, real kills, and nothing left behind.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::machine::{Machine, PATIENCE, id, wait_until};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

/// Each of these wants the machine for itself: a benchmark beside it would starve a demonstration.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processes that this demonstration started and that still run: their command lines name its
/// temporary directory.
fn processes_of(temp: &std::path::Path) -> Vec<String> {
    let marker = temp.display().to_string();
    let all = std::fs::read_dir("/proc").expect("a list of processes");
    let lines =
        all.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&marker)).collect()
}

fn is_empty(dir: &std::path::Path) -> bool {
    std::fs::read_dir(dir).expect("readable").next().is_none()
}

#[test]
fn a_demonstration_kills_heals_and_cleans_up() {
    let _alone = alone();
    let machine = Machine::new();
    let temp = tempfile::tempdir().expect("a directory");
    let mut demo = machine.command(&["demo", "--auto", "--seconds", "20", "--json"]);
    let demo = demo.env("TMPDIR", temp.path()).output().expect("it ends");
    let out = String::from_utf8_lossy(&demo.stdout);
    let told = format!("{out}{}", String::from_utf8_lossy(&demo.stderr));
    assert_eq!(demo.status.code(), Some(0), "{told}");
    let summary: Value = serde_json::from_str(out.lines().last().expect("a summary")).expect(&told);
    assert!(summary["entries"].as_u64() >= Some(5), "{told}");
    assert!(summary["kills"].as_u64() >= Some(1), "{told}");
    assert_eq!(summary["violations"], Value::Array(Vec::new()), "{told}");
    assert_eq!(summary["tokens_monotone"], Value::Bool(true));
    assert!(out.contains("SIGKILL for peer") && out.contains("is back"), "{told}");
    assert!(out.contains(" peers up, "), "a line every second: {told}");
    // Whoever was stopped inside wrote with its old token when it woke, and the register took no notice.
    assert!(summary["holders_stopped"].as_u64() >= Some(1), "{told}");
    assert!(summary["writes_refused"].as_u64() >= Some(1), "{told}");
    assert!(out.contains("is stopped inside /") && out.contains(": REFUSED, "), "{told}");
    assert_eq!(processes_of(temp.path()), Vec::<String>::new());
    assert!(is_empty(temp.path()), "the temporary directory is gone");
}

#[test]
fn an_interrupted_demonstration_leaves_nothing_behind() {
    let _alone = alone();
    for signal in [Signal::INT, Signal::KILL] {
        let machine = Machine::new();
        let temp = tempfile::tempdir().expect("a directory");
        let mut demo = machine.command(&["demo", "--peers", "3"]);
        let mut demo = demo.env("TMPDIR", temp.path()).spawn().expect("it starts");
        wait_until("3 peers and 6 workers run", || processes_of(temp.path()).len() == 9);
        kill_process(id(&demo), signal).expect("it lives");
        let code = demo.wait().expect("it ends").code();
        wait_until("all are gone", || processes_of(temp.path()).is_empty());
        if signal == Signal::INT {
            assert_eq!(code, Some(0));
            assert!(is_empty(temp.path()), "the temporary directory is gone");
        }
    }
}

#[test]
fn a_benchmark_measures_everything_it_promises() {
    let _alone = alone();
    let machine = Machine::new();
    let begin = std::time::Instant::now();
    let ran = machine.run(&[
        "bench",
        "--peers",
        "3",
        "--clients",
        "4",
        "--seconds",
        "1",
        "--durable",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(begin.elapsed() < 3 * PATIENCE);
    let report: Value = serde_json::from_str(&ran.stdout).expect("one object");
    for times in ["ping", "acquire_fresh", "acquire_repeated", "hand_off"] {
        let (p50, p99) = (report[times]["p50_us"].as_f64(), report[times]["p99_us"].as_f64());
        assert!(p50 > Some(0.0) && p99 >= p50, "{times}: {report}");
    }
    let number =
        |name: &str| report[name].as_f64().unwrap_or_else(|| panic!("no {name}: {report}"));
    assert!(number("cycles_per_s") > 10.0 && number("durable_cycles_per_s") > 1.0, "{report}");
    let ratio = number("durable_cycles_per_s") / number("cycles_per_s");
    assert!((number("durable_over_ephemeral") - ratio).abs() < 1e-6);
}
