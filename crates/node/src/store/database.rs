//! The database: all records as they were when the journal last began anew.
//!
//! The library below finds torn transactions, not flipped bits in pages that it does not read. So the
//! database has a digest of all its records, kept up to date in the same transactions, and a seal over that
//! and everything else it says of itself; both are looked at whenever it is opened, when all of it is read
//! anyway.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Charter;
use super::charter::{FORMAT, other_format};
use super::entry::{JournalId, Link};
use super::trouble::Trouble;

/// What redb may keep in memory: the hot end of a few ten thousand replicas.
const CACHE_BYTES: usize = 8 << 20;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const DURABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("durable");
const CHARTER: &str = "charter";
const STATE: &str = "state";
const SEAL: &str = "seal";
/// The last version without a seal.
const UNSEALED: u16 = 3;

/// Records.
pub(super) type ByKey = BTreeMap<Vec<u8>, Vec<u8>>;
/// Changes of records; nothing: the key is to be forgotten.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// What a database says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Of the journal that has what happened since.
    pub(super) id: JournalId,
    /// The generation of it that has that, and what the first entry of that names as the one before it.
    pub(super) generation: u64,
    pub(super) link: Link,
    /// How many records were ever written, also those that have been overwritten since.
    pub(super) writes: u64,
    /// Whether it was begun by a peer that had lost its memory.
    pub(super) after_loss: bool,
    /// How many records there are.
    records: u64,
    digest: Digest,
}

impl State {
    /// Of a database with nothing in it.
    pub(super) fn new(id: JournalId, after_loss: bool) -> Self {
        let (link, digest) = (Link::default(), Digest::default());
        Self { id, generation: 0, link, writes: 0, after_loss, records: 0, digest }
    }
}

/// Of records in any order: the sum, bit by bit, of the digest of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Digest([u8; 32]);

impl Digest {
    /// Adds a record, or takes it out again.
    fn toggle(&mut self, key: &[u8], value: &[u8]) {
        let length = (key.len() as u64).to_le_bytes();
        let digest = Sha256::new().chain_update(length).chain_update(key).chain_update(value);
        self.0.iter_mut().zip(digest.finalize()).for_each(|(sum, byte)| *sum ^= byte);
    }
}

/// An open database.
#[derive(Debug)]
pub(super) struct Votes {
    database: Database,
    charter: Vec<u8>,
    state: State,
}

impl Votes {
    /// A new one.
    pub(super) fn create(
        path: &Path, charter: &Charter, state: State,
    ) -> Result<Self, redb::Error> {
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
        let charter = postcard::to_stdvec(charter).map_err(io::Error::other)?;
        let mut votes = Self { database, charter, state };
        votes.commit(&Changes::new(), state)?;
        Ok(votes)
    }

    /// One that is there, if it is of this charter, and its records.
    pub(super) fn open(path: &Path, wanted: &Charter) -> Result<(Self, ByKey), Trouble> {
        // The library asserts much of what a file of its own must be, and damaged ones are not.
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let mut database = Database::builder().set_cache_size(CACHE_BYTES).open(path)?;
            // Whether what it keeps for itself had to be repaired does not matter; the rest we see ourselves.
            database.check_integrity()?;
            let found = Found::read(&database)?;
            Ok::<_, redb::Error>((database, found))
        }));
        let gave_up = || Trouble::Damaged(format!("{} is damaged", super::DATABASE));
        let (database, found) = opened.map_err(|_| gave_up())?.map_err(trouble)?;
        let (charter, state, records) = found.check()?;
        let theirs: Charter = postcard::from_bytes(&charter).map_err(|_| gave_up())?;
        match theirs.objection(wanted) {
            Some(objection) => Err(Trouble::Foreign(objection)),
            None => Ok((Self { database, charter, state }, records)),
        }
    }

    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    /// Takes in what a journal says, up to and including the entry of that link. What comes then is in the
    /// next generation.
    pub(super) fn save(
        &mut self, changes: &Changes, link: Link, writes: u64,
    ) -> Result<(), redb::Error> {
        let generation = self.state.generation + 1;
        self.commit(changes, State { generation, link, writes, ..self.state })
    }

    fn commit(&mut self, changes: &Changes, mut state: State) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut table = transaction.open_table(DURABLE)?;
            for (key, value) in changes {
                let before = match value {
                    Some(value) => table.insert(key.as_slice(), value.as_slice())?,
                    None => table.remove(key.as_slice())?,
                };
                if let Some(before) = before {
                    state.digest.toggle(key, before.value());
                    state.records = state.records.wrapping_sub(1);
                }
                if let Some(value) = value {
                    state.digest.toggle(key, value);
                    state.records = state.records.wrapping_add(1);
                }
            }
            let bytes = postcard::to_stdvec(&state).map_err(io::Error::other)?;
            let mut meta = transaction.open_table(META)?;
            meta.insert(CHARTER, self.charter.as_slice())?;
            meta.insert(STATE, bytes.as_slice())?;
            meta.insert(SEAL, seal(&self.charter, &bytes).as_slice())?;
        }
        transaction.commit()?;
        self.state = state;
        Ok(())
    }
}

/// Of all that a database says beside its records.
fn seal(charter: &[u8], state: &[u8]) -> Vec<u8> {
    let length = (charter.len() as u64).to_le_bytes();
    let digest = Sha256::new().chain_update(length).chain_update(charter).chain_update(state);
    digest.finalize().to_vec()
}

/// What a database says, believed or not.
struct Found {
    charter: Option<Vec<u8>>,
    state: Option<Vec<u8>>,
    seal: Option<Vec<u8>>,
    records: ByKey,
}

impl Found {
    fn read(database: &Database) -> Result<Self, redb::Error> {
        let transaction = database.begin_read()?;
        let meta = transaction.open_table(META)?;
        let get = |what| meta.get(what).map(|found| found.map(|value| value.value().to_vec()));
        let (charter, state, seal) = (get(CHARTER)?, get(STATE)?, get(SEAL)?);
        let mut records = BTreeMap::new();
        for record in transaction.open_table(DURABLE)?.iter()? {
            let (key, value) = record?;
            records.insert(key.value().to_vec(), value.value().to_vec());
        }
        Ok(Self { charter, state, seal, records })
    }

    fn check(self) -> Result<(Vec<u8>, State, ByKey), Trouble> {
        let damaged = |what: &str| Trouble::Damaged(format!("{} {what}", super::DATABASE));
        let charter = self.charter.ok_or_else(|| damaged("does not say whose it is"))?;
        let format = postcard::take_from_bytes::<u16>(&charter).map_or(0, |(format, _)| format);
        let (Some(bytes), Some(found)) = (self.state, self.seal) else {
            let old = (1..=UNSEALED).contains(&format);
            let foreign = || Trouble::Foreign(other_format(format));
            return Err(if old { foreign() } else { damaged("has lost its seal") });
        };
        if found != seal(&charter, &bytes) {
            return Err(damaged("does not say of itself what was written"));
        } else if format != FORMAT {
            return Err(Trouble::Foreign(other_format(format)));
        }
        let state: State = postcard::from_bytes(&bytes)
            .map_err(|_| damaged("does not say of itself what was written"))?;
        let mut digest = Digest::default();
        self.records.iter().for_each(|(key, value)| digest.toggle(key, value));
        if (self.records.len() as u64, digest) != (state.records, state.digest) {
            return Err(damaged("does not have the records that were written"));
        }
        Ok((charter, state, self.records))
    }
}

/// What the library found. Where the system said no, nothing is known of the file.
fn trouble(error: redb::Error) -> Trouble {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error {
        redb::Error::DatabaseAlreadyOpen => Trouble::InUse,
        redb::Error::Io(error)
            if !matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof) =>
        {
            Trouble::Io(error)
        }
        error => Trouble::Damaged(format!("{} is damaged: {error}", super::DATABASE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::Folder;

    /// Has somebody else write to a database, as the library has it, and says what is thought of it then.
    fn after(change: impl FnOnce(&redb::WriteTransaction)) -> Result<usize, String> {
        let folder = Folder::new();
        let path = folder.0.join(super::super::DATABASE);
        let charter = crate::store::tests::agreed();
        let mut votes = Votes::create(&path, &charter, State::new([1; 16], false)).unwrap();
        let records = [(b"a", b"1"), (b"b", b"2")];
        let records = records.map(|(key, value)| (key.to_vec(), Some(value.to_vec())));
        votes.save(&records.into(), [2; 8], 2).unwrap();
        drop(votes);
        let database = Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        change(&transaction);
        transaction.commit().unwrap();
        drop(database);
        match Votes::open(&path, &charter) {
            Ok((_, records)) => Ok(records.len()),
            Err(Trouble::Damaged(why)) => Err(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_record_that_is_not_what_was_written_is_noticed() {
        type Change = fn(&mut redb::Table<'_, &[u8], &[u8]>);
        let records = |change: Change| {
            after(|transaction| change(&mut transaction.open_table(DURABLE).unwrap()))
        };
        assert_eq!(records(|_| {}), Ok(2));
        let changes: [Change; 4] = [
            |table| drop(table.insert(b"a".as_slice(), b"2".as_slice()).unwrap()),
            |table| drop(table.insert(b"c".as_slice(), b"3".as_slice()).unwrap()),
            |table| drop(table.remove(b"a".as_slice()).unwrap()),
            |table| {
                table.insert(b"a".as_slice(), b"2".as_slice()).unwrap();
                table.insert(b"b".as_slice(), b"1".as_slice()).unwrap();
            },
        ];
        for change in changes {
            assert!(records(change).unwrap_err().contains("does not have the records"));
        }
    }

    #[test]
    fn so_is_anything_that_it_says_of_itself() {
        for what in [CHARTER, STATE, SEAL] {
            let why = after(|transaction| {
                let mut meta = transaction.open_table(META).unwrap();
                let mut bytes = meta.get(what).unwrap().unwrap().value().to_vec();
                bytes[0] ^= 1;
                meta.insert(what, bytes.as_slice()).unwrap();
            });
            assert!(why.unwrap_err().contains("does not say of itself what was written"));
            let why = after(|transaction| {
                transaction.open_table(META).unwrap().remove(what).unwrap();
            });
            assert!(why.is_err(), "{what}");
        }
    }
}
