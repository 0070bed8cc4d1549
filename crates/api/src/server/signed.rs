//! Reading from a Unix socket, and who wrote it.
//!
//! Who connected is not enough: a socket that a child inherited, or that was passed on, is written to by others. So the
//! system is asked to sign what is written (`SO_PASSCRED`), and never puts bytes of two processes into one read.

use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd as _;
use std::task::{Context, Poll, ready};

use nix::sys::socket::sockopt::PassCred;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg, setsockopt};
use tokio::io::{Interest, ReadBuf};
use tokio::net::{UnixListener, UnixStream};

/// So many bytes are read at a time.
const READ_LEN: usize = 16 << 10;

/// Has the system sign what is written on every connection to come; there is no moment in which it does not.
pub(super) fn demand_signatures(listener: &UnixListener) -> io::Result<()> {
    Ok(setsockopt(listener, PassCred, &true)?)
}

/// A connection on which everything is signed.
#[derive(Debug)]
pub(super) struct SignedStream {
    pub(super) stream: UnixStream,
    /// Where the system puts the signature; there is room for nothing else.
    control: Vec<u8>,
}

impl SignedStream {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, control: nix::cmsg_space!(UnixCredentials) }
    }

    /// Reads, and returns who wrote that; `None` if the system does not say, or if there is nothing to read.
    pub(super) fn poll_read(
        &mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Option<UnixCredentials>>> {
        let Self { stream, control } = self;
        loop {
            ready!(stream.poll_read_ready(cx))?;
            let room = buffer.initialize_unfilled_to(buffer.remaining().min(READ_LEN));
            let mut received = None;
            let tried = stream.try_io(Interest::READABLE, || {
                let (len, writer) = receive(stream, room, control)?;
                received = Some((len, writer));
                // Less than there was room for is all there is, and the system need not be asked again. (What another
                // process has written behind it is read when more comes, which the next ping sees to.)
                if len > 0 && len < room.len() {
                    Err(io::ErrorKind::WouldBlock.into())
                } else {
                    Ok(())
                }
            });
            match (received, tried) {
                (Some((len, writer)), _) => {
                    buffer.advance(len);
                    return Poll::Ready(Ok(writer));
                }
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                (None, _) => {}
            }
        }
    }
}

fn receive(
    stream: &UnixStream, room: &mut [u8], control: &mut Vec<u8>,
) -> io::Result<(usize, Option<UnixCredentials>)> {
    let mut parts = [IoSliceMut::new(room)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let received =
        recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(control.as_mut_slice()), flags)?;
    // An error is a message with descriptors in it, for which there is no room: nobody here has a use for them.
    let writer = received.cmsgs().ok().and_then(|mut messages| {
        messages.find_map(|message| match message {
            ControlMessageOwned::ScmCredentials(writer) => Some(writer),
            _ => None,
        })
    });
    Ok((received.bytes, writer))
}
