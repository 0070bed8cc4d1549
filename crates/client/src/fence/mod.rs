//! The resource's side: refusing holders that overslept.
//!
//! A holder may be paused, by the system or by the network, past the end of its right, and not know it
//! yet. What it then does must not count. Every grant of a lock has a token, and later grants have
//! higher ones; so the resource keeps, for each name, the highest token that it has seen and who showed
//! it, and refuses lower ones, and equal ones of another holder.
//!
//! ```
//! # use sigmalock::fence::{Fence, FenceError};
//! let fence = Fence::in_memory();
//! assert!(fence.check("/db", 7, "alice").is_ok());
//! assert!(fence.check("/db", 8, "bob").is_ok());
//! // Alice overslept.
//! assert!(matches!(fence.check("/db", 7, "alice"), Err(FenceError::Stale { .. })));
//! ```
//!
//! Readers ([`crate::Lock::shared`]) have tokens, too: higher than those of all writers before, lower than
//! those of all after, among each other in any order. So a reader is refused once a later writer has been
//! here, and a writer once a later reader has: what that one read must not change under it.
//!
//! ```
//! # use sigmalock::fence::{Fence, FenceError};
//! let fence = Fence::in_memory();
//! assert!(fence.check("/db", 7, "alice").is_ok());
//! assert!(fence.check_shared("/db", 9).is_ok() && fence.check_shared("/db", 8).is_ok());
//! assert!(matches!(fence.check("/db", 7, "alice"), Err(FenceError::Stale { .. })));
//! assert!(fence.check("/db", 10, "bob").is_ok());
//! assert!(matches!(fence.check_shared("/db", 9), Err(FenceError::Stale { .. })));
//! ```
//!
//! A swarm may run a lock protocol that gives no tokens (`sigmalock status` says which it runs). Its guards show 0, and
//! every fence refuses them.
//!
//! The check and what it protects must be one step: between them, a newer holder could come. Use
//! [`Fence::admit`] where the resource is in reach of this process, and a transaction or a conditional write
//! where it is not; `docs/fencing.md` has recipes for PostgreSQL, files and object stores.

mod file;
mod memory;

use std::borrow::Cow;

use sigmalock_core::Name;

pub use file::FileStore;
pub use memory::MemoryStore;

/// So many names are remembered by the stores of this module. They cannot forget: a forgotten name would
/// let everybody in again.
pub const MARKS_MAX: usize = 1 << 16;

/// The highest token that a writer showed for a name, and who that was; and the highest of readers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    /// The writer's token; 0: there was none.
    pub token: u64,
    /// Who showed it: [`crate::Guard::holder_id`].
    pub holder: String,
    /// The highest token of a reader; 0: there was none.
    pub read: u64,
}

/// Why somebody is not let in. Nothing was done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// A later holder has been here. The one who asks has lost its lock: it must stop.
    #[error("the token {shown} is stale: {seen} has been seen here")]
    Stale {
        /// The token that was shown.
        shown: u64,
        /// The highest that was seen.
        seen: u64,
    },
    /// Another holder has shown the same token. The one who asks must stop.
    #[error("the token {token} belongs to another holder")]
    Foreign {
        /// The token.
        token: u64,
    },
    /// No token was shown: the lock protocol of the swarm gives none, so its locks cannot be fenced.
    #[error(
        "no token was shown: the lock protocol of this swarm gives none, and without one nobody can be told from who overslept"
    )]
    NoToken,
    /// More names than are remembered. Use one fence per resource, or one name for more of it.
    #[error("this fence remembers {MARKS_MAX} names, and is full")]
    Full,
    /// The store failed; whether the token was noted is not known. Try again.
    #[error("the fence's store failed: {0}")]
    Store(#[from] std::io::Error),
}

/// Where the marks are kept. An implementation must keep them for as long as the resource lives.
pub trait FenceStore {
    /// Gives `judge` the mark of a name, which has its leading slash if it is that of a lock. If that returns a mark, keeps it, durably, and then calls `action`.
    /// From before the first to after the last, nobody else does the same for that name.
    ///
    /// # Errors
    /// What `judge` says, or that the store failed; `action` was not called then.
    fn update<T>(
        &self, name: &str, judge: impl FnOnce(Option<&Mark>) -> Result<Mark, FenceError>,
        action: impl FnOnce() -> T,
    ) -> Result<T, FenceError>;
}

/// Stands before a resource.
#[derive(Debug, Default)]
pub struct Fence<S> {
    store: S,
}

impl Fence<MemoryStore> {
    /// A fence that forgets everything when the process ends: for a resource that does so, too.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(MemoryStore::default())
    }
}

impl Fence<FileStore> {
    /// A fence whose marks are in a file, for all processes of this machine.
    #[must_use]
    pub fn in_file(path: impl Into<std::path::PathBuf>) -> Self {
        Self::new(FileStore::new(path))
    }
}

impl<S: FenceStore> Fence<S> {
    /// A fence with its marks there.
    pub const fn new(store: S) -> Self {
        Self { store }
    }

    /// Whether this holder, with this token, is still the latest; notes it. Only for resources that cannot
    /// be changed while this is asked, see the module.
    ///
    /// # Errors
    /// See [`FenceError`].
    pub fn check(&self, name: &str, token: u64, holder: &str) -> Result<(), FenceError> {
        self.admit(name, token, holder, || ())
    }

    /// Does something to the resource if this holder, with this token, is still the latest. Nobody else is
    /// admitted meanwhile, so a holder that is paused in the middle does no harm.
    ///
    /// # Errors
    /// See [`FenceError`]; nothing was done then.
    pub fn admit<T>(
        &self, name: &str, token: u64, holder: &str, action: impl FnOnce() -> T,
    ) -> Result<T, FenceError> {
        self.store.update(&canonical(name), |seen| judge(seen, token, holder), action)
    }

    /// [`Fence::check`] for a reader.
    ///
    /// # Errors
    /// See [`FenceError`].
    pub fn check_shared(&self, name: &str, token: u64) -> Result<(), FenceError> {
        self.admit_shared(name, token, || ())
    }

    /// [`Fence::admit`] for a reader: does something if no later writer has been here.
    ///
    /// # Errors
    /// See [`FenceError`]; nothing was done then.
    pub fn admit_shared<T>(
        &self, name: &str, token: u64, action: impl FnOnce() -> T,
    ) -> Result<T, FenceError> {
        self.store.update(&canonical(name), |seen| judge_shared(seen, token), action)
    }
}

/// A lock is fenced under one name, however that is written. What is no name of a lock is left as it is.
fn canonical(name: &str) -> Cow<'_, str> {
    Name::new(name).map_or(Cow::Borrowed(name), |name| Cow::Owned(name.as_str().to_owned()))
}

/// The rule for writers: after all others.
fn judge(seen: Option<&Mark>, token: u64, holder: &str) -> Result<Mark, FenceError> {
    if token == 0 {
        return Err(FenceError::NoToken);
    }
    let Some(seen) = seen else {
        return Ok(Mark { token, holder: holder.to_owned(), read: 0 });
    };
    let highest = seen.token.max(seen.read);
    if token < highest {
        Err(FenceError::Stale { shown: token, seen: highest })
    } else if token == seen.read || (token == seen.token && holder != seen.holder) {
        Err(FenceError::Foreign { token })
    } else {
        Ok(Mark { token, holder: holder.to_owned(), read: seen.read })
    }
}

/// The rule for readers: after all writers.
fn judge_shared(seen: Option<&Mark>, token: u64) -> Result<Mark, FenceError> {
    let seen = seen.cloned().unwrap_or_default();
    match token {
        0 => Err(FenceError::NoToken),
        _ if token < seen.token => Err(FenceError::Stale { shown: token, seen: seen.token }),
        _ if token == seen.token => Err(FenceError::Foreign { token }),
        _ => Ok(Mark { read: seen.read.max(token), ..seen }),
    }
}
