//! A database, and the journal of what is not in it yet.
//!
//! ```text
//!   votes.redb      id, generation g, link ──────────┐
//!   votes.header    id, generation g, begin ◄────────┤   what has happened since is in votes.journal
//!                   id, generation g − 1, end ◄──────┘   or, after a crash, what the database has taken in
//! ```
//!
//! Each knows the other by these, so that neither is taken together with one of another directory or of
//! another moment. What cannot be seen: both of the same older moment, and a journal with its header that is
//! older than itself but not than the database. Whoever starts has the database written, so such a journal was
//! copied during the very same life.

use std::fs;
use std::io;
use std::path::Path;

use super::database::{ByKey, Changes, State, Votes};
use super::journal::Journal;
use super::trouble::Trouble;
use super::{
    Batch, Charter, DATABASE, Directory, FILES, HEADER, JOURNAL, Memory, OpenError, WriteError,
};

/// What damaged files are called from then on. Those of the time before are overwritten.
const ASIDE: &str = "damaged";

/// An open store.
#[derive(Debug)]
pub(super) struct Disk {
    votes: Votes,
    journal: Journal,
    /// Records ever written.
    writes: u64,
    /// What the journal says: the last word on each key.
    unsaved: Changes,
    /// Last: the next may come when all else is closed.
    _directory: Directory,
}

impl Disk {
    /// Opens the files of a directory, and says what is in them. `lived`: there was a life before this one,
    /// so that files that are not there are missing.
    pub(super) fn open(
        directory: Directory, charter: &Charter, lived: bool, journal_len: usize,
    ) -> Result<(Self, Memory), OpenError> {
        let dir = directory.path().to_owned();
        let broken = |error: &dyn std::fmt::Display| OpenError::broken(&dir, error);
        let exists = |file: &str| dir.join(file).try_exists().map_err(|error| broken(&error));
        let (votes, journal) = (exists(DATABASE)?, exists(JOURNAL)? || exists(HEADER)?);
        if !lived && !votes && !journal {
            let disk = Self::begin(directory, charter, journal_len, false);
            return Ok((disk.map_err(|error| broken(&error))?, Memory::First));
        }
        let why = match Files::read(&dir, charter, votes, journal_len) {
            Ok(files) => return files.recall(directory).map_err(|error| broken(&error)),
            Err(Trouble::Damaged(why)) => why,
            Err(Trouble::InUse) => return Err(OpenError::InUse(dir.display().to_string())),
            Err(Trouble::Foreign(reason)) => return Err(OpenError::foreign(&dir, reason)),
            Err(Trouble::Io(error)) => return Err(broken(&error)),
        };
        let aside = move_aside(&directory).map_err(|error| broken(&error))?;
        let disk = Self::begin(directory, charter, journal_len, true);
        Ok((disk.map_err(|error| broken(&error))?, Memory::Lost(format!("{why}{aside}"))))
    }

    /// Makes the files.
    fn begin(
        directory: Directory, charter: &Charter, journal_len: usize, after_loss: bool,
    ) -> Result<Self, redb::Error> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(io::Error::other)?;
        // First the journal: a database that knows of one has one.
        let journal = Journal::create(directory.path(), journal_len, id)?;
        let state = State::new(id, after_loss);
        let votes = Votes::create(&directory.path().join(DATABASE), charter, state)?;
        directory.sync()?;
        let unsaved = Changes::new();
        Ok(Self { votes, journal, writes: 0, unsaved, _directory: directory })
    }

    /// Writes a batch, which is on disk when this returns.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), WriteError> {
        let fits = self.journal.append(batch).map_err(|error| WriteError(error.to_string()))?;
        self.remember(batch);
        if fits { Ok(()) } else { self.tidy() }
    }

    /// Brings the database up to date.
    pub(super) fn tidy(&mut self) -> Result<(), WriteError> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        self.save().map_err(|error| WriteError(error.to_string()))
    }

    fn remember(&mut self, batch: &Batch) {
        self.writes += batch.len() as u64;
        for (key, value) in batch.records() {
            self.unsaved.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
    }

    fn save(&mut self) -> Result<(), redb::Error> {
        self.votes.save(&self.unsaved, self.journal.header().end, self.writes)?;
        self.journal.restart(self.votes.state().generation)?;
        self.unsaved.clear();
        Ok(())
    }
}

/// The files, each sound and of the others.
struct Files {
    votes: Votes,
    records: ByKey,
    journal: Journal,
    /// What is not in the database yet.
    batches: Vec<Batch>,
}

impl Files {
    fn read(
        dir: &Path, charter: &Charter, has_votes: bool, journal_len: usize,
    ) -> Result<Self, Trouble> {
        let damaged = |what: String| Err(Trouble::Damaged(what));
        let journal = match Journal::open(dir, journal_len) {
            // Whatever the library says of a database of another version.
            Err(Trouble::Foreign(reason)) => return Err(Trouble::Foreign(reason)),
            journal => journal,
        };
        if !has_votes {
            return damaged(format!("{DATABASE} is missing"));
        }
        let (votes, records) = Votes::open(&dir.join(DATABASE), charter)?;
        let (journal, batches) = journal?;
        let (header, state) = (journal.header(), votes.state());
        if header.id != state.id {
            return damaged(format!("{JOURNAL} is not the one that belongs to {DATABASE}"));
        }
        let since = (header.generation, header.begin) == (state.generation, state.link);
        let taken_in = (header.generation + 1, header.end) == (state.generation, state.link);
        if !since && !taken_in {
            return damaged(format!("{JOURNAL} and {DATABASE} are not of the same time"));
        }
        let batches = if since { batches } else { Vec::new() };
        Ok(Self { votes, records, journal, batches })
    }

    /// If the last life ended before the journal could begin anew, it does so now: this one may end soon, too, and the
    /// database is not to be two ahead of it.
    fn catch_up(&mut self) -> io::Result<()> {
        let generation = self.votes.state().generation;
        if self.journal.header().generation < generation {
            self.journal.restart(generation)?;
        }
        Ok(())
    }

    /// What they say, and the database up to date.
    fn recall(mut self, directory: Directory) -> Result<(Disk, Memory), redb::Error> {
        self.catch_up()?;
        let Self { votes, mut records, journal, batches } = self;
        let State { writes, after_loss, .. } = *votes.state();
        let unsaved = Changes::new();
        let mut disk = Disk { votes, journal, writes, unsaved, _directory: directory };
        batches.iter().for_each(|batch| disk.remember(batch));
        for (key, value) in &disk.unsaved {
            match value {
                Some(value) => records.insert(key.clone(), value.clone()),
                None => records.remove(key),
            };
        }
        // Also if there is nothing to save, and twice: one generation behind is what a crash explains, so from
        // here on a journal of a former life is noticed.
        disk.save()?;
        disk.save()?;
        if disk.writes == 0 {
            // Whoever has written nothing has told nobody anything.
            let why = "a former life of this peer lost it, and ended before it wrote anything";
            let memory = if after_loss { Memory::Lost(why.into()) } else { Memory::First };
            return Ok((disk, memory));
        }
        let (records, writes) = (records.into_iter().collect(), disk.writes);
        Ok((disk, Memory::Kept { records, writes }))
    }
}

/// Gives what is left of the files other names, and says which, as the end of a sentence.
fn move_aside(directory: &Directory) -> io::Result<String> {
    let (dir, mut moved) = (directory.path(), Vec::new());
    for file in FILES {
        let aside = format!("{file}.{ASIDE}");
        match fs::rename(dir.join(file), dir.join(&aside)) {
            Ok(()) => moved.push(aside),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    directory.sync()?;
    Ok(match moved.as_slice() {
        [] => String::new(),
        moved => format!("; what is left was moved to {}", moved.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{batch, charter};
    use super::*;
    use crate::identity::tests::Folder;

    const LEN: usize = 64 << 10;

    /// Once when the database has taken everything in and the journal has not begun anew, and again in the next life,
    /// at the same moment.
    #[test]
    fn two_crashes_in_a_row_are_not_taken_for_damage() {
        let folder = Folder::new();
        let open = |lived| Disk::open(Directory::take(&folder.0).unwrap(), &charter(6), lived, LEN);
        let (mut disk, _) = open(false).unwrap();
        disk.write(&batch(&[(1, Some("a"))])).unwrap();
        let before = [HEADER, JOURNAL].map(|file| fs::read(folder.0.join(file)).unwrap());
        disk.tidy().unwrap();
        drop(disk);
        for (file, bytes) in [HEADER, JOURNAL].iter().zip(before) {
            fs::write(folder.0.join(file), bytes).unwrap();
        }
        let mut files = Files::read(&folder.0, &charter(6), true, LEN).unwrap();
        files.catch_up().unwrap();
        files.votes.save(&Changes::new(), files.journal.header().end, 1).unwrap();
        drop(files);
        assert!(matches!(open(true).unwrap().1, Memory::Kept { writes: 1, .. }));
    }
}
