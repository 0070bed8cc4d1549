//! The same without `async`: for programs that have no runtime of their own.
//!
//! ```no_run
//! # use std::time::Duration;
//! use sigmalock::blocking::Client;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::connect_or_start()?;
//!     let guard = client.lock("/render/frame-17").wait(Duration::from_secs(30)).acquire()?;
//!     println!("inside, with token {}", guard.token());
//!     guard.check()?;
//!     guard.release()?;
//!     Ok(())
//! }
//! ```
//!
//! A client has one thread of its own, on which its connection lives, so that leases are extended whatever the caller
//! does meanwhile. What blocks here must not be called from within a runtime: it panics there, as tokio says.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::timeout;

use crate::client::ConnectOptions;
use crate::error::{AcquireError, ConnectError, ReleaseError};
use crate::guard::LostSignal;
use crate::lock::Position;
use crate::several::LocksError;

/// A guard that is dropped waits at most so long until the peer has confirmed it.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// The thread that the connection of a client lives on.
struct Engine {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Engine {
    fn start() -> Result<Arc<Self>, ConnectError> {
        let mut builder = Builder::new_multi_thread();
        let built = builder.worker_threads(1).thread_name("sigmalock").enable_all().build();
        let runtime = built.map_err(|why| ConnectError::Thread { reason: why.to_string() })?;
        Ok(Arc::new(Self { handle: runtime.handle().clone(), runtime: Some(runtime) }))
    }

    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Whoever drops the last client may be in a runtime of its own, where waiting is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// As [`crate::Client`]: cheap to clone, and good for many threads and locks at once.
#[derive(Clone)]
pub struct Client {
    client: crate::Client,
    engine: Arc<Engine>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

impl Client {
    /// As [`crate::Client::connect`].
    ///
    /// # Errors
    /// As [`crate::Client::connect`].
    pub fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::open(ConnectOptions::new().connect(address))
    }

    /// As [`crate::Client::connect_default`].
    ///
    /// # Errors
    /// As [`crate::Client::connect_default`].
    pub fn connect_default() -> Result<Self, ConnectError> {
        Self::open(ConnectOptions::new().connect_default())
    }

    /// As [`crate::Client::connect_or_start`].
    ///
    /// # Errors
    /// As [`crate::Client::connect_or_start`].
    pub fn connect_or_start() -> Result<Self, ConnectError> {
        Self::open(ConnectOptions::new().connect_or_start())
    }

    /// The same with options: `Client::open(ConnectOptions::new().label("cutter").connect_default())`.
    ///
    /// # Errors
    /// What the future says.
    pub fn open(
        connecting: impl Future<Output = Result<crate::Client, ConnectError>>,
    ) -> Result<Self, ConnectError> {
        let engine = Engine::start()?;
        let client = engine.run(connecting)?;
        Ok(Self { client, engine })
    }

    /// As [`crate::Client::lock`].
    pub fn lock(&self, name: impl Into<String>) -> Lock {
        Lock { lock: self.client.lock(name), engine: Arc::clone(&self.engine) }
    }

    /// As [`crate::Client::locks`].
    pub fn locks<N: Into<String>>(&self, names: impl IntoIterator<Item = N>) -> Locks {
        Locks { locks: self.client.locks(names), engine: Arc::clone(&self.engine) }
    }

    /// Whatever else a client can do: `client.call(|client| client.status())`.
    pub fn call<'a, T, F>(&'a self, call: impl FnOnce(&'a crate::Client) -> F) -> T
    where
        F: Future<Output = T>,
    {
        self.engine.run(call(&self.client))
    }
}

/// As [`crate::Lock`].
#[must_use = "nothing is asked for until `acquire` or `try_acquire` is called"]
pub struct Lock {
    lock: crate::Lock,
    engine: Arc<Engine>,
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}

/// As [`crate::Locks`].
#[must_use = "nothing is asked for until `acquire` or `try_acquire` is called"]
pub struct Locks {
    locks: crate::Locks,
    engine: Arc<Engine>,
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.locks.fmt(f)
    }
}

/// What a wish for one lock and for several have in common.
macro_rules! wish {
    ($wish:ident, $field:ident) => {
        impl $wish {
            fn change(mut self, change: impl FnOnce(crate::$wish) -> crate::$wish) -> Self {
                self.$field = change(self.$field);
                self
            }

            #[doc = concat!("As [`crate::", stringify!($wish), "::shared`].")]
            pub fn shared(self) -> Self {
                self.change(crate::$wish::shared)
            }

            #[doc = concat!("As [`crate::", stringify!($wish), "::permits`].")]
            pub fn permits(self, of: u32) -> Self {
                self.change(|wish| wish.permits(of))
            }

            #[doc = concat!("As [`crate::", stringify!($wish), "::ttl`].")]
            pub fn ttl(self, ttl: Duration) -> Self {
                self.change(|wish| wish.ttl(ttl))
            }

            #[doc = concat!("As [`crate::", stringify!($wish), "::wait`].")]
            pub fn wait(self, patience: Duration) -> Self {
                self.change(|wish| wish.wait(patience))
            }
        }
    };
}
wish!(Lock, lock);
wish!(Locks, locks);

impl Lock {
    /// As [`crate::Lock::on_queue`]; called on the client's own thread.
    pub fn on_queue(self, call: impl FnMut(Position) + Send + 'static) -> Self {
        self.change(|lock| lock.on_queue(call))
    }

    /// As [`crate::Lock::acquire`].
    ///
    /// # Errors
    /// As [`crate::Lock::acquire`].
    pub fn acquire(self) -> Result<Guard, AcquireError> {
        let guard = self.engine.run(self.lock.acquire())?;
        Ok(Guard { guard, engine: self.engine })
    }

    /// As [`crate::Lock::try_acquire`].
    ///
    /// # Errors
    /// As [`crate::Lock::try_acquire`].
    pub fn try_acquire(self) -> Result<Guard, AcquireError> {
        let guard = self.engine.run(self.lock.try_acquire())?;
        Ok(Guard { guard, engine: self.engine })
    }
}

impl Locks {
    /// As [`crate::Locks::acquire`]. The guards are in the order of the names.
    ///
    /// # Errors
    /// As [`crate::Locks::acquire`].
    pub fn acquire(self) -> Result<Vec<Guard>, LocksError> {
        Ok(guards(self.engine.run(self.locks.acquire())?, &self.engine))
    }

    /// As [`crate::Locks::try_acquire`].
    ///
    /// # Errors
    /// As [`crate::Locks::try_acquire`].
    pub fn try_acquire(self) -> Result<Vec<Guard>, LocksError> {
        Ok(guards(self.engine.run(self.locks.try_acquire())?, &self.engine))
    }
}

fn guards(guards: crate::Guards, engine: &Arc<Engine>) -> Vec<Guard> {
    let guard = |guard| Guard { guard, engine: Arc::clone(engine) };
    guards.into_iter().map(guard).collect()
}

/// As [`crate::Guard`]. Dropping it releases the lock: when that returns, the next one may be inside.
#[must_use = "a guard that is dropped releases its lock"]
pub struct Guard {
    guard: crate::Guard,
    engine: Arc<Engine>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

impl Guard {
    /// As [`crate::Guard::name`].
    #[must_use]
    pub fn name(&self) -> &str {
        self.guard.name()
    }

    /// As [`crate::Guard::token`].
    #[must_use]
    pub fn token(&self) -> u64 {
        self.guard.token()
    }

    /// As [`crate::Guard::slot`].
    #[must_use]
    pub fn slot(&self) -> Option<u32> {
        self.guard.slot()
    }

    /// As [`crate::Guard::holder_id`].
    #[must_use]
    pub fn holder_id(&self) -> String {
        self.guard.holder_id()
    }

    /// As [`crate::Guard::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// As [`crate::Guard::is_lost`].
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }

    /// As [`crate::Guard::check`].
    ///
    /// # Errors
    /// As [`crate::Guard::check`].
    pub fn check(&self) -> Result<(), ReleaseError> {
        self.guard.check()
    }

    /// As [`crate::Guard::lost_signal`], for another thread to ask.
    #[must_use]
    pub fn lost_signal(&self) -> LostSignal {
        self.guard.lost_signal()
    }

    /// Blocks until the right is gone, or about to be, as [`crate::Guard::lost`], but no longer than this; says
    /// whether it is.
    #[must_use]
    pub fn is_lost_within(&self, limit: Duration) -> bool {
        self.engine.run(async { timeout(limit, self.guard.lost()).await.is_ok() })
    }

    /// As [`crate::Guard::release`].
    ///
    /// # Errors
    /// As [`crate::Guard::release`].
    pub fn release(self) -> Result<(), ReleaseError> {
        self.engine.run(self.guard.give_back())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let given_back = self.guard.give_back();
        // In a runtime nobody may wait; it is given back all the same.
        if Handle::try_current().is_err() {
            let _ = self.engine.run(async { timeout(RELEASE_TIMEOUT, given_back).await });
        }
    }
}
