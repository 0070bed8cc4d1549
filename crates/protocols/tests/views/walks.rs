//! Random walks: messages are lost, doubled and overtaken, peers crash, forget, are cut off, come and go;
//! then everything heals, and whoever wants in must be in.

use sigmalock_core::{Birth, PeerId, Span};
use sigmalock_protocols::views::{Mutant, Request, Roster, Standing};

use crate::fleet::{Fleet, Packet, Views, id, next};

/// One walk; what an oracle objects to, if anything.
fn walk(seed: u64, mutant: Option<Mutant>) -> Result<u64, String> {
    let mut rng = seed;
    let mut below = |limit: u64| next(&mut rng) % limit;
    let count = 1 + below(7) as usize;
    let mut fleet = Fleet::new(count, mutant, Span::from_secs(3), seed);
    fleet.start(0, Birth::First);
    fleet.ask(0, Request::Found);
    for index in 1..count {
        fleet.start(index, Birth::First);
        fleet.ask(index, Request::Join);
    }
    // One may lose its memory, or each of them, again and again.
    let losses = below(4);
    let mut forgetful = losses > 0;
    // Some messages are heard once more, long after they were said.
    let mut stale: Vec<Packet> = Vec::new();
    for _ in 0..400 + below(1_600) {
        let peer = below(count as u64) as usize;
        let other = below(count as u64) as usize;
        match below(104) {
            0..70 if !fleet.packets.is_empty() => {
                let index = below(fleet.packets.len() as u64) as usize;
                match below(40) {
                    0 | 1 => drop(fleet.packets.swap_remove(index)),
                    2 | 3 => fleet.deliver(fleet.packets[index].clone()),
                    4 if stale.len() < 8 => stale.push(fleet.packets[index].clone()),
                    5 if !stale.is_empty() => {
                        let index = below(stale.len() as u64) as usize;
                        fleet.deliver(stale.swap_remove(index));
                    }
                    _ => {
                        let packet = fleet.packets.swap_remove(index);
                        fleet.deliver(packet);
                    }
                }
            }
            0..92 => fleet.tick(),
            92..94 if fleet.is_up(peer) && below(2) == 0 => {
                fleet.places[peer].tears_after = Some(below(3) as usize);
            }
            92..94 if fleet.is_up(peer) => fleet.crash(peer),
            92..96 if !fleet.is_up(peer) => {
                let enough =
                    fleet.seen.values().last().is_some_and(|view| view.members().len() > 2);
                let forgets = forgetful && enough && below(2) == 0;
                forgetful &= losses > 1 || !forgets;
                fleet.restart(peer, !forgets);
            }
            96 if peer != other => fleet.cut(peer, other),
            97 => fleet.mend(peer, other),
            98 if peer != 0 && fleet.is_up(peer) => fleet.leave(peer),
            99 if fleet.is_up(peer) => fleet.ask(peer, Request::Join),
            100 | 101 => (0..count).filter(|other| *other != peer).for_each(|other| {
                fleet.cut(peer, other);
            }),
            102 | 103 => (0..count).for_each(|other| fleet.mend(peer, other)),
            _ => {}
        }
        if let Some(objection) = fleet.objection {
            return Err(objection);
        }
    }
    heal(&mut fleet)?;
    Ok(fleet.seen.len() as u64)
}

fn heal(fleet: &mut Fleet) -> Result<(), String> {
    let count = fleet.places.len();
    fleet.places.iter_mut().for_each(|place| place.tears_after = None);
    for a in 0..count {
        for b in 0..a {
            fleet.mend(a, b);
        }
    }
    for index in 0..count {
        if !fleet.is_up(index) {
            fleet.restart(index, true);
        }
    }
    for _ in 0..3_000 {
        let packets = std::mem::take(&mut fleet.packets);
        packets.into_iter().for_each(|packet| fleet.deliver(packet));
        fleet.tick();
        if let Some(objection) = &fleet.objection {
            return Err(objection.clone());
        }
        if is_content(fleet) || is_stuck(fleet) {
            return Ok(());
        }
    }
    let states = (0..count).filter_map(|index| fleet.views(index));
    let states: Vec<_> =
        states.map(|v| (v.standing(), v.roster().map(Roster::to_string))).collect();
    Err(format!("not everybody gets in, or out: {states:?}"))
}

/// All know the same view, and in it are those who want to be.
fn is_content(fleet: &Fleet) -> bool {
    let newest = fleet.seen.values().last();
    fleet.places.iter().enumerate().all(|(index, place)| {
        let roster = place.views.as_ref().and_then(Views::roster);
        let standing = place.views.as_ref().map(Views::standing);
        let inside = roster.is_some_and(|roster| roster.contains(id(index)));
        if place.wants_in {
            standing == Some(Standing::Member) && inside && roster == newest
        } else {
            newest.is_none_or(|newest| !newest.contains(id(index)) || newest.members().len() == 1)
        }
    })
}

/// Half of a view have lost their memory: of two peers, one. Nobody can help that but an operator.
fn is_stuck(fleet: &Fleet) -> bool {
    // Who knew of a newer view may be the one who forgot.
    let known = (0..fleet.places.len()).filter_map(|index| fleet.views(index)?.roster());
    let Some(newest) = known.max_by_key(|roster| roster.number()) else { return true };
    let lost =
        |peer: &PeerId| fleet.views(peer.0 as usize).map(Views::standing) == Some(Standing::Lost);
    newest.members().len() - newest.members().filter(lost).count() < newest.majority()
}

#[test]
fn each_view_has_one_successor_and_in_the_end_all_who_want_are_in() {
    let mut views = 0;
    for seed in 0..3_000 {
        views += walk(seed, None).unwrap_or_else(|objection| panic!("seed {seed}: {objection}"));
    }
    assert!(views > 10_000, "little happened: {views} views");
}

#[test]
fn every_rule_is_needed() {
    use Mutant as M;
    // Those take many coincidences, and are told as stories: of foundings,
    let founding = [
        M::FoundsWithMost,
        M::PledgesTwice,
        M::FoundsThoughForgetful,
        M::FoundsThoughPledged,
        M::LearnsThoughPledged,
        M::DeclinesThoughForgetful,
        M::HearsAnyDecline,
    ];
    // of ballots, of disks that are put back, and of operators.
    let told = [
        M::IgnoresAccepted,
        M::CountsBallotsAnew,
        M::GoesByTheOldest,
        M::TrustsDisksOfBefore,
        M::BelievesTheFirst,
        M::WaitsForAllItSaw,
        M::WaitsFromItsStart,
        M::VouchesBeforeItWrites,
        M::HearsAnyVoucher,
        M::VouchesThoughForgetful,
        M::IntroducesItselfOnce,
        M::GoesOnThoughAstray,
        M::ForgetsCounts,
        M::HasASayThoughAstray,
        M::KeepsItsWitnesses,
        M::BelievesOldDisks,
        M::BelievesTheAbsent,
        M::GoesOnBesideAnother,
        M::HasASayBesideAnother,
        M::DisownsForNow,
        M::ForgetsThoughEnoughAreLeft,
        M::ForgetsThoughOutbid,
        M::ForgetsUnvouched,
        M::ForgetsWhoeverComes,
        M::ForgetsThoughAccepted,
        M::HearsAnyPromise,
        M::AsksMembersOnly,
        M::CountsThisLifeOnly,
        M::KeepsItsBadge,
        M::ListensToOutsiders,
        M::SettledByAnybody,
        M::HearsOldWishes,
    ];
    // Of large views; and of clocks, in the tests of the numbers.
    let counted = [M::KeepsConfirmations, M::ConfirmsForTooLong];
    // No disk is put back here, and a step is longer than what is missing of a lease: torture sees those.
    let tortured = [M::TrustsAnyDisk, M::IgnoresWrites, M::CountsRecordsOfNow, M::CutsViewsShort];
    let elsewhere = [&founding[..], &told[..], &counted[..], &tortured[..]].concat();
    for mutant in Mutant::ALL.iter().filter(|mutant| !elsewhere.contains(mutant)) {
        let objection = |seed| Some((seed, walk(seed, Some(*mutant)).err()?));
        let (seed, objection) = (0..20_000).find_map(objection).unwrap_or_else(|| {
            panic!("{mutant} is not caught");
        });
        println!("{mutant}: caught at seed {seed}: {objection}");
    }
}
