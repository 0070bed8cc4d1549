//! Rules that can be left out on purpose.

crate::parts::mutants::mutants! {
    /// A rule of views that is broken.
    enum Mutant;
    /// Half of a view chooses its successor.
    HalfIsEnough = "half-is-enough",
    /// Promises are not written down.
    ForgetsPromises = "forgets-promises",
    /// A proposer goes by its own wish, whatever may have been chosen.
    IgnoresAccepted = "ignores-accepted",
    /// A member accepts the next view as soon as it knows the last.
    HurriesOn = "hurries-on",
    /// Who lost its memory learns the view from the others and goes on.
    RelearnsViews = "relearns-views",
}
