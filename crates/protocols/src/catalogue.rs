//! Every protocol there is, a line each, and every layer: what commands, the simulator and live peers know of them.
//!
//! A protocol is a folder, with a [`Card`] that says what there is to know of it and a [`Listed::plan`] that makes one,
//! and a line in [`catalogue!`](self#the-lines) below. Nothing else names it: torture, sweeps, comparisons, traces,
//! mutants and `node --protocol` find it here.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use sigmalock_core::{Inspect, LockReply, LockRequest, PeerId, Protocol, Span};

use crate::agreed::OverViews;
use crate::parts::{Broken, Driven, GoesBy, Hosting, MutantCard, Quorum, Sound};
use crate::{agent, agreed, liar, views};

/// What there is to know of a protocol, or of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// The name as commands spell it.
    pub name: &'static str,
    /// What it does, in half a line.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What it is for.
    pub family: Family,
    /// Who may host, for the shipped variant. The literal one has fixed hosts.
    pub memberships: &'static [Membership],
    /// Its variants.
    pub variants: &'static [Variant],
    /// What the shipped variant promises beyond exclusion.
    pub promises: Promises,
    /// Which kinds of messages answer which, once each.
    pub answers: Answers,
    /// The rules of the shipped variant that can be broken on purpose.
    pub mutants: &'static [MutantCard],
}

/// Kinds of messages, each with those that it answers.
pub type Answers = &'static [(&'static str, &'static [&'static str])];

/// What a protocol is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Locks.
    Lock,
    /// Who is a member.
    Members,
    /// It lies over others, or under them, and is for what they are for.
    Layer,
}

impl Family {
    /// The name as commands spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Members => "members",
            Self::Layer => "layer",
        }
    }
}

/// What a lock protocol promises beyond exclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises {
    /// Who asked first is let in first, and no lock is empty while somebody waits.
    pub queue: bool,
    /// Each holder has a higher token than all before.
    pub tokens: bool,
    /// Readers and permits may be inside together.
    pub modes: bool,
    /// Over views, a newcomer asks the others which votes are out, and does not wait until all have run out.
    pub joins_fast: bool,
}

impl Promises {
    /// Exclusion, and nothing else.
    pub const EXCLUSION: Self =
        Self { queue: false, tokens: false, modes: false, joins_fast: false };
    /// All there is.
    pub const ALL: Self = Self { queue: true, tokens: true, modes: true, joins_fast: true };
}

/// What a peer's share of a protocol is made from.
#[derive(Debug, Clone)]
pub struct Plan<R = Sound> {
    /// As published, or to survive: for protocols of which one type is both.
    pub variant: Variant,
    /// Replicas of a name, and votes that hold it; where peers agree on who is in, that follows from the view.
    pub quorum: Quorum,
    /// Who hosts what.
    pub hosting: Box<dyn Hosting>,
    /// The longest lease.
    pub lease_max: Span,
    /// How long a vote from a queue waits to be claimed.
    pub claim_window: Span,
    /// Where peers agree on who is in: who is silent for so long is voted out.
    pub dead_after: Span,
    /// The worst round trip to expect.
    pub round_trip_worst: Span,
    /// The longest a message can be under way, copies included.
    pub flight_max: Span,
    /// How long a loser waits who has no place in a queue.
    pub back_off: (Span, Span),
    /// Whether hosts keep their votes on disk.
    pub durable: bool,
    /// How many tokens come with each grant.
    pub tokens_per_grant: u64,
    /// Whether this peer uses the swarm without hosting anything.
    pub client_only: bool,
    /// Whether a literal protocol is its pseudo code alone.
    pub bare: bool,
    /// Which rules it keeps.
    pub rules: R,
}

impl<R> Plan<R> {
    /// The shortest lease that renewals every third of it can keep alive.
    #[must_use]
    pub fn ttl_min(&self) -> Span {
        self.round_trip_worst * 5 / 2
    }
}

/// A lock protocol that the catalogue lists, by rules that it keeps or by such that may be broken. It can be looked into.
pub trait Listed<R = Sound>:
    Driven
    + GoesBy<R>
    + Inspect
    + Protocol<Request = LockRequest, Reply = LockReply>
    + Clone
    + fmt::Debug
    + 'static
{
    /// A peer's share of it, before it starts.
    fn plan(me: PeerId, plan: &Plan<R>) -> Self;
}

/// A protocol that agrees on who is in.
pub trait MembersProtocol:
    Driven
    + Inspect
    + Protocol<
        Message = views::Message,
        Request = views::Request,
        Reply = views::Reply,
        DurableKey = views::Record,
        Durable = views::Saved,
    > + Clone
    + fmt::Debug
    + 'static
{
    /// How this peer stands to the swarm.
    fn standing(&self) -> views::Standing;
    /// What it has accepted as the successor of its view.
    fn accepted(&self) -> Option<(views::Ballot, views::Change)>;
}

/// One that the catalogue lists.
pub trait ListedMembers<R = Sound>: MembersProtocol {
    /// A peer's share of it, before it starts.
    fn plan(me: PeerId, plan: &Plan<R>) -> Self;
}

/// A listed lock protocol that survives: it can be run over views and driven live.
pub trait Shipped<R = Sound>: Listed<R> + OverViews + Wired + Send + Sync {}
impl<R, P: Listed<R> + OverViews + Wired + Send + Sync> Shipped<R> for P {}

/// A protocol whose messages and records have a form outside the process.
#[cfg(feature = "serde")]
pub trait Wired:
    Protocol<
        Message: serde::Serialize + serde::de::DeserializeOwned + Send + Sync,
        Timer: Send + Sync,
        DurableKey: serde::Serialize + serde::de::DeserializeOwned + Send + Sync,
        Durable: serde::Serialize + serde::de::DeserializeOwned + Send + Sync,
        Note: Send + Sync,
    >
{
}
#[cfg(feature = "serde")]
impl<P> Wired for P
where
    P: Protocol,
    P::Message: serde::Serialize + serde::de::DeserializeOwned + Send + Sync,
    P::Timer: Send + Sync,
    P::DurableKey: serde::Serialize + serde::de::DeserializeOwned + Send + Sync,
    P::Durable: serde::Serialize + serde::de::DeserializeOwned + Send + Sync,
    P::Note: Send + Sync,
{
}
/// A protocol whose messages and records have a form outside the process: here nobody asks for it.
#[cfg(not(feature = "serde"))]
pub trait Wired {}
#[cfg(not(feature = "serde"))]
impl<P> Wired for P {}

/// Something to be done with a listed protocol, whichever it is.
pub trait Visitor<R = Sound> {
    /// What comes of it.
    type Out;
    /// Does it with one that guards locks.
    fn lock<P: Listed<R>>(self) -> Self::Out;
    /// Does it with one that agrees on who is in.
    fn members<P: ListedMembers<R>>(self) -> Self::Out;
}

/// Something to be done with a lock protocol that survives, whichever it is.
pub trait ShippedVisitor<R = Sound> {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<P: Shipped<R>>(self) -> Self::Out;
}

/// What is done with a protocol that survives, by its family.
macro_rules! survivor {
    (shipped lock $visitor:ident, $protocol:ty) => {
        Some($visitor.visit::<$protocol>())
    };
    (shipped $other:ident $visitor:ident, $protocol:ty) => {{
        drop($visitor);
        None
    }};
    (broken lock $visitor:ident, $protocol:ty) => {
        $visitor.visit::<$protocol>()
    };
    (broken $other:ident $visitor:ident, $protocol:ty) => {
        $visitor.$other::<$protocol>()
    };
}

macro_rules! catalogue {
    ($(
        $name:ident = $folder:ident: $family:ident,
            literal $literal:ident, shipped $shipped:ident, broken $broken:ident $(<$rules:ident>)?;
    )*) => {
        /// The protocols there are.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ProtocolName {
            $(#[doc = concat!("See [`crate::", stringify!($folder), "`].")] $name,)*
        }

        impl ProtocolName {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What there is to know of it.
            #[must_use]
            pub const fn card(self) -> &'static Card {
                match self { $(Self::$name => &crate::$folder::CARD,)* }
            }

            /// Has a visitor see one of its variants.
            pub fn visit<V: Visitor>(self, variant: Variant, visitor: V) -> V::Out {
                match (self, variant) {
                    $((Self::$name, Variant::Literal) => visitor.$family::<crate::$folder::$literal>(),
                    (Self::$name, Variant::Shipped) => visitor.$family::<crate::$folder::$shipped>(),)*
                }
            }

            /// Has a visitor see the variant that survives; `None` if this is no lock protocol.
            pub fn visit_shipped<V: ShippedVisitor>(self, visitor: V) -> Option<V::Out> {
                match self { $(Self::$name => survivor!(shipped $family visitor, crate::$folder::$shipped),)* }
            }

            /// Has a visitor see the one that may be told to break a rule, in tests and in the laboratory.
            pub fn visit_broken<V, Out>(self, visitor: V) -> Out
            where
                V: Visitor<Broken, Out = Out> + ShippedVisitor<Broken, Out = Out>,
            {
                match self {
                    $(Self::$name => survivor!(
                        broken $family visitor, crate::$folder::$broken $(<$rules>)?
                    ),)*
                }
            }
        }
    };
}

// The lines.
catalogue! {
    Sigma = sigma: lock, literal Literal, shipped Sigma, broken Sigma<Broken>;
    Strawman = strawman: lock, literal Strawman, shipped Strawman, broken Strawman;
    Views = views: members, literal Views, shipped Views, broken Views<Broken>;
}

/// The layers there are.
pub const LAYERS: &[&Card] = &[&agent::CARD, &agreed::CARD, &liar::CARD];

impl ProtocolName {
    /// Those that guard locks.
    pub fn locks() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|name| name.is_lock())
    }
    /// Whether it guards locks.
    #[must_use]
    pub const fn is_lock(self) -> bool {
        matches!(self.card().family, Family::Lock)
    }
    /// The name as commands spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.card().name
    }
}

/// All names, for a sentence.
fn names() -> alloc::string::String {
    let names: alloc::vec::Vec<&str> = ProtocolName::ALL.iter().map(|name| name.as_str()).collect();
    names.join(", ")
}

/// How faithful a protocol is to its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Variant {
    /// As published or taught, holes included.
    Literal,
    /// With what it takes to survive.
    #[default]
    Shipped,
}

impl Variant {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Literal, Self::Shipped];

    /// The name as commands spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::Shipped => "shipped",
        }
    }
}

/// How it is decided who hosts what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Membership {
    /// Once and for all.
    #[default]
    Fixed,
    /// By hash among those who are there, as each peer sees it.
    Open,
    /// By those who are in, as they agree.
    Agreed,
}

impl Membership {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Open, Self::Agreed];

    /// The name as commands spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Open => "open",
            Self::Agreed => "agreed",
        }
    }
}

/// A text that names no protocol, variant or membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// Not a protocol.
    #[error("there is no such protocol; there are: {}", names())]
    Protocol,
    /// Not a variant.
    #[error("there is no such variant; there are: literal, shipped")]
    Variant,
    /// Not a membership.
    #[error("there is no such membership; there are: fixed, open, agreed")]
    Membership,
}

impl FromStr for ProtocolName {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.iter().copied().find(|p| p.as_str() == text).ok_or(UnknownName::Protocol)
    }
}
impl FromStr for Variant {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|v| v.as_str() == text).ok_or(UnknownName::Variant)
    }
}
impl FromStr for Membership {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|m| m.as_str() == text).ok_or(UnknownName::Membership)
    }
}
impl fmt::Display for ProtocolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn the_error_lists_every_name_there_is() {
        let sentence = UnknownName::Protocol.to_string();
        assert!(ProtocolName::ALL.iter().all(|p| sentence.contains(p.as_str())));
        let sentence = UnknownName::Variant.to_string();
        assert!(Variant::ALL.iter().all(|v| sentence.contains(v.as_str())));
        let sentence = UnknownName::Membership.to_string();
        assert!(Membership::ALL.iter().all(|m| sentence.contains(m.as_str())));
    }

    #[test]
    fn no_two_mutants_nor_two_cards_have_one_name() {
        let cards =
            || ProtocolName::ALL.iter().map(|name| name.card()).chain(LAYERS.iter().copied());
        let mut mutants: Vec<&str> =
            cards().flat_map(|card| card.mutants).map(|m| m.name).collect();
        let mut names: Vec<&str> = cards().map(|card| card.name).collect();
        for list in [&mut mutants, &mut names] {
            let all = list.len();
            list.sort_unstable();
            list.dedup();
            assert_eq!(list.len(), all);
        }
    }
}
