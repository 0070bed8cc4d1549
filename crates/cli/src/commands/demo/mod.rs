//! `demo`: real peers, contending workers, and a button to kill them with.

mod board;
mod help;
mod nap;
mod plain;
mod register;
mod screen;
mod view;
pub(crate) mod worker;
mod workers;

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use sigmalock::Client;
use sigmalock::report::PeerStatus;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::board::Board;
use self::screen::{Screen, Wish};
use self::view::number;
use self::worker::Chance;
use self::workers::Stage;
use crate::outcome::{Verdict, after_help};
use crate::process::signals::{ENDING, Signals};
use crate::swarm::{Kind, Swarm};
use crate::words;

/// Shows five peers with contending workers, live: kill some and watch it heal
///
/// Every peer and every worker is a process of its own. A fenced register outside the swarm watches that no
/// two workers are ever inside the same lock, and that tokens only grow; if not, the exit code is 1. It
/// refuses the write of a worker that was stopped inside for longer than its lease (key `p`). Without a
/// terminal: one line per event, and one every second. Nothing is left behind.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Demo {
    /// Kill, stop and restart by itself, and end with a summary
    #[arg(long)]
    auto: bool,
    /// How long [default: with --auto 60, else until you quit]
    #[arg(long, value_name = "N", value_parser = seconds)]
    seconds: Option<u64>,
    /// How many peers
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = peers)]
    peers: usize,
    /// The summary as a JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock demo
  sigmalock demo --auto --seconds 30
  sigmalock demo --auto --json | tail -1";

const NAMES: [&str; 3] = ["/printer", "/deploy", "/backup"];
const WORKERS_PER_PEER: usize = 2;
const PEERS_MAX: usize = 20;
/// Short, so that the healing can be watched.
const LEASE_MAX: &str = "3s";
const AUTO_SECONDS: u64 = 60;
const FRAME_EVERY: Duration = Duration::from_millis(100);
/// How long a frame may wait to see whether a peer has started.
const GLANCE: Duration = Duration::from_millis(20);
/// How long a peer has for the question how it is.
const STATUS_TIMEOUT: Duration = Duration::from_millis(400);

fn seconds(text: &str) -> Result<u64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
    seconds.ok_or_else(|| "this should be a whole number of seconds, at most a day".to_owned())
}

fn peers(text: &str) -> Result<usize, String> {
    let peers = text.parse().ok().filter(|peers| (1..=PEERS_MAX).contains(peers));
    peers.ok_or_else(|| format!("this should be a whole number between 1 and {PEERS_MAX}"))
}

impl Demo {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        super::block_on(self.perform())
    }

    async fn perform(&self) -> anyhow::Result<Verdict> {
        let mut signals = Signals::new(&ENDING)?;
        // With their votes on disk they come back as who they were.
        let kind = Kind { durable: true, lease_max: Some(LEASE_MAX) };
        let swarm = tokio::select! {
            swarm = Swarm::start(self.peers, kind) => swarm?,
            _ = signals.next() => return Ok(Verdict::Holds),
        };
        let stage = Stage::new(Board::new(self.peers, self.peers * WORKERS_PER_PEER, &NAMES));
        stage.board().tell(format!(
            "{} peers have started; locks wait until they know each other",
            self.peers
        ));
        stage.start_workers(&swarm)?;
        tokio::spawn(survey(stage.clone(), (0..self.peers).map(|peer| swarm.api(peer)).collect()));
        let seconds = self.seconds.or(self.auto.then_some(AUTO_SECONDS));
        let mut show =
            Show { swarm, stage, chance: Chance(u64::from(std::process::id())), seconds };
        let mut screen = Screen::open()?;
        let end = tokio::select! {
            end = show.go_on(&mut screen, self.auto) => end,
            _ = signals.next() => Ok(()),
        };
        // The terminal first: whatever is said from here on is to be seen.
        drop(screen);
        show.stage.end_workers();
        end?;
        self.sum_up(&show)
    }

    fn sum_up(&self, show: &Show) -> anyhow::Result<Verdict> {
        let board = show.stage.board();
        let (entries, kills) = (board.entries, board.kills);
        let tokens = !board.violations.iter().any(|violation| violation.contains("token"));
        let exclusion = board.violations.is_empty() || !tokens;
        if self.json {
            super::print_json(&json!({
                "seconds": board.now().as_secs_f64(),
                "peers": self.peers,
                "workers": board.workers.len(),
                "entries": entries,
                "kills": kills,
                "guards_lost": board.losses,
                "holders_stopped": board.naps,
                "writes_refused": board.refusals,
                "longest_wait_ms": board.longest_wait.as_millis() as u64,
                "tokens_monotone": tokens,
                "violations": board.violations,
            }))?;
        } else {
            let yes = |yes: bool| if yes { "yes" } else { "NO" };
            super::print(&format!(
                "{entries} entries in {}, {}, {} lost with a dead peer\n\
                 {} stopped inside, {} with an old token refused\nlongest wait {}\ntokens monotone: {}\nnever two inside: {}\n",
                words::time(board.now()),
                words::count(kills, "kill"),
                words::count(board.losses, "guard"),
                words::count(board.naps, "holder"),
                words::count(board.refusals, "write"),
                words::time(board.longest_wait),
                yes(tokens),
                yes(exclusion && board.violations.is_empty()),
            ))?;
            for violation in &board.violations {
                super::print(&format!("violation: {violation}\n"))?;
            }
        }
        Ok(if board.violations.is_empty() { Verdict::Holds } else { Verdict::Violated })
    }
}

/// The demonstration while it goes on.
struct Show {
    swarm: Swarm,
    stage: Stage,
    chance: Chance,
    seconds: Option<u64>,
}

impl Show {
    async fn go_on(&mut self, screen: &mut Screen, auto: bool) -> anyhow::Result<()> {
        let mut frames = interval(FRAME_EVERY);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut script = auto.then(|| Script::new(self.seconds.unwrap_or(AUTO_SECONDS)));
        loop {
            let wish = tokio::select! {
                _ = frames.tick() => None,
                wish = screen.wish() => Some(wish),
            };
            let wish = wish.or_else(|| script.as_mut()?.next(&self.stage.board()));
            match wish {
                Some(Wish::Quit) => return Ok(()),
                Some(Wish::Back) if !screen.close_help() => return Ok(()),
                Some(Wish::Help) => screen.toggle_help(),
                Some(wish) => self.grant(wish)?,
                None => {}
            }
            if let Some(peer) = self.swarm.fallen()? {
                let mut board = self.stage.board();
                board.peer_is(peer, false);
                board.tell(format!("peer {} ended by itself", number(peer)));
            }
            self.welcome().await;
            if self.stage.board().nap_is_over() {
                self.stage.wake();
            }
            screen.draw(&mut self.stage.board(), self.seconds)?;
            let now = self.stage.board().now();
            if self.seconds.is_some_and(|seconds| now.as_secs() >= seconds) {
                return Ok(());
            }
        }
    }

    fn grant(&mut self, wish: Wish) -> anyhow::Result<()> {
        let up: Vec<_> = (0..self.swarm.len()).filter(|peer| self.swarm.is_up(*peer)).collect();
        match wish {
            Wish::Quit | Wish::Back | Wish::Help => {}
            Wish::Pause if self.stage.board().nap_is_on() => self.stage.wake(),
            Wish::Pause => self.stage.board().want_nap(),
            Wish::Kill if up.is_empty() => {}
            Wish::Kill => {
                let peer = up[self.chance.below(up.len())];
                self.kill(peer, "")?;
            }
            Wish::KillHolder => {
                let holders = self.stage.board().holders_peer();
                match holders.filter(|peer| up.contains(peer)) {
                    Some(peer) => self.kill(peer, ", with a holder at it")?,
                    None => self.stage.board().tell("nobody is inside now, so nobody was killed"),
                }
            }
            Wish::Restart => self.restart()?,
        }
        Ok(())
    }

    fn kill(&mut self, peer: usize, remark: &str) -> anyhow::Result<()> {
        self.swarm.kill(peer)?;
        let mut board = self.stage.board();
        board.kills += 1;
        board.peer_is(peer, false);
        board.tell(format!("SIGKILL for peer {}{remark}", number(peer)));
        Ok(())
    }

    fn restart(&mut self) -> anyhow::Result<()> {
        for peer in 0..self.swarm.len() {
            if !self.swarm.is_up(peer) {
                self.swarm.launch(peer)?;
            }
        }
        Ok(())
    }

    /// Looks whether those that were started are there by now, without keeping the view waiting.
    async fn welcome(&mut self) {
        for peer in 0..self.swarm.len() {
            if !self.swarm.is_up(peer) || self.swarm.is_known(peer) {
                continue;
            }
            let words = match timeout(GLANCE, self.swarm.learn_address(peer)).await {
                Err(_) => continue,
                Ok(Err(error)) => format!("peer {}: {error:#}", number(peer)),
                Ok(Ok(())) => {
                    self.stage.board().peer_is(peer, true);
                    format!("peer {} is back, and knows its votes", number(peer))
                }
            };
            self.stage.board().tell(words);
        }
    }
}

/// What happens by itself, one after the other and again; healed well before the end.
struct Script {
    step: Duration,
    end: Duration,
    steps: usize,
    next_at: Duration,
}

const DEEDS: [Wish; 5] = [Wish::Pause, Wish::KillHolder, Wish::Restart, Wish::Kill, Wish::Restart];

/// Healing takes some seconds, and is to be watched.
const STEP_MAX: Duration = Duration::from_secs(7);
/// From stopping a holder until its write is refused.
const NAP: Duration = Duration::from_secs(5);

impl Script {
    fn new(seconds: u64) -> Self {
        let end = Duration::from_secs(seconds);
        let step = (end / 8).min(STEP_MAX);
        Self { step, end, steps: 0, next_at: step }
    }

    fn next(&mut self, board: &Board) -> Option<Wish> {
        let now = board.now();
        if board.entries == 0 || board.nap_is_on() {
            // What has not begun cannot be disturbed, and one thing is watched at a time.
            self.next_at = now + self.step;
            return None;
        }
        let wish = DEEDS[self.steps % DEEDS.len()];
        let healed_at = now
            + match wish {
                Wish::Restart => Duration::ZERO,
                Wish::Pause => NAP,
                _ => 2 * self.step,
            };
        let nobody = wish == Wish::KillHolder && board.holders_peer().is_none();
        // What is broken late would not be seen to heal.
        if now < self.next_at || nobody || healed_at > self.end {
            return None;
        }
        self.steps += 1;
        self.next_at = now + self.step;
        Some(wish)
    }
}

/// Asks every peer, every second, how it is.
async fn survey(stage: Stage, apis: Vec<String>) {
    let mut clients: Vec<Option<Client>> = vec![None; apis.len()];
    let mut sent = vec![0; apis.len()];
    let mut begin = Instant::now();
    loop {
        sleep(Duration::from_secs(1).saturating_sub(begin.elapsed())).await;
        begin = Instant::now();
        let mut messages = 0;
        for (index, api) in apis.iter().enumerate() {
            if clients[index].is_none() {
                clients[index] = Client::connect(api).await.ok();
            }
            let Some(client) = &clients[index] else { continue };
            let Ok(Ok(status)) = timeout(STATUS_TIMEOUT, client.status()).await else {
                (clients[index], sent[index]) = (None, 0);
                continue;
            };
            let so_far = messages_sent(&status);
            let fresh = so_far.saturating_sub(sent[index]);
            sent[index] = so_far;
            messages += fresh;
            let mut board = stage.board();
            if status.can_grant {
                board.votes = Some((status.quorum, status.replicas_total));
            }
            let peer = &mut board.peers[index];
            peer.messages_per_s = fresh;
            peer.can_grant = status.can_grant;
            peer.connected = status.peers_up.saturating_sub(1);
            let notes =
                [status.why_not, status.why_no_vote].into_iter().find(|why| !why.is_empty());
            board.note(index, &notes.unwrap_or_default());
        }
        let mut board = stage.board();
        board.tick(messages);
        board.judge_majority();
    }
}

/// Messages that a peer has sent to others, of all kinds.
fn messages_sent(status: &PeerStatus) -> u64 {
    let sent = status.counters.iter().filter(|counter| counter.name.starts_with("sent."));
    sent.map(|counter| counter.value).sum()
}
