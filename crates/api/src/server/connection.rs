//! A client's connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use sigmalock_core::LocalTime;
use sigmalock_node::clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};
use tonic::transport::server::Connected;

use super::FIRST_WORD_TIMEOUT;

/// How many bytes an HTTP/2 client says before anything else.
const PREFACE_LEN: usize = 24;

/// The way a client came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Via {
    Unix,
    Tcp,
}

/// Who a client is, as far as its connection tells.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) via: Via,
    pub(super) heard: Heard,
}

/// When a client was last heard.
#[derive(Debug, Clone)]
pub(super) struct Heard(Arc<AtomicU64>);

impl Heard {
    fn now() -> Self {
        Self(Arc::new(AtomicU64::new(clock::now().as_micros())))
    }

    fn again(&self) {
        self.0.store(clock::now().as_micros(), Ordering::Relaxed);
    }

    /// How long ago.
    pub(super) fn ago(&self) -> Duration {
        let last = LocalTime::from_micros(self.0.load(Ordering::Relaxed));
        Duration::from_micros(clock::now().since(last).as_micros())
    }
}

/// A connection that counts among those there is room for, and is cut if it says nothing.
pub(super) struct Connection {
    wire: Wire,
    caller: Caller,
    silence: Option<Silence>,
    _permit: OwnedSemaphorePermit,
}

pub(super) enum Wire {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl From<UnixStream> for Wire {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}
impl From<TcpStream> for Wire {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

/// Until the first word is complete.
struct Silence {
    heard_len: usize,
    ends: Pin<Box<Sleep>>,
}

impl Connection {
    pub(super) fn new(wire: impl Into<Wire>, via: Via, permit: OwnedSemaphorePermit) -> Self {
        let silence = Silence { heard_len: 0, ends: Box::pin(sleep(FIRST_WORD_TIMEOUT)) };
        let caller = Caller { via, heard: Heard::now() };
        Self { wire: wire.into(), caller, silence: Some(silence), _permit: permit }
    }

    fn wire(&mut self) -> Pin<&mut dyn ReadWrite> {
        match &mut self.wire {
            Wire::Unix(stream) => Pin::new(stream),
            Wire::Tcp(stream) => Pin::new(stream),
        }
    }
}

trait ReadWrite: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> ReadWrite for T {}

impl Connected for Connection {
    type ConnectInfo = Caller;
    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.wire().poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.caller.heard.again();
        }
        if let Some(silence) = &mut self.silence {
            silence.heard_len += buffer.filled().len() - before;
            if silence.heard_len >= PREFACE_LEN {
                self.silence = None;
            } else if silence.ends.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.wire().poll_write(cx, bytes)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.wire().poll_write_vectored(cx, parts)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire().poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire().poll_shutdown(cx)
    }
}
