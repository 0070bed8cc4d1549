//! Who runs peers that agree on who is in: they have swarms founded and peers taken in, and go by what comes of it.
//!
//! In place of locks there is what lies over views: the newcomer of a view is told, some time later, that it knows what
//! the others promised. What peers learn, accept and say goes on record; the disks of those who say it are looked at.

use sigmalock_core::{Birth, CallId, Input, PeerId, Span};
use sigmalock_protocols::agreed::Beginning;
use sigmalock_protocols::catalogue::MembersProtocol;
use sigmalock_protocols::views::{Ballot, Change, Message, Request, Roster, Saved, Standing};

use crate::crowd::Crowd;
use crate::history::{OfViews, What};
use crate::rng::Rng;
use crate::script::Action;
use crate::watch::Watch;
use crate::world::{Event, World};

/// A newcomer is told within this long that it knows what the others promised,
const SETTLES_WITHIN: Span = Span::from_millis(1_500);
/// unless it is one of so many that never are.
const NEVER_SETTLES: u64 = 6;

/// All of them.
#[derive(Debug, Clone)]
pub(crate) struct Members {
    /// How each host comes in.
    beginnings: Vec<Beginning>,
    places: Vec<Place>,
    newest: Option<Roster>,
    is_content: bool,
    rng: Rng,
}

/// What was last seen of a peer.
#[derive(Debug, Clone, Default)]
struct Place {
    wants_in: bool,
    number: u64,
    standing: Option<Standing>,
    accepted: Option<(Ballot, Change)>,
    /// It has just begun a life, with a disk that says that it accepted this.
    saved: Option<Option<(Ballot, Change)>>,
}

/// The newcomer of a view is told that it knows what the others promised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settle {
    peer: u32,
    life: u32,
    view: u64,
}

impl Members {
    pub(crate) fn new(seed: u64, beginnings: Vec<Beginning>) -> Self {
        let places = vec![Place::default(); beginnings.len()];
        let rng = Rng::split(seed, 0x6d65_6d62);
        Self { beginnings, places, newest: None, is_content: false, rng }
    }
}

impl<P: MembersProtocol> Crowd<P> for Members {
    type Deed = Settle;

    /// All who want in are, in the newest view, and nobody else is.
    fn is_content(&self) -> bool {
        self.is_content
    }

    fn gather<W: Watch>(_: &mut World<'_, P, Self, W>) {}

    fn act<W: Watch>(world: &mut World<'_, P, Self, W>, settle: Settle) {
        let Settle { peer, life, view } = settle;
        let index = peer as usize;
        if world.peers[index].paused_until.is_some() {
            return world.peers[index].deferred.push(settle);
        }
        let place = &world.users.places[index];
        let is_newcomer = place.number == view && place.standing == Some(Standing::Member);
        if world.peers[index].life == life && world.peers[index].is_up() && is_newcomer {
            world.record(What::Views(OfViews::Settled(view)));
            world.ask(index, Request::Settled { view });
        }
    }

    /// There is nothing that a script could tell them but what goes wrong.
    fn on_told<W: Watch>(_: &mut World<'_, P, Self, W>, _: &Action) {}

    fn on_reply<W: Watch>(_: &mut World<'_, P, Self, W>, _: usize, _: CallId, _: P::Reply) {}

    fn on_start<W: Watch>(world: &mut World<'_, P, Self, W>, index: usize) {
        match world.users.beginnings.get(index).copied().unwrap_or_default() {
            // Nobody founds a swarm twice, whatever became of its disk.
            Beginning::Found if world.users.newest.is_some() => {}
            Beginning::Found => world.ask(index, Request::Found),
            Beginning::Expect(hosts) => world.ask(index, Request::Expect { hosts }),
            Beginning::Join => {}
            Beginning::Watch => return,
        }
        world.ask(index, Request::Join);
    }

    fn on_crash<W: Watch>(world: &mut World<'_, P, Self, W>, index: usize) {
        world.users.places[index].standing = None;
        world.look_around();
    }

    fn on_healed<W: Watch>(world: &mut World<'_, P, Self, W>) {
        world.look_around();
    }

    fn on_input<W: Watch>(world: &mut World<'_, P, Self, W>, index: usize, input: &Input<P>) {
        let peer = world.population.id(index);
        match input {
            Input::Start { birth, .. } => {
                let place = &mut world.users.places[index];
                let saved = match birth {
                    Birth::Recovered(records) => records.first().map(|(_, saved)| saved),
                    Birth::First | Birth::Amnesiac => None,
                };
                let accepted = saved.and_then(|saved| saved.acceptor.accepted());
                *place = Place { wants_in: true, saved: Some(accepted), ..Place::default() };
                let forgot = matches!(birth, Birth::Amnesiac);
                world.record(What::Views(OfViews::Began { peer, forgot }));
            }
            Input::Receive { message: Message::Vouched { .. }, .. } => {
                world.record(What::Views(OfViews::Vouched(peer)));
            }
            Input::Leave => {
                world.users.places[index].wants_in = false;
                world.record(What::Views(OfViews::Leaves(peer)));
                world.look_around();
            }
            _ => {}
        }
    }

    fn on_turn<W: Watch>(world: &mut World<'_, P, Self, W>, index: usize) {
        let peer = world.population.id(index);
        let Some(views) = &world.peers[index].protocol else { return };
        let number = views.roster().map_or(0, Roster::number);
        let (standing, accepted) = (views.standing(), views.accepted());
        let place = &mut world.users.places[index];
        let saved = place.saved.take();
        if saved.is_none()
            && (number, Some(standing), accepted) == (place.number, place.standing, place.accepted)
        {
            return;
        }
        let learned = (number != place.number).then(|| views.roster().cloned()).flatten();
        let accepts = saved.is_none() && accepted != place.accepted && accepted.is_some();
        let stands = place.standing != Some(standing);
        (place.number, place.standing, place.accepted) = (number, Some(standing), accepted);
        let clock = world.peers[index].clocks.clock.read(world.now);
        if let Some(saved) = saved {
            let recalls = saved == accepted;
            world.record(What::Views(OfViews::Recalls { peer, recalls, standing, clock }));
        }
        if let Some(roster) = learned {
            world.learn(index, &roster);
            world.record(What::Views(OfViews::Learned { peer, clock, roster }));
        }
        if stands {
            world.record(What::Views(OfViews::Stands { peer, standing }));
        }
        if accepts {
            let view = number;
            world.record(What::Views(OfViews::Accepted { peer, view, standing, clock }));
        }
        world.look_around();
    }

    fn on_said<W: Watch>(
        world: &mut World<'_, P, Self, W>, index: usize, to: PeerId, message: &Message,
    ) {
        let (view, ballot, accepts) = match message {
            Message::Promise { view, ballot, .. } => (*view, *ballot, false),
            Message::Accepted { view, ballot } => (*view, *ballot, true),
            _ => return,
        };
        let peer = world.population.id(index);
        // What waited for a slow disk is said when there may be a later view on it already.
        let written =
            world.peers[index].disk.records.values().next().is_some_and(|saved: &Saved| {
                let at = saved.roster.as_ref().map_or(0, Roster::number);
                at > view || (at == view && saved.acceptor.promised() >= Some(ballot))
            });
        if to != peer {
            let views = world.peers[index].protocol.as_ref();
            let badge = views.and_then(|views| views.roster()?.badge(peer));
            let promise = OfViews::Promised { peer, badge, view, ballot, accepts, written };
            world.record(What::Views(promise));
        }
    }
}

impl<P: MembersProtocol, W: Watch> World<'_, P, Members, W> {
    fn ask(&mut self, index: usize, request: Request) {
        if self.peers[index].is_up() {
            let id = self.peers[index].next_call();
            self.request(index, id, request);
        }
    }

    /// A peer is at a new view. The first that is counts, as an entry into a critical section does elsewhere.
    fn learn(&mut self, index: usize, roster: &Roster) {
        let view = roster.number();
        if self.users.newest.as_ref().is_none_or(|newest| newest.number() < view) {
            self.users.newest = Some(roster.clone());
            self.entries += 1;
            self.entries_measured += u64::from(self.now >= self.config.measured_from());
        }
        if roster.is_newcomer(self.population.id(index)) && self.users.rng.below(NEVER_SETTLES) != 0
        {
            let after = self.users.rng.span(Span::ZERO, SETTLES_WITHIN);
            let settle = Settle { peer: index as u32, life: self.peers[index].life, view };
            self.queue.push(self.now + after, Event::User(settle));
        }
    }

    fn look_around(&mut self) {
        let Some(newest) = &self.users.newest else { return };
        let is_in = |place: &Place| {
            place.standing == Some(Standing::Member) && place.number == newest.number()
        };
        let mut places = self.users.places.iter().zip(&self.peers).zip(0..);
        self.users.is_content = places.all(|((place, peer), index)| {
            let listed = newest.contains(self.population.id(index));
            match (peer.is_up() && place.wants_in, newest.members().len()) {
                (true, _) => listed && is_in(place),
                // The last one cannot go.
                (false, 1) => true,
                (false, _) => !listed,
            }
        });
    }
}
