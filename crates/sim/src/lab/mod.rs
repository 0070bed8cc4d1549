//! Experiments: single points of a sweep, and torture.

mod draw;
mod mishaps;
pub mod mutants;
mod open;
pub mod sweep;
pub mod torture;
pub mod zones;
