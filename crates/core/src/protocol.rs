//! The contract of a protocol.
//!
//! ```text
//!              Start, Receive, Fire, Request, PeerUp, PeerDown, Leave, ViewChanged
//!   driver  ──────────────────────────────────────────────────────────────►  protocol
//!           ◄──────────────────────────────────────────────────────────────
//!              Persist, Send, SetTimer, CancelTimer, Reply, Note
//! ```
//!
//! The calling contract:
//!
//! - `Start` comes first and once; a restarted peer is a new value of the protocol's type.
//! - [`Protocol::handle`] never fails and never blocks. What arrives from outside may be anything:
//!   impossible messages are noted and dropped.
//! - Effects are executed in the order given, and a `Persist` is on disk before any later `Send`
//!   leaves or `Reply` is seen.
//! - The driver owns the timers ([`crate::Timers`]), the clocks, the random numbers (one stream per
//!   peer, all split from one seed), the disk and the network, and counts what passes through.
//! - After a pause the driver feeds timers and messages in any order: a protocol that must notice a
//!   passed deadline looks at [`Context::now`], not at which input came first.
//!
//! Layers fit over the same contract: a snapshot recorder is a protocol that wraps another's messages
//! in its own ([`Context::inner`]), a liar is a protocol that speaks another's messages, and the drivers
//! see no difference.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::id::{CallId, Incarnation, PeerId};
use crate::time::{LocalTime, WallTime};

/// A protocol: one peer's share of a distributed algorithm, for any number of resources at once.
pub trait Protocol: Sized {
    /// What peers say to each other.
    type Message: Message;
    /// What the users of this peer may ask.
    type Request: Clone + fmt::Debug;
    /// What they are answered; one call may get several replies over time.
    type Reply: Clone + fmt::Debug;
    /// What timers are for.
    type Timer: Clone + Ord + fmt::Debug;
    /// Where a durable record is kept.
    type DurableKey: Clone + Ord + fmt::Debug;
    /// What survives a crash under that key.
    type Durable: Clone + fmt::Debug;
    /// Moments worth counting, and worth telling in a transcript.
    type Note: Clone + fmt::Debug + fmt::Display;

    /// Takes one input and emits effects through `cx`.
    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>);
}

/// What a driver needs to know of a message to count it and to tell of it.
pub trait Message: Clone + fmt::Debug + fmt::Display {
    /// The kind, as counters and charts show it: `REQUEST`, `YIELD` …
    fn kind(&self) -> &'static str;
    /// About how many bytes it has on the wire, names included.
    fn size_bytes(&self) -> usize;
}

/// What happens to a protocol.
#[derive(Debug, Clone)]
pub enum Input<P: Protocol> {
    /// The peer begins a life.
    Start {
        /// The number of this life.
        incarnation: Incarnation,
        /// What there is from earlier ones.
        birth: Birth<P>,
    },
    /// A message has arrived.
    Receive {
        /// Its sender, as authenticated by the driver.
        from: PeerId,
        /// The message.
        message: P::Message,
    },
    /// A timer is due.
    Fire(P::Timer),
    /// A user asks for something.
    Request {
        /// The call that replies must name.
        id: CallId,
        /// The wish.
        request: P::Request,
    },
    /// The driver can reach this peer again. A hint.
    PeerUp(PeerId),
    /// The driver cannot reach this peer. A hint: it may be alive and well. When it is up again, nothing that either
    /// said to the other before is heard any more: what notices copies of a disk asks for that, because a member's
    /// word that it knows no other peer of this name is of the time when it was given.
    PeerDown(PeerId),
    /// The peer is about to leave for good. Whoever hosts something hands it over.
    Leave,
    /// The membership that peers agree on has changed; where they do not, this never comes.
    ViewChanged(View),
}

/// What a starting peer has of its past.
#[derive(Debug, Clone)]
pub enum Birth<P: Protocol> {
    /// Nothing, and nobody can count on a former self: the first life in a new swarm.
    First,
    /// All that its former self persisted.
    Recovered(Vec<(P::DurableKey, P::Durable)>),
    /// Nothing, though a former self, or a former host of its places, may have made promises.
    Amnesiac,
}

/// A numbered membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Grows with every view.
    pub number: u64,
    /// The members, ascending.
    pub members: Arc<[Member]>,
    /// Whether this peer is one of them.
    pub part: Part,
}

impl View {
    /// The members alone, ascending.
    pub fn peers(&self) -> impl ExactSizeIterator<Item = PeerId> {
        self.members.iter().map(|member| member.peer)
    }
}

/// A member of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Who it is.
    pub peer: PeerId,
    /// Its place among the members, which it keeps for as long as it is one.
    pub seat: u16,
}

/// A peer's part in a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// None.
    Outside,
    /// It was in the last view that it knew, and has been in since.
    Stays,
    /// It is in, but was out since the last view that it knew: what it promised as a member is void.
    Returned,
    /// It is what is new in this view, and has yet to find out what the others promised.
    Newcomer,
}

/// What a protocol wants done.
#[derive(Debug, Clone)]
pub enum Effect<P: Protocol> {
    /// Keep this under this key, or (with `None`) forget the key; done before anything after it.
    Persist {
        /// Where.
        key: P::DurableKey,
        /// What, if anything.
        value: Option<P::Durable>,
    },
    /// Send a message. It may be lost, doubled, delayed or overtaken.
    Send {
        /// To whom.
        to: PeerId,
        /// What.
        message: P::Message,
    },
    /// Set or move a timer.
    SetTimer {
        /// Which.
        timer: P::Timer,
        /// When, on this peer's clock. A time that has passed fires at once.
        at: LocalTime,
    },
    /// Take a timer back.
    CancelTimer(P::Timer),
    /// Answer a user.
    Reply {
        /// The call.
        id: CallId,
        /// The answer.
        reply: P::Reply,
    },
    /// Something worth counting happened.
    Note(P::Note),
}

/// What the driver lends every protocol while it handles an input. What only some protocols need to know of the
/// world is theirs to keep, and is told to them.
pub trait Surroundings {
    /// The wall clock, a hint.
    fn wall(&self) -> WallTime;
    /// The next number of this peer's random stream.
    fn random(&mut self) -> u64;
    /// How many records have been written to this peer's disk, by all its lives up to this input.
    fn written(&self) -> u64 {
        0
    }
}

/// The world as a protocol sees it during one input, and the collector of its effects.
pub struct Context<'a, P: Protocol> {
    now: LocalTime,
    surroundings: &'a mut dyn Surroundings,
    effects: &'a mut Vec<Effect<P>>,
}

impl<'a, P: Protocol> Context<'a, P> {
    /// Made by a driver for one input; effects are appended to `effects`.
    pub fn new(
        now: LocalTime, surroundings: &'a mut dyn Surroundings, effects: &'a mut Vec<Effect<P>>,
    ) -> Self {
        Self { now, surroundings, effects }
    }

    /// The same world for a protocol inside this one. What the inner one emits goes to `effects`, for
    /// the outer one to pass on, wrap, hold back or record.
    pub fn inner<'b, Q: Protocol>(&'b mut self, effects: &'b mut Vec<Effect<Q>>) -> Context<'b, Q> {
        Context { now: self.now, surroundings: self.surroundings, effects }
    }

    /// This very world, for as long as somebody needs it who puts something beside it.
    pub fn reborrow(&mut self) -> Context<'_, P> {
        Context { now: self.now, surroundings: self.surroundings, effects: self.effects }
    }

    /// This peer's monotonic clock. It does not move during an input.
    #[must_use]
    pub fn now(&self) -> LocalTime {
        self.now
    }
    /// This peer's wall clock: for ordering and token floors, never for exclusion.
    #[must_use]
    pub fn wall(&self) -> WallTime {
        self.surroundings.wall()
    }
    /// A random number.
    pub fn random(&mut self) -> u64 {
        self.surroundings.random()
    }
    /// How many records have been written to this peer's disk. What is sent from now on is heard by others when
    /// so many are on it.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.surroundings.written()
    }

    /// Passes on what was gathered in another context.
    pub fn emit(&mut self, effect: Effect<P>) {
        self.effects.push(effect);
    }
    /// Emits [`Effect::Persist`].
    pub fn persist(&mut self, key: P::DurableKey, value: Option<P::Durable>) {
        self.effects.push(Effect::Persist { key, value });
    }
    /// Emits [`Effect::Send`].
    pub fn send(&mut self, to: PeerId, message: P::Message) {
        self.effects.push(Effect::Send { to, message });
    }
    /// Emits [`Effect::SetTimer`].
    pub fn set_timer(&mut self, timer: P::Timer, at: LocalTime) {
        self.effects.push(Effect::SetTimer { timer, at });
    }
    /// Emits [`Effect::CancelTimer`].
    pub fn cancel_timer(&mut self, timer: P::Timer) {
        self.effects.push(Effect::CancelTimer(timer));
    }
    /// Emits [`Effect::Reply`].
    pub fn reply(&mut self, id: CallId, reply: P::Reply) {
        self.effects.push(Effect::Reply { id, reply });
    }
    /// Emits [`Effect::Note`].
    pub fn note(&mut self, note: P::Note) {
        self.effects.push(Effect::Note(note));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Says what it hears to the next peer, and counts.
    #[derive(Default)]
    struct Gossip {
        heard: u32,
    }

    #[derive(Debug, Clone, PartialEq)]
    struct Word(u32);

    impl fmt::Display for Word {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }
    impl Message for Word {
        fn kind(&self) -> &'static str {
            "WORD"
        }
        fn size_bytes(&self) -> usize {
            4
        }
    }

    impl Protocol for Gossip {
        type Message = Word;
        type Request = ();
        type Reply = ();
        type Timer = u8;
        type DurableKey = u8;
        type Durable = u32;
        type Note = Word;

        fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
            if let Input::Receive { from, message } = input {
                self.heard += 1;
                cx.persist(0, Some(self.heard));
                cx.send(PeerId(from.0 + 1), message);
            }
        }
    }

    /// A layer that numbers what the protocol inside it sends, which knows nothing of it.
    struct Numbered<P> {
        inside: P,
        sent: u32,
    }

    #[derive(Debug, Clone, PartialEq)]
    struct Nth<M>(u32, M);

    impl<M: Message> fmt::Display for Nth<M> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}: {}", self.0, self.1)
        }
    }
    impl<M: Message> Message for Nth<M> {
        fn kind(&self) -> &'static str {
            self.1.kind()
        }
        fn size_bytes(&self) -> usize {
            4 + self.1.size_bytes()
        }
    }

    impl<P: Protocol> Protocol for Numbered<P> {
        type Message = Nth<P::Message>;
        type Request = P::Request;
        type Reply = P::Reply;
        type Timer = P::Timer;
        type DurableKey = P::DurableKey;
        type Durable = P::Durable;
        type Note = P::Note;

        fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
            let mut effects = Vec::new();
            if let Input::Receive { from, message: Nth(_, message) } = input {
                let input = Input::Receive { from, message };
                self.inside.handle(&mut cx.inner(&mut effects), input);
            }
            for effect in effects {
                match effect {
                    Effect::Send { to, message } => {
                        self.sent += 1;
                        cx.send(to, Nth(self.sent, message));
                    }
                    Effect::Persist { key, value } => cx.persist(key, value),
                    _ => {}
                }
            }
        }
    }

    struct Nowhere;

    impl Surroundings for Nowhere {
        fn wall(&self) -> WallTime {
            WallTime::default()
        }
        fn random(&mut self) -> u64 {
            7
        }
    }

    #[test]
    fn a_layer_wraps_a_protocol_that_does_not_know_of_it() {
        let mut layer = Numbered { inside: Gossip::default(), sent: 0 };
        let (mut effects, mut nowhere) = (vec![], Nowhere);
        for word in [5, 6] {
            let mut cx = Context::new(LocalTime::MIN, &mut nowhere, &mut effects);
            let message = Nth(0, Word(word));
            layer.handle(&mut cx, Input::Receive { from: PeerId(1), message });
        }
        let sent: Vec<_> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Send { to, message } => Some((*to, message.clone())),
                _ => None,
            })
            .collect();
        assert_eq!(sent, [(PeerId(2), Nth(1, Word(5))), (PeerId(2), Nth(2, Word(6)))]);
        let first = effects.iter().position(|e| matches!(e, Effect::Persist { .. }));
        assert_eq!(first, Some(0), "what is persisted still comes before what is sent");
    }
}
