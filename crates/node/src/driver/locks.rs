//! What users want of locks, and what they are told: all that a driver does for this family of services alone.

use sigmalock_core::{Acquire, CallId, LockReply, LockRequest};
use sigmalock_protocols::parts::Ask;

use super::calls::Verdict;
use super::output::Seen;
use super::{Driver, Live};
use crate::handle::Local;

impl<P: Live> Driver<P> {
    pub(super) fn on_local(&mut self, local: Local) {
        match local {
            Local::Open { session, label, purse, replies } => {
                self.calls.open(session, label, purse, replies);
            }
            Local::Acquire { session, call, wish, asked } => {
                drop(asked);
                match self.calls.begin(session, call) {
                    Ok(id) => {
                        let n = self.votes.0;
                        match self.lookups.begin(id, wish, n, self.peers.len(), &self.transport) {
                            Some(wish) => self.ask_for(id, wish),
                            None => return,
                        }
                    }
                    Err(Some((addressee, reply))) => self.output.see(Seen::Reply(addressee, reply)),
                    Err(None) => {}
                }
            }
            Local::Release { session, call, asked } => {
                drop(asked);
                let verdict = self.calls.release(session, call);
                self.carry_out(verdict);
            }
            Local::Cancel { session, call, asked } => {
                drop(asked);
                let verdict = self.calls.cancel(session, call);
                self.carry_out(verdict);
            }
            Local::Mute { session, mute } => {
                let wishes = self.calls.mute(session, mute);
                self.ask_all(wishes);
            }
            Local::Close { session, keep } => self.close(session, keep),
            Local::Dismiss(done) => self.dismiss(done),
            Local::Leave => self.leave(),
            operator => self.on_operator(operator),
        }
        self.hear_self();
    }

    /// Asks whoever guards locks, as somebody does in every peer.
    pub(super) fn ask_lock(&mut self, id: CallId, request: LockRequest) {
        let served = self.ask(id, Ask::Lock(request));
        debug_assert!(served, "every peer guards locks");
    }

    fn ask_for(&mut self, id: CallId, wish: Acquire) {
        if self.calls.asked(id) {
            self.ask_lock(id, LockRequest::Acquire(wish));
        }
    }

    /// Asks for those locks whose hosts have been found.
    pub(super) fn ask_for_found(&mut self) {
        for (id, wish) in std::mem::take(&mut self.found) {
            let hosts = self.hosts(&wish.name);
            let hosts = hosts.seats.into_iter().filter_map(|(_, host)| host).collect();
            self.lookups.found(&wish.name, hosts);
            self.ask_for(id, wish);
            self.hear_self();
        }
    }

    pub(super) fn on_lock_reply(&mut self, id: CallId, reply: LockReply) {
        if let LockReply::Granted { .. } = reply {
            self.counters.grants += 1;
        }
        if let Some(addressee) = self.calls.on_reply(id, reply) {
            self.output.see(Seen::Reply(addressee, reply));
        } else if let Some(errand) = self.errands.remove(&id) {
            self.run_errand(errand, reply);
        }
    }

    fn carry_out(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Ask(id, request) => self.ask_lock(id, request),
            Verdict::Answer(addressee, reply) => self.output.see(Seen::Reply(addressee, reply)),
            Verdict::Nothing => {}
        }
    }

    pub(super) fn close(&mut self, session: u64, keep: bool) {
        let wishes = self.calls.close(session, keep);
        self.ask_all(wishes);
    }

    pub(super) fn ask_all(&mut self, wishes: Vec<(CallId, LockRequest)>) {
        for (id, request) in wishes {
            self.ask_lock(id, request);
            self.hear_self();
        }
    }
}
