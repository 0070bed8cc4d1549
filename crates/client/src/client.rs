//! A client of a peer.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sigmalock_api::MESSAGE_LEN_MAX;
use sigmalock_api::v1::{self, locks_client::LocksClient};
use tonic::Streaming;
use tonic::transport::Channel;

use crate::connect::Line;
use crate::demand::Demand;
use crate::error::{AcquireError, ConnectError, OperatorError, QueryError};
use crate::find;
use crate::lock::Lock;
use crate::place::Address;
use crate::report;
use crate::session::{Opening, Session};
use crate::settings;
use crate::several::Locks;
use crate::start::Started;

/// Reports are longer than what is said in a session: a list has up to 10,000 names.
const REPORT_LEN_MAX: usize = 100 * MESSAGE_LEN_MAX;

/// How to connect.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// If this process dies, it may leave somebody inside: what it holds is then not given back, but kept until its lease
    /// ends. Default: it is given back, where the peer sees that it has died (at the Unix socket).
    pub hold_if_cut: bool,
    /// What people see as the holder of the locks. Default: the program's name and process number.
    pub label: Option<String>,
    /// Where the peer is, as in [`Client::connect`]. Default: see [`Client::connect_default`].
    pub api: Option<String>,
    /// The swarm that the peer must be of: the id of its key, as `sigmalock key show` and `status` tell it. Default: as
    /// [`settings`] say; else any.
    pub swarm: Option<String>,
    /// Whether the user's private peer is meant, even on a machine of a swarm. Its locks exclude nobody but other commands
    /// and programs of this user on this machine that use it, too.
    pub private: bool,
}

impl ConnectOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`ConnectOptions::hold_if_cut`].
    #[must_use]
    pub fn hold_if_cut(mut self, hold: bool) -> Self {
        self.hold_if_cut = hold;
        self
    }

    /// Sets [`ConnectOptions::label`].
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets [`ConnectOptions::api`].
    #[must_use]
    pub fn api(mut self, address: impl Into<String>) -> Self {
        self.api = Some(address.into());
        self
    }

    /// Sets [`ConnectOptions::swarm`].
    #[must_use]
    pub fn swarm(mut self, id: impl Into<String>) -> Self {
        self.swarm = Some(id.into());
        self
    }

    /// Sets [`ConnectOptions::private`].
    #[must_use]
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }

    /// As [`Client::connect`].
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect(&self, address: &str) -> Result<Client, ConnectError> {
        self.connect_to(&address.parse()?).await
    }

    /// As [`Client::connect`], with an address that was read before.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_to(&self, address: &Address) -> Result<Client, ConnectError> {
        settings::demand(self.swarm.as_deref(), "the program")?;
        let demand = match &self.swarm {
            Some(id) => Demand::Swarm(id.clone()),
            None => Demand::Nothing,
        };
        self.connect_for(address, demand).await
    }

    pub(crate) async fn connect_for(
        &self, address: &Address, demand: Demand,
    ) -> Result<Client, ConnectError> {
        let line = Line::open(address).await?;
        let label = self.label.clone().unwrap_or_else(program_label);
        let opening = Opening { label, hold_if_cut: self.hold_if_cut, demand };
        let session = Session::open(&line, &opening).await?;
        let shared = Shared {
            line,
            opening,
            session: Mutex::new(session),
            reopening: tokio::sync::Mutex::new(()),
            started: Started::Found,
        };
        Ok(Client { shared: Arc::new(shared) })
    }

    /// As [`Client::connect_default`].
    ///
    /// # Errors
    /// As [`Client::connect_default`].
    pub async fn connect_default(&self) -> Result<Client, ConnectError> {
        find::peer(self, false).await
    }

    /// As [`Client::connect_or_start`].
    ///
    /// # Errors
    /// As [`Client::connect_or_start`].
    pub async fn connect_or_start(&self) -> Result<Client, ConnectError> {
        find::peer(self, true).await
    }
}

/// A client of a peer: cheap to clone, and good for thousands of locks at once. All clones share one
/// session.
///
/// If the connection breaks, all guards are lost at once; the next call connects anew.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    line: Line,
    opening: Opening,
    session: Mutex<Arc<Session>>,
    /// So that many calls that find the session gone open one, not many.
    reopening: tokio::sync::Mutex<()>,
    started: Started,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address().to_string())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the peer at this address, `HOST:PORT` or `unix:PATH`.
    ///
    /// # Errors
    /// Nobody answers there, or nobody who speaks this version.
    pub async fn connect(address: &str) -> Result<Self, ConnectError> {
        ConnectOptions::new().connect(address).await
    }

    /// Connects to the peer that SIGMALOCK_API or a configuration names; else the machine's, at
    /// [`MACHINE_SOCKET`](crate::place::MACHINE_SOCKET); else the user's own, if it runs. Where the machine is one of a
    /// swarm, that is never the user's private one, unless SIGMALOCK_PRIVATE says so.
    ///
    /// # Errors
    /// There is none, or it is not to be used.
    pub async fn connect_default() -> Result<Self, ConnectError> {
        ConnectOptions::new().connect_default().await
    }

    /// As [`Client::connect_default`]; if no peer runs, starts the user's private one in the background. It stays
    /// for a while for whoever comes next. What is locked there excludes nobody but other programs of this user on this
    /// machine: for programs of one machine. Never starts one where anything says that this machine is one of a swarm.
    ///
    /// # Errors
    /// There is none, and none could be started, or none is to be.
    pub async fn connect_or_start() -> Result<Self, ConnectError> {
        ConnectOptions::new().connect_or_start().await
    }

    /// A wish for a lock; [`Lock::acquire`] asks for it.
    pub fn lock(&self, name: impl Into<String>) -> Lock {
        Lock::new(self.clone(), name.into())
    }

    /// A wish for several locks, all or none; [`Locks::acquire`] asks for them.
    pub fn locks<N: Into<String>>(&self, names: impl IntoIterator<Item = N>) -> Locks {
        Locks::new(self.clone(), names.into_iter().map(Into::into).collect())
    }

    /// Whether the peer was there, or was started for this client.
    #[must_use]
    pub fn started(&self) -> Started {
        self.shared.started
    }

    /// Where the peer is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.shared.line.address
    }

    /// The peer's id in the swarm.
    #[must_use]
    pub fn peer(&self) -> String {
        self.current().opened().peer.clone()
    }

    /// What people call the peer; empty if it has no name. A label: what tells peers apart is [`Client::peer`].
    #[must_use]
    pub fn peer_name(&self) -> String {
        self.current().opened().peer_name.clone()
    }

    /// What the hosts of a lock say about it.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn inspect(&self, name: impl Into<String>) -> Result<report::Lock, QueryError> {
        Ok(self.stub().inspect(v1::InspectRequest { name: name.into() }).await?.into_inner())
    }

    /// The locks of the swarm, as far as its peers answer, whose names begin with `prefix`; at most `limit`,
    /// or with 0 as many as the peer sends at once.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn list(
        &self, prefix: impl Into<String>, limit: u32,
    ) -> Result<Vec<report::LockSummary>, QueryError> {
        let request = v1::ListRequest { prefix: prefix.into(), limit };
        Ok(self.stub().list(request).await?.into_inner().locks)
    }

    /// How a lock is, and then each change of it that the peer sees.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn watch(&self, name: impl Into<String>) -> Result<Watch, QueryError> {
        let request = v1::WatchRequest { name: name.into() };
        Ok(Watch { stream: self.stub().watch(request).await?.into_inner() })
    }

    /// Puts whoever holds a lock out.
    ///
    /// # Errors
    /// See [`OperatorError`].
    pub async fn break_lock(
        &self, name: impl Into<String>,
    ) -> Result<report::BreakResponse, OperatorError> {
        Ok(self.stub().r#break(v1::BreakRequest { name: name.into() }).await?.into_inner())
    }

    /// Goes on without members of an agreed membership, all who are gone at once: the last resort when half
    /// of them or more are gone for good. If they are not, two may hold the same lock until they meet.
    ///
    /// Those who are left are asked first. If the gone are as many as a majority, nobody can verify that they
    /// did not go on without this peer: `unverified` vouches for that.
    ///
    /// # Errors
    /// See [`OperatorError`].
    pub async fn forget(
        &self, peers: impl IntoIterator<Item = impl Into<String>>, unverified: bool,
    ) -> Result<report::ForgetResponse, OperatorError> {
        let peers = peers.into_iter().map(Into::into).collect();
        Ok(self.stub().forget(v1::ForgetRequest { peers, unverified }).await?.into_inner())
    }

    /// The peers that this one knows.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn peers(&self) -> Result<Vec<report::Peer>, QueryError> {
        Ok(self.stub().peers(v1::PeersRequest {}).await?.into_inner().peers)
    }

    /// How the peer is.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn status(&self) -> Result<report::PeerStatus, QueryError> {
        Ok(self.stub().status(v1::StatusRequest {}).await?.into_inner())
    }

    /// Times so many round trips of a bare stream from the peer to another, in nanoseconds.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn measure(
        &self, peer: impl Into<String>, rounds: u32,
    ) -> Result<Vec<u64>, QueryError> {
        let request = v1::MeasureRequest { peer: peer.into(), rounds };
        Ok(self.stub().measure(request).await?.into_inner().rtt_ns)
    }

    pub(crate) fn with_started(mut self, started: Started) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.started = started;
        }
        self
    }

    /// The session; a new one if the old one is over.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, AcquireError> {
        let session = self.current();
        if !session.has_ended() {
            return Ok(session);
        }
        let _one_at_a_time = self.shared.reopening.lock().await;
        let session = self.current();
        if !session.has_ended() {
            return Ok(session);
        }
        let opened = Session::open(&self.shared.line, &self.shared.opening).await;
        let session =
            opened.map_err(|error| AcquireError::Disconnected { reason: error.to_string() })?;
        *self.shared.session.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&session);
        Ok(session)
    }

    fn current(&self) -> Arc<Session> {
        Arc::clone(&self.shared.session.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn stub(&self) -> LocksClient<Channel> {
        LocksClient::new(self.shared.line.channel.clone()).max_decoding_message_size(REPORT_LEN_MAX)
    }
}

/// The changes of a lock.
#[derive(Debug)]
pub struct Watch {
    stream: Streaming<report::Lock>,
}

impl Watch {
    /// The next; `None` when the peer has ended the stream.
    ///
    /// # Errors
    /// See [`QueryError`]; there is nothing after it.
    pub async fn next(&mut self) -> Result<Option<report::Lock>, QueryError> {
        Ok(self.stream.message().await?)
    }
}

fn program_label() -> String {
    let program = std::env::args_os().next().map(std::path::PathBuf::from);
    let program = program.as_ref().and_then(|path| path.file_name());
    let program = program.map_or("?".into(), |name| name.to_string_lossy());
    format!("{program} ({})", std::process::id())
}
