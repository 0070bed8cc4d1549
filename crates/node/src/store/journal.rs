//! The journal: batches one after the other in a file that is overwritten again and again.
//!
//! ```text
//!   ┌ header ┐┌ entry ┐┌ entry ┐┌ entry ┐  old entries, or zeros
//! ```
//!
//! The file has its full length from the beginning, so that nothing but the data has to reach the disk; and
//! beginning anew costs little: entries of another generation do not count.
//!
//! An entry is on disk before the header counts it, and the header counts it before anybody hears of it. The
//! header goes to disk with every few entries only, since each of its writes would cost as much as the
//! entry's. So after the death of the process it counts all that anybody heard of; after a power cut it may
//! lag by [`LAG_MAX`] entries, and never leads. Fewer sound entries than it counts, or one behind a gap, is
//! therefore damage; what else is not sound behind the last entry is a write that was cut short, which nobody
//! heard of.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::Batch;
use super::charter::{FORMAT, other_format};
use super::entry::{Header, JournalId, Link, Place, encoded_len};
use super::trouble::Trouble;

/// Where the first entry begins: whatever becomes of one block of the disk, header and entries do not both
/// go with it.
pub(super) const ENTRIES: usize = 4_096;
/// With so many entries the header goes to disk.
const HEADER_EVERY: u64 = 16;
/// So far may a header lag behind the entries: those since it went to disk, as it was before the first of
/// them, and one that nobody heard of.
pub(super) const LAG_MAX: u64 = HEADER_EVERY + 1;

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    len: usize,
    header: Header,
    /// Where the next entry begins.
    at: usize,
    buffer: Vec<u8>,
}

impl Journal {
    /// A new one of that length, on disk with its name when this returns.
    pub(super) fn create(path: &Path, len: usize, id: JournalId) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        let link = Link::default();
        let header =
            Header { format: FORMAT, id, generation: 0, begin: link, entries: 0, end: link };
        file.write_all_at(&vec![0; len], 0)?;
        file.write_all_at(&header.to_bytes(), 0)?;
        file.sync_all()?;
        if let Some(dir) = path.parent() {
            File::open(dir)?.sync_all()?;
        }
        Ok(Self { file, len, header, at: ENTRIES, buffer: Vec::new() })
    }

    /// One that is there, and all that it says.
    pub(super) fn open(path: &Path, len: usize) -> Result<(Self, Vec<Batch>), Trouble> {
        let damaged = |what: &str| Err(Trouble::Damaged(format!("{} {what}", super::JOURNAL)));
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return damaged("is missing"),
            file => file?,
        };
        let bytes = std::fs::read(path)?;
        let Some(mut header) = Header::from_bytes(&bytes) else {
            return damaged("does not begin with its header");
        };
        if header.format != FORMAT {
            return Err(Trouble::Foreign(other_format(header.format)));
        }
        if bytes.len() != len {
            return damaged("is not as long as it was");
        }
        let mut place = Place { id: header.id, generation: header.generation, at: ENTRIES };
        let (mut count, mut end) = (0, header.begin);
        let mut batches = Vec::new();
        // The header's last entry, as the entries have it.
        let mut counted = (header.entries == 0).then_some(end);
        while let Some(entry) = place.read(&bytes).filter(|entry| entry.previous == end) {
            (count, end) = (count + 1, entry.link);
            if count == header.entries {
                counted = Some(end);
            }
            batches.push(entry.batch);
            place.at += entry.len;
        }
        if count < header.entries {
            let entries = header.entries;
            return damaged(&format!("has {count} of the {entries} entries that were written"));
        } else if counted != Some(header.end) || count > header.entries + LAG_MAX {
            return damaged("does not have the entries that its header counts");
        } else if place.any_from_here(&bytes) {
            return damaged("has a gap between its entries");
        } else if place.begun_anew(ENTRIES).any_from_here(&bytes) {
            return damaged("has entries of which its header does not know");
        }
        (header.entries, header.end) = (count, end);
        Ok((Self { file, len, header, at: place.at, buffer: Vec::new() }, batches))
    }

    /// What it says of itself.
    pub(super) const fn header(&self) -> &Header {
        &self.header
    }

    /// Adds a batch, which is on disk and counted when this returns. False if there is no room for it.
    pub(super) fn append(&mut self, batch: &Batch) -> io::Result<bool> {
        if encoded_len(batch) > self.len - self.at {
            return Ok(false);
        }
        let Header { id, generation, end, .. } = self.header;
        let link = Place { id, generation, at: self.at }.write(end, batch, &mut self.buffer);
        if self.header.entries.is_multiple_of(HEADER_EVERY) {
            self.file.write_all_at(&self.buffer, self.at as u64)?;
            self.file.sync_data()?;
        } else {
            write_through(&self.file, &self.buffer, self.at)?;
        }
        self.at += self.buffer.len();
        (self.header.entries, self.header.end) = (self.header.entries + 1, link);
        self.write_header()?;
        Ok(true)
    }

    /// From now on nothing of what it says counts. On disk before any entry is overwritten, so that a header
    /// is never of another generation than the entries that it counts.
    pub(super) fn restart(&mut self, generation: u64) -> io::Result<()> {
        let end = self.header.end;
        self.header = Header { generation, begin: end, entries: 0, end, ..self.header };
        self.at = ENTRIES;
        self.write_header()?;
        self.file.sync_data()
    }

    fn write_header(&self) -> io::Result<()> {
        self.file.write_all_at(&self.header.to_bytes(), 0)
    }
}

/// Writes these bytes, which are on disk when this returns, and nothing else of the file has to be.
#[cfg(target_os = "linux")]
fn write_through(file: &File, mut bytes: &[u8], mut at: usize) -> io::Result<()> {
    use rustix::io::{Errno, ReadWriteFlags, pwritev2};
    while !bytes.is_empty() {
        match pwritev2(file, &[io::IoSlice::new(bytes)], at as u64, ReadWriteFlags::DSYNC) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => (bytes, at) = (&bytes[written..], at + written),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writes these bytes, which are on disk when this returns.
#[cfg(not(target_os = "linux"))]
fn write_through(file: &File, bytes: &[u8], at: usize) -> io::Result<()> {
    file.write_all_at(bytes, at as u64)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::Folder;

    const LEN: usize = 64 << 10;

    fn batch() -> Batch {
        let mut batch = Batch::default();
        batch.push(&1u32, Some(&"a")).unwrap();
        batch
    }

    #[test]
    fn a_disk_that_is_full_is_an_error() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let folder = Folder::new();
        let journal = Journal::create(&folder.0.join("journal"), LEN, [1; 16]).unwrap();
        let error = Journal { file, ..journal }.append(&batch()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn it_says_what_was_appended_since_it_began_anew() {
        let folder = Folder::new();
        let path = folder.0.join("journal");
        let mut journal = Journal::create(&path, LEN, [1; 16]).unwrap();
        let says = || Journal::open(&path, LEN).unwrap().1.len();
        assert_eq!(says(), 0);
        assert!(journal.append(&batch()).unwrap() && journal.append(&batch()).unwrap());
        assert_eq!(says(), 2);
        journal.restart(1).unwrap();
        assert_eq!(says(), 0);
        assert!(journal.append(&batch()).unwrap());
        assert_eq!(says(), 1);
    }

    /// What becomes of a journal if these bytes are written over it at that place.
    fn after(path: &Path, at: usize, bytes: &[u8]) -> Result<usize, String> {
        let whole = std::fs::read(path).unwrap();
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(path, damaged).unwrap();
        let opened = Journal::open(path, LEN);
        std::fs::write(path, whole).unwrap();
        match opened {
            Ok((_, batches)) => Ok(batches.len()),
            Err(Trouble::Damaged(why)) => Err(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// Where the headers of moments before may still be on disk, if the power is cut.
    #[test]
    fn a_header_lags_by_so_many_entries_at_most_and_never_leads() {
        let folder = Folder::new();
        let path = folder.0.join("journal");
        let mut journal = Journal::create(&path, LEN, [1; 16]).unwrap();
        let header = || std::fs::read(&path).unwrap()[..Header::LEN].to_vec();
        let mut headers = vec![header()];
        let lag_max = LAG_MAX as usize;
        let count = lag_max + 2;
        for _ in 0..count {
            assert!(journal.append(&batch()).unwrap());
            headers.push(header());
        }
        for lag in 0..=lag_max {
            assert_eq!(after(&path, 0, &headers[count - lag]), Ok(count));
        }
        assert!(after(&path, 0, &headers[1]).unwrap_err().contains("header counts"));
        // The last entry torn: with a header that does not count it, it never was.
        let last = journal.at - 1;
        assert_eq!(
            after(&path, last, &[0xff]),
            Err(format!(
                "votes.journal has {} of the {count} entries that were written",
                count - 1
            ))
        );
        let torn = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&headers[count - 1], &torn[Header::LEN..]].concat()).unwrap();
        assert_eq!(after(&path, last, &[0xff]), Ok(count - 1));
        // A header that was not written when the journal began anew, though the disk said so.
        std::fs::write(&path, &torn).unwrap();
        let mut journal = Journal::open(&path, LEN).unwrap().0;
        let old = headers.pop().unwrap();
        journal.restart(1).unwrap();
        assert_eq!(after(&path, 0, &old), Ok(count), "a crash at this moment may leave that");
        assert!(journal.append(&batch()).unwrap());
        assert!(after(&path, 0, &old).is_err());
        journal.restart(2).unwrap();
        let empty = header();
        journal.restart(3).unwrap();
        assert_eq!(after(&path, 0, &empty), Ok(0));
        assert!(journal.append(&batch()).unwrap());
        assert!(after(&path, 0, &empty).unwrap_err().contains("does not know"));
        // One behind a gap: somebody heard of what was in the gap.
        std::fs::write(&path, [&headers[2], &torn[Header::LEN..]].concat()).unwrap();
        let third = ENTRIES + 2 * encoded_len(&batch());
        assert!(after(&path, third, &[0xff]).unwrap_err().contains("gap"));
    }
}
