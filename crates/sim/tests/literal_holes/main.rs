//! The paper's pseudo code has holes, and each has a test here that shows it.

#[path = "../stage/mod.rs"]
mod stage;

//mod faults;
//mod messages;
mod new;
