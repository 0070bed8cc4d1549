//! Reaching a peer, and what its answers mean for the exit code.

use std::io::IsTerminal;

use clap::Args;
use nix::unistd::{Uid, User};
use sigmalock::{
    AcquireError, Client, ConnectError, ConnectOptions, OperatorError, QueryError, Started,
};

use crate::outcome::{Failure, complain};

/// Which peer to talk to.
#[derive(Debug, Args)]
pub(crate) struct Peer {
    /// The peer to talk to, HOST:PORT or unix:PATH [env: SIGMALOCK_API] [default: the machine's, else your own]
    #[arg(long, value_name = "ADDR")]
    api: Option<String>,
    /// Only a peer of this swarm: the id that `key show` and `status` tell [env: SIGMALOCK_SWARM]
    #[arg(long, value_name = "ID", value_parser = swarm_id)]
    swarm: Option<String>,
    /// Your private peer, whatever this machine belongs to: excludes only your other commands here [env: SIGMALOCK_PRIVATE]
    #[arg(long, conflicts_with_all = ["api", "swarm"])]
    private: bool,
}

impl Peer {
    /// A peer that runs.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.open(ConnectOptions::new()).await
    }

    /// The same, for a guardian: what people see as the holder of its locks is this.
    pub(crate) async fn connect_as(&self, label: &str) -> Result<Client, Failure> {
        self.open(ConnectOptions::new().label(label).hold_if_cut(true)).await
    }

    async fn open(&self, options: ConnectOptions) -> Result<Client, Failure> {
        self.meant(options).connect_default().await.map_err(unreachable)
    }

    /// Sees to it that there is a peer: one that runs, else the user's private one, started now.
    pub(crate) async fn start_if_need_be(&self) -> Result<(), Failure> {
        self.connect_or_start("").await.map(drop)
    }

    /// A peer that runs; else the user's private one, started now. Whoever has this process hold a lock may be inside when it
    /// has ended.
    pub(crate) async fn connect_or_start(&self, label: &str) -> Result<Client, Failure> {
        let options = self.meant(ConnectOptions::new().label(label).hold_if_cut(true));
        let client = options.connect_or_start().await.map_err(unreachable)?;
        if client.started() == Started::Started {
            complain(format_args!(
                "sigmalock: no peer was running, so your own was started in the background: its locks exclude other \
                 commands of user {} on this machine, nobody else; it ends when it has been idle for five minutes",
                user()
            ));
        }
        Ok(client)
    }

    /// With what was said of the peer.
    fn meant(&self, mut options: ConnectOptions) -> ConnectOptions {
        options.api = self.api.clone().filter(|text| !text.is_empty());
        options.swarm = self.swarm.clone();
        options.private = self.private;
        options
    }
}

/// An empty one, as of a script whose variable is unset, would let in where another swarm is meant.
fn swarm_id(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("this names no swarm: say the id that `key show` and `status` tell".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// Who started this, as people call them.
fn user() -> String {
    let uid = Uid::effective();
    User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

pub(crate) fn unreachable(error: ConnectError) -> Failure {
    match error {
        ConnectError::BadAddress { .. } | ConnectError::Settings(_) => {
            Failure::usage(error.to_string())
        }
        other => Failure::no_peer(other.to_string()),
    }
}

/// What there is to say about a lock that was not to be had.
#[derive(Debug)]
pub(crate) struct NotHad {
    /// How many permits were asked for.
    pub(crate) permits: u16,
    /// Why the peer can grant none, if so.
    pub(crate) why_not: String,
    /// Who has it, as far as known.
    pub(crate) holder: Option<String>,
}

/// Why a lock was not acquired, in words, with its name.
pub(crate) fn not_acquired(name: &str, error: &AcquireError, why: &NotHad) -> anyhow::Error {
    match error {
        AcquireError::Busy | AcquireError::TimedOut { .. } | AcquireError::Overslept => {
            let mut sentence = match error {
                // As it was given.
                AcquireError::TimedOut { waited } => {
                    let waited = humantime::format_duration(*waited);
                    format!("{name}: the lock was not to be had in {waited}")
                }
                error => format!("{name}: {error}"),
            };
            for why in why.holder.iter().chain(Some(&why.why_not).filter(|why| !why.is_empty())) {
                sentence = format!("{sentence}; {why}");
            }
            Failure::not_acquired(sentence).into()
        }
        AcquireError::BadName { .. } | AcquireError::Refused { .. } => {
            Failure::usage(format!("{name}: {error}")).into()
        }
        AcquireError::OtherPermits { of } => {
            let permits = why.permits;
            Failure::usage(format!("{name} is in use with --permits {of}, not {permits}")).into()
        }
        AcquireError::Disconnected { .. } => Failure::no_peer(format!("{name}: {error}")).into(),
        other => anyhow::anyhow!("{name}: {other}"),
    }
}

pub(crate) fn not_answered(error: QueryError) -> anyhow::Error {
    match error {
        QueryError::Refused { text } => Failure::usage(text).into(),
        QueryError::Disconnected { .. } => Failure::no_peer(error.to_string()).into(),
        other => other.into(),
    }
}

/// Why a lock was not broken, or a member not forgotten.
pub(crate) fn not_done(error: OperatorError) -> anyhow::Error {
    match error {
        OperatorError::NotAllowed { text } | OperatorError::Refused { text } => {
            Failure::usage(text).into()
        }
        OperatorError::Disconnected { .. } => Failure::no_peer(error.to_string()).into(),
        other => other.into(),
    }
}

/// Whether there is a person at the other end of stderr.
pub(crate) fn is_a_person_there() -> bool {
    std::io::stderr().is_terminal()
}
