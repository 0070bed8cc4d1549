//! The journal: batches one after the other in a file that is overwritten again and again.
//!
//! ```text
//!   votes.header    which journal this is, and how many entries of it were heard of
//!   votes.journal   ┌ entry ┐┌ entry ┐┌ entry ┐  old entries, or zeros
//! ```
//!
//! The journal has its full length from the beginning, so that nothing but the data has to reach the disk; and
//! beginning anew costs little: entries of another generation do not count.
//!
//! An entry is on disk before the header counts it, and the header counts it before anybody hears of it. The
//! header has no sync of its own while the journal goes on. So after the death of the process it counts all
//! that anybody heard of; after a power cut it may lag, and never leads. Fewer sound entries than it counts, or
//! one behind a gap, is therefore damage; what else is not sound behind the last entry is a write that was cut
//! short, which nobody heard of.
//!
//! The header is a file of its own because whatever becomes of one block of the disk, header and entries are
//! not both to go with it, and because a second write to the file that is synced makes every sync dearer by a
//! fifth.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use super::charter::{FORMAT, other_format};
use super::entry::{Header, JournalId, Link, Place, encoded_len};
use super::medium::Medium;
use super::trouble::Trouble;
use super::{Batch, HEADER, JOURNAL};

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: Medium,
    header_file: Medium,
    len: usize,
    header: Header,
    /// Where the next entry begins.
    at: usize,
    buffer: Vec<u8>,
}

impl Journal {
    /// A new one of that length, on disk when this returns, but perhaps not its names in the directory.
    pub(super) fn create(dir: &Path, len: usize, id: JournalId) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(true);
        let file = Medium::new(options.open(dir.join(JOURNAL))?, JOURNAL);
        let header_file = Medium::new(options.open(dir.join(HEADER))?, HEADER);
        let link = Link::default();
        let header =
            Header { format: FORMAT, id, generation: 0, begin: link, entries: 0, end: link };
        file.write_at(&vec![0; len], 0)?;
        header_file.write_at(&header.to_bytes(), 0)?;
        file.sync()?;
        header_file.sync()?;
        Ok(Self { file, header_file, len, header, at: 0, buffer: Vec::new() })
    }

    /// One that is there, and all that it says.
    pub(super) fn open(dir: &Path, len: usize) -> Result<(Self, Vec<Batch>), Trouble> {
        let damaged = |what: &str| Err(Trouble::Damaged(format!("{JOURNAL} {what}")));
        let (mut header, header_file) = match open(dir, HEADER)? {
            (bytes, file) if bytes.len() == Header::LEN => (Header::from_bytes(&bytes), file),
            (_, file) => (None, file),
        };
        let Some(header) = &mut header else {
            return Err(Trouble::Damaged(format!("{HEADER} is damaged")));
        };
        if header.format != FORMAT {
            return Err(Trouble::Foreign(other_format(header.format)));
        }
        let (bytes, file) = open(dir, JOURNAL)?;
        if bytes.len() != len {
            return damaged("is not as long as it was");
        }
        let mut place = Place { id: header.id, generation: header.generation, at: 0 };
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
        } else if counted != Some(header.end) {
            return damaged("does not have the entries that its header counts");
        } else if place.any_from_here(&bytes) {
            return damaged("has a gap between its entries");
        } else if place.begun_anew().any_from_here(&bytes) {
            return damaged("has entries of which its header does not know");
        }
        (header.entries, header.end) = (count, end);
        let (header, at) = (*header, place.at);
        Ok((Self { file, header_file, len, header, at, buffer: Vec::new() }, batches))
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
        self.file.write_at(&self.buffer, self.at)?;
        self.file.sync()?;
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
        self.at = 0;
        self.write_header()?;
        self.header_file.sync()
    }

    fn write_header(&self) -> io::Result<()> {
        self.header_file.write_at(&self.header.to_bytes(), 0)
    }
}

/// A file that must be there, and what is in it.
fn open(dir: &Path, name: &'static str) -> Result<(Vec<u8>, Medium), Trouble> {
    let path = dir.join(name);
    match OpenOptions::new().read(true).write(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Trouble::Damaged(format!("{name} is missing")))
        }
        file => Ok((std::fs::read(path)?, Medium::new(file?, name))),
    }
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
        let folder = Folder::new();
        for header in [false, true] {
            let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
            let mut journal = Journal::create(&folder.0, LEN, [1; 16]).unwrap();
            let (file, name) = if header {
                (&mut journal.header_file, HEADER)
            } else {
                (&mut journal.file, JOURNAL)
            };
            *file = Medium::new(full, name);
            let error = journal.append(&batch()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    fn says(dir: &Path) -> Result<usize, String> {
        match Journal::open(dir, LEN) {
            Ok((_, batches)) => Ok(batches.len()),
            Err(Trouble::Damaged(why)) => Err(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_says_what_was_appended_since_it_began_anew() {
        let folder = Folder::new();
        let mut journal = Journal::create(&folder.0, LEN, [1; 16]).unwrap();
        assert_eq!(says(&folder.0), Ok(0));
        assert!(journal.append(&batch()).unwrap() && journal.append(&batch()).unwrap());
        assert_eq!(says(&folder.0), Ok(2));
        journal.restart(1).unwrap();
        assert_eq!(says(&folder.0), Ok(0));
        assert!(journal.append(&batch()).unwrap());
        assert_eq!(says(&folder.0), Ok(1));
    }

    /// What becomes of a journal if these bytes are written over one of its files at that place.
    fn after(dir: &Path, file: &str, at: usize, bytes: &[u8]) -> Result<usize, String> {
        let path = dir.join(file);
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(&path, damaged).unwrap();
        let says = says(dir);
        std::fs::write(&path, whole).unwrap();
        says
    }

    /// Headers of moments before may still be on disk, if the power is cut.
    #[test]
    fn a_header_may_lag_and_never_leads() {
        let folder = Folder::new();
        let dir = &folder.0;
        let mut journal = Journal::create(dir, LEN, [1; 16]).unwrap();
        let header = || std::fs::read(dir.join(HEADER)).unwrap();
        let mut headers = vec![header()];
        for _ in 0..4 {
            assert!(journal.append(&batch()).unwrap());
            headers.push(header());
        }
        for lagging in &headers {
            assert_eq!(after(dir, HEADER, 0, lagging), Ok(4));
        }
        // The last entry torn: with a header that does not count it, it never was.
        let last = journal.at - 1;
        assert_eq!(
            after(dir, JOURNAL, last, &[0xff]),
            Err("votes.journal has 3 of the 4 entries that were written".into())
        );
        std::fs::write(dir.join(HEADER), &headers[3]).unwrap();
        assert_eq!(after(dir, JOURNAL, last, &[0xff]), Ok(3));
        // One behind a gap: somebody heard of what was in the gap.
        std::fs::write(dir.join(HEADER), &headers[2]).unwrap();
        let third = 2 * encoded_len(&batch());
        assert!(after(dir, JOURNAL, third, &[0xff]).unwrap_err().contains("gap"));
        // A header that was not written when the journal began anew, though the disk said so.
        let mut journal = Journal::open(dir, LEN).unwrap().0;
        let old = headers.pop().unwrap();
        journal.restart(1).unwrap();
        assert_eq!(after(dir, HEADER, 0, &old), Ok(4), "a crash at this moment may leave that");
        assert!(journal.append(&batch()).unwrap());
        assert!(after(dir, HEADER, 0, &old).is_err());
        journal.restart(2).unwrap();
        let empty = header();
        journal.restart(3).unwrap();
        assert_eq!(after(dir, HEADER, 0, &empty), Ok(0));
        assert!(journal.append(&batch()).unwrap());
        assert!(after(dir, HEADER, 0, &empty).unwrap_err().contains("does not know"));
    }
}
