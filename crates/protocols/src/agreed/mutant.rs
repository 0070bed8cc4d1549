//! Rules to break on purpose. An oracle that does not notice is no oracle.

use crate::parts::mutants::mutants;

mutants! {
    /// A deliberately broken agreement: one of its rules left out.
    enum Mutant;
    /// A client counts votes of hosts that are in a later view.
    CountsLaterViews = "counts-later-views",
    /// A client counts votes of hosts that are in an earlier view.
    CountsEarlierViews = "counts-earlier-views",
    /// A newcomer asks members that are not yet in its view which votes are out.
    HearsVotesOfBefore = "hears-votes-of-before",
    /// Whoever is new in a view votes at once.
    VotesAtOnce = "votes-at-once",
    /// The others go on at once when an operator has forgotten a member.
    ForgetsAtOnce = "forgets-at-once",
}
