//! What several protocols are made of.

pub mod alarm;
pub mod hlc;
pub mod mutants;
pub mod placement;
pub mod quorum;
pub mod tombstones;
pub mod zones;

pub use alarm::Alarm;
pub use hlc::{Hlc, HybridClock};
pub use mutants::UnknownMutant;
pub use placement::Placement;
pub use quorum::{Quorum, QuorumError};
pub use tombstones::Tombstones;
