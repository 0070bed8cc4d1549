//! Views, told as stories and explored in full. Torture walks through them at random (`lab torture --protocol views`).

mod bounds;
mod fleet;
mod foundings;
mod input;
mod model;
mod stories;
