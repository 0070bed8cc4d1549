//! The protocols, one folder each. They do not know each other, but for layers ([`agent`], [`agreed`], [`liar`]);
//! what they share is in [`parts`], and [`catalogue`] names them all.
#![no_std]

extern crate alloc;

pub mod agent;
pub mod agreed;
pub mod catalogue;
pub mod liar;
pub mod parts;
pub mod sigma;
pub mod strawman;
pub mod views;
