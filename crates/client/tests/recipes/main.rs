//! The recipes of `docs/fencing.md`, each against the real thing, each with a holder that overslept.

mod file;
mod memory;
mod object;
mod postgres;

use std::path::PathBuf;

/// A code block of the page, by the words after its backticks.
fn recipe(words: &str) -> String {
    let page = include_str!("../../../../docs/fencing.md");
    let begin = format!("```{words}\n");
    let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no block {words:?}"));
    let (block, _) = rest.split_once("```").expect("blocks end");
    block.to_owned()
}

/// A directory that is gone when this is.
struct Dir(PathBuf);

impl Dir {
    fn new(what: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sigmalock-{what}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
