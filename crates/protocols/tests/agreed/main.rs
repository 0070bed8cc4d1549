//! Locks among peers that agree on who is in, message by message.

mod bounds;
mod stories;
mod town;
