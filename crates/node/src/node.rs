//! A whole peer: identity, store, transport and driver, put together and taken apart.

use std::path::PathBuf;
use std::sync::Arc;

use sigmalock_core::{Incarnation, PeerId, Span};
use sigmalock_protocols::agent::{self, Agent};
use sigmalock_protocols::agreed::{self, Agreed};
use sigmalock_protocols::catalogue::{Plan, Shipped, ShippedVisitor, Variant};
use sigmalock_protocols::parts::hosting::{self, ByView};
use sigmalock_protocols::parts::{Beside, Hosting, Placement, Quorum, Sound, Vacant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::address_book::{self, Contact};
use crate::config::{Beginning, Config, Membership, ProtocolName};
use crate::driver::{Driver, Exit, Live, Setup};
use crate::handle::{Facts, Handle, Local};
use crate::identity::IdentityError;
use crate::link::{self, PeerInfo, Role};
use crate::names::Book;
use crate::origin::Origin;
use crate::past::{Past, Who};
use crate::store::OpenError;
use crate::transport::{self, JOIN_PAUSE_MAX, Listening, Settings, Started};

/// Views of two peers differ for no longer than this, as far as anybody counts on it: a peer that died
/// is noticed within this time by everybody, and one that joined is known to everybody.
pub const SETTLE: Span = Span::from_secs(3);

/// The longest that a message can be under way. Sessions keep the order and end after two silent seconds;
/// a peer that stood still for more than five drops what its sockets hold.
const FLIGHT_MAX: Span = Span::from_secs(10);

/// So long does a waiter have to say that it wants the vote it got. Who was cut off a moment ago keeps the
/// others waiting for so long, once they have noticed.
const CLAIM_WINDOW: Span = Span::from_secs(1);

/// The worst round trip to expect.
const ROUND_TRIP_WORST: Span = Span::from_millis(500);

/// So long does a loser wait, at random, whose protocol has no queue.
const BACK_OFF: (Span, Span) = (Span::ZERO, Span::from_secs(1));

/// Why a peer cannot start. Nothing is running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be made, or written to.
    #[error("the data directory {path} cannot be made, or written to: {cause}")]
    Directory {
        /// Where.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// Others can look into the data directory, and it is not for this peer to close it: there is something else in it.
    #[error(
        "others can look into {path} (mode {mode:o}), and there is more in it than a peer's data: give this peer a \
         directory of its own, or `chmod 700` that one"
    )]
    Exposed {
        /// Which directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The data directory is somebody else's, who could change what this peer remembers.
    #[error(
        "the data directory {path} belongs to another user (uid {owner}): run this peer as that user, or give it a \
         directory of its own"
    )]
    Foreign {
        /// Which directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
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
    /// Nothing says with whom to begin.
    #[error(
        "this peer knows of no swarm: join one with --join ADDRESS (or --mdns), make one together with others (the \
         same with --expect N), or found one alone with --found"
    )]
    Nobody,
    /// It does not run with this kind of membership.
    #[error("{0} does not run with {1} membership; live peers run it with: {with}", with = with(*.0))]
    NotWith(ProtocolName, Membership),
    /// It guards no locks.
    #[error("{0} is no lock protocol; there are: {locks}", locks = locks())]
    NotALock(ProtocolName),
    /// No lock could be kept for so short a time.
    #[error("a longest lease of {0} is too short to hold any lock: it takes {1} at least")]
    LeaseTooShort(Span, Span),
    /// The system gives no random numbers.
    #[error("this system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// The protocols that guard locks; in words.
fn locks() -> String {
    ProtocolName::locks().map(ProtocolName::as_str).collect::<Vec<_>>().join(", ")
}

/// Who may be in, live, where locks are guarded like that; in words.
fn with(protocol: ProtocolName) -> String {
    let kinds = protocol.card().memberships.iter().filter(|kind| **kind != Membership::Fixed);
    kinds.map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
}

impl StartError {
    /// Whether it takes nothing but other settings.
    #[must_use]
    pub const fn is_about_settings(&self) -> bool {
        use transport::StartError::{Advertise, AdvertiseMany};
        matches!(
            self,
            Self::Transport(Advertise(_) | AdvertiseMany(_))
                | Self::Nobody
                | Self::NotWith(..)
                | Self::NotALock(_)
                | Self::LeaseTooShort(..)
                | Self::Exposed { .. }
                | Self::Foreign { .. }
        )
    }

    /// Whether another process has the data directory.
    #[must_use]
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::Store(OpenError::InUse(_)))
    }
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
    /// Keeps the addresses of others.
    keeper: Option<JoinHandle<()>>,
    resumes: bool,
}

/// A peer that is about to start, and could: it has its addresses, and its data directory if that is there. Nobody hears of
/// it, and it leaves nothing behind if it does not.
pub struct Prepared {
    config: Config,
    who: Who,
    past: Option<Past>,
    listening: Listening,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

impl Prepared {
    /// What it was told.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Opens its store. Of a first life all is on disk then but its name; whoever ends before [`Prepared::start`] was never
    /// there, and the next begins anew.
    ///
    /// # Errors
    /// The disk cannot be used.
    pub fn open(&mut self) -> Result<(), StartError> {
        if self.past.is_none() {
            self.past = Some(self.who.recall(&self.config)?);
        }
        Ok(())
    }

    /// From now on it is there: its name is on disk before anybody hears of it.
    ///
    /// # Errors
    /// The disk cannot be used, or makes no sense.
    pub async fn start(self) -> Result<Node, StartError> {
        self.start_around(|parts| {
            let protocol = parts.config.protocol;
            protocol.visit_shipped(parts).unwrap_or(Err(StartError::NotALock(protocol)))
        })
        .await
    }

    /// Starts it around what is to run in it.
    async fn start_around(
        mut self, drive: impl FnOnce(Assembly<'_>) -> Begun,
    ) -> Result<Node, StartError> {
        let past = match self.past.take() {
            Some(past) => past,
            None => self.who.recall(&self.config)?,
        };
        let Self { config, who, listening, .. } = self;
        let resumes = past.lived();
        let incarnation = crate::identity::new_incarnation().map_err(StartError::Random)?;
        who.keep(&config)?;
        let origin = origin(&config);
        let settings =
            Settings { config: &config, identity: &who.identity, incarnation, origin: &origin };
        let Started { commands: transport, events, me } = listening.run(settings);
        let keeps = config.data.clone().filter(|_| config.membership == Membership::Agreed);
        let known = keeps.as_deref().map(address_book::read).unwrap_or_default();
        for peer in &known {
            for address in peer.addresses.clone() {
                // Who cannot be met now may yet come by itself.
                let meet = link::Command::Meet { peer: peer.network, address };
                let _ = transport.send(meet).await;
            }
        }
        let parts =
            Assembly { config: &config, me, incarnation, origin, past, known, events, transport };
        let (handle, driver) = drive(parts)?;
        let keeper = keeps.map(|dir| tokio::spawn(address_book::keep(handle.clone(), dir)));
        Ok(Node { handle, driver, keeper, resumes })
    }
}

impl Node {
    /// Sees to all that may stand against a start, and writes nothing. Must run inside a tokio runtime; one thread is enough.
    ///
    /// # Errors
    /// It cannot start.
    pub async fn prepare(config: Config) -> Result<Prepared, StartError> {
        check(&config)?;
        let who = Who::look(&config)?;
        let listening = transport::listen(&config, &who.identity).await?;
        Ok(Prepared { config, who, past: None, listening })
    }

    /// Prepares a peer, and starts it.
    ///
    /// # Errors
    /// It cannot start.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::prepare(config).await?.start().await
    }

    /// Whether it has lived before, and goes on where that life ended.
    #[must_use]
    pub const fn resumes(&self) -> bool {
        self.resumes
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
        if let Some(keeper) = &self.keeper {
            keeper.abort();
        }
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

/// What can be said before anything is written: who is told better next time begins afresh.
fn check(config: &Config) -> Result<(), StartError> {
    let (protocol, membership) = (config.protocol, config.membership);
    if !protocol.is_lock() {
        return Err(StartError::NotALock(protocol));
    }
    if membership == Membership::Fixed || !protocol.card().memberships.contains(&membership) {
        return Err(StartError::NotWith(protocol, membership));
    }
    transport::check(config)?;
    let at_least = plan(config, config.quorum, Box::new(ByView::default())).ttl_min();
    if config.lease_max < at_least {
        return Err(StartError::LeaseTooShort(config.lease_max, at_least));
    }
    Ok(())
}

/// Which swarm this peer belongs to, as far as it knew.
fn origin(config: &Config) -> Arc<Origin> {
    match config.membership {
        Membership::Open | Membership::Fixed => Arc::default(),
        Membership::Agreed => Arc::new(Origin::recall(config.data.as_deref())),
    }
}

/// A driver at work, and how to ask it.
type Begun = Result<(Handle, JoinHandle<Exit>), StartError>;

/// The parts of a driver.
struct Assembly<'a> {
    config: &'a Config,
    me: PeerInfo,
    incarnation: Incarnation,
    origin: Arc<Origin>,
    past: Past,
    known: Vec<Contact>,
    events: mpsc::Receiver<link::Event>,
    transport: mpsc::Sender<link::Command>,
}

/// Around the lock protocol of this swarm.
impl ShippedVisitor for Assembly<'_> {
    type Out = Begun;

    fn visit<P: Shipped>(self) -> Begun {
        match self.config.membership {
            Membership::Open => self.drive(open::<P>),
            Membership::Agreed => self.drive(agreed::<P>),
            kind @ Membership::Fixed => Err(StartError::NotWith(self.config.protocol, kind)),
        }
    }
}

impl Assembly<'_> {
    /// Puts them together around a protocol, and begins.
    fn drive<P: Live>(self, protocol: impl FnOnce(&PeerInfo, &Config) -> P) -> Begun {
        let Self { config, me, incarnation, origin, past, known, events, transport } = self;
        let facts = Facts {
            me: me.peer,
            lease_max: config.lease_max,
            data: config.data.as_ref().map(|dir| dir.display().to_string()),
            swarm: config.swarm_key.id(),
            private: config.is_private(),
            protocol: config.protocol,
            names: Book::default(),
        };
        let (handle, commands) = Handle::new(transport.clone(), facts);
        let setup = Setup {
            protocol: protocol(&me, config),
            me,
            incarnation,
            birth: past.birth(config)?,
            loss: past.loss(),
            writes: past.writes(),
            seed: getrandom::u64().map_err(StartError::Random)?,
            store: past.store,
            votes: (config.quorum.n(), config.quorum.m()),
            lease_max: config.lease_max,
            known,
            names: handle.shared.facts.names.clone(),
            looks_at: looks_at(config),
            origin,
            mesh_max: config.mesh_max,
            events,
            transport,
            commands,
            commands_waiting: Arc::clone(&handle.shared.waiting),
        };
        Ok((handle, tokio::spawn(Driver::new(setup).run())))
    }
}

/// Where a peer was told to look for others: the end of a sentence.
fn looks_at(config: &Config) -> String {
    let addresses: Vec<String> = config.join.iter().map(ToString::to_string).collect();
    match (addresses.as_slice(), config.mdns) {
        ([], true) => " on the local network".into(),
        ([], false) => ": it was told of nobody to join, and finds nobody it knew".into(),
        (addresses, _) => {
            let (addresses, pause) = (addresses.join(", "), JOIN_PAUSE_MAX);
            format!(" at {addresses}; it tries again and again, at most {pause:?} apart")
        }
    }
}

/// What runs in a peer: the services beside each other, each in a place that it keeps. There is one so far; the next is
/// where nothing is now, and says what it says in a place of its own.
type Services<P> = Beside<Agent<P>, Vacant>;

/// What peers speak where nobody agrees on who is in.
fn open<P: Shipped>(me: &PeerInfo, config: &Config) -> Services<P> {
    let hosts = config.role == Role::Host;
    let mut placement = Placement::new(me.peer, me.key, hosts, config.lease_max, SETTLE);
    if !config.join.is_empty() || config.mdns {
        placement.unsettle(crate::clock::now());
    }
    let hosting = hosting::Open::new(placement, config.quorum.n() as u16);
    services(me.peer, &plan(config, config.quorum, Box::new(hosting)))
}

/// What they speak where they do.
fn agreed<P: Shipped>(me: &PeerInfo, config: &Config) -> Agreed<Services<P>> {
    let beginning = match config.role {
        Role::ClientOnly => Beginning::Watch,
        Role::Host => config.beginning,
    };
    let mut agreed = agreed::Config::new(config.lease_max, beginning);
    agreed.views.dead_after = config.dead_after;
    let plan = plan(config, Quorum::ONE, Box::new(ByView::default()));
    Agreed::new(me.peer, agreed, services(me.peer, &plan))
}

/// Whoever hosts.
fn services<P: Shipped>(me: PeerId, plan: &Plan) -> Services<P> {
    let locks = Agent::new(P::plan(me, plan), agent::Config::new(plan.tokens_per_grant));
    Beside::new(locks, Vacant)
}

/// The numbers that a lock protocol goes by.
fn plan(config: &Config, quorum: Quorum, hosting: Box<dyn Hosting>) -> Plan {
    Plan {
        variant: Variant::Shipped,
        quorum,
        hosting,
        lease_max: config.lease_max,
        claim_window: CLAIM_WINDOW,
        dead_after: config.dead_after,
        round_trip_worst: ROUND_TRIP_WORST,
        flight_max: FLIGHT_MAX,
        back_off: BACK_OFF,
        durable: config.data.is_some(),
        tokens_per_grant: tokens_per_grant(config),
        client_only: config.role == Role::ClientOnly,
        bare: false,
        rules: Sound,
    }
}

/// One for each user that is let in under a grant.
pub(crate) fn tokens_per_grant(config: &Config) -> u64 {
    u64::from(config.hand_overs_max.max(1))
}

#[cfg(test)]
mod tests;
