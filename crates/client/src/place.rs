//! Where peers are found: the one place that knows the paths, for clients and for the peer itself.
//!
//! The machine's peer is at [`MACHINE_SOCKET`]. A user's own peers live in the user's runtime directory,
//! `$XDG_RUNTIME_DIR/sigmalock`, else `/run/user/UID/sigmalock`, else `/tmp/sigmalock-UID`. Nobody else can enter that,
//! which is what makes the sockets in it safe to use and to serve.

use std::fmt;
use std::fs::{self, DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::ConnectError;
pub use crate::error::PlaceError;

/// The variable that names a peer: `HOST:PORT` or `unix:PATH`.
pub const API_VARIABLE: &str = "SIGMALOCK_API";

/// The variable that names the `sigmalock` command, for starting a peer.
pub const BIN_VARIABLE: &str = "SIGMALOCK_BIN";

/// The socket of the machine's peer.
pub const MACHINE_SOCKET: &str = "/run/sigmalock/peer.sock";

/// The data directory of the machine's peer. Where it is, this machine is one of a swarm.
pub const MACHINE_DATA: &str = "/var/lib/sigmalock";

/// The machine's configuration.
pub const MACHINE_CONFIG: &str = "/etc/sigmalock/config.toml";

/// The file name of the socket of a user's own peer of a swarm, in the runtime directory,
const SOCKET: &str = "peer.sock";
/// and of that which is a swarm by itself.
const PRIVATE_SOCKET: &str = "private.sock";

/// Where a peer's API is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String),
}

impl FromStr for Address {
    type Err = ConnectError;
    fn from_str(text: &str) -> Result<Self, ConnectError> {
        let bad = || ConnectError::BadAddress { text: text.to_owned() };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(bad()) } else { Ok(Self::Unix(path.into())) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let port_fits = port.parse::<u16>().is_ok_and(|port| port != 0);
        if host.is_empty() || host.contains('/') || !port_fits {
            return Err(bad());
        }
        Ok(Self::Tcp(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => f.write_str(address),
        }
    }
}

/// The user's runtime directory, made if it is not there, and certainly nobody else's.
///
/// # Errors
/// It cannot be made, or others own it or may enter it.
pub fn runtime_dir() -> Result<PathBuf, PlaceError> {
    let path = runtime_path();
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(PlaceError::Io { path, source: error });
        }
        _ => {}
    }
    check(&path)?;
    Ok(path)
}

/// The socket of the user's own peer of a swarm. Its directory may not be there yet, but if it is, it is the user's.
///
/// # Errors
/// Others own the directory or may enter it.
pub fn socket() -> Result<PathBuf, PlaceError> {
    runtime_file(SOCKET)
}

/// The socket of the user's private peer; likewise.
///
/// # Errors
/// As [`socket`].
pub fn private_socket() -> Result<PathBuf, PlaceError> {
    runtime_file(PRIVATE_SOCKET)
}

/// Where a user's peer of a swarm keeps what it must remember; `None`: this user has no home.
#[must_use]
pub fn data_dir() -> Option<PathBuf> {
    home_dir("XDG_STATE_HOME", ".local/state").map(|base| base.join("sigmalock"))
}

/// Where a user's private peer does: apart, so that neither takes the other's directory.
#[must_use]
pub fn private_data_dir() -> Option<PathBuf> {
    home_dir("XDG_STATE_HOME", ".local/state").map(|base| base.join("sigmalock-private"))
}

/// The user's configuration.
pub(crate) fn user_config() -> Option<PathBuf> {
    home_dir("XDG_CONFIG_HOME", ".config").map(|base| base.join("sigmalock/config.toml"))
}

/// What a variable names, else that directory in the user's home.
fn home_dir(variable: &str, usual: &str) -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || folder("HOME").map(|home| PathBuf::from(home).join(usual));
    folder(variable).map(PathBuf::from).or_else(home)
}

fn runtime_file(name: &str) -> Result<PathBuf, PlaceError> {
    let path = runtime_path();
    match check(&path) {
        Err(PlaceError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
        other => other?,
    }
    Ok(path.join(name))
}

/// Where a peer that was started in the background writes what it has to say.
///
/// # Errors
/// As [`runtime_dir`].
pub fn log_file() -> Result<PathBuf, PlaceError> {
    Ok(runtime_dir()?.join("peer.log"))
}

/// The file whose lock whoever starts the user's private peer holds meanwhile.
pub(crate) fn start_lock() -> Result<PathBuf, PlaceError> {
    Ok(runtime_dir()?.join("start.lock"))
}

fn runtime_path() -> PathBuf {
    path_for(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from))
}

/// A runtime directory that is not there or not ours (after `su`, say) is as good as none; who was not told of the
/// usual one (in a cron job, say) looks for it.
fn path_for(xdg: Option<PathBuf>) -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    let is_ours =
        |dir: &PathBuf| fs::metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == uid);
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    match xdg.filter(is_ours).or_else(|| Some(usual).filter(is_ours)) {
        Some(dir) => dir.join("sigmalock"),
        None => PathBuf::from(format!("/tmp/sigmalock-{uid}")),
    }
}

/// A link is not followed: in /tmp anybody may have put it there.
fn check(path: &Path) -> Result<(), PlaceError> {
    let meta = fs::symlink_metadata(path)
        .map_err(|source| PlaceError::Io { path: path.to_owned(), source })?;
    judge(path, &meta, rustix::process::getuid().as_raw())
}

fn judge(path: &Path, meta: &Metadata, uid: u32) -> Result<(), PlaceError> {
    if meta.uid() != uid {
        return Err(PlaceError::Foreign { path: path.to_owned(), owner: meta.uid() });
    }
    if !meta.is_dir() || meta.mode() & 0o077 != 0 {
        return Err(PlaceError::Open { path: path.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_they_are_written() {
        for text in ["unix:/run/x.sock", "127.0.0.1:7420", "[::1]:7420", "peer.example:1"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("unix:///a/b".parse::<Address>().unwrap(), Address::Unix("/a/b".into()));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "unix:", "7420", ":7420", "host:", "host:0", "host:99999", "/run/x.sock"] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_directory_of_somebody_else_or_open_to_others_is_refused() {
        let dir = std::env::temp_dir().join(format!("sigmalock-place-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&dir).unwrap();
        let meta = fs::symlink_metadata(&dir).unwrap();
        assert!(judge(&dir, &meta, meta.uid()).is_ok());
        assert!(matches!(judge(&dir, &meta, meta.uid() + 1), Err(PlaceError::Foreign { .. })));
        fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
        assert!(matches!(check(&dir), Err(PlaceError::Open { .. })));
        let link = dir.with_extension("link");
        std::os::unix::fs::symlink("/root", &link).unwrap();
        assert!(check(&link).is_err());
        fs::remove_file(&link).unwrap();
        fs::remove_dir(&dir).unwrap();
        assert!(matches!(check(&dir), Err(PlaceError::Io { .. })));
    }

    #[test]
    fn a_runtime_directory_that_is_not_there_is_as_good_as_none() {
        assert_eq!(path_for(Some("/nowhere/at/all".into())), path_for(None));
    }
}
