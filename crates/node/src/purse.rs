//! What the sessions of one user have in common: how much of a peer they may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sigmalock_core::Refusal;

/// How much that is.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Calls under way, locks they hold included.
    pub calls: usize,
    /// Replies that were not taken; a session that lets one more come is ended.
    pub unread: usize,
    /// What was asked and the driver has not looked at yet; more waits.
    pub asked: usize,
}

impl Allowance {
    /// Nothing but the bounds of each session, and of the peer.
    pub const ALL: Self = Self { calls: usize::MAX, unread: usize::MAX, asked: usize::MAX };
}

/// How much of it is taken.
#[derive(Debug)]
pub struct Purse {
    allowance: Allowance,
    calls: AtomicUsize,
    unread: AtomicUsize,
    asked: AtomicUsize,
}

impl Purse {
    /// Nothing yet.
    #[must_use]
    pub fn new(allowance: Allowance) -> Self {
        let (calls, unread, asked) = Default::default();
        Self { allowance, calls, unread, asked }
    }

    /// Counts a call, if there may be another.
    pub(crate) fn begin_call(&self) -> Result<(), Refusal> {
        let limit = self.allowance.calls;
        if self.calls.fetch_add(1, Relaxed) < limit {
            return Ok(());
        }
        self.end_call();
        Err(Refusal::TooManyRequests { limit })
    }

    pub(crate) fn end_call(&self) {
        self.calls.fetch_sub(1, Relaxed);
    }

    /// Counts a reply. False if there may be no other.
    pub(crate) fn begin_reply(&self) -> bool {
        if self.unread.fetch_add(1, Relaxed) < self.allowance.unread {
            return true;
        }
        self.end_replies(1);
        false
    }

    pub(crate) fn end_replies(&self, count: usize) {
        self.unread.fetch_sub(count, Relaxed);
    }

    pub(crate) fn may_ask(&self) -> bool {
        self.asked.load(Relaxed) < self.allowance.asked
    }
}

/// Something was asked, and has not been looked at as long as this lives.
#[derive(Debug)]
pub(crate) struct Asked(Arc<Purse>);

impl Asked {
    pub(crate) fn new(purse: &Arc<Purse>) -> Self {
        purse.asked.fetch_add(1, Relaxed);
        Self(Arc::clone(purse))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.asked.fetch_sub(1, Relaxed);
    }
}
