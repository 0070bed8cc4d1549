//! The calls of the API.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sigmalock_core::{ForgetRefusal, Name, PeerId};
use sigmalock_node::report::{EvictError, EvictOutcome, ForgetError, StatusReport};
use sigmalock_node::{Handle, SessionError, clock};
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming};

use super::connection::Caller;
use super::ends::Witness;
use super::label::label;
use super::operators::Operators;
use super::room::{Stay, Wish};
use super::session::{STOPPING, SessionStream};
use super::watching::WatchStream;
use super::{Activity, FIRST_WORD_TIMEOUT, Stage, convert, reaches};
use crate::v1::locks_server::Locks as LocksService;
use crate::v1::session_request::Kind as Ask;
use crate::{API_VERSION, v1};

/// So many names are listed at once.
const LIST_MAX: usize = 10_000;

/// So many round trips are timed at once.
const ROUNDS_MAX: u32 = 10_000;

/// What is said of a peer that is there no more.
const STOPPED: &str = "this peer has stopped";

/// A node, as the service that tonic calls.
pub(super) struct Locks {
    handle: Handle,
    peer: PeerId,
    /// What is the same in all greetings.
    greeting: v1::Opened,
    operators: Operators,
    activity: Arc<Activity>,
    stage: watch::Receiver<Stage>,
    /// Different in each life of a peer.
    life_us: u64,
    last_session: AtomicU64,
}

impl Locks {
    pub(super) fn new(
        handle: Handle, status: &StatusReport, operators: Operators, activity: Arc<Activity>,
        stage: watch::Receiver<Stage>,
    ) -> Self {
        let life_us = clock::wall().as_micros();
        let greeting = v1::Opened {
            peer: status.peer.to_string(),
            api_version: API_VERSION,
            peer_version: env!("CARGO_PKG_VERSION").to_owned(),
            swarm: status.swarm.clone(),
            private: status.private,
            ..v1::Opened::default()
        };
        let last_session = AtomicU64::new(0);
        let peer = status.peer;
        Self { handle, peer, greeting, operators, activity, stage, life_us, last_session }
    }

    /// Room for a question of whoever asks.
    fn hear<T>(&self, request: &Request<T>) -> Result<Stay, Status> {
        self.activity.touch();
        Caller::of(request)?.stay(Wish::Question)
    }

    fn greet(&self) -> v1::Opened {
        let session = self.last_session.fetch_add(1, Ordering::Relaxed) + 1;
        let holder = format!("{}/{:x}/{session}", self.greeting.peer, self.life_us);
        let peer_name = convert::name(self.peer, &self.handle.names());
        v1::Opened { session, holder, peer_name, ..self.greeting.clone() }
    }
}

fn name(text: &str) -> Result<Name, Status> {
    Name::new(text).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn peer(text: &str) -> Result<PeerId, Status> {
    text.parse().map_err(|_| {
        Status::invalid_argument(format!("{text:?} is no peer: peers are p and a number"))
    })
}

/// What a session says first of all.
async fn first_word(requests: &mut Streaming<v1::SessionRequest>) -> Result<v1::Open, Status> {
    let late = || {
        Status::deadline_exceeded(format!(
            "a session begins with Open, within {FIRST_WORD_TIMEOUT:?}"
        ))
    };
    let first = timeout(FIRST_WORD_TIMEOUT, requests.message()).await.map_err(|_| late())??;
    let Some(v1::SessionRequest { kind: Some(Ask::Open(open)) }) = first else {
        return Err(Status::failed_precondition("a session begins with Open"));
    };
    if open.api_version != API_VERSION {
        return Err(Status::failed_precondition(format!(
            "this peer (sigmalock {}) speaks version {API_VERSION} of the API, the client version {}: use the same on both sides",
            env!("CARGO_PKG_VERSION"),
            open.api_version,
        )));
    }
    Ok(open)
}

#[tonic::async_trait]
impl LocksService for Locks {
    type SessionStream = SessionStream;

    async fn session(
        &self, request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<SessionStream>, Status> {
        let caller = Caller::of(&request)?;
        let mut witness = Witness::new(&request)?;
        let stay = (self.activity.session(), caller.stay(Wish::Session)?);
        let mut requests = request.into_inner();
        let open = first_word(&mut requests).await?;
        witness.hear(&open);
        let label = label(&open.label, &caller).await;
        // Who comes when the others have been told to go is none of them.
        if *self.stage.borrow() > Stage::Serving {
            return Err(Status::unavailable(STOPPING));
        }
        let opened = self.handle.open_session_within(label, Arc::clone(&caller.account.purse));
        let session = opened.map_err(|error| match error {
            SessionError::Closed => Status::unavailable(error.to_string()),
            SessionError::TooMany => Status::resource_exhausted(error.to_string()),
        })?;
        let (opened, heard, stage) = (self.greet(), caller.heard, self.stage.clone());
        let stream = SessionStream::new(requests, session, opened, heard, witness, stage, stay);
        Ok(Response::new(stream))
    }

    async fn inspect(
        &self, request: Request<v1::InspectRequest>,
    ) -> Result<Response<v1::Lock>, Status> {
        let _stay = self.hear(&request)?;
        let name = name(&request.get_ref().name)?;
        Ok(Response::new(convert::lock(self.handle.inspect(name).await, &self.handle.names())))
    }

    async fn list(
        &self, request: Request<v1::ListRequest>,
    ) -> Result<Response<v1::ListResponse>, Status> {
        let _stay = self.hear(&request)?;
        let v1::ListRequest { prefix, limit } = request.into_inner();
        let limit = if limit == 0 { LIST_MAX } else { (limit as usize).min(LIST_MAX) };
        let locks = self.handle.list(prefix, limit).await;
        let names = self.handle.names();
        let locks = locks.into_iter().map(|lock| convert::summary(lock, &names)).collect();
        Ok(Response::new(v1::ListResponse { locks }))
    }

    async fn r#break(
        &self, request: Request<v1::BreakRequest>,
    ) -> Result<Response<v1::BreakResponse>, Status> {
        let _stay = self.hear(&request)?;
        self.operators.check(&Caller::of(&request)?, "break locks").await?;
        match self.handle.evict(name(&request.get_ref().name)?).await {
            Ok(EvictOutcome::Evicted { peer, label, others }) => {
                Ok(Response::new(v1::BreakResponse {
                    peer: peer.to_string(),
                    peer_name: convert::name(peer, &self.handle.names()),
                    label: label.unwrap_or_default(),
                    others: convert::count(others),
                }))
            }
            Ok(EvictOutcome::NotHeld) => Err(Status::not_found("nobody holds that lock")),
            Err(error @ EvictError::Stopped) => Err(Status::unavailable(error.to_string())),
            Err(error) => Err(Status::aborted(error.in_words(&self.handle.names()))),
        }
    }

    async fn forget(
        &self, request: Request<v1::ForgetRequest>,
    ) -> Result<Response<v1::ForgetResponse>, Status> {
        let _stay = self.hear(&request)?;
        self.operators.check(&Caller::of(&request)?, "forget members").await?;
        let v1::ForgetRequest { peers, unverified } = request.into_inner();
        let gone: BTreeSet<PeerId> =
            peers.iter().map(|text| peer(text)).collect::<Result<_, _>>()?;
        if gone.is_empty() {
            return Err(Status::invalid_argument("nobody is named who is gone"));
        }
        // As they are called while they are members.
        let names = self.handle.names();
        let forgotten = self.handle.forget(gone.clone(), unverified).await;
        forgotten.map_err(|error| match error {
            ForgetError::Refused(ForgetRefusal::NotAMember(_)) => {
                Status::not_found(error.in_words(&names))
            }
            ForgetError::Stopped => Status::unavailable(error.to_string()),
            error => Status::failed_precondition(error.in_words(&names)),
        })?;
        let view = self.handle.status().await.and_then(|status| status.view);
        Ok(Response::new(v1::ForgetResponse {
            peers: gone.iter().map(ToString::to_string).collect(),
            names: gone.iter().map(|peer| convert::name(*peer, &names)).collect(),
            view: view.as_ref().map_or(0, |view| view.number),
            members: view.map_or(0, |view| convert::count(view.members.len())),
        }))
    }

    async fn peers(
        &self, request: Request<v1::PeersRequest>,
    ) -> Result<Response<v1::PeersResponse>, Status> {
        let _stay = self.hear(&request)?;
        let peers = self.handle.peers().await.into_iter().map(convert::peer).collect();
        Ok(Response::new(v1::PeersResponse { peers }))
    }

    async fn status(
        &self, request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::PeerStatus>, Status> {
        let _stay = self.hear(&request)?;
        let status = self.handle.status().await.ok_or_else(|| Status::unavailable(STOPPED))?;
        Ok(Response::new(convert::status(status)))
    }

    async fn measure(
        &self, request: Request<v1::MeasureRequest>,
    ) -> Result<Response<v1::MeasureResponse>, Status> {
        let _stay = self.hear(&request)?;
        let v1::MeasureRequest { peer, rounds } = request.into_inner();
        if rounds == 0 || rounds > ROUNDS_MAX {
            return Err(Status::invalid_argument(format!(
                "between 1 and {ROUNDS_MAX} round trips can be timed at once, not {rounds}"
            )));
        }
        let measured = self.handle.measure(self::peer(&peer)?, rounds).await;
        let rtt_ns = measured.map_err(Status::failed_precondition)?;
        Ok(Response::new(v1::MeasureResponse { rtt_ns }))
    }

    type WatchStream = WatchStream;

    async fn watch(
        &self, request: Request<v1::WatchRequest>,
    ) -> Result<Response<WatchStream>, Status> {
        let stay = (self.activity.session(), Caller::of(&request)?.stay(Wish::Watch)?);
        let name = name(&request.get_ref().name)?;
        let stopped = reaches(self.stage.clone(), Stage::Leaving);
        Ok(Response::new(WatchStream::new(self.handle.clone(), name, stopped, stay)))
    }
}
