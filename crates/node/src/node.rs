//! A whole peer: identity, store, transport and driver, put together and taken apart.

use std::path::{Path, PathBuf};

use sigmalock_core::{Birth, Incarnation, PeerId, Protocol, Span};
use sigmalock_protocols::agent::{self, Agent};
use sigmalock_protocols::parts::Placement;
use sigmalock_protocols::sigma::{self, Sigma};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::driver::{Driven, Driver, Exit, Setup};
use crate::handle::{Facts, Handle, Local};
use crate::identity::{Identity, IdentityError};
use crate::link::{self, PeerInfo, Role};
use crate::store::{Charter, OpenError, Records, Store};
use crate::transport::{self, Settings, Started};

/// Views of two peers differ for no longer than this, as far as anybody counts on it: a peer that died
/// is noticed within this time by everybody, and one that joined is known to everybody.
pub const SETTLE: Span = Span::from_secs(3);

/// The longest that a message can be under way. Sessions keep the order and end after two silent seconds;
/// a peer that stood still for more than five drops what its sockets hold.
const FLIGHT_MAX: Span = Span::from_secs(10);

/// Why a peer cannot start. Nothing is running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be made.
    #[error("the data directory {path} cannot be made: {cause}")]
    Directory {
        /// Where.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// There is no identity to be had.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// A record of the store makes no sense.
    #[error(
        "the data directory {0} has a record that cannot be understood; move the file votes.redb away to \
         go on without its memory"
    )]
    Record(PathBuf),
    /// The network side cannot start.
    #[error(transparent)]
    Transport(#[from] transport::StartError),
    /// The system gives no random numbers.
    #[error("this system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Why a peer cannot go on. It has stopped voting; what its users hold will run out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The disk does not take what must be on it.
    #[error("votes cannot be written to disk any more, so this peer has stopped: {0}")]
    Disk(String),
    /// The network side has ended.
    #[error("this peer has lost its network side, and stopped")]
    Transport,
    /// The driver is gone.
    #[error("this peer has stopped")]
    Stopped,
}

/// Why a peer did not leave in order. It has stopped all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaveError {
    /// It had failed before.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A running peer. Dropping it ends it at once, without handing anything over.
#[derive(Debug)]
pub struct Node {
    handle: Handle,
    driver: JoinHandle<Exit>,
}

impl Node {
    /// Starts a peer. Must run inside a tokio runtime; one thread is enough.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let Past { identity, store, birth } = recall(&config)?;
        let incarnation = crate::identity::new_incarnation().map_err(StartError::Random)?;
        let settings = Settings { config: &config, identity: &identity, incarnation };
        let Started { commands: transport, events, me } = transport::start(settings).await?;
        let parts = Assembly { config: &config, me, incarnation, store, birth, events, transport };
        let (handle, driver) = parts.assemble()?;
        let driver = tokio::spawn(driver.run());
        Ok(Self { handle, driver })
    }

    /// For whoever wants locks, or wants to know something.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Leaves the swarm: ends all sessions, hands over what it hosts, closes its store and says goodbye.
    pub async fn leave(mut self) -> Result<(), LeaveError> {
        self.handle.shared.send(Local::Leave);
        let exit = (&mut self.driver).await;
        match failure(exit) {
            None => Ok(()),
            Some(failure) => Err(failure.into()),
        }
    }

    /// Resolves if the peer cannot go on. Call it no more after that.
    pub async fn failed(&mut self) -> Failure {
        let exit = (&mut self.driver).await;
        failure(exit).unwrap_or(Failure::Stopped)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn failure(exit: Result<Exit, tokio::task::JoinError>) -> Option<Failure> {
    match exit {
        Ok(Exit::Left) => None,
        Ok(Exit::Disk(reason)) => Some(Failure::Disk(reason)),
        Ok(Exit::Transport) => Some(Failure::Transport),
        Err(_) => Some(Failure::Stopped),
    }
}

/// What is left of former lives.
struct Past {
    identity: Identity,
    store: Option<Store>,
    birth: Birth<Lock>,
}

/// Who this peer is, and what it remembers.
fn recall(config: &Config) -> Result<Past, StartError> {
    let Some(dir) = &config.data else {
        return Ok(Past { identity: Identity::ephemeral(), store: None, birth: Birth::First });
    };
    let directory = |cause| StartError::Directory { path: dir.clone(), cause };
    std::fs::create_dir_all(dir).map_err(directory)?;
    let lived = Identity::exists(dir);
    let identity = Identity::load_or_create(dir)?;
    let charter = Charter::open(
        identity.peer_id(),
        config.quorum,
        config.lease_max,
        tokens_per_grant(config),
    );
    let (store, records) = Store::open(dir, &charter)?;
    let birth = match records {
        Some(records) => Birth::Recovered(understand::<Lock>(dir, &records)?),
        // An identity that has lived before may have made promises that are lost with its store.
        None if lived => Birth::Amnesiac,
        None => Birth::First,
    };
    Ok(Past { identity, store: Some(store), birth })
}

type Understood<P> = Vec<(<P as Protocol>::DurableKey, <P as Protocol>::Durable)>;

fn understand<P: Driven>(dir: &Path, records: &Records) -> Result<Understood<P>, StartError> {
    let decode = |(key, value): &(Vec<u8>, Vec<u8>)| {
        Some((postcard::from_bytes(key).ok()?, postcard::from_bytes(value).ok()?))
    };
    let understood: Option<Vec<_>> = records.iter().map(decode).collect();
    understood.ok_or_else(|| StartError::Record(dir.into()))
}

/// The parts of a driver.
struct Assembly<'a> {
    config: &'a Config,
    me: PeerInfo,
    incarnation: Incarnation,
    store: Option<Store>,
    birth: Birth<Lock>,
    events: mpsc::Receiver<link::Event>,
    transport: mpsc::Sender<link::Command>,
}

impl Assembly<'_> {
    fn assemble(self) -> Result<(Handle, Driver<Lock>), StartError> {
        let Self { config, me, incarnation, store, birth, events, transport } = self;
        let hosts = config.role == Role::Host;
        let mut placement = Placement::new(me.peer, me.key, hosts, config.lease_max, SETTLE);
        if !config.join.is_empty() || config.mdns {
            placement.unsettle(crate::clock::now());
        }
        let (n, m) = (config.quorum.n(), config.quorum.m());
        let facts = Facts {
            me: me.peer,
            n,
            m,
            lease_max: config.lease_max,
            data: config.data.as_ref().map(|dir| dir.display().to_string()),
            swarm: config.swarm_key.as_ref().map(crate::key::SwarmKey::id),
        };
        let (handle, commands) = Handle::new(transport.clone(), facts);
        let setup = Setup {
            protocol: protocol(me.peer, config),
            me,
            placement,
            incarnation,
            birth,
            seed: getrandom::u64().map_err(StartError::Random)?,
            store,
            n,
            lease_max: config.lease_max,
            mesh_max: config.mesh_max,
            events,
            transport,
            commands,
            commands_waiting: std::sync::Arc::clone(&handle.shared.waiting),
        };
        Ok((handle, Driver::new(setup)))
    }
}

/// What live peers speak.
type Lock = Agent<Sigma>;

fn protocol(me: PeerId, config: &Config) -> Lock {
    let mut sigma = sigma::Config::new(config.quorum);
    sigma.lease_max = config.lease_max;
    sigma.hosting = sigma::Hosting::Open;
    sigma.client_only = config.role == Role::ClientOnly;
    sigma.flight_max = FLIGHT_MAX;
    sigma.tokens_per_grant = tokens_per_grant(config);
    sigma.durable = config.data.is_some();
    Agent::new(Sigma::new(me, sigma), agent::Config::new(tokens_per_grant(config)))
}

/// One for each user that is let in under a grant.
fn tokens_per_grant(config: &Config) -> u64 {
    u64::from(config.hand_overs_max.max(1))
}

impl Driven for Lock {
    fn hosted(&self) -> usize {
        self.inner().hosted()
    }
    fn has_handed_over(&self) -> bool {
        self.inner().has_handed_over()
    }
}
