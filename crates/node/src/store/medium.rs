//! A file whose writes are on disk when it has been synced, and until then perhaps, in part and in any order.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// An open file of the data directory.
#[derive(Debug)]
pub(super) struct Medium {
    file: File,
    name: &'static str,
}

impl Medium {
    pub(super) const fn new(file: File, name: &'static str) -> Self {
        Self { file, name }
    }

    pub(super) fn write_at(&self, bytes: &[u8], at: usize) -> io::Result<()> {
        #[cfg(test)]
        super::tests::power::note_write(self.name, at, bytes);
        self.file.write_all_at(bytes, at as u64).map_err(|error| self.failed(&error))
    }

    /// What was written is on disk when this returns.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| self.failed(&error))?;
        #[cfg(test)]
        super::tests::power::note_sync(self.name);
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.name))
    }
}
