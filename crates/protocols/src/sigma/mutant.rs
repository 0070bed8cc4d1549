//! Rules to break on purpose. An oracle that does not notice is no oracle.

use alloc::vec::Vec;

use sigmalock_core::{Context, Effect, Protocol};

use crate::parts::mutants::mutants;

mutants! {
    /// A deliberately broken Sigma: one rule of the shipped variant left out.
    enum Mutant;
    /// A replica gives its vote to whoever asks, whether or not somebody has it.
    GrantsTwice = "grants-twice": "exclusion",
    /// A replica answers every REQUEST twice.
    AnswersTwice = "answers-twice": "accounting",
    /// A replica does not remember which requests are over.
    ForgetsTombstones = "forgets-tombstones": "idle",
    /// A replica takes any YIELD for one of the present grant.
    AcceptsAnyYield = "accepts-any-yield": "exclusion",
    /// A replica that lost its memory votes at once.
    VotesWithoutMemory = "votes-without-memory": "exclusion",
    /// A replica serves the youngest first.
    ServesYoungestFirst = "serves-youngest-first": "fifo",
    /// A replica whose vote comes back waits to be asked before it gives it to the next.
    SitsOnVotes = "sits-on-votes": "idle",
    /// A replica takes a vote back after three quarters of its lease.
    EndsLeasesEarly = "ends-leases-early": "exclusion",
    /// A replica never takes a vote back that its owner does not return.
    NeverEndsLeases = "never-ends-leases": "stall",
    /// A replica never writes its vote to disk, and after a restart takes the disk's word.
    NeverPersists = "never-persists": "tokens",
    /// A replica writes its vote to disk after it has sent it.
    PersistsLast = "persists-last": "tokens",
    /// A client counts a lease from the moment it hears of it.
    CountsFromReceipt = "counts-from-receipt": "exclusion",
    /// A client takes the clocks of hosts for as fast as its own.
    IgnoresClockRates = "ignores-clock-rates": "exclusion",
    /// A client that renews takes the clocks of hosts for as fast as its own.
    RenewsWithoutMargin = "renews-without-margin": "exclusion",
    /// A client takes the claim window for a full lease.
    IgnoresClaimWindow = "ignores-claim-window": "exclusion",
    /// A client counts responses that were overtaken, by newer ones or by its own YIELD.
    CountsStaleResponses = "counts-stale-responses": "exclusion",
    /// A client keeps counting a vote that it has yielded.
    CountsYieldedVotes = "counts-yielded-votes": "exclusion",
    /// A client shows the highest token proposed without having it sealed.
    ShowsUnsealedToken = "shows-unsealed-token": "register",
    /// A client shows the highest grant number as its token.
    ShowsGrantCounter = "shows-grant-counter": "tokens",
    /// A client seals, and counts acknowledgements, without looking at the clock.
    SealsAfterDeadline = "seals-after-deadline": "tokens",
    /// A host that forgot a name proposes the next number it knows, whatever the wall clock says.
    ForgetsTokenFloor = "forgets-token-floor": "tokens",
    /// A host that forgot a name believes the first token it hears, however old.
    TrustsOldTokens = "trusts-old-tokens": "tokens",
    /// A host proposes one token more with each grant, though the winner may show a whole block.
    OverlapsBlocks = "overlaps-blocks": "tokens" agents,
    /// A client whose patience ends goes away without a word to its user.
    EndsInSilence = "ends-in-silence": "answered",
    /// A client whose guard ends goes on as if it had not.
    IgnoresDeadline = "ignores-deadline": "notice",
    /// A host goes on voting for a replica that it has handed off.
    VotesAfterHandingOff = "votes-after-handing-off": "exclusion" open,
    /// A host that takes a replica over votes before the former one has handed it over.
    TakesOverBlindly = "takes-over-blindly": "exclusion" open,
    /// A host hands a replica off and forgets to say who has its vote.
    HandsOffWithoutTheVote = "hands-off-without-the-vote": "exclusion" open,
    /// A host that takes over a vote ends it after a quarter of its lease.
    AdoptsBriefly = "adopts-briefly": "exclusion" open,
    /// A host whose hand-off is not acknowledged in time goes on as if it had not handed off.
    ResumesByTimeout = "resumes-by-timeout": "exclusion" open,
    /// A replica lets readers pass a writer that waits.
    LetsReadersPass = "lets-readers-pass": "fifo" modes,
    /// A replica gives a writer the vote that readers have.
    LetsWritersJoinReaders = "lets-writers-join-readers": "exclusion" modes,
    /// A replica gives its vote to one reader at a time.
    KeepsReadersApart = "keeps-readers-apart": "sharing" modes,
    /// A replica takes the RELEASE of one reader for that of all.
    FreesAllReaders = "frees-all-readers": "exclusion" modes,
    /// A replica proposes to readers the token of the writer before them.
    ReadsUnderTheWritersToken = "reads-under-the-writers-token": "tokens" modes,
    /// A replica does not remember the tokens of readers.
    ForgetsReaders = "forgets-readers": "tokens" modes,
    /// A replica gives a permit the vote that a writer has.
    LetsPermitsJoinWriters = "lets-permits-join-writers": "exclusion" modes,
    /// A replica gives a reader the vote that permits have.
    LetsReadersJoinPermits = "lets-readers-join-permits": "exclusion" modes,
    /// A replica gives its vote for permits of two different numbers.
    MixesPermits = "mixes-permits": "exclusion" modes,
    /// A replica gives one slot of a semaphore to two.
    GivesASlotTwice = "gives-a-slot-twice": "exclusion" modes,
    /// A replica lets permits of different numbers wait for each other.
    HushesUpNumbers = "hushes-up-numbers": "refusals" modes,
    /// A client that means another number of permits than the others is told its own.
    NamesItsOwnNumber = "names-its-own-number": "refusals" modes,
    /// A replica proposes to permits the token of the holder before them.
    ReusesSlotTokens = "reuses-slot-tokens": "tokens" modes,
    /// A host that forgot a name takes what it learns of one slot for all there is to know.
    RemembersOneSlot = "remembers-one-slot": "tokens" modes,
    /// A host that forgot a name takes the token of one slot for higher than those of all others.
    TrustsOtherSlots = "trusts-other-slots": "tokens" modes,
    /// A replica has those who want one slot wait for those who want another.
    LinesUpSlots = "lines-up-slots": "sharing" agents modes,
    /// A replica keeps a place in its queue for clients that it cannot reach.
    WaitsForTheUnreachable = "waits-for-the-unreachable": "stall" told,
    /// A client that reaches too few hosts to win stands in line like everybody else.
    StandsInTheWay = "stands-in-the-way": "stall" told,
    /// The newcomer of a view does not ask which votes are out.
    SettlesWithoutAsking = "settles-without-asking": "exclusion" agreed,
    /// The newcomer of a view goes by the votes that it has heard of, whoever has not answered.
    IgnoresTheUnseen = "ignores-the-unseen": "exclusion" agreed,
    /// The newcomer of a view votes though two may have won without it.
    VotesBetweenTwo = "votes-between-two": "exclusion" agreed,
    /// A host that may not vote yet answers a newcomer that asks which votes are out.
    AnswersThoughItWaits = "answers-though-it-waits": "exclusion" agreed told,
    /// A host that abstains on a name does not tell the newcomer of a view.
    HushesUpAbstentions = "hushes-up-abstentions": "exclusion" agreed told,
    /// A host that abstains on a name votes on it when it has been restarted.
    ForgetsAbstentions = "forgets-abstentions": "exclusion" agreed told,
    /// A host that abstained on a name abstains for half a lease when it has been restarted.
    AbstainsBriefly = "abstains-briefly": "exclusion" agreed told,
    /// The newcomer of a large view goes by what most of the others have told it.
    SettlesWithMost = "settles-with-most": "exclusion" agreed told,
    /// The newcomer of a view that has no room for all votes takes on those that it has room for, and waits for the others.
    TakesOnWhatFits = "takes-on-what-fits": "exclusion" agreed told,
    /// A host that is a member anew goes on with the votes of its former membership.
    KeepsOldVotes = "keeps-old-votes": "exclusion" agreed told,
    /// A host hands a replica off and says of one reader only that it has its vote.
    HandsOffOneReader = "hands-off-one-reader": "exclusion" open modes,
    /// A client that is told that a lock is given back is told so under the call that got it.
    AnswersTheHolder = "answers-the-holder": "answered",
}

/// Does something of which all that is to be kept is kept last.
pub(super) fn persist_last<P: Protocol>(
    cx: &mut Context<'_, P>, act: impl FnOnce(&mut Context<'_, P>),
) {
    let mut effects = Vec::new();
    act(&mut cx.inner(&mut effects));
    effects.sort_by_key(|effect| matches!(effect, Effect::Persist { .. }));
    effects.into_iter().for_each(|effect| cx.emit(effect));
}
