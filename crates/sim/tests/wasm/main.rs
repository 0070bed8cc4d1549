//! A seed is the same run on every machine: also where words have 32 bits and logarithms are somebody else's.

mod seeds;

use std::path::Path;
use std::process::Command;

/// It can print, and is otherwise as narrow as that of browsers.
const TARGET: &str = "wasm32-wasip1";

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What this machine lacks, if it lacks anything.
fn lacks() -> Option<&'static str> {
    let libraries = ["--print", "target-libdir", "--target", TARGET];
    let libraries = output(Command::new("rustc").args(libraries));
    let node = output(Command::new("node").arg("--version"));
    if !libraries.is_some_and(|path| Path::new(path.trim()).exists()) {
        Some("the standard library of wasm32-wasip1 is not installed")
    } else if node.is_none() {
        Some("there is no node to run wasm")
    } else {
        None
    }
}

#[test]
fn a_seed_is_the_same_run_natively_and_in_wasm() {
    if let Some(lack) = lacks() {
        println!("SKIPPED, NOTHING TESTED: {lack}");
        return;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let package = ["--package", "sigmalock-sim", "--example", "seeds"];
    let built =
        Command::new(cargo).args(["build", "--quiet", "--target", TARGET]).args(package).status();
    assert!(built.unwrap().success());
    let wasm = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name(TARGET)
        .join("debug/examples/seeds.wasm");
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wasm/run.mjs");
    let told = Command::new("node").args(["--no-warnings", run]).arg(wasm).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let there = String::from_utf8(told.stdout).unwrap();
    let here = seeds::told();
    assert!(here.lines().count() > 300);
    let other = here.lines().zip(there.lines()).find(|(here, there)| here != there);
    assert_eq!(other, None, "here, and in wasm");
    assert_eq!(here.len(), there.len());
}
