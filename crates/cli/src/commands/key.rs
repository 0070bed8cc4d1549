//! `key`: the secret that the peers of a swarm share.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sigmalock_node::key::SwarmKey;

use crate::outcome::{EXIT_CODES, Verdict, after_help, complain};

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
    file: PathBuf,
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
    file: PathBuf,
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
                key.write_new(&new.file)?;
                (key, new.json)
            }
            Self::Show(show) => (read(&show.file)?, show.json),
        };
        if json {
            super::print_json(&serde_json::json!({ "id": key.id() }))?;
        } else {
            super::print(&format!("{}\n", key.id()))?;
        }
        Ok(Verdict::Holds)
    }
}

/// The key in a file, with a word on stderr if others can read it.
pub(crate) fn read(path: &std::path::Path) -> anyhow::Result<SwarmKey> {
    let (key, exposed) = SwarmKey::read(path)?;
    if let Some(exposed) = exposed {
        complain(format_args!("sigmalock: {exposed}"));
    }
    Ok(key)
}
