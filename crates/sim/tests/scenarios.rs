//! The stories in `scenarios/`, run and compared with the transcripts written below them.
//!
//! `cargo xtask bless` writes the transcripts anew; read the difference before committing it.

use std::fs;
use std::path::PathBuf;

use sigmalock_sim::scenario::{RULE, Scenario, forms};

const PAGE: &str = include_str!("../../../docs/scenarios.md");

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
    assert_eq!(
        error("at 1s anna dances\n"),
        "line 1: `dances` is nothing anna can do; there are: asks for NAME[, WISH…] | leaves NAME | \
         cancels NAME | writes NAME | crashes | restarts [empty] | forgets | sleeps D"
    );
    assert_eq!(error("at 1s anna sleeps\n"), "line 1: `sleeps` should be: sleeps D");
    assert_eq!(
        error("at 1s anna asks for /a, quickly\n"),
        "line 1: `quickly` says nothing about a request; there are: stays D | ttl D | waits D | tries | \
         to-read | overstays D"
    );
    assert_eq!(error("at 1s anna asks for /a, stays\n"), "line 1: `stays` should be: stays D");
    assert_eq!(error("1st REQUEST is found\n"), "line 1: `is found` should be: is lost");
    assert_eq!(
        error("every REQUEST\n"),
        "line 1: `` is nothing a message can do; there are: is lost | takes D | repeats after D"
    );
    let sentence = error("once upon a time\n");
    assert!(
        sentence.starts_with("line 1: `once upon a time` is no statement; there are: protocol P")
    );
    assert!(sentence.ends_with(" | at T X DEED | end at T"), "{sentence}");
    assert_eq!(error("replicas 3\n"), "line 1: `replicas 3` should be: replicas N, quorum M");
    assert_eq!(error("replicas 3, quorum 2\n"), "line 1: there should be a line `latency MODEL`");
}

/// The page has a row for each form that the parser knows, and for no other.
#[test]
fn the_page_has_every_form_there_is() {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let on_page: Vec<&str> = rows.map(|(form, _)| form).collect();
    assert_eq!(on_page, forms().collect::<Vec<_>>());
}

/// What the page shows can be run; and the parser takes every form, for its examples use all of them.
#[test]
fn the_examples_of_the_page_run_and_have_every_word() {
    let fences = PAGE.split("```text\n").skip(1);
    let examples: Vec<&str> = fences.filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    for example in &examples {
        let story = Scenario::parse(example).unwrap_or_else(|why| panic!("{why}:\n{example}"));
        let (lines, violations) = story.run();
        assert!(violations.is_empty() && lines.len() > 3, "{violations:#?}:\n{example}");
    }
    let words: Vec<&str> = examples.iter().flat_map(|text| text.split([' ', ',', '\n'])).collect();
    for form in forms() {
        let word = form.split([' ', ',']).next().unwrap_or_default();
        assert!(words.contains(&word), "no example of `{form}`");
    }
}
