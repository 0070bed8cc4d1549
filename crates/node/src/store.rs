//! The durable store: what a peer must not forget, in one file of its data directory.
//!
//! A thread of its own takes whole batches of records, writes each as one transaction and says when it
//! is on disk. A crash in the middle of one leaves the state before it.

use std::collections::BTreeMap;
use std::path::Path;
use std::task::{Context, Poll};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::parts::Quorum;
use tokio::sync::mpsc;

/// The name of the file in the data directory.
pub(crate) const FILE: &str = "votes.redb";

/// The version of what is in it.
const FORMAT: u16 = 2;

/// What redb may keep in memory: the hot end of a few ten thousand replicas.
const CACHE_BYTES: usize = 8 << 20;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const DURABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("durable");
const CHARTER: &str = "charter";

/// What a data directory belongs to. Votes given under one charter mean nothing under another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charter {
    format: u16,
    pub(crate) peer: PeerId,
    pub(crate) membership: String,
    pub(crate) n: u64,
    pub(crate) m: u64,
    pub(crate) lease_max: Span,
    pub(crate) tokens_per_grant: u64,
}

impl Charter {
    pub(crate) fn open(
        peer: PeerId, quorum: Quorum, lease_max: Span, tokens_per_grant: u64,
    ) -> Self {
        let (n, m) = (quorum.n() as u64, quorum.m() as u64);
        let membership = "open".into();
        Self { format: FORMAT, peer, membership, n, m, lease_max, tokens_per_grant }
    }

    /// Why a directory with this charter cannot be used under that one.
    fn objection(&self, wanted: &Self) -> Option<String> {
        let differ = |what, has: &dyn core::fmt::Display, wants: &dyn core::fmt::Display| {
            Some(format!("it was written with {what} {has}, and this peer is to run with {wants}"))
        };
        if self.format != wanted.format {
            differ("format", &self.format, &wanted.format)
        } else if self.membership != wanted.membership {
            differ("membership", &self.membership, &wanted.membership)
        } else if (self.n, self.m) != (wanted.n, wanted.m) {
            let show = |c: &Self| format!("{} of {}", c.m, c.n);
            differ("a quorum of", &show(self), &show(wanted))
        } else if self.lease_max != wanted.lease_max {
            differ("a longest lease of", &self.lease_max, &wanted.lease_max)
        } else if self.tokens_per_grant != wanted.tokens_per_grant {
            let show = |c: &Self| format!("{} in a row", c.tokens_per_grant);
            differ("local hand-overs of", &show(self), &show(wanted))
        } else if self.peer != wanted.peer {
            Some("it belongs to another identity than the one in this directory".into())
        } else {
            None
        }
    }
}

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

/// A write failed. Nobody may count on anything from here on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WriteError(pub(crate) String);

/// The records of a store: keys and values as they were written.
pub(crate) type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    batches: std::sync::mpsc::Sender<Batch>,
    written: mpsc::UnboundedReceiver<Result<(), WriteError>>,
}

impl Store {
    /// Opens the store of a directory, and says what is in it; `None` if it was not there before.
    pub(crate) fn open(
        dir: &Path, charter: &Charter,
    ) -> Result<(Self, Option<Records>), OpenError> {
        let path = dir.join(FILE);
        let shown = dir.display().to_string();
        let broken = |reason: String| OpenError::Broken { path: shown.clone(), reason };
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(&path);
        let database = database.map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(shown.clone()),
            redb::DatabaseError::UpgradeRequired(_) => OpenError::Foreign {
                path: shown.clone(),
                reason: "its file is of another version of the database".into(),
            },
            other => broken(other.to_string()),
        })?;
        let records = match read(&database).map_err(|error| broken(error.to_string()))? {
            Some((found, records)) => {
                let found: Charter = postcard::from_bytes(&found)
                    .map_err(|_| broken("its charter cannot be understood".into()))?;
                if let Some(reason) = found.objection(charter) {
                    return Err(OpenError::Foreign { path: shown, reason });
                }
                Some(records)
            }
            None => {
                establish(&database, charter).map_err(|error| broken(error.to_string()))?;
                None
            }
        };
        let store = Self::run(database).map_err(|error| broken(error.to_string()))?;
        Ok((store, records))
    }

    fn run(database: Database) -> std::io::Result<Self> {
        let (batches, todo) = std::sync::mpsc::channel::<Batch>();
        let (done, written) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("store".into()).spawn(move || {
            for batch in todo {
                let result = batch.write(&database).map_err(|error| WriteError(error.to_string()));
                let failed = result.is_err();
                if done.send(result).is_err() || failed {
                    return;
                }
            }
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

    fn write(&self, database: &Database) -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        {
            let mut table = transaction.open_table(DURABLE)?;
            for (key, value) in self.records() {
                match value {
                    Some(value) => table.insert(key, value)?,
                    None => table.remove(key)?,
                };
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

/// The charter and the records, if there is a charter.
fn read(database: &Database) -> Result<Option<(Vec<u8>, Records)>, redb::Error> {
    let transaction = database.begin_read()?;
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(charter) = meta.get(CHARTER)?.map(|value| value.value().to_vec()) else {
        return Ok(None);
    };
    let mut records = Vec::new();
    for record in transaction.open_table(DURABLE)?.iter()? {
        let (key, value) = record?;
        records.push((key.value().to_vec(), value.value().to_vec()));
    }
    Ok(Some((charter, records)))
}

fn establish(database: &Database, charter: &Charter) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let bytes = postcard::to_stdvec(charter).unwrap_or_default();
        transaction.open_table(META)?.insert(CHARTER, bytes.as_slice())?;
        transaction.open_table(DURABLE)?;
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
