//! How a driver comes to an orderly end.

use sigmalock_core::{Input, Span};
use sigmalock_protocols::parts::Placement;

use super::{Driver, Exit, Live};
use crate::link::{Command, Role};

/// So long does a leaving peer wait for others to take over.
const LEAVE_TIMEOUT: Span = Span::from_secs(5);

impl<P: Live> Driver<P> {
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
        let alone = !self.peers.iter().any(|(_, peer)| peer.info.role == Role::Host);
        let over = self.now.since(since) >= LEAVE_TIMEOUT;
        over || (self.output.is_idle() && (alone || self.protocol.may_go()))
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
