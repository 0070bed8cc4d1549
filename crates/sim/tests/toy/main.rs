//! Another protocol costs a folder and a line: with these, and `pub mod`, a toy is under its family's contract, under
//! torture, and in sweeps, comparisons and traces. Shown on a copy of the sources, in which nothing else is touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The line, in the catalogue.
const LINE: &str = "    Toy = toy: lock, literal Toy, shipped Toy, broken Toy;\n";
/// What Rust calls a folder.
const MODULE: &str = "pub mod toy;\n";

/// What the laboratory is made of. Neither tests nor their dependencies are needed.
const CRATES: [&str; 3] = ["core", "protocols", "sim"];

/// A tree of sources in which only what is new is written, so that only that is compiled again.
struct Copy {
    root: PathBuf,
    files: BTreeSet<PathBuf>,
}

impl Copy {
    fn write(&mut self, path: &str, text: &str) {
        let path = self.root.join(path);
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        }
        self.files.insert(path);
    }

    fn take(&mut self, from: &Path, path: &str) {
        for entry in fs::read_dir(from.join(path)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{path}/{name}");
            if from.join(&path).is_dir() {
                self.take(from, &path);
            } else {
                self.write(&path, &fs::read_to_string(from.join(&path)).unwrap());
            }
        }
    }

    fn edit(&mut self, path: &str, before: &str, line: &str) {
        let text = fs::read_to_string(self.root.join(path)).unwrap();
        assert_eq!(text.matches(before).count(), 1, "{path}");
        self.write(path, &text.replace(before, &format!("{line}{before}")));
    }

    /// What was there before, and is no more.
    fn sweep(&self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.sweep(&path);
            } else if !self.files.contains(&path) {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

fn section<'a>(text: &'a str, head: &str) -> &'a str {
    let from = text.find(head).unwrap_or(text.len());
    let rest = &text[from..];
    let end = rest[1.min(rest.len())..].find("\n[").map_or(rest.len(), |end| end + 2);
    &rest[..end]
}

#[test]
fn a_folder_and_a_line_are_a_protocol() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = here.ancestors().nth(2).unwrap();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toy");
    let mut copy = Copy { root: scratch.join("tree"), files: BTreeSet::new() };

    let manifest = fs::read_to_string(workspace.join("Cargo.toml")).unwrap();
    let (manifest, _) = manifest.split_once("\n# Tests run under").unwrap();
    let members = section(manifest, "[workspace]");
    let fewer = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/core\", \"crates/protocols\", \"crates/sim\"]\n\n";
    copy.write("Cargo.toml", &manifest.replace(members, fewer));
    copy.write("Cargo.lock", &fs::read_to_string(workspace.join("Cargo.lock")).unwrap());
    for name in CRATES {
        let manifest = format!("crates/{name}/Cargo.toml");
        let text = fs::read_to_string(workspace.join(&manifest)).unwrap();
        let text = text.replace(section(&text, "[dev-dependencies]"), "");
        copy.write(&manifest, &text.replace(section(&text, "[[bench]]"), ""));
        copy.take(workspace, &format!("crates/{name}/src"));
    }
    copy.take(workspace, "crates/protocols/tests/lock_contract");

    copy.write("crates/protocols/src/toy/mod.rs", include_str!("toy/mod.rs"));
    copy.edit("crates/protocols/src/lib.rs", "pub mod views;\n", MODULE);
    copy.edit("crates/protocols/src/catalogue.rs", "    Views = views: ", LINE);
    copy.write("crates/sim/tests/lab.rs", include_str!("lab.rs"));
    copy.sweep(&copy.root.join("crates"));

    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&copy.root).env("CARGO_TARGET_DIR", scratch.join("target"));
    // Little of it is run, so little is to be compiled.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    cargo.args(["test", "--quiet", "--offline", "--workspace"]);
    cargo.args(["--features", "sigmalock-protocols/serde"]);
    cargo.args(["--test", "lab", "--test", "lock_contract"]);
    let done = cargo.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}\n{err}");
}
