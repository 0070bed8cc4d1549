//! The API, served for a node.
//!
//! ```text
//!   socket ──► Connection ──► tonic ──► Operations ──► Handle
//!                                  └──► SessionStream ──► Session     two tasks a session: its answers, and
//!                                                                    whether its client still runs
//! ```
//!
//! - `connection`, `signed`: what is read, and who wrote it; `authority`: what other languages call this peer.
//! - `ends`: what becomes of what a session holds when it ends.
//! - `room`: who may take how much; `operators`: who may break locks and forget members.

mod authority;
mod connection;
mod convert;
mod ends;
mod label;
mod listen;
mod locks;
mod operators;
mod room;
mod session;
mod signed;
mod watching;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sigmalock_core::LocalTime;
use sigmalock_node::{Handle, clock};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use ends::Attentive;
pub use listen::BindError;
use listen::Listeners;
use locks::Locks;
use operators::Operators;
pub use room::{OTHERS_CONNECTIONS_MAX, TCP_CONNECTIONS_MAX, USER_CONNECTIONS_MAX};

use crate::MESSAGE_LEN_MAX;
use crate::v1::locks_server::LocksServer;

/// So many connections of the peer's own user are served at once, and as many of root; one more is closed at once.
pub const CONNECTIONS_MAX: usize = 4_096;

/// So many calls and sessions at once on one connection; one more waits at the client.
pub const STREAMS_MAX: u32 = 256;

/// How long a connection, and a session, may take to say its first word.
pub const FIRST_WORD_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection on which nobody wants anything for so long is closed.
pub const IDLE_MAX: Duration = Duration::from_secs(60);

/// How long a question may take, from its first byte on.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(90);

/// How often a client is asked whether it still runs, if it says nothing by itself. Whatever speaks HTTP/2 answers.
const PING_EVERY: Duration = Duration::from_millis(400);
/// A client that has not answered for so long is gone.
const PING_TIMEOUT: Duration = Duration::from_secs(60);

/// How long connections may take to end after the sessions have; then they are cut.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// How much a client may send on a stream before it was read.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// And on all of a connection. The HTTP library also bounds by this how many frames wait to be read, and each of a few
/// bytes counts for 512: so a stream that is not read fills its window, and waits, before the connection is cut for that.
const CONNECTION_WINDOW_BYTES: u32 = 64 * STREAM_WINDOW_BYTES;

/// Where and for whom to serve.
#[derive(Debug, Clone, Default)]
pub struct ServerConfig {
    /// A Unix socket.
    pub unix: Option<PathBuf>,
    /// Who may use that.
    pub users: Users,
    /// A TCP address; loopback only, unless `remote` says otherwise.
    pub tcp: Option<SocketAddr>,
    /// Serves TCP to other machines. Nothing checks who they are: whoever reaches the port holds locks.
    pub remote: bool,
    /// A group of this machine whose members may break locks and forget members, as the peer's own user and root may.
    pub operators: Option<String>,
}

/// Who may use a Unix socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Users {
    /// The peer's own user.
    #[default]
    Own,
    /// The members of this group, too.
    Group(u32),
    /// All who can reach it.
    All,
}

/// The API while it is served. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    handle: Handle,
    stage: watch::Sender<Stage>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
    activity: Arc<Activity>,
    unix: Option<PathBuf>,
    tcp: Option<SocketAddr>,
}

/// The API before it is served: all is bound, and nobody finds it yet.
pub struct Bound {
    listeners: Listeners,
    config: ServerConfig,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Bound").field(&self.config).finish()
    }
}

impl Bound {
    /// Serves a peer.
    ///
    /// # Errors
    /// The peer has stopped, or the socket cannot be put in its place.
    pub async fn serve(self, handle: Handle) -> Result<Server, BindError> {
        let Self { mut listeners, config } = self;
        let (unix, tcp) = (config.unix, listeners.tcp_address());
        let (stage, at_stage) = watch::channel(Stage::Serving);
        let activity = Arc::new(Activity::default());
        activity.touch();
        let status = handle.status().await.ok_or(BindError::Stopped)?;
        let operators = Operators::new(config.operators);
        let (node, users) = (handle.clone(), Arc::clone(&activity));
        let locks = Locks::new(node, &status, operators, users, at_stage.clone());
        let service = LocksServer::new(locks).max_decoding_message_size(MESSAGE_LEN_MAX);
        let ended = reaches(at_stage, Stage::Leaving);
        listeners.open()?;
        let serving = tonic::transport::Server::builder()
            .max_concurrent_streams(STREAMS_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .timeout(QUESTION_TIMEOUT)
            .http2_keepalive_interval(Some(PING_EVERY))
            .http2_keepalive_timeout(Some(PING_TIMEOUT))
            .serve_with_incoming_shutdown(Attentive(service), listeners, ended);
        Ok(Server { handle, stage, serving: tokio::spawn(serving), activity, unix, tcp })
    }
}

impl Server {
    /// Binds what is to be bound.
    ///
    /// # Errors
    /// Something cannot be bound; then nothing is.
    pub fn bind(config: ServerConfig) -> Result<Bound, BindError> {
        Ok(Bound { listeners: Listeners::bind(&config)?, config })
    }

    /// Binds what is to be bound, and serves.
    ///
    /// # Errors
    /// Something cannot be bound; then nothing is.
    pub async fn start(handle: Handle, config: ServerConfig) -> Result<Self, BindError> {
        Self::bind(config)?.serve(handle).await
    }

    /// The Unix socket it serves.
    #[must_use]
    pub fn unix(&self) -> Option<&Path> {
        self.unix.as_deref()
    }

    /// The TCP address it serves.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// For how long nobody has wanted anything; `None` while somebody has a session.
    #[must_use]
    pub fn idle_for(&self) -> Option<Duration> {
        self.activity.idle_for()
    }

    /// Lets nobody in any more, ends all sessions, telling each why, and stops. What they hold is lost, and given back if they
    /// say so within a moment ([`Handle::dismiss`]).
    pub async fn stop(mut self) {
        self.stage.send_replace(Stage::Leaving);
        if let Some(path) = &self.unix {
            // Who looks for it finds that out at once. Nobody else makes one there as long as this one is not closed.
            let _ = std::fs::remove_file(path);
        }
        self.handle.dismiss().await;
        self.stage.send_replace(Stage::Stopped);
        let _ = tokio::time::timeout(STOP_TIMEOUT, &mut self.serving).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stage.send_replace(Stage::Stopped);
        self.serving.abort();
    }
}

/// How far a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    /// Nobody is let in any more, and sessions are told to give back what they hold.
    Leaving,
    /// Whatever is left ends.
    Stopped,
}

/// Completes when the server is that far.
async fn reaches(mut stage: watch::Receiver<Stage>, far: Stage) {
    // An error is the server dropped.
    let _ = stage.wait_for(|stage| *stage >= far).await;
}

/// Whether anybody uses this peer, or a connection.
#[derive(Debug, Default)]
struct Activity {
    sessions: AtomicUsize,
    last_us: AtomicU64,
}

impl Activity {
    fn touch(&self) {
        self.last_us.store(clock::now().as_micros(), Ordering::Relaxed);
    }

    fn idle_for(&self) -> Option<Duration> {
        if self.sessions.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let last = LocalTime::from_micros(self.last_us.load(Ordering::Relaxed));
        Some(Duration::from_micros(clock::now().since(last).as_micros()))
    }

    /// Counts a session, as long as what is returned lives.
    fn session(self: &Arc<Self>) -> Busy {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }
}

/// Somebody does.
#[derive(Debug)]
struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}
