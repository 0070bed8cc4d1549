//! The journal: batches one after the other in a file that is overwritten again and again.
//!
//! ```text
//!   ┌ generation ─ length ─ checksum ─ batch ┐┌ generation ─ … ┐  old entries, or zeros
//! ```
//!
//! An entry counts if its generation is the present one, its checksum fits, and all before it count. So
//! beginning anew costs nothing, and an entry that was cut short by a crash is none. The file has its full
//! length from the beginning, so that nothing but the data has to reach the disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::Batch;

/// How long it is.
pub(super) const BYTES: usize = 2 << 20;

const HEADER: usize = 8 + 4 + 8;
/// In place of where a value ends, if there is none.
const NO_VALUE: u32 = u32::MAX;

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    generation: u64,
    /// Where the next entry begins.
    at: usize,
    buffer: Vec<u8>,
}

impl Journal {
    /// A new one, on disk with its name when this returns.
    pub(super) fn create(path: &Path, generation: u64) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(&vec![0; BYTES], 0)?;
        file.sync_all()?;
        if let Some(dir) = path.parent() {
            File::open(dir)?.sync_all()?;
        }
        Ok(Self { file, generation, at: 0, buffer: Vec::new() })
    }

    /// One that is there, and what it says.
    pub(super) fn open(path: &Path, generation: u64) -> io::Result<(Self, Vec<Batch>)> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let bytes = std::fs::read(path)?;
        let mut at = 0;
        let mut batches = Vec::new();
        while let Some((batch, length)) = entry(&bytes, at, generation) {
            batches.push(batch);
            at += length;
        }
        Ok((Self { file, generation, at, buffer: Vec::new() }, batches))
    }

    /// Adds a batch, which is on disk when this returns. False if there is no room for it.
    pub(super) fn append(&mut self, batch: &Batch) -> io::Result<bool> {
        let length = HEADER + encoded_len(batch);
        if length > BYTES - self.at {
            return Ok(false);
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(&self.generation.to_le_bytes());
        self.buffer.extend_from_slice(&(length as u32).to_le_bytes());
        self.buffer.extend_from_slice(&[0; 8]);
        encode(batch, &mut self.buffer);
        let checksum = checksum(&self.buffer, self.at);
        self.buffer[12..HEADER].copy_from_slice(&checksum);
        self.file.write_all_at(&self.buffer, self.at as u64)?;
        self.file.sync_data()?;
        self.at += length;
        Ok(true)
    }

    /// From now on nothing of what it says counts.
    pub(super) fn restart(&mut self, generation: u64) {
        (self.generation, self.at) = (generation, 0);
    }
}

/// The entry at a place, and its length.
fn entry(bytes: &[u8], at: usize, generation: u64) -> Option<(Batch, usize)> {
    let rest = bytes.get(at..)?;
    let (header, _) = rest.split_at_checked(HEADER)?;
    let length = u32::from_le_bytes(header[8..12].try_into().ok()?) as usize;
    let entry = rest.get(..length).filter(|entry| entry.len() >= HEADER)?;
    let sound = header[..8] == generation.to_le_bytes() && header[12..] == checksum(entry, at);
    sound.then(|| decode(&entry[HEADER..])).flatten().map(|batch| (batch, length))
}

/// Of everything in an entry but the checksum itself, and of where it is.
fn checksum(entry: &[u8], at: usize) -> [u8; 8] {
    let digest = Sha256::new()
        .chain_update((at as u64).to_le_bytes())
        .chain_update(&entry[..12])
        .chain_update(&entry[HEADER..])
        .finalize();
    let mut checksum = [0; 8];
    checksum.copy_from_slice(&digest[..8]);
    checksum
}

fn encoded_len(batch: &Batch) -> usize {
    4 + batch.ends.len() * 8 + batch.bytes.len()
}

fn encode(batch: &Batch, out: &mut Vec<u8>) {
    out.extend_from_slice(&(batch.ends.len() as u32).to_le_bytes());
    for (key_end, value_end) in &batch.ends {
        out.extend_from_slice(&(*key_end as u32).to_le_bytes());
        out.extend_from_slice(&value_end.map_or(NO_VALUE, |end| end as u32).to_le_bytes());
    }
    out.extend_from_slice(&batch.bytes);
}

fn decode(entry: &[u8]) -> Option<Batch> {
    let number = |at: usize| Some(u32::from_le_bytes(entry.get(at..at + 4)?.try_into().ok()?));
    let count = number(0)? as usize;
    let bytes = entry.get(4 + count.checked_mul(8)?..)?.to_vec();
    let (mut ends, mut end) = (Vec::new(), 0);
    for index in 0..count {
        let key_end = number(4 + index * 8)? as usize;
        let value_end = Some(number(8 + index * 8)?).filter(|end| *end != NO_VALUE);
        let value_end = value_end.map(|end| end as usize);
        let next = value_end.unwrap_or(key_end);
        if key_end < end || next < key_end || next > bytes.len() {
            return None;
        }
        end = next;
        ends.push((key_end, value_end));
    }
    Some(Batch { bytes, ends })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::Folder;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_an_entry_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..220,
        ) {
            prop_assert!(entry(&bytes, at, 0).is_none());
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_disk_that_is_full_is_an_error() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut journal = Journal { file, generation: 0, at: 0, buffer: Vec::new() };
        let error = journal.append(&Batch::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn an_entry_counts_only_where_it_was_written_and_in_its_generation() {
        let folder = Folder::new();
        let path = folder.0.join("journal");
        let mut batch = Batch::default();
        batch.push(&1u32, Some(&"a")).unwrap();
        let mut journal = Journal::create(&path, 7).unwrap();
        assert!(journal.append(&batch).unwrap() && journal.append(&batch).unwrap());
        assert_eq!(Journal::open(&path, 7).unwrap().1.len(), 2);
        assert_eq!(Journal::open(&path, 8).unwrap().1.len(), 0);
        journal.restart(8);
        assert!(journal.append(&batch).unwrap());
        assert_eq!(Journal::open(&path, 8).unwrap().1.len(), 1);
        let bytes = std::fs::read(&path).unwrap();
        assert!(entry(&bytes[1..], 0, 8).is_none());
        assert!(entry(&[&[0], &bytes[..]].concat(), 1, 8).is_none(), "it belongs elsewhere");
    }
}
