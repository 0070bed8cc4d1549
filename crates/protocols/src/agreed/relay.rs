//! How the two protocols inside are spoken to, and what becomes of what they want done.

use sigmalock_core::{CallId, Context, Effect, Input, LockReply, Protocol, Refusal};

use super::around::InView;
use super::{Agreed, Cx, Durable, DurableKey, Message, Mutant, Note, Timer};
use crate::sigma::Sigma;
use crate::views::{self, Views};

/// The call under which this layer itself asks views for something.
const OWN: CallId = CallId(0);

impl Agreed {
    /// Asks views for something that is done at once, or not at all.
    pub(super) fn ask_views(&mut self, cx: Cx<'_, '_>, request: views::Request) {
        self.pass_views(cx, Input::Request { id: OWN, request });
    }

    pub(super) fn pass_views(&mut self, cx: Cx<'_, '_>, input: Input<Views>) {
        let mut effects = core::mem::take(&mut self.from_views);
        self.views.handle(&mut cx.inner(&mut effects), input);
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist { key, value } => {
                    cx.persist(DurableKey::View(key), value.map(Durable::View));
                }
                Effect::Send { to, message } => cx.send(to, Message::Views(message)),
                Effect::SetTimer { timer, at } => cx.set_timer(Timer::Views(timer), at),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Views(timer)),
                Effect::Note(note) => cx.note(Note::Views(note)),
                Effect::Reply { id: OWN, .. } => {}
                Effect::Reply { id, reply } => cx.reply(id, answer(reply)),
            }
        }
        self.from_views = effects;
        self.follow(cx);
    }

    pub(super) fn pass_locks(&mut self, cx: Cx<'_, '_>, input: Input<Sigma>) {
        let mut effects = core::mem::take(&mut self.from_locks);
        let now = cx.now();
        let mut around = InView {
            around: cx.surroundings(),
            views: &self.views,
            now,
            votes: self.since != 0 && self.votes_from <= now && self.vouched_for,
            votes_from: self.votes_from,
            unconfirmed: self.config.breaks(Mutant::GoesOnUnconfirmed),
        };
        self.locks.handle(&mut Context::new(now, &mut around, &mut effects), input);
        let view = self.view;
        let settles = self.settles();
        if settles && !self.config.breaks(Mutant::SettlesBeforeItWrites) {
            // What was taken on, and that this peer votes, is on disk before anybody hears of a vote: torn in
            // between, it would ask anew, and give to another what somebody counts already.
            effects.sort_by_key(|effect| !matches!(effect, Effect::Persist { .. }));
            let said = effects.partition_point(|effect| matches!(effect, Effect::Persist { .. }));
            for effect in effects.drain(..said) {
                if let Effect::Persist { key, value } = effect {
                    cx.persist(DurableKey::Locks(key), value.map(Durable::Locks));
                }
            }
            self.vote(cx);
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist { key, value } => {
                    cx.persist(DurableKey::Locks(key), value.map(Durable::Locks));
                }
                Effect::Send { to, message } => cx.send(to, Message::Locks { view, message }),
                Effect::SetTimer { timer, at } => cx.set_timer(Timer::Locks(timer), at),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Locks(timer)),
                Effect::Note(note) => cx.note(Note::Locks(note)),
                Effect::Reply { id, reply } => cx.reply(id, reply),
            }
        }
        self.from_locks = effects;
        if settles {
            self.on_settled(cx);
        }
    }
}

fn answer(reply: views::Reply) -> LockReply {
    match reply {
        views::Reply::Done => LockReply::Released,
        views::Reply::Remembered(refusal) => LockReply::Refused(refusal.into()),
        views::Reply::Refused => LockReply::Refused(Refusal::UnknownCall),
    }
}
