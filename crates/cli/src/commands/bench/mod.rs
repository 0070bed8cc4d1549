//! `bench`: how fast real peers are, measured by what their users see.

mod load;
mod numbers;

use std::io::Write;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use self::load::{Cycles, Load};
use self::numbers::{Summary, Times};
use crate::outcome::{Verdict, after_help};
use crate::progress::Progress;
use crate::swarm::{Kind, Swarm};
use crate::table::{Align, Table};

/// Measures latency, hand-off and throughput of real peers
///
/// Starts peers of its own on loopback, or uses those of --api. Everything is measured in turns, so that
/// a slow moment of the machine hits all of it: round trips of a bare stream between two peers; the time
/// to acquire a lock that nobody else wants, a new one each time and always the same; the time from a
/// release to the grant at another peer; and how often all clients together can lock and unlock, each
/// a name of its own.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Bench {
    /// How many peers
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count::<50>)]
    peers: usize,
    /// How many clients lock and unlock at once, for the throughput
    #[arg(long, value_name = "K", default_value_t = 64, value_parser = count::<4096>)]
    clients: usize,
    /// How long to measure the throughput, in all
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = count::<3600>)]
    seconds: usize,
    /// Also measure peers that keep their votes on disk
    #[arg(long, conflicts_with = "api")]
    durable: bool,
    /// Use these peers, HOST:PORT or unix:PATH, instead of peers of its own
    #[arg(long, value_name = "ADDR", num_args = 1.., conflicts_with = "peers")]
    api: Vec<String>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock bench
  sigmalock bench --durable --seconds 10 --json
  sigmalock bench --api unix:/run/sigmalock/peer.sock --clients 8";

/// Everything is measured in so many rounds.
const ROUNDS: u32 = 5;
/// In a round each time has so many turns, and so many samples in a turn: a processor that has just been
/// busy with one thing is faster at it, and none shall profit from that more than the others.
const TURNS: u32 = 10;
const SAMPLES: u32 = 10;
/// Things measured in a round.
const STEPS: u64 = 2;
/// How long peers may take to find each other.
const CONVERGE: Duration = Duration::from_secs(60);

fn count<const MAX: usize>(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX).contains(count));
    count.ok_or_else(|| format!("this should be a whole number between 1 and {MAX}"))
}

/// What came out.
#[derive(Debug, Serialize)]
struct Report {
    peers: usize,
    clients: usize,
    seconds: usize,
    ping: Option<Summary>,
    acquire_fresh: Option<Summary>,
    acquire_repeated: Option<Summary>,
    hand_off: Option<Summary>,
    acquire_over_ping: Option<f64>,
    acquire_repeated_over_ping: Option<f64>,
    hand_off_over_ping: Option<f64>,
    cycles_per_s: f64,
    durable_cycles_per_s: Option<f64>,
    durable_acquire_repeated: Option<Summary>,
    durable_over_ephemeral: Option<f64>,
}

impl Bench {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let report = super::block_on(self.measure())?;
        if self.json {
            super::print_json(&report)?;
        } else {
            report.print(&mut std::io::stdout().lock())?;
        }
        Ok(Verdict::Holds)
    }

    async fn measure(&self) -> anyhow::Result<Report> {
        let steps = STEPS + 2 * u64::from(self.durable);
        let progress = Progress::new(u64::from(ROUNDS) * steps, "steps");
        progress.say("starting peers");
        // Kept until the end: peers die with it.
        let swarm = if self.api.is_empty() { Some(self.swarm(false).await?) } else { None };
        let durable = if self.durable { Some(self.swarm(true).await?) } else { None };
        let apis = swarm.as_ref().map_or_else(|| self.api.clone(), |swarm| self.apis(swarm));
        let mut load = Load::connect(&apis, self.clients).await?;
        let durable_load = match &durable {
            Some(swarm) => Some(Load::connect(&self.apis(swarm), self.clients).await?),
            None => None,
        };
        let share = Duration::from_secs(self.seconds as u64) / ROUNDS;
        let mut found = Found::default();
        for _ in 0..ROUNDS {
            found.round(&mut load, share, &progress).await?;
            if let Some(load) = &durable_load {
                found.durable_round(load, share, &progress).await?;
            }
        }
        Ok(self.report(&found, apis.len()))
    }

    async fn swarm(&self, durable: bool) -> anyhow::Result<Swarm> {
        let swarm = Swarm::start(self.peers, Kind { durable, lease_max: None }).await?;
        swarm.converge(CONVERGE).await?;
        Ok(swarm)
    }

    fn apis(&self, swarm: &Swarm) -> Vec<String> {
        (0..self.peers).map(|peer| swarm.api(peer)).collect()
    }

    fn report(&self, found: &Found, peers: usize) -> Report {
        let ping = found.ping.summary();
        let over = |a: Option<Summary>| Some(a?.p50_us / ping?.p50_us);
        let (fresh, repeated) = (found.fresh.summary(), found.repeated.summary());
        let hand_off = found.hand_off.summary();
        let durable = self.durable.then(|| found.durable_cycles.per_s());
        Report {
            peers,
            clients: self.clients,
            seconds: self.seconds,
            ping,
            acquire_fresh: fresh,
            acquire_repeated: repeated,
            hand_off,
            acquire_over_ping: over(fresh),
            acquire_repeated_over_ping: over(repeated),
            hand_off_over_ping: over(hand_off),
            cycles_per_s: found.cycles.per_s(),
            durable_cycles_per_s: durable,
            durable_acquire_repeated: found.durable_repeated.summary(),
            durable_over_ephemeral: durable.map(|durable| durable / found.cycles.per_s()),
        }
    }
}

/// What was measured.
#[derive(Debug, Default)]
struct Found {
    ping: Times,
    fresh: Times,
    repeated: Times,
    hand_off: Times,
    cycles: Cycles,
    durable_repeated: Times,
    durable_cycles: Cycles,
}

impl Found {
    async fn round(
        &mut self, load: &mut Load, share: Duration, progress: &Progress,
    ) -> anyhow::Result<()> {
        progress.say("round trips, acquire, hand-off");
        for _ in 0..TURNS {
            load.ping(&mut self.ping, SAMPLES).await?;
            load.fresh(&mut self.fresh, SAMPLES).await?;
            load.repeated(&mut self.repeated, SAMPLES).await?;
            load.hand_off(&mut self.hand_off, SAMPLES).await?;
        }
        progress.step();
        progress.say("throughput");
        self.cycles.add(load.throughput(share).await?);
        progress.step();
        Ok(())
    }

    async fn durable_round(
        &mut self, load: &Load, share: Duration, progress: &Progress,
    ) -> anyhow::Result<()> {
        progress.say("acquire, on disk");
        load.repeated(&mut self.durable_repeated, TURNS * SAMPLES / 4).await?;
        progress.step();
        progress.say("throughput, on disk");
        self.durable_cycles.add(load.throughput(share).await?);
        progress.step();
        Ok(())
    }
}

impl Report {
    fn print(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let right = |title| (title, Align::Right);
        let heading =
            [("measured", Align::Left), right("p50"), right("p99"), right("of a round trip")];
        let mut table = Table::new(heading);
        let micros = |us: f64| format!("{us:.0} µs");
        let mut row = |what: &str, summary: Option<Summary>, ratio: Option<f64>| {
            let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), micros);
            table.row([
                what.to_owned(),
                shown(summary.map(|summary| summary.p50_us)),
                shown(summary.map(|summary| summary.p99_us)),
                ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2} ×")),
            ]);
        };
        row("round trip of a bare stream", self.ping, self.ping.map(|_| 1.0));
        row("acquire, a new name each time", self.acquire_fresh, self.acquire_over_ping);
        row(
            "acquire, always the same name",
            self.acquire_repeated,
            self.acquire_repeated_over_ping,
        );
        row("hand-off to another peer", self.hand_off, self.hand_off_over_ping);
        if self.durable_acquire_repeated.is_some() {
            row("acquire, votes on disk", self.durable_acquire_repeated, None);
        }
        table.print(out)?;
        let (clients, peers) = (self.clients, self.peers);
        writeln!(
            out,
            "\n{:.0} lock + unlock cycles/s, {clients} clients at {peers} peers, everything on this machine",
            self.cycles_per_s
        )?;
        if let (Some(durable), Some(ratio)) =
            (self.durable_cycles_per_s, self.durable_over_ephemeral)
        {
            writeln!(out, "{durable:.0} with votes on disk: {ratio:.2} of that")?;
        }
        Ok(())
    }
}
