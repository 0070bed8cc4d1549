//! Rules that can be left out on purpose.

crate::parts::mutants::mutants! {
    /// A rule of views that is broken.
    enum Mutant;
    /// Half of a view chooses its successor.
    HalfIsEnough = "half-is-enough": "exclusion" agreed,
    /// Promises are not written down.
    ForgetsPromises = "forgets-promises": "promises" agreed alone,
    /// A proposer goes by its own wish, whatever may have been chosen.
    IgnoresAccepted = "ignores-accepted": "exclusion" agreed told,
    /// A member accepts the next view as soon as it knows the last.
    HurriesOn = "hurries-on": "exclusion" agreed,
    /// A member accepts the next view after 95 % of a lease.
    CutsViewsShort = "cuts-views-short": "exclusion" agreed,
    /// In a large view a guard lasts for a whole lease of its own clock after most were heard to be in it.
    ConfirmsForTooLong = "confirms-for-too-long": "exclusion" agreed told,
    /// Who lost its memory learns the view from the others and goes on.
    RelearnsViews = "relearns-views": "acceptance" agreed alone,
    /// Who lost its memory takes any view without it for its removal, also one from before it was a member.
    TakesOldViewsForRemoval = "takes-old-views-for-removal": "exclusion" agreed told,
    /// Who lost its memory has a say in the next view as long as it is in.
    AcceptsThoughLost = "accepts-though-lost": "acceptance" agreed alone,
    /// A peer is a member again under the badge of its former membership.
    KeepsItsBadge = "keeps-its-badge": "exclusion" agreed told,
    /// Who wanted in once is added though it has been in and out since.
    HearsOldWishes = "hears-old-wishes": "stall" agreed told,
    /// A wish is kept while views move on, though who said it may have been in and out since.
    KeepsOldWishes = "keeps-old-wishes": "stall" agreed told,
    /// Who is not in the view has a say in the next one, too.
    ListensToOutsiders = "listens-to-outsiders": "exclusion" agreed told,
    /// Any member can say of a newcomer that it knows what the others promised.
    SettledByAnybody = "settled-by-anybody": "exclusion" agreed told,
    /// Who was known to be in a view counts as known to be in the next.
    KeepsConfirmations = "keeps-confirmations": "exclusion" agreed told,
    /// Who comes back with its disk accepts the next view at once, however new the last one is.
    AcceptsOnceRestarted = "accepts-once-restarted": "acceptance" agreed alone,
    /// Who comes back with its disk knows what it promised, but not what it accepted.
    ForgetsAcceptances = "forgets-acceptances": "promises" agreed alone,
    /// Who comes back with its disk counts its ballots from the beginning.
    CountsBallotsAnew = "counts-ballots-anew": "exclusion" agreed told,
    /// Of what others have accepted a proposer goes by the oldest.
    GoesByTheOldest = "goes-by-the-oldest": "exclusion" agreed told,
    /// A promise is heard before it is on disk.
    SpeaksBeforeItWrites = "speaks-before-it-writes": "promises" agreed alone,
    /// A member that asks to be added again is replaced by its new self in one change.
    ReplacesInOneChange = "replaces-in-one-change": "succession" agreed alone,
    /// A peer goes on with the disk it has, whatever others remember.
    TrustsAnyDisk = "trusts-any-disk": "doubles" agreed,
    /// A peer does not mind that others have heard of more records than are on its disk.
    IgnoresWrites = "ignores-writes": "exclusion" agreed,
    /// A peer tells the others how many records it has written since it was started, not how many are on its disk.
    CountsThisLifeOnly = "counts-this-life-only": "exclusion" agreed told,
    /// A peer compares what others have heard of with the records that it has now, not with those that it had then.
    CountsRecordsOfNow = "counts-records-of-now": "exclusion" agreed,
    /// A disk of before the peer was a member is good without anybody's word.
    TrustsDisksOfBefore = "trusts-disks-of-before": "exclusion" agreed told,
    /// A peer that came back promises things before anybody has vouched for its disk.
    VotesUnvouched = "votes-unvouched": "acceptance" agreed alone,
    /// A peer that came back is content when one member has vouched for its disk, whatever the others say.
    BelievesTheFirst = "believes-the-first": "exclusion" agreed told,
    /// A peer that came back waits for the word of all members that were there, though they are gone.
    WaitsForAllItSaw = "waits-for-all-it-saw": "convergence" agreed alone,
    /// A member vouches for a start of another one before that is on its own disk.
    VouchesBeforeItWrites = "vouches-before-it-writes": "exclusion" agreed told,
    /// Who lost its memory vouches for the disks of others, of which it remembers nothing.
    VouchesThoughForgetful = "vouches-though-forgetful": "exclusion" agreed told,
    /// A peer takes the word of a member about an earlier start for one about this.
    HearsAnyVoucher = "hears-any-voucher": "exclusion" agreed told,
    /// A peer introduces itself to every member once, though others may have been there under its name since.
    IntroducesItselfOnce = "introduces-itself-once": "exclusion" agreed told,
    /// A peer that nobody has seen for a while goes on as soon as it sees others again, though another may have run
    /// under its name.
    GoesOnThoughAstray = "goes-on-though-astray": "exclusion" agreed,
    /// A peer that may not be the newest of its name has a say in who is in, because it has run all the while.
    HasASayThoughAstray = "has-a-say-though-astray": "exclusion" agreed told,
    /// Who has become a member anew takes those for witnesses who knew it as it was before.
    KeepsItsWitnesses = "keeps-its-witnesses": "exclusion" agreed told,
    /// How many records others have written is on no disk but when they begin a life.
    ForgetsCounts = "forgets-counts": "exclusion" agreed told,
    /// A peer that is told of a newer disk does not write that down.
    DisownsForNow = "disowns-for-now": "exclusion" agreed told,
    /// The word of a member that has found its own disk to be an old one goes on to count.
    BelievesOldDisks = "believes-old-disks": "exclusion" agreed told,
    /// Members have to show up within two round trips of the start of one that came back, though nobody has vouched for
    /// it by then.
    WaitsFromItsStart = "waits-from-its-start": "exclusion" agreed told,
    /// A peer that came back goes by the word of members that it has lost sight of since.
    BelievesTheAbsent = "believes-the-absent": "exclusion" agreed told,
    /// A member goes on though it reaches a member of another view of the same number.
    GoesOnBesideAnother = "goes-on-beside-another": "exclusion" agreed told,
    /// A member that reaches a member of another view of the same number does not vote, but has a say in the next.
    HasASayBesideAnother = "has-a-say-beside-another": "exclusion" agreed told,
    /// A member that has met a member of another view of the same number does not vote in newer views, either.
    KeepsItsRivals = "keeps-its-rivals": "stall" agreed told,
    /// A proposer that has no say any more goes on to count what others answer.
    CountsWithoutASay = "counts-without-a-say": "exclusion" agreed told,
    /// A member that has lost sight of all who had vouched for it does not wait for those that were there all the while.
    OverlooksWhoIsThere = "overlooks-who-is-there": "exclusion" agreed told,
    /// A member goes on though the only one that had vouched for it says that its own disk is an old one.
    OutlivesItsWitness = "outlives-its-witness": "exclusion" agreed told,
    /// A swarm begins when most of those who are expected have pledged themselves to it.
    FoundsWithMost = "founds-with-most": "exclusion" agreed told,
    /// Hosts make a swarm though they see one that was told another number of them.
    FoundsThoughToldOtherwise = "founds-though-told-otherwise": "exclusion" agreed told,
    /// Who is pledged to a swarm pledges itself to another one, too.
    PledgesTwice = "pledges-twice": "exclusion" agreed told,
    /// Who lost its memory founds a swarm as if it had never been in one.
    FoundsThoughForgetful = "founds-though-forgetful": "exclusion" agreed told,
    /// Who is pledged to a swarm founds one alone.
    FoundsThoughPledged = "founds-though-pledged": "exclusion" agreed told,
    /// Who is pledged to a swarm goes to another one that it hears of.
    LearnsThoughPledged = "learns-though-pledged": "exclusion" agreed told,
    /// A pledge ends by anybody's word.
    HearsAnyDecline = "hears-any-decline": "exclusion" agreed told,
    /// Who lost its memory says of a swarm that it may have decided on that it never will.
    DeclinesThoughForgetful = "declines-though-forgetful": "exclusion" agreed told,
    /// An operator can have members forgotten though those who are left can choose something else meanwhile.
    ForgetsThoughEnoughAreLeft = "forgets-though-enough-are-left": "exclusion" agreed told,
    /// An operator who says who is gone need not say that the disk of the only one that is left is its newest.
    ForgetsUnvouched = "forgets-unvouched": "exclusion" agreed told,
    /// Members are forgotten though somebody who is left has accepted another view, which may have been chosen.
    ForgetsThoughAccepted = "forgets-though-accepted": "exclusion" agreed told,
    /// Who is told to forget takes any promise of a member that is left for an answer to its question.
    HearsAnyPromise = "hears-any-promise": "exclusion" agreed told,
    /// Of two who are told to forget at the same time, both do.
    ForgetsThoughOutbid = "forgets-though-outbid": "exclusion" agreed told,
    /// Who is told to forget does not ask those who are not members whether they know a newer view.
    AsksMembersOnly = "asks-members-only": "exclusion" agreed told,
    /// Members are forgotten though they came meanwhile, and by a peer that has found its disk to be an old one.
    ForgetsWhoeverComes = "forgets-whoever-comes": "exclusion" agreed told,
}
