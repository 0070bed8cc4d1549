//! One contract for every protocol that guards locks: what [`sigmalock_core::LockRequest`] promises to whoever uses one.
//! A protocol that passes can stand in for another. Those of the catalogue are looked at in each of their variants; and
//! such as survive with agents before them, and over views, too.

mod bench;
mod beside;
mod facts;

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::agent::{self, Agent};
use sigmalock_protocols::agreed::{self, Agreed, Beginning, OverViews};
use sigmalock_protocols::catalogue::{
    Listed, ListedMembers, Membership, Plan, ProtocolName, Shipped, ShippedVisitor, Variant,
    Visitor,
};
use sigmalock_protocols::parts::hosting::{ByView, Fixed};
use sigmalock_protocols::parts::{Beside, Hosting, Quorum, Sound};
use sigmalock_protocols::sigma::Sigma;
use sigmalock_protocols::strawman::Strawman;

use bench::{HOSTS, Kit, Lock};

/// How long it takes until views are made.
const VIEWS: Span = Span::from_secs(60);

/// The defaults of the laboratory, among three that guard.
fn plan(me: PeerId, variant: Variant, hosting: Box<dyn Hosting>) -> Plan {
    Plan {
        variant,
        quorum: Quorum::new(HOSTS as u16, 2).unwrap(),
        hosting,
        lease_max: Span::from_secs(15),
        claim_window: Span::from_secs(2),
        dead_after: Span::from_secs(30),
        round_trip_worst: Span::from_millis(500),
        flight_max: Span::from_secs(30),
        back_off: (Span::ZERO, Span::from_secs(4)),
        durable: false,
        tokens_per_grant: 1,
        client_only: me.0 >= HOSTS,
        bare: false,
        rules: Sound,
    }
}

/// The first peers host a replica each.
fn fixed<P: Listed>(me: PeerId, variant: Variant) -> P {
    let hosting = Fixed { hosts: HOSTS, replicas: HOSTS as u16 };
    P::plan(me, &plan(me, variant, Box::new(hosting)))
}

/// One that can be run over views, before it is.
fn inside<P: Listed>(me: PeerId) -> P {
    P::plan(me, &plan(me, Variant::Shipped, Box::new(ByView::default())))
}

fn with_agent<P: Listed>(protocol: P) -> Agent<P> {
    Agent::new(protocol, agent::Config::new(1))
}

fn agreed<P: OverViews>(me: PeerId, inside: P) -> Agreed<P> {
    let beginning = match me.0 {
        0 => Beginning::Found,
        host if host < HOSTS => Beginning::Join,
        _ => Beginning::Watch,
    };
    Agreed::new(me, agreed::Config::new(Span::from_secs(15), beginning), inside)
}

/// One line of the contract.
trait Fact: Copy {
    fn of<P: Lock>(self, kit: &Kit<P>);
}

/// Whoever the line is true of, one after the other.
struct Of<F> {
    name: ProtocolName,
    variant: Variant,
    line: F,
}

impl<F: Fact> Of<F> {
    fn check<P: Lock>(&self, how: &str, peer: fn(PeerId) -> P, ready: Span) {
        println!("{} {} {how}", self.variant, self.name);
        self.line.of(&Kit { peer, as_published: self.variant == Variant::Literal, ready });
    }
}

impl<F: Fact> Visitor for Of<F> {
    type Out = ();

    fn lock<P: Listed>(self) {
        let peer: fn(PeerId) -> P = match self.variant {
            Variant::Literal => |me| fixed(me, Variant::Literal),
            Variant::Shipped => |me| fixed(me, Variant::Shipped),
        };
        self.check("alone", peer, Span::ZERO);
    }

    fn members<P: ListedMembers>(self) {}
}

impl<F: Fact> ShippedVisitor for Of<F> {
    type Out = ();

    fn visit<P: Shipped>(self) {
        let agents = |me| with_agent(fixed::<P>(me, Variant::Shipped));
        self.check("with agents", agents, Span::ZERO);
        if self.name.card().memberships.contains(&Membership::Agreed) {
            self.check("over views", |me| agreed(me, inside::<P>(me)), VIEWS);
            self.check(
                "with agents, over views",
                |me| agreed(me, with_agent(inside::<P>(me))),
                VIEWS,
            );
        }
    }
}

fn holds_for_all(line: impl Fact) {
    for name in ProtocolName::locks() {
        for variant in name.card().variants.iter().copied() {
            name.visit(variant, Of { name, variant, line });
        }
        name.visit_shipped(Of { name, variant: Variant::Shipped, line });
    }
    // Two services in one peer; users ask the first.
    let kit = |peer| Kit { peer, as_published: false, ready: VIEWS };
    line.of(&kit(|me| {
        agreed(me, Beside::new(with_agent(inside::<Sigma>(me)), inside::<Strawman>(me)))
    }));
    let kit = |peer| Kit { peer, as_published: false, ready: VIEWS };
    line.of(&kit(|me| agreed(me, Beside::new(inside::<Strawman>(me), inside::<Sigma>(me)))));
}

/// The whole contract.
macro_rules! lock_contract {
    ($($fact:ident)*) => {
        $(#[test]
        fn $fact() {
            #[derive(Clone, Copy)]
            struct Line;
            impl Fact for Line {
                fn of<P: Lock>(self, kit: &Kit<P>) {
                    facts::$fact(kit);
                }
            }
            holds_for_all(Line);
        })*
    };
}

lock_contract! {
    who_asks_for_a_free_lock_is_let_in_once_until_a_deadline
    who_holds_a_lock_is_extended_for_as_long_as_it_likes
    who_gives_it_back_is_told_so_under_that_call_and_the_next_gets_in
    what_is_over_or_was_never_there_is_no_call
    who_waits_can_cancel_and_who_is_inside_cannot
    who_only_tries_is_answered_soon
    who_waits_for_a_time_is_told_at_its_end
    one_call_is_one_request
    who_is_cut_off_is_told_by_its_deadline_and_the_next_gets_in_after_it
    who_is_put_out_is_told_and_the_next_waits_until_it_has_left
    who_does_not_answer_is_not_renewed
    a_ttl_that_cannot_be_kept_and_a_mode_that_there_is_not_are_refused
    users_of_one_peer_take_turns
    a_new_life_knows_no_call_of_the_last_and_gets_in_after_it
    with_most_of_those_who_guard_away_nobody_gets_in
}
