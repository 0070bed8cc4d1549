//! The data directory, which one process has at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::OpenError;

/// A data directory, held for as long as it is in use, whatever becomes of the files in it.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    file: File,
    /// Nobody else can have it.
    pub(crate) is_ours: bool,
}

impl Directory {
    /// Takes hold of one that exists. Where directories cannot be locked, the lock of the database must do.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
        let file = File::open(path).map_err(|error| OpenError::broken(path, &error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.display().to_string())),
            locked => Ok(Self { path: path.to_owned(), file, is_ours: locked.is_ok() }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The names in it are on disk when this returns.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl Drop for Directory {
    /// Closing the file does not suffice while a process that is being started has a copy of it.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}
