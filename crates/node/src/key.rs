//! The swarm key: the secret that the peers of a swarm share, and that outsiders lack.
//!
//! ```text
//!   sigmalock-swarm-key-v1:<64 hexadecimal digits>
//! ```

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// What a key file begins with.
const PREFIX: &str = "sigmalock-swarm-key-v1:";

/// The longest file that is looked at: a key, and some white space around it.
const FILE_LEN_MAX: u64 = 1_024;

/// A secret that all peers of a swarm share. Whoever does not have it cannot join, vote, or read the
/// names of locks. It is never printed; [`SwarmKey::id`] tells keys apart.
#[derive(Clone, PartialEq, Eq)]
pub struct SwarmKey([u8; 32]);

/// Why there is no swarm key. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There is no such file.
    #[error(
        "there is no swarm key at {0}: copy it from another peer, or make one with `sigmalock key new`"
    )]
    Missing(PathBuf),
    /// The file is there already, and may be in use.
    #[error("{0} exists already and is left as it is: choose another file name")]
    Exists(PathBuf),
    /// It cannot be read or written.
    #[error("the swarm key {path} cannot be used: {cause}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// It is some other file.
    #[error("{0} is not a swarm key: it does not begin with `{PREFIX}`")]
    Prefix(PathBuf),
    /// A digit too many or too few.
    #[error(
        "{path} is damaged: a swarm key has 64 hexadecimal digits, this one {found}; copy it again"
    )]
    Length {
        /// Which file.
        path: PathBuf,
        /// How many there are.
        found: usize,
    },
    /// Something that is no digit.
    #[error(
        "{0} is damaged: there is something other than hexadecimal digits in it; copy it again"
    )]
    Digit(PathBuf),
    /// The system gives no random numbers.
    #[error("this system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// A key file that others may read. The key works; whoever prints may say so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} can be read by others (mode {mode:o}): they can join the swarm; `chmod 600` it")]
pub struct Exposed {
    /// Which file.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
}

impl SwarmKey {
    /// A new secret.
    pub fn generate() -> Result<Self, KeyError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(KeyError::Random)?;
        Ok(Self(secret))
    }

    /// The key in a file, and a warning if others can read it.
    pub fn read(path: &Path) -> Result<(Self, Option<Exposed>), KeyError> {
        let io = |cause| KeyError::Io { path: path.into(), cause };
        let file = File::open(path).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => KeyError::Missing(path.into()),
            _ => io(cause),
        })?;
        let mode = file.metadata().map_err(io)?.permissions().mode() & 0o777;
        let mut text = Vec::new();
        file.take(FILE_LEN_MAX).read_to_end(&mut text).map_err(io)?;
        let text = String::from_utf8(text).map_err(|_| KeyError::Prefix(path.into()))?;
        let exposed = (mode & 0o077 != 0).then(|| Exposed { path: path.into(), mode });
        Ok((Self::parse(&text, path)?, exposed))
    }

    /// The key in a text; `path` is where it came from, for errors.
    fn parse(text: &str, path: &Path) -> Result<Self, KeyError> {
        let digits =
            text.trim().strip_prefix(PREFIX).ok_or_else(|| KeyError::Prefix(path.into()))?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(KeyError::Digit(path.into()));
        }
        if digits.len() != 64 {
            return Err(KeyError::Length { path: path.into(), found: digits.len() });
        }
        let mut secret = [0; 32];
        for (byte, pair) in secret.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
            *byte = value(pair[0]) << 4 | value(pair[1]);
        }
        Ok(Self(secret))
    }

    /// Writes it to a new file that only its owner can read.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        let io = |cause| KeyError::Io { path: path.into(), cause };
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(
                |cause| match cause.kind() {
                    io::ErrorKind::AlreadyExists => KeyError::Exists(path.into()),
                    _ => io(cause),
                },
            )?;
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let written = writeln!(file, "{PREFIX}{digits}").and_then(|()| file.sync_all());
        written.map_err(|cause| {
            // Half a key would be in the way of the next attempt.
            let _ = fs::remove_file(path);
            io(cause)
        })
    }

    /// Tells this key from others, and nothing else about it.
    #[must_use]
    pub fn id(&self) -> String {
        let hash = Sha256::new().chain_update("sigmalock swarm id").chain_update(self.0).finalize();
        hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// A key of its own for one purpose, so that no two purposes share one.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        Sha256::new().chain_update(purpose).chain_update([0]).chain_update(self.0).finalize().into()
    }
}

impl fmt::Debug for SwarmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SwarmKey({}, secret)", self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::Folder;

    fn parse(text: &str) -> Result<SwarmKey, KeyError> {
        SwarmKey::parse(text, Path::new("k"))
    }

    #[test]
    fn a_written_key_is_read_back_and_only_its_owner_may() {
        let folder = Folder::new();
        let path = folder.0.join("swarm.key");
        let key = SwarmKey::generate().unwrap();
        key.write_new(&path).unwrap();
        assert_eq!(SwarmKey::read(&path).unwrap(), (key, None));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_key_is_never_written_over() {
        let folder = Folder::new();
        let path = folder.0.join("swarm.key");
        let first = SwarmKey::generate().unwrap();
        first.write_new(&path).unwrap();
        let second = SwarmKey::generate().unwrap().write_new(&path);
        assert!(matches!(second, Err(KeyError::Exists(_))));
        assert_eq!(SwarmKey::read(&path).unwrap().0, first);
    }

    #[test]
    fn a_key_that_others_can_read_comes_with_a_warning() {
        let folder = Folder::new();
        let path = folder.0.join("swarm.key");
        SwarmKey::generate().unwrap().write_new(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let (_, exposed) = SwarmKey::read(&path).unwrap();
        assert_eq!(exposed, Some(Exposed { path, mode: 0o644 }));
    }

    #[test]
    fn each_defect_of_a_key_file_has_its_own_sentence() {
        assert!(matches!(SwarmKey::read(Path::new("/nowhere/k")), Err(KeyError::Missing(_))));
        assert!(matches!(parse("something else"), Err(KeyError::Prefix(_))));
        let short = format!("{PREFIX}{}", "a".repeat(63));
        assert!(matches!(parse(&short), Err(KeyError::Length { found: 63, .. })));
        let odd = format!("{PREFIX}{}", "g".repeat(64));
        assert!(matches!(parse(&odd), Err(KeyError::Digit(_))));
        assert!(parse(&format!(" {PREFIX}{}\n", "Ab".repeat(32))).is_ok());
    }

    #[test]
    fn a_key_does_not_print_its_secret() {
        let key = parse(&format!("{PREFIX}{}", "ab".repeat(32))).unwrap();
        let shown = format!("{key:?}");
        assert!(!shown.contains("abab") && !shown.contains("171, 171"), "{shown}");
        assert!(shown.contains(&key.id()));
        assert_ne!(key.id(), SwarmKey::generate().unwrap().id());
    }
}
