//! Experiments: points of a sweep, the figures of the papers, comparisons, plans, traces, and torture.

mod agreed;
mod bent;
pub mod compare;
mod disks;
mod draw;
pub mod figures;
mod lan;
mod members;
mod memories;
pub mod meter;
mod mishaps;
pub mod mutants;
mod odds;
mod open;
pub mod parallel;
pub mod plan;
pub mod sweep;
pub mod torture;
pub mod trace;
mod twins;
pub mod zones;
