//! Replies on their way to a session: the driver puts them in, the session takes them out.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use sigmalock_core::LockReply;

use crate::handle::REPLIES_MAX;
use crate::purse::Purse;

/// The replies of a session that were not taken yet. Each counts among those of its user.
#[derive(Debug)]
pub(crate) struct Replies {
    purse: Arc<Purse>,
    tray: Mutex<Tray>,
}

#[derive(Debug, Default)]
struct Tray {
    waiting: VecDeque<(u64, LockReply)>,
    reader: Option<Waker>,
    end: Option<End>,
}

/// No more of them will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Over,
    /// Because too many were not taken. They are gone.
    Unread,
}

/// Why there is no room for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// This session has as many as a session may.
    Session,
    /// The sessions of its user have together.
    User,
}

impl Replies {
    pub(crate) fn new(purse: Arc<Purse>) -> Self {
        Self { purse, tray: Mutex::default() }
    }

    fn tray(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, if there is room.
    pub(crate) fn put(&self, call: u64, reply: LockReply) -> Result<(), Full> {
        let mut tray = self.tray();
        if tray.end.is_some() {
            return Ok(());
        }
        if tray.waiting.len() >= REPLIES_MAX {
            return Err(Full::Session);
        }
        if !self.purse.begin_reply() {
            return Err(Full::User);
        }
        tray.waiting.push_back((call, reply));
        let reader = tray.reader.take();
        drop(tray);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.tray().waiting.len()
    }

    /// The next, if it is there.
    pub(crate) fn take(&self) -> Option<(u64, LockReply)> {
        let reply = self.tray().waiting.pop_front()?;
        self.purse.end_replies(1);
        Some(reply)
    }

    /// The next; `None` when no more will come.
    pub(crate) fn poll_take(&self, cx: &Context<'_>) -> Poll<Option<(u64, LockReply)>> {
        if let Some(reply) = self.take() {
            return Poll::Ready(Some(reply));
        }
        let mut tray = self.tray();
        // One may have come between.
        if tray.waiting.is_empty() && tray.end.is_none() {
            tray.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        drop(tray);
        Poll::Ready(self.take())
    }

    /// No more will come; those that are there may be taken.
    fn close(&self) {
        self.finish(End::Over, false);
    }

    /// Nobody will take any more.
    pub(crate) fn discard(&self) {
        self.finish(End::Over, true);
    }

    /// The session is ended because they were not taken, and they are no burden to its user any more.
    pub(crate) fn write_off(&self) {
        self.finish(End::Unread, true);
    }

    pub(crate) fn were_not_taken(&self) -> bool {
        self.tray().end == Some(End::Unread)
    }

    fn finish(&self, end: End, discard: bool) {
        let mut tray = self.tray();
        tray.end.get_or_insert(end);
        let gone = if discard { std::mem::take(&mut tray.waiting) } else { VecDeque::new() };
        let reader = tray.reader.take();
        drop(tray);
        self.purse.end_replies(gone.len());
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// The driver's end of them. When it is dropped, no more will come.
#[derive(Debug)]
pub(crate) struct ReplySender(pub(crate) Arc<Replies>);

impl Deref for ReplySender {
    type Target = Replies;
    fn deref(&self) -> &Replies {
        &self.0
    }
}

impl Drop for ReplySender {
    fn drop(&mut self) {
        self.0.close();
    }
}
