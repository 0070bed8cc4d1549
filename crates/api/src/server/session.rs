//! A session, from its first word to its last.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sigmalock_core::{Acquire, LockReply, Mode, Name, Patience, Refusal, Span};
use sigmalock_node::handle::Renewals;
use sigmalock_node::{Session, clock};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::codegen::tokio_stream::Stream;
use tonic::{Status, Streaming};

use super::connection::Heard;
use super::ends::Witness;
use super::room::Stay;
use super::{Busy, PING_EVERY, Stage, reaches};
use crate::v1::session_request::Kind as Ask;
use crate::v1::session_response::Kind as Say;
use crate::v1::{self, RefusalCode, SessionRequest, SessionResponse};

/// How often to see whether one that was silent runs again.
const LOOK_EVERY: Duration = PING_EVERY;
/// A client that was not heard for so long, though it was pinged, may not run.
const SILENCE_MAX: Duration = PING_EVERY.saturating_mul(2);

/// What is said to those whose peer stops,
pub(super) const STOPPING: &str = "this peer is stopping";
/// and to those who do not read.
const UNREAD: &str =
    "the answers of this session were not read, and there were more of them than a peer keeps";

/// The answers of a session, as a stream. Whoever takes them also reads the requests, so that both are
/// one task, and a client that does not read is not read from. Dropping it ends the session; what becomes of what that holds is
/// up to its [`Witness`].
pub(super) struct SessionStream {
    requests: Streaming<SessionRequest>,
    /// `None` once the session is over.
    session: Option<Session>,
    /// What is to be said before anything from the node: at most one.
    first: Option<Say>,
    stage: watch::Receiver<Stage>,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    witness: Witness,
    /// Ends with the session.
    _watch: JoinSet<()>,
    stay: Option<(Busy, Stay)>,
}

/// Sees whether a client still runs. What a silent one holds is not renewed, also what it is granted meanwhile.
///
/// In a task of its own, because nobody asks for the answers of a client that does not take them: it would go unnoticed
/// there that it does not run, either.
async fn watch_over(heard: Heard, renewals: Renewals) {
    let mut mute = false;
    loop {
        let left = SILENCE_MAX.saturating_sub(heard.ago());
        let silent = left.is_zero();
        if silent || mute {
            renewals.mute(silent);
        }
        mute = silent;
        sleep(if silent { LOOK_EVERY } else { left }).await;
    }
}

impl SessionStream {
    pub(super) fn new(
        requests: Streaming<SessionRequest>, session: Session, opened: v1::Opened, heard: Heard,
        witness: Witness, stage: watch::Receiver<Stage>, stay: (Busy, Stay),
    ) -> Self {
        let first = Some(Say::Opened(opened));
        let stopped = Box::pin(reaches(stage.clone(), Stage::Stopped));
        let mut watch = JoinSet::new();
        watch.spawn(watch_over(heard, session.renewals()));
        let (session, stay) = (Some(session), Some(stay));
        Self { requests, session, first, stage, stopped, witness, _watch: watch, stay }
    }

    /// The next thing to say; `None`: the client has ended the session, or reset its stream.
    fn poll_say(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Say, Status>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let Some(session) = &mut self.session else { return Poll::Ready(None) };
        // Answers that are there already go out together, before the next request is looked at.
        if let Some((call, reply)) = session.try_next() {
            return Poll::Ready(Some(Ok(say(call, reply, *self.stage.borrow()))));
        }
        while session.may_ask()
            && let Poll::Ready(request) = Pin::new(&mut self.requests).poll_next(cx)
        {
            let refused = match request {
                None => return Poll::Ready(None),
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                Some(Ok(request)) => hear(session, request),
            };
            if let Err(refused) = refused {
                return Poll::Ready(Some(Ok(Say::Refused(refused))));
            }
        }
        if self.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(ended(false))));
        }
        // Its own future keeps nothing between two polls: what it waits for is in the session.
        let next = ready!(pin!(session.next()).poll(cx));
        if let Some((call, reply)) = next {
            return Poll::Ready(Some(Ok(say(call, reply, *self.stage.borrow()))));
        }
        Poll::Ready(Some(Err(ended(session.was_not_read()))))
    }

    fn end(&mut self) {
        if let Some(session) = self.session.take() {
            self.witness.end(session, self.stay.take());
        }
    }
}

/// Why the peer ended a session, and what becomes of what it held.
fn ended(unread: bool) -> Status {
    let words = |why| format!("{why}; everything that the session still held ends with its lease");
    if unread {
        return Status::resource_exhausted(words(UNREAD));
    }
    Status::unavailable(words(STOPPING))
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        self.end();
    }
}

impl Stream for SessionStream {
    type Item = Result<SessionResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let said = ready!(self.poll_say(cx));
        if !matches!(said, Some(Ok(_))) {
            self.end();
        }
        Poll::Ready(said.map(|said| said.map(|kind| SessionResponse { kind: Some(kind) })))
    }
}

/// Passes a request on, or says why not. A node that has stopped says so by itself.
fn hear(session: &Session, request: SessionRequest) -> Result<(), v1::Refused> {
    match request.kind {
        Some(Ask::Acquire(acquire)) => {
            let _ = session.acquire(acquire.call, wish(&acquire, session.ttl_default())?);
        }
        Some(Ask::Release(v1::Release { call })) => drop(session.release(call)),
        Some(Ask::Cancel(v1::Cancel { call })) => drop(session.cancel(call)),
        Some(Ask::Open(_)) => {
            return Err(refused(0, RefusalCode::UnknownRequest, "the session is open already"));
        }
        None => {
            let text = "this peer does not know such a request; it may be older than the client";
            return Err(refused(0, RefusalCode::UnknownRequest, text));
        }
    }
    Ok(())
}

fn wish(acquire: &v1::Acquire, ttl_default: Span) -> Result<Acquire, v1::Refused> {
    let call = acquire.call;
    let mode = match v1::Mode::try_from(acquire.mode) {
        Ok(v1::Mode::Unspecified | v1::Mode::Exclusive) => Mode::Exclusive,
        Ok(v1::Mode::Shared) => Mode::Shared,
        Ok(v1::Mode::Permit) => {
            Mode::Permit { of: u16::try_from(acquire.permits).unwrap_or(u16::MAX) }
        }
        Err(_) => {
            let text =
                format!("this peer knows no mode {}; ask for an exclusive lock", acquire.mode);
            return Err(refused(call, RefusalCode::BadMode, text));
        }
    };
    let name = Name::new(&acquire.name)
        .map_err(|error| refused(call, RefusalCode::BadName, error.to_string()))?;
    let ttl = match acquire.ttl_ms {
        0 => ttl_default,
        ms => Span::from_millis(ms.into()),
    };
    let patience = match acquire.patience {
        Some(v1::acquire::Patience::Now(_)) => Patience::Try,
        Some(v1::acquire::Patience::WaitMs(ms)) => Patience::For(Span::from_millis(ms)),
        Some(v1::acquire::Patience::Forever(_)) | None => Patience::Forever,
    };
    Ok(Acquire { name, mode, ttl, patience })
}

fn refused(call: u64, code: RefusalCode, text: impl Into<String>) -> v1::Refused {
    v1::Refused { call, code: code.into(), text: text.into(), permits: 0 }
}

fn say(call: u64, reply: LockReply, stage: Stage) -> Say {
    match reply {
        LockReply::Granted { token, deadline, slot } => Say::Granted(v1::Granted {
            slot: slot.map(u32::from),
            call,
            token: token.map_or(0, |token| token.0),
            deadline_boottime_us: deadline.as_micros(),
            remaining_ms: deadline.since(clock::now()).as_micros() / 1_000,
        }),
        LockReply::Extended { deadline } => Say::Extended(v1::Extended {
            call,
            deadline_boottime_us: deadline.as_micros(),
            remaining_ms: deadline.since(clock::now()).as_micros() / 1_000,
        }),
        LockReply::Queued { ahead, wait } => {
            Say::Queued(v1::Queued { call, ahead, wait_ms: wait.as_micros() / 1_000 })
        }
        LockReply::Lost => {
            let why = if stage > Stage::Serving { STOPPING } else { "" };
            Say::Lost(v1::Lost { call, why: why.to_owned() })
        }
        LockReply::Released => Say::Released(v1::Released { call }),
        LockReply::Busy => Say::Busy(v1::Busy { call }),
        LockReply::TimedOut => Say::TimedOut(v1::TimedOut { call }),
        LockReply::Cancelled => Say::Cancelled(v1::Cancelled { call }),
        LockReply::Refused(refusal) => {
            let permits = match refusal {
                Refusal::OtherPermits { of } => of.into(),
                _ => 0,
            };
            let refused = refused(call, code(refusal), refusal.to_string());
            Say::Refused(v1::Refused { permits, ..refused })
        }
    }
}

fn code(refusal: Refusal) -> RefusalCode {
    match refusal {
        Refusal::TtlTooShort { .. } | Refusal::TtlTooLong { .. } => RefusalCode::BadTtl,
        Refusal::TooManyRequests { .. } => RefusalCode::TooMany,
        Refusal::NoSuchMode { .. } | Refusal::BadPermits { .. } => RefusalCode::BadMode,
        Refusal::OtherPermits { .. } => RefusalCode::OtherPermits,
        Refusal::UnknownCall => RefusalCode::UnknownCall,
        Refusal::DuplicateCall => RefusalCode::DuplicateCall,
    }
}
