//! Those who contend: each a client of one peer, that wants one lock again and again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sigmalock::{AcquireError, Client, ConnectOptions, Guard};
use tokio::time::sleep;

use super::board::{Board, State};
use super::register::Register;
use super::view::{letter, number};
use crate::words;

/// How long a holder that died keeps others out.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// How often a worker looks whether its peer is back.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// What all workers share.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    board: Arc<Mutex<Board>>,
    register: Arc<Mutex<Register>>,
}

impl Stage {
    pub(crate) fn new(board: Board) -> Self {
        Self { board: Arc::new(Mutex::new(board)), register: Arc::default() }
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker's life.
pub(crate) async fn work(stage: Stage, worker: usize, api: String) {
    let mut chance = Chance(worker as u64 + 1);
    let label = format!("worker {}", letter(worker));
    let name = {
        let board = stage.board();
        board.locks[board.workers[worker].lock].name.clone()
    };
    loop {
        stage.board().set(worker, State::Cut);
        let Ok(client) = ConnectOptions::new().label(&label).connect(&api).await else {
            sleep(RETRY_EVERY).await;
            continue;
        };
        while visit(&stage, worker, &client, &name, &mut chance).await {
            stage.board().set(worker, State::Away);
            sleep(chance.between(20, 300)).await;
        }
        sleep(RETRY_EVERY).await;
    }
}

/// Waits, enters, works, leaves. False if the peer has gone.
async fn visit(
    stage: &Stage, worker: usize, client: &Client, name: &str, chance: &mut Chance,
) -> bool {
    stage.board().set(worker, State::Waiting(None));
    let begin = Instant::now();
    let told = stage.clone();
    let lock = client.lock(name).ttl(TTL).on_queue(move |position| {
        told.board().set(worker, State::Waiting(Some(position.ahead)));
    });
    let guard = match lock.acquire().await {
        Ok(guard) => guard,
        Err(AcquireError::Disconnected { .. }) => return false,
        Err(error) => {
            stage.board().tell(format!("worker {}: {error}", letter(worker)));
            sleep(RETRY_EVERY).await;
            return true;
        }
    };
    enter(stage, worker, name, &guard, begin.elapsed());
    let lost = tokio::select! {
        () = sleep(chance.between(100, 400)) => false,
        () = guard.lost() => true,
    };
    leave(stage, worker, name, guard, lost).await
}

fn enter(stage: &Stage, worker: usize, name: &str, guard: &Guard, waited: Duration) {
    let token = guard.token();
    let entered = stage.register().enter(name, worker, token, guard.lost_signal());
    let mut board = stage.board();
    let pause = board.entered(worker, token, waited);
    let who = format!("worker {} at peer {}", letter(worker), number(board.workers[worker].peer));
    let waited = words::time(waited);
    if let Some(pause) = pause {
        let pause = words::time(pause);
        board.tell(format!("{name} moves on after {pause}: {who} enters, token {token}"));
    } else {
        board.tell_ordinary(format!("{who} enters {name} after {waited}, token {token}"));
    }
    if let Err(violation) = entered {
        board.tell(format!("VIOLATION: {violation}"));
        board.violations.push(violation);
    }
}

/// False if the peer has gone.
async fn leave(stage: &Stage, worker: usize, name: &str, guard: Guard, lost: bool) -> bool {
    // The last thing done inside: the store must not have heard of anybody later, while we may be here.
    let written = stage.register().write(name, worker, guard.token());
    if !written && !guard.is_lost() {
        let violation = format!("worker {} was refused inside {name}", letter(worker));
        stage.board().violations.push(violation);
    }
    stage.register().leave(name, worker);
    stage.board().set(worker, State::Away);
    if lost {
        let mut board = stage.board();
        board.lost(worker);
        let peer = number(board.workers[worker].peer);
        board.tell(format!("worker {} has lost {name} with its peer {peer}", letter(worker)));
        return false;
    }
    guard.release().await.is_ok()
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
