//! Who a peer is, and what is left of its former lives.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use sigmalock_core::{Birth, Protocol};

use crate::config::{Beginning, Config, Membership};
use crate::driver::Live;
use crate::identity::{Identity, IdentityError};
use crate::link::Role;
use crate::node::StartError;
use crate::origin::Origin;
use crate::store::{Charter, Directory, Memory, OpenError, Records, Store};

/// Who a peer is. Of a first life nothing is on disk yet.
pub(crate) struct Who {
    pub(crate) identity: Identity,
    lived: bool,
    /// Its data directory, if it has one, and that is there.
    directory: Option<Directory>,
}

/// What is left of former lives.
pub(crate) struct Past {
    pub(crate) store: Option<Store>,
    memory: Memory,
}

impl Who {
    /// Looks, and leaves everything as it is: who is told better next time is not to be taken for old.
    pub(crate) fn look(config: &Config) -> Result<Self, StartError> {
        if config.membership == Membership::Agreed
            && !config.data.as_deref().is_some_and(Identity::exists)
        {
            begins_somehow(config)?;
        }
        let newborn = || Self { identity: Identity::ephemeral(), lived: false, directory: None };
        let Some(dir) = config.data.as_ref().filter(|dir| dir.try_exists().unwrap_or(true)) else {
            return Ok(newborn());
        };
        make(dir)?;
        let directory = Directory::take(dir)?;
        let lived = Identity::exists(dir);
        if !lived && Identity::was_never_used(dir) {
            if !directory.is_ours {
                return Err(IdentityError::unfinished(dir).into());
            }
        } else if !lived && (Store::exists(dir) || Origin::exists(dir)) {
            // Another identity could do nothing with them, and is not to be taken for the one that is lost.
            return Err(IdentityError::missing(dir).into());
        }
        let directory = Some(directory);
        let identity = if lived { Identity::load(dir)? } else { Identity::ephemeral() };
        Ok(Self { identity, lived, directory })
    }

    /// What it remembers. Of a first life all is on disk then but its name: before that is kept, nobody may hear of it,
    /// and whoever ends was never there.
    pub(crate) fn recall(&mut self, config: &Config) -> Result<Past, StartError> {
        let Some(dir) = &config.data else {
            return Ok(Past { store: None, memory: Memory::First });
        };
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => {
                make(dir)?;
                let directory = Directory::take(dir)?;
                if Identity::exists(dir) || Identity::was_never_used(dir) {
                    // It was not there a moment ago.
                    return Err(OpenError::InUse(dir.display().to_string()).into());
                }
                directory
            }
        };
        if !self.lived {
            if Identity::was_never_used(dir) {
                Store::discard(&directory)?;
                Identity::discard(dir)?;
            }
            self.identity.draft(dir)?;
        }
        let charter = Charter::new(self.identity.peer_id(), config);
        let (store, memory) = Store::open(directory, &charter, self.lived)?;
        if let Memory::Lost(why) = &memory {
            tracing::warn!("this peer has lost its memory: {why}");
        }
        Ok(Past { store: Some(store), memory })
    }

    /// From now on a first life is one.
    pub(crate) fn keep(&self, config: &Config) -> Result<(), IdentityError> {
        match &config.data {
            Some(dir) if !self.lived => Identity::keep(dir),
            _ => Ok(()),
        }
    }
}

impl Past {
    /// Whether there were any.
    pub(crate) const fn lived(&self) -> bool {
        !matches!(self.memory, Memory::First)
    }

    /// What a protocol is to remember of a former life.
    pub(crate) fn birth<P: Live>(&self, config: &Config) -> Result<Birth<P>, StartError> {
        Ok(match &self.memory {
            Memory::First => Birth::First,
            Memory::Kept { records, .. } => match understand::<P>(records) {
                Some(records) => Birth::Recovered(records),
                None => return Err(StartError::Record(config.data.clone().unwrap_or_default())),
            },
            // It may have made promises.
            Memory::Lost(_) => Birth::Amnesiac,
        })
    }

    /// Why it remembers nothing, in words, if that is so.
    pub(crate) fn loss(&self) -> Option<String> {
        match &self.memory {
            Memory::Lost(why) => Some(why.clone()),
            Memory::First | Memory::Kept { .. } => None,
        }
    }

    /// How many records were ever written to its data directory.
    pub(crate) const fn writes(&self) -> u64 {
        match self.memory {
            Memory::Kept { writes, .. } => writes,
            Memory::First | Memory::Lost(_) => 0,
        }
    }
}

/// Makes the data directory, for this user alone. One that others can look into is closed to them, unless it holds
/// what is none of a peer's.
fn make(dir: &Path) -> Result<(), StartError> {
    let failed = |cause| StartError::Directory { path: dir.into(), cause };
    make_on_disk(dir).map_err(failed)?;
    let meta = fs::metadata(dir).map_err(failed)?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(StartError::Foreign { path: dir.into(), owner: meta.uid() });
    }
    let mode = meta.mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let is_empty = fs::read_dir(dir).map_err(failed)?.next().is_none();
    if !is_empty && !Identity::exists(dir) {
        return Err(StartError::Exposed { path: dir.into(), mode });
    }
    fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed)?;
    let path = dir.display();
    tracing::warn!(
        "others could look into {path} (mode {mode:o}), at what this peer remembers: it is closed to them now"
    );
    Ok(())
}

/// Makes a directory and those above it that are missing, for this user alone. That they are there is on disk when this
/// returns: a power cut does not take them away with what is in them.
fn make_on_disk(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|above| !above.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        let is_here = parent.as_os_str().is_empty();
        File::open(if is_here { Path::new(".") } else { parent })?.sync_all()?;
    }
    Ok(())
}

/// A swarm is founded on purpose or not at all.
fn begins_somehow(config: &Config) -> Result<(), StartError> {
    let alone = matches!(config.beginning, Beginning::Found | Beginning::Expect(1));
    let founds = alone && config.role == Role::Host;
    if founds || !config.join.is_empty() || config.mdns { Ok(()) } else { Err(StartError::Nobody) }
}

type Understood<P> = Vec<(<P as Protocol>::DurableKey, <P as Protocol>::Durable)>;

fn understand<P: Live>(records: &Records) -> Option<Understood<P>> {
    let decode = |(key, value): &(Vec<u8>, Vec<u8>)| {
        Some((postcard::from_bytes(key).ok()?, postcard::from_bytes(value).ok()?))
    };
    records.iter().map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::Folder;
    use crate::store::Batch;

    fn config(dir: &std::path::Path) -> Config {
        let membership = Membership::Agreed;
        let plain = crate::transport::tests::config(Vec::new());
        Config { data: Some(dir.to_owned()), beginning: Beginning::Found, membership, ..plain }
    }

    fn is_new(past: &Past) -> bool {
        matches!(past.memory, Memory::First)
    }

    /// A peer that came to live.
    fn begin(dir: &Path) -> Result<(Past, sigmalock_core::PeerId), StartError> {
        let config = config(dir);
        let mut who = Who::look(&config)?;
        let past = who.recall(&config)?;
        who.keep(&config)?;
        Ok((past, who.identity.peer_id()))
    }

    async fn close((past, peer): (Past, sigmalock_core::PeerId)) -> sigmalock_core::PeerId {
        past.store.unwrap().close().await;
        peer
    }

    #[tokio::test]
    async fn a_data_directory_is_for_its_user_alone_and_what_is_none_is_left_as_it_is() {
        let folder = Folder::new();
        let mode = |dir: &Path| fs::metadata(dir).unwrap().mode() & 0o777;
        let open = |dir: &Path| fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
        let new = folder.0.join("a/b");
        close(begin(&new).unwrap()).await;
        assert_eq!((mode(&folder.0.join("a")), mode(&new)), (0o700, 0o700));
        open(&new);
        close(begin(&new).unwrap()).await;
        assert_eq!(mode(&new), 0o700, "one of a former version is closed");
        let empty = folder.0.join("empty");
        fs::create_dir(&empty).unwrap();
        open(&empty);
        close(begin(&empty).unwrap()).await;
        assert_eq!(mode(&empty), 0o700);
        let other = folder.0.join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("letter"), "dear").unwrap();
        open(&other);
        let refused = begin(&other).err().unwrap().to_string();
        assert!(refused.contains("mode 755") && refused.contains("chmod 700"), "{refused}");
        assert_eq!(mode(&other), 0o755);
    }

    /// A process may be killed at any of these moments.
    #[tokio::test]
    async fn a_first_life_that_was_cut_short_before_anybody_heard_of_it_was_none() {
        let whole = Folder::new();
        let first = close(begin(&whole.0).unwrap()).await;
        let draft = std::fs::read(whole.0.join("identity")).unwrap();
        let all = ["votes.journal", "votes.header", "votes.redb"];
        for files in (0..=all.len()).map(|count| &all[..count]) {
            for part in [1, 2] {
                let folder = Folder::new();
                std::fs::set_permissions(&folder.0, Permissions::from_mode(0o700)).unwrap();
                std::fs::write(folder.0.join("identity.new"), &draft[..draft.len() / part])
                    .unwrap();
                for file in files {
                    let bytes = std::fs::read(whole.0.join(file)).unwrap();
                    std::fs::write(folder.0.join(file), &bytes[..bytes.len() / part]).unwrap();
                }
                let (past, peer) = begin(&folder.0).unwrap();
                assert!(is_new(&past) && peer != first);
                close((past, peer)).await;
                let (past, again) = begin(&folder.0).unwrap();
                assert!(is_new(&past) && again == peer, "and is kept from then on");
            }
        }
    }

    #[tokio::test]
    async fn a_life_that_wrote_something_is_remembered_or_missed() {
        let folder = Folder::new();
        let (mut past, peer) = begin(&folder.0).unwrap();
        let mut batch = Batch::default();
        batch.push(&1u32, Some(&"a")).unwrap();
        past.store.as_mut().unwrap().write(batch);
        close((past, peer)).await;
        let (past, peer) = begin(&folder.0).unwrap();
        assert!(matches!(past.memory, Memory::Kept { writes: 1, .. }));
        close((past, peer)).await;
        for file in ["votes.journal", "votes.header", "votes.redb"] {
            std::fs::remove_file(folder.0.join(file)).unwrap();
        }
        let (past, peer) = begin(&folder.0).unwrap();
        assert!(past.loss().is_some());
        close((past, peer)).await;
        // Without its identity it is nobody.
        std::fs::remove_file(folder.0.join("identity")).unwrap();
        let refused = begin(&folder.0).err().unwrap().to_string();
        assert!(refused.contains("is missing, and other files of its peer are there"), "{refused}");
    }

    #[tokio::test]
    async fn who_never_came_to_live_leaves_nothing_that_looks_like_a_life() {
        let folder = Folder::new();
        let new = folder.0.join("a/b");
        let mut who = Who::look(&config(&new)).unwrap();
        assert!(!folder.0.join("a").exists(), "nothing is made by looking");
        let stillborn = who.identity.peer_id();
        who.recall(&config(&new)).unwrap().store.unwrap().close().await;
        assert!(!Identity::exists(&new));
        let (past, peer) = begin(&new).unwrap();
        assert!(is_new(&past) && peer != stillborn && Identity::exists(&new));
        close((past, peer)).await;
    }

    #[tokio::test]
    async fn of_two_that_saw_no_directory_one_is_refused() {
        let folder = Folder::new();
        let new = config(&folder.0.join("a"));
        let (mut one, mut other) = (Who::look(&new).unwrap(), Who::look(&new).unwrap());
        let past = one.recall(&new).unwrap();
        assert!(matches!(other.recall(&new), Err(StartError::Store(OpenError::InUse(_)))));
        past.store.unwrap().close().await;
        assert!(matches!(other.recall(&new), Err(StartError::Store(OpenError::InUse(_)))));
    }
}
