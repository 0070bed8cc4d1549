//! The driver between a transport and a disk that the test plays.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use libp2p::PeerId as NetworkId;
use sigmalock_core::{
    Acquire, Birth, Context, Incarnation, Input, Inspect, Key, LocalReport, LocalTime, LockReply,
    LockRequest, MemberReport, Name, Patience, PeerId, Protocol, ReplicaReport, Span, Standing,
    Token, ViewReport,
};
use sigmalock_protocols::parts::{Driven, GoesBy, Placement, Sound};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Driver, Exit, Setup};
use crate::control::{Answer, Query, Question, Reply};
use crate::handle::{Facts, Handle, Session};
use crate::link::{Command, Event, Outbox, OutboxReader, Parting, PeerInfo, Role, SessionId};
use crate::names::Book;
use crate::store::Store;
use crate::store::tests::mortal;
use crate::wire::{Frames, Kind};

const ME: PeerId = PeerId(1);
const OTHER: PeerId = PeerId(2);

/// Grants at once, and tells the other peer; on `/durable…`, only what is on disk.
struct Echo {
    heard: Vec<u64>,
    placement: Placement,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Word(u64);

impl core::fmt::Display for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl sigmalock_core::Message for Word {
    fn kind(&self) -> &'static str {
        "WORD"
    }
    fn size_bytes(&self) -> usize {
        8
    }
}

impl Protocol for Echo {
    type Message = Word;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = u64;
    type DurableKey = u64;
    type Durable = u64;
    type Note = Word;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        match input {
            Input::Request { id, request: LockRequest::Acquire(wish) } => {
                if wish.name.as_str().starts_with("/durable") {
                    cx.persist(id.0, Some(id.0));
                }
                cx.send(OTHER, Word(id.0));
                cx.send(ME, Word(id.0));
                let token = Some(Token(self.heard.len() as u64));
                cx.reply(id, LockReply::Granted { token, deadline: LocalTime::NEVER, slot: None });
            }
            Input::Request { id, .. } => cx.reply(id, LockReply::Released),
            Input::Receive { from, message } => {
                self.heard.push(message.0);
                if from != ME {
                    cx.set_timer(message.0, cx.now() + Span::from_millis(20));
                }
            }
            Input::Fire(timer) => cx.send(OTHER, Word(timer + 1_000)),
            _ => {}
        }
    }
}

impl Inspect for Echo {
    fn replicas(&self, _: LocalTime, _: &Name) -> Vec<ReplicaReport> {
        Vec::new()
    }
    fn local(&self, _: LocalTime, _: &Name) -> LocalReport {
        LocalReport::default()
    }
    fn names(&self, _: Option<&Name>, _: usize) -> Vec<Name> {
        Vec::new()
    }
    fn view(&self, _: LocalTime) -> Option<ViewReport> {
        plights().into_iter().nth(self.heard.last()?.checked_sub(PLIGHT)? as usize)
    }
}

impl GoesBy<Sound> for Echo {}

impl Driven for Echo {
    fn placement(&self) -> Option<&Placement> {
        Some(&self.placement)
    }
    fn placement_mut(&mut self) -> Option<&mut Placement> {
        Some(&mut self.placement)
    }
    fn has_forgotten(&self) -> bool {
        self.heard.last() == Some(&FORGET)
    }
}

/// The word that makes it forget, until it hears the next.
const FORGET: u64 = 77;
/// From here on words put it into a view in which it does not vote, until it hears the next.
const PLIGHT: u64 = 100;

/// Every way not to vote.
fn plights() -> Vec<ViewReport> {
    let up = Span::from_secs(2);
    let member = |(peer, forgot, silent_for)| MemberReport { peer, since: 1, forgot, silent_for };
    let view = |standing| ViewReport {
        number: 2,
        members: [(ME, false, None), (OTHER, true, None), (PeerId(3), false, Some(up))]
            .map(member)
            .to_vec(),
        votes: (3, 2),
        forced: false,
        standing,
        gets_locks: false,
        strangers: vec![OTHER],
        rivals: Vec::new(),
        outdated: vec![OTHER],
        vouched_in: None,
    };
    let unvouched = view(Standing::Unvouched);
    let (here, expected) = (1, 3);
    let founding = |pledged_to, told_otherwise| {
        view(Standing::Founding { here, expected, pledged_to, told_otherwise })
    };
    let minority = view(Standing::Minority { up: 1, needed: 2 });
    let remembering =
        minority.members.iter().map(|member| MemberReport { forgot: false, ..*member });
    vec![
        view(Standing::Outside),
        ViewReport { number: 0, members: Vec::new(), ..view(Standing::Outside) },
        founding(None, None),
        founding(Some(PeerId(3)), None),
        founding(None, Some((PeerId(3), 5))),
        view(Standing::Lost),
        view(Standing::OldDisk),
        ViewReport { rivals: vec![OTHER], ..unvouched.clone() },
        ViewReport { vouched_in: Some(up), ..unvouched.clone() },
        unvouched,
        view(Standing::Learning { for_at_most: up }),
        ViewReport { number: 1, ..view(Standing::Learning { for_at_most: up }) },
        ViewReport { members: remembering.collect(), ..minority.clone() },
        minority,
    ]
}

/// A log that the test reads.
#[derive(Default, Clone)]
struct Log(std::sync::Arc<std::sync::Mutex<String>>);

impl tracing::field::Visit for Log {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn core::fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{value:?}\n"));
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A driver with a transport that the test plays.
struct Stage {
    events: mpsc::Sender<Event>,
    commands: mpsc::Receiver<Command>,
    handle: Handle,
    driver: JoinHandle<Exit>,
}

fn info(peer: PeerId) -> PeerInfo {
    PeerInfo {
        peer,
        network: NetworkId::random(),
        key: Key([peer.0 as u8; 32]),
        role: Role::Host,
        incarnation: Incarnation(1),
        addresses: Vec::new(),
        reached_at: None,
        name: None,
        origin: 0,
    }
}

impl Stage {
    fn new(store: Option<Store>) -> Self {
        let (event_sender, events) = mpsc::channel(64);
        let (transport, commands) = mpsc::channel(64);
        let lease_max = Span::from_secs(15);
        let facts = Facts {
            me: ME,
            lease_max,
            data: None,
            swarm: String::new(),
            private: false,
            protocol: crate::config::ProtocolName::Sigma,
            names: Book::default(),
        };
        let (handle, local) = Handle::new(transport.clone(), facts);
        let driver = Driver::new(Setup {
            me: info(ME),
            protocol: Echo {
                heard: Vec::new(),
                placement: Placement::new(ME, Key([1; 32]), true, lease_max, Span::from_secs(1)),
            },
            incarnation: Incarnation(1),
            birth: Birth::First,
            loss: None,
            writes: 0,
            seed: 1,
            store,
            votes: (3, 2),
            lease_max,
            known: Vec::new(),
            names: Book::default(),
            looks_at: String::new(),
            origin: std::sync::Arc::default(),
            mesh_max: 8,
            events,
            transport,
            commands: local,
            commands_waiting: std::sync::Arc::clone(&handle.shared.waiting),
        });
        Self { events: event_sender, commands, handle, driver: tokio::spawn(driver.run()) }
    }

    async fn up(&self, session: u64) -> OutboxReader {
        let (outbox, mut reader) = Outbox::new();
        let session = SessionId(session);
        self.events.send(Event::Up { session, info: Box::new(info(OTHER)), outbox }).await.unwrap();
        // First of all it says whom it knows.
        let bytes = timeout(Duration::from_secs(5), reader.next()).await.unwrap().unwrap();
        assert_eq!(bytes[4], Kind::Query as u8);
        reader
    }

    async fn frame(&self, session: u64, bytes: Vec<u8>) {
        let kind = Kind::from_byte(bytes[4]).unwrap();
        let (session, body) = (SessionId(session), bytes[5..].to_vec());
        self.events.send(Event::Frame { session, from: OTHER, kind, body }).await.unwrap();
    }

    async fn words(&self, session: u64, words: &[u64]) {
        let mut frames = Frames::new();
        for word in words {
            assert!(frames.push_message(&Word(*word)));
        }
        self.frame(session, frames.take()).await;
    }
}

fn wish(name: &str) -> Acquire {
    let patience = Patience::Forever;
    Acquire::exclusive(Name::new(name).unwrap(), Span::from_secs(10), patience)
}

/// The words of all frames that wait for the other peer.
async fn said(reader: &mut OutboxReader) -> Vec<u64> {
    let soon = Duration::from_millis(200);
    let Ok(Some(bytes)) = timeout(soon, reader.next()).await else { return Vec::new() };
    assert_eq!(bytes[4], Kind::Messages as u8);
    let (mut words, mut rest) = (Vec::new(), &bytes[5..]);
    while !rest.is_empty() {
        let (Word(word), tail) = postcard::take_from_bytes(rest).unwrap();
        words.push(word);
        rest = tail;
    }
    words
}

async fn token(session: &mut Session) -> Token {
    match timeout(Duration::from_secs(5), session.next()).await {
        Ok(Some((_, LockReply::Granted { token: Some(token), .. }))) => token,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_goes_to_one_peer_in_one_turn_is_one_write_in_order() {
    let stage = Stage::new(None);
    let mut reader = stage.up(1).await;
    let mut session = stage.handle.open_session("a".into()).unwrap();
    for call in 0..3 {
        session.acquire(call, wish("/a")).unwrap();
    }
    assert_eq!(said(&mut reader).await, [1, 2, 3]);
    // Its own messages were heard between one request and the next.
    for heard in 0..3 {
        assert_eq!(token(&mut session).await, Token(heard));
    }
}

#[tokio::test]
async fn messages_and_timers_reach_the_protocol() {
    let stage = Stage::new(None);
    let mut reader = stage.up(1).await;
    stage.words(1, &[5, 6]).await;
    assert_eq!(said(&mut reader).await, [1_005, 1_006]);
}

#[tokio::test]
async fn a_lost_memory_is_logged_each_time_however_soon_it_is_over() {
    let log = Log::default();
    let _logs = tracing::subscriber::set_default(log.clone());
    let stage = Stage::new(None);
    let mut reader = stage.up(1).await;
    stage.words(1, &[FORGET, 1, 2, FORGET, FORGET, 3]).await;
    assert_eq!(said(&mut reader).await.len(), 4, "it has heard all");
    let log = log.0.lock().unwrap();
    assert_eq!(log.matches("this peer has lost its memory").count(), 2, "{log}");
}

#[tokio::test]
async fn why_it_does_not_vote_is_a_sentence_and_each_another() {
    let stage = Stage::new(None);
    let mut reader = stage.up(1).await;
    let mut said_before = std::collections::BTreeSet::new();
    for (plight, view) in (PLIGHT..).zip(plights()) {
        stage.words(1, &[plight]).await;
        assert_eq!(said(&mut reader).await, [plight + 1_000]);
        let status = stage.handle.status().await.unwrap();
        let why = status.why_not.unwrap_or_else(|| panic!("it can grant: {view:?}"));
        for sentence in status.advice.iter().chain([&why]) {
            assert!(!sentence.contains("  ") && !sentence.ends_with(' '), "{sentence:?}");
        }
        assert!(said_before.insert(why.clone()), "{why}");
    }
    assert!(said_before.iter().any(|why| why.starts_with("this swarm is two")));
}

#[tokio::test]
async fn an_old_session_is_not_taken_for_the_new_one() {
    let stage = Stage::new(None);
    let mut old = stage.up(1).await;
    let mut new = stage.up(2).await;
    stage.words(1, &[5]).await;
    stage.words(2, &[6]).await;
    let (session, peer, parting) = (SessionId(1), OTHER, Parting::Closed);
    stage.events.send(Event::Down { session, peer, parting }).await.unwrap();
    assert_eq!(said(&mut new).await, [1_006]);
    assert_eq!(said(&mut old).await, [0; 0]);
}

#[tokio::test]
async fn nonsense_is_counted_and_its_sender_expelled() {
    let mut stage = Stage::new(None);
    let _reader = stage.up(1).await;
    let mut frames = Frames::new();
    assert!(frames.push(Kind::Messages, &[255u8; 11]));
    stage.frame(1, frames.take()).await;
    let expelled = timeout(Duration::from_secs(5), stage.commands.recv()).await.unwrap();
    assert!(matches!(expelled, Some(Command::Expel(SessionId(1)))));
}

#[tokio::test]
async fn nothing_is_seen_before_what_it_rests_on_is_on_disk() {
    let (store, disk) = crate::store::tests::paused();
    let stage = Stage::new(Some(store));
    let mut reader = stage.up(1).await;
    let mut session = stage.handle.open_session("a".into()).unwrap();
    session.acquire(0, wish("/a")).unwrap();
    assert_eq!(said(&mut reader).await, [1], "rests on nothing");
    token(&mut session).await;
    disk.pause();
    session.acquire(1, wish("/durable")).unwrap();
    assert_eq!(said(&mut reader).await, [0; 0]);
    assert!(session.try_next().is_none());
    session.acquire(2, wish("/b")).unwrap();
    session.acquire(3, wish("/durable")).unwrap();
    assert_eq!(said(&mut reader).await, [0; 0], "order is kept");
    disk.go_on();
    let mut words = said(&mut reader).await;
    words.append(&mut said(&mut reader).await);
    words.append(&mut said(&mut reader).await);
    assert_eq!(words, [2, 3, 4]);
    for _ in 0..3 {
        token(&mut session).await;
    }
}

#[tokio::test]
async fn a_dead_disk_stops_the_peer_and_nothing_is_acknowledged() {
    let (store, dead) = mortal();
    let stage = Stage::new(Some(store));
    let mut reader = stage.up(1).await;
    let mut session = stage.handle.open_session("a".into()).unwrap();
    session.acquire(0, wish("/durable")).unwrap();
    assert_eq!(said(&mut reader).await, [1]);
    token(&mut session).await;
    dead.store(true, SeqCst);
    session.acquire(1, wish("/durable")).unwrap();
    assert_eq!(said(&mut reader).await, [0; 0]);
    assert!(matches!(stage.driver.await, Ok(Exit::Disk(_))));
    assert_eq!(session.next().await, None);
    assert!(session.acquire(2, wish("/a")).is_err());
    assert!(stage.handle.open_session("b".into()).is_err());
}

#[tokio::test]
async fn questions_of_other_peers_are_answered_and_late_answers_find_nobody() {
    let stage = Stage::new(None);
    let mut reader = stage.up(1).await;
    let mut frames = Frames::new();
    let question = Question::Local { name: Name::new("/a").unwrap() };
    assert!(frames.push(Kind::Query, &Query { id: 7, question }));
    stage.frame(1, frames.take()).await;
    let bytes = timeout(Duration::from_secs(5), reader.next()).await.unwrap().unwrap();
    assert_eq!(bytes[4], Kind::Answer as u8);
    let reply: Reply = postcard::from_bytes(&bytes[5..]).unwrap();
    assert!(reply.id == 7 && matches!(reply.answer, Answer::Local(_)));
    assert!(frames.push(Kind::Answer, &Reply { id: 99, answer: Answer::Evicted(true) }));
    stage.frame(1, frames.take()).await;
    assert_eq!(stage.handle.status().await.unwrap().counters.nonsense, 0);
}

#[tokio::test]
async fn a_session_that_does_not_take_its_replies_is_ended() {
    let stage = Stage::new(None);
    let mut session = stage.handle.open_session("a".into()).unwrap();
    for _ in 0..=crate::handle::REPLIES_MAX {
        while session.release(1).is_err() {}
        tokio::task::yield_now().await;
    }
    let status = timeout(Duration::from_secs(5), stage.handle.status()).await.unwrap().unwrap();
    assert_eq!(status.sessions, 0);
    while session.next().await.is_some() {}
}
