//! A session: one long-lived stream with a peer, from its first byte to its last.
//!
//! One task per session: it shakes hands, asks the hub to be admitted, tells the driver, and then
//! reads, writes and watches the clock side by side until one of the three says how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures::{AsyncReadExt as _, AsyncWriteExt as _};
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId as NetworkId, Stream};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{MissedTickBehavior, sleep, timeout};

use super::contact::TWIN;
use super::handshake::{self, Code, Failure, Me, Side};
use super::injection::Delayed;
use super::limits::{
    HEARTBEAT_EVERY, LATE_MAX, READ_LEN, RECORDS_MAX, SILENCE_MAX, UNHEARD_MAX, WEIGH_MAX,
    WRITE_LEN,
};
use super::record::{Record, Remote};
use crate::clock;
use crate::config::FaultInjection;
use crate::link::{Event, Outbox, OutboxReader, Parting, PeerInfo, SessionId};
use crate::wire::{Frames, Kind, Splitter, WireError};

/// What a session tells the hub.
#[derive(Debug)]
pub(crate) enum Note {
    /// Both sides have proved who they are; may it begin?
    Shaken {
        /// On which connection.
        connection: ConnectionId,
        /// With whom.
        info: PeerInfo,
        /// Yes, or why not.
        reply: oneshot::Sender<Result<Admitted, (Code, String)>>,
    },
    /// There will be no session on this connection.
    Failed {
        /// On which connection.
        connection: ConnectionId,
        /// With whom.
        network: NetworkId,
        /// Why.
        failure: Failure,
    },
    /// Large packets do not arrive there, or from there, though small ones do.
    Clogged(NetworkId),
    /// The peer knows these.
    Peers(Vec<Record>),
    /// The peer no longer wants us, in words.
    Refused(NetworkId, String),
    /// The peer has news of us that people should know, in words.
    Warned(String),
    /// It is over.
    Ended {
        /// Which.
        session: SessionId,
        /// On which connection.
        connection: ConnectionId,
        /// With whom.
        network: NetworkId,
        /// How.
        parting: Parting,
    },
}

/// What a session gets when it may begin.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Its number.
    pub(crate) session: SessionId,
    /// What the hub wants of it.
    pub(crate) orders: mpsc::Receiver<Order>,
    /// What is sent first.
    pub(crate) first: Vec<u8>,
}

/// What the hub wants of a session. When the hub is gone, the session ends.
#[derive(Debug)]
pub(crate) enum Order {
    /// Send these frames.
    Send(Vec<u8>),
    /// Send what waits, say goodbye, and end.
    Goodbye,
    /// End.
    End(Parting),
}

/// A session to be.
pub(crate) struct Session {
    pub(crate) me: Arc<Me>,
    pub(crate) network: NetworkId,
    pub(crate) connection: ConnectionId,
    pub(crate) side: Side,
    /// Where we can be reached from over there.
    pub(crate) addresses: Vec<Multiaddr>,
    /// The other end of the connection.
    pub(crate) remote: Remote,
    pub(crate) notes: mpsc::Sender<Note>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) injection: Option<FaultInjection>,
}

impl Session {
    /// All of it.
    pub(crate) async fn run(self, mut stream: Stream) {
        let (network, connection) = (self.network, self.connection);
        let failure = match self.begin(&mut stream).await {
            Ok((info, admitted)) => return self.live(stream, info, admitted).await,
            Err(failure) => failure,
        };
        let _ = self.notes.send(Note::Failed { connection, network, failure }).await;
    }

    async fn begin(&self, stream: &mut Stream) -> Result<(PeerInfo, Admitted), Failure> {
        let shaken =
            handshake::shake(stream, &self.me, self.network, self.side, &self.addresses).await;
        let mut info = shaken?;
        self.remote.sort(&mut info);
        self.weigh(stream).await?;
        let (reply, answer) = oneshot::channel();
        let note = Note::Shaken { connection: self.connection, info: info.clone(), reply };
        let _ = self.notes.send(note).await;
        match answer.await {
            Ok(Ok(admitted)) => Ok((info, admitted)),
            Ok(Err((code, text))) => {
                handshake::refuse(stream, code, &text).await;
                Err(Failure::Refused(format!("{} was refused: {text}", self.network)))
            }
            Err(_) => Err(Failure::Io(std::io::ErrorKind::ConnectionAborted.into())),
        }
    }

    /// If large packets do not arrive, people are told before it is given up: they may after all, in smaller pieces.
    async fn weigh(&self, stream: &mut Stream) -> Result<(), Failure> {
        let weighing = timeout(WEIGH_MAX, handshake::weigh(stream, self.network));
        let slow = async {
            sleep(SILENCE_MAX).await;
            let _ = self.notes.send(Note::Clogged(self.network)).await;
            std::future::pending().await
        };
        tokio::select! {
            weighed = weighing => weighed.unwrap_or(Err(Failure::Clogged)),
            never = slow => never,
        }
    }

    async fn live(self, stream: Stream, info: PeerInfo, admitted: Admitted) {
        let Admitted { session, orders, first } = admitted;
        let peer = info.peer;
        let (outbox, frames) = Outbox::new();
        let _ = self.events.send(Event::Up { session, info: Box::new(info), outbox }).await;

        let pulse = Pulse::new();
        let (reader, writer) = stream.split();
        let gauge = frames.gauge();
        let writer = Writer { stream: writer, frames, orders, injection: self.injection };
        let parting = tokio::select! {
            parting = self.read(reader, session, peer, &pulse) => parting,
            parting = writer.run(first, &pulse) => parting,
            parting = watch(&pulse, gauge) => parting,
        };
        let (connection, network) = (self.connection, self.network);
        let _ = self.notes.send(Note::Ended { session, connection, network, parting }).await;
        let _ = self.events.send(Event::Down { session, peer, parting }).await;
    }

    /// Reads until there is nothing more to read.
    async fn read(
        &self, mut stream: impl futures::AsyncRead + Unpin, session: SessionId,
        peer: sigmalock_core::PeerId, pulse: &Pulse,
    ) -> Parting {
        let mut splitter = Splitter::default();
        loop {
            let arrived = match stream.read(splitter.space(READ_LEN)).await {
                Ok(0) | Err(_) => return Parting::Closed,
                Ok(arrived) => arrived,
            };
            if pulse.missed_ticks() {
                return Parting::Silent;
            }
            splitter.arrived(arrived);
            pulse.heard();
            loop {
                let (kind, body) = match splitter.next_frame() {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(error) => return self.nonsense(&error),
                };
                if matches!(kind, Kind::Messages | Kind::Query | Kind::Answer) {
                    let frame = Event::Frame { session, from: peer, kind, body: body.to_vec() };
                    if !pulse.while_busy(self.events.send(frame)).await {
                        return Parting::Closed;
                    }
                } else if let Some(parting) = self.own_frame(kind, body, pulse).await {
                    return parting;
                }
            }
            pulse.inside_frame(splitter.is_inside_frame());
        }
    }

    /// A frame of the transport's own kinds.
    async fn own_frame(&self, kind: Kind, body: &[u8], pulse: &Pulse) -> Option<Parting> {
        match kind {
            Kind::Heartbeat => match postcard::from_bytes(body) {
                Ok(heartbeat) => pulse.beat(&heartbeat),
                Err(_) => return Some(self.nonsense(&"a heartbeat that cannot be read")),
            },
            Kind::Peers => match postcard::from_bytes::<Vec<Record>>(body) {
                Ok(records) if records.len() <= RECORDS_MAX => {
                    let _ = self.notes.send(Note::Peers(records)).await;
                }
                _ => return Some(self.nonsense(&"a list of peers that cannot be read")),
            },
            Kind::Goodbye => return Some(Parting::Goodbye),
            Kind::Refusal => {
                let text = handshake::refused_by(self.network, body);
                if handshake::is_about_a_twin(body) {
                    let _ = self.events.send(Event::Twin).await;
                }
                let _ = self.notes.send(Note::Refused(self.network, text)).await;
                return Some(Parting::Closed);
            }
            Kind::Twin => {
                let text = format!("{} says of this peer: {TWIN}", self.network);
                let _ = self.notes.send(Note::Warned(text)).await;
            }
            kind => return Some(self.nonsense(&WireError::Kind(kind as u8))),
        }
        None
    }

    fn nonsense(&self, what: &dyn std::fmt::Display) -> Parting {
        tracing::warn!("the session with {} ends: it sent {what}", self.network);
        Parting::Nonsense
    }
}

/// I am alive, and hear you.
#[derive(Debug, Serialize, Deserialize)]
struct Heartbeat {
    /// The sender's clock.
    sent_us: u64,
    /// The latest clock of the other side that the sender has heard of; zero: none.
    heard_us: u64,
}

/// The signs of life of one session, in microseconds of this peer's clock.
struct Pulse {
    /// When the last bytes came.
    heard_at: AtomicU64,
    /// When the frame began that is not complete; zero: there is none.
    frame_since: AtomicU64,
    /// When this session last looked at the clock by itself.
    ticked_at: AtomicU64,
    /// The reader waits for the driver, and so hears nothing.
    busy: AtomicBool,
    /// The latest stamp in the other side's heartbeats.
    their_stamp: AtomicU64,
    /// The latest of our own stamps that the other side has confirmed.
    confirmed: AtomicU64,
    /// Time for a heartbeat.
    beat: Notify,
}

impl Pulse {
    fn new() -> Self {
        let now = clock::now().as_micros();
        Self {
            heard_at: now.into(),
            frame_since: 0.into(),
            ticked_at: now.into(),
            busy: false.into(),
            their_stamp: 0.into(),
            confirmed: now.into(),
            beat: Notify::new(),
        }
    }

    fn heard(&self) {
        self.heard_at.store(clock::now().as_micros(), Relaxed);
    }

    fn inside_frame(&self, inside: bool) {
        if !inside {
            self.frame_since.store(0, Relaxed);
        } else if self.frame_since.load(Relaxed) == 0 {
            self.frame_since.store(clock::now().as_micros(), Relaxed);
        }
    }

    fn beat(&self, heartbeat: &Heartbeat) {
        self.their_stamp.fetch_max(heartbeat.sent_us, Relaxed);
        self.confirmed.fetch_max(heartbeat.heard_us, Relaxed);
    }

    fn heartbeat(&self) -> Vec<u8> {
        let heartbeat = Heartbeat {
            sent_us: clock::now().as_micros(),
            heard_us: self.their_stamp.load(Relaxed),
        };
        let mut frames = Frames::new();
        let _ = frames.push(Kind::Heartbeat, &heartbeat);
        frames.take()
    }

    /// Whether this process did not run for a while: then what arrives may be old.
    fn missed_ticks(&self) -> bool {
        older(self.ticked_at.load(Relaxed), HEARTBEAT_EVERY + LATE_MAX)
    }

    /// Waits for the driver, and does not hold the time against the peer.
    async fn while_busy<T, E>(&self, wait: impl Future<Output = Result<T, E>>) -> bool {
        self.busy.store(true, Relaxed);
        let done = wait.await.is_ok();
        self.busy.store(false, Relaxed);
        self.heard();
        done
    }

    /// Whether the peer counts as gone.
    fn is_silent(&self) -> bool {
        let frame_since = self.frame_since.load(Relaxed);
        !self.busy.load(Relaxed)
            && (older(self.heard_at.load(Relaxed), SILENCE_MAX)
                || older(self.confirmed.load(Relaxed), UNHEARD_MAX)
                || (frame_since > 0 && older(frame_since, SILENCE_MAX)))
    }
}

fn older(stamp_us: u64, limit: Duration) -> bool {
    clock::now().as_micros().saturating_sub(stamp_us) > limit.as_micros() as u64
}

/// Looks at the clock, until there is something wrong.
async fn watch(pulse: &Pulse, gauge: crate::link::Gauge) -> Parting {
    let mut ticks = tokio::time::interval(HEARTBEAT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if pulse.missed_ticks() || pulse.is_silent() {
            return Parting::Silent;
        }
        if gauge.is_over() {
            tracing::warn!("a peer takes its messages too slowly; its session ends");
            return Parting::Closed;
        }
        pulse.ticked_at.store(clock::now().as_micros(), Relaxed);
        pulse.beat.notify_one();
    }
}

/// The writing half.
struct Writer<S> {
    stream: S,
    frames: OutboxReader,
    orders: mpsc::Receiver<Order>,
    injection: Option<FaultInjection>,
}

impl<S: futures::AsyncWrite + Unpin> Writer<S> {
    /// Writes all that waits, in one go, whenever something does.
    async fn run(mut self, first: Vec<u8>, pulse: &Pulse) -> Parting {
        let mut delayed = self.injection.map(Delayed::new);
        let mut batch = first;
        loop {
            if !batch.is_empty() && self.write(&batch).await.is_err() {
                return Parting::Closed;
            }
            batch = tokio::select! {
                biased;
                () = pulse.beat.notified() => pulse.heartbeat(),
                order = self.orders.recv() => match order {
                    Some(Order::Send(frames)) => frames,
                    Some(Order::End(parting)) => return parting,
                    Some(Order::Goodbye) => return self.goodbye().await,
                    None => return Parting::Closed,
                },
                late = async { delayed.as_mut()?.next_due().await }, if delayed.is_some() => {
                    late.unwrap_or_default()
                }
                frames = self.frames.next(), if !delayed.as_ref().is_some_and(Delayed::is_full) => match (frames, &mut delayed) {
                    (None, _) => return Parting::Closed,
                    (Some(frames), None) => self.gather(frames),
                    (Some(frames), Some(delayed)) => {
                        delayed.push(&frames);
                        Vec::new()
                    }
                },
            };
        }
    }

    /// More of what waits, up to a sensible length of one write.
    fn gather(&mut self, mut batch: Vec<u8>) -> Vec<u8> {
        while batch.len() < WRITE_LEN {
            match self.frames.try_next() {
                Some(more) => batch.extend_from_slice(&more),
                None => break,
            }
        }
        batch
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    async fn goodbye(&mut self) -> Parting {
        let mut batch = Vec::new();
        while let Some(more) = self.frames.try_next() {
            batch.extend_from_slice(&more);
        }
        batch.extend_from_slice(&crate::wire::frame(Kind::Goodbye, &[]));
        if self.write(&batch).await.is_err() || self.stream.close().await.is_err() {
            return Parting::Closed;
        }
        // Written is not yet sent: the other side hangs up when it has heard us.
        std::future::pending().await
    }
}
