//! The handshake: who are you, do we mean the same swarm, and do you know its secret?
//!
//! ```text
//!   A                                  B
//!   ├─ Hello (version, terms, nonce) ─►│   both at once
//!   │◄─ Hello ─────────────────────────┤
//!   ├─ Proof ─────────────────────────►│   HMAC over both Hellos, keyed by the swarm's secret
//!   │◄─ Proof ─────────────────────────┤   or Refusal (code, text), and the end
//!   ├─ Card (name) ───────────────────►│   once the other's proof has been verified
//!   │◄─ Card ──────────────────────────┤
//!   ├─ Ballast ───────────────────────►│   both at once: packets as large as they get
//!   │◄─ Ballast ───────────────────────┤
//!   ├─ Arrived ───────────────────────►│
//!   │◄─ Arrived ───────────────────────┤
//! ```
//!
//! A Hello begins with [`MAGIC`] and the version, and a Refusal is a code and a text, in all versions
//! there will ever be: so peers that understand nothing else of each other can still say why. Nothing
//! about the swarm's locks or peers is said before the other's proof has been verified.
//!
//! There are paths on which small packets arrive and large ones vanish, without a word to who sent them. A session there
//! would look well until somebody has much to say. So there is none before each side knows that its largest packets arrive.

use std::io;
use std::sync::Arc;

use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use libp2p::{Multiaddr, PeerId as NetworkId};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use sigmalock_core::{Incarnation, PeerId};

use super::limits::{
    ADDRESS_LEN_MAX, ADDRESSES_MAX, BALLAST_LEN, HANDSHAKE_FRAME_LEN_MAX, HANDSHAKE_MAX,
    REASON_LEN_MAX, REFUSAL_LINGER,
};
use super::terms::Terms;
use crate::config::Config;
use crate::identity::{key_of, peer_of};
use crate::key::DerivedKey;
use crate::link::{PeerInfo, Role};
use crate::names::PeerName;
use crate::origin::Origin;
use crate::wire::{HEAD_LEN, Kind, VERSION, frame};

/// What every Hello begins with, in all versions.
const MAGIC: [u8; 8] = *b"sgmalock";

/// Who this peer is and what it wants, for all handshakes of its life.
#[derive(Debug, Clone)]
pub(crate) struct Me {
    pub(crate) network: NetworkId,
    pub(crate) peer: PeerId,
    pub(crate) incarnation: Incarnation,
    pub(crate) role: Role,
    /// What people call it, as it tells others.
    pub(crate) card: String,
    pub(crate) terms: Terms,
    /// Which swarm it belongs to.
    pub(crate) origin: Arc<Origin>,
    /// Derived from the swarm's secret.
    pub(crate) proof_key: DerivedKey,
    /// What the Hello says of the version; only tests say anything else than [`VERSION`].
    pub(crate) version: u16,
}

impl Me {
    /// From what a peer is told when it starts.
    pub(crate) fn new(config: &Config, network: NetworkId, incarnation: Incarnation) -> Self {
        Self {
            network,
            peer: peer_of(&network),
            incarnation,
            role: config.role,
            card: config.name.as_ref().map(ToString::to_string).unwrap_or_default(),
            terms: Terms::new(config),
            origin: Arc::default(),
            proof_key: config.swarm_key.derive("sigmalock session proof"),
            version: VERSION,
        }
    }
}

/// What a Hello says behind the version.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    terms: Terms,
    role: Role,
    peer: PeerId,
    incarnation: Incarnation,
    addresses: Vec<Vec<u8>>,
    /// Which swarm it belongs to; 0: none yet, or nobody founds any.
    origin: u64,
    software: String,
    nonce: [u8; 32],
}

/// Why a peer is not let in; numbers that keep their meaning in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Code {
    /// Another version of the wire format.
    Version = 1,
    /// Other swarm keys, or one has none.
    Key = 2,
    /// Another kind of membership.
    Membership = 3,
    /// Another lock protocol.
    Protocol = 4,
    /// Another n or m.
    Quorum = 5,
    /// Another longest lease.
    LeaseMax = 6,
    /// Another number of hand-overs.
    HandOvers = 7,
    /// Its name in protocols is not its own.
    Name = 8,
    /// As many sessions as there may be.
    Full = 9,
    /// It belongs to a swarm that somebody else founded.
    Swarm = 10,
    /// A session with a peer of its name is open: with its former self, or with another that has its identity.
    Twin = 11,
}

/// How a handshake ended, other than well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// We refused, or they did; in words.
    Refused(String),
    /// It sent what no peer sends.
    Nonsense(&'static str),
    /// The stream ended or took too long.
    Io(io::Error),
    /// All went well, until large packets were sent.
    Clogged,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Which side opened the stream; part of the proofs, so that none can be sent back as one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// This one.
    Opener,
    /// The other.
    Accepter,
}

/// Shakes hands. `addresses` is where this peer can be reached from over there. If a refusal is due,
/// it has been sent when this returns.
pub(crate) async fn shake<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S, me: &Me, them: NetworkId, side: Side, addresses: &[Multiaddr],
) -> Result<PeerInfo, Failure> {
    let shaken = tokio::time::timeout(HANDSHAKE_MAX, exchange(stream, me, them, side, addresses));
    match shaken.await {
        Ok(Err(Outcome::Refuse(code, text))) => {
            refuse(stream, code, &text).await;
            Err(Failure::Refused(format!("{them} was refused: {text}")))
        }
        Ok(Err(Outcome::Fail(failure))) => Err(failure),
        Ok(Ok(info)) => Ok(info),
        Err(_) => Err(Failure::Io(io::ErrorKind::TimedOut.into())),
    }
}

enum Outcome {
    Refuse(Code, String),
    Fail(Failure),
}

impl<E: Into<Failure>> From<E> for Outcome {
    fn from(error: E) -> Self {
        Self::Fail(error.into())
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S, me: &Me, them: NetworkId, side: Side, addresses: &[Multiaddr],
) -> Result<PeerInfo, Outcome> {
    let (nonce, ours) = hello(me, addresses)?;
    stream.write_all(&frame(Kind::Hello, &ours)).await?;
    stream.flush().await?;

    let body = read(stream, Kind::Hello, HANDSHAKE_FRAME_LEN_MAX, them).await?;
    let hello = understand(me, &body)?;
    if hello.peer != peer_of(&them) || them == me.network {
        return Err(Outcome::Refuse(Code::Name, "its name is not that of its key".into()));
    }
    if hello.peer == me.peer {
        return Err(Outcome::Refuse(Code::Name, "its name in protocols is ours".into()));
    }
    if let Some((code, text)) = me.terms.difference(&hello.terms) {
        return Err(Outcome::Refuse(code, text));
    }
    if let Some(text) = me.origin.objection(hello.origin) {
        return Err(Outcome::Refuse(Code::Swarm, text));
    }

    let (mine, yours) = ((me.network, &nonce, &ours), (them, &hello.nonce, &body));
    let (tag, their_tag) = match side {
        Side::Opener => (b'o', b'a'),
        Side::Accepter => (b'a', b'o'),
    };
    let proof = prove(&me.proof_key, tag, mine, yours)?.finalize().into_bytes();
    stream.write_all(&frame(Kind::Proof, &proof)).await?;
    stream.flush().await?;
    let proof = read(stream, Kind::Proof, HANDSHAKE_FRAME_LEN_MAX, them).await?;
    if prove(&me.proof_key, their_tag, yours, mine)?.verify_slice(&proof).is_err() {
        let text = "its proof that it knows the swarm key is wrong".into();
        return Err(Outcome::Refuse(Code::Key, text));
    }
    stream.write_all(&frame(Kind::Card, me.card.as_bytes())).await?;
    stream.flush().await?;
    let card = read(stream, Kind::Card, HANDSHAKE_FRAME_LEN_MAX, them).await?;
    Ok(PeerInfo {
        peer: hello.peer,
        network: them,
        key: key_of(&them),
        role: hello.role,
        incarnation: hello.incarnation,
        addresses: addresses_from(hello.addresses),
        reached_at: None,
        name: PeerName::tamed(&String::from_utf8_lossy(&card)),
        origin: hello.origin,
    })
}

/// A nonce, and our Hello with it.
fn hello(me: &Me, addresses: &[Multiaddr]) -> Result<([u8; 32], Vec<u8>), Failure> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    let hello = Hello {
        terms: me.terms.clone(),
        role: me.role,
        peer: me.peer,
        incarnation: me.incarnation,
        addresses: addresses_to(addresses),
        origin: me.origin.get(),
        software: concat!("sigmalock/", env!("CARGO_PKG_VERSION")).into(),
        nonce,
    };
    let mut body = MAGIC.to_vec();
    body.extend_from_slice(&me.version.to_le_bytes());
    postcard::to_extend(&hello, body).map(|body| (nonce, body)).map_err(|_| Failure::Nonsense(""))
}

/// Their Hello, if it is one and of our version.
fn understand(me: &Me, body: &[u8]) -> Result<Hello, Outcome> {
    let nonsense = |what| Outcome::Fail(Failure::Nonsense(what));
    let rest = body.strip_prefix(&MAGIC).ok_or_else(|| nonsense("a Hello of something else"))?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(|| nonsense("half a Hello"))?;
    let theirs = u16::from_le_bytes(*version);
    if theirs != me.version {
        let ours = me.version;
        let older = if ours < theirs { "we are" } else { "they are" };
        return Err(Outcome::Refuse(
            Code::Version,
            format!(
                "the versions of the wire format differ (ours {ours}, theirs {theirs}); {older} to \
                 be upgraded"
            ),
        ));
    }
    postcard::from_bytes(rest).map_err(|_| nonsense("a Hello that cannot be read"))
}

type Word<'a> = (NetworkId, &'a [u8; 32], &'a Vec<u8>);

/// The proof of one side that it has heard the other and knows the secret.
fn prove(
    key: &DerivedKey, tag: u8, one: Word<'_>, other: Word<'_>,
) -> Result<Hmac<Sha256>, Failure> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.bytes()).map_err(io::Error::other)?;
    mac.update(&[tag]);
    for (network, nonce, hello) in [one, other] {
        for part in [&network.to_bytes(), &nonce[..], hello] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
    }
    Ok(mac)
}

/// Ends well when both sides know that their largest packets arrive.
pub(crate) async fn weigh<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S, them: NetworkId,
) -> Result<(), Failure> {
    stream.write_all(&frame(Kind::Ballast, &[0; BALLAST_LEN])).await?;
    stream.flush().await?;
    read(stream, Kind::Ballast, BALLAST_LEN + 1, them).await?;
    stream.write_all(&frame(Kind::Arrived, &[])).await?;
    stream.flush().await?;
    read(stream, Kind::Arrived, HANDSHAKE_FRAME_LEN_MAX, them).await.map(drop)
}

/// Reads a frame of this kind, or a refusal, and not a byte more.
async fn read<S: AsyncRead + Unpin>(
    stream: &mut S, kind: Kind, len_max: usize, them: NetworkId,
) -> Result<Vec<u8>, Failure> {
    let mut head = [0; HEAD_LEN];
    stream.read_exact(&mut head).await?;
    let [a, b, c, d, found] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length == 0 || length > len_max {
        return Err(Failure::Nonsense("a frame of an impossible length"));
    }
    let mut body = vec![0; length - 1];
    stream.read_exact(&mut body).await?;
    match Kind::from_byte(found) {
        Some(found) if found == kind => Ok(body),
        Some(Kind::Refusal) => Err(Failure::Refused(refused_by(them, &body))),
        _ => Err(Failure::Nonsense("a frame of the wrong kind")),
    }
}

/// Whether a refusal says that another peer has our identity. To be believed only of one that has proved to belong to
/// the swarm.
pub(crate) fn is_about_a_twin(body: &[u8]) -> bool {
    body.starts_with(&(Code::Twin as u16).to_le_bytes())
}

/// What the other side says when it refuses, as it may be shown to people.
pub(crate) fn refused_by(them: NetworkId, body: &[u8]) -> String {
    let text = body.get(2..).unwrap_or_default();
    let text = clean(&String::from_utf8_lossy(&text[..text.len().min(REASON_LEN_MAX)]));
    format!("{them} refused us, and says: {text}")
}

/// Text from outside, fit for a log.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(REASON_LEN_MAX).collect()
}

/// Says why, and waits a little for it to arrive.
pub(crate) async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S, code: Code, text: &str,
) {
    let mut body = (code as u16).to_le_bytes().to_vec();
    body.extend_from_slice(text.as_bytes());
    body.truncate(2 + REASON_LEN_MAX);
    let farewell = async {
        stream.write_all(&frame(Kind::Refusal, &body)).await?;
        stream.close().await?;
        let mut rest = [0; 256];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(REFUSAL_LINGER, farewell).await;
}

/// Addresses for the wire.
pub(crate) fn addresses_to(addresses: &[Multiaddr]) -> Vec<Vec<u8>> {
    addresses.iter().take(ADDRESSES_MAX).map(Multiaddr::to_vec).collect()
}

/// Addresses from the wire: as many as may be, and those that are some and can be shown on any terminal.
pub(crate) fn addresses_from(addresses: Vec<Vec<u8>>) -> Vec<Multiaddr> {
    addresses
        .into_iter()
        .filter(|bytes| bytes.len() <= ADDRESS_LEN_MAX)
        .filter_map(|bytes| Multiaddr::try_from(bytes).ok())
        .filter(|address| !address.is_empty())
        .filter(|address| address.to_string().chars().all(|c| c.is_ascii_graphic()))
        .take(ADDRESSES_MAX)
        .collect()
}
