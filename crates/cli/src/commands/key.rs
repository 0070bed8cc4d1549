//! `key`: the secret that the peers of a swarm share.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use sigmalock_node::key::{KeyError, SwarmKey, is_key};

use crate::outcome::{EXIT_CODES, Failure, Verdict, after_help};

/// Makes the secret that the peers of a swarm share, or tells which one a file has
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES)]
pub(crate) enum Key {
    New(New),
    Show(Show),
}

/// Makes a new swarm key, in a file that only its owner can read
///
/// Whoever has it can join the swarm, vote, and read the names of locks; nobody else can. Copy it to
/// every machine of the swarm, and give it to `sigmalock node --swarm-key`.
#[derive(Debug, Args)]
#[command(after_help = after_help(NEW_EXAMPLES))]
pub(crate) struct New {
    /// Where to; a file that is there already is left as it is
    #[arg(value_name = "FILE")]
    file: KeyFile,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const NEW_EXAMPLES: &str = "  \
  sigmalock key new swarm.key
  sigmalock key new /etc/sigmalock/swarm.key --json";

/// Tells which swarm key a file has: its id, never the secret
#[derive(Debug, Args)]
#[command(after_help = after_help(SHOW_EXAMPLES))]
pub(crate) struct Show {
    /// The key file
    #[arg(value_name = "FILE")]
    file: KeyFile,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const SHOW_EXAMPLES: &str = "  \
  sigmalock key show swarm.key
  sigmalock key show swarm.key --json";

impl Key {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let (key, json) = match self {
            Self::New(new) => {
                let key = SwarmKey::generate()?;
                key.write_new(new.file.path()).map_err(failure)?;
                (key, new.json)
            }
            Self::Show(show) => (read(show.file.path())?, show.json),
        };
        if json {
            super::print_json(&serde_json::json!({ "id": key.id() }))?;
        } else {
            super::print(&format!("{}\n", key.id()))?;
        }
        Ok(Verdict::Holds)
    }
}

/// The key in a file. One that has none, or that others can read, is a mistake of the command line.
pub(crate) fn read(path: &Path) -> anyhow::Result<SwarmKey> {
    SwarmKey::read(path).map_err(failure)
}

fn failure(error: KeyError) -> anyhow::Error {
    match error {
        KeyError::Io { .. } | KeyError::Exists(_) | KeyError::Random(_) => error.into(),
        mistake => Failure::usage(mistake.to_string()).into(),
    }
}

/// Where a key is, or a key that was given in its place by mistake, and is not shown.
#[derive(Clone)]
pub(crate) struct KeyFile(PathBuf);

impl KeyFile {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl From<OsString> for KeyFile {
    fn from(path: OsString) -> Self {
        Self(path.into())
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_key(&self.0.to_string_lossy()) {
            f.write_str("KeyFile(a key)")
        } else {
            self.0.fmt(f)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_place_of_its_file_is_not_shown() {
        let shown = format!("{:?}", KeyFile::from(OsString::from("ab".repeat(32))));
        assert!(!shown.contains("abab"), "{shown}");
        assert!(format!("{:?}", KeyFile::from(OsString::from("a.key"))).contains("a.key"));
    }
}
