//! A run as a message-sequence chart: a lane per peer, an arrow per message, and the moments that matter.
//!
//! A run is repeatable, so it is run twice: once to see where it is interesting, and once more to keep
//! what happens there. Memory is bounded by what is shown, however long the run.

mod drawing;
mod family;
mod legend;
mod mark;
mod recorder;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use sigmalock_core::{PeerId, RequestId, Span};

use self::recorder::Recorder;
use super::torture::Victim;
use crate::history::TrueTime;
use crate::oracles::Violation;
use crate::run::RunConfig;
use crate::scenario::{Cast, Scenario};
use crate::subject::Subject;

/// More steps than this make no chart.
pub const STEPS_MAX: usize = 2_000;
/// More lanes than this cannot be told apart; the others share one.
const LANES_MAX: usize = 14;

/// What of a run is to be seen.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Only what happens in this time. If not given: around the first violation, or from the beginning.
    pub window: Option<(Span, Span)>,
    /// At most so many steps.
    pub steps: Option<usize>,
    /// Only what these peers do and say to each other, by name; all, if none is given.
    pub peers: Vec<String>,
}

/// How many steps are shown unless somebody says otherwise.
const STEPS: usize = 120;

impl View {
    fn steps(&self) -> usize {
        self.steps.unwrap_or(STEPS).clamp(1, STEPS_MAX)
    }
    fn shows(&self, name: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|peer| peer == name)
    }
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A message arrives.
    Message,
    /// A message is lost on its way.
    LostMessage,
    /// A client asks.
    Asked,
    /// A client is let in.
    Granted,
    /// Its deadline moves.
    Extended,
    /// A client loses the lock while inside.
    Lost,
    /// A client leaves.
    Released,
    /// A request ends without the lock.
    Ended,
    /// A write of somebody whose time is over is refused: no harm, that is what tokens are for.
    Fenced,
    /// A write of somebody who is inside is refused.
    Refused,
    /// A protocol notes something.
    Note,
    /// Something breaks, or is mended.
    Fault,
    /// A peer stops, and its users with it.
    Down,
    /// A peer stands still; who is inside does not know that time goes on.
    Asleep,
    /// A peer goes on.
    Up,
    /// An oracle objects.
    Violation,
}

/// One line of the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// When.
    pub at: TrueTime,
    /// What.
    pub kind: Kind,
    /// Whose lane; none for what concerns all.
    pub peer: Option<PeerId>,
    /// The other end of a message.
    pub to: Option<PeerId>,
    /// When a message was sent.
    pub sent: TrueTime,
    /// In words.
    pub text: String,
    /// How many messages like it, where several lanes are drawn as one.
    pub times: usize,
    /// Whose right it changes, and when that ends.
    right: Option<(RequestId, TrueTime)>,
}

impl Step {
    fn new(at: TrueTime, kind: Kind, peer: Option<PeerId>, text: String) -> Self {
        Self { at, kind, peer, to: None, sent: at, text, times: 1, right: None }
    }
}

/// One line of `--json`.
#[derive(Debug, Serialize)]
pub struct StepRow<'a> {
    at_ms: f64,
    kind: Kind,
    peer: Option<String>,
    to: Option<String>,
    sent_ms: Option<f64>,
    text: &'a str,
}

/// A peer's column; `None` is the lane of all others.
type Lane = Option<PeerId>;

/// A chart.
#[derive(Debug)]
pub struct Trace {
    /// What it is of.
    pub title: String,
    /// What oracles objected to in the whole run.
    pub violations: Vec<Violation>,
    names: BTreeMap<PeerId, String>,
    lanes: Vec<Lane>,
    steps: Vec<Step>,
    /// How things stand before the first step.
    before: State,
    left_out: (usize, usize),
}

/// Who is inside and until when, and who is down.
#[derive(Debug, Clone, Default)]
struct State {
    inside: BTreeMap<RequestId, TrueTime>,
    down: Vec<PeerId>,
}

/// How it stands with somebody at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Idle,
    Inside,
    InsideAsleep,
    /// Its deadline is over, and it has not noticed.
    Overdue,
    Down,
}

impl Presence {
    const ALL: [Self; 5] =
        [Self::Idle, Self::Inside, Self::InsideAsleep, Self::Overdue, Self::Down];

    /// How its lifeline looks.
    const fn sign(self) -> char {
        match self {
            Self::Idle => '│',
            Self::Inside => '┃',
            Self::InsideAsleep => '╏',
            Self::Overdue => '╎',
            Self::Down => '┊',
        }
    }

    /// What that means, if it needs to be said.
    const fn words(self) -> Option<&'static str> {
        match self {
            Self::Idle => None,
            Self::Inside => Some("inside"),
            Self::InsideAsleep => Some("inside, asleep"),
            Self::Overdue => Some("its time is over, it does not know"),
            Self::Down => Some("down or asleep"),
        }
    }
}

impl State {
    fn apply(&mut self, step: &Step) {
        if let Some((request, until)) = step.right {
            match step.kind {
                Kind::Granted | Kind::Extended => self.inside.insert(request, until),
                _ => self.inside.remove(&request),
            };
        }
        let Some(peer) = step.peer else { return };
        match step.kind {
            Kind::Down => {
                self.inside.retain(|request, _| request.client != peer);
                self.down.push(peer);
            }
            Kind::Asleep => self.down.push(peer),
            Kind::Up => self.down.retain(|down| *down != peer),
            _ => {}
        }
    }

    fn presence(&self, peer: PeerId, at: TrueTime) -> Presence {
        let rights = self.inside.iter().filter(|(request, _)| request.client == peer);
        let until = rights.map(|(_, until)| *until).max();
        match (until, self.is_down(peer)) {
            (Some(until), _) if until <= at => Presence::Overdue,
            (Some(_), true) => Presence::InsideAsleep,
            (Some(_), false) => Presence::Inside,
            (None, true) => Presence::Down,
            (None, false) => Presence::Idle,
        }
    }

    fn is_down(&self, peer: PeerId) -> bool {
        self.down.contains(&peer)
    }
}

impl Trace {
    /// Of a story.
    #[must_use]
    pub fn of_scenario(scenario: &Scenario, title: String, view: &View) -> Self {
        let Scenario { subject, config, cast } = scenario;
        Self::of(subject, config, cast, title, view)
    }

    /// Of a seed of torture.
    #[must_use]
    pub fn of_seed(victim: &Victim, seed: u64, view: &View) -> Self {
        let (subject, config) = victim.case(seed);
        let (n, m) = (subject.quorum.n(), subject.quorum.m());
        let mutant = victim.mutant.map(|mutant| format!(", {mutant}")).unwrap_or_default();
        let title =
            format!("{} {}, {m} of {n}, seed {seed}{mutant}", victim.variant, victim.protocol);
        Self::of(&subject, &config, &Cast::default(), title, view)
    }

    fn of(subject: &Subject, config: &RunConfig, cast: &Cast, title: String, view: &View) -> Self {
        let violations = subject.run(config, &mut subject.oracles(config)).violations;
        let mut recorder =
            Recorder::new(cast, subject.entries_per_grant.is_some(), view, &violations);
        subject.run_watched(config, &mut subject.oracles(config), &mut recorder);
        let (steps, before, left_out) = recorder.finish(&violations);
        let names = steps.iter().flat_map(|step| [step.peer, step.to]).flatten();
        let names: BTreeMap<PeerId, String> = names.map(|id| (id, cast.name(id))).collect();
        let (lanes, steps) = share_lanes(config.hosts as u64, steps);
        Self { title, violations, names, lanes, steps, before, left_out }
    }

    /// The steps, as objects.
    pub fn rows(&self) -> impl Iterator<Item = StepRow<'_>> {
        let ms = |at: TrueTime| at.0 as f64 / 1e3;
        self.steps.iter().map(move |step| StepRow {
            at_ms: ms(step.at),
            kind: step.kind,
            peer: step.peer.map(|peer| self.name(Some(peer))),
            to: step.to.map(|peer| self.name(Some(peer))),
            sent_ms: (step.kind == Kind::Message).then(|| ms(step.sent)),
            text: &step.text,
        })
    }

    /// As text, a line a step.
    #[must_use]
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// As a drawing.
    #[must_use]
    pub fn svg(&self) -> String {
        drawing::draw(self)
    }

    fn name(&self, lane: Lane) -> String {
        match lane {
            Some(peer) => self.names.get(&peer).cloned().unwrap_or_else(|| peer.to_string()),
            None => "others".to_owned(),
        }
    }

    /// The lane of a peer.
    fn lane(&self, peer: PeerId) -> Option<usize> {
        let own = self.lanes.iter().position(|lane| *lane == Some(peer));
        own.or_else(|| self.lanes.iter().position(Option::is_none))
    }

    /// What is not shown, in words.
    fn omissions(&self) -> Option<String> {
        let (before, after) = self.left_out;
        match (before, after) {
            (0, 0) => None,
            (before, 0) => Some(format!("{before} steps before these are not shown")),
            (0, after) => Some(format!("{after} steps after these are not shown")),
            _ => Some(format!("{before} steps before and {after} after these are not shown")),
        }
    }
}

/// Lanes for those who take part, clients first. If there are too many, those with least to say share one:
/// what they tell each other is left out, and what they all say alike is drawn once.
fn share_lanes(hosts: u64, steps: Vec<Step>) -> (Vec<Lane>, Vec<Step>) {
    let mut count: BTreeMap<PeerId, usize> = BTreeMap::new();
    for step in &steps {
        for peer in [step.peer, step.to].into_iter().flatten() {
            // Who does something counts for more than who says or notes something.
            let does = step.to.is_none() && step.kind != Kind::Note;
            *count.entry(peer).or_default() += if does { 1_000 } else { 1 };
        }
    }
    let mut peers: Vec<(usize, PeerId)> = count.iter().map(|(peer, n)| (*n, *peer)).collect();
    peers.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let shared = peers.len() > LANES_MAX;
    peers.truncate(if shared { LANES_MAX - 1 } else { LANES_MAX });
    let mut own: Vec<PeerId> = peers.into_iter().map(|(_, peer)| peer).collect();
    own.sort_unstable_by_key(|peer| (peer.0 < hosts, peer.0));
    let mut lanes: Vec<Lane> = own.iter().copied().map(Some).collect();
    if !shared {
        return (lanes, steps);
    }
    lanes.push(None);
    let lane = |peer: PeerId| own.contains(&peer).then_some(peer);
    let mut kept: Vec<Step> = Vec::new();
    for step in steps {
        let (Some(from), Some(to)) = (step.peer, step.to) else {
            kept.push(step);
            continue;
        };
        let ends = (lane(from), lane(to));
        if ends == (None, None) {
            continue;
        }
        let word = |text: &str| text.split(' ').next().map(str::to_owned);
        let like = kept.last_mut().filter(|last| {
            ends != (Some(from), Some(to))
                && last.kind == step.kind
                && last.peer.map(lane) == Some(ends.0)
                && last.to.map(lane) == Some(ends.1)
                && word(&last.text) == word(&step.text)
        });
        match like {
            Some(last) => last.times += 1,
            None => kept.push(step),
        }
    }
    (lanes, kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sigmalock_protocols::catalogue::Membership;
    use sigmalock_protocols::catalogue::{ProtocolName, Variant};
    use sigmalock_protocols::parts::Quorum;

    const STORY: &str = "replicas 3, quorum 2\nlatency constant:10ms\n1st REQUEST to r3 is lost\n\
        at 0ms anna asks for /a, stays 50ms\nat 5ms bert asks for /a, stays 10ms\nend at 300ms\n";

    fn story(view: &View) -> Trace {
        Trace::of_scenario(&Scenario::parse(STORY).unwrap(), "a story".to_owned(), view)
    }

    fn victim(mutant: &str) -> Victim {
        let quorum = Quorum::new(3, 2).unwrap();
        let (protocol, variant) = (ProtocolName::Sigma, Variant::Shipped);
        let mutant = Subject::new(protocol, variant, quorum).with_mutant(mutant).unwrap().mutant;
        let (quorum, membership) = (Some(quorum), Membership::Fixed);
        Victim { protocol, variant, mutant, agents: false, modes: false, quorum, membership }
    }

    #[test]
    fn a_story_has_its_peers_as_lanes_and_its_moments_as_steps() {
        let trace = story(&View::default());
        let lanes: Vec<String> = trace.lanes.iter().map(|lane| trace.name(*lane)).collect();
        assert_eq!(lanes, ["anna", "bert", "r1", "r2", "r3"]);
        let count = |kind| trace.steps.iter().filter(|step| step.kind == kind).count();
        assert_eq!((count(Kind::Granted), count(Kind::Released), count(Kind::Asked)), (2, 2, 2));
        assert_eq!((count(Kind::LostMessage), count(Kind::Violation)), (1, 0));
        let message = trace.steps.iter().find(|step| step.kind == Kind::Message).unwrap();
        assert_eq!((message.sent, message.at), (TrueTime(0), TrueTime(10_000)));
    }

    #[test]
    fn the_text_shows_arrows_in_both_directions_and_who_is_inside() {
        let text = story(&View::default()).text();
        for piece in
            ["anna    bert    r1", "────►", "◄────", "×", "┃", "anna is inside", "REQUEST anna/1"]
        {
            assert!(text.contains(piece), "no {piece} in\n{text}");
        }
        let width = |line: &str| line.chars().take_while(|c| !c.is_alphabetic()).count();
        assert!(text.lines().count() > 15 && width(&text) < 200);
    }

    #[test]
    fn a_window_shows_only_what_happens_in_it() {
        let view = View {
            window: Some((Span::from_millis(40), Span::from_millis(80))),
            ..View::default()
        };
        let trace = story(&view);
        assert!(!trace.steps.is_empty() && trace.left_out.0 > 0);
        assert!(trace.steps.iter().all(|step| (40_000..=80_000).contains(&step.at.0)));
        let anna = trace.before.presence(PeerId(1_000), TrueTime(40_000));
        assert_eq!(anna, Presence::Inside, "she went in before");
    }

    #[test]
    fn only_some_peers_and_only_so_many_steps() {
        let view = View { peers: vec!["anna".to_owned(), "r1".to_owned()], ..View::default() };
        let trace = story(&view);
        assert_eq!(trace.lanes.len(), 2);
        let view = View { steps: Some(5), ..View::default() };
        let trace = story(&view);
        assert_eq!(trace.steps.len(), 5);
        assert!(
            trace.omissions().is_some_and(|words| words.ends_with("after these are not shown"))
        );
    }

    #[test]
    fn a_failing_seed_is_shown_around_its_first_violation_with_two_inside() {
        let victim = victim("grants-twice");
        let seed = (0..200).find(|seed| {
            let report = crate::lab::torture::torture_seed(&victim, *seed);
            report.violations.iter().any(|violation| violation.oracle == "exclusion")
        });
        let trace = Trace::of_seed(&victim, seed.unwrap(), &View::default());
        let place = trace.steps.iter().position(|step| step.kind == Kind::Violation).unwrap();
        assert!(place > 0, "something leads to it");
        assert!(trace.text().contains("!!! "), "{}", trace.text());
        let svg = trace.svg();
        assert!(svg.contains("class=\"violation\"") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn an_entry_whose_token_had_to_be_sealed_says_so() {
        let victim = Victim { mutant: None, ..victim("grants-twice") };
        let view = View { steps: Some(STEPS_MAX), ..View::default() };
        let sealed = (0..100).find_map(|seed| {
            let trace = Trace::of_seed(&victim, seed, &view);
            let entry = |step: &Step| step.kind == Kind::Granted && step.text.ends_with(", sealed");
            trace.steps.iter().any(entry).then_some(trace)
        });
        let trace = sealed.expect("one seed in a hundred has such an entry");
        assert!(trace.steps.iter().any(|step| step.text.starts_with("SEAL ")), "{}", trace.text());
    }

    #[test]
    fn who_falls_asleep_inside_is_still_inside_and_who_crashes_is_not() {
        let story = |deed| {
            let story = format!(
                "replicas 3, quorum 2\nlatency constant:10ms\n\
                at 0ms anna asks for /a, stays 50ms\nat 30ms anna {deed}\nend at 60ms\n"
            );
            let scenario = Scenario::parse(&story).unwrap();
            let view = View {
                window: Some((Span::from_millis(40), Span::from_millis(60))),
                ..View::default()
            };
            Trace::of_scenario(&scenario, String::new(), &view).before
        };
        let anna = |state: &State, at| state.presence(PeerId(1_000), TrueTime(at));
        let (asleep, crashed) = (story("sleeps 1s"), story("crashes"));
        assert_eq!(anna(&asleep, 40_000), Presence::InsideAsleep);
        assert_eq!(anna(&asleep, 20_000_000), Presence::Overdue);
        assert_eq!(anna(&crashed, 40_000), Presence::Down);
    }

    const SLEEPER: &str = include_str!("../../../../../scenarios/07-paused-holder.txt");

    #[test]
    fn a_sleeper_that_the_fence_refuses_is_no_violation() {
        let scenario = Scenario::parse(SLEEPER).unwrap();
        let view = View { peers: vec!["anna".to_owned(), "bert".to_owned()], ..View::default() };
        let trace = Trace::of_scenario(&scenario, String::new(), &view);
        let count = |kind| trace.steps.iter().filter(|step| step.kind == kind).count();
        assert_eq!((count(Kind::Fenced), count(Kind::Refused), count(Kind::Violation)), (2, 0, 0));
        let text = trace.text();
        for piece in ["╎ its time is over", "⊘ too late", "REFUSED by the fence, no harm"] {
            assert!(text.contains(piece), "no {piece} in\n{text}");
        }
        assert!(!text.contains("‼") && !text.contains("!!!"), "{text}");
        let svg = trace.svg();
        assert!(svg.contains("class=\"overdue\"") && svg.contains("class=\"fenced\""), "{svg}");
        assert!(!svg.contains("class=\"violation\"") && !svg.contains("class=\"harm\""), "{svg}");
    }

    #[test]
    fn a_holder_that_is_refused_is_harm() {
        let trace = Trace::of_seed(&victim("grants-twice"), 0, &View::default());
        assert!(trace.steps.iter().any(|step| step.kind == Kind::Refused), "{}", trace.text());
        assert!(trace.text().contains("‼ refused though inside: harm"), "{}", trace.text());
        assert!(trace.svg().contains("class=\"harm\""));
    }

    /// No sign without its meaning, and no meaning without its sign.
    #[test]
    fn the_legend_has_the_signs_that_occur_and_no_others() {
        let sleeper = Scenario::parse(SLEEPER).unwrap();
        let sleeper = Trace::of_scenario(&sleeper, String::new(), &View::default());
        let broken = Trace::of_seed(&victim("grants-twice"), 0, &View::default());
        for trace in [story(&View::default()), sleeper, broken] {
            let text = trace.text();
            let (chart, legend) = text.rsplit_once("\n\n").unwrap();
            let chart = chart.lines().skip(2).map(|line| &line[13..]).collect::<String>();
            let signs = mark::Mark::ALL.map(mark::Mark::sign).into_iter();
            let signs = signs.chain(Presence::ALL.into_iter().skip(1).map(Presence::sign));
            for sign in signs.chain(['×', '!', '*']) {
                assert_eq!(chart.contains(sign), legend.contains(sign), "{sign}\n{text}");
            }
        }
    }

    #[test]
    fn arrows_are_drawn_by_what_they_say() {
        let svg = story(&View::default()).svg();
        for piece in ["arrow gives", "arrow asks", "arrow releases", "arrow lost", "RESPONSE yours"]
        {
            assert!(svg.contains(piece), "no {piece} in\n{svg}");
        }
        assert!(svg.contains("RESPONSE queued") && !svg.contains("arrow renews"), "{svg}");
        assert_eq!(svg, story(&View::default()).svg(), "the same bytes");
    }

    #[test]
    fn many_hosts_share_a_lane_and_say_things_together() {
        let many = STORY.replace("replicas 3, quorum 2", "replicas 32, quorum 24");
        let scenario = Scenario::parse(&many).unwrap();
        let trace = Trace::of_scenario(&scenario, String::new(), &View::default());
        assert_eq!((trace.lanes.len(), trace.lanes.last()), (LANES_MAX, Some(&None)));
        assert!(trace.steps.iter().any(|step| step.times > 10), "{}", trace.text());
    }
}
