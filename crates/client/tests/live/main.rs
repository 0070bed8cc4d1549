//! Clients against a real peer, over real sockets.

mod acquire;
mod bounds;
mod end;
mod hostile;
mod neighbours;
mod operators;
mod peer;
mod raw;
mod shares;
mod silent;
mod words;
