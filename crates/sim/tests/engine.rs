//! The engine keeps the contract that protocols count on. The protocol here does nothing but tell
//! what happens to it.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use sigmalock_core::{
    Birth, Context, Input, LocalTime, LockReply, LockRequest, Message, Name, PeerId, Protocol, Span,
};
use sigmalock_protocols::parts::Driven;
use sigmalock_sim::clock::Clocks;
use sigmalock_sim::faults::{Cut, Fault, Memory};
use sigmalock_sim::history::{TrueTime, What};
use sigmalock_sim::latency::Latency;
use sigmalock_sim::network::Network;
use sigmalock_sim::run::{Outcome, RunConfig, run};
use sigmalock_sim::script::Script;
use sigmalock_sim::workload::{Arrivals, Length, Workload};

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// What happened, to whom, when on its own clock (in milliseconds).
type Log = Rc<RefCell<Vec<(u64, u64, String)>>>;

/// Peer 0 sends a numbered message to peer 1 every 100 ms; peer 1 has a few timers and a disk.
struct Toy {
    me: PeerId,
    log: Log,
    sent: u64,
    restless: bool,
}

#[derive(Debug, Clone)]
struct Number(u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Message for Number {
    fn kind(&self) -> &'static str {
        "NUMBER"
    }
    fn size_bytes(&self) -> usize {
        8
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Tick,
    Second,
    Moved,
    Cancelled,
}

impl Toy {
    fn tell(&self, cx: &Context<'_, Self>, what: String) {
        self.log.borrow_mut().push((cx.now().as_micros() / 1_000, self.me.0, what));
    }

    fn start(&mut self, cx: &mut Context<'_, Self>, birth: Birth<Self>) {
        let what = match birth {
            Birth::First => "first life".to_owned(),
            Birth::Amnesiac => "no memory".to_owned(),
            Birth::Recovered(disk) => format!("{disk:?}"),
        };
        self.tell(cx, what);
        let at = |span| cx.now() + span;
        let (tick, second, soon, late) = (at(ms(100)), at(ms(1_000)), at(ms(10)), at(ms(700)));
        match self.me.0 {
            0 => cx.set_timer(Timer::Tick, tick),
            1 => {
                cx.set_timer(Timer::Moved, soon);
                cx.set_timer(Timer::Moved, late);
                cx.set_timer(Timer::Cancelled, soon);
                cx.cancel_timer(Timer::Cancelled);
                cx.set_timer(Timer::Second, second);
            }
            _ => {}
        }
    }
}

impl Driven for Toy {}

impl Protocol for Toy {
    type Message = Number;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = Timer;
    type DurableKey = u8;
    type Durable = u64;
    type Note = String;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        match input {
            Input::Start { birth, .. } => self.start(cx, birth),
            Input::Fire(Timer::Tick) => {
                self.sent += 1;
                cx.send(PeerId(1), Number(self.sent));
                cx.set_timer(Timer::Tick, cx.now() + ms(100));
            }
            Input::Fire(timer) => {
                self.tell(cx, format!("{timer:?}"));
                if self.restless {
                    cx.set_timer(timer, LocalTime::MIN);
                }
            }
            Input::Receive { message, .. } => {
                self.tell(cx, message.to_string());
                cx.persist(0, Some(message.0));
                cx.persist(1, Some(7));
                cx.persist(1, None);
            }
            Input::Request { id, request: LockRequest::Acquire(_) } => {
                let deadline = cx.now() + ms(10_000);
                cx.reply(id, LockReply::Granted { token: None, deadline, slot: None });
            }
            Input::PeerDown(peer) => self.tell(cx, format!("{peer} is down")),
            Input::PeerUp(peer) => self.tell(cx, format!("{peer} is up")),
            Input::Request { .. } | Input::Leave | Input::ViewChanged(_) => {}
        }
    }
}

fn config(seed: u64, faults: &[(u64, Fault)]) -> RunConfig {
    let network = Network::perfect(Latency::Constant(ms(10)));
    let workload = Workload::new(Name::new("/toy").unwrap(), Arrivals::Scripted);
    let mut config = RunConfig::new(seed, 2, network, workload);
    config.duration = ms(5_000);
    config.faults.faults =
        faults.iter().map(|(at, fault)| (TrueTime(at * 1_000), fault.clone())).collect();
    config
}

fn play(config: &RunConfig) -> (Vec<(u64, String)>, Outcome) {
    let log = Log::default();
    let make = |me| Toy { me, log: log.clone(), sent: 0, restless: false };
    let outcome = run(config, make, &mut []);
    let log = log.take();
    let lines = log.iter().filter(|line| line.1 == 1);
    (lines.map(|(at, _, what)| (*at, what.clone())).collect(), outcome)
}

fn numbers(lines: &[(u64, String)]) -> Vec<u64> {
    lines.iter().filter_map(|(_, what)| what.parse().ok()).collect()
}

#[test]
fn timers_fire_once_when_due_and_never_after_they_were_moved_or_cancelled() {
    let (lines, _) = play(&config(1, &[]));
    let timers: Vec<_> = lines.iter().filter(|(_, what)| what.parse::<u64>().is_err()).collect();
    let expected = [(0, "first life"), (700, "Moved"), (1_000, "Second")];
    assert!(timers.iter().map(|(at, what)| (*at, what.as_str())).eq(expected), "{timers:?}");
}

#[test]
fn timers_go_by_the_peers_own_clock() {
    let mut config = config(3, &[]);
    config.clocks = Clocks { ppm_max: 5_000, offset_max: ms(90_000), ..Clocks::default() };
    let (lines, _) = play(&config);
    let at = |what: &str| lines.iter().find(|line| line.1 == what).unwrap().0;
    assert!((999..=1_001).contains(&(at("Second") - at("first life"))));
    assert!(at("first life") > 0);
}

#[test]
fn a_paused_peer_gets_everything_on_waking_each_kind_in_order() {
    let pause = Fault::Pause { peer: PeerId(1), span: ms(2_500) };
    let mut timers_came_first = [false; 2];
    for seed in 0..20 {
        let (lines, _) = play(&config(seed, &[(500, pause.clone())]));
        assert!(lines.iter().all(|(at, _)| *at <= 500 || *at >= 3_000), "{lines:?}");
        assert!(numbers(&lines).is_sorted());
        assert_eq!(numbers(&lines).len(), 49);
        let on_waking: Vec<_> = lines.iter().filter(|(at, _)| *at == 3_000).collect();
        let timers = ["Moved", "Second"]
            .map(|timer| on_waking.iter().position(|(_, what)| what == timer).unwrap());
        assert!(timers[0] < timers[1]);
        timers_came_first[usize::from(timers[0] == 0)] = true;
    }
    assert_eq!(timers_came_first, [true, true], "which comes first is drawn");
}

#[test]
fn mail_that_waited_too_long_is_dropped() {
    let mut config = config(1, &[(500, Fault::Pause { peer: PeerId(1), span: ms(2_500) })]);
    config.mail_max = ms(1_000);
    let (lines, outcome) = play(&config);
    let row = outcome.ledger.kinds["NUMBER"];
    assert_eq!(row.delivered as usize, numbers(&lines).len());
    assert!((14..=16).contains(&row.lost), "{row:?}");
    assert_eq!(row.sent, row.delivered + row.lost + row.in_flight);
}

#[test]
fn the_disk_survives_a_crash_and_nothing_survives_a_reset() {
    let crash = |at| (at, Fault::Crash(PeerId(1)));
    let restart = |at, memory| (at, Fault::Restart { peer: PeerId(1), memory });
    let faults = [
        crash(1_050),
        restart(2_050, Memory::Disk),
        crash(2_080),
        restart(2_090, Memory::None),
        (3_050, Fault::Reset(PeerId(1))),
    ];
    let (lines, outcome) = play(&config(1, &faults));
    let births = lines.iter().map(|(_, what)| what.as_str());
    let births: Vec<_> = births.filter(|w| w.contains(['(', ' '])).collect();
    assert_eq!(births, ["first life", "[(0, 10)]", "no memory", "no memory"]);
    assert_eq!(outcome.ledger.kinds["NUMBER"].lost, 10, "what arrives meanwhile is lost");
    assert_eq!(outcome.faults["reset"], 1);

    let without = RunConfig { disks: false, ..config(1, &faults[..2]) };
    assert!(play(&without).0.iter().any(|(_, what)| what == "no memory"));
}

#[test]
fn a_crash_forgets_timers() {
    let faults = [(500, Fault::Crash(PeerId(1)))];
    let (lines, _) = play(&config(1, &faults));
    assert!(lines.iter().all(|(at, _)| *at <= 500));
}

#[test]
fn a_cut_loses_what_is_sent_while_it_lasts() {
    let cut = Cut { id: 1, from: vec![PeerId(0)], to: vec![PeerId(1)] };
    let (lines, _) = play(&config(1, &[(1_005, Fault::Cut(cut)), (2_005, Fault::Mend(1))]));
    let expected: Vec<u64> = (1..=10).chain(21..=49).collect();
    assert_eq!(numbers(&lines), expected, "number 10 was under way already");
}

#[test]
fn peers_hear_of_crashes_and_restarts_after_a_while() {
    let restart = Fault::Restart { peer: PeerId(0), memory: Memory::Disk };
    let mut config = config(1, &[(1_000, Fault::Crash(PeerId(0))), (2_000, restart)]);
    config.faults.hints_after = Some(ms(50));
    let (lines, _) = play(&config);
    assert!(lines.contains(&(1_050, "p0 is down".to_owned())));
    assert!(lines.contains(&(2_050, "p0 is up".to_owned())));
}

#[test]
fn healing_wakes_restarts_and_mends_and_the_faults_after_it_do_not_happen() {
    let cut = Cut { id: 1, from: vec![PeerId(0)], to: vec![PeerId(1)] };
    let pause = Fault::Pause { peer: PeerId(0), span: ms(60_000) };
    let faults = [
        (100, Fault::Cut(cut)),
        (100, Fault::Crash(PeerId(1))),
        (100, pause),
        (3_000, Fault::Crash(PeerId(1))),
    ];
    let mut config = config(1, &faults);
    config.faults.heal_at = Some(TrueTime(2_000_000));
    config.script = Some(Script::default());
    config.keep_history = true;
    let (lines, outcome) = play(&config);
    assert!(numbers(&lines).len() > 25);
    let crashes =
        |record: &&sigmalock_sim::history::Record| matches!(record.what, What::Crashed(_));
    assert_eq!(outcome.history.unwrap().iter().filter(crashes).count(), 1);
}

#[test]
fn a_protocol_that_stops_time_is_reported() {
    let log = Log::default();
    let make = |me| Toy { me, log: log.clone(), sent: 0, restless: true };
    let outcome = run(&config(1, &[]), make, &mut []);
    assert!(outcome.violations[0].sentence.contains("time stands still: p1"));
    assert!(outcome.end < TrueTime(1_000_000));
}

#[test]
fn a_run_that_takes_too_many_events_is_reported() {
    let config = RunConfig { events_max: 20, ..config(1, &[]) };
    assert_eq!(play(&config).1.violations[0].sentence, "21 events and no end");
}

#[test]
fn closed_loops_think_and_open_ones_reuse_idle_clients() {
    let mut config = config(1, &[]);
    config.workload.inside = Length::Constant(ms(40));
    let think = Length::Constant(ms(60));
    config.workload.arrivals = Arrivals::Loops { clients: 3, think };
    assert_eq!(play(&config).1.entries, 3 * 50);

    config.workload.arrivals =
        Arrivals::Poisson { per_s: 100.0, clients_min: 0, clients_max: 1_000 };
    config.keep_history = true;
    let (_, outcome) = play(&config);
    assert!((400..600).contains(&outcome.entries), "{}", outcome.entries);
    let history = outcome.history.unwrap();
    let peers = history.iter().filter(|record| matches!(record.what, What::Started(_))).count();
    assert!(peers < 25, "about four are inside at a time: {peers}");
}

#[test]
fn deadlines_are_told_in_true_time() {
    let mut config = config(5, &[]);
    config.clocks = Clocks { ppm_max: 5_000, offset_max: ms(90_000), ..Clocks::default() };
    config.workload.arrivals = Arrivals::Loops { clients: 1, think: Length::ZERO };
    config.workload.inside = Length::Constant(ms(1));
    config.keep_history = true;
    for record in play(&config).1.history.unwrap() {
        if let What::Granted { until, .. } = record.what {
            let span = until.since(record.at).as_micros();
            assert!((9_950_000..=10_050_300).contains(&span), "{span}");
            assert_ne!(span, 10_000_000, "this client's clock is wrong");
        }
    }
}
