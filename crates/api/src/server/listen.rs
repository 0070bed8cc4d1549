//! Where clients come in.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::time::{Sleep, sleep};
use tonic::codegen::tokio_stream::Stream;

use super::connection::{Connection, Wire};
use super::room::{House, Who};
use super::signed::{SignedStream, demand_signatures};
use super::{ServerConfig, Users, operators};

/// The longest path of a socket, with the `.new` that it has while it is made.
const PATH_LEN_MAX: usize = 107 - ".new".len();
/// How long to wait when the system has no more sockets for us.
const BREATH: Duration = Duration::from_millis(100);

/// Why the API is not served. Nothing is bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another peer serves that socket. Use it, or give this one another path.
    #[error("another peer serves {path:?} already; give this one another path with --socket")]
    UnixInUse {
        /// The socket.
        path: PathBuf,
    },
    /// There is something else at that path. Give another.
    #[error("{path:?} exists and is no socket")]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// Its directory is not there. Make it, or give another path.
    #[error(
        "the directory {dir:?} of the socket does not exist: make it, for this user alone (mkdir -m 700), or give another path with --socket"
    )]
    NoDirectory {
        /// The directory.
        dir: PathBuf,
    },
    /// Its directory is not for this user to write to. Use another.
    #[error(
        "the directory {dir:?} of the socket cannot be written to by this user ({cause}): change that, or give another path with --socket"
    )]
    ClosedDirectory {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The path is longer than the system takes. Give a shorter one.
    #[error(
        "{path:?} is too long for a socket, whose path has at most {PATH_LEN_MAX} bytes: give a shorter one with --socket"
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// The socket cannot be given to that group. Run the peer as a member of it.
    #[error(
        "{path:?} cannot be given to the group with the number {group}: the peer's user must be a member of it"
    )]
    NotInGroup {
        /// The socket.
        path: PathBuf,
        /// The group.
        group: u32,
    },
    /// The socket cannot be made.
    #[error("cannot serve {path:?}: {cause}")]
    Unix {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// Somebody else has that port. Give another.
    #[error("{address} is in use")]
    TcpInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The API knows no passwords: whoever reaches it may hold every lock. Serve a loopback address.
    #[error(
        "{address} can be reached by other machines, and the API does not ask who they are: serve a loopback address, to which others may tunnel (ssh -L)"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// Nobody is in it. Make it, or name another.
    #[error("there is no group {0:?} on this machine, whose members would be operators")]
    NoGroup(String),
    /// The peer has stopped: there is nothing to serve.
    #[error("the peer has stopped")]
    Stopped,
    /// The address cannot be served.
    #[error("cannot serve {address}: {cause}")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
}

/// All that listens; as a stream, whoever comes.
pub(super) struct Listeners {
    unix: Option<OwnSocket>,
    tcp: Option<TcpListener>,
    house: House,
    breath: Option<Pin<Box<Sleep>>>,
}

impl Listeners {
    pub(super) fn bind(config: &ServerConfig) -> Result<Self, BindError> {
        if let Some(group) =
            config.operators.as_deref().filter(|name| operators::find(name).is_none())
        {
            return Err(BindError::NoGroup(group.to_owned()));
        }
        let tcp = config.tcp.map(|address| bind_tcp(address, config.remote)).transpose()?;
        let unix =
            config.unix.as_deref().map(|path| OwnSocket::bind(path, config.users)).transpose()?;
        Ok(Self { unix, tcp, house: House::new(), breath: None })
    }

    /// From now on whoever looks for the socket finds it.
    pub(super) fn open(&mut self) -> Result<(), BindError> {
        self.unix.as_mut().map_or(Ok(()), OwnSocket::open)
    }

    pub(super) fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref()?.local_addr().ok()
    }

    /// The next for whom there is room. Past the bound, a connection is closed at once, and its client told so by that.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Connection>> {
        let Self { unix, tcp, house, .. } = self;
        if let Some(unix) = unix {
            while let Poll::Ready(accepted) = unix.listener.poll_accept(cx) {
                let stream = accepted?.0;
                let who = stream.peer_cred()?;
                if let Some(room) = house.admit(Who::User(who.uid())) {
                    let wire = Wire::Unix(SignedStream::new(stream));
                    return Poll::Ready(Ok(Connection::new(wire, who.pid(), room)));
                }
            }
        }
        if let Some(tcp) = tcp {
            while let Poll::Ready(accepted) = tcp.poll_accept(cx) {
                let stream = accepted?.0;
                if stream.set_nodelay(true).is_ok()
                    && let Some(room) = house.admit(Who::Tcp)
                {
                    return Poll::Ready(Ok(Connection::new(Wire::Tcp(stream), None, room)));
                }
            }
        }
        Poll::Pending
    }
}

impl Stream for Listeners {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(breath) = &mut self.breath {
                std::task::ready!(breath.as_mut().poll(cx));
                self.breath = None;
            }
            match std::task::ready!(self.poll_accept(cx)) {
                Ok(connection) => return Poll::Ready(Some(Ok(connection))),
                // No descriptor is left: there may be one for the peer's own user, who is among those that wait.
                Err(error) if is_full(&error) && self.house.spend() => {}
                // A client that was gone before it was let in.
                Err(_) => self.breath = Some(Box::pin(sleep(BREATH))),
            }
        }
    }
}

/// Whether this process, or the machine, has as many files open as it may.
fn is_full(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let error = error.raw_os_error().map(Errno::from_raw);
    matches!(error, Some(Errno::EMFILE | Errno::ENFILE))
}

fn bind_tcp(address: SocketAddr, remote: bool) -> Result<TcpListener, BindError> {
    if !address.ip().is_loopback() && !remote {
        return Err(BindError::NotLoopback { address });
    }
    let bind = || -> io::Result<TcpListener> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    bind().map_err(|cause| match cause.kind() {
        io::ErrorKind::AddrInUse => BindError::TcpInUse { address },
        _ => BindError::Tcp { address, cause },
    })
}

/// A socket that is ours as long as this lives, and gone with it.
struct OwnSocket {
    path: PathBuf,
    /// Where it is: beside its place, until it is opened.
    at: PathBuf,
    listener: UnixListener,
    /// Locked: of two peers that start at once, one does not remove the socket of the other.
    _claim: File,
}

impl OwnSocket {
    fn bind(path: &Path, users: Users) -> Result<Self, BindError> {
        let failed = |cause| failed(path, cause);
        if path.as_os_str().len() > PATH_LEN_MAX {
            return Err(BindError::TooLong { path: path.to_owned() });
        }
        let claim_path = sibling(path, "lock");
        let claim = OpenOptions::new().create(true).truncate(false).write(true).open(claim_path);
        let claim = claim.map_err(failed)?;
        match claim.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(BindError::UnixInUse { path: path.to_owned() });
            }
            Err(fs::TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        remove_stale(path)?;
        let at = sibling(path, "new");
        let listener = bind_for(users, path, &at)?;
        Ok(Self { path: path.to_owned(), at, listener, _claim: claim })
    }

    fn open(&mut self) -> Result<(), BindError> {
        fs::rename(&self.at, &self.path).map_err(|cause| failed(&self.path, cause))?;
        self.at.clone_from(&self.path);
        Ok(())
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.at);
    }
}

/// Why a socket cannot be made, by what the system says.
fn failed(path: &Path, cause: io::Error) -> BindError {
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = parent.unwrap_or_else(|| Path::new(".")).to_owned();
    match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if !dir.is_dir() => {
            BindError::NoDirectory { dir }
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            BindError::ClosedDirectory { dir, cause }
        }
        _ => BindError::Unix { path: path.to_owned(), cause },
    }
}

/// Removes a socket that a peer left behind: only if nobody answers on it.
fn remove_stale(path: &Path) -> Result<(), BindError> {
    let failed = |cause| failed(path, cause);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(BindError::NoSocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
        Ok(_) => Err(BindError::UnixInUse { path: path.to_owned() }),
    }
}

/// Made beside its place, where only those can open it who may: there is no moment in which others can.
fn bind_for(users: Users, path: &Path, draft: &Path) -> Result<UnixListener, BindError> {
    let failed = |cause| failed(path, cause);
    let _ = fs::remove_file(draft);
    let listener = UnixListener::bind(draft).map_err(failed)?;
    demand_signatures(&listener).map_err(failed)?;
    let mode = match users {
        Users::Own => 0o600,
        Users::Group(group) => {
            chown(draft, None, Some(group))
                .map_err(|_| BindError::NotInGroup { path: path.to_owned(), group })?;
            0o660
        }
        Users::All => 0o666,
    };
    fs::set_permissions(draft, fs::Permissions::from_mode(mode)).map_err(failed)?;
    Ok(listener)
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_socket_that_cannot_be_made_is_told_with_its_directory_and_the_cure() {
        let scratch = std::env::temp_dir();
        let words = |path: &Path, kind: io::ErrorKind| failed(path, kind.into()).to_string();
        let nowhere = words(&scratch.join("nowhere/at/all.sock"), io::ErrorKind::NotFound);
        assert!(
            nowhere.contains("nowhere/at\" of the socket does not exist: make it"),
            "{nowhere}"
        );
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let closed = words(&scratch.join("peer.sock"), kind);
            let dir = format!("{scratch:?} of the socket cannot be written to");
            assert!(closed.contains(&dir) && closed.contains("--socket"), "{closed}");
        }
        let other = words(&scratch.join("peer.sock"), io::ErrorKind::StorageFull);
        assert!(other.starts_with("cannot serve"), "{other}");
        let long = scratch.join("s".repeat(PATH_LEN_MAX));
        assert!(matches!(OwnSocket::bind(&long, Users::Own), Err(BindError::TooLong { .. })));
    }

    #[tokio::test]
    async fn a_socket_is_for_its_user_alone_unless_others_were_named() {
        let path = std::env::temp_dir().join(format!("sigmalock-users-{}", std::process::id()));
        let group = fs::metadata("/proc/self").unwrap().gid();
        for (users, mode) in
            [(Users::Own, 0o600), (Users::Group(group), 0o660), (Users::All, 0o666)]
        {
            let mut socket = OwnSocket::bind(&path, users).unwrap();
            assert!(!path.exists(), "nobody finds it yet");
            socket.open().unwrap();
            let meta = fs::symlink_metadata(&path).unwrap();
            assert_eq!((meta.mode() & 0o777, meta.gid()), (mode, group), "{users:?}");
            drop(socket);
            assert!(!path.exists() && !sibling(&path, "new").exists());
        }
        drop(OwnSocket::bind(&path, Users::Own).unwrap());
        assert!(!path.exists() && !sibling(&path, "new").exists());
        fs::remove_file(sibling(&path, "lock")).unwrap();
    }

    #[tokio::test]
    async fn the_longest_path_that_is_taken_can_be_served() {
        let stem = format!("{}-", std::process::id());
        let dir = std::env::temp_dir();
        let room = PATH_LEN_MAX - dir.as_os_str().len() - 1 - stem.len();
        let path = dir.join(stem + &"s".repeat(room));
        assert_eq!(path.as_os_str().len(), PATH_LEN_MAX);
        assert!(OwnSocket::bind(&path, Users::Own).unwrap().open().is_ok());
        fs::remove_file(sibling(&path, "lock")).unwrap();
    }
}
