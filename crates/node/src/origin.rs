//! Which swarm a peer belongs to, where swarms are founded: the number that its views carry.
//!
//! Peers of two foundings, by mistake or not, must not take one swarm's views for the other's: so each says in the
//! handshake where it belongs, and refuses who belongs elsewhere. Who knows no view yet belongs to whom it meets
//! first; hosts that have yet to make a swarm together belong nowhere, and may meet anybody.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Its name in the data directory.
const FILE: &str = "swarm";

/// Where a peer belongs, if anywhere yet.
#[derive(Debug, Default)]
pub struct Origin {
    number: AtomicU64,
    dir: Option<PathBuf>,
}

impl Origin {
    /// As the data directory says.
    #[must_use]
    pub fn recall(dir: Option<&Path>) -> Self {
        let text = dir.and_then(|dir| fs::read_to_string(dir.join(FILE)).ok());
        let number = text.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        Self { number: AtomicU64::new(number.unwrap_or(0)), dir: dir.map(Into::into) }
    }

    /// Whether a data directory has been in a swarm.
    pub(crate) fn exists(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Where it belongs; 0: nowhere yet.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.number.load(SeqCst)
    }

    /// It has met somebody who belongs there, and so does it from now on, unless it belongs somewhere already. An
    /// error: it may not know that in its next life.
    pub(crate) fn adopt(&self, number: u64) -> io::Result<()> {
        match self.number.compare_exchange(0, number, SeqCst, SeqCst) {
            Ok(_) => self.write(number),
            Err(_) => Ok(()),
        }
    }

    /// Its views are of that swarm, whomever it has met. An error as above.
    pub(crate) fn belong(&self, number: u64) -> io::Result<()> {
        if self.number.swap(number, SeqCst) == number { Ok(()) } else { self.write(number) }
    }

    /// Why a peer that belongs there is not let in, if so.
    pub(crate) fn objection(&self, theirs: u64) -> Option<String> {
        let ours = self.get();
        (ours != 0 && theirs != 0 && ours != theirs).then(|| {
            format!(
                "it belongs to another swarm (ours {ours:016x}, theirs {theirs:016x}): a swarm is founded \
                 once, and two cannot become one"
            )
        })
    }

    /// Under another name first, so that there is never half a number.
    fn write(&self, number: u64) -> io::Result<()> {
        let Some(dir) = self.dir.as_ref().filter(|_| number != 0) else { return Ok(()) };
        let temporary = dir.join("swarm.new");
        let mut file = File::create(&temporary)?;
        writeln!(file, "{number:016x}")?;
        file.sync_all()?;
        fs::rename(&temporary, dir.join(FILE))?;
        File::open(dir)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::Folder;

    #[test]
    fn a_peer_belongs_to_one_swarm_in_all_its_lives_and_refuses_the_others() {
        let folder = Folder::new();
        let origin = Origin::recall(Some(&folder.0));
        assert_eq!(origin.get(), 0);
        assert!(origin.objection(7).is_none(), "it may go anywhere");
        origin.adopt(0).unwrap();
        origin.adopt(7).unwrap();
        origin.adopt(8).unwrap();
        let origin = Origin::recall(Some(&folder.0));
        assert_eq!(origin.get(), 7);
        assert!(origin.objection(7).is_none() && origin.objection(0).is_none());
        assert!(origin.objection(8).is_some_and(|words| words.contains("another swarm")));
    }

    #[test]
    fn the_views_that_a_peer_knows_say_where_it_belongs_whomever_it_has_met() {
        let folder = Folder::new();
        let origin = Origin::recall(Some(&folder.0));
        origin.adopt(7).unwrap();
        origin.belong(9).unwrap();
        origin.adopt(8).unwrap();
        assert_eq!((origin.get(), Origin::recall(Some(&folder.0)).get()), (9, 9));
    }
}
