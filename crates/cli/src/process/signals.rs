//! Signals that this process gets, as they come.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Those that ask a process to end.
pub(crate) const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// How many may wait to be looked at; more of the same add nothing.
const WAITING_MAX: usize = 16;

/// From when this is made, these signals do nothing but arrive here.
#[derive(Debug)]
pub(crate) struct Signals(mpsc::Receiver<Signal>);

impl Signals {
    pub(crate) fn new(kinds: &[Signal]) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        for kind in kinds.iter().copied() {
            let mut arrivals = signal(SignalKind::from_raw(kind.as_raw()))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while arrivals.recv().await.is_some() {
                    if sender.send(kind).await.is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self(receiver))
    }

    pub(crate) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            // Its tasks hold the other end for as long as the runtime runs.
            None => std::future::pending().await,
        }
    }
}

/// The exit code of a process that a signal ended.
pub(crate) fn exit_code(signal: Signal) -> u8 {
    u8::try_from(128 + signal.as_raw()).unwrap_or(1)
}
