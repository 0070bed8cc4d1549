//! Whose call is whose: the local sessions, and what each of them has under way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sigmalock_core::{CallId, LocalTime, LockReply, LockRequest, Refusal};

use crate::handle::CALLS_PER_SESSION_MAX;
use crate::purse::Purse;
use crate::replies::{Full, ReplySender};

/// The sessions of this peer and their calls. What the protocol answers is noted here at once, even if
/// the user gets to see it only later, so that a session that ends is ended as it is.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    sessions: BTreeMap<u64, Member>,
    calls: BTreeMap<CallId, Call>,
    last_call: u64,
    /// Calls that lost their lock and may still give it back, until then.
    lost: VecDeque<(LocalTime, CallId)>,
    held: usize,
    waiting: usize,
}

#[derive(Debug)]
struct Member {
    label: Arc<str>,
    purse: Arc<Purse>,
    replies: ReplySender,
    calls: BTreeMap<u64, CallId>,
    /// It was told to give back what it holds, and has nothing else to ask for.
    dismissed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    session: u64,
    number: u64,
    stage: Stage,
    /// The call that is to end this one, until it is answered.
    ended_by: Option<CallId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not asked yet: its hosts are being looked up.
    LookingUp,
    Waiting,
    Inside(LocalTime),
    Lost,
    /// A release or a cancellation of that call.
    Ending(CallId),
}

/// Who is to see a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addressee {
    session: u64,
    number: u64,
}

/// What is to become of something a session asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The protocol is asked, under this call.
    Ask(CallId, LockRequest),
    /// It is answered here and now.
    Answer(Addressee, LockReply),
    /// Nobody is there any more.
    Nothing,
}

impl Calls {
    /// How many sessions there are, how many locks they hold, and how many calls wait.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.sessions.len(), self.held, self.waiting)
    }

    /// Who made a call, in words.
    pub(crate) fn label(&self, call: CallId) -> Option<Arc<str>> {
        let session = self.calls.get(&call)?.session;
        Some(Arc::clone(&self.sessions.get(&session)?.label))
    }

    /// A call that belongs to no session.
    pub(crate) fn next_call(&mut self) -> CallId {
        self.last_call += 1;
        CallId(self.last_call)
    }

    pub(crate) fn open(
        &mut self, session: u64, label: Arc<str>, purse: Arc<Purse>, replies: ReplySender,
    ) {
        let member = Member { label, purse, replies, calls: BTreeMap::new(), dismissed: false };
        self.sessions.insert(session, member);
    }

    /// A new call of a session, not yet asked; `Err` is the answer if it cannot be.
    pub(crate) fn begin(
        &mut self, session: u64, number: u64,
    ) -> Result<CallId, Option<(Addressee, LockReply)>> {
        let addressee = Addressee { session, number };
        let member = self.sessions.get_mut(&session).filter(|member| !member.dismissed);
        let Some(member) = member else { return Err(None) };
        let refusal = if member.calls.contains_key(&number) {
            Refusal::DuplicateCall
        } else if member.calls.len() >= CALLS_PER_SESSION_MAX {
            Refusal::TooManyRequests { limit: CALLS_PER_SESSION_MAX }
        } else if let Err(refusal) = member.purse.begin_call() {
            refusal
        } else {
            self.last_call += 1;
            let id = CallId(self.last_call);
            member.calls.insert(number, id);
            let call = Call { session, number, stage: Stage::LookingUp, ended_by: None };
            self.calls.insert(id, call);
            self.waiting += 1;
            return Ok(id);
        };
        Err(Some((addressee, LockReply::Refused(refusal))))
    }

    /// The protocol is about to be asked. False if the user has gone or changed its mind.
    pub(crate) fn asked(&mut self, id: CallId) -> bool {
        let Some(call) = self.calls.get_mut(&id) else { return false };
        call.stage = Stage::Waiting;
        true
    }

    pub(crate) fn release(&mut self, session: u64, number: u64) -> Verdict {
        self.end(session, number, |stage| matches!(stage, Stage::Inside(_) | Stage::Lost))
    }

    pub(crate) fn cancel(&mut self, session: u64, number: u64) -> Verdict {
        let looking_up =
            self.find(session, number).filter(|(_, call)| call.stage == Stage::LookingUp);
        if let Some((id, _)) = looking_up {
            self.remove(id);
            return Verdict::Answer(Addressee { session, number }, LockReply::Cancelled);
        }
        self.end(session, number, |stage| stage == Stage::Waiting)
    }

    fn find(&self, session: u64, number: u64) -> Option<(CallId, Call)> {
        let id = *self.sessions.get(&session)?.calls.get(&number)?;
        self.calls.get(&id).map(|call| (id, *call))
    }

    fn end(&mut self, session: u64, number: u64, can: impl FnOnce(Stage) -> bool) -> Verdict {
        if !self.sessions.contains_key(&session) {
            return Verdict::Nothing;
        }
        let found = self
            .find(session, number)
            .filter(|(_, call)| call.ended_by.is_none() && can(call.stage));
        let Some((target, call)) = found else {
            let reply = LockReply::Refused(Refusal::UnknownCall);
            return Verdict::Answer(Addressee { session, number }, reply);
        };
        let id = self.next_call();
        let ending = Call { session, number, stage: Stage::Ending(target), ended_by: None };
        self.calls.insert(id, ending);
        if let Some(ended) = self.calls.get_mut(&target) {
            ended.ended_by = Some(id);
        }
        Verdict::Ask(id, end_request(target, call.stage))
    }

    /// What to ask so that nothing that a session holds is renewed, or all of it again.
    pub(crate) fn mute(&mut self, session: u64, mute: bool) -> Vec<(CallId, LockRequest)> {
        let calls =
            self.sessions.get(&session).into_iter().flat_map(|member| member.calls.values());
        let inside = |id: &&CallId| {
            self.calls.get(id).is_some_and(|call| matches!(call.stage, Stage::Inside(_)))
        };
        let held: Vec<CallId> = calls.filter(inside).copied().collect();
        let renew = |held| (self.next_call(), LockRequest::Renew { held, on: !mute });
        held.into_iter().map(renew).collect()
    }

    /// A session is over: what to ask so that nothing of it is left; or that what it holds ends with its lease.
    pub(crate) fn close(&mut self, session: u64, keep: bool) -> Vec<(CallId, LockRequest)> {
        let Some(member) = self.sessions.remove(&session) else { return Vec::new() };
        let mut wishes = Vec::new();
        for id in member.calls.into_values() {
            member.purse.end_call();
            let Some(call) = self.forget(id) else { continue };
            if call.stage != Stage::LookingUp && call.ended_by.is_none() {
                let request = match call.stage {
                    Stage::Inside(_) if keep => LockRequest::Renew { held: id, on: false },
                    Stage::Lost if keep => continue,
                    stage => end_request(id, stage),
                };
                wishes.push((self.next_call(), request));
            }
        }
        wishes
    }

    /// A session is to end: what to ask so that it waits for nothing and nothing it holds is renewed, and for which of its
    /// calls that is lost, and may be given back.
    pub(crate) fn dismiss(&mut self, session: u64) -> (Vec<(CallId, LockRequest)>, Vec<Addressee>) {
        let (mut wishes, mut lost) = (Vec::new(), Vec::new());
        let Some(member) = self.sessions.get_mut(&session) else { return (wishes, lost) };
        member.dismissed = true;
        let calls: Vec<_> = member.calls.iter().map(|(number, id)| (*number, *id)).collect();
        for (number, id) in calls {
            // Whatever is being ended already is answered as ever.
            let call = self.calls.get(&id).copied();
            let Some(Call { stage, ended_by: None, .. }) = call else { continue };
            match stage {
                Stage::LookingUp => self.remove(id),
                Stage::Waiting => {
                    self.remove(id);
                    wishes.push((self.next_call(), LockRequest::Cancel { call: id }));
                }
                Stage::Inside(_) => {
                    self.lose(id);
                    wishes.push((self.next_call(), LockRequest::Renew { held: id, on: false }));
                    lost.push(Addressee { session, number });
                }
                Stage::Lost | Stage::Ending(_) => {}
            }
        }
        (wishes, lost)
    }

    /// Whether a session has nothing under way.
    pub(crate) fn is_done(&self, session: u64) -> bool {
        self.sessions.get(&session).is_none_or(|member| member.calls.is_empty())
    }

    /// All sessions, to be closed.
    pub(crate) fn sessions(&self) -> Vec<u64> {
        self.sessions.keys().copied().collect()
    }

    /// The protocol has answered: who is to see it, if anybody.
    pub(crate) fn on_reply(&mut self, id: CallId, reply: LockReply) -> Option<Addressee> {
        let call = self.calls.get_mut(&id)?;
        let addressee = Addressee { session: call.session, number: call.number };
        match reply {
            LockReply::Granted { deadline, .. } => {
                call.stage = Stage::Inside(deadline);
                self.waiting -= 1;
                self.held += 1;
            }
            // What was lost stays lost.
            LockReply::Extended { .. } | LockReply::Lost if call.stage == Stage::Lost => {
                return None;
            }
            LockReply::Extended { deadline } => call.stage = Stage::Inside(deadline),
            LockReply::Queued { .. } => {}
            LockReply::Lost => self.lose(id),
            LockReply::Released
            | LockReply::Busy
            | LockReply::TimedOut
            | LockReply::Cancelled
            | LockReply::Refused(_) => self.over(id, reply),
        }
        Some(addressee)
    }

    fn lose(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(&id)
            && let Stage::Inside(deadline) = call.stage
        {
            call.stage = Stage::Lost;
            self.held -= 1;
            self.lost.push_back((deadline, id));
        }
    }

    /// The last word about a call.
    fn over(&mut self, id: CallId, reply: LockReply) {
        let Some(Call { stage: Stage::Ending(target), .. }) = self.calls.get(&id).copied() else {
            return self.remove(id);
        };
        self.calls.remove(&id);
        let Some(ended) = self.calls.get_mut(&target) else { return };
        ended.ended_by = None;
        if reply == LockReply::Released || ended.stage == Stage::Lost {
            self.remove(target);
        }
    }

    /// Forgets those whose lock was lost so long ago that there is nothing left to give back.
    pub(crate) fn prune(&mut self, now: LocalTime) {
        while self.lost.front().is_some_and(|(until, _)| *until <= now) {
            let Some((_, id)) = self.lost.pop_front() else { return };
            if self.calls.get(&id).is_some_and(|call| call.stage == Stage::Lost) {
                self.remove(id);
            }
        }
    }

    fn remove(&mut self, id: CallId) {
        if let Some(call) = self.forget(id)
            && let Some(member) = self.sessions.get_mut(&call.session)
        {
            member.calls.remove(&call.number);
            member.purse.end_call();
        }
    }

    fn forget(&mut self, id: CallId) -> Option<Call> {
        let call = self.calls.remove(&id)?;
        match call.stage {
            Stage::LookingUp | Stage::Waiting => self.waiting -= 1,
            Stage::Inside(_) => self.held -= 1,
            Stage::Lost | Stage::Ending(_) => {}
        }
        if let Some(ending) = call.ended_by {
            self.calls.remove(&ending);
        }
        Some(call)
    }

    /// Shows a reply to its user. Returns the sessions that must end, because their replies are not taken: where a user may have
    /// no more of them, it is the one of theirs that has left most.
    pub(crate) fn deliver(&self, addressee: Addressee, reply: LockReply) -> Vec<u64> {
        let Addressee { session, number } = addressee;
        let mut ending = Vec::new();
        let Some(member) = self.sessions.get(&session) else { return ending };
        while let Err(full) = member.replies.put(number, reply) {
            let of_user = |it: &&Member| Arc::ptr_eq(&it.purse, &member.purse);
            let theirs = self.sessions.iter().filter(|(_, it)| of_user(it));
            let most = theirs.max_by_key(|(_, it)| it.replies.count());
            let (worst, unread) = match (full, most) {
                (Full::User, Some((worst, it))) if it.replies.count() > 0 => (*worst, it),
                _ => (session, member),
            };
            // Who is ended takes no more, so this comes to an end.
            unread.replies.write_off();
            ending.push(worst);
        }
        ending
    }
}

fn end_request(target: CallId, stage: Stage) -> LockRequest {
    match stage {
        Stage::Inside(_) | Stage::Lost => LockRequest::Release { held: target },
        _ => LockRequest::Cancel { call: target },
    }
}
