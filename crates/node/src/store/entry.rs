//! How a journal looks in bytes: a header, and entries of which each names the one before it.
//!
//! ```text
//!   header   magic ─ format ─ id ─ generation ─ begin ─ entries ─ end ─ checksum
//!   entry    tag ─ generation ─ length ─ previous ─ checksum ─ batch
//! ```
//!
//! Checksums cover the journal's id and the place, so that an entry counts nowhere but where it was written.
//! They are there for disks that err, not for people who lie: whoever may write the file may forge it.

use sha2::{Digest as _, Sha256};

use super::Batch;

/// Which journal: drawn at random when it is made.
pub(super) type JournalId = [u8; 16];
/// The checksum of an entry, which the next one repeats: so none can be left out.
pub(super) type Link = [u8; 8];

const MAGIC: [u8; 8] = *b"sl-votes";
/// In place of where a value ends, if there is none.
const NO_VALUE: u32 = u32::MAX;
/// Of an entry, before its batch.
const ENTRY_HEADER: usize = 8 + 8 + 4 + 8 + 8;
/// Where in that the checksum is.
const CHECKSUM: std::ops::Range<usize> = 28..ENTRY_HEADER;

/// What a journal says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// The version of what is in the directory.
    pub(super) format: u16,
    pub(super) id: JournalId,
    /// How often it has begun anew.
    pub(super) generation: u64,
    /// What the first entry of this generation names as the one before it.
    pub(super) begin: Link,
    /// So many entries were on disk when this was written.
    pub(super) entries: u64,
    /// The last of them.
    pub(super) end: Link,
}

impl Header {
    /// Less than a sector, so that it is written whole or not at all.
    pub(super) const LEN: usize = 8 + 2 + 16 + 8 + 8 + 8 + 8 + 8;

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.format.to_le_bytes());
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.begin);
        bytes.extend_from_slice(&self.entries.to_le_bytes());
        bytes.extend_from_slice(&self.end);
        let checksum = first_bytes(Sha256::digest(&bytes));
        bytes.extend_from_slice(&checksum);
        bytes
    }

    /// `None` if these are not the bytes of one.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.get(..Self::LEN)?;
        let magic: [u8; 8] = take(&mut rest)?;
        let header = Self {
            format: u16::from_le_bytes(take(&mut rest)?),
            id: take(&mut rest)?,
            generation: u64::from_le_bytes(take(&mut rest)?),
            begin: take(&mut rest)?,
            entries: u64::from_le_bytes(take(&mut rest)?),
            end: take(&mut rest)?,
        };
        let sound = rest == first_bytes(Sha256::digest(&bytes[..Self::LEN - 8]));
        (magic == MAGIC && sound).then_some(header)
    }
}

/// A place for an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) id: JournalId,
    pub(super) generation: u64,
    /// Where in the file.
    pub(super) at: usize,
}

impl Place {
    /// The first place of the next generation.
    pub(super) const fn begun_anew(self) -> Self {
        Self { generation: self.generation + 1, at: 0, ..self }
    }

    /// What entries of a journal begin with, of any generation.
    fn tag(&self) -> &[u8] {
        &self.id[..8]
    }

    /// The bytes of an entry, and its link.
    pub(super) fn write(&self, previous: Link, batch: &Batch, entry: &mut Vec<u8>) -> Link {
        entry.clear();
        entry.extend_from_slice(self.tag());
        entry.extend_from_slice(&self.generation.to_le_bytes());
        entry.extend_from_slice(&(encoded_len(batch) as u32).to_le_bytes());
        entry.extend_from_slice(&previous);
        entry.extend_from_slice(&[0; 8]);
        encode(batch, entry);
        let link = self.checksum(entry);
        entry[CHECKSUM].copy_from_slice(&link);
        link
    }

    /// The entry that was written here, if it is sound.
    pub(super) fn read(&self, file: &[u8]) -> Option<Entry> {
        let rest = file.get(self.at..)?;
        let mut header = rest.get(..ENTRY_HEADER)?;
        let tag: [u8; 8] = take(&mut header)?;
        let generation = u64::from_le_bytes(take(&mut header)?);
        let len = u32::from_le_bytes(take(&mut header)?) as usize;
        let (previous, link): (Link, Link) = (take(&mut header)?, take(&mut header)?);
        if tag != self.tag() || generation != self.generation || len < ENTRY_HEADER {
            return None;
        }
        let entry = rest.get(..len).filter(|entry| link == self.checksum(entry))?;
        Some(Entry { batch: decode(&entry[ENTRY_HEADER..])?, len, previous, link })
    }

    /// Whether a sound entry begins anywhere from here on.
    pub(super) fn any_from_here(&self, file: &[u8]) -> bool {
        let rest = file.get(self.at..).unwrap_or_default();
        let mut places = rest.windows(8).enumerate().filter(|(_, bytes)| *bytes == self.tag());
        places.any(|(offset, _)| Self { at: self.at + offset, ..*self }.read(file).is_some())
    }

    /// Of everything in an entry but the checksum itself, and of where it is.
    fn checksum(&self, entry: &[u8]) -> Link {
        let digest = Sha256::new()
            .chain_update(self.id)
            .chain_update((self.at as u64).to_le_bytes())
            .chain_update(&entry[..CHECKSUM.start])
            .chain_update(&entry[CHECKSUM.end..]);
        first_bytes(digest.finalize())
    }
}

/// An entry that was read.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) batch: Batch,
    pub(super) len: usize,
    pub(super) previous: Link,
    pub(super) link: Link,
}

/// How long the entry of a batch is.
pub(super) fn encoded_len(batch: &Batch) -> usize {
    ENTRY_HEADER + 4 + batch.ends.len() * 8 + batch.bytes.len()
}

fn encode(batch: &Batch, out: &mut Vec<u8>) {
    out.extend_from_slice(&(batch.ends.len() as u32).to_le_bytes());
    for (key_end, value_end) in &batch.ends {
        out.extend_from_slice(&(*key_end as u32).to_le_bytes());
        out.extend_from_slice(&value_end.map_or(NO_VALUE, |end| end as u32).to_le_bytes());
    }
    out.extend_from_slice(&batch.bytes);
}

fn decode(bytes: &[u8]) -> Option<Batch> {
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let count = number(0)? as usize;
    let body = bytes.get(4 + count.checked_mul(8)?..)?.to_vec();
    let (mut ends, mut end) = (Vec::new(), 0);
    for index in 0..count {
        let key_end = number(4 + index * 8)? as usize;
        let value_end = Some(number(8 + index * 8)?).filter(|end| *end != NO_VALUE);
        let value_end = value_end.map(|end| end as usize);
        let next = value_end.unwrap_or(key_end);
        if key_end < end || next < key_end || next > body.len() {
            return None;
        }
        end = next;
        ends.push((key_end, value_end));
    }
    Some(Batch { bytes: body, ends })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn first_bytes(digest: impl AsRef<[u8]>) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERE: Place = Place { id: [7; 16], generation: 3, at: 100 };

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_none_and_an_entry_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..220,
        ) {
            prop_assert!(Header::from_bytes(&bytes).is_none());
            let place = Place { at, ..HERE };
            prop_assert!(place.read(&bytes).is_none() && !place.any_from_here(&bytes));
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_header_reads_as_it_was_written_and_with_any_bit_flipped_not_at_all() {
        let header = Header {
            format: 4,
            id: [1; 16],
            generation: 2,
            begin: [3; 8],
            entries: 4,
            end: [5; 8],
        };
        let bytes = header.to_bytes();
        assert_eq!((bytes.len(), Header::from_bytes(&bytes)), (Header::LEN, Some(header)));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::from_bytes(&bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn an_entry_counts_only_where_it_was_written_and_only_whole() {
        let mut batch = Batch::default();
        batch.push(&1u32, Some(&"a")).unwrap();
        batch.push(&2u32, None::<&u8>).unwrap();
        let mut entry = Vec::new();
        let link = HERE.write([9; 8], &batch, &mut entry);
        assert_eq!(entry.len(), encoded_len(&batch));
        let file = |entry: &[u8]| [&[0; 100], entry, &[0; 50]].concat();
        let read = HERE.read(&file(&entry)).unwrap();
        assert_eq!((read.link, read.previous, read.len), (link, [9; 8], entry.len()));
        assert_eq!(read.batch.records(), batch.records());
        assert!(Place { at: 20, ..HERE }.any_from_here(&file(&entry)));
        assert!(!Place { at: 101, ..HERE }.any_from_here(&file(&entry)));
        for elsewhere in [
            Place { generation: 4, ..HERE },
            Place { id: [8; 16], ..HERE },
            Place { id: [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0], ..HERE },
        ] {
            assert!(elsewhere.read(&file(&entry)).is_none());
        }
        let moved = [&[0; 101], &entry[..], &[0; 50]].concat();
        assert!(Place { at: 101, ..HERE }.read(&moved).is_none());
        for bit in 0..entry.len() * 8 {
            let mut entry = entry.clone();
            entry[bit / 8] ^= 1 << (bit % 8);
            assert!(HERE.read(&file(&entry)).is_none(), "bit {bit}");
        }
    }
}
