//! How a driver comes to an orderly end.

use std::collections::BTreeSet;

use sigmalock_core::{Input, LocalTime, LockReply, Span};
use sigmalock_protocols::parts::Placement;
use tokio::sync::oneshot;

use super::output::Seen;
use super::{Driver, Exit, Live};
use crate::link::{Command, Role};

/// So long does a leaving peer wait for others to take over.
const LEAVE_TIMEOUT: Span = Span::from_secs(5);

/// So long do those have who are told that their locks are lost, because this peer ends: for `run` to end its command, with the
/// grace that it gives by default, and to say so.
const FAREWELL_MAX: Span = Span::from_millis(2_500);

/// So long does this peer stay when somebody has let go: whoever is let in then has a right that outlasts the next view.
const LET_IN: Span = Span::from_secs(2);

/// Sessions that are to end as soon as they hold nothing any more.
#[derive(Debug)]
pub(super) struct Farewell {
    sessions: BTreeSet<u64>,
    until: LocalTime,
    /// Whether any of them held something when they were told, and others are there to be let in.
    held: bool,
    /// It stays until then.
    stays_until: LocalTime,
    done: oneshot::Sender<()>,
}

impl<P: Live> Driver<P> {
    /// Tells all sessions that what they hold is lost, and ends each when it has given that back. This peer goes on as ever
    /// meanwhile, so that what is given back is the next one's at once.
    pub(super) fn dismiss(&mut self, done: oneshot::Sender<()>) {
        let sessions: BTreeSet<u64> = self.calls.sessions().into_iter().collect();
        // Alone it lets in nobody whose right would have to outlast it.
        let (alone, mut held) = (self.is_alone(), false);
        for &session in &sessions {
            let (wishes, lost) = self.calls.dismiss(session);
            self.ask_all(wishes);
            held |= !lost.is_empty() && !alone;
            for addressee in lost {
                self.output.see(Seen::Reply(addressee, LockReply::Lost));
            }
        }
        // Who has been told already has its time from then on.
        self.farewell = Some(match self.farewell.take() {
            Some(farewell) => Farewell { sessions, done, ..farewell },
            None => {
                let (until, stays_until) = (self.now + FAREWELL_MAX, self.now);
                Farewell { sessions, until, held, stays_until, done }
            }
        });
    }

    pub(super) fn farewell_until(&self) -> LocalTime {
        self.farewell.as_ref().map_or(LocalTime::NEVER, |farewell| {
            if farewell.sessions.is_empty() { farewell.stays_until } else { farewell.until }
        })
    }

    /// Ends the sessions that hold nothing any more, and all of them when their time is over.
    pub(super) fn see_off(&mut self) {
        let Some(mut farewell) = self.farewell.take() else { return };
        let over = self.now >= farewell.until;
        let before = farewell.sessions.len();
        let (calls, output) = (&self.calls, &mut self.output);
        farewell.sessions.retain(|session| {
            let ends = over || calls.is_done(*session);
            if ends {
                // Behind the last that it is told.
                output.see(Seen::Ended(*session));
            }
            !ends
        });
        if farewell.held && !over && farewell.sessions.len() < before {
            farewell.stays_until = self.now + LET_IN;
        }
        if farewell.sessions.is_empty() && self.now >= farewell.stays_until {
            self.output.see(Seen::Dismissed(farewell.done));
        } else {
            self.farewell = Some(farewell);
        }
    }

    /// Ends all sessions, and hands over what it hosts. What its users hold ends with its lease: whoever does not know yet may
    /// be inside for so long.
    pub(super) fn leave(&mut self) {
        if self.leaving_since.is_some() {
            return;
        }
        self.leaving_since = Some(self.now);
        for session in self.calls.sessions() {
            self.close(session, true);
        }
        self.announce_leaving();
        self.with_placement(Placement::leave);
        self.feed(Input::Leave);
    }

    pub(super) fn has_left(&self) -> bool {
        let Some(since) = self.leaving_since else { return false };
        let over = self.now.since(since) >= LEAVE_TIMEOUT;
        over || (self.output.is_idle() && (self.is_alone() || self.protocol.may_go()))
    }

    /// Whether no other host is there.
    fn is_alone(&self) -> bool {
        !self.peers.iter().any(|(_, peer)| peer.info.role == Role::Host)
    }

    /// Closes the store, says goodbye, and waits until that is said.
    pub(super) async fn part(mut self) -> Exit {
        if let Some(store) = self.output.close() {
            store.close().await;
        }
        let _ = self.transport.send(Command::Leave).await;
        while self.events.recv().await.is_some() {}
        Exit::Left
    }
}
