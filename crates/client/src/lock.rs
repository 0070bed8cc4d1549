//! Asking for a lock.

use std::fmt;
use std::time::Duration;

use sigmalock_api::v1;
use sigmalock_core::Name;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::AcquireError;
use crate::guard::Guard;
use crate::session::Waiting;

/// How much longer than its patience a call waits for the peer to say that it is over: a peer that does
/// not say so is stuck.
const ANSWER_SLACK: Duration = Duration::from_secs(2);

/// How long a call that does not want to wait gives the peer to find out whether it must.
const TRY_SLACK: Duration = Duration::from_secs(10);

/// A place in the queue for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// So many are before, as far as known.
    pub ahead: u32,
    /// When the turn may come, roughly.
    pub wait: Duration,
}

/// A wish for a lock, under construction. Begins with [`Client::lock`], ends with [`Lock::acquire`] or
/// [`Lock::try_acquire`].
#[must_use = "nothing is asked for until `acquire` or `try_acquire` is awaited"]
pub struct Lock {
    client: Client,
    name: String,
    mode: Mode,
    ttl: Option<Duration>,
    patience: Patience,
    on_queue: Option<OnQueue>,
}

type OnQueue = Box<dyn FnMut(Position) + Send>;

/// In what company.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
    Permit { of: u32 },
}

#[derive(Debug, Clone, Copy)]
enum Patience {
    Try,
    For(Duration),
    Forever,
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("name", &self.name)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

impl Lock {
    pub(crate) fn new(client: Client, name: String) -> Self {
        let (mode, patience) = (Mode::Exclusive, Patience::Forever);
        Self { client, name, mode, ttl: None, patience, on_queue: None }
    }

    /// To read only: any number of readers are inside together, and no writer with them. Whoever asks after a
    /// writer waits until that one has come and gone. Show [`Guard::token`] to the resource as a reader's:
    /// [`crate::fence::Fence::check_shared`].
    pub fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// One of `of` permits: at most so many are inside together, and neither writers nor readers with them.
    /// Everybody who uses the name at the same time must say the same number, or is told
    /// [`AcquireError::OtherPermits`]. [`Guard::slot`] says which one it is; tokens grow from holder to holder of
    /// each.
    pub fn permits(mut self, of: u32) -> Self {
        self.mode = Mode::Permit { of };
        self
    }

    /// How long a holder that vanishes with its machine, or does not run, keeps others out; the peer renews it as long as
    /// this process runs. Whoever is stopped for so long has lost the lock. Default: the peer's, 10 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Waits at most so long. Default: for ever.
    pub fn wait(mut self, patience: Duration) -> Self {
        self.patience = Patience::For(patience);
        self
    }

    /// Calls this with the place in the queue, while waiting, as often as the peer tells it.
    pub fn on_queue(mut self, call: impl FnMut(Position) + Send + 'static) -> Self {
        self.on_queue = Some(Box::new(call));
        self
    }

    /// Asks, and waits. Dropping the future takes the request back.
    ///
    /// # Errors
    /// See [`AcquireError`]; nothing is held then, and nothing waits.
    pub async fn acquire(mut self) -> Result<Guard, AcquireError> {
        let name = named(&self.name)?;
        let session = self.client.session().await?;
        let patience = self.patience.shape();
        let positions = self.on_queue.is_some();
        let waiting = session.ask(name.as_str(), self.mode, self.ttl, patience, positions)?;
        let answer = follow(waiting, self.on_queue.take());
        let guard = match self.patience {
            Patience::Forever => answer.await?,
            Patience::For(patience) => {
                match timeout(patience.saturating_add(ANSWER_SLACK), answer).await {
                    Ok(Err(AcquireError::TimedOut { .. })) | Err(_) => {
                        return Err(AcquireError::TimedOut { waited: patience });
                    }
                    Ok(answer) => answer?,
                }
            }
            Patience::Try => match timeout(TRY_SLACK, answer).await {
                Ok(answer) => answer?,
                Err(_) => {
                    let reason = format!("the peer did not answer within {TRY_SLACK:?}");
                    return Err(AcquireError::Disconnected { reason });
                }
            },
        };
        if guard.is_lost() { Err(AcquireError::Overslept) } else { Ok(guard) }
    }

    /// Asks, and does not wait: the lock is free, or [`AcquireError::Busy`]; whatever [`Lock::wait`] was told.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    pub async fn try_acquire(mut self) -> Result<Guard, AcquireError> {
        self.patience = Patience::Try;
        self.acquire().await
    }
}

/// The name of a lock, however it was written.
pub(crate) fn named(text: &str) -> Result<Name, AcquireError> {
    Name::new(text).map_err(|why| AcquireError::BadName { text: why.to_string() })
}

impl Mode {
    /// As the API has it: the mode, and how many permits.
    pub(crate) fn shape(self) -> (v1::Mode, u32) {
        match self {
            Self::Exclusive => (v1::Mode::Exclusive, 0),
            Self::Shared => (v1::Mode::Shared, 0),
            Self::Permit { of } => (v1::Mode::Permit, of),
        }
    }
}

impl Patience {
    fn shape(self) -> v1::acquire::Patience {
        match self {
            Self::Try => v1::acquire::Patience::Now(v1::Now {}),
            Self::For(patience) => v1::acquire::Patience::WaitMs(millis(patience)),
            Self::Forever => v1::acquire::Patience::Forever(v1::Forever {}),
        }
    }
}

/// Waits for the answer; meanwhile tells what is told.
async fn follow(mut waiting: Waiting, on_queue: Option<OnQueue>) -> Result<Guard, AcquireError> {
    if let Some(mut tell) = on_queue {
        while let Some(position) = waiting.position().await {
            tell(position);
        }
    }
    waiting.answer().await
}

/// In whole milliseconds, rounded up: a wish to wait is never cut short.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
