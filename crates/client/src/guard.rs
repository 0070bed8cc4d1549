//! The right to be inside.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use sigmalock_api::v1;
use tokio::sync::Notify;

use crate::clock;
use crate::error::ReleaseError;
use crate::session::Session;

/// A guard counts as lost this long before its deadline, or a twentieth of its first span if that is less:
/// who is told needs a moment to stop.
const LOSS_MARGIN_MAX_US: u64 = 50_000;

/// How often a watcher looks at the clock that goes on while the machine sleeps; its own timer does not.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// A lock that is held. Dropping it releases it.
///
/// It is a lease: a guard can be lost, and then somebody else may be inside. A lost guard stays lost.
#[must_use = "a guard that is dropped releases its lock"]
pub struct Guard {
    session: Arc<Session>,
    lease: Arc<Lease>,
    name: String,
    token: u64,
    slot: Option<u32>,
    call: u64,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", &self.name)
            .field("token", &self.token)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl Guard {
    pub(crate) fn new(
        session: Arc<Session>, lease: Arc<Lease>, name: String, granted: &v1::Granted,
    ) -> Self {
        let &v1::Granted { call, token, slot, .. } = granted;
        Self { session, lease, name, token, slot, call }
    }

    /// The name of the lock.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fencing token: show it to the resource, which refuses lower ones ([`crate::fence`]). 0, which every fence
    /// refuses, where the lock protocol of the swarm gives none.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Which of the permits of a semaphore it is, counted from 0; `None` if it is none. No two holders have
    /// the same at the same time.
    #[must_use]
    pub fn slot(&self) -> Option<u32> {
        self.slot
    }

    /// Who this holder is, for a fenced resource: nobody else has, or ever had, the same.
    #[must_use]
    pub fn holder_id(&self) -> String {
        format!("{}/{}", self.session.holder(), self.call)
    }

    /// When the right ends, unless it is extended before; it normally is, every third of the ttl. After a
    /// suspension of the machine only [`Guard::is_lost`] and [`Guard::remaining`] are right: `Instant`
    /// does not see it.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.remaining()
    }

    /// How long the right lasts from now, unless it is extended. Zero once the guard is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.is_lost() { Duration::ZERO } else { clock::until(self.lease.deadline_us()) }
    }

    /// Whether the right is gone. Looks at the clock itself: a process that was stopped past its deadline
    /// sees it here first, whatever messages wait for it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// [`Guard::is_lost`] with a question mark: `guard.check()?` before each step that matters.
    ///
    /// # Errors
    /// [`ReleaseError::Lost`]: stop, and let somebody else go on.
    pub fn check(&self) -> Result<(), ReleaseError> {
        if self.is_lost() { Err(ReleaseError::Lost) } else { Ok(()) }
    }

    /// Why the peer took the right back, in words for people, if it said so: as when it is told to end. Then it waits a moment for
    /// whoever gives the lock back (by [`Guard::release`], or by dropping the guard) and lets the next in at once.
    #[must_use]
    pub fn why_lost(&self) -> Option<&str> {
        self.lease.why_lost()
    }

    /// Completes when the right is gone, or about to be: a little before the deadline, unless this process
    /// slept. May be awaited again, and dropped at any time.
    pub async fn lost(&self) {
        self.lease.lost().await;
    }

    /// The same for others: to be cloned, sent elsewhere, and awaited there. It does not hold the lock.
    #[must_use]
    pub fn lost_signal(&self) -> LostSignal {
        LostSignal { lease: Arc::clone(&self.lease) }
    }

    /// Releases the lock, and waits until the peer has confirmed it.
    ///
    /// # Errors
    /// The lock was lost before, or the connection is. The guard is gone either way.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let given_back = self.give_back();
        drop(self);
        given_back.await
    }

    /// The lock is on its way back when this returns, and the guard lost; the future tells how it went.
    pub(crate) fn give_back(&self) -> impl Future<Output = Result<(), ReleaseError>> + use<> {
        let lost_before = self.is_lost();
        let confirmed = self.session.release(self.call);
        self.lease.end();
        async move {
            let outcome = confirmed.await;
            if lost_before { Err(ReleaseError::Lost) } else { outcome }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.lease.end();
        self.session.let_go(self.call);
    }
}

/// Tells that a guard was lost. Once the guard was released or dropped, it tells so too.
#[derive(Clone)]
pub struct LostSignal {
    lease: Arc<Lease>,
}

impl fmt::Debug for LostSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LostSignal").field("is_lost", &self.is_lost()).finish()
    }
}

impl LostSignal {
    /// As [`Guard::is_lost`].
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// As [`Guard::lost`].
    pub async fn lost(&self) {
        self.lease.lost().await;
    }

    /// As [`Guard::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.is_lost() { Duration::ZERO } else { clock::until(self.lease.deadline_us()) }
    }
}

/// What a guard and its session know of the right.
pub(crate) struct Lease {
    deadline_us: AtomicU64,
    margin_us: u64,
    lost: AtomicBool,
    why_lost: OnceLock<String>,
    changed: Notify,
}

impl Lease {
    pub(crate) fn new(deadline_us: u64) -> Self {
        let span_us = deadline_us.saturating_sub(clock::boottime_us());
        Self {
            deadline_us: AtomicU64::new(deadline_us),
            margin_us: (span_us / 20).min(LOSS_MARGIN_MAX_US),
            lost: AtomicBool::new(false),
            why_lost: OnceLock::new(),
            changed: Notify::new(),
        }
    }

    fn deadline_us(&self) -> u64 {
        self.deadline_us.load(Ordering::Acquire)
    }

    /// The clock is asked first. What was lost stays lost: somebody may have acted on it.
    pub(crate) fn is_lost(&self) -> bool {
        if clock::boottime_us() >= self.deadline_us().saturating_sub(self.margin_us) {
            self.end();
        }
        self.lost.load(Ordering::Acquire)
    }

    /// Moves the deadline. False if the guard was lost before: a process that overslept its deadline is
    /// out, even if the peer went on renewing for it.
    pub(crate) fn extend(&self, deadline_us: u64) -> bool {
        if self.is_lost() {
            return false;
        }
        self.deadline_us.fetch_max(deadline_us, Ordering::AcqRel);
        true
    }

    fn why_lost(&self) -> Option<&str> {
        self.why_lost.get().map(String::as_str)
    }

    /// The right is gone, and the peer says why, unless it says nothing.
    pub(crate) fn end_because(&self, why: String) {
        if !why.is_empty() && !self.is_lost() {
            let _ = self.why_lost.set(why);
        }
        self.end();
    }

    /// The right is gone.
    pub(crate) fn end(&self) {
        if !self.lost.swap(true, Ordering::AcqRel) {
            self.changed.notify_waiters();
        }
    }

    async fn lost(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.is_lost() {
                return;
            }
            let left = clock::until(self.deadline_us().saturating_sub(self.margin_us));
            let _ = tokio::time::timeout(left.min(LOOK_AT_LEAST_EVERY), changed).await;
        }
    }
}
