//! What the rest of the program sees of a peer: a [`Handle`] to ask about it, and [`Session`]s that
//! hold locks.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sigmalock_core::{Acquire, LockReply, Name, PeerId, Refusal, Span};
use tokio::sync::{mpsc, oneshot};

use crate::config::ProtocolName;
use crate::control::{Answer, Question};
use crate::link;
use crate::names::{Book, Names};
use crate::purse::{Allowance, Asked, Purse};
use crate::report::{ForgetError, PeerReport, StatusReport};

/// Sessions that a peer has at once.
pub const SESSIONS_MAX: usize = 65_536;
/// Calls that a session has under way, locks it holds included.
pub const CALLS_PER_SESSION_MAX: usize = 131_072;
/// What all sessions together may have asked that the driver has not looked at yet.
pub const COMMANDS_MAX: usize = 262_144;
/// Replies that wait for a session to take them; a session that lets one more come is ended.
pub const REPLIES_MAX: usize = 262_144;

/// Where the replies to a session go.
#[derive(Debug)]
pub(crate) struct ReplySender {
    replies: mpsc::Sender<(u64, LockReply)>,
    /// The session is ended because they were not taken.
    unread: Arc<AtomicBool>,
}

impl ReplySender {
    /// False if the session does not take its replies, and must end.
    pub(crate) fn send(&self, purse: &Purse, call: u64, reply: LockReply) -> bool {
        if !purse.begin_reply() {
            self.unread.store(true, Relaxed);
            return false;
        }
        let sent = self.replies.try_send((call, reply));
        if sent.is_err() {
            purse.end_replies(1);
        }
        let full = matches!(sent, Err(mpsc::error::TrySendError::Full(_)));
        self.unread.fetch_or(full, Relaxed);
        !full
    }
}

/// What local users and operators ask of the driver.
#[derive(Debug)]
pub(crate) enum Local {
    Open {
        session: u64,
        label: Arc<str>,
        purse: Arc<Purse>,
        replies: ReplySender,
    },
    Acquire {
        session: u64,
        call: u64,
        wish: Acquire,
        asked: Asked,
    },
    Release {
        session: u64,
        call: u64,
        asked: Asked,
    },
    Cancel {
        session: u64,
        call: u64,
        asked: Asked,
    },
    /// Its client does not answer, or does again: nothing it holds is renewed meanwhile.
    Mute {
        session: u64,
        mute: bool,
    },
    /// It is over; or its client is gone without a word, and what it holds ends with its lease.
    Close {
        session: u64,
        keep: bool,
    },
    /// The hosts of a name's replicas, in order.
    Hosts {
        name: Name,
        done: oneshot::Sender<Hosts>,
    },
    /// A question to a peer, this one included.
    Ask {
        peer: PeerId,
        question: Question,
        done: oneshot::Sender<Answer>,
    },
    Peers(oneshot::Sender<Vec<PeerReport>>),
    Status(oneshot::Sender<StatusReport>),
    /// Go on without some members.
    Forget {
        gone: BTreeSet<PeerId>,
        unverified: bool,
        done: oneshot::Sender<Result<(), ForgetError>>,
    },
    /// Hand everything over and stop.
    Leave,
}

/// Who votes on a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts {
    /// How many vote, and how many votes hold it.
    pub(crate) votes: (usize, usize),
    /// Each replica and its host, if there is one.
    pub(crate) seats: Vec<(u16, Option<PeerId>)>,
}

/// A peer, to whoever is in the same process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    commands: mpsc::UnboundedSender<Local>,
    /// How many of them the driver has not taken yet.
    pub(crate) waiting: Arc<AtomicUsize>,
    sessions: Arc<AtomicUsize>,
    last_session: AtomicU64,
    pub(crate) transport: mpsc::Sender<link::Command>,
    pub(crate) facts: Facts,
}

/// What does not change while a peer lives.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) me: PeerId,
    pub(crate) lease_max: Span,
    pub(crate) data: Option<String>,
    pub(crate) swarm: String,
    pub(crate) private: bool,
    pub(crate) protocol: ProtocolName,
    /// What peers are called. It grows and shrinks with what this one knows.
    pub(crate) names: Book,
}

/// The lease of those who do not ask for one.
pub const TTL_DEFAULT: Span = Span::from_secs(10);

/// Why there is no session. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The peer has stopped.
    #[error("this peer has stopped")]
    Closed,
    /// As many sessions as a peer takes; try again when some have ended.
    #[error("this peer has {SESSIONS_MAX} sessions, which is as many as it takes")]
    TooMany,
}

/// The peer has stopped, or has ended this session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this peer has stopped, or has ended this session")]
pub struct Closed;

impl Handle {
    /// A handle, and what the driver reads.
    pub(crate) fn new(
        transport: mpsc::Sender<link::Command>, facts: Facts,
    ) -> (Self, mpsc::UnboundedReceiver<Local>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        let shared = Shared {
            commands,
            waiting: Arc::default(),
            sessions: Arc::default(),
            last_session: AtomicU64::new(0),
            transport,
            facts,
        };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// A session: locks belong to it and end with it. The label says to people whose it is.
    pub fn open_session(&self, label: String) -> Result<Session, SessionError> {
        self.open_session_within(label, Arc::new(Purse::new(Allowance::ALL)))
    }

    /// As [`Handle::open_session`], for a user who has others, too.
    pub fn open_session_within(
        &self, label: String, purse: Arc<Purse>,
    ) -> Result<Session, SessionError> {
        let shared = &self.shared;
        if shared.sessions.fetch_add(1, Relaxed) >= SESSIONS_MAX {
            shared.sessions.fetch_sub(1, Relaxed);
            return Err(SessionError::TooMany);
        }
        let id = shared.last_session.fetch_add(1, Relaxed) + 1;
        let (replies, receiver) = mpsc::channel(REPLIES_MAX);
        let unread = Arc::new(AtomicBool::new(false));
        let replies = ReplySender { replies, unread: Arc::clone(&unread) };
        let session = Session {
            id,
            shared: Arc::clone(shared),
            replies: receiver,
            unread,
            purse: Arc::clone(&purse),
            refused: Mutex::new(VecDeque::new()),
            keep: false,
        };
        match shared.send(Local::Open { session: id, label: label.into(), purse, replies }) {
            true => Ok(session),
            false => Err(SessionError::Closed),
        }
    }

    /// How all peers that this one knows are called, as of now.
    #[must_use]
    pub fn names(&self) -> Names {
        self.shared.facts.names.read().clone()
    }
}

impl Shared {
    /// Hands something to the driver. False if that has stopped.
    pub(crate) fn send(&self, local: Local) -> bool {
        self.waiting.fetch_add(1, Relaxed);
        self.commands.send(local).is_ok()
    }
}

/// A local session. Whatever it holds is released, and whatever it waits for is cancelled, when it is
/// dropped.
#[derive(Debug)]
pub struct Session {
    id: u64,
    shared: Arc<Shared>,
    replies: mpsc::Receiver<(u64, LockReply)>,
    unread: Arc<AtomicBool>,
    purse: Arc<Purse>,
    /// Refusals of what the driver has no room to hear of.
    refused: Mutex<VecDeque<(u64, LockReply)>>,
    keep: bool,
}

impl Session {
    /// The lease of those who do not ask for one: [`TTL_DEFAULT`], or the swarm's longest if that is less.
    #[must_use]
    pub fn ttl_default(&self) -> Span {
        TTL_DEFAULT.min(self.shared.facts.lease_max)
    }

    /// Its number, unique in the life of this peer.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Whether there is room for what it may ask; if not, there will be when the driver has taken what was asked.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        self.purse.may_ask() && self.shared.waiting.load(Relaxed) < COMMANDS_MAX
    }

    /// Asks for a lock. `call` is the session's own number for it, which replies carry.
    pub fn acquire(&self, call: u64, wish: Acquire) -> Result<(), Closed> {
        let asked = Asked::new(&self.purse);
        self.ask(call, Local::Acquire { session: self.id, call, wish, asked })
    }

    /// Gives the lock back that `call` was granted. Answered, for the same number, by `Released` or
    /// `Refused`.
    pub fn release(&self, call: u64) -> Result<(), Closed> {
        let asked = Asked::new(&self.purse);
        self.ask(call, Local::Release { session: self.id, call, asked })
    }

    /// Stops waiting. Answered, for the same number, by `Cancelled`, or by `Refused` if it did not wait.
    pub fn cancel(&self, call: u64) -> Result<(), Closed> {
        let asked = Asked::new(&self.purse);
        self.ask(call, Local::Cancel { session: self.id, call, asked })
    }

    /// Its renewals, for whoever watches over its client.
    #[must_use]
    pub fn renewals(&self) -> Renewals {
        Renewals { session: self.id, shared: Arc::clone(&self.shared) }
    }

    /// Ends the session of a client that is gone without a word, and may have left somebody inside: what it waits for is
    /// cancelled, what it holds ends with its lease.
    pub fn desert(mut self) {
        self.keep = true;
    }

    fn ask(&self, call: u64, local: Local) -> Result<(), Closed> {
        if self.shared.waiting.load(Relaxed) >= COMMANDS_MAX {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.len() >= REPLIES_MAX || !self.purse.begin_reply() {
                return Err(Closed);
            }
            let refusal = Refusal::TooManyRequests { limit: COMMANDS_MAX };
            refused.push_back((call, LockReply::Refused(refusal)));
            return Ok(());
        }
        if self.shared.send(local) { Ok(()) } else { Err(Closed) }
    }

    /// The next reply, with the number of its call. `None` when the peer has stopped, or has ended this
    /// session because its replies were not taken ([`Session::was_not_read`]).
    pub async fn next(&mut self) -> Option<(u64, LockReply)> {
        if let Some(refusal) = self.pop_refused() {
            return Some(refusal);
        }
        let reply = self.replies.recv().await?;
        self.purse.end_replies(1);
        Some(reply)
    }

    /// Whether the peer has ended this session because its replies were not taken.
    #[must_use]
    pub fn was_not_read(&self) -> bool {
        self.unread.load(Relaxed)
    }

    /// The next reply, if it is there already.
    pub fn try_next(&mut self) -> Option<(u64, LockReply)> {
        if let Some(refusal) = self.pop_refused() {
            return Some(refusal);
        }
        let reply = self.replies.try_recv().ok()?;
        self.purse.end_replies(1);
        Some(reply)
    }

    fn pop_refused(&mut self) -> Option<(u64, LockReply)> {
        let refused = self.refused.get_mut().unwrap_or_else(PoisonError::into_inner);
        let refusal = refused.pop_front()?;
        self.purse.end_replies(1);
        Some(refusal)
    }
}

/// The renewals of a session, which may be stopped wherever the session itself is. It may outlive that.
#[derive(Debug)]
pub struct Renewals {
    session: u64,
    shared: Arc<Shared>,
}

impl Renewals {
    /// The client does not answer, or does again: as long as it does not, nothing that the session holds is renewed.
    pub fn mute(&self, mute: bool) {
        self.shared.send(Local::Mute { session: self.session, mute });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.replies.close();
        while self.try_next().is_some() {}
        self.shared.send(Local::Close { session: self.id, keep: self.keep });
        self.shared.sessions.fetch_sub(1, Relaxed);
    }
}
