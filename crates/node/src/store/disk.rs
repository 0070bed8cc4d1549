//! The two files: a database, and the journal of what is not in it yet.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::journal::Journal;
use super::{Batch, Charter, OpenError, Records, WriteError};

/// The names of the files in the data directory.
pub(super) const DATABASE: &str = "votes.redb";
pub(super) const JOURNAL: &str = "votes.journal";

/// What redb may keep in memory: the hot end of a few ten thousand replicas.
const CACHE_BYTES: usize = 8 << 20;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const DURABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("durable");
const CHARTER: &str = "charter";
/// The generation of the journal that holds what happened since.
const GENERATION: &str = "generation";

/// An open store.
#[derive(Debug)]
pub(super) struct Disk {
    database: Database,
    journal: Journal,
    generation: u64,
    /// What the journal says: the last word on each key.
    unsaved: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Disk {
    /// Opens the files of a directory, and says what is in them; `None` if they were not there before.
    pub(super) fn open(
        dir: &Path, charter: &Charter,
    ) -> Result<(Self, Option<Records>), OpenError> {
        let broken = |error: &dyn std::fmt::Display| OpenError::broken(dir, error);
        let foreign = |reason| OpenError::Foreign { path: dir.display().to_string(), reason };
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(dir.join(DATABASE));
        let database = database.map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(dir.display().to_string()),
            redb::DatabaseError::UpgradeRequired(_) => {
                foreign("its file is of another version of the database".into())
            }
            other => broken(&other),
        })?;
        let path = dir.join(JOURNAL);
        let Some(found) = read(&database).map_err(|error| broken(&error))? else {
            // First the journal: a database that knows of one has one.
            let journal = Journal::create(&path, 0).map_err(|error| broken(&error))?;
            establish(&database, charter).map_err(|error| broken(&error))?;
            let unsaved = BTreeMap::new();
            return Ok((Self { database, journal, generation: 0, unsaved }, None));
        };
        let theirs: Charter = postcard::from_bytes(&found.charter)
            .map_err(|_| broken(&"its charter cannot be understood"))?;
        if let Some(reason) = theirs.objection(charter) {
            return Err(foreign(reason));
        }
        let generation = found.generation.ok_or_else(|| broken(&"it lacks a generation"))?;
        let (journal, batches) = Journal::open(&path, generation).map_err(|error| {
            let missing = error.kind() == io::ErrorKind::NotFound;
            if missing { broken(&format!("its {JOURNAL} is missing")) } else { broken(&error) }
        })?;
        let mut disk = Self { database, journal, generation, unsaved: BTreeMap::new() };
        batches.iter().for_each(|batch| disk.remember(batch));
        let mut records = found.records;
        for (key, value) in &disk.unsaved {
            match value {
                Some(value) => records.insert(key.clone(), value.clone()),
                None => records.remove(key),
            };
        }
        disk.save().map_err(|error| broken(&error))?;
        Ok((disk, Some(records.into_iter().collect())))
    }

    /// Writes a batch, which is on disk when this returns.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), WriteError> {
        let fits = self.journal.append(batch).map_err(|error| WriteError(error.to_string()))?;
        self.remember(batch);
        if fits { Ok(()) } else { self.tidy() }
    }

    /// Brings the database up to date.
    pub(super) fn tidy(&mut self) -> Result<(), WriteError> {
        self.save().map_err(|error| WriteError(error.to_string()))
    }

    fn remember(&mut self, batch: &Batch) {
        for (key, value) in batch.records() {
            self.unsaved.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
    }

    fn save(&mut self) -> Result<(), redb::Error> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        let generation = self.generation + 1;
        let transaction = self.database.begin_write()?;
        {
            let mut table = transaction.open_table(DURABLE)?;
            for (key, value) in &self.unsaved {
                match value {
                    Some(value) => table.insert(key.as_slice(), value.as_slice())?,
                    None => table.remove(key.as_slice())?,
                };
            }
            transaction
                .open_table(META)?
                .insert(GENERATION, generation.to_le_bytes().as_slice())?;
        }
        transaction.commit()?;
        self.journal.restart(generation);
        self.generation = generation;
        self.unsaved.clear();
        Ok(())
    }
}

/// What a database says.
struct Found {
    charter: Vec<u8>,
    generation: Option<u64>,
    records: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// `None` if there is no charter in it.
fn read(database: &Database) -> Result<Option<Found>, redb::Error> {
    let transaction = database.begin_read()?;
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(charter) = meta.get(CHARTER)?.map(|value| value.value().to_vec()) else {
        return Ok(None);
    };
    let generation = meta.get(GENERATION)?;
    let generation =
        generation.and_then(|value| value.value().try_into().ok().map(u64::from_le_bytes));
    let mut records = BTreeMap::new();
    for record in transaction.open_table(DURABLE)?.iter()? {
        let (key, value) = record?;
        records.insert(key.value().to_vec(), value.value().to_vec());
    }
    Ok(Some(Found { charter, generation, records }))
}

fn establish(database: &Database, charter: &Charter) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let bytes = postcard::to_stdvec(charter).unwrap_or_default();
        let mut meta = transaction.open_table(META)?;
        meta.insert(CHARTER, bytes.as_slice())?;
        meta.insert(GENERATION, 0u64.to_le_bytes().as_slice())?;
        transaction.open_table(DURABLE)?;
    }
    transaction.commit()?;
    Ok(())
}
