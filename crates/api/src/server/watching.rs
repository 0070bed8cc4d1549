//! The changes of a lock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sigmalock_core::Name;
use sigmalock_node::report::LockReport;
use sigmalock_node::{Handle, Watch};
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;

use super::room::Stay;
use super::{Busy, convert};
use crate::v1;

/// Looks again whenever the last picture was taken, until the client has enough or the peer stops.
pub(super) struct WatchStream {
    next: Pin<Box<dyn Future<Output = (LockReport, Watch)> + Send>>,
    handle: Handle,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    _stay: (Busy, Stay),
}

impl WatchStream {
    pub(super) fn new(
        handle: Handle, name: Name, stopped: impl Future<Output = ()> + Send + 'static,
        stay: (Busy, Stay),
    ) -> Self {
        let next = Box::pin(look(handle.watch(name)));
        Self { next, handle, stopped: Box::pin(stopped), _stay: stay }
    }
}

async fn look(mut watch: Watch) -> (LockReport, Watch) {
    (watch.next().await, watch)
}

impl Stream for WatchStream {
    type Item = Result<v1::Lock, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Status::unavailable("this peer is stopping"))));
        }
        let (report, watch) = ready!(self.next.as_mut().poll(cx));
        self.next = Box::pin(look(watch));
        Poll::Ready(Some(Ok(convert::lock(report, &self.handle.names()))))
    }
}
