//! What clients want: who asks for which lock when, and what they do with it.

use sigmalock_core::{Mode, Name, Patience, Span};

use crate::rng::Rng;

/// A distribution of lengths of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Always the same.
    Constant(Span),
    /// Anything between two bounds.
    Uniform(Span, Span),
    /// Exponential with this mean.
    Exponential(Span),
}

impl Length {
    /// No time at all.
    pub const ZERO: Self = Self::Constant(Span::ZERO);

    /// The mean.
    #[must_use]
    pub fn mean(self) -> Span {
        match self {
            Self::Constant(span) | Self::Exponential(span) => span,
            Self::Uniform(low, high) => (low + high) / 2,
        }
    }

    pub(crate) fn draw(self, rng: &mut Rng) -> Span {
        match self {
            Self::Constant(span) => span,
            Self::Uniform(low, high) => rng.span(low, high),
            Self::Exponential(mean) => rng.exponential(mean),
        }
    }
}

/// When requests come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// Only as a script says.
    Scripted,
    /// Open: at random moments, whatever became of those before. Each goes to a random idle client,
    /// or a new one if all are busy, or nowhere if there are as many as there may be.
    Poisson {
        /// The mean rate.
        per_s: f64,
        /// So many clients exist from the beginning.
        clients_min: usize,
        /// There are never more.
        clients_max: usize,
    },
    /// Closed: so many clients, each of which asks, works, leaves, thinks and asks again.
    Loops {
        /// How many.
        clients: usize,
        /// How long they think.
        think: Length,
    },
}

/// How long requests are willing to wait: weights, and the limits of those that wait for a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatienceMix {
    /// The weight of those who wait for ever.
    pub forever: f64,
    /// The weight of those who wait for a time.
    pub bounded: f64,
    /// The weight of those who only try.
    pub only_try: f64,
    /// How long those of `bounded` wait.
    pub limit: Length,
}

impl PatienceMix {
    /// All wait for ever.
    pub const FOREVER: Self =
        Self { forever: 1.0, bounded: 0.0, only_try: 0.0, limit: Length::ZERO };

    fn draw(&self, rng: &mut Rng) -> Patience {
        let at = rng.unit() * (self.forever + self.bounded + self.only_try);
        if at < self.forever {
            Patience::Forever
        } else if at < self.forever + self.bounded {
            Patience::For(self.limit.draw(rng))
        } else {
            Patience::Try
        }
    }
}

/// Something that some clients do after a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Habit {
    /// How many of them do.
    pub probability: f64,
    /// After, or for, how long.
    pub length: Length,
}

impl Habit {
    /// Nobody does.
    pub const NEVER: Self = Self { probability: 0.0, length: Length::ZERO };

    fn draw(&self, rng: &mut Rng) -> Option<Span> {
        rng.chance(self.probability).then(|| self.length.draw(rng))
    }
}

/// All clients of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The locks; each request wants one of them, at random.
    pub names: Vec<Name>,
    /// When requests come.
    pub arrivals: Arrivals,
    /// Whether clients live on the peers that host replicas instead of on peers of their own.
    pub clients_on_hosts: bool,
    /// How many clients share a peer.
    pub clients_per_peer: usize,
    /// The leases they ask for.
    pub ttl: Length,
    /// How many of them only want to read, and may be inside together.
    pub readers: f64,
    /// How many of them want a permit.
    pub permits: f64,
    /// Of how many permits: each of them means one of these numbers.
    pub numbers: Vec<u16>,
    /// Whether they want a certain one, because nobody is there to find them one: only agents do.
    pub certain_slots: bool,
    /// How many of the locks they take at once, at most, all or none.
    pub together: usize,
    /// Whether they do so in any order, and not in the one that all keep to: a mutant.
    pub any_order: bool,
    /// How long they stay inside.
    pub inside: Length,
    /// How long they wait.
    pub patience: PatienceMix,
    /// Waiters that change their mind.
    pub cancel: Habit,
    /// Holders that do not listen when their lock is lost, and write once more so much later.
    pub overstay: Habit,
    /// Holders that an operator wants out, so long after they entered.
    pub evict: Habit,
    /// Clients whose peer stands still, so long after they asked, whatever they do then.
    pub sleep: Habit,
    /// For how long.
    pub asleep: Length,
    /// Holders whose peer crashes, so long after they entered.
    pub crash: Habit,
    /// How long such a peer stays down.
    pub down: Length,
}

impl Workload {
    /// Simple clients of one lock: they wait for ever and stay inside for no time.
    #[must_use]
    pub fn new(name: Name, arrivals: Arrivals) -> Self {
        Self {
            names: vec![name],
            arrivals,
            clients_on_hosts: false,
            clients_per_peer: 1,
            ttl: Length::Constant(Span::from_secs(10)),
            readers: 0.0,
            permits: 0.0,
            numbers: Vec::new(),
            certain_slots: false,
            together: 1,
            any_order: false,
            inside: Length::ZERO,
            patience: PatienceMix::FOREVER,
            cancel: Habit::NEVER,
            overstay: Habit::NEVER,
            evict: Habit::NEVER,
            sleep: Habit::NEVER,
            asleep: Length::ZERO,
            crash: Habit::NEVER,
            down: Length::Constant(Span::from_secs(1)),
        }
    }

    /// What the next client wants, kindly or not.
    pub(crate) fn errand(&self, rng: &mut Rng, kind: bool) -> Errand {
        let patience = if kind { Patience::Forever } else { self.patience.draw(rng) };
        let mut errand = Errand::new(self.ttl.draw(rng), patience);
        errand.inside = Some(self.inside.draw(rng));
        if self.readers > 0.0 && rng.chance(self.readers) {
            errand.mode = Mode::Shared;
        }
        if self.permits > 0.0 && rng.chance(self.permits) {
            let of = *rng.pick(&self.numbers);
            let slot = self.certain_slots.then(|| rng.below(of.into()) as u16);
            errand.mode = Mode::Permit { of }.with(slot);
        }
        if !kind {
            errand.cancel_after = self.cancel.draw(rng);
            errand.overstay = self.overstay.draw(rng);
            errand.sleep_after = self.sleep.draw(rng);
            errand.crash_after = self.crash.draw(rng);
            errand.evict_after = self.evict.draw(rng);
        }
        errand
    }
}

/// What one request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errand {
    /// In what company it wants the lock.
    pub mode: Mode,
    /// The lease it asks for.
    pub ttl: Span,
    /// How long it waits.
    pub patience: Patience,
    /// How long it stays inside; `None`: until told to leave.
    pub inside: Option<Span>,
    /// When it changes its mind if it still waits.
    pub cancel_after: Option<Span>,
    /// It ignores that its lock is lost, and writes and leaves so much later.
    pub overstay: Option<Span>,
    /// Its peer stands still for a while, so long after it asked.
    pub sleep_after: Option<Span>,
    /// Its peer crashes so long after it entered, if it is still inside.
    pub crash_after: Option<Span>,
    /// An operator wants it out so long after it entered.
    pub evict_after: Option<Span>,
}

impl Errand {
    /// A client that stays inside until told to leave and does nothing strange.
    #[must_use]
    pub const fn new(ttl: Span, patience: Patience) -> Self {
        Self {
            mode: Mode::Exclusive,
            ttl,
            patience,
            inside: None,
            cancel_after: None,
            overstay: None,
            sleep_after: None,
            crash_after: None,
            evict_after: None,
        }
    }
}
