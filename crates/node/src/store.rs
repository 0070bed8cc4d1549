//! The durable store: what a peer must not forget, in three files of its data directory.
//!
//! A thread of its own takes whole batches of records, writes each to the journal and says when it is on
//! disk. A crash in the middle of one leaves the state before it. When the journal is full, what it says
//! goes to the database in one transaction, and the journal begins anew.
//!
//! Whoever opens it gets back all that anybody ever heard of, or is told that it is lost: a disk may lose
//! what was written, but not unnoticed.

mod charter;
mod database;
mod directory;
mod disk;
mod entry;
mod journal;
mod medium;
mod trouble;

use std::collections::BTreeMap;
use std::path::Path;
use std::task::{Context, Poll};

use serde::Serialize;
use tokio::sync::mpsc;

pub(crate) use charter::Charter;
pub(crate) use directory::Directory;
use disk::Disk;

/// The names of the files in the data directory.
const DATABASE: &str = "votes.redb";
const JOURNAL: &str = "votes.journal";
const HEADER: &str = "votes.header";
const FILES: [&str; 3] = [DATABASE, JOURNAL, HEADER];
/// How long the journal is.
const JOURNAL_LEN: usize = 2 << 20;

/// Why the store cannot be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the directory.
    #[error("the data directory {0} is in use by another process; give each peer one of its own")]
    InUse(String),
    /// The directory is of another swarm, or of another version.
    #[error("the data directory {path} cannot be used: {reason}")]
    Foreign {
        /// Where.
        path: String,
        /// Why.
        reason: String,
    },
    /// The file cannot be read or written.
    #[error("the data directory {path} cannot be read or written: {reason}")]
    Broken {
        /// Where.
        path: String,
        /// Why.
        reason: String,
    },
}

impl OpenError {
    fn broken(dir: &Path, reason: &dyn std::fmt::Display) -> Self {
        Self::Broken { path: dir.display().to_string(), reason: reason.to_string() }
    }
    fn foreign(dir: &Path, reason: String) -> Self {
        Self::Foreign { path: dir.display().to_string(), reason }
    }
}

/// A write failed. Nobody may count on anything from here on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WriteError(pub(crate) String);

/// The records of a store: keys and values as they were written.
pub(crate) type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// What a store knows of former lives.
#[derive(Debug)]
pub(crate) enum Memory {
    /// There was none, or none that wrote anything.
    First,
    /// All that they wrote.
    Kept {
        /// The last word on each key.
        records: Records,
        /// How many records were ever written to this directory, also those that have been overwritten
        /// since: it grows with every batch, and is as durable.
        writes: u64,
    },
    /// What they wrote is lost, or some of it: why, in words.
    Lost(String),
}

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    batches: std::sync::mpsc::Sender<Batch>,
    written: mpsc::UnboundedReceiver<Result<(), WriteError>>,
}

impl Store {
    /// Opens the store of a directory, and says what is in it. `lived`: there was a life before this one, so
    /// that files that are not there are missing. What is left of a damaged store is moved aside, and the
    /// store begun anew.
    pub(crate) fn open(
        directory: Directory, charter: &Charter, lived: bool,
    ) -> Result<(Self, Memory), OpenError> {
        let dir = directory.path().to_owned();
        let (mut disk, memory) = Disk::open(directory, charter, lived, JOURNAL_LEN)?;
        let store = Self::run(move |batch| match batch {
            Some(batch) => disk.write(&batch),
            None => disk.tidy(),
        });
        let store = store.map_err(|error| OpenError::broken(&dir, &error))?;
        Ok((store, memory))
    }

    /// Removes what a first life wrote that was cut short before anybody could hear of it.
    pub(crate) fn discard(directory: &Directory) -> Result<(), OpenError> {
        for file in FILES {
            match std::fs::remove_file(directory.path().join(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(OpenError::broken(directory.path(), &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether there is anything of one in a directory.
    pub(crate) fn exists(dir: &Path) -> bool {
        FILES.iter().any(|file| dir.join(file).exists())
    }

    /// `write` gets every batch, and at the end nothing.
    fn run(
        mut write: impl FnMut(Option<Batch>) -> Result<(), WriteError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (batches, todo) = std::sync::mpsc::channel::<Batch>();
        let (done, written) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("store".into()).spawn(move || {
            for batch in todo {
                let result = write(Some(batch));
                let failed = result.is_err();
                if done.send(result).is_err() || failed {
                    return;
                }
            }
            // If it cannot be tidied up, the next life finds it as it is.
            let _ = write(None);
        })?;
        Ok(Self { batches, written })
    }

    /// Begins to write. The driver begins the next only when this one is written.
    pub(crate) fn write(&mut self, batch: Batch) {
        // If the thread has ended, `poll_written` says so.
        let _ = self.batches.send(batch);
    }

    /// Whether the write under way is on disk.
    pub(crate) fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        self.written.poll_recv(cx).map(|result| {
            result.unwrap_or_else(|| Err(WriteError("the thread that writes has ended".into())))
        })
    }

    /// Ends when all that was given is on disk and the file is closed.
    pub(crate) async fn close(self) {
        let Self { batches, mut written } = self;
        drop(batches);
        while written.recv().await.is_some() {}
    }
}

/// Records on the way to disk: one after the other in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Where each key and each value ends; no value: the key is to be forgotten.
    ends: Vec<(usize, Option<usize>)>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many records were pushed.
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds a record.
    pub(crate) fn push(
        &mut self, key: &impl Serialize, value: Option<&impl Serialize>,
    ) -> Result<(), postcard::Error> {
        self.bytes = postcard::to_extend(key, std::mem::take(&mut self.bytes))?;
        let key_end = self.bytes.len();
        if let Some(value) = value {
            self.bytes = postcard::to_extend(value, std::mem::take(&mut self.bytes))?;
        }
        self.ends.push((key_end, value.map(|_| self.bytes.len())));
        Ok(())
    }

    /// The last word on each key, in the order of the keys.
    fn records(&self) -> BTreeMap<&[u8], Option<&[u8]>> {
        let mut begin = 0;
        let mut records = BTreeMap::new();
        for &(key_end, value_end) in &self.ends {
            let value = value_end.map(|end| &self.bytes[key_end..end]);
            records.insert(&self.bytes[begin..key_end], value);
            begin = value_end.unwrap_or(key_end);
        }
        records
    }
}

#[cfg(test)]
pub(crate) mod tests;
