//! What several protocols are made of.

pub mod alarm;
pub mod ask;
pub mod beside;
pub mod driven;
pub mod guard;
pub mod hlc;
pub mod hosting;
pub mod mutants;
pub mod placement;
pub mod quorum;
pub mod rules;
pub mod tombstones;
pub mod users;
pub mod zones;

pub use alarm::Alarm;
pub use ask::{Ask, Told};
pub use beside::{Beside, Vacant};
pub use driven::Driven;
pub use guard::Guard;
pub use hlc::{Hlc, HybridClock};
pub use hosting::Hosting;
pub use mutants::{MutantCard, UnknownMutant};
pub use placement::{HandedOver, Placement};
pub use quorum::{Quorum, QuorumError};
pub use rules::{Broken, GoesBy, Rules, Sound};
pub use tombstones::Tombstones;
pub use users::{Door, Todo, User, Users};
