//! The commands about live locks, one file each.

pub(crate) mod bench;
pub(crate) mod break_lock;
pub(crate) mod child;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod forget;
pub(crate) mod inspect;
pub(crate) mod key;
pub(crate) mod lock;
pub(crate) mod locks;
pub(crate) mod man;
pub(crate) mod node;
pub(crate) mod peers;
pub(crate) mod run;
pub(crate) mod status;

use std::future::Future;
use std::io::{self, BufRead, IsTerminal, Write};

use serde::Serialize;

use crate::outcome::Failure;

/// Runs a command's future on this very thread: children ask to die with the thread that made them,
/// so that thread has to last as long as the process.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(future);
    // A read from stdin that never ends is not waited for.
    runtime.shutdown_background();
    result
}

/// One JSON object on a line of its own.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    print(&line)
}

/// Text on stdout, at once. A reader that has gone is an error, not a panic.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Whether there is somebody to ask; if not, that is said.
fn a_person(unasked: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() { Ok(()) } else { Err(Failure::usage(unasked)) }
}

/// Asks the person at the terminal, after saying what is at stake. Where there is nobody to ask, only
/// `--yes` will do, and that is said instead.
fn confirm(risk: &str, question: &str, unasked: &str) -> anyhow::Result<bool> {
    a_person(unasked)?;
    let mut stderr = io::stderr();
    write!(stderr, "{risk}{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
