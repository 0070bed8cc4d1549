//! The contract between a protocol and whatever drives it.
//!
//! A protocol is one state machine with one entrance, [`Protocol::handle`]: it is given an
//! [`Input`], it answers with [`Effect`]s, and it knows nothing else of the world. The simulator,
//! the model checker and the live peer are three drivers of the very same type.
//!
//! Nothing in this crate knows a clock, a random number generator, a socket, a thread or a file;
//! `no_std` has the compiler check that.
//!
//! Reading order: [`protocol`] (the contract), [`lock`] (what a lock protocol is asked and answers),
//! [`lease`] (the arithmetic that makes leases safe without synchronised clocks), [`member`] (what an agreed
//! membership is asked), then the small
//! types in [`name`], [`id`], [`time`], the driver's [`timers`], and [`report`], what people get to see.
#![no_std]

extern crate alloc;

pub mod id;
pub mod lease;
pub mod lock;
pub mod member;
pub mod name;
pub mod protocol;
pub mod report;
pub mod time;
pub mod timers;

pub use id::{CallId, Incarnation, Key, PeerId, ReplicaId, RequestId, Token};
pub use lease::{Echo, Lease, Margin};
pub use lock::{Acquire, LockReply, LockRequest, Mode, Patience, Refusal};
pub use member::{ForgetRefusal, MemberReply, MemberRequest};
pub use name::{Name, NameError};
pub use protocol::{
    Birth, Context, Effect, Input, Member, Message, Part, Protocol, Surroundings, View,
};
pub use report::{
    HolderReport, Inspect, LocalReport, MemberReport, OWNERS_SHOWN_MAX, OwnerReport, ReplicaReport,
    Standing, ViewReport, VotesReport, WAITERS_SHOWN_MAX,
};
pub use time::{LocalTime, Span, Stamp, WallTime};
pub use timers::Timers;
