//! What must hold before anything is published.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::skipped::{SHOW, Skipped};
use crate::step::{Step, run_all};

/// The n and m that the fixed-seed simulation visits.
const QUORUMS: [(u16, u16); 4] = [(3, 2), (5, 3), (9, 6), (32, 24)];
/// How many seeds at each, how many with agents, with readers and semaphores, with peers that come and go, and with
/// peers that agree on who is in, in each kind of company.
struct Seeds {
    fixed: u32,
    agents: u32,
    modes: u32,
    open: u32,
    agreed: u32,
    views: u32,
}

/// In the ordinary run.
const SEEDS: Seeds =
    Seeds { fixed: 5_000, agents: 1_000, modes: 1_000, open: 1_000, agreed: 3_000, views: 10_000 };
/// In the long one.
const SEEDS_LONG: Seeds = Seeds {
    fixed: 20_000,
    agents: 10_000,
    modes: 10_000,
    open: 10_000,
    agreed: 50_000,
    views: 200_000,
};

/// Where this is set, live tests run that take minutes (cuts of over a minute, memory that is given back), and the soak
/// takes so long.
const SOAK: &str = "SIGMALOCK_SOAK_SECONDS";
/// As long as without it: it is beside the others, which have bounds of time.
const SOAK_SECONDS: &str = "25";
/// Alone.
const SOAK_SECONDS_LONG: &str = "1200";

/// How many tests run at once.
const THREADS: &str = "RUST_TEST_THREADS";
/// So many at least: those of live peers wait most of the time, mostly for leases to end.
const THREADS_MIN: usize = 4;

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// No simulation.
    Quick,
    /// Everything.
    Ordinary,
    /// Everything, with many more seeds, and what takes minutes by itself: hours.
    Long,
}

/// Everything, in the order in which it is quickest to fail.
///
/// The documentation is built with private items, which is what readers of the code want; so public
/// pages may link to them.
///
/// There is no step for mutants: a test of `sim` hunts them.
///
/// There is no step for `no_std`: `core` and `protocols` say `#![no_std]`, so every build of them is
/// that check.
pub(crate) fn test(extent: Extent) -> Result<()> {
    prepare()?;
    let mut skipped = Skipped::default();
    let mut steps = vec![
        Step::new("format", "cargo fmt --all --check"),
        Step::new("lints", "cargo clippy --workspace --all-targets --quiet -- -D warnings"),
        Step::new(
            "documentation",
            "cargo doc --workspace --no-deps --document-private-items --quiet",
        )
        .with("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links"),
    ];
    if has_target(BROWSERS) {
        let line = format!("cargo check --package sigmalock-sim --target {BROWSERS} --quiet");
        steps.push(Step::new("simulator in browsers", line));
    } else {
        skipped.add("simulator in browsers", &format!("{BROWSERS} is not installed"));
    }
    steps.extend(tests(extent));
    let seeds = if extent == Extent::Long { SEEDS_LONG } else { SEEDS };
    let Seeds { fixed, agents, modes, open, agreed, views } = seeds;
    if extent != Extent::Quick {
        for (n, m) in QUORUMS {
            let at = format!("--n {n} --m {m} --seeds");
            steps.push(torture(&format!("--protocol all {at} 0..{fixed}")));
            steps.push(torture(&format!("--protocol sigma --agents {at} 0..{agents}")));
        }
        for flags in ["", " --agents", " --membership open", " --agents --membership open"] {
            steps.push(torture(&format!("--protocol sigma --modes{flags} --seeds 0..{modes}")));
        }
        for flags in ["", " --agents", " --modes", " --agents --modes"] {
            let flags = format!("--membership agreed{flags}");
            steps.push(torture(&format!("--protocol sigma {flags} --seeds 0..{agreed}")));
        }
        steps.push(torture(&format!("--protocol views --seeds 0..{views}")));
        for (n, m) in QUORUMS {
            let at = format!("--membership open --n {n} --m {m}");
            steps.push(torture(&format!("--protocol sigma {at} --seeds 0..{open}")));
        }
    }
    if extent == Extent::Long {
        steps.push(Step::new("release build", "cargo build --release --quiet"));
    }
    run_all(&steps, skipped)
}

/// With the program that the tests have built already. In it what must never be is asserted, for which it takes about a tenth
/// longer than a release.
fn torture(flags: &str) -> Step {
    Step::new(format!("torture {flags}"), format!("cargo run --quiet -- lab torture {flags}"))
}

/// What `cargo test` runs; and in the long run what takes minutes by itself.
fn tests(extent: Extent) -> Vec<Step> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let all = Step::new("tests", format!("cargo test --workspace --quiet -- {SHOW}"))
        .with(THREADS, cores.max(THREADS_MIN).to_string());
    if extent != Extent::Long {
        return vec![all];
    }
    let soak = format!("cargo test --package sigmalock-cli --test live --quiet -- {SHOW} soak::");
    let ignored = "cargo test --package sigmalock-protocols --quiet -- --ignored";
    vec![
        all.with(SOAK, SOAK_SECONDS),
        Step::new("soak", soak).with(SOAK, SOAK_SECONDS_LONG),
        Step::new("every order of events", ignored),
        draw_figures(),
        Step::new("figures as they were", "git diff --exit-code --stat -- docs/figures"),
    ]
}

/// How fast the simulator is.
pub(crate) fn bench() -> Result<()> {
    Step::new("bench", "cargo bench --package sigmalock-sim").run()
}

/// The pictures of the documentation: those that `lab figures` draws, in the papers' setting.
pub(crate) fn figures() -> Result<()> {
    draw_figures().run()
}

fn draw_figures() -> Step {
    Step::new("figures", "cargo run --release --quiet -- lab figures --out docs/figures")
}

/// Accepts the transcripts as they are now.
pub(crate) fn bless() -> Result<()> {
    Step::new("bless", "cargo test --package sigmalock-sim --test scenarios --quiet")
        .with("SIGMALOCK_BLESS", "1")
        .run()
}

/// What the simulator is checked for, and what a test compares it with.
const BROWSERS: &str = "wasm32-unknown-unknown";
const WASI: &str = "wasm32-wasip1";

/// Installs the two cargo components the steps need, where rustup can, and says how, where it cannot; then
/// what some tests need, or says what is not tested.
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
    for target in [BROWSERS, WASI] {
        if !has_target(target) && !succeeds("rustup", &["target", "add", target]) {
            eprintln!(
                "{target} is missing and rustup could not add it: the simulator is not tested there"
            );
        }
    }
    for (package, path, what) in PACKAGES {
        if !path.iter().any(|path| Path::new(path).exists()) && !install(package) {
            eprintln!("{package} is missing and apt-get could not install it: {what}");
        }
    }
    if !has_python_of_users() {
        eprintln!("pip could not install grpcio-tools: the Python of docs/api.md is not tested");
    }
    Ok(())
}

/// Makes a Python with what docs/api.md has its users install, beside what cargo builds, where tests find it. False if there is
/// none.
fn has_python_of_users() -> bool {
    let Some(dir) =
        std::env::current_exe().ok().and_then(|exe| Some(exe.ancestors().nth(2)?.join("python")))
    else {
        return false;
    };
    let (dir, python) = (dir.display().to_string(), dir.join("bin/python3").display().to_string());
    let is_complete = || succeeds(&python, &["-c", "import grpc, grpc_tools.protoc"]);
    if is_complete() {
        return true;
    }
    eprintln!("grpcio-tools is missing; asking pip for it");
    let pip =
        ["-m", "pip", "install", "--quiet", "--retries", "2", "--timeout", "20", "grpcio-tools"];
    succeeds("python3", &["-m", "venv", &dir]) && succeeds(&python, &pip) && is_complete()
}

/// Debian packages that tests use, where each shows that it is there, and what becomes of it without.
const PACKAGES: [(&str, &[&str], &str); 3] = [
    ("iproute2", &["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"], "no machine is unplugged in tests"),
    (
        "python3-grpcio",
        &["/usr/lib/python3/dist-packages/grpc"],
        "the API is not tested with another language",
    ),
    ("postgresql", &["/usr/lib/postgresql"], "the recipe for PostgreSQL is not tested"),
];

fn install(package: &str) -> bool {
    eprintln!("{package} is missing; asking apt-get for it");
    let install = ["install", "--yes", "--quiet", "--no-install-recommends", package];
    succeeds("apt-get", &install)
        || (succeeds("apt-get", &["update"]) && succeeds("apt-get", &install))
}

/// Whether the standard library of a target is there.
fn has_target(target: &str) -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]).stderr(Stdio::null());
    rustc
        .output()
        .is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim()).exists())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let quiet = Command::new(program)
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}
