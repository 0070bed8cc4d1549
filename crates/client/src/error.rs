//! What can go wrong, one small enum per operation. Each says what the caller can do, and whether
//! anything changed; `{:?}` shows the same sentence as `{}`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why there is no connection to a peer. Nothing changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is no address.
    #[error("{text:?} is no address of a peer: write HOST:PORT or unix:PATH")]
    BadAddress {
        /// What was given.
        text: String,
    },
    /// Nobody answers there. Start a peer, or say where one is.
    #[error("no peer answers at {address}: {reason}")]
    Unreachable {
        /// Where.
        address: String,
        /// What happened.
        reason: String,
    },
    /// None of the usual places has a peer. Start one, or say where one is.
    #[error(
        "no peer is running: nobody answers at {tried}; `sigmalock run` starts a private one, `sigmalock node` one of a swarm, and SIGMALOCK_API names one that is elsewhere"
    )]
    NoPeer {
        /// Where.
        tried: String,
    },
    /// Whoever answers there speaks another version, or is no peer. Use the same version on both sides.
    #[error("{address} is no peer that this client can talk to: {reason}")]
    Incompatible {
        /// Where.
        address: String,
        /// What it said.
        reason: String,
    },
    /// The machine has a peer, and it cannot be used by this user, or not now. No other is used in its place.
    #[error(
        "this machine has a peer at {socket}, and it cannot be used: {reason}; no other is used in its place"
    )]
    Machine {
        /// Where.
        socket: String,
        /// What happened.
        reason: String,
    },
    /// Something says that this machine is one of a swarm, and its peer is not there. Start that, or mean a private one.
    #[error(
        "this machine belongs to a swarm, and no peer of it answers here: {sign}; start that peer, or say --private \
         (SIGMALOCK_PRIVATE=1) for a lock that excludes nobody but other commands of this user"
    )]
    Belongs {
        /// What says so, and how it is undone.
        sign: String,
    },
    /// The peer is of another swarm than the one that was demanded, or private. Use another.
    #[error("{address} has a peer of {found}, and {demanded} was demanded")]
    OtherSwarm {
        /// Where.
        address: String,
        /// Its swarm, in words.
        found: String,
        /// The one demanded, in words.
        demanded: String,
    },
    /// A swarm was demanded, and no peer runs. Start one of that swarm.
    #[error(
        "no peer is running: nobody answers at {tried}; swarm {swarm} was demanded, so none is started on the way"
    )]
    NoPeerOf {
        /// Which swarm.
        swarm: String,
        /// Where.
        tried: String,
    },
    /// What was said of the peer to use contradicts itself, or cannot be read. Say something else.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A directory on the way to a peer cannot be used, or not be trusted.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// There is no `sigmalock` to start a peer with. Install it, or say where it or a peer is.
    #[error(
        "no peer is running, and none can be started: there is no {program:?}; install sigmalock, say where it is with \
         SIGMALOCK_BIN, or name a peer with SIGMALOCK_API"
    )]
    NotInstalled {
        /// The command that was to do it.
        program: PathBuf,
    },
    /// This process could not start the thread of a blocking client. Nothing to be done but to need fewer threads.
    #[error("could not start the thread that keeps the connection: {reason}")]
    Thread {
        /// What the system says.
        reason: String,
    },
    /// A private peer could not be started. Start it by hand: `sigmalock node --private`.
    #[error("could not start a peer with {program:?}: {reason}")]
    Start {
        /// The command that was to do it.
        program: PathBuf,
        /// What happened.
        reason: String,
    },
}

/// Why nobody knows which peer is meant.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A private peer, and one with an address or a swarm, are two.
    #[error(
        "{source_of} asks for a private peer, and names an address or a swarm, too: say one of them"
    )]
    Contradiction {
        /// Who says so: the command line, or the environment.
        source_of: &'static str,
    },
    /// A swarm is demanded, and the demand is empty, as of a script whose variable is unset. Name one, or demand none.
    #[error(
        "{source_of} demands a swarm, and names none: say the id that `sigmalock key show` and `status` tell, or leave it \
         out"
    )]
    NoSwarm {
        /// Who does: the program, a variable of the environment, or a file.
        source_of: String,
    },
    /// A configuration file cannot be used.
    #[error("{path}: {why}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Why a directory, or the way to a socket, cannot be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// It belongs to another user, who could pose as a peer. Remove it, or use another.
    #[error(
        "{path:?} belongs to another user (uid {owner}), who could pose as a peer: remove it, or use another (your own \
         is in XDG_RUNTIME_DIR)"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Others may write there. Restrict it: `chmod 700`.
    #[error("{path:?} must be a directory that only its user can enter (chmod 700)")]
    Open {
        /// The directory.
        path: PathBuf,
    },
    /// Others may write there, and put a socket of theirs in the place of the peer's. Restrict it: `chmod go-w`.
    #[error(
        "{path:?} can be written to by others, who could pose as a peer: `chmod go-w` it, or use another directory"
    )]
    Writable {
        /// The directory.
        path: PathBuf,
    },
    /// There is something else. Name a socket.
    #[error("{path:?} is no socket")]
    NoSocket {
        /// What.
        path: PathBuf,
    },
    /// It cannot be made or read.
    #[error("cannot use {path:?}: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Why a lock was not acquired. Nothing is held, and nothing waits.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// It cannot be had now, and the caller did not want to wait: somebody has it, or too many hosts
    /// are away. Try again later, or wait.
    #[error("the lock cannot be had now")]
    Busy,
    /// It was not to be had in the time given. Try again, or wait longer.
    #[error("the lock was not to be had in {waited:?}")]
    TimedOut {
        /// The time given.
        waited: Duration,
    },
    /// This is not the name of a lock. Use another.
    #[error("{text}")]
    BadName {
        /// What is wrong with it.
        text: String,
    },
    /// Others are inside with another number of permits, or wait for one and were first. Mean the same
    /// number, or wait until they are gone.
    #[error("the lock is in use with {of} permits: whoever uses it must mean the same number")]
    OtherPermits {
        /// Their number.
        of: u32,
    },
    /// The peer does not do this. Change the request as the text says.
    #[error("{text}")]
    Refused {
        /// Why.
        text: String,
    },
    /// It was granted, but its time was up when this process came to see it: it slept. Try again.
    #[error("the lock was granted, but its time was up before this process woke")]
    Overslept,
    /// The connection to the peer is gone, or the peer does not answer. Try again: the client connects
    /// anew.
    #[error("the connection to the peer is gone: {reason}")]
    Disconnected {
        /// What happened.
        reason: String,
    },
}

/// Why a release was not confirmed. Either way the guard is gone.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lock had been lost before: somebody else may have been inside at the same time. Check what was
    /// done under it, unless the resource is fenced.
    #[error("the lock was lost before it was released")]
    Lost,
    /// The connection to the peer is gone, so the peer has released the lock or will; but it may have been lost
    /// before that.
    #[error("the connection to the peer is gone, and with it the lock: {reason}")]
    Disconnected {
        /// What happened.
        reason: String,
    },
}

/// Why a question was not answered. Nothing changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The peer does not take this question. Change it as the text says.
    #[error("{text}")]
    Refused {
        /// Why.
        text: String,
    },
    /// The connection to the peer is gone. Try again: the client connects anew.
    #[error("the connection to the peer is gone: {reason}")]
    Disconnected {
        /// What happened.
        reason: String,
    },
    /// The peer could not find the answer. The text says why.
    #[error("{text}")]
    Failed {
        /// Why.
        text: String,
    },
}

/// Why what an operator asked for, to break a lock or to forget a member, was not done.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// There is no such holder, or no such member. Nothing changed.
    #[error("{text}")]
    NotFound {
        /// In words.
        text: String,
    },
    /// This peer does not do that for those who come this way. Use its Unix socket. Nothing changed.
    #[error("{text}")]
    NotAllowed {
        /// Why.
        text: String,
    },
    /// It makes no sense; the text says why, and what does. Nothing changed.
    #[error("{text}")]
    Refused {
        /// Why.
        text: String,
    },
    /// It could not be done, or may have been. Look: inspect the lock, or list the peers.
    #[error("{text}")]
    Failed {
        /// Why.
        text: String,
    },
    /// The connection to the peer is gone; it may have been done. Look, as above.
    #[error("the connection to the peer is gone: {reason}")]
    Disconnected {
        /// What happened.
        reason: String,
    },
}

/// What `fn main() -> Result<…>` shows of an error is its `Debug`: the sentence says more than the fields.
macro_rules! debug_is_the_sentence {
    ($($error:ty),*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_is_the_sentence!(
    ConnectError,
    SettingsError,
    PlaceError,
    AcquireError,
    ReleaseError,
    QueryError,
    OperatorError,
    crate::several::LocksError
);

impl From<tonic::Status> for QueryError {
    fn from(status: tonic::Status) -> Self {
        let text = status.message().to_owned();
        match status.code() {
            tonic::Code::InvalidArgument | tonic::Code::PermissionDenied => Self::Refused { text },
            tonic::Code::Unavailable => Self::Disconnected { reason: reason(&status) },
            _ => Self::Failed { text: reason(&status) },
        }
    }
}

impl From<tonic::Status> for OperatorError {
    fn from(status: tonic::Status) -> Self {
        let text = status.message().to_owned();
        match status.code() {
            tonic::Code::NotFound => Self::NotFound { text },
            tonic::Code::PermissionDenied => Self::NotAllowed { text },
            tonic::Code::InvalidArgument | tonic::Code::FailedPrecondition => {
                Self::Refused { text }
            }
            tonic::Code::Unavailable => Self::Disconnected { reason: reason(&status) },
            _ => Self::Failed { text: reason(&status) },
        }
    }
}

/// A status in words: the peer's own, or else the innermost cause, which is the one that says something.
pub(crate) fn reason(status: &tonic::Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => innermost(source),
        None if status.message().is_empty() => status.code().to_string(),
        None => status.message().to_owned(),
    }
}

/// The innermost cause of an error, in words.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
