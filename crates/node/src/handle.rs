//! What the rest of the program sees of a peer: a [`Handle`] to ask about it, and [`Session`]s that
//! hold locks.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use sigmalock_core::{Acquire, LockReply, Name, PeerId, Refusal, Span};
use tokio::sync::{mpsc, oneshot};

use crate::config::ProtocolName;
use crate::control::{Answer, Question};
use crate::link;
use crate::names::{Book, Names};
use crate::purse::{Allowance, Asked, Purse};
use crate::replies::{Replies, ReplySender};
use crate::report::{ForgetError, PeerReport, StatusReport};

/// Sessions that a peer has at once.
pub const SESSIONS_MAX: usize = 65_536;
/// Calls that a session has under way, locks it holds included.
pub const CALLS_PER_SESSION_MAX: usize = 131_072;
/// What all sessions together may have asked that the driver has not looked at yet.
pub const COMMANDS_MAX: usize = 262_144;
/// Replies that wait for a session to take them; a session that lets one more come is ended.
pub const REPLIES_MAX: usize = 262_144;

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
    /// It is over. What it holds is given back; or kept, so that it ends with its lease.
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
    /// End all sessions, but let them give back first what they hold.
    Dismiss(oneshot::Sender<()>),
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
        let replies = Arc::new(Replies::new(Arc::clone(&purse)));
        let session = Session {
            id,
            shared: Arc::clone(shared),
            replies: Arc::clone(&replies),
            purse: Arc::clone(&purse),
            keep: true,
        };
        let replies = ReplySender(replies);
        match shared.send(Local::Open { session: id, label: label.into(), purse, replies }) {
            true => Ok(session),
            false => Err(SessionError::Closed),
        }
    }

    /// Ends all sessions that there are: each is told that what it holds is lost, has a moment to give that back, and ends when
    /// it has. What was not given back by then ends with its lease.
    pub async fn dismiss(&self) {
        let (done, is_done) = oneshot::channel();
        self.shared.send(Local::Dismiss(done));
        // An error is a peer that has stopped, and with it all sessions.
        let _ = is_done.await;
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

/// A local session. When it is dropped, whatever it waits for is cancelled, and whatever it holds ends with its lease: nothing
/// is given back but by [`Session::release`] and [`Session::end`].
#[derive(Debug)]
pub struct Session {
    id: u64,
    shared: Arc<Shared>,
    replies: Arc<Replies>,
    purse: Arc<Purse>,
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

    /// Ends the session of a client that leaves nobody inside: what it waits for is cancelled, what it holds given back.
    pub fn end(mut self) {
        self.keep = false;
    }

    fn ask(&self, call: u64, local: Local) -> Result<(), Closed> {
        if self.shared.waiting.load(Relaxed) >= COMMANDS_MAX {
            let refusal = Refusal::TooManyRequests { limit: COMMANDS_MAX };
            return self.replies.put(call, LockReply::Refused(refusal)).map_err(|_| Closed);
        }
        if self.shared.send(local) { Ok(()) } else { Err(Closed) }
    }

    /// The next reply, with the number of its call. `None` when the peer has stopped, or has ended this
    /// session because its replies were not taken ([`Session::was_not_read`]).
    pub async fn next(&mut self) -> Option<(u64, LockReply)> {
        poll_fn(|cx| self.replies.poll_take(cx)).await
    }

    /// Whether the peer has ended this session because its replies were not taken.
    #[must_use]
    pub fn was_not_read(&self) -> bool {
        self.replies.were_not_taken()
    }

    /// The next reply, if it is there already.
    pub fn try_next(&mut self) -> Option<(u64, LockReply)> {
        self.replies.take()
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
        self.replies.discard();
        self.shared.send(Local::Close { session: self.id, keep: self.keep });
        self.shared.sessions.fetch_sub(1, Relaxed);
    }
}
