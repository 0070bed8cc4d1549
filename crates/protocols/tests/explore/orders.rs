//! What can happen next, and what must be true whatever does.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Incarnation, Input, LocalTime, LockReply, LockRequest,
    Name, Patience, PeerId, Protocol, Span, Surroundings, Token, WallTime,
};
use stateright::{Model, Property};

/// What must be true of every moment.
pub(crate) const SAFE: &str = "one is inside at most, and tokens grow";
pub(crate) const HOSTS: usize = 3;
/// Who asks: the first peers behind the hosts.
const CLIENTS: usize = 2;
const ACQUIRE: CallId = CallId(1);
const RELEASE: CallId = CallId(2);

/// A protocol of which a moment can be told from another one.
pub(crate) trait Countable:
    Protocol<
        Request = LockRequest,
        Reply = LockReply,
        Message: Hash + Send + Sync,
        Timer: Hash + Send + Sync,
        DurableKey: Hash + Send + Sync,
        Durable: Hash + Send + Sync,
    > + Clone
    + Hash
    + Send
    + Sync
    + 'static
{
}
impl<P> Countable for P
where
    P: Protocol<Request = LockRequest, Reply = LockReply> + Clone + Hash + Send + Sync + 'static,
    P::Message: Hash + Send + Sync,
    P::Timer: Hash + Send + Sync,
    P::DurableKey: Hash + Send + Sync,
    P::Durable: Hash + Send + Sync,
{
}

/// From whom to whom.
type Link = (usize, usize);

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A client asks for the lock.
    Ask(usize),
    /// Who is inside leaves.
    Leave(usize),
    /// The first message on its way there is heard.
    Hear(Link),
    /// Time goes on to what is due next.
    Tick,
    /// Something goes wrong.
    Mishap(Mishap),
}

/// What can go wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// A later message is heard before all that are earlier.
    Overtakes(Link, usize),
    /// The first message is heard, and will be again.
    Doubles(Link),
    /// The first message is lost.
    Loses(Link),
    /// A host crashes, and comes back with its disk or without it.
    Restarts { host: usize, with_disk: bool },
}

/// A client's user, as it sees itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum User {
    Outside,
    Waits,
    /// Inside until then, whatever it is told meanwhile.
    Inside(LocalTime),
    Left,
}

#[derive(Clone)]
struct Place<P: Protocol> {
    protocol: P,
    timers: BTreeMap<P::Timer, LocalTime>,
    disk: BTreeMap<P::DurableKey, P::Durable>,
    life: u64,
}

/// All there is at a moment.
pub(crate) struct Moment<P: Protocol> {
    now: LocalTime,
    places: Vec<Arc<Place<P>>>,
    under_way: BTreeMap<Link, VecDeque<P::Message>>,
    users: [User; CLIENTS],
    token: Option<Token>,
    entries: u8,
    objection: Option<&'static str>,
    ticks: u8,
    mishaps: u8,
}

impl<P: Protocol> Clone for Moment<P> {
    fn clone(&self) -> Self {
        Self { places: self.places.clone(), under_way: self.under_way.clone(), ..*self }
    }
}

impl<P: Protocol> fmt::Debug for Moment<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.now, self.users, self.under_way)
    }
}

impl<P: Countable> Hash for Moment<P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.now, self.users, self.token, self.entries, self.objection).hash(state);
        (self.ticks, self.mishaps, &self.under_way).hash(state);
        for place in &self.places {
            (&place.protocol, &place.timers, &place.disk).hash(state);
        }
    }
}

/// They are told apart by their digests, as the checker does.
impl<P: Countable> PartialEq for Moment<P> {
    fn eq(&self, other: &Self) -> bool {
        let digest =
            |moment: &Self| BuildHasherDefault::<DefaultHasher>::default().hash_one(moment);
        digest(self) == digest(other)
    }
}

struct Around(LocalTime);

impl Surroundings for Around {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(1_000_000_000 + self.0.as_micros())
    }
    fn random(&mut self) -> u64 {
        0
    }
}

/// What is explored.
pub(crate) struct Orders<P> {
    make: Box<dyn Fn(PeerId) -> P + Send + Sync>,
    ttl: Span,
    /// How often time goes on,
    ticks_max: u8,
    /// and how much goes wrong.
    mishaps_max: u8,
}

impl<P: Countable> Orders<P> {
    pub(crate) fn new(
        ttl: Span, ticks_max: u8, mishaps_max: u8,
        make: impl Fn(PeerId) -> P + Send + Sync + 'static,
    ) -> Self {
        Self { make: Box::new(make), ttl, ticks_max, mishaps_max }
    }
}

impl<P: Countable> Moment<P> {
    fn start(&mut self, index: usize, protocol: P, birth: Birth<P>) {
        let life = self.places.get(index).map_or(1, |place| place.life + 1);
        let disk = match &birth {
            Birth::Recovered(records) => records.iter().cloned().collect(),
            Birth::First | Birth::Amnesiac => BTreeMap::new(),
        };
        let place = Arc::new(Place { protocol, timers: BTreeMap::new(), disk, life });
        match self.places.get_mut(index) {
            Some(former) => *former = place,
            None => self.places.push(place),
        }
        self.give(index, Input::Start { incarnation: Incarnation(life), birth });
    }

    fn give(&mut self, index: usize, input: Input<P>) {
        let (mut effects, mut around) = (Vec::new(), Around(self.now));
        let place = Arc::make_mut(&mut self.places[index]);
        place.protocol.handle(&mut Context::new(self.now, &mut around, &mut effects), input);
        let mut told = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    let link = (index, to.0 as usize);
                    self.under_way.entry(link).or_default().push_back(message);
                }
                Effect::Persist { key, value: Some(value) } => {
                    drop(place.disk.insert(key, value));
                }
                Effect::Persist { key, value: None } => drop(place.disk.remove(&key)),
                Effect::SetTimer { timer, at } => drop(place.timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(place.timers.remove(&timer)),
                Effect::Reply { id: ACQUIRE, reply } => told.push(reply),
                Effect::Reply { .. } | Effect::Note(_) => {}
            }
        }
        told.into_iter().for_each(|reply| self.tell(index - HOSTS, reply));
    }

    fn tell(&mut self, client: usize, reply: LockReply) {
        match reply {
            LockReply::Granted { deadline, token, .. } => {
                if token.is_some() && token <= self.token {
                    self.objection = Some("a token does not grow");
                }
                self.token = self.token.max(token);
                self.entries += 1;
                self.users[client] = User::Inside(deadline);
            }
            LockReply::Extended { deadline } => self.users[client] = User::Inside(deadline),
            _ => return,
        }
        let inside = |user: &&User| matches!(user, User::Inside(until) if *until > self.now);
        if self.users.iter().filter(inside).count() > 1 {
            self.objection = Some("two are inside");
        }
    }

    /// Takes a message out of what is under way.
    fn take(&mut self, link: Link, place: usize) -> Option<P::Message> {
        let queue = self.under_way.get_mut(&link)?;
        let message = queue.remove(place);
        if queue.is_empty() {
            self.under_way.remove(&link);
        }
        message
    }

    fn hear(&mut self, (from, to): Link, message: P::Message) {
        self.give(to, Input::Receive { from: PeerId(from as u64), message });
    }

    fn next_due(&self) -> Option<(LocalTime, usize, P::Timer)> {
        let due = self.places.iter().enumerate().flat_map(|(index, place)| {
            place.timers.iter().map(move |(timer, at)| (*at, index, timer.clone()))
        });
        due.min()
    }

    /// What can go wrong now.
    fn mishaps(&self) -> impl Iterator<Item = Mishap> {
        let links = self.under_way.iter().flat_map(|(link, queue)| {
            let overtakes = (1..queue.len()).map(|place| Mishap::Overtakes(*link, place));
            overtakes.chain([Mishap::Doubles(*link), Mishap::Loses(*link)])
        });
        let restarts = (0..HOSTS)
            .flat_map(|host| [true, false].map(|with_disk| Mishap::Restarts { host, with_disk }));
        links.chain(restarts)
    }
}

impl<P: Countable> Model for Orders<P> {
    type State = Moment<P>;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment<P>> {
        let mut moment = Moment {
            now: LocalTime::from_micros(1_000_000),
            places: Vec::new(),
            under_way: BTreeMap::new(),
            users: [User::Outside; CLIENTS],
            token: None,
            entries: 0,
            objection: None,
            ticks: 0,
            mishaps: 0,
        };
        for index in 0..HOSTS + CLIENTS {
            moment.start(index, (self.make)(PeerId(index as u64)), Birth::First);
        }
        vec![moment]
    }

    fn actions(&self, moment: &Moment<P>, actions: &mut Vec<Step>) {
        for (client, user) in moment.users.iter().enumerate() {
            match user {
                User::Outside => actions.push(Step::Ask(client)),
                User::Inside(_) => actions.push(Step::Leave(client)),
                User::Waits | User::Left => {}
            }
        }
        actions.extend(moment.under_way.keys().copied().map(Step::Hear));
        if moment.ticks < self.ticks_max {
            actions.push(Step::Tick);
        }
        if moment.mishaps < self.mishaps_max {
            actions.extend(moment.mishaps().map(Step::Mishap));
        }
    }

    fn next_state(&self, moment: &Moment<P>, step: Step) -> Option<Moment<P>> {
        let mut moment = moment.clone();
        match step {
            Step::Ask(client) => {
                moment.users[client] = User::Waits;
                let wish = Acquire::exclusive(Name::new("/job").ok()?, self.ttl, Patience::Forever);
                let request = LockRequest::Acquire(wish);
                moment.give(HOSTS + client, Input::Request { id: ACQUIRE, request });
            }
            Step::Leave(client) => {
                moment.users[client] = User::Left;
                let request = LockRequest::Release { held: ACQUIRE };
                moment.give(HOSTS + client, Input::Request { id: RELEASE, request });
            }
            Step::Hear(link) => {
                let message = moment.take(link, 0)?;
                moment.hear(link, message);
            }
            Step::Tick => {
                moment.ticks += 1;
                let (at, index, timer) = moment.next_due()?;
                moment.now = moment.now.max(at);
                Arc::make_mut(&mut moment.places[index]).timers.remove(&timer);
                moment.give(index, Input::Fire(timer));
            }
            Step::Mishap(mishap) => {
                moment.mishaps += 1;
                match mishap {
                    Mishap::Overtakes(link, place) => {
                        let message = moment.take(link, place)?;
                        moment.hear(link, message);
                    }
                    Mishap::Doubles(link) => {
                        let message = moment.under_way.get(&link)?.front()?.clone();
                        moment.hear(link, message);
                    }
                    Mishap::Loses(link) => drop(moment.take(link, 0)?),
                    Mishap::Restarts { host, with_disk } => {
                        let records = moment.places[host].disk.clone().into_iter().collect();
                        let birth =
                            if with_disk { Birth::Recovered(records) } else { Birth::Amnesiac };
                        moment.start(host, (self.make)(PeerId(host as u64)), birth);
                    }
                }
            }
        }
        Some(moment)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFE, |_, moment: &Moment<P>| moment.objection.is_none()),
            Property::sometimes("one after the other", |_, moment: &Moment<P>| moment.entries == 2),
        ]
    }
}
