//! How the two protocols inside are spoken to, and what becomes of what they want done.

use sigmalock_core::{CallId, Context, Effect, Input, Protocol};

use super::around::InView;
use super::{Agreed, Cx, Durable, DurableKey, Message, Mutant, Note, Timer};
use crate::sigma::Sigma;
use crate::views::{self, Views};

impl Agreed {
    /// Whether views do what is asked of them.
    pub(super) fn ask_views(&mut self, cx: Cx<'_, '_>, request: views::Request) -> bool {
        self.pass_views(cx, Input::Request { id: CallId(0), request }) == Some(views::Reply::Done)
    }

    pub(super) fn pass_views(
        &mut self, cx: Cx<'_, '_>, input: Input<Views>,
    ) -> Option<views::Reply> {
        let mut effects = core::mem::take(&mut self.from_views);
        self.views.handle(&mut cx.inner(&mut effects), input);
        let mut said = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist { key, value } => {
                    cx.persist(DurableKey::View(key), value.map(Durable::View));
                }
                Effect::Send { to, message } => cx.send(to, Message::Views(message)),
                Effect::SetTimer { timer, at } => cx.set_timer(Timer::Views(timer), at),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Views(timer)),
                Effect::Note(note) => cx.note(Note::Views(note)),
                Effect::Reply { reply, .. } => said = Some(reply),
            }
        }
        self.from_views = effects;
        self.follow(cx);
        said
    }

    pub(super) fn pass_locks(&mut self, cx: Cx<'_, '_>, input: Input<Sigma>) {
        let mut effects = core::mem::take(&mut self.from_locks);
        let now = cx.now();
        let mut around = InView {
            around: cx.surroundings(),
            views: &self.views,
            now,
            votes: self.since != 0 && self.votes_from <= now,
            votes_from: self.votes_from,
            unconfirmed: self.config.breaks(Mutant::GoesOnUnconfirmed),
        };
        self.locks.handle(&mut Context::new(now, &mut around, &mut effects), input);
        let view = self.view;
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
        self.settle(cx);
    }
}
