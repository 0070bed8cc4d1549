//! The connection to a peer.

use std::io;
use std::path::Path;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tonic::transport::{Channel, Endpoint, Uri};

use crate::error::{ConnectError, PlaceError, innermost};
use crate::place::Address;
use crate::trust;

/// How long a connection may take to come about, handshake of the session included.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How much may be on its way before the reader has taken it: enough for thousands of calls at once.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The HTTP library also bounds by this how many small frames may wait to be read; a session that was not read for a while
/// must not end for that.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// A channel to a peer.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) address: Address,
    pub(crate) channel: Channel,
}

impl Line {
    /// Connects. There are no keep-alive pings: a peer on this machine cannot be gone without its socket closing.
    pub(crate) async fn open(address: &Address) -> Result<Self, ConnectError> {
        if let Address::Unix(path) = address {
            match trust::judge(path) {
                // Told in better words below.
                Err(PlaceError::Io { .. }) | Ok(_) => {}
                Err(untrusted) => return Err(untrusted.into()),
            }
        }
        let connector = {
            let address = address.clone();
            tower::service_fn(move |_: Uri| dial(address.clone()))
        };
        // The name is for the header that HTTP wants; the connector knows where to go.
        let endpoint = Endpoint::from_static("http://peer.sigmalock")
            .connect_timeout(CONNECT_TIMEOUT)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let channel = endpoint.connect_with_connector(connector).await.map_err(|error| {
            let reason = obstacle(address, &error).unwrap_or_else(|| innermost(&error));
            ConnectError::Unreachable { address: address.to_string(), reason }
        })?;
        Ok(Self { address: address.clone(), channel })
    }
}

/// What stands against a socket that cannot be used, if the system's own words say less.
fn obstacle(address: &Address, error: &tonic::transport::Error) -> Option<String> {
    let Address::Unix(path) = address else { return None };
    let kind = |error: &io::Error| error.kind();
    match path.symlink_metadata().as_ref().map_err(kind) {
        Ok(_) if innermost_kind(error) == Some(io::ErrorKind::PermissionDenied) => {
            let who = "`--users` of `sigmalock node` says who may";
            Some(format!("permission denied: this user may not use that socket; {who}"))
        }
        Ok(_) => None,
        Err(io::ErrorKind::PermissionDenied) => {
            let closed = path.ancestors().skip(1).find(|dir| dir.symlink_metadata().is_ok())?;
            Some(format!(
                "permission denied: this user may not look into {closed:?}, so nobody knows whether it is there"
            ))
        }
        Err(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            Some(match dir.filter(|dir| !dir.is_dir()) {
                Some(dir) => {
                    format!(
                        "there is no directory {dir:?}; start a peer, or name the socket of one"
                    )
                }
                None => {
                    "there is no such socket; start a peer, or name the socket of one".to_owned()
                }
            })
        }
        Err(_) => None,
    }
}

/// What the system says of an error, at its bottom.
fn innermost_kind(error: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.filter_map(|error| error.downcast_ref::<io::Error>()).last().map(io::Error::kind)
}

/// What a connection reads and writes.
trait Wire: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Wire for T {}

/// Each time anew: what was so before may not be so any more.
async fn dial_unix(path: &Path) -> io::Result<UnixStream> {
    let trusted = trust::judge(path).map_err(|error| match error {
        PlaceError::Io { source, .. } => source,
        other => io::Error::other(other),
    })?;
    let stream = UnixStream::connect(path).await?;
    let uid = stream.peer_cred()?.uid();
    if !trusted.may_answer(uid) {
        let words = format!("whoever answers there is user {uid}, whose socket it is not");
        return Err(io::Error::other(words));
    }
    Ok(stream)
}

async fn dial(address: Address) -> io::Result<TokioIo<Box<dyn Wire>>> {
    let wire: Box<dyn Wire> = match address {
        Address::Unix(path) => Box::new(dial_unix(&path).await?),
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    };
    Ok(TokioIo::new(wire))
}
