//! A client without the library: the messages of the API as they are.

use sigmalock_api::v1::locks_client::LocksClient;
use sigmalock_api::v1::session_request::Kind as Ask;
use sigmalock_api::v1::{self, SessionRequest};
use tonic::transport::Channel;

use crate::peer::Peer;

pub(crate) async fn raw(peer: &Peer) -> LocksClient<Channel> {
    LocksClient::connect(format!("http://{}", peer.tcp())).await.unwrap()
}

pub(crate) fn open(api_version: u32) -> SessionRequest {
    let process = std::process::id();
    let open = v1::Open { label: "raw".into(), api_version, process, ..v1::Open::default() };
    SessionRequest { kind: Some(Ask::Open(open)) }
}

pub(crate) fn acquire(call: u64, name: &str, mode: i32) -> SessionRequest {
    let patience = Some(v1::acquire::Patience::WaitMs(2_000));
    let acquire = v1::Acquire { call, name: name.into(), mode, ttl_ms: 0, patience, permits: 0 };
    SessionRequest { kind: Some(Ask::Acquire(acquire)) }
}

/// A stream of these messages that then neither ends nor goes on, as long as the second part lives.
pub(crate) fn endless(
    asks: Vec<SessionRequest>,
) -> (
    impl tonic::IntoStreamingRequest<Message = SessionRequest>,
    tokio::sync::mpsc::Sender<SessionRequest>,
) {
    let (sender, receiver) = tokio::sync::mpsc::channel(asks.len().max(1));
    for ask in asks {
        sender.try_send(ask).unwrap();
    }
    (Queue(receiver), sender)
}

pub(crate) struct Queue(pub(crate) tokio::sync::mpsc::Receiver<SessionRequest>);

impl tonic::codegen::tokio_stream::Stream for Queue {
    type Item = SessionRequest;
    fn poll_next(
        mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<SessionRequest>> {
        self.0.poll_recv(cx)
    }
}
