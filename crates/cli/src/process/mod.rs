//! Processes that this one starts and answers for.

pub(crate) mod front;
pub(crate) mod group;
pub(crate) mod signals;
pub(crate) mod supervise;
pub(crate) mod terminal;
pub(crate) mod tree;
