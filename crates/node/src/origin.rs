//! Which swarm a peer belongs to, where swarms are founded: a number drawn by whoever founded it.
//!
//! Views know only numbers of their own. Peers of two foundings, by mistake or not, must not take one
//! swarm's for the other's: so each says in the handshake where it belongs, and refuses who belongs
//! elsewhere. Who belongs nowhere yet belongs to whom it meets first.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Its name in the data directory.
const FILE: &str = "swarm";

/// Where a peer belongs, if anywhere yet.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    number: OnceLock<NonZeroU64>,
    dir: Option<PathBuf>,
}

impl Origin {
    /// As the data directory says.
    pub(crate) fn recall(dir: Option<&Path>) -> Self {
        let text = dir.and_then(|dir| fs::read_to_string(dir.join(FILE)).ok());
        let number = text.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        let origin = Self { number: OnceLock::new(), dir: dir.map(Into::into) };
        if let Some(number) = number.and_then(NonZeroU64::new) {
            let _ = origin.number.set(number);
        }
        origin
    }

    /// Whether a data directory has been in a swarm.
    pub(crate) fn exists(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// A swarm that begins here.
    pub(crate) fn found(dir: Option<&Path>, number: u64) -> io::Result<Self> {
        let origin = Self { number: OnceLock::new(), dir: dir.map(Into::into) };
        origin.adopt(number.max(1))?;
        Ok(origin)
    }

    /// Where it belongs; 0: nowhere yet.
    pub(crate) fn get(&self) -> u64 {
        self.number.get().map_or(0, |number| number.get())
    }

    /// It belongs there from now on, unless it belongs somewhere already. An error: it may not know that in its
    /// next life.
    pub(crate) fn adopt(&self, number: u64) -> io::Result<()> {
        let Some(number) = NonZeroU64::new(number) else { return Ok(()) };
        match (self.number.set(number), &self.dir) {
            (Ok(()), Some(dir)) => write(dir, number),
            _ => Ok(()),
        }
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
}

/// Under another name first, so that there is never half a number.
fn write(dir: &Path, number: NonZeroU64) -> io::Result<()> {
    let temporary = dir.join("swarm.new");
    let mut file = File::create(&temporary)?;
    writeln!(file, "{number:016x}")?;
    file.sync_all()?;
    fs::rename(&temporary, dir.join(FILE))?;
    File::open(dir)?.sync_all()
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
        assert_eq!(Origin::found(Some(&folder.0), 9).unwrap().get(), 9);
        assert_eq!(Origin::recall(Some(&folder.0)).get(), 9);
        assert!(origin.objection(8).is_some_and(|words| words.contains("another swarm")));
    }
}
