//! The stories in `scenarios/`, run and compared with the transcripts written below them.
//!
//! `cargo xtask bless` writes the transcripts anew; read the difference before committing it.

use std::fs;
use std::path::PathBuf;

use sigmalock_sim::scenario::{RULE, Scenario};

fn stories() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_story_goes_as_its_transcript_says() {
    let bless = std::env::var_os("SIGMALOCK_BLESS").is_some();
    let files = stories();
    assert!(files.len() >= 7, "the stories of the protocol notes");
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("a readable scenario");
        let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (lines, violations) = scenario.run();
        assert!(violations.is_empty(), "{name}: {violations:#?}");
        let story: Vec<&str> = text.lines().take_while(|line| *line != RULE).collect();
        let told = format!("{}\n{RULE}\n{}\n", story.join("\n"), lines.join("\n"));
        if bless {
            fs::write(&file, &told).expect("a writable scenario");
        } else if told != text {
            let at = told.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
            panic!(
                "{name} went differently at line {}:\n  written:  {}\n  happened: {}\n\
                 `cargo xtask bless` writes the transcripts anew",
                at + 1,
                text.lines().nth(at).unwrap_or("(nothing)"),
                told.lines().nth(at).unwrap_or("(nothing)"),
            );
        }
    }
}

#[test]
fn what_is_no_story_gets_a_sentence_with_its_line() {
    let error = |text: &str| Scenario::parse(text).expect_err("not a story").to_string();
    assert_eq!(
        error("replicas 3, quorum 9\n"),
        "line 1: a quorum of 9 cannot be had from 3 replicas"
    );
    assert_eq!(error("\nlatency often\n").split(':').next(), Some("line 2"));
    assert_eq!(error("at 1s anna dances\n"), "line 1: `dances` is nothing anna can do");
    assert_eq!(error("once upon a time\n"), "line 1: `once upon a time` is no statement");
    assert_eq!(error("replicas 3, quorum 2\n"), "line 1: there should be a line `latency SPEC`");
}
