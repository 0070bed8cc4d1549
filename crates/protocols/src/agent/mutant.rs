//! Rules to break on purpose. An oracle that does not notice is no oracle.

use crate::parts::mutants::mutants;

mutants! {
    /// A deliberately broken agent: one of its rules left out.
    enum Mutant;
    /// An agent lets the next one in for a whole lease, however little is left of the grant.
    HandsOverPastTheDeadline = "hands-over-past-the-deadline": "exclusion" agents,
    /// An agent lets the next one in with the token of the one before.
    ReusesTokens = "reuses-tokens": "tokens" agents,
    /// An agent hands the lock on for as long as somebody waits locally.
    NeverLetsGo = "never-lets-go": "turns" agents,
    /// An agent lets those who wait for a time wait for ever.
    IgnoresPatience = "ignores-patience": "answered" agents,
    /// An agent asks for one slot of a semaphore, and waits for it while others are free.
    AsksForOneSlot = "asks-for-one-slot": "sharing" agents modes,
    /// An agent that has a slot keeps the others that it gets.
    KeepsEverySlot = "keeps-every-slot": "sharing" agents modes,
}
