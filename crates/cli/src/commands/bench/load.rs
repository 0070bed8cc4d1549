//! What is measured, each in a closed loop over real clients.

use std::time::{Duration, Instant};

use anyhow::Context;
use sigmalock::{Client, ConnectOptions, Guard};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::numbers::Times;

/// The usual, said explicitly: a measurement does not depend on defaults.
const TTL: Duration = Duration::from_secs(10);
/// Nothing here takes this long unless something is broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a waiter has to get into the queue, if it is not told that it is there.
const QUEUED_WITHIN: Duration = Duration::from_millis(50);

/// Clients of a swarm: some to measure times with, many to measure throughput with.
pub(crate) struct Load {
    singles: Vec<Client>,
    crowd: Vec<Client>,
    /// What makes names of this run different from those of others.
    run: String,
    fresh: u64,
}

impl Load {
    pub(crate) async fn connect(apis: &[String], clients: usize) -> anyhow::Result<Self> {
        let options = ConnectOptions::new().label("bench");
        let mut singles = Vec::new();
        for api in apis {
            singles.push(options.connect(api).await.map_err(crate::reach::unreachable)?);
        }
        let mut crowd = Vec::new();
        for index in 0..clients {
            let api = &apis[index % apis.len()];
            crowd.push(options.connect(api).await.map_err(crate::reach::unreachable)?);
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let run = format!("/bench/{}-{}", std::process::id(), now.as_millis());
        Ok(Self { singles, crowd, run, fresh: 0 })
    }

    /// Round trips of a bare stream between two peers. Alone there is nobody to send to.
    pub(crate) async fn ping(&self, times: &mut Times, rounds: u32) -> anyhow::Result<()> {
        let client = &self.singles[0];
        let peers = client.peers().await?;
        if let Some(other) = peers.iter().find(|peer| !peer.is_self) {
            times.extend_ns(client.measure(other.peer.as_str(), rounds).await?);
        }
        Ok(())
    }

    /// Acquires names that nobody has used before.
    pub(crate) async fn fresh(&mut self, times: &mut Times, count: u32) -> anyhow::Result<()> {
        for _ in 0..count {
            self.fresh += 1;
            let name = format!("{}/fresh/{}", self.run, self.fresh);
            one_cycle(&self.singles[0], &name, times).await?;
        }
        Ok(())
    }

    /// Acquires one name again and again.
    pub(crate) async fn repeated(&self, times: &mut Times, count: u32) -> anyhow::Result<()> {
        let name = format!("{}/same", self.run);
        for _ in 0..count {
            one_cycle(&self.singles[0], &name, times).await?;
        }
        Ok(())
    }

    /// From one peer's client to another's: from the call of `release` to the grant.
    pub(crate) async fn hand_off(&self, times: &mut Times, count: u32) -> anyhow::Result<()> {
        if self.singles.len() < 2 {
            return Ok(());
        }
        let name = format!("{}/handed", self.run);
        let mut guard = wish(&self.singles[0], &name).acquire().await?;
        for round in 1..=count as usize {
            let next = self.singles[round % 2].clone();
            let (queued, is_queued) = oneshot::channel();
            let mut queued = Some(queued);
            let lock = wish(&next, &name).on_queue(move |_| {
                let _ = queued.take().map(|queued| queued.send(()));
            });
            let waiter = tokio::spawn(async move {
                let guard = lock.acquire().await;
                (guard, Instant::now())
            });
            let _ = tokio::time::timeout(QUEUED_WITHIN, is_queued).await;
            let begin = Instant::now();
            guard.release().await?;
            let (next, granted) = waiter.await?;
            times.push(granted.saturating_duration_since(begin));
            guard = next?;
        }
        Ok(guard.release().await?)
    }

    /// How many times all clients together lock and unlock, each a name of its own.
    pub(crate) async fn throughput(&self, duration: Duration) -> anyhow::Result<Cycles> {
        let mut tasks = JoinSet::new();
        let begin = Instant::now();
        for (index, client) in self.crowd.iter().enumerate() {
            let (client, name) = (client.clone(), format!("{}/own/{index}", self.run));
            tasks.spawn(async move {
                let mut count = 0;
                while begin.elapsed() < duration {
                    wish(&client, &name).acquire().await?.release().await?;
                    count += 1;
                }
                Ok::<u64, anyhow::Error>(count)
            });
        }
        let mut cycles = Cycles::default();
        while let Some(count) = tasks.join_next().await {
            cycles.count += count?.context("a client of the crowd")?;
        }
        cycles.time = begin.elapsed();
        Ok(cycles)
    }
}

/// Lock and unlock, so often in so long.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cycles {
    pub(crate) count: u64,
    pub(crate) time: Duration,
}

impl Cycles {
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.time += other.time;
    }

    pub(crate) fn per_s(self) -> f64 {
        self.count as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

fn wish(client: &Client, name: &str) -> sigmalock::Lock {
    client.lock(name).ttl(TTL).wait(PATIENCE)
}

async fn one_cycle(client: &Client, name: &str, times: &mut Times) -> anyhow::Result<()> {
    let begin = Instant::now();
    let guard: Guard = wish(client, name).acquire().await?;
    times.push(begin.elapsed());
    Ok(guard.release().await?)
}
