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
use std::str;

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// What a key file begins with.
const PREFIX: &str = "sigmalock-swarm-key-v1:";

/// The longest file that is looked at: a key, and some white space around it.
const FILE_LEN_MAX: usize = 1_024;

/// How many digits a key has.
const DIGITS: usize = 64;

/// A secret that all peers of a swarm share. Whoever does not have it cannot join, vote, or read the
/// names of locks. It is never printed, and wiped when it is dropped; [`SwarmKey::id`] tells keys apart.
#[derive(Clone, PartialEq, Eq)]
pub struct SwarmKey(Zeroizing<[u8; 32]>);

/// A key of its own for one purpose. As secret as what it was made from.
#[derive(Clone)]
pub(crate) struct DerivedKey(Zeroizing<[u8; 32]>);

impl DerivedKey {
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for DerivedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DerivedKey(secret)")
    }
}

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
    /// Somebody else can read it.
    #[error(
        "the swarm key {path} can be read by others (mode {mode:o}), who could join the swarm: say `chmod 600 {path}`, and \
         if they may have read it, make a new key"
    )]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The key itself was given in place of the name of its file.
    #[error(
        "this is a swarm key, not the name of a file that has one; whoever could see the command line knows it now, so \
         make a new one with `sigmalock key new FILE`"
    )]
    NotAFile,
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

impl SwarmKey {
    /// A new secret.
    pub fn generate() -> Result<Self, KeyError> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret).map_err(KeyError::Random)?;
        Ok(Self(secret))
    }

    /// The key in a file that nobody else can read.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        refuse_key(path)?;
        let io = |cause| KeyError::Io { path: path.into(), cause };
        let mut file = File::open(path).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => KeyError::Missing(path.into()),
            _ => io(cause),
        })?;
        let mode = file.metadata().map_err(io)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.into(), mode });
        }
        // Of fixed length, so that no copy is left behind when it grows.
        let mut text = Zeroizing::new([0; FILE_LEN_MAX]);
        let mut len = 0;
        while len < FILE_LEN_MAX {
            match file.read(&mut text[len..]).map_err(io)? {
                0 => break,
                read => len += read,
            }
        }
        let text = str::from_utf8(&text[..len]).map_err(|_| KeyError::Prefix(path.into()))?;
        Self::parse(text, path)
    }

    /// The key in a text; `path` is where it came from, for errors.
    fn parse(text: &str, path: &Path) -> Result<Self, KeyError> {
        let digits =
            text.trim().strip_prefix(PREFIX).ok_or_else(|| KeyError::Prefix(path.into()))?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(KeyError::Digit(path.into()));
        }
        if digits.len() != DIGITS {
            return Err(KeyError::Length { path: path.into(), found: digits.len() });
        }
        let mut secret = Zeroizing::new([0; 32]);
        for (byte, pair) in secret.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
            *byte = value(pair[0]) << 4 | value(pair[1]);
        }
        Ok(Self(secret))
    }

    /// Writes it to a new file that only its owner can read.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        refuse_key(path)?;
        let io = |cause| KeyError::Io { path: path.into(), cause };
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(
                |cause| match cause.kind() {
                    io::ErrorKind::AlreadyExists => KeyError::Exists(path.into()),
                    _ => io(cause),
                },
            )?;
        let mut text = Zeroizing::new(Vec::with_capacity(PREFIX.len() + DIGITS + 1));
        text.extend(PREFIX.bytes());
        let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
        text.extend(self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
        text.push(b'\n');
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        written.map_err(|cause| {
            // Half a key would be in the way of the next attempt.
            let _ = fs::remove_file(path);
            io(cause)
        })
    }

    /// Tells this key from others, and nothing else about it.
    #[must_use]
    pub fn id(&self) -> String {
        let hash =
            Sha256::new().chain_update("sigmalock swarm id").chain_update(&self.0[..]).finalize();
        hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// A key of its own for one purpose, so that no two purposes share one.
    pub(crate) fn derive(&self, purpose: &str) -> DerivedKey {
        let mut derived = Zeroizing::new([0; 32]);
        let hash = Sha256::new().chain_update(purpose).chain_update([0]).chain_update(&self.0[..]);
        hash.finalize_into((&mut *derived).into());
        DerivedKey(derived)
    }
}

/// Whether this is a key, where the name of its file belongs. Such a one is told nobody again.
#[must_use]
pub fn is_key(text: &str) -> bool {
    let bare = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    bare || text.contains(PREFIX)
}

fn refuse_key(path: &Path) -> Result<(), KeyError> {
    if is_key(&path.to_string_lossy()) { Err(KeyError::NotAFile) } else { Ok(()) }
}

/// A text without the keys that are in it, fit to be shown.
#[must_use]
pub fn without_keys(text: &str) -> String {
    let mut parts = text.split(PREFIX);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(PREFIX);
        shown.push('…');
        shown.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    shown
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
        assert_eq!(SwarmKey::read(&path).unwrap(), key);
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
        assert_eq!(SwarmKey::read(&path).unwrap(), first);
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_the_cure() {
        let folder = Folder::new();
        let path = folder.0.join("swarm.key");
        SwarmKey::generate().unwrap().write_new(&path).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o660, 0o666, 0o610] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = SwarmKey::read(&path).unwrap_err();
            assert!(matches!(&error, KeyError::Exposed { mode: told, .. } if *told == mode));
            assert!(error.to_string().contains(&format!("chmod 600 {}", path.display())));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(SwarmKey::read(&path).is_ok());
    }

    #[test]
    fn a_key_in_place_of_a_file_is_refused_and_not_said_again() {
        let digits = "1234567890abcdef".repeat(4);
        for text in [digits.clone(), format!("{PREFIX}{digits}"), format!(" {PREFIX}{digits}\n")] {
            let path = Path::new(&text);
            for error in [
                SwarmKey::read(path).unwrap_err(),
                SwarmKey::generate().unwrap().write_new(path).unwrap_err(),
            ] {
                assert!(matches!(error, KeyError::NotAFile));
                assert!(!format!("{error} {error:?}").contains("12345678"));
            }
            assert!(!path.exists());
        }
        let line = format!("a {PREFIX}{digits}, and {PREFIX}{digits}");
        assert_eq!(without_keys(&line), format!("a {PREFIX}…, and {PREFIX}…"));
        assert_eq!(without_keys("nothing secret"), "nothing secret");
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
