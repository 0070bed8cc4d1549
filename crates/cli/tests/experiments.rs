//! `lab figures`, `plan`, `trace` and `compare`, as a user has them.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::sigmalock;
use serde_json::Value;

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// What the command wrote, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let text = |path: &Path| fs::read_to_string(path).expect("a readable file");
    entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), text(&path)))
        .collect()
}

/// The columns that are promised.
const COLUMNS: [(&str, &str); 5] = [
    ("sigma-fig2", "n,m,ratio,k,probability_log10"),
    (
        "sigma-fig3",
        "protocol,variant,latency_low_ms,latency_high_ms,rate_per_s,throughput_per_s,theory_per_s,messages_per_entry,wait_p50_ms,wait_p99_ms,seed",
    ),
    (
        "sigma-fig7",
        "protocol,variant,latency_low_ms,latency_high_ms,rate_per_s,throughput_per_s,theory_per_s,messages_per_entry,wait_p50_ms,wait_p99_ms,seed",
    ),
    ("sigma-fig8", "variant,replica_life_s,rate_per_s,throughput_per_s,violations,seed"),
    (
        "sigma-messages",
        "variant,rate_per_s,messages_per_entry_over_n,yields_per_entry_over_n,retries_per_entry_over_n",
    ),
];

/// The whole quick set, which shows all that the figures must show.
#[test]
fn the_quick_figures_are_complete_and_say_what_the_data_say() {
    let out = tempfile::tempdir().expect("a folder");
    let ran = sigmalock(&format!("lab figures --quick --json --out {}", out.path().display()));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let files = files(out.path());
    assert_eq!(files.len(), 11, "a table and a drawing each, and the page: {:?}", files.keys());
    let page = &files["index.html"];
    for (name, columns) in COLUMNS {
        let table = &files[&format!("{name}.csv")];
        let mut rows = table.lines();
        assert_eq!(rows.next(), Some(columns), "{name}");
        let width = columns.split(',').count();
        assert!(rows.clone().count() > 10, "{name}");
        assert!(rows.all(|row| row.split(',').count() == width), "{name}: {table}");
        let drawing = &files[&format!("{name}.svg")];
        assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"), "{name}");
        assert!(!drawing.contains("NaN") && !drawing.contains("inf\""), "{name}");
        assert!(page.contains(drawing.as_str()), "the page shows {name}");
        assert!(
            page.contains(&format!(
                "sigmalock lab figures --only {name} --quick --seed 1 --out out"
            ))
        );
    }
    let verdicts = objects(&ran.stdout);
    let verdict = |name: &str| {
        let line = verdicts.iter().find(|line| line["figure"] == name).expect(name);
        (line["verdict"].as_str().unwrap(), line["because"].as_str().unwrap())
    };
    assert_eq!(verdict("sigma-fig3").0, "holds");
    for name in ["sigma-fig2", "sigma-fig7", "sigma-fig8", "sigma-messages"] {
        assert_eq!(verdict(name).0, "holds if", "{name}: {}", verdict(name).1);
    }
    assert!(verdict("sigma-fig2").1.contains("6.0·10⁻⁴⁰"));
    assert!(verdict("sigma-fig7").1.contains("with 0 violations"));
    assert!(verdict("sigma-fig8").1.contains("with 0 violations in all runs"));
}

#[test]
fn the_same_seed_draws_the_same_bytes_whatever_the_number_of_jobs_and_another_does_not() {
    let drawn = |jobs, seed| {
        let out = tempfile::tempdir().expect("a folder");
        let to = out.path().display();
        let ran = sigmalock(&format!(
            "lab figures --quick --only sigma-messages --seed {seed} --jobs {jobs} --out {to}"
        ));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        files(out.path())
    };
    let one = drawn(1, 1);
    assert_eq!(one.len(), 3, "{:?}", one.keys());
    assert!(one == drawn(5, 1), "jobs make a difference");
    assert!(one != drawn(5, 2), "the seed makes none");
}

#[test]
fn figures_that_cannot_be_written_are_no_panic() {
    let ran = sigmalock("lab figures --only sigma-fig2 --out /dev/null/nowhere");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("sigmalock: cannot write /dev/null/nowhere"), "{}", ran.stderr);
}

#[test]
fn a_plan_goes_both_ways_and_the_ways_agree() {
    let chosen = &objects(&sigmalock("lab plan --peers 1000 --nines 9 --json").stdout)[0];
    assert_eq!((&chosen["met"], &chosen["target_log10"]), (&true.into(), &(-9.0).into()));
    let line = format!("lab plan --peers 1000 --n {} --m {} --json", chosen["n"], chosen["m"]);
    let told = &objects(&sigmalock(&line).stdout)[0];
    for key in ["figure_2_log10", "tighter_log10", "hashed_figure_2_log10", "hashed_log10", "k"] {
        assert_eq!(told[key], chosen[key], "{key}");
    }
    assert_eq!(told["met"], Value::Null);
}

#[test]
fn a_plan_shows_the_number_of_figure_2_and_warns_of_shared_peers() {
    let ran = sigmalock("lab plan --n 32 --m 24 --peers 32");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("6.0e-40") && ran.stdout.contains("7.2e-43"), "{}", ran.stdout);
    assert!(ran.stdout.contains("hashed onto 32 peers"), "{}", ran.stdout);
    let missed = sigmalock("lab plan --n 9 --m 6 --peers 20 --target 1e-4");
    assert_eq!(missed.code, Some(1));
    assert!(missed.stdout.contains("is NOT met"), "{}", missed.stdout);
    let hopeless = sigmalock("lab plan --peers 3 --nines 12");
    assert_eq!((hopeless.code, hopeless.stdout.as_str()), (Some(1), ""));
    assert!(
        hopeless.stderr.starts_with("sigmalock: 3 peers cannot get below"),
        "{}",
        hopeless.stderr
    );
}

const COLLISION: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/02-three-way-collision.txt");

#[test]
fn a_scenario_is_traced_as_text_as_objects_and_as_a_drawing() {
    let out = tempfile::tempdir().expect("a folder");
    let svg = out.path().join("chart.svg");
    let ran = sigmalock(&format!("lab trace {COLLISION} --svg {}", svg.display()));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for piece in ["anna", "carl", "r3", "─►", "◄─", "YIELD", "bert is inside", "carl leaves"]
    {
        assert!(ran.stdout.contains(piece), "no {piece} in\n{}", ran.stdout);
    }
    let drawing = fs::read_to_string(svg).expect("a drawing");
    assert!(
        drawing.starts_with("<svg ")
            && drawing.contains("RECALL")
            && drawing.contains("class=\"inside\"")
    );
    let steps = objects(&sigmalock(&format!("lab trace {COLLISION} --json --steps 2000")).stdout);
    let granted = steps.iter().filter(|step| step["kind"] == "granted");
    assert_eq!(
        granted.map(|step| step["peer"].as_str().unwrap()).collect::<Vec<_>>(),
        ["anna", "bert", "carl"]
    );
    let sent = |step: &Value| (step["sent_ms"].as_f64(), step["at_ms"].as_f64());
    let messages = steps.iter().filter(|step| step["kind"] == "message");
    assert!(messages.map(sent).all(|(sent, came)| sent < came), "messages take time");
}

/// The line that torture prints for a failing seed shows that very failure.
#[test]
fn torture_says_how_to_trace_what_failed() {
    let hunt = "lab torture --protocol sigma --n 3 --m 2 --mutant grants-twice --seeds 0..200";
    let told = sigmalock(hunt).stdout;
    let line = told.lines().find_map(|line| line.trim().strip_prefix("trace: sigmalock "));
    let ran = sigmalock(line.expect("a line that traces"));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let violation = told.lines().find_map(|line| line.split_once("  exclusion: ")).expect(&told).1;
    assert!(ran.stdout.contains(&format!("!!! exclusion: {violation}")), "{}", ran.stdout);
    assert!(ran.stdout.contains('╂') || ran.stdout.contains('┃'), "{}", ran.stdout);
}

#[test]
fn a_comparison_has_a_table_per_level_and_a_row_per_protocol() {
    let line = "lab compare --protocols sigma,strawman:literal --clients 1,6 --n 5 --m 3 --warmup 5s --duration 30s";
    let ran = sigmalock(line);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let heads = ran.stdout.lines().filter(|line| line.starts_with("protocol  variant")).count();
    assert_eq!(heads, 2, "{}", ran.stdout);
    for word in ["1 client\n", "6 clients\n", "bytes/entry", "hand-off", "fairness", "Jain"] {
        assert!(ran.stdout.contains(word), "no {word} in\n{}", ran.stdout);
    }
    let rows = objects(&sigmalock(&format!("{line} --json --jobs 3")).stdout);
    let who = |row: &Value| {
        format!("{} {} {}", row["clients"], row["protocol"], row["variant"]).replace('"', "")
    };
    let expected =
        ["1 sigma shipped", "1 strawman literal", "6 sigma shipped", "6 strawman literal"];
    assert_eq!(rows.iter().map(who).collect::<Vec<_>>(), expected);
    assert!(rows[2]["hand_off_delays"].as_f64() < rows[3]["hand_off_delays"].as_f64(), "{rows:?}");
    assert_eq!(
        sigmalock(&format!("{line} --json --jobs 1")).stdout,
        sigmalock(&format!("{line} --json --jobs 4")).stdout
    );
}
