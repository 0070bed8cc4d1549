//! Several locks at once, all or none.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::error::{AcquireError, ReleaseError};
use crate::guard::Guard;
use crate::lock::{Lock, Position, named};

/// A wish for several locks, under construction. Begins with [`Client::locks`], ends with [`Locks::acquire`] or
/// [`Locks::try_acquire`].
///
/// They are taken one after the other, in the order of their names: everybody who takes several does so in
/// the same order, so no two wait for each other.
#[must_use = "nothing is asked for until `acquire` or `try_acquire` is awaited"]
pub struct Locks {
    client: Client,
    /// Sorted, each once.
    names: Vec<String>,
    prepare: Prepare,
    patience: Patience,
    on_queue: Option<OnQueue>,
}

/// How long to wait for all of them together.
#[derive(Debug, Clone, Copy)]
enum Patience {
    Try,
    For(Duration),
    Forever,
}

type Prepare = Box<dyn Fn(Lock) -> Lock + Send + Sync>;
type OnQueue = std::sync::Arc<dyn Fn(&str, Position) + Send + Sync>;

/// Which lock could not be had, and why. None is held then.
#[derive(thiserror::Error)]
#[error("{name}: {error}")]
pub struct LocksError {
    /// The lock.
    pub name: String,
    /// What [`Lock::acquire`] said.
    #[source]
    pub error: AcquireError,
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Locks {
    pub(crate) fn new(client: Client, mut names: Vec<String>) -> Self {
        // Two ways to write a name are one lock, and one place in the order. What is no name is told when it is asked for.
        for name in &mut names {
            if let Ok(canonical) = named(name) {
                canonical.as_str().clone_into(name);
            }
        }
        names.sort_unstable();
        names.dedup();
        let (prepare, patience): (Prepare, _) = (Box::new(|lock| lock), Patience::Forever);
        Self { client, names, prepare, patience, on_queue: None }
    }

    fn each(mut self, change: impl Fn(Lock) -> Lock + Send + Sync + 'static) -> Self {
        let before = self.prepare;
        self.prepare = Box::new(move |lock| change(before(lock)));
        self
    }

    /// As [`Lock::ttl`], for each.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.each(move |lock| lock.ttl(ttl))
    }

    /// As [`Lock::shared`], for each.
    pub fn shared(self) -> Self {
        self.each(Lock::shared)
    }

    /// As [`Lock::permits`], for each.
    pub fn permits(self, of: u32) -> Self {
        self.each(move |lock| lock.permits(of))
    }

    /// Waits at most so long, for all of them together. Default: for ever.
    pub fn wait(mut self, patience: Duration) -> Self {
        self.patience = Patience::For(patience);
        self
    }

    /// As [`Lock::on_queue`]; also says for which lock.
    pub fn on_queue(mut self, call: impl Fn(&str, Position) + Send + Sync + 'static) -> Self {
        self.on_queue = Some(std::sync::Arc::new(call));
        self
    }

    /// Asks for one after the other. If one cannot be had, all are given back. If one is lost while waiting
    /// for another, all are given back and asked for anew.
    ///
    /// # Errors
    /// See [`LocksError`].
    pub async fn acquire(self) -> Result<Guards, LocksError> {
        let begin = Instant::now();
        'anew: loop {
            let mut guards = Guards(Vec::with_capacity(self.names.len()));
            for name in &self.names {
                let guard = self.one(name, begin).await;
                guards.0.push(guard.map_err(|error| LocksError { name: name.clone(), error })?);
                if guards.is_lost() {
                    continue 'anew;
                }
            }
            return Ok(guards);
        }
    }

    /// Asks, and does not wait: all of them are free, or [`AcquireError::Busy`]; whatever [`Locks::wait`] was told.
    ///
    /// # Errors
    /// As [`Locks::acquire`].
    pub async fn try_acquire(mut self) -> Result<Guards, LocksError> {
        self.patience = Patience::Try;
        self.acquire().await
    }

    /// The next of them, for which the others were waited since `begin`.
    async fn one(&self, name: &str, begin: Instant) -> Result<Guard, AcquireError> {
        let mut lock = (self.prepare)(self.client.lock(name));
        if let Some(tell) = self.on_queue.clone() {
            let name = name.to_owned();
            lock = lock.on_queue(move |position| tell(&name, position));
        }
        match self.patience {
            Patience::Try => lock.try_acquire().await,
            Patience::Forever => lock.acquire().await,
            Patience::For(patience) => {
                let left = patience.saturating_sub(begin.elapsed());
                match lock.wait(left).acquire().await {
                    // Of what was left of it nobody knows.
                    Err(AcquireError::TimedOut { .. }) => {
                        Err(AcquireError::TimedOut { waited: patience })
                    }
                    other => other,
                }
            }
        }
    }
}

/// Locks that are held together: one guard for all. Dropping it releases them.
#[derive(Debug)]
#[must_use = "guards that are dropped release their locks"]
pub struct Guards(Vec<Guard>);

impl IntoIterator for Guards {
    type Item = Guard;
    type IntoIter = std::vec::IntoIter<Guard>;
    /// Each of them, in the order of their names, from now on by itself.
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Guards {
    /// Each of them, in the order of their names: with its name, its token, its slot.
    pub fn iter(&self) -> impl Iterator<Item = &Guard> {
        self.0.iter()
    }

    /// Whether one of them is lost. Then all are to be given up.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.iter().any(Guard::is_lost)
    }

    /// Why one of them was lost, if its peer said so: see [`Guard::why_lost`].
    #[must_use]
    pub fn why_lost(&self) -> Option<&str> {
        self.0.iter().find_map(Guard::why_lost)
    }

    /// How long all of them last from now, unless they are extended.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.0.iter().map(Guard::remaining).min().unwrap_or_default()
    }

    /// Completes when one of them is gone, or about to be; see [`Guard::lost`].
    pub async fn lost(&self) {
        let mut losses: Vec<_> = self.0.iter().map(|guard| Box::pin(guard.lost())).collect();
        let any = std::future::poll_fn(|cx| {
            let mut ready = losses.iter_mut().map(|loss| loss.as_mut().poll(cx).is_ready());
            if ready.any(|ready| ready) { Poll::Ready(()) } else { Poll::Pending }
        });
        pin!(any).await;
    }

    /// Releases all of them, and waits until the peer has confirmed it.
    ///
    /// # Errors
    /// What the first of them said that was lost before. All are gone either way.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let mut outcome = Ok(());
        for guard in self.0 {
            let released = guard.release().await;
            outcome = outcome.and(released);
        }
        outcome
    }
}
