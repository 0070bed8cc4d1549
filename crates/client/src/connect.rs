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
            let reason = absence(address).unwrap_or_else(|| innermost(&error));
            ConnectError::Unreachable { address: address.to_string(), reason }
        })?;
        Ok(Self { address: address.clone(), channel })
    }
}

/// What is not there that should be, if so.
fn absence(address: &Address) -> Option<String> {
    let Address::Unix(path) = address else { return None };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty())?;
    if !dir.exists() {
        return Some(format!(
            "there is no directory {dir:?}; start a peer, or name the socket of one"
        ));
    }
    let there = path.symlink_metadata().is_ok();
    (!there).then(|| "there is no such socket; start a peer, or name the socket of one".to_owned())
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
