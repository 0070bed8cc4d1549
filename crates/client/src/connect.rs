//! The connection to a peer.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tonic::transport::{Channel, Endpoint, Uri};

use crate::error::{ConnectError, innermost};
use crate::place::Address;

/// How long a connection may take to come about, handshake of the session included.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How much may be on its way before the reader has taken it: enough for thousands of calls at once.
const WINDOW_BYTES: u32 = 1 << 20;

/// A channel to a peer, and the socket below it.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) address: Address,
    pub(crate) channel: Channel,
    socket: Arc<AtomicI32>,
}

impl Line {
    /// Connects. There are no keep-alive pings: a child that inherits the socket cannot answer them, and a
    /// peer on this machine cannot be gone without its socket closing.
    pub(crate) async fn open(address: &Address, inheritable: bool) -> Result<Self, ConnectError> {
        let socket = Arc::new(AtomicI32::new(-1));
        let connector = {
            let (address, socket) = (address.clone(), Arc::clone(&socket));
            tower::service_fn(move |_: Uri| dial(address.clone(), inheritable, Arc::clone(&socket)))
        };
        // The name is for the header that HTTP wants; the connector knows where to go.
        let endpoint = Endpoint::from_static("http://peer.sigmalock")
            .connect_timeout(CONNECT_TIMEOUT)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES);
        let channel = endpoint.connect_with_connector(connector).await.map_err(|error| {
            let reason = absence(address).unwrap_or_else(|| innermost(&error));
            ConnectError::Unreachable { address: address.to_string(), reason }
        })?;
        Ok(Self { address: address.clone(), channel, socket })
    }

    /// The socket, as long as it is open.
    pub(crate) fn socket(&self) -> Option<RawFd> {
        Some(self.socket.load(Ordering::Acquire)).filter(|fd| *fd >= 0)
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

async fn dial(
    address: Address, inheritable: bool, socket: Arc<AtomicI32>,
) -> io::Result<TokioIo<Box<dyn Wire>>> {
    let note = |fd: &dyn AsFdAndRaw| -> io::Result<()> {
        if inheritable {
            rustix::io::fcntl_setfd(fd.as_fd(), rustix::io::FdFlags::empty())?;
        }
        socket.store(fd.as_raw_fd(), Ordering::Release);
        Ok(())
    };
    let wire: Box<dyn Wire> = match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            note(&stream)?;
            Box::new(stream)
        }
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            note(&stream)?;
            Box::new(stream)
        }
    };
    Ok(TokioIo::new(wire))
}

trait AsFdAndRaw: AsFd + AsRawFd {}
impl<T: AsFd + AsRawFd> AsFdAndRaw for T {}
