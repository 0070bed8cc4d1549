//! The Sigma paper, claim by claim.

#[path = "../stage/mod.rs"]
mod stage;

mod section_2;
mod section_3;
mod section_4_faults;
mod section_4_race;
mod section_5;
