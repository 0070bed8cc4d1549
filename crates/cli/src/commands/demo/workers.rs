//! Those who contend, seen from the demonstration: what they say goes to the board and to the register.

use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::board::{Board, State};
use super::register::Register;
use super::view::{letter, number};
use super::worker::Said;
use crate::process::group::{self, Group};
use crate::swarm::Swarm;
use crate::words;

/// What all share.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    board: Arc<Mutex<Board>>,
    register: Arc<Mutex<Register>>,
    workers: Arc<Mutex<Vec<Group>>>,
}

impl Stage {
    pub(crate) fn new(board: Board) -> Self {
        Self {
            board: Arc::new(Mutex::new(board)),
            register: Arc::default(),
            workers: Arc::default(),
        }
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workers(&self) -> MutexGuard<'_, Vec<Group>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts all workers, each a process that dies with this one, even where it is stopped.
    pub(crate) fn start_workers(&self, swarm: &Swarm) -> anyhow::Result<()> {
        let program = std::env::current_exe()?.display().to_string();
        let cast = self.board().workers.clone();
        for (index, worker) in cast.iter().enumerate() {
            let name = self.board().locks[worker.lock].name.clone();
            let (label, seed) = (format!("worker {}", letter(index)), (index + 1).to_string());
            let api = swarm.api(worker.peer);
            let words = [&program, "__worker", "--api", &api, "--label", &label];
            let words = [&words[..], &["--lock", &name, "--seed", &seed]].concat();
            let (group, stdin, stdout) = Group::spawn_to_talk(&mut group::command(&words, false)?)?;
            self.workers().push(group);
            tokio::spawn(self.clone().listen(index, name, stdin, stdout));
        }
        Ok(())
    }

    pub(crate) fn end_workers(&self) {
        for worker in &mut *self.workers() {
            // Who cannot be killed is gone.
            let _ = worker.kill();
        }
    }

    fn signal(&self, worker: usize, signal: Signal) {
        if let Some(group) = self.workers().get(worker) {
            group.signal(signal);
        }
    }

    /// Lets the holder that is stopped go on.
    pub(crate) fn wake(&self) {
        let sleeper = self.board().wakes();
        if let Some(worker) = sleeper {
            self.signal(worker, Signal::CONT);
        }
    }

    async fn listen(self, worker: usize, name: String, stdin: ChildStdin, stdout: ChildStdout) {
        let pipes = (
            tokio::process::ChildStdin::from_std(stdin),
            tokio::process::ChildStdout::from_std(stdout),
        );
        let (Ok(mut answers), Ok(words)) = pipes else { return };
        let mut lines = BufReader::new(words).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let Ok(said) = serde_json::from_str(&line) else { continue };
            let wants_answer = matches!(said, Said::Writes { .. });
            self.hear(worker, &name, said);
            if wants_answer && answers.write_all(b"heard\n").await.is_err() {
                break;
            }
        }
        self.board().is_gone(worker);
    }

    fn hear(&self, worker: usize, name: &str, said: Said) {
        match said {
            Said::Cut => self.board().set(worker, State::Cut),
            Said::Away => self.board().set(worker, State::Away),
            Said::Waiting { ahead } => self.board().set(worker, State::Waiting(ahead)),
            Said::Inside { token, at_us, until_us, waited_us } => {
                let entered = self.register().enter(name, worker, token, at_us, until_us);
                self.enters(worker, name, token, Duration::from_micros(waited_us), entered);
            }
            Said::Extended { until_us } => self.register().extend(name, worker, until_us),
            Said::Writes { token } => {
                let written = self.register().write(name, worker, token);
                self.writes(worker, token, written);
            }
            Said::Lost => {
                let mut board = self.board();
                // Whoever was stopped has lost it by that, and this was told.
                if board.has_slept(worker) {
                    return;
                }
                board.lost(worker);
                let peer = number(board.workers[worker].peer);
                let worker = letter(worker);
                board.tell(format!("worker {worker} has lost {name} with its peer {peer}"));
            }
            Said::Failed { why } => self.board().tell(format!("worker {}: {why}", letter(worker))),
        }
    }

    fn enters(
        &self, worker: usize, name: &str, token: u64, waited: Duration, entered: Result<(), String>,
    ) {
        let mut board = self.board();
        let pause = board.entered(worker, token, waited);
        let who = letter(worker);
        if let Some(pause) = pause {
            let pause = words::time(pause);
            board.tell(format!("{name} moves on after {pause}: {who} enters, token {token}"));
        } else {
            let (at, waited) = (number(board.workers[worker].peer), words::time(waited));
            board.tell_ordinary(format!(
                "worker {who} at peer {at} enters {name} after {waited}, token {token}"
            ));
        }
        if let Err(violation) = entered {
            board.shout(format!("VIOLATION: {violation}"));
            board.violations.push(violation);
        }
        let stopped = board.stops(worker);
        drop(board);
        if stopped {
            // It works for a while before it writes, so it stands still inside.
            self.signal(worker, Signal::STOP);
        }
    }

    fn writes(&self, worker: usize, token: u64, written: Result<(), u64>) {
        let mut board = self.board();
        let slept = board.has_woken(worker);
        board.set(worker, State::Away);
        let who = letter(worker);
        match written {
            Ok(()) if slept => board.tell(format!(
                "worker {who} woke up and wrote with token {token}: accepted, nobody has been here since"
            )),
            Ok(()) => {}
            Err(newer) => board.refused(worker, slept, token, newer),
        }
    }
}
