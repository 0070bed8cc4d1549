//! Who this peer is: an ed25519 key pair, kept in the data directory, and the names that follow from it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use libp2p::PeerId as NetworkId;
use libp2p::identity::{KeyType, Keypair};
use sha2::{Digest as _, Sha256};
use sigmalock_core::{Incarnation, Key, PeerId};
use zeroize::Zeroizing;

/// The file in the data directory.
const FILE: &str = "identity";
/// What it is called until all else of a first life is on disk.
const DRAFT: &str = "identity.new";

/// A peer's key pair.
#[derive(Clone)]
pub struct Identity {
    keypair: Keypair,
}

/// Why there is no identity. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file cannot be read or written.
    #[error("the identity {path} cannot be used: {cause}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// What is in the file is no key pair.
    #[error(
        "{0} is damaged and was left as it is: restore it, or move the whole data directory away to \
         begin as a new peer"
    )]
    Damaged(PathBuf),
    /// There is none, where there must have been one.
    #[error(
        "{0} is missing, and other files of its peer are there: restore it, or move the whole data \
         directory away to begin as a new peer"
    )]
    Missing(PathBuf),
    /// Another process may be about to begin there, and the system cannot tell.
    #[error(
        "{0} is there: another process is starting in this directory, or was killed while it did; in that case \
         delete the whole directory"
    )]
    Unfinished(PathBuf),
}

impl IdentityError {
    fn of(dir: &Path, cause: io::Error) -> Self {
        Self::Io { path: dir.join(FILE), cause }
    }

    pub(crate) fn unfinished(dir: &Path) -> Self {
        Self::Unfinished(dir.join(DRAFT))
    }

    pub(crate) fn missing(dir: &Path) -> Self {
        Self::Missing(dir.join(FILE))
    }
}

impl Identity {
    /// A new one, kept nowhere yet.
    #[must_use]
    pub fn ephemeral() -> Self {
        Self { keypair: Keypair::generate_ed25519() }
    }

    /// Whether there is one in this directory.
    #[must_use]
    pub fn exists(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Whether a first life in this directory was cut short before anybody could hear of it: there is a
    /// draft, and no identity.
    pub(crate) fn was_never_used(dir: &Path) -> bool {
        dir.join(DRAFT).exists() && !Self::exists(dir)
    }

    /// The one in this directory.
    pub(crate) fn load(dir: &Path) -> Result<Self, IdentityError> {
        let path = dir.join(FILE);
        let bytes = fs::read(&path).map(Zeroizing::new);
        let bytes = bytes.map_err(|cause| IdentityError::of(dir, cause))?;
        match Keypair::from_protobuf_encoding(&bytes) {
            Ok(keypair) if keypair.key_type() == KeyType::Ed25519 => Ok(Self { keypair }),
            _ => Err(IdentityError::Damaged(path)),
        }
    }

    /// Removes the draft of a first life that was cut short.
    pub(crate) fn discard(dir: &Path) -> Result<(), IdentityError> {
        fs::remove_file(dir.join(DRAFT)).map_err(|cause| IdentityError::of(dir, cause))
    }

    /// Writes a draft: whoever ends before it is kept begins anew.
    pub(crate) fn draft(&self, dir: &Path) -> Result<(), IdentityError> {
        self.write(dir).map_err(|cause| match cause.kind() {
            io::ErrorKind::AlreadyExists => IdentityError::unfinished(dir),
            _ => IdentityError::of(dir, cause),
        })
    }

    fn write(&self, dir: &Path) -> io::Result<()> {
        let bytes = self.keypair.to_protobuf_encoding().map(Zeroizing::new);
        let bytes = bytes.map_err(io::Error::other)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(DRAFT))?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        File::open(dir)?.sync_all()
    }

    /// From the draft in this directory on, its peer is this one for good. Last of all that a first life has
    /// to write before anybody hears of it.
    pub(crate) fn keep(dir: &Path) -> Result<(), IdentityError> {
        let kept = fs::rename(dir.join(DRAFT), dir.join(FILE));
        let kept = kept.and_then(|()| File::open(dir)?.sync_all());
        kept.map_err(|cause| IdentityError::of(dir, cause))
    }

    /// Its name in libp2p.
    #[must_use]
    pub fn network_id(&self) -> NetworkId {
        self.keypair.public().to_peer_id()
    }

    /// Its name in protocols.
    #[must_use]
    pub fn peer_id(&self) -> PeerId {
        peer_of(&self.network_id())
    }

    /// Its place in the key space.
    #[must_use]
    pub fn key(&self) -> Key {
        key_of(&self.network_id())
    }

    pub(crate) fn keypair(&self) -> &Keypair {
        &self.keypair
    }
}

/// Where a peer is in the key space: the same place that Kademlia has it at.
pub(crate) fn key_of(network: &NetworkId) -> Key {
    Key(Sha256::digest(network.to_bytes()).into())
}

/// The name of a peer in protocols: the first bytes of its place. Two peers with the same name are
/// unheard of by chance; a peer that comes second with one is refused.
pub(crate) fn peer_of(network: &NetworkId) -> PeerId {
    let Key([a, b, c, d, e, f, g, h, ..]) = key_of(network);
    PeerId(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// A number for one life of a peer, never used before.
pub fn new_incarnation() -> Result<Incarnation, getrandom::Error> {
    getrandom::u64().map(Incarnation)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use libp2p::kad::KBucketKey;
    use std::os::unix::fs::PermissionsExt as _;

    /// A directory that goes away with the test.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new() -> Self {
            let unique = getrandom::u64().unwrap();
            let path = std::env::temp_dir().join(format!("sigmalock-test-{unique:x}"));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_peer_is_where_kademlia_thinks_it_is() {
        for _ in 0..20 {
            let network = Identity::ephemeral().network_id();
            let theirs = KBucketKey::from(network);
            assert_eq!(key_of(&network).0.as_slice(), theirs.hashed_bytes());
            assert_eq!(peer_of(&network).0.to_be_bytes(), theirs.hashed_bytes()[..8]);
        }
    }

    fn kept(dir: &Path) -> Identity {
        let identity = Identity::ephemeral();
        identity.draft(dir).unwrap();
        assert!(Identity::was_never_used(dir) && !Identity::exists(dir));
        Identity::keep(dir).unwrap();
        assert!(!Identity::was_never_used(dir) && Identity::exists(dir));
        identity
    }

    #[test]
    fn of_two_that_begin_at_once_one_is_refused() {
        let folder = Folder::new();
        let (first, second) = (Identity::ephemeral(), Identity::ephemeral());
        first.draft(&folder.0).unwrap();
        assert!(matches!(second.draft(&folder.0), Err(IdentityError::Unfinished(_))));
        Identity::keep(&folder.0).unwrap();
        assert_eq!(Identity::load(&folder.0).unwrap().peer_id(), first.peer_id());
        second.draft(&folder.0).unwrap();
        Identity::discard(&folder.0).unwrap();
        assert!(second.draft(&folder.0).is_ok());
    }

    #[test]
    fn a_peer_with_a_data_directory_stays_who_it_is() {
        let folder = Folder::new();
        let first = kept(&folder.0);
        let again = Identity::load(&folder.0).unwrap();
        assert_eq!(first.network_id(), again.network_id());
        let mode = fs::metadata(folder.0.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn with_any_bit_flipped_or_cut_short_it_is_damaged_and_never_another_one() {
        let folder = Folder::new();
        kept(&folder.0);
        let path = folder.0.join(FILE);
        let whole = fs::read(&path).unwrap();
        let flipped = (0..whole.len() * 8).map(|bit| {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        });
        for bytes in flipped.chain((0..whole.len()).map(|cut| whole[..cut].to_vec())) {
            fs::write(&path, &bytes).unwrap();
            let outcome = Identity::load(&folder.0);
            assert!(matches!(outcome, Err(IdentityError::Damaged(_))), "{bytes:?}");
        }
    }

    #[test]
    fn a_damaged_identity_is_an_error_and_is_left_alone() {
        let folder = Folder::new();
        let path = folder.0.join(FILE);
        for garbage in [&b""[..], b"garbage", &[8, 1, 18, 64, 0]] {
            fs::write(&path, garbage).unwrap();
            let outcome = Identity::load(&folder.0);
            assert!(matches!(outcome, Err(IdentityError::Damaged(_))));
            assert_eq!(fs::read(&path).unwrap(), garbage);
        }
    }
}
