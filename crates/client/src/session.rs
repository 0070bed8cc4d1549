//! One stream to the peer, shared by all calls of a client.
//!
//! ```text
//!   ask ──► Waiting ── Granted ──► Held ── release, drop ──► Leaving ── Released, Refused ──► gone
//!              │ dropped
//!              ▼
//!          Abandoned ── Cancelled, Busy, TimedOut, Refused ──► gone
//!              └─────── Granted (crossed the Cancel) ──► Leaving
//! ```
//!
//! Callers write to the stream's queue; one task reads answers and wakes who waits for them.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use sigmalock_api::v1::session_request::Kind as Ask;
use sigmalock_api::v1::session_response::Kind as Answer;
use sigmalock_api::v1::{self, SessionRequest, SessionResponse, locks_client::LocksClient};
use sigmalock_api::{API_VERSION, MESSAGE_LEN_MAX};
use tokio::sync::{mpsc, oneshot, watch};
use tonic::Streaming;
use tonic::codegen::tokio_stream::Stream;

use crate::connect::{CONNECT_TIMEOUT, Line};
use crate::demand::Demand;
use crate::error::{AcquireError, ConnectError, ReleaseError, reason};
use crate::guard::{Guard, Lease};
use crate::lock::{Mode, Position, millis};

/// So many calls of one client may be under way, held locks included; a peer may take fewer.
const CALLS_MAX: usize = 1 << 20;

/// A session with a peer. It ends when the last client, guard and waiting call of it is dropped, or the
/// connection breaks.
pub(crate) struct Session {
    asks: mpsc::UnboundedSender<SessionRequest>,
    calls: Mutex<Calls>,
    next_call: AtomicU64,
    opened: v1::Opened,
    /// Keeps the connection.
    _line: Line,
}

#[derive(Default)]
struct Calls {
    under_way: HashMap<u64, Call>,
    /// Why the session is over.
    ended: Option<String>,
}

enum Call {
    Waiting {
        name: String,
        answer: oneshot::Sender<Granted>,
        position: Option<watch::Sender<Position>>,
    },
    Abandoned,
    Held(Arc<Lease>),
    Leaving(Option<oneshot::Sender<Result<(), ReleaseError>>>),
}

type Granted = Result<Guard, AcquireError>;

/// How a session is opened.
pub(crate) struct Opening {
    pub(crate) label: String,
    pub(crate) hold_if_cut: bool,
    pub(crate) demand: Demand,
}

impl Session {
    /// Opens a session, and with it finds out whether both sides understand each other.
    pub(crate) async fn open(line: &Line, opening: &Opening) -> Result<Arc<Self>, ConnectError> {
        let unreachable =
            |reason| ConnectError::Unreachable { address: line.address.to_string(), reason };
        let slow = || unreachable(format!("it did not answer within {CONNECT_TIMEOUT:?}"));
        let greeting = tokio::time::timeout(CONNECT_TIMEOUT, Self::greet(line, opening));
        let (asks, opened, answers) = greeting.await.map_err(|_| slow())?.map_err(|status| {
            let reason = reason(&status);
            match status.code() {
                tonic::Code::Unavailable | tonic::Code::ResourceExhausted => unreachable(reason),
                _ => ConnectError::Incompatible { address: line.address.to_string(), reason },
            }
        })?;
        opening.demand.judge(&opened, &line.address)?;
        let session = Arc::new(Self {
            asks,
            calls: Mutex::default(),
            next_call: AtomicU64::new(1),
            opened,
            _line: line.clone(),
        });
        tokio::spawn(read(Arc::downgrade(&session), answers));
        Ok(session)
    }

    async fn greet(line: &Line, opening: &Opening) -> Result<Greeting, tonic::Status> {
        let (asks, queue) = mpsc::unbounded_channel();
        let open = v1::Open {
            label: opening.label.clone(),
            hold_if_cut: opening.hold_if_cut,
            process: std::process::id(),
            api_version: API_VERSION,
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let _ = asks.send(SessionRequest { kind: Some(Ask::Open(open)) });
        let mut client = LocksClient::new(line.channel.clone())
            .max_decoding_message_size(MESSAGE_LEN_MAX)
            .max_encoding_message_size(MESSAGE_LEN_MAX);
        let mut answers = client.session(Asks(queue)).await?.into_inner();
        match answers.message().await?.and_then(|first| first.kind) {
            Some(Answer::Opened(opened)) if opened.api_version == API_VERSION => {
                Ok((asks, opened, answers))
            }
            Some(Answer::Opened(opened)) => Err(tonic::Status::failed_precondition(format!(
                "it speaks version {} of the API, this client version {API_VERSION}",
                opened.api_version
            ))),
            _ => Err(tonic::Status::internal("it began a session without saying so")),
        }
    }

    /// Who holds what this session holds.
    pub(crate) fn holder(&self) -> &str {
        &self.opened.holder
    }

    /// The peer's greeting.
    pub(crate) fn opened(&self) -> &v1::Opened {
        &self.opened
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.calls().ended.is_some()
    }

    /// Asks for a lock.
    pub(crate) fn ask(
        self: &Arc<Self>, name: &str, mode: Mode, ttl: Option<Duration>,
        patience: v1::acquire::Patience, positions: bool,
    ) -> Result<Waiting, AcquireError> {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let (position, positions) =
            positions.then(|| watch::channel(Position { ahead: 0, wait: Duration::ZERO })).unzip();
        {
            let mut calls = self.calls();
            if let Some(reason) = calls.ended.clone() {
                return Err(AcquireError::Disconnected { reason });
            }
            if calls.under_way.len() >= CALLS_MAX {
                let text = format!(
                    "this client has {CALLS_MAX} calls under way, which is as many as it takes"
                );
                return Err(AcquireError::Refused { text });
            }
            calls.under_way.insert(call, Call::Waiting { name: name.to_owned(), answer, position });
        }
        let (mode, permits) = mode.shape();
        self.say(Ask::Acquire(v1::Acquire {
            call,
            name: name.to_owned(),
            mode: mode.into(),
            permits,
            ttl_ms: ttl.map_or(0, |ttl| u32::try_from(millis(ttl).max(1)).unwrap_or(u32::MAX)),
            patience: Some(patience),
        }));
        Ok(Waiting { session: Arc::clone(self), call, answered, positions })
    }

    /// Releases; the future tells how it went. The request is on its way when this returns.
    pub(crate) fn release(
        self: &Arc<Self>, call: u64,
    ) -> impl Future<Output = Result<(), ReleaseError>> + use<> {
        let (confirm, confirmed) = oneshot::channel();
        let outcome = self.leave(call, Some(confirm));
        // As long as the answer is awaited, the session is.
        let session = Arc::clone(self);
        async move {
            outcome?;
            let answer = confirmed.await;
            drop(session);
            answer.unwrap_or(Err(ReleaseError::Lost))
        }
    }

    /// Releases without waiting, if that has not been done.
    pub(crate) fn let_go(&self, call: u64) {
        let _ = self.leave(call, None);
    }

    fn leave(
        &self, call: u64, confirm: Option<oneshot::Sender<Result<(), ReleaseError>>>,
    ) -> Result<(), ReleaseError> {
        {
            let mut calls = self.calls();
            if let Some(reason) = calls.ended.clone() {
                return Err(ReleaseError::Disconnected { reason });
            }
            match calls.under_way.get_mut(&call) {
                Some(state @ Call::Held(_)) => *state = Call::Leaving(confirm),
                Some(_) => return Ok(()),
                None => return Err(ReleaseError::Lost),
            }
        }
        self.say(Ask::Release(v1::Release { call }));
        Ok(())
    }

    /// Nobody waits for this call any more.
    fn abandon(&self, call: u64) {
        match self.calls().under_way.get_mut(&call) {
            Some(state @ Call::Waiting { .. }) => *state = Call::Abandoned,
            _ => return,
        }
        self.say(Ask::Cancel(v1::Cancel { call }));
    }

    /// What cannot be said any more has no effect any more: the peer ends everything with the session.
    fn say(&self, ask: Ask) {
        let _ = self.asks.send(SessionRequest { kind: Some(ask) });
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(self: &Arc<Self>, answer: Answer) {
        match answer {
            Answer::Granted(granted) => self.on_granted(&granted),
            Answer::Extended(extended) => self.on_extended(&extended),
            Answer::Queued(queued) => self.on_queued(&queued),
            Answer::Lost(lost) => self.on_lost(lost),
            Answer::Released(v1::Released { call }) => self.on_released(call),
            Answer::Busy(v1::Busy { call }) => self.on_over(call, || AcquireError::Busy),
            Answer::TimedOut(v1::TimedOut { call }) => {
                self.on_over(call, || AcquireError::TimedOut { waited: Duration::ZERO });
            }
            Answer::Cancelled(v1::Cancelled { call }) => self.on_over(call, || {
                AcquireError::Refused { text: "the peer took the request back".to_owned() }
            }),
            Answer::Refused(refused) => self.on_over(refused.call, || match refused.code() {
                v1::RefusalCode::BadName => AcquireError::BadName { text: refused.text.clone() },
                v1::RefusalCode::OtherPermits => AcquireError::OtherPermits { of: refused.permits },
                _ => AcquireError::Refused { text: refused.text.clone() },
            }),
            Answer::Opened(_) => {}
        }
    }

    fn on_granted(self: &Arc<Self>, granted: &v1::Granted) {
        let mut calls = self.calls();
        let Some(state) = calls.under_way.get_mut(&granted.call) else { return };
        match std::mem::replace(state, Call::Leaving(None)) {
            Call::Waiting { name, answer, .. } => {
                let lease = Arc::new(Lease::new(granted.deadline_boottime_us));
                *state = Call::Held(Arc::clone(&lease));
                drop(calls);
                let guard = Guard::new(Arc::clone(self), lease, name, granted);
                // If nobody takes the guard, dropping it releases the lock.
                let _ = answer.send(Ok(guard));
            }
            Call::Abandoned => {
                drop(calls);
                self.say(Ask::Release(v1::Release { call: granted.call }));
            }
            other => *state = other,
        }
    }

    fn on_extended(&self, extended: &v1::Extended) {
        let lease = match self.calls().under_way.get(&extended.call) {
            Some(Call::Held(lease)) => Arc::clone(lease),
            _ => return,
        };
        if !lease.extend(extended.deadline_boottime_us) {
            self.let_go(extended.call);
        }
    }

    fn on_queued(&self, queued: &v1::Queued) {
        if let Some(Call::Waiting { position: Some(position), .. }) =
            self.calls().under_way.get(&queued.call)
        {
            let wait = Duration::from_millis(queued.wait_ms);
            position.send_replace(Position { ahead: queued.ahead, wait });
        }
    }

    /// The call stays: giving the lock back when its holder has stopped lets the next in sooner.
    fn on_lost(&self, lost: v1::Lost) {
        if let Some(Call::Held(lease)) = self.calls().under_way.get(&lost.call) {
            lease.end_because(lost.why);
        }
    }

    fn on_released(&self, call: u64) {
        let ended = self.calls().under_way.remove(&call);
        match ended {
            Some(Call::Leaving(Some(confirm))) => drop(confirm.send(Ok(()))),
            Some(Call::Held(lease)) => lease.end(),
            _ => {}
        }
    }

    /// The call is over, and the lock not held by it.
    fn on_over(&self, call: u64, why: impl FnOnce() -> AcquireError) {
        let ended = self.calls().under_way.remove(&call);
        match ended {
            Some(Call::Waiting { answer, .. }) => drop(answer.send(Err(why()))),
            Some(Call::Held(lease)) => lease.end(),
            Some(Call::Leaving(Some(confirm))) => drop(confirm.send(Err(ReleaseError::Lost))),
            _ => {}
        }
    }

    /// The connection is gone, and with it everything.
    fn end(&self, reason: &str) {
        let under_way = {
            let mut calls = self.calls();
            calls.ended.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut calls.under_way)
        };
        for (_, call) in under_way {
            let reason = reason.to_owned();
            match call {
                Call::Waiting { answer, .. } => {
                    drop(answer.send(Err(AcquireError::Disconnected { reason })));
                }
                Call::Held(lease) => lease.end(),
                Call::Leaving(Some(confirm)) => {
                    drop(confirm.send(Err(ReleaseError::Disconnected { reason })));
                }
                Call::Leaving(None) | Call::Abandoned => {}
            }
        }
    }
}

type Greeting = (mpsc::UnboundedSender<SessionRequest>, v1::Opened, Streaming<SessionResponse>);

/// Reads until the stream ends. It does not keep the session alive.
async fn read(session: Weak<Session>, mut answers: Streaming<SessionResponse>) {
    let why = loop {
        match answers.message().await {
            Ok(Some(SessionResponse { kind: Some(answer) })) => match session.upgrade() {
                Some(session) => session.hear(answer),
                None => return,
            },
            // From a newer peer, and not essential: the version says so.
            Ok(Some(_)) => {}
            Ok(None) => break "the peer ended the session".to_owned(),
            Err(status) => break reason(&status),
        }
    };
    if let Some(session) = session.upgrade() {
        session.end(&why);
    }
}

/// The queue of requests, as the stream that tonic wants.
struct Asks(mpsc::UnboundedReceiver<SessionRequest>);

impl Stream for Asks {
    type Item = SessionRequest;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionRequest>> {
        self.0.poll_recv(cx)
    }
}

/// A call that waits for its answer. Dropping it takes the request back.
pub(crate) struct Waiting {
    session: Arc<Session>,
    call: u64,
    answered: oneshot::Receiver<Granted>,
    positions: Option<watch::Receiver<Position>>,
}

impl Waiting {
    /// The next place in the queue; `None` when there is an answer.
    pub(crate) async fn position(&mut self) -> Option<Position> {
        let positions = self.positions.as_mut()?;
        positions.changed().await.ok()?;
        Some(*positions.borrow_and_update())
    }

    pub(crate) async fn answer(&mut self) -> Granted {
        (&mut self.answered).await.unwrap_or_else(|_| {
            Err(AcquireError::Disconnected { reason: "the session is over".to_owned() })
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.session.abandon(self.call);
    }
}
