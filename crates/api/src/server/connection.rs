//! A client's connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::Pid;
use sigmalock_core::LocalTime;
use sigmalock_node::clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};
use tonic::transport::server::Connected;
use tonic::{Request, Status};

use super::authority::Authority;
use super::room::{Account, Room, Who};
use super::signed::SignedStream;
use super::{Activity, FIRST_WORD_TIMEOUT, IDLE_MAX};

/// How many bytes an HTTP/2 client says before anything else.
const PREFACE_LEN: usize = 24;

/// Who a client is, as far as its connection tells.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// The process that connected, as this machine counts them.
    pub(super) pid: Option<i32>,
    pub(super) heard: Heard,
    pub(super) account: Arc<Account>,
    /// What it is doing, so that who does nothing can be told.
    pub(super) activity: Arc<Activity>,
    mixed: Arc<AtomicBool>,
    /// Whether another process than the one that connected has written, too.
    passed_on: Arc<AtomicBool>,
}

impl Caller {
    pub(super) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        let caller = request.extensions().get::<Self>().cloned();
        caller.ok_or_else(|| Status::internal("a client without a connection"))
    }

    pub(super) fn who(&self) -> Who {
        self.account.who
    }

    /// The process whose connection this is, and nobody else's, as far as the system tells: at a Unix socket only, and only where
    /// this peer can see it.
    pub(super) fn process(&self) -> Option<Pid> {
        let pid = self.pid.and_then(Pid::from_raw);
        pid.filter(|_| !self.passed_on.load(Ordering::Relaxed))
    }

    /// Whether anybody but the user who connected has written on this connection, or may have.
    pub(super) fn is_mixed(&self) -> bool {
        self.mixed.load(Ordering::Relaxed)
    }
}

/// When a client was last heard, be it to close the connection.
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

/// A connection that counts among those there is room for, and is cut if it says nothing, or wants nothing.
pub(super) struct Connection {
    wire: Wire,
    caller: Caller,
    /// How much of its first word has been heard.
    heard_len: usize,
    /// When to see whether it has said that, or wants anything.
    look: Pin<Box<Sleep>>,
    authority: Authority,
    _room: Room,
}

pub(super) enum Wire {
    Unix(SignedStream),
    Tcp(TcpStream),
}

impl Connection {
    pub(super) fn new(wire: Wire, pid: Option<i32>, room: Room) -> Self {
        let activity = Arc::new(Activity::default());
        activity.touch();
        let account = Arc::clone(&room.account);
        let (mixed, passed_on) = Default::default();
        let caller = Caller { pid, heard: Heard::now(), account, activity, mixed, passed_on };
        let look = Box::pin(sleep(FIRST_WORD_TIMEOUT));
        Self { wire, caller, heard_len: 0, look, authority: Authority::new(), _room: room }
    }

    fn poll_wire(
        &mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = match &mut self.wire {
            Wire::Tcp(stream) => return Pin::new(stream).poll_read(cx, buffer),
            Wire::Unix(stream) => stream,
        };
        let before = buffer.filled().len();
        let read = stream.poll_read(cx, buffer);
        let news = &mut buffer.filled_mut()[before..];
        read.map_ok(|writer| {
            self.authority.mend(news);
            if news.is_empty() {
                return;
            }
            if writer.map(|writer| Who::User(writer.uid())) != Some(self.caller.who()) {
                self.caller.mixed.store(true, Ordering::Relaxed);
            }
            if writer.map(|writer| writer.pid()) != self.caller.pid {
                self.caller.passed_on.store(true, Ordering::Relaxed);
            }
        })
    }

    /// Whether it has had its time.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        while self.look.as_mut().poll(cx).is_ready() {
            if self.heard_len < PREFACE_LEN {
                return true;
            }
            let left = match self.caller.activity.idle_for() {
                None => IDLE_MAX,
                Some(idle) => IDLE_MAX.saturating_sub(idle),
            };
            if left.is_zero() {
                return true;
            }
            self.look.as_mut().reset(Instant::now() + left);
        }
        false
    }

    fn writer(&mut self) -> Pin<&mut dyn Write> {
        match &mut self.wire {
            Wire::Unix(signed) => Pin::new(&mut signed.stream),
            Wire::Tcp(stream) => Pin::new(stream),
        }
    }
}

trait Write: AsyncWrite + Unpin {}
impl<T: AsyncWrite + Unpin> Write for T {}

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
        let read = self.poll_wire(cx, buffer);
        let len = buffer.filled().len() - before;
        if read.is_ready() {
            self.caller.heard.again();
            self.heard_len = self.heard_len.saturating_add(len);
        }
        if read.is_pending() && self.is_over(cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writer().poll_write(cx, bytes)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writer().poll_write_vectored(cx, parts)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer().poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer().poll_shutdown(cx)
    }
}
