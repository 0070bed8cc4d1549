//! What the README says about commands is true of `--help`, and what the documentation says of mutants is
//! true of `lab mutants`.

mod common;

use common::sigmalock;

const README: &str = include_str!("../../../README.md");

/// All commands there are.
const COMMANDS: &[&str] = &[
    "",
    "demo",
    "run",
    "lock",
    "node",
    "status",
    "peers",
    "locks",
    "inspect",
    "explain",
    "break",
    "forget",
    "key",
    "key new",
    "key show",
    "bench",
    "lab",
    "lab torture",
    "lab sweep",
    "lab mutants",
    "lab figures",
    "lab compare",
    "lab plan",
    "lab trace",
    "lab zones",
    "lab protocols",
    "completions",
    "man",
];

/// Every command line of the README that runs this binary, without its first words.
fn command_lines() -> Vec<String> {
    let whole = README.replace("\\\n", " ");
    let lines = whole.lines().map(|line| line.trim().trim_start_matches("$ "));
    lines
        .filter_map(|line| {
            line.strip_prefix("cargo run --release -- ").or_else(|| line.strip_prefix("sigmalock "))
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_and_flag_of_the_readme_is_in_the_help() {
    let lines = command_lines();
    assert!(!lines.is_empty(), "the README shows a command");
    for line in lines {
        let words = words_of_ours(&line);
        let command: Vec<&str> =
            words.iter().copied().take_while(|word| !word.starts_with('-')).collect();
        let help = sigmalock(&format!("{} --help", command.join(" ")));
        assert_eq!(help.code, Some(0), "{line}: {}", help.stderr);
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(
                help.stdout.contains(&format!("{flag} "))
                    || help.stdout.contains(&format!("{flag}\n")),
                "{line}: no {flag}"
            );
        }
    }
}

/// The words of a command line that are not those of the command that `run` is to run: nothing is run here.
fn words_of_ours(line: &str) -> Vec<&str> {
    let ours: Vec<&str> = line.split_whitespace().take_while(|word| *word != "--").collect();
    match ours.as_slice() {
        ["run", name, first, ..] if !first.starts_with('-') => vec!["run", name],
        _ => ours,
    }
}

#[test]
fn the_help_lists_every_command() {
    let help = sigmalock("--help").stdout;
    let (_, listed) = help.split_once("Commands:\n").expect("a list of commands");
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let lines =
        lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let listed: Vec<_> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    let known: Vec<_> =
        COMMANDS.iter().filter(|name| !name.is_empty() && !name.contains(' ')).collect();
    for command in &known {
        assert!(listed.contains(command), "{command}: {listed:?}");
    }
    assert_eq!(listed.len(), known.len() + 1, "all of them, and `help`: {listed:?}");
}

#[test]
fn every_help_says_the_exit_codes_and_the_readme_says_the_same() {
    for command in COMMANDS {
        let help = sigmalock(&format!("{command} --help")).stdout;
        let codes = help.split_once("Exit codes:\n").map(|(_, codes)| codes);
        let codes = codes.unwrap_or_else(|| panic!("{command} --help says no exit codes"));
        for line in codes.lines() {
            let (code, meaning) = line.trim().split_once("  ").expect(line);
            let row = format!("| {code} | {} |", meaning.trim());
            assert!(README.contains(&row), "the README has no row {row}");
        }
    }
}

#[test]
fn the_examples_of_the_help_are_good_command_lines() {
    for command in COMMANDS.iter().filter(|command| !["", "lab", "key"].contains(command)) {
        let help = sigmalock(&format!("{command} --help")).stdout;
        let examples: Vec<&str> =
            help.lines().filter_map(|line| line.trim().strip_prefix("sigmalock ")).collect();
        assert!(examples.len() >= 2, "{command}: {help}");
        for example in examples {
            // With `--help` at the end the line is parsed as far as the words before it.
            let ours = example.split(['|', '>']).next().unwrap_or_default();
            let ours = words_of_ours(ours).join(" ");
            assert_eq!(sigmalock(&format!("{ours} --help")).code, Some(0), "{example}");
        }
    }
}

#[test]
fn the_documentation_lists_every_mutant_with_its_oracle() {
    let page = include_str!("../../../docs/oracles.md");
    let hunts = sigmalock("lab mutants --seeds 0..1 --json").stdout;
    let expected: Vec<(String, String)> = hunts
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect(line))
        .map(|hunt| (format!("| {} |", hunt["mutant"]), format!("| {} |", hunt["oracle"])))
        .map(|(mutant, oracle)| (mutant.replace('"', "`"), oracle.replace('"', "`")))
        .collect();
    let (_, table) = page.split_once("## Mutants").expect("a table of mutants");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), expected.len());
    for (row, (mutant, oracle)) in rows.iter().zip(expected) {
        assert!(row.starts_with(&mutant) && row.ends_with(&oracle), "{row}: {mutant} {oracle}");
    }
}

/// Every example of the laboratory that shows what it prints, prints it.
#[test]
fn the_examples_of_the_laboratory_print_what_the_page_shows() {
    let page = include_str!("../../../docs/lab.md");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let blocks = page.split("```\n").filter_map(|block| block.strip_prefix("$ sigmalock "));
    let mut examples = 0;
    for (line, shown) in blocks.filter_map(|block| block.split_once('\n')) {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_sigmalock"))
            .args(line.split_whitespace())
            .current_dir(root)
            .output()
            .expect("the binary starts");
        let printed = String::from_utf8(ran.stdout).expect("stdout is UTF-8");
        assert_eq!(printed.trim_end(), shown.trim_end(), "sigmalock {line}");
        examples += 1;
    }
    assert!(examples >= 5, "{examples} examples");
}
