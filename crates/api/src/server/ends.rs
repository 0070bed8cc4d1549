//! What proves, when a session ends, that its client leaves nobody inside.
//!
//! What a session holds is given back at its end only if its client has ended its requests, or its process has ended. That a
//! connection was closed, cut or given up, or a stream reset, says nothing about the program behind it, which may be stopped,
//! slow, or at the other end of a tunnel, and be inside for as long as it was told. So whatever else ends a session, what it
//! holds ends with its lease.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame, SizeHint};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sigmalock_node::Session;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{Bytes, Context, Pin, Poll, Service};
use tonic::server::NamedService;
use tonic::{Request as Call, Status};

use super::connection::Caller;
use crate::v1;

/// A process that ends closes its sockets before it has ended. So long may that take.
const PROCESS_END_MAX: Duration = Duration::from_secs(1);
/// When it is looked at again for the first time; then ever more rarely.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What is known of the client of a session.
pub(super) struct Witness {
    goodbye: Goodbye,
    caller: Caller,
    /// The process that the client says it is, if nobody is inside when that has ended.
    process: Option<Pid>,
}

impl Witness {
    pub(super) fn new<T>(call: &Call<T>) -> Result<Self, Status> {
        let goodbye = call.extensions().get::<Goodbye>().cloned();
        let goodbye = goodbye.ok_or_else(|| Status::internal("a call that nobody listens to"))?;
        Ok(Self { goodbye, caller: Caller::of(call)?, process: None })
    }

    /// What the client says of itself.
    pub(super) fn hear(&mut self, open: &v1::Open) {
        let process = i32::try_from(open.process).ok().and_then(Pid::from_raw);
        self.process = process.filter(|_| !open.hold_if_cut);
    }

    /// Ends a session, and gives back what it holds if nobody can be inside. `stay` is kept until that is known.
    pub(super) fn end(&self, session: Session, stay: impl Send + 'static) {
        if self.goodbye.was_said() {
            return session.end();
        }
        // What made the connection may be a proxy.
        let process = self.process.filter(|process| self.caller.process() == Some(*process));
        let (Some(process), Ok(runtime)) = (process, Handle::try_current()) else { return };
        // It may be inside, but not for longer than it was told.
        session.renewals().mute(true);
        runtime.spawn(async move {
            if let Ok(true) = timeout(PROCESS_END_MAX, has_ended(process)).await {
                session.end();
            }
            drop(stay);
        });
    }
}

/// Waits until a process has ended; false if that cannot be known. Another one may get its number meanwhile: then it is taken for
/// alive. No descriptor is kept: there may be more sessions than the system lets this peer have.
async fn has_ended(process: Pid) -> bool {
    let mut pause = LOOK_AGAIN;
    loop {
        let look = pidfd_open(process, PidfdFlags::empty()).and_then(|process| {
            poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&Timespec::default()))
        });
        match look {
            Ok(0) => sleep(pause).await,
            // One that was waited for, or is to be.
            Err(Errno::SRCH) | Ok(_) => return true,
            Err(_) => return false,
        }
        pause *= 2;
    }
}

/// Whether a client has ended its requests. A stream that is reset ends as well, and looks the same to who reads messages.
#[derive(Debug, Clone, Default)]
struct Goodbye(Arc<AtomicBool>);

impl Goodbye {
    fn was_said(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A service whose calls know how their requests end.
#[derive(Debug, Clone)]
pub(super) struct Attentive<S>(pub(super) S);

impl<S: NamedService> NamedService for Attentive<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Attentive<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        let goodbye = Goodbye::default();
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(goodbye.clone());
        self.0.call(Request::from_parts(parts, Body::new(Requests { body, goodbye })))
    }
}

/// What a client says in a call.
struct Requests {
    body: Body,
    goodbye: Goodbye,
}

impl HttpBody for Requests {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() && self.body.is_end_stream() {
            self.goodbye.0.store(true, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::process::Command;

    use super::*;

    /// A stream on which nothing comes any more, because it was ended, or reset.
    struct Nothing {
        ended: bool,
    }

    impl HttpBody for Nothing {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>, _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(None)
        }

        fn is_end_stream(&self) -> bool {
            self.ended
        }
    }

    #[tokio::test]
    async fn a_stream_that_is_reset_is_no_goodbye() {
        for ended in [false, true] {
            let goodbye = Goodbye::default();
            let body = Body::new(Nothing { ended });
            let mut requests = Requests { body, goodbye: goodbye.clone() };
            let frame = poll_fn(|cx| Pin::new(&mut requests).poll_frame(cx)).await;
            assert!(frame.is_none());
            assert_eq!(goodbye.was_said(), ended);
        }
    }

    #[tokio::test]
    async fn a_process_has_ended_when_it_has_and_not_before() {
        let soon = Duration::from_millis(200);
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(timeout(soon, has_ended(pid)).await.is_err());
        drop(child.stdin.take());
        assert_eq!(
            timeout(soon, has_ended(pid)).await,
            Ok(true),
            "though nobody has waited for it"
        );
        child.wait().unwrap();
        assert_eq!(timeout(soon, has_ended(pid)).await, Ok(true));
        // The number of nobody, as far as the system will say.
        let nobody = Pid::from_raw(i32::MAX).unwrap();
        assert_eq!(timeout(soon, has_ended(nobody)).await, Ok(true));
    }
}
