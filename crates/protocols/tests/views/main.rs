//! Views, walked through at random and explored in full.

mod fleet;
mod model;
mod walks;
