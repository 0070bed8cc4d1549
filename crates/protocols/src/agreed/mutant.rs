//! Rules to break on purpose. An oracle that does not notice is no oracle.

use crate::parts::mutants::mutants;

mutants! {
    /// A deliberately broken agreement: one of its rules left out.
    enum Mutant;
    /// A client counts votes of hosts that are in a later view.
    CountsLaterViews = "counts-later-views": "exclusion" agreed,
    /// A client hears in the next view what was promised in the one after that.
    HearsWhatCameEarly = "hears-what-came-early": "exclusion" agreed told,
    /// A newcomer asks members that are not yet in its view which votes are out.
    HearsVotesOfBefore = "hears-votes-of-before": "exclusion" agreed told,
    /// A client hears renewals of hosts in any view.
    HearsAnyRenewal = "hears-any-renewal": "exclusion" agreed,
    /// In a view that an operator made, a member that is restarted votes as its disk says it did before.
    VotesAsItsDiskSays = "votes-as-its-disk-says": "exclusion" agreed,
    /// The others go on at once when an operator has forgotten a member.
    ForgetsAtOnce = "forgets-at-once": "exclusion" agreed,
    /// A client of a large view goes on without knowing whether most are still in it.
    GoesOnUnconfirmed = "goes-on-unconfirmed": "exclusion" agreed,
    /// The tenth member votes as soon as the others have told it of their votes.
    HurriesTheTenth = "hurries-the-tenth": "exclusion" agreed told,
    /// A newcomer tells whose votes it has taken on before it has written down that it votes.
    SettlesBeforeItWrites = "settles-before-it-writes": "exclusion" agreed told,
    /// A member whose disk was looked at votes before it has taken in that the disk is an old one.
    VotesBeforeItFollows = "votes-before-it-follows": "exclusion" agreed told,
    /// Hosts that have made a swarm vote at once, though they may have been another one a moment ago.
    VotesAtOnceInANewSwarm = "votes-at-once-in-a-new-swarm": "exclusion" agreed,
}
