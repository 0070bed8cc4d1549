//! Views, walked through at random and explored in full.

mod bounds;
mod fleet;
mod foundings;
mod input;
mod model;
mod stories;
mod walks;
