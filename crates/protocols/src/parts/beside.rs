//! Two services in one peer, side by side.
//!
//! ```text
//!              ┌──────── Beside ────────┐
//!   inputs ──► │ First (Sigma …)        │ ──► effects, each of them marked with whose it is
//!              │ Second (elections …)   │
//!              └────────────────────────┘
//! ```
//!
//! Each is a protocol of its own and knows nothing of the other: whatever one says, keeps, sets and answers is marked
//! with its place, on the wire and on the disk as a byte before it, and comes back to nobody else. What happens to the
//! peer happens to both. [`crate::agreed::Agreed`] over this has one set of views for the two of them. A third service
//! is a second place that is two ([`Vacant`] today): what the first ones say looks as before.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::fmt;

use sigmalock_core::{
    Birth, Context, Effect, Input, Inspect, LocalReport, LocalTime, Name, PeerId, Protocol,
    ReplicaReport, ViewReport,
};

use super::ask::{Ask, Told};
use super::hosting::Terms;
use super::{Driven, GoesBy, Placement};
use crate::agreed::OverViews;

/// Something of one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Either<A, B> {
    /// Of the first.
    First(A),
    /// Of the second.
    Second(B),
}

impl<A: fmt::Display, B: fmt::Display> fmt::Display for Either<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(first) => first.fmt(f),
            Self::Second(second) => second.fmt(f),
        }
    }
}

impl<A, B> sigmalock_core::Message for Either<A, B>
where
    A: sigmalock_core::Message,
    B: sigmalock_core::Message,
{
    fn kind(&self) -> &'static str {
        match self {
            Self::First(first) => first.kind(),
            Self::Second(second) => second.kind(),
        }
    }
    fn size_bytes(&self) -> usize {
        match self {
            Self::First(first) => 1 + first.size_bytes(),
            Self::Second(second) => 1 + second.size_bytes(),
        }
    }
}

/// Whoever serves the family that is asked: the first, if both do.
impl<A, B> TryFrom<Ask> for Either<A, B>
where
    A: TryFrom<Ask, Error = Ask>,
    B: TryFrom<Ask, Error = Ask>,
{
    type Error = Ask;
    fn try_from(ask: Ask) -> Result<Self, Ask> {
        A::try_from(ask).map(Self::First).or_else(|ask| B::try_from(ask).map(Self::Second))
    }
}

impl<A: Into<Told>, B: Into<Told>> From<Either<A, B>> for Told {
    fn from(either: Either<A, B>) -> Self {
        match either {
            Either::First(first) => first.into(),
            Either::Second(second) => second.into(),
        }
    }
}

/// Two protocols in one peer.
#[derive(Debug, Clone)]
pub struct Beside<A: Protocol, B: Protocol> {
    first: A,
    second: B,
    /// On which terms this peer is in.
    terms: Terms,
    /// Kept for their memory.
    from_first: Vec<Effect<A>>,
    from_second: Vec<Effect<B>>,
}

type Cx<'a, 'b, A, B> = &'a mut Context<'b, Beside<A, B>>;

/// Passes on what one of the two wants done, but for messages that may not leave.
macro_rules! pass_on {
    ($cx:ident, $effects:expr, $place:ident, $leaves:expr) => {
        for effect in $effects {
            match effect {
                Effect::Persist { key, value } => {
                    $cx.persist(Either::$place(key), value.map(Either::$place));
                }
                Effect::Send { to, message } => {
                    if $leaves(&message) {
                        $cx.send(to, Either::$place(message));
                    }
                }
                Effect::SetTimer { timer, at } => $cx.set_timer(Either::$place(timer), at),
                Effect::CancelTimer(timer) => $cx.cancel_timer(Either::$place(timer)),
                Effect::Reply { id, reply } => $cx.reply(id, Either::$place(reply)),
                Effect::Note(note) => $cx.note(Either::$place(note)),
            }
        }
    };
}

impl<A: OverViews, B: OverViews> Beside<A, B> {
    /// Two protocols that have not started yet.
    #[must_use]
    pub const fn new(first: A, second: B) -> Self {
        let terms = Terms::NONE;
        Self { first, second, terms, from_first: Vec::new(), from_second: Vec::new() }
    }

    /// The first.
    #[must_use]
    pub const fn first(&self) -> &A {
        &self.first
    }

    /// The second.
    #[must_use]
    pub const fn second(&self) -> &B {
        &self.second
    }

    fn with_first(&mut self, cx: Cx<'_, '_, A, B>, act: impl FnOnce(&mut A, &mut Context<'_, A>)) {
        let mut effects = core::mem::take(&mut self.from_first);
        act(&mut self.first, &mut cx.inner(&mut effects));
        let ahead = self.is_ahead(cx.now(), self.first.settled(), self.second.settled());
        pass_on!(cx, effects.drain(..), First, |message| !(ahead && A::is_promise(message)));
        self.from_first = effects;
    }

    fn with_second(&mut self, cx: Cx<'_, '_, A, B>, act: impl FnOnce(&mut B, &mut Context<'_, B>)) {
        let mut effects = core::mem::take(&mut self.from_second);
        act(&mut self.second, &mut cx.inner(&mut effects));
        let ahead = self.is_ahead(cx.now(), self.second.settled(), self.first.settled());
        pass_on!(cx, effects.drain(..), Second, |message| !(ahead && B::is_promise(message)));
        self.from_second = effects;
    }

    /// Whether one of the two has found out what was promised before the other has, so that the peer may promise nothing
    /// yet. Its promises are lost, as messages may be, and asked for again.
    fn is_ahead(&self, now: LocalTime, settled: u64, other: u64) -> bool {
        settled > other && !self.terms.may_promise(now)
    }

    fn both(&mut self, cx: Cx<'_, '_, A, B>, first: Input<A>, second: Input<B>) {
        self.with_first(cx, |protocol, cx| protocol.handle(cx, first));
        self.with_second(cx, |protocol, cx| protocol.handle(cx, second));
    }
}

impl<A: OverViews, B: OverViews> Protocol for Beside<A, B> {
    type Message = Either<A::Message, B::Message>;
    type Request = Either<A::Request, B::Request>;
    type Reply = Either<A::Reply, B::Reply>;
    type Timer = Either<A::Timer, B::Timer>;
    type DurableKey = Either<A::DurableKey, B::DurableKey>;
    type Durable = Either<A::Durable, B::Durable>;
    type Note = Either<A::Note, B::Note>;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        use Either::{First, Second};
        match input {
            Input::Start { incarnation, birth } => {
                let (first, second) = parted(birth);
                let first = Input::Start { incarnation, birth: first };
                self.both(cx, first, Input::Start { incarnation, birth: second });
            }
            Input::Receive { from, message: First(message) } => {
                self.with_first(cx, |it, cx| it.handle(cx, Input::Receive { from, message }));
            }
            Input::Receive { from, message: Second(message) } => {
                self.with_second(cx, |it, cx| it.handle(cx, Input::Receive { from, message }));
            }
            Input::Fire(First(timer)) => {
                self.with_first(cx, |it, cx| it.handle(cx, Input::Fire(timer)));
            }
            Input::Fire(Second(timer)) => {
                self.with_second(cx, |it, cx| it.handle(cx, Input::Fire(timer)));
            }
            Input::Request { id, request: First(request) } => {
                self.with_first(cx, |it, cx| it.handle(cx, Input::Request { id, request }));
            }
            Input::Request { id, request: Second(request) } => {
                self.with_second(cx, |it, cx| it.handle(cx, Input::Request { id, request }));
            }
            Input::PeerUp(peer) => self.both(cx, Input::PeerUp(peer), Input::PeerUp(peer)),
            Input::PeerDown(peer) => self.both(cx, Input::PeerDown(peer), Input::PeerDown(peer)),
            Input::Leave => self.both(cx, Input::Leave, Input::Leave),
            Input::ViewChanged(view) => {
                self.both(cx, Input::ViewChanged(view.clone()), Input::ViewChanged(view));
            }
        }
    }
}

/// To each its own. A record of which the key is of one and the value of the other is nobody's, and no peer wrote it.
fn parted<A, B>(birth: Birth<Beside<A, B>>) -> (Birth<A>, Birth<B>)
where
    A: OverViews,
    B: OverViews,
{
    let records = match birth {
        Birth::First => return (Birth::First, Birth::First),
        Birth::Amnesiac => return (Birth::Amnesiac, Birth::Amnesiac),
        Birth::Recovered(records) => records,
    };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for record in records {
        match record {
            (Either::First(key), Either::First(value)) => first.push((key, value)),
            (Either::Second(key), Either::Second(value)) => second.push((key, value)),
            _ => return (Birth::Amnesiac, Birth::Amnesiac),
        }
    }
    (Birth::Recovered(first), Birth::Recovered(second))
}

impl<R, A: Protocol + GoesBy<R>, B: Protocol + GoesBy<R>> GoesBy<R> for Beside<A, B> {}

/// At most one of the two goes by whom this peer sees.
impl<A: OverViews, B: OverViews> Driven for Beside<A, B> {
    fn placement(&self) -> Option<&Placement> {
        self.first.placement().or(self.second.placement())
    }
    fn placement_mut(&mut self) -> Option<&mut Placement> {
        self.first.placement_mut().or(self.second.placement_mut())
    }
    fn hosted(&self) -> usize {
        self.first.hosted() + self.second.hosted()
    }
    fn may_go(&self) -> bool {
        self.first.may_go() && self.second.may_go()
    }
}

impl<A: OverViews, B: OverViews> OverViews for Beside<A, B> {
    fn is_promise(message: &Self::Message) -> bool {
        match message {
            Either::First(message) => A::is_promise(message),
            Either::Second(message) => B::is_promise(message),
        }
    }
    fn stand(&mut self, terms: Terms) {
        self.terms = terms;
        self.first.stand(terms);
        self.second.stand(terms);
    }
    fn go_on(&mut self, cx: &mut Context<'_, Self>) {
        self.with_first(cx, A::go_on);
        self.with_second(cx, B::go_on);
    }
    /// When the last of them knows.
    fn settled(&self) -> u64 {
        self.first.settled().min(self.second.settled())
    }
}

/// Locks are shown as the first has them.
impl<A: OverViews + Inspect, B: OverViews> Inspect for Beside<A, B> {
    fn replicas(&self, now: LocalTime, name: &Name) -> Vec<ReplicaReport> {
        self.first.replicas(now, name)
    }
    fn local(&self, now: LocalTime, name: &Name) -> LocalReport {
        self.first.local(now, name)
    }
    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name> {
        self.first.names(after, limit)
    }
    fn view(&self, now: LocalTime) -> Option<ViewReport> {
        self.first.view(now)
    }
    fn seats(&self, name: &Name) -> Vec<(u16, PeerId)> {
        self.first.seats(name)
    }
}

/// A place where a service could be, and none is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vacant;

/// What is never said, kept or asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Never {}

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
impl sigmalock_core::Message for Never {
    fn kind(&self) -> &'static str {
        match *self {}
    }
    fn size_bytes(&self) -> usize {
        match *self {}
    }
}
impl TryFrom<Ask> for Never {
    type Error = Ask;
    fn try_from(ask: Ask) -> Result<Self, Ask> {
        Err(ask)
    }
}
impl From<Never> for Told {
    fn from(never: Never) -> Self {
        match never {}
    }
}

impl Protocol for Vacant {
    type Message = Never;
    type Request = Never;
    type Reply = Never;
    type Timer = Never;
    type DurableKey = Never;
    type Durable = Never;
    type Note = Never;

    fn handle(&mut self, _: &mut Context<'_, Self>, _: Input<Self>) {}
}

impl<R> GoesBy<R> for Vacant {}

impl Driven for Vacant {}

impl OverViews for Vacant {
    fn is_promise(message: &Never) -> bool {
        match *message {}
    }
    fn stand(&mut self, _: Terms) {}
    /// Nobody who is not there has promised anything.
    fn settled(&self) -> u64 {
        u64::MAX
    }
}
