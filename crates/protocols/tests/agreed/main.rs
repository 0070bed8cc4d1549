//! Locks among peers that agree on who is in, message by message.

mod bounds;
mod copies;
mod disks;
mod newcomers;
mod operators;
mod refutations;
mod rules;
mod stories;
mod town;
mod vouchers;
