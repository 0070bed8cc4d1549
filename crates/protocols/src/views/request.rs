//! What a peer may be asked for by its own program, and what it answers.

use alloc::collections::BTreeSet;

use sigmalock_core::{CallId, ForgetRefusal, MemberRequest, PeerId};

use super::roster::Roster;
use super::{Cx, Views};
use crate::parts::Rules;

/// What a peer may ask of its share of the views.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    /// Be the first of a new swarm.
    Found,
    /// Make a swarm together with others that are in none, or be added to the one that they are in.
    Expect {
        /// How many hosts begin together, this one included.
        hosts: u16,
    },
    /// Be added to the swarm of whoever can be reached.
    Join,
    /// This peer, the newcomer of that view, knows what the others promised.
    Settled {
        /// The view.
        view: u64,
    },
    /// Go on without these members: an operator's last resort. Answered when those who are left have been
    /// asked.
    Forget {
        /// All who are gone.
        gone: BTreeSet<PeerId>,
        /// Whether the operator vouches for what nobody who is left can know: that the gone, of whom there
        /// are enough to have done so, have not gone on without this peer.
        unverified: bool,
    },
    /// Others have met a peer with this one's identity that is not this one: its disk is not the only one.
    Disown,
}

/// What it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reply {
    /// It is done, or under way.
    Done,
    /// It makes no sense now: this peer is in a swarm already, or not the newcomer of that view.
    Refused,
    /// Nobody is forgotten, for this reason.
    Remembered(ForgetRefusal),
}

impl<R: Rules> Views<R> {
    /// What is asked, answered at once or later.
    pub(super) fn on_request(&mut self, cx: Cx<'_, '_, R>, id: CallId, request: Request) {
        let reply = match request {
            Request::Found if self.may_found() => {
                self.wants_in = true;
                let (badge, origin) = (self.badge(cx), cx.random());
                self.install(cx, Roster::founded_by(self.me, badge, origin));
                Reply::Done
            }
            Request::Expect { hosts } => {
                self.expect(cx, hosts);
                Reply::Done
            }
            Request::Join => {
                (self.wants_in, self.leaving) = (true, false);
                self.wishes.withdraw(self.me);
                self.look(cx);
                Reply::Done
            }
            Request::Settled { view } if self.is_newcomer(view) => {
                self.settled = true;
                self.tell_all(cx);
                self.consider(cx);
                Reply::Done
            }
            Request::Forget { gone, unverified } => {
                return self.on_forget(cx, id, gone, unverified);
            }
            Request::Disown => {
                if self.badge.is_some() {
                    self.disown(cx);
                }
                Reply::Done
            }
            Request::Found | Request::Settled { .. } => Reply::Refused,
        };
        cx.reply(id, reply);
    }
}

impl From<MemberRequest> for Request {
    fn from(wish: MemberRequest) -> Self {
        match wish {
            MemberRequest::Forget { gone, unverified } => Self::Forget { gone, unverified },
            MemberRequest::Disown => Self::Disown,
        }
    }
}
