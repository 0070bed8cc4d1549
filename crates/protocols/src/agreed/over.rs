//! What a protocol is that members of a view do together.

use sigmalock_core::Context;

use crate::parts::Driven;
use crate::parts::hosting::Terms;

/// A protocol that can be run over views: it can say which of its messages are promises, it keeps to the terms
/// that it is given, and it is told of every view ([`sigmalock_core::Input::ViewChanged`]).
pub trait OverViews: Driven {
    /// Whether a message promises something that counts in one view only.
    fn is_promise(message: &Self::Message) -> bool;
    /// This peer is in on these terms from now on: it promises nothing before, and counts on no promise for longer.
    fn stand(&mut self, terms: Terms);
    /// The terms may let it promise what it could not before.
    fn go_on(&mut self, _cx: &mut Context<'_, Self>) {}
    /// The newest view as whose newcomer this peer knows what the others promised; 0 if there is none. Who never
    /// finds out waits until all that was promised has run out.
    fn settled(&self) -> u64 {
        0
    }
}
