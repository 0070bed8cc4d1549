//! Disks that are slow, fail or lie do to a simulated peer what they do to a live one. The protocol here writes every
//! number that it is sent, and says so before and after.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use sigmalock_core::{
    Birth, Context, Input, LockReply, LockRequest, Message, Name, PeerId, Protocol, Span,
};
use sigmalock_protocols::parts::Driven;
use sigmalock_sim::faults::{Fault, Memory};
use sigmalock_sim::history::{TrueTime, What};
use sigmalock_sim::latency::Latency;
use sigmalock_sim::network::Network;
use sigmalock_sim::output::Mutant;
use sigmalock_sim::run::{Outcome, RunConfig, run};
use sigmalock_sim::script::Script;
use sigmalock_sim::workload::{Arrivals, Workload};

const WRITER: PeerId = PeerId(1);

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

#[derive(Debug, Clone)]
enum Say {
    Write(u64),
    Writing(u64),
    Written(u64),
    ToMyself,
}

impl fmt::Display for Say {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(number) => write!(f, "Write({number})"),
            Self::Writing(number) => write!(f, "Writing({number})"),
            Self::Written(number) => write!(f, "Written({number})"),
            Self::ToMyself => write!(f, "ToMyself"),
        }
    }
}

impl Message for Say {
    fn kind(&self) -> &'static str {
        "SAY"
    }
    fn size_bytes(&self) -> usize {
        8
    }
}

/// Peer 0 has numbers written, one every 100 ms, and hears of it.
struct Toy {
    me: PeerId,
    log: Rc<RefCell<Vec<String>>>,
    sent: u64,
    /// The writer does not say what it has written.
    mute: bool,
}

impl Driven for Toy {}

impl Protocol for Toy {
    type Message = Say;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = ();
    type DurableKey = u64;
    type Durable = u64;
    type Note = String;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        let at = cx.now().as_micros() / 1_000;
        let tell = |what: String| self.log.borrow_mut().push(format!("{at}: {what}"));
        match input {
            Input::Start { birth: Birth::Recovered(records), .. } => {
                let numbers: Vec<u64> = records.iter().map(|(number, _)| *number).collect();
                tell(format!("{numbers:?} of {}", cx.written()));
            }
            Input::Start { .. } if self.me != WRITER => cx.set_timer((), cx.now() + ms(100)),
            Input::Fire(()) => {
                self.sent += 1;
                cx.send(WRITER, Say::Write(self.sent));
                cx.set_timer((), cx.now() + ms(100));
            }
            Input::Receive { message: Say::Write(number), from } => {
                cx.send(from, Say::Writing(number));
                cx.persist(number, Some(number));
                cx.send(self.me, Say::ToMyself);
                if !self.mute {
                    cx.send(from, Say::Written(number));
                }
            }
            Input::Receive { message, .. } => tell(message.to_string()),
            _ => {}
        }
    }
}

fn config(until_ms: u64, faults: &[(u64, Fault)]) -> RunConfig {
    let network = Network::perfect(Latency::Constant(ms(1)));
    let workload = Workload::new(Name::new("/toy").unwrap(), Arrivals::Scripted);
    let mut config = RunConfig::new(1, 2, network, workload);
    config.duration = ms(until_ms);
    config.faults.faults =
        faults.iter().map(|(at, fault)| (TrueTime(at * 1_000), fault.clone())).collect();
    config.keep_history = true;
    config
}

fn play(config: &RunConfig, mute: bool) -> (Vec<String>, Outcome) {
    let log = Rc::new(RefCell::new(Vec::new()));
    let outcome = run(config, |me| Toy { me, log: log.clone(), sent: 0, mute }, &mut []);
    (log.take(), outcome)
}

fn slow(write: u64) -> Fault {
    Fault::SlowDisk { peer: WRITER, write: ms(write) }
}

fn back(memory: Memory) -> Fault {
    Fault::Restart { peer: WRITER, memory }
}

const CRASH: Fault = Fault::Crash(WRITER);

#[test]
fn what_rests_on_a_record_waits_for_it_and_what_was_said_before_does_not() {
    let (log, _) = play(&config(150, &[(0, slow(30))]), false);
    assert_eq!(log, ["101: ToMyself", "102: Writing(1)", "132: Written(1)"]);
}

#[test]
fn one_write_serves_all_that_gathered_during_the_one_before() {
    let (log, _) = play(&config(650, &[(0, slow(250))]), false);
    let log: Vec<&String> = log.iter().filter(|line| !line.contains("Myself")).collect();
    let expected = [
        "102: Writing(1)",
        // The write under way is all that this rests on; the next is another matter.
        "352: Written(1)",
        "352: Writing(2)",
        "602: Written(2)",
        "602: Writing(3)",
        "602: Written(3)",
        "602: Writing(4)",
    ];
    assert_eq!(log, expected);
}

#[test]
fn what_is_not_on_disk_when_the_peer_stops_is_lost_with_all_that_waited() {
    // Whether the write under way is done is drawn; what gathered meanwhile is lost for sure.
    let mut seen = [false; 2];
    for seed in 0..20 {
        let faults = [(0, slow(250)), (230, CRASH), (240, back(Memory::Disk))];
        let (log, _) = play(&RunConfig { seed, ..config(250, &faults) }, false);
        assert_eq!(log.iter().filter(|line| line.contains("Writ")).count(), 1, "{log:?}");
        let done = log.contains(&"240: [1] of 1".to_owned());
        assert!(done || log.contains(&"240: [] of 0".to_owned()), "{log:?}");
        seen[usize::from(done)] = true;
    }
    assert_eq!(seen, [true, true]);
}

#[test]
fn a_failed_write_stops_the_peer_and_nobody_hears_what_waited_for_it() {
    for found in [false, true] {
        let fails = Fault::FailWrite { peer: WRITER, found };
        let (log, outcome) = play(&config(290, &[(150, fails), (280, back(Memory::Disk))]), false);
        let log: Vec<&String> = log.iter().filter(|line| !line.contains("Myself")).collect();
        let left = if found { "280: [1, 2] of 2" } else { "280: [1] of 1" };
        assert_eq!(log, ["102: Writing(1)", "102: Written(1)", "202: Writing(2)", left]);
        let crash = |what: &What| matches!(what, What::Crashed(peer) if *peer == WRITER);
        let history = outcome.history.unwrap();
        assert_eq!(history.iter().filter(|record| crash(&record.what)).count(), 1);
    }
}

#[test]
fn records_that_nothing_waits_for_are_written_within_50_ms() {
    for (crash, left) in [(140, "145: [] of 0"), (160, "165: [1] of 1")] {
        let faults = [(0, slow(5)), (crash, CRASH), (crash + 5, back(Memory::Disk))];
        let (log, _) = play(&config(170, &faults), true);
        assert_eq!(log.last().unwrap(), left);
    }
}

#[test]
fn a_peer_that_sleeps_says_nothing_though_its_disk_is_done() {
    let sleeps = Fault::Pause { peer: WRITER, span: ms(80) };
    let (log, _) = play(&config(199, &[(0, slow(30)), (110, sleeps)]), false);
    assert_eq!(log, ["101: ToMyself", "102: Writing(1)", "191: Written(1)"]);
}

#[test]
fn a_disk_that_lies_has_lost_what_was_written_last_and_does_not_count_it() {
    let faults = [(450, CRASH), (460, back(Memory::Lost(3)))];
    let (log, _) = play(&config(470, &faults), false);
    assert_eq!(log.last().unwrap(), "460: [1] of 1");
}

#[test]
fn a_disk_is_as_quick_as_ever_when_the_world_is_healed() {
    let mut config =
        config(350, &[(0, slow(70)), (190, Fault::FailWrite { peer: WRITER, found: true })]);
    config.faults.heal_at = Some(TrueTime(195_000));
    // A run that is told goes on after that.
    config.script = Some(Script::default());
    let (log, _) = play(&config, false);
    assert!(log.contains(&"172: Written(1)".to_owned()), "{log:?}");
    assert!(log.contains(&"202: Written(2)".to_owned()), "{log:?}");
}

#[test]
fn broken_drivers_break_these_rules() {
    let driver = Some(Mutant::SpeaksBeforeTheDisk);
    let (log, _) = play(&RunConfig { driver, ..config(150, &[(0, slow(30))]) }, false);
    assert!(log.contains(&"102: Written(1)".to_owned()), "{log:?}");
    let driver = Some(Mutant::GoesOnAfterFailures);
    let fails = (50, Fault::FailWrite { peer: WRITER, found: false });
    let faults = [fails, (230, CRASH), (240, back(Memory::Disk))];
    let (log, _) = play(&RunConfig { driver, ..config(250, &faults) }, false);
    assert!(log.contains(&"102: Written(1)".to_owned()), "{log:?}");
    assert_eq!(log.last().unwrap(), "240: [2] of 1");
}
