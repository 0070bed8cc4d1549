//! How the two protocols inside are spoken to, and what becomes of what they want done.

use alloc::boxed::Box;

use sigmalock_core::{CallId, Context, Effect, Input, MemberReply, Protocol};

use super::{Agreed, Cx, Durable, DurableKey, Message, Mutant, Note, OverViews, Reply, Timer};
use crate::parts::Rules;
use crate::views::{self, Views};

/// The call under which this layer itself asks views for something.
const OWN: CallId = CallId(0);

impl<P: OverViews, R: Rules> Agreed<P, R> {
    /// Asks views for something that is done at once, or not at all.
    pub(super) fn ask_views(&mut self, cx: Cx<'_, '_, P, R>, request: views::Request) {
        self.pass_views(cx, Input::Request { id: OWN, request });
    }

    pub(super) fn pass_views(&mut self, cx: Cx<'_, '_, P, R>, input: Input<Views<R>>) {
        let mut effects = core::mem::take(&mut self.from_views);
        let confirms =
            matches!(input, Input::Receive { message: views::Message::Confirmed { .. }, .. });
        self.views.handle(&mut cx.inner(&mut effects), input);
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist { key, value } => {
                    let value = value.map(|saved| Durable::View(Box::new(saved)));
                    cx.persist(DurableKey::View(key), value);
                }
                Effect::Send { to, message } => cx.send(to, Message::Views(message)),
                Effect::SetTimer { timer, at } => cx.set_timer(Timer::Views(timer), at),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Views(timer)),
                Effect::Note(note) => cx.note(Note::Views(note)),
                Effect::Reply { id: OWN, .. } => {}
                Effect::Reply { id, reply } => {
                    if let Some(reply) = answer(reply) {
                        cx.reply(id, Reply::Members(reply));
                    }
                }
            }
        }
        self.from_views = effects;
        // It takes a while to find out where there are many members, and seldom changes.
        let counted_in = (self.views.number(), self.views.has_a_say());
        if confirms || counted_in != self.counted_in {
            self.counted_in = counted_in;
            self.counts_until = self.views.counts_until(cx.now());
        }
        self.follow(cx);
    }

    /// Gives the protocol inside an input.
    pub(super) fn pass_in(&mut self, cx: Cx<'_, '_, P, R>, input: Input<P>) {
        self.with_inside(cx, |inside, cx| inside.handle(cx, input));
    }

    /// Has the protocol inside do something, on the terms on which this peer is in.
    pub(super) fn with_inside(
        &mut self, cx: Cx<'_, '_, P, R>, act: impl FnOnce(&mut P, &mut Context<'_, P>),
    ) {
        let mut effects = core::mem::take(&mut self.from_inside);
        self.inside.stand(self.terms());
        act(&mut self.inside, &mut cx.inner(&mut effects));
        let view = self.view;
        let settles = self.settles();
        if settles && !self.config.breaks(Mutant::SettlesBeforeItWrites) {
            // What was taken on, and that this peer votes, is on disk before anybody hears of a vote: torn in
            // between, it would ask anew, and give to another what somebody counts already.
            effects.sort_by_key(|effect| !matches!(effect, Effect::Persist { .. }));
            let said = effects.partition_point(|effect| matches!(effect, Effect::Persist { .. }));
            for effect in effects.drain(..said) {
                if let Effect::Persist { key, value } = effect {
                    cx.persist(DurableKey::Inside(key), value.map(Durable::Inside));
                }
            }
            self.vote(cx);
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist { key, value } => {
                    cx.persist(DurableKey::Inside(key), value.map(Durable::Inside));
                }
                Effect::Send { to, message } => cx.send(to, Message::Inside { view, message }),
                Effect::SetTimer { timer, at } => cx.set_timer(Timer::Inside(timer), at),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Inside(timer)),
                Effect::Note(note) => cx.note(Note::Inside(note)),
                Effect::Reply { id, reply } => cx.reply(id, Reply::Inside(reply)),
            }
        }
        self.from_inside = effects;
        if settles {
            self.on_settled(cx);
        }
    }
}

/// What an operator is told. What only this layer asks for is answered to nobody.
fn answer(reply: views::Reply) -> Option<MemberReply> {
    match reply {
        views::Reply::Done => Some(MemberReply::Done),
        views::Reply::Remembered(refusal) => Some(MemberReply::Refused(refusal)),
        views::Reply::Refused => None,
    }
}
