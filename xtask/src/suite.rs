//! What must hold before anything is published.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::step::{Step, run_all};

/// The n and m that the fixed-seed simulation visits.
const QUORUMS: [(u16, u16); 4] = [(3, 2), (5, 3), (9, 6), (32, 24)];
/// How many seeds at each.
const SEEDS: u32 = 10_000;
/// How many with agents, how many with readers and semaphores, and how many with peers that come and go.
const AGENT_SEEDS: u32 = 2_000;
const MODE_SEEDS: u32 = 2_000;
const OPEN_SEEDS: u32 = 2_000;

/// Everything, in the order in which it is quickest to fail.
///
/// The documentation is built with private items, which is what readers of the code want; so public
/// pages may link to them.
///
/// There is no step for mutants: a test of `sim` hunts them.
///
/// There is no step for `no_std`: `core` and `protocols` say `#![no_std]`, so every build of them is
/// that check.
pub(crate) fn test(quick: bool) -> Result<()> {
    prepare()?;
    let mut steps = vec![
        Step::new("format", "cargo fmt --all --check"),
        Step::new("lints", "cargo clippy --workspace --all-targets --quiet -- -D warnings"),
        Step::new(
            "documentation",
            "cargo doc --workspace --no-deps --document-private-items --quiet",
        )
        .with("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links"),
        Step::new("tests", "cargo test --workspace --quiet"),
    ];
    if !quick {
        steps.push(Step::new("release build", "cargo build --release --quiet"));
        for (n, m) in QUORUMS {
            steps.push(Step::new(
                format!("torture {n}/{m}"),
                format!(
                    "cargo run --release --quiet -- lab torture --protocol all --n {n} --m {m} --seeds 0..{SEEDS}"
                ),
            ));
            steps.push(Step::new(
                format!("torture {n}/{m} with agents"),
                format!(
                    "cargo run --release --quiet -- lab torture --protocol sigma --agents --n {n} --m {m} --seeds 0..{AGENT_SEEDS}"
                ),
            ));
        }
        for flags in ["", " --agents", " --membership open", " --agents --membership open"] {
            steps.push(Step::new(
                format!("torture with modes{flags}"),
                format!(
                    "cargo run --release --quiet -- lab torture --protocol sigma --modes{flags} --seeds 0..{MODE_SEEDS}"
                ),
            ));
        }
        for (n, m) in QUORUMS {
            steps.push(Step::new(
                format!("torture {n}/{m}, open"),
                format!(
                    "cargo run --release --quiet -- lab torture --protocol sigma --membership open --n {n} --m {m} --seeds 0..{OPEN_SEEDS}"
                ),
            ));
        }
    }
    run_all(&steps)
}

/// How fast the simulator is.
pub(crate) fn bench() -> Result<()> {
    Step::new("bench", "cargo bench --package sigmalock-sim").run()
}

/// Accepts the transcripts as they are now.
pub(crate) fn bless() -> Result<()> {
    Step::new("bless", "cargo test --package sigmalock-sim --test scenarios --quiet")
        .with("SIGMALOCK_BLESS", "1")
        .run()
}

/// Installs the two cargo components the steps need, where rustup can; says how, where it cannot.
fn prepare() -> Result<()> {
    for component in ["rustfmt", "clippy"] {
        let subcommand = if component == "rustfmt" { "fmt" } else { component };
        if succeeds("cargo", &[subcommand, "--version"]) {
            continue;
        }
        eprintln!("{component} is missing; asking rustup for it");
        if !succeeds("rustup", &["component", "add", component]) {
            bail!(
                "{component} is missing and rustup could not add it; install it with \
                 `rustup component add {component}` or your system's package manager"
            );
        }
    }
    Ok(())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let quiet =
        Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}
