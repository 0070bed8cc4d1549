//! What the laboratory prints: tables for people, one JSON object a line for programs, and lines that
//! replay what went wrong.

mod common;

use std::process::{Command, Stdio};

use common::sigmalock;
use serde_json::Value;

/// The columns of a point, in the order of the files that plots are made from.
const COLUMNS: [&str; 11] = [
    "protocol",
    "variant",
    "latency_low_ms",
    "latency_high_ms",
    "rate_per_s",
    "throughput_per_s",
    "theory_per_s",
    "messages_per_entry",
    "wait_p50_ms",
    "wait_p99_ms",
    "seed",
];

const SWEEP: &str = "lab sweep --n 5 --m 3 --rate 0.5,1 --warmup 10s --duration 1m";

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn the_help_of_plan_says_what_its_n_and_m_are() {
    let help = sigmalock("lab plan --help").stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["the replicas that guard the lock", "the votes that hold it", "the fewest that meet"]
    {
        assert!(help.contains(words), "no {words:?} in {help}");
    }
    assert!(!help.contains("drawn"), "no seed draws anything here: {help}");
}

#[test]
fn a_sweep_prints_one_object_a_line_with_every_column() {
    let ran = sigmalock(&format!("{SWEEP} --protocol sigma,strawman --seed 7 --json"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let points = objects(&ran.stdout);
    assert_eq!(points.len(), 4, "two protocols at two rates");
    for point in &points {
        for column in COLUMNS {
            assert!(point.get(column).is_some(), "no {column} in {point}");
        }
        assert_eq!((&point["variant"], &point["seed"]), (&"shipped".into(), &7.into()));
    }
    let order: Vec<_> =
        points.iter().map(|p| (p["protocol"].as_str(), p["rate_per_s"].as_f64())).collect();
    let expected = ["sigma", "sigma", "strawman", "strawman"].map(Some);
    assert_eq!(order.iter().map(|(protocol, _)| *protocol).collect::<Vec<_>>(), expected);
    assert_eq!(
        order.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(),
        [Some(0.5), Some(1.0)].repeat(2)
    );
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_number_of_jobs() {
    let sweep = |jobs| sigmalock(&format!("{SWEEP} --json --jobs {jobs}")).stdout;
    assert_eq!(sweep(1), sweep(4));
    let torture = |jobs| {
        sigmalock(&format!(
            "lab torture --protocol sigma --n 3 --m 2 --seeds 0..8 --json --jobs {jobs}"
        ))
        .stdout
    };
    assert_eq!(torture(1), torture(4));
}

#[test]
fn a_closed_load_has_no_rate() {
    let ran = sigmalock("lab sweep --clients 3 --n 3 --m 2 --warmup 0s --duration 20s --json");
    assert_eq!(objects(&ran.stdout)[0]["rate_per_s"], Value::Null);
    let ran = sigmalock("lab sweep --clients 3 --n 3 --m 2 --warmup 0s --duration 20s");
    assert!(ran.stdout.lines().nth(1).is_some_and(|row| row.contains("closed")), "{}", ran.stdout);
}

#[test]
fn a_run_that_was_stopped_is_no_measurement() {
    let ran = sigmalock("lab sweep --clients 20000 --n 1024 --m 513 --json");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    let sentence = "sigmalock: shipped sigma, 20000 clients: the run was stopped at ";
    assert!(ran.stderr.starts_with(sentence), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn where_nobody_enters_nobody_waited() {
    let nobody = "lab sweep --n 3 --m 2 --rate 1 --loss 1 --warmup 0s --duration 20s";
    let point = &objects(&sigmalock(&format!("{nobody} --json")).stdout)[0];
    for column in ["messages_per_entry", "wait_p50_ms", "wait_p99_ms"] {
        assert_eq!(point[column], Value::Null, "{column}");
    }
    let ran = sigmalock(nobody);
    let row: Vec<&str> = ran.stdout.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(row[5..8], ["-", "-", "-"], "{}", ran.stdout);
}

#[test]
fn torture_and_sweep_take_the_same_lists_of_protocols() {
    for list in ["all", "sigma,strawman"] {
        let torture = "lab torture --n 3 --m 2 --seeds 0..2 --json";
        for experiment in [torture, "lab sweep --n 3 --m 2 --rate 1 --duration 10s --json"] {
            let lines = objects(&sigmalock(&format!("{experiment} --protocol {list}")).stdout);
            let names: Vec<_> = lines.iter().map(|line| line["protocol"].as_str()).collect();
            assert_eq!(names, [Some("sigma"), Some("strawman")], "{experiment} --protocol {list}");
        }
    }
}

#[test]
fn the_last_seeds_there_are_come_to_an_end() {
    let last = "18446744073709551610..18446744073709551615";
    let ran = sigmalock(&format!("lab torture --protocol sigma --seeds {last} --json"));
    assert_eq!(objects(&ran.stdout)[0]["seeds"], 5, "{}", ran.stderr);
}

#[test]
fn violated_seeds_beyond_the_first_hundred_are_counted() {
    let hunt = "lab torture --protocol sigma --n 3 --m 2 --mutant grants-twice --seeds 0..200";
    let ran = sigmalock(&format!("{hunt} --keep-going"));
    let told = ran.stdout.lines().filter(|line| line.starts_with("seed ")).count();
    assert_eq!(told, 100);
    let last = ran.stdout.lines().last().expect("an end");
    assert!(last.starts_with("… and ") && last.ends_with(" more seeds of sigma"), "{last}");
}

#[test]
fn a_table_has_a_heading_and_a_row_per_point() {
    let ran = sigmalock(SWEEP);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("protocol  variant"), "{}", lines[0]);
}

#[test]
fn a_seed_that_violates_prints_the_line_that_replays_it() {
    let hunt = "lab torture --protocol sigma --n 3 --m 2 --mutant grants-twice --seeds 0..200";
    let ran = sigmalock(hunt);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let replay = ran.stdout.lines().find_map(|line| line.trim().strip_prefix("replay: sigmalock "));
    let replay = replay.expect("a replay line");
    let again = sigmalock(replay);
    assert_eq!(again.code, Some(1), "{replay}");
    let story = |text: &str| text[text.find("\nseed ").expect("a story")..].to_owned();
    assert_eq!(story(&again.stdout), story(&ran.stdout));

    let events = objects(&sigmalock(&format!("{replay} --json")).stdout);
    assert_eq!(events[0]["event"], "violation");
    assert_eq!(events[0]["replay"], format!("sigmalock {replay}"));
    assert_eq!((&events[1]["event"], &events[1]["seeds_violated"]), (&"summary".into(), &1.into()));
}

#[test]
fn seeds_without_a_violation_end_well() {
    let ran = sigmalock("lab torture --protocol sigma --n 5 --m 3 --seeds 0..10 --json");
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let summary = &objects(&ran.stdout)[0];
    assert_eq!((&summary["seeds"], &summary["seeds_violated"]), (&10.into(), &0.into()));
    assert!(summary["entries"].as_u64() > Some(0), "{summary}");
}

#[test]
fn a_mutant_that_is_caught_is_listed_with_oracle_and_seed() {
    let names = sigmalock("lab mutants --list").stdout;
    assert!(names.lines().any(|name| name == "grants-twice"), "{names}");
    // One seed catches few: the rest are said to escape, and that is a failure.
    let ran = sigmalock("lab mutants --n 3 --m 2 --seeds 0..1 --json");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let hunts = objects(&ran.stdout);
    assert_eq!(hunts.len(), names.lines().count());
    for hunt in hunts {
        assert_eq!(hunt["caught"], !hunt["replay"].is_null(), "{hunt}");
    }
}

#[test]
fn a_reader_that_stops_reading_is_no_panic() {
    let child = Command::new(env!("CARGO_BIN_EXE_sigmalock"))
        .args(["lab", "mutants", "--list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the binary starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert!(matches!(ended.status.code(), Some(0 | 141)), "{}", ended.status);
}

const ZONES: &str = "lab zones --fraction 600 --step 450 --runs 2";

#[test]
fn zones_have_a_table_for_people_and_rows_for_programs() {
    let ran = sigmalock(ZONES);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 1 + 3 * 2, "three shares, together and in two camps: {}", ran.stdout);
    assert!(lines[0].contains("held by") && !ran.stdout.contains(','), "{}", ran.stdout);
    assert!(lines[1].contains("60.0 %") && lines[1].contains("0 of 2 runs"), "{}", lines[1]);

    let out = tempfile::tempdir().expect("a folder");
    let csv = out.path().join("zones.csv");
    let ran = sigmalock(&format!("{ZONES} --json --out {}", csv.display()));
    let rows = objects(&ran.stdout);
    assert_eq!(rows.len(), 3 * 2 * 2);
    let csv = std::fs::read_to_string(csv).expect("a file");
    let (head, runs) = csv.split_once('\n').expect("a head");
    assert_eq!(runs.lines().count(), rows.len());
    assert!(head.split(',').all(|column| rows[0].get(column).is_some()), "{head}: {}", rows[0]);
}

#[test]
fn the_help_of_the_laboratory_says_which_protocols_there_are_and_what_for() {
    let help = sigmalock("lab --help").stdout;
    for name in ["sigma", "strawman", "views", "literal", "shipped"] {
        let line = help.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line.is_some_and(|line| line.len() > 40), "{name}: {help}");
    }
}
