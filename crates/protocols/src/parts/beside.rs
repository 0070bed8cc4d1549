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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use sigmalock_core::{CallId, Incarnation, PeerId, Span, Surroundings, WallTime};

    /// Does one of everything when it is asked, with its own sign, and remembers what it was given.
    #[derive(Debug, Clone, Default)]
    struct Service<const SIGN: u8> {
        given: Vec<u8>,
        settled: u64,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Word<const SIGN: u8>(u8);

    impl<const SIGN: u8> fmt::Display for Word<SIGN> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }
    impl<const SIGN: u8> sigmalock_core::Message for Word<SIGN> {
        fn kind(&self) -> &'static str {
            "WORD"
        }
        fn size_bytes(&self) -> usize {
            1
        }
    }

    /// The word that is a promise.
    const PROMISE: u8 = 7;

    impl<const SIGN: u8> Protocol for Service<SIGN> {
        type Message = Word<SIGN>;
        type Request = Word<SIGN>;
        type Reply = Word<SIGN>;
        type Timer = Word<SIGN>;
        type DurableKey = Word<SIGN>;
        type Durable = Word<SIGN>;
        type Note = Word<SIGN>;

        fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
            match input {
                Input::Start { birth: Birth::Recovered(records), .. } => {
                    self.given.extend(records.iter().map(|(key, _)| key.0));
                }
                Input::Receive { message: word, .. } | Input::Fire(word) => self.given.push(word.0),
                Input::Request { id, request } => {
                    cx.persist(request, Some(request));
                    cx.send(PeerId(2), request);
                    cx.set_timer(request, cx.now());
                    cx.cancel_timer(request);
                    cx.note(request);
                    cx.reply(id, request);
                }
                Input::PeerUp(_) => self.given.push(100),
                _ => {}
            }
        }
    }
    impl<const SIGN: u8> Driven for Service<SIGN> {
        fn hosted(&self) -> usize {
            self.given.len()
        }
    }
    impl<const SIGN: u8> OverViews for Service<SIGN> {
        fn is_promise(message: &Word<SIGN>) -> bool {
            message.0 == PROMISE
        }
        fn stand(&mut self, _: Terms) {}
        fn settled(&self) -> u64 {
            self.settled
        }
    }

    type Two = Beside<Service<1>, Service<2>>;

    struct Nowhere;

    impl Surroundings for Nowhere {
        fn wall(&self) -> WallTime {
            WallTime::default()
        }
        fn random(&mut self) -> u64 {
            7
        }
    }

    const NOW: LocalTime = LocalTime::from_micros(1_000_000);

    fn give(two: &mut Two, input: Input<Two>) -> Vec<Effect<Two>> {
        let (mut effects, mut nowhere) = (vec![], Nowhere);
        two.handle(&mut Context::new(NOW, &mut nowhere, &mut effects), input);
        effects
    }

    fn asked<const SIGN: u8>(
        word: u8, of: fn(Word<SIGN>) -> Either<Word<1>, Word<2>>,
    ) -> Input<Two> {
        Input::Request { id: CallId(9), request: of(Word(word)) }
    }

    fn new() -> Two {
        Beside::new(Service::default(), Service::default())
    }

    #[test]
    fn all_that_one_does_is_marked_and_comes_back_to_it_alone() {
        let mut two = new();
        let effects = give(&mut two, asked(3, Either::Second));
        assert_eq!(effects.len(), 6);
        for effect in effects {
            match effect {
                Effect::Persist { key, value } => {
                    assert_eq!(
                        (key, value),
                        (Either::Second(Word(3)), Some(Either::Second(Word(3))))
                    );
                }
                Effect::Send { to, message } => {
                    assert_eq!((to, message), (PeerId(2), Either::Second(Word(3))));
                    give(&mut two, Input::Receive { from: PeerId(2), message });
                }
                Effect::SetTimer { timer, at } => {
                    assert_eq!((timer, at), (Either::Second(Word(3)), NOW));
                    give(&mut two, Input::Fire(timer));
                }
                Effect::CancelTimer(timer) => assert_eq!(timer, Either::Second(Word(3))),
                Effect::Note(note) => assert_eq!(note, Either::Second(Word(3))),
                Effect::Reply { id, reply } => {
                    assert_eq!((id, reply), (CallId(9), Either::Second(Word(3))));
                }
            }
        }
        assert_eq!((&two.first().given[..], &two.second().given[..]), (&[][..], &[3, 3][..]));
        give(&mut two, Input::PeerUp(PeerId(2)));
        assert_eq!(
            (&two.first().given[..], &two.second().given[..]),
            (&[100][..], &[3, 3, 100][..])
        );
        assert_eq!(two.hosted(), 4);
    }

    #[test]
    fn each_gets_its_own_records_and_both_know_nothing_if_they_are_mixed_up() {
        let start = |records| {
            let mut two = new();
            let birth = Birth::Recovered(records);
            give(&mut two, Input::Start { incarnation: Incarnation(2), birth });
            (two.first().given.clone(), two.second().given.clone())
        };
        let first = |n| (Either::First(Word(n)), Either::First(Word(n)));
        let second = |n| (Either::Second(Word(n)), Either::Second(Word(n)));
        assert_eq!(start(vec![second(4), first(5), second(6)]), (vec![5], vec![4, 6]));
        let nobodys = (Either::First(Word(5)), Either::Second(Word(5)));
        assert_eq!(start(vec![second(4), nobodys]), (vec![], vec![]));
    }

    #[test]
    fn who_has_found_out_first_promises_nothing_before_the_peer_may() {
        let says = |two: &mut Two, word| {
            let effects = give(two, asked(word, Either::First));
            effects.iter().any(|effect| matches!(effect, Effect::Send { .. }))
        };
        let mut two = new();
        let promises_from = NOW + Span::from_secs(1);
        let terms = Terms { promises: true, promises_from, ..Terms::NONE };
        two.stand(terms);
        assert!(says(&mut two, PROMISE), "a refusal, say: that is between it and its terms");
        two.first.settled = 5;
        assert_eq!(two.settled(), 0);
        assert!(!says(&mut two, PROMISE) && says(&mut two, 3));
        two.stand(Terms { promises_from: NOW, ..terms });
        assert!(says(&mut two, PROMISE), "it has waited");
        two.stand(terms);
        two.second.settled = 5;
        assert_eq!(two.settled(), 5);
        assert!(says(&mut two, PROMISE), "both have found out");
        let mut alone = Beside::new(Service::<1>::default(), Vacant);
        alone.first.settled = 5;
        assert_eq!(alone.settled(), 5, "nobody else is to find out anything");
    }

    #[test]
    fn a_family_is_served_by_whoever_serves_it() {
        use sigmalock_core::{CallId, LockReply, LockRequest, MemberRequest};
        let release = LockRequest::Release { held: CallId(1) };
        let ask = || Ask::Lock(release.clone());
        type Late = Either<Never, Either<LockRequest, Never>>;
        assert_eq!(Late::try_from(ask()), Ok(Either::Second(Either::First(release.clone()))));
        let members = || Ask::Members(MemberRequest::Disown);
        assert_eq!(Late::try_from(members()), Err(members()), "nobody does");
        let reply: Either<Never, Either<LockReply, Never>> =
            Either::Second(Either::First(LockReply::Busy));
        assert_eq!(Told::from(reply), Told::Lock(LockReply::Busy));
    }
}
