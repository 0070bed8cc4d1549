//! `__worker`: one of those who contend in a demonstration, a process of its own, so that it can be stopped.
//!
//! It says what it does, a JSON object a line, and what it writes to the register outside is answered by a
//! line. Like most programs it does not ask whether it still holds the lock before it writes; and if it
//! did, it could be stopped between the question and the write.

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sigmalock::{AcquireError, Client, ConnectOptions, Guard};
use tokio::time::sleep;

use crate::outcome::Verdict;

/// How long a holder that died keeps others out.
const TTL: Duration = Duration::from_secs(2);
/// How often a worker looks whether its peer is back.
const RETRY_EVERY: Duration = Duration::from_millis(100);
/// How often it tells that its right was extended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Contends for a lock in a demonstration
#[derive(Debug, Args)]
pub(crate) struct WorkerProcess {
    /// Its peer
    #[arg(long)]
    api: String,
    /// How it is called
    #[arg(long)]
    label: String,
    /// What it wants
    #[arg(long)]
    lock: String,
    /// Where its random numbers come from
    #[arg(long)]
    seed: u64,
}

/// What it says. Times are this machine's CLOCK_BOOTTIME, which all processes read alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// Its peer is not there.
    Cut,
    Away,
    /// So many are before it, if it was told.
    Waiting {
        ahead: Option<u32>,
    },
    Inside {
        token: u64,
        at_us: u64,
        until_us: u64,
        waited_us: u64,
    },
    Extended {
        until_us: u64,
    },
    /// The last thing it does inside. It is answered, by a line.
    Writes {
        token: u64,
    },
    /// It has left, and had lost its right before.
    Lost,
    Failed {
        why: String,
    },
}

impl WorkerProcess {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        crate::commands::block_on(self.perform())
    }

    async fn perform(&self) -> anyhow::Result<Verdict> {
        let mut chance = Chance(self.seed);
        loop {
            say(&Said::Cut)?;
            if let Ok(client) = ConnectOptions::new().label(&self.label).connect(&self.api).await {
                while self.visit(&client, &mut chance).await? {
                    say(&Said::Away)?;
                    sleep(chance.between(20, 300)).await;
                }
            }
            sleep(RETRY_EVERY).await;
        }
    }

    /// Waits, enters, works, leaves. False if the peer has gone.
    async fn visit(&self, client: &Client, chance: &mut Chance) -> anyhow::Result<bool> {
        say(&Said::Waiting { ahead: None })?;
        let begin = Instant::now();
        let lock = client.lock(&self.lock).ttl(TTL).on_queue(|position| {
            // Whoever does not listen any more is gone, and this process with it.
            let _ = say(&Said::Waiting { ahead: Some(position.ahead) });
        });
        let guard = match lock.acquire().await {
            Ok(guard) => guard,
            Err(AcquireError::Disconnected { .. }) => return Ok(false),
            Err(error) => {
                say(&Said::Failed { why: error.to_string() })?;
                sleep(RETRY_EVERY).await;
                return Ok(true);
            }
        };
        let at_us = boottime_us();
        let (token, until_us) = (guard.token(), until_us(&guard));
        let waited_us = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        say(&Said::Inside { token, at_us, until_us, waited_us })?;
        work(&guard, chance.between(100, 400)).await?;
        say(&Said::Writes { token })?;
        // Until the answer is there it has not left.
        io::stdin().lock().read_line(&mut String::new())?;
        if guard.release().await.is_err() {
            say(&Said::Lost)?;
            return Ok(false);
        }
        Ok(true)
    }
}

/// Works for so long, or until the right is gone.
async fn work(guard: &Guard, length: Duration) -> io::Result<()> {
    let end = Instant::now() + length;
    let mut told_us = until_us(guard);
    while Instant::now() < end {
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            () = guard.lost() => return Ok(()),
        }
        let until_us = until_us(guard);
        if until_us > told_us + 1_000 {
            told_us = until_us;
            say(&Said::Extended { until_us })?;
        }
    }
    Ok(())
}

fn say(said: &Said) -> io::Result<()> {
    let mut line = serde_json::to_string(said)?;
    line.push('\n');
    io::stdout().lock().write_all(line.as_bytes())
}

/// When a right ends; not later than it really does.
fn until_us(guard: &Guard) -> u64 {
    boottime_us() + u64::try_from(guard.remaining().as_micros()).unwrap_or(0)
}

fn boottime_us() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// Enough chance for waiting times.
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// One of 0 … n − 1.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    fn between(&mut self, low_ms: usize, high_ms: usize) -> Duration {
        Duration::from_millis((low_ms + self.below(high_ms - low_ms)) as u64)
    }
}
