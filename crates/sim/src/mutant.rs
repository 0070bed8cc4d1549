//! Every rule that can be broken on purpose, of whichever protocol or layer.

use sigmalock_protocols::catalogue::{Card, LAYERS, ProtocolName};
use sigmalock_protocols::parts::MutantCard;

use crate::output;

/// A deliberately broken protocol, as its card says.
pub type Mutant = &'static MutantCard;

/// Clients that take several locks at once, in any order and not in the one that all keep to.
pub const TAKES_LOCKS_IN_ANY_ORDER: Mutant = &MutantCard::new(
    "takes-locks-in-any-order",
    "Clients that take several locks at once do so in any order.",
    "progress",
)
.modes();

/// Those that worlds drawn at random lead to. The others are told as stories, in the tests of their protocols.
pub fn all() -> impl Iterator<Item = Mutant> {
    let cards = ProtocolName::ALL.iter().map(|name| name.card()).chain(LAYERS.iter().copied());
    let mutants = cards.flat_map(|card| card.mutants).chain(output::Mutant::CARDS);
    mutants.filter(|mutant| !mutant.told).chain([TAKES_LOCKS_IN_ANY_ORDER])
}

/// Those that a protocol can be put to the test with: its own, those of the layers, of its driver and of its clients.
pub fn of(protocol: ProtocolName) -> impl Iterator<Item = Mutant> {
    all().filter(move |mutant| match owner_of(mutant) {
        Some(owner) if owner.is_lock() => owner == protocol,
        Some(owner) => owner == protocol || protocol.is_lock(),
        None => protocol.is_lock(),
    })
}

/// The protocol whose rule it is; `None` if it is a layer's, the driver's or the clients'.
#[must_use]
pub fn owner_of(mutant: Mutant) -> Option<ProtocolName> {
    let has = |card: &Card| card.mutants.iter().any(|other| other.name == mutant.name);
    ProtocolName::ALL.iter().copied().find(|name| has(name.card()))
}

/// The protocol that it is hunted in: its own, or Sigma, where it is of something under or over a lock protocol.
#[must_use]
pub fn hunted_in(mutant: Mutant) -> ProtocolName {
    let fits = |owner: &ProtocolName| owner.is_lock() || mutant.alone;
    owner_of(mutant).filter(fits).unwrap_or(ProtocolName::Sigma)
}
