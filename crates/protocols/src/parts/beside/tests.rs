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

fn asked<const SIGN: u8>(word: u8, of: fn(Word<SIGN>) -> Either<Word<1>, Word<2>>) -> Input<Two> {
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
                assert_eq!((key, value), (Either::Second(Word(3)), Some(Either::Second(Word(3)))));
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
    assert_eq!((&two.first().given[..], &two.second().given[..]), (&[100][..], &[3, 3, 100][..]));
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
