//! Real peers, real sockets, real signals.
//!
//! Each test starts its own fleet of processes of the real binary and ends them. An outside [`witness`]
//! watches who is inside.

mod agreed;
mod contenders;
mod copies;
mod crowds;
mod deaths;
mod disks;
mod fleet;
mod foundings;
mod growth;
mod intruders;
mod lan;
mod load;
mod memory;
mod mends;
mod modes;
mod moves;
mod names;
mod partitions;
mod protocols;
mod router;
mod soak;
mod witness;
