//! Two services in each of three real peers: the locks that users ask for, and another one that nobody asks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Input, LockReply, LockRequest, Name, Patience,
    Protocol,
};
use sigmalock_protocols::agreed::OverViews;
use sigmalock_protocols::catalogue::Listed as _;
use sigmalock_protocols::parts::ask::{Ask, Told};
use sigmalock_protocols::parts::beside::Never;
use sigmalock_protocols::parts::hosting::Terms;
use sigmalock_protocols::parts::{Driven, GoesBy, Sound};
use sigmalock_protocols::sigma::Sigma;
use sigmalock_protocols::strawman::Strawman;
use tokio::time::timeout;

use super::*;
use crate::identity::tests::Folder;

/// The name that both services are about.
const NAME: &str = "/both";
const TTL: Span = Span::from_secs(3);

/// Who is inside of the second service's lock, and how often anybody was.
#[derive(Debug, Default)]
struct Inside {
    now: BTreeSet<PeerId>,
    entries: u64,
    together: u64,
}

/// A service that takes and leaves a lock of its own for as long as it lives, over the strawman.
struct Restless {
    me: PeerId,
    locks: Strawman,
    calls: u64,
    inside: Arc<Mutex<Inside>>,
    from_locks: Vec<Effect<Strawman>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Locks(<Strawman as Protocol>::Timer),
    Leave(CallId),
}

impl Restless {
    fn new(me: PeerId, plan: &Plan, inside: Arc<Mutex<Inside>>) -> Self {
        Self { me, locks: Strawman::plan(me, plan), calls: 0, inside, from_locks: Vec::new() }
    }

    fn pass(&mut self, cx: &mut Context<'_, Self>, input: Input<Strawman>) {
        self.locks.handle(&mut cx.inner(&mut self.from_locks), input);
        for effect in std::mem::take(&mut self.from_locks) {
            match effect {
                Effect::Persist { key, value } => cx.persist(key, value),
                Effect::Send { to, message } => cx.send(to, message),
                Effect::SetTimer { timer, at } => cx.set_timer(Timer::Locks(timer), at),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Locks(timer)),
                Effect::Note(note) => cx.note(note),
                Effect::Reply { id, reply } => self.on_reply(cx, id, reply),
            }
        }
    }

    fn on_reply(&mut self, cx: &mut Context<'_, Self>, id: CallId, reply: LockReply) {
        let mut inside = self.inside.lock().unwrap();
        match reply {
            LockReply::Granted { .. } => {
                inside.together += inside.now.len() as u64;
                inside.now.insert(self.me);
                inside.entries += 1;
                cx.set_timer(Timer::Leave(id), cx.now() + Span::from_millis(5));
            }
            LockReply::Lost => {
                inside.now.remove(&self.me);
            }
            LockReply::Released | LockReply::Refused(_) => {
                drop(inside);
                self.enter(cx);
            }
            _ => {}
        }
    }

    fn enter(&mut self, cx: &mut Context<'_, Self>) {
        self.calls += 1;
        let (id, name) = (CallId(self.calls), Name::new(NAME).unwrap());
        let request = LockRequest::Acquire(Acquire::exclusive(name, TTL, Patience::Forever));
        self.pass(cx, Input::Request { id, request });
    }
}

impl Protocol for Restless {
    type Message = <Strawman as Protocol>::Message;
    type Request = Never;
    type Reply = Never;
    type Timer = Timer;
    type DurableKey = <Strawman as Protocol>::DurableKey;
    type Durable = <Strawman as Protocol>::Durable;
    type Note = <Strawman as Protocol>::Note;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        match input {
            Input::Start { incarnation, birth } => {
                let birth = match birth {
                    Birth::First => Birth::First,
                    Birth::Recovered(records) => Birth::Recovered(records),
                    Birth::Amnesiac => Birth::Amnesiac,
                };
                self.pass(cx, Input::Start { incarnation, birth });
                self.enter(cx);
            }
            Input::Receive { from, message } => self.pass(cx, Input::Receive { from, message }),
            Input::Fire(Timer::Locks(timer)) => self.pass(cx, Input::Fire(timer)),
            Input::Fire(Timer::Leave(held)) => {
                self.inside.lock().unwrap().now.remove(&self.me);
                self.calls += 1;
                let (id, request) = (CallId(self.calls), LockRequest::Release { held });
                self.pass(cx, Input::Request { id, request });
            }
            Input::Request { request, .. } => match request {},
            Input::PeerUp(peer) => self.pass(cx, Input::PeerUp(peer)),
            Input::PeerDown(peer) => self.pass(cx, Input::PeerDown(peer)),
            Input::Leave => {}
            Input::ViewChanged(view) => self.pass(cx, Input::ViewChanged(view)),
        }
    }
}

impl Driven for Restless {}
impl GoesBy<Sound> for Restless {}

impl OverViews for Restless {
    fn is_promise(message: &Self::Message) -> bool {
        Strawman::is_promise(message)
    }
    fn stand(&mut self, terms: Terms) {
        self.locks.stand(terms);
    }
}

/// A peer with both. The second is over the same membership, and has the same name for its lock.
async fn start(config: Config, inside: &Arc<Mutex<Inside>>) -> Node {
    let prepared = Node::prepare(config).await.unwrap();
    let both = |me: &PeerInfo, config: &Config| {
        let plan = plan(config, Quorum::ONE, Box::new(ByView::default()));
        let locks = Agent::new(Sigma::plan(me.peer, &plan), agent::Config::new(1));
        let restless = Restless::new(me.peer, &plan, Arc::clone(inside));
        let agreed = agreed::Config::new(config.lease_max, config.beginning);
        Agreed::new(me.peer, agreed, Beside::new(locks, restless))
    };
    prepared.start_around(|parts| parts.drive(both)).await.unwrap()
}

#[tokio::test]
async fn two_services_share_a_membership_and_nothing_else() {
    let (folder, inside) = (Folder::new(), Arc::default());
    let config = |number: usize, join: Vec<libp2p::Multiaddr>, beginning| Config {
        listen: vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()],
        lease_max: TTL,
        data: Some(folder.0.join(number.to_string())),
        join,
        beginning,
        ..Config::new(crate::transport::tests::key(), Membership::Agreed)
    };
    let addresses = async |node: &Node| {
        let status = node.handle().status().await.unwrap();
        status.listening.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>()
    };
    let mut nodes = vec![start(config(0, vec![], Beginning::Found), &inside).await];
    for number in 1..3 {
        let join = addresses(&nodes[0]).await;
        nodes.push(start(config(number, join, Beginning::Join), &inside).await);
    }
    let entries = || inside.lock().unwrap().entries;
    let until = async |what: &str, done: &dyn Fn() -> bool| {
        let wait = async {
            while !done() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(60), wait).await.unwrap_or_else(|_| panic!("{what}"));
    };
    let votes = async || {
        for node in &nodes {
            let status = node.handle().status().await.unwrap();
            if !status.votes || status.view.is_none_or(|view| view.members.len() != 3) {
                return false;
            }
        }
        true
    };
    while !votes().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A user holds the lock of that name, and the other service goes on with its own.
    let mut session = nodes[1].handle().open_session("user".into()).unwrap();
    let name = Name::new(NAME).unwrap();
    session.acquire(1, Acquire::exclusive(name.clone(), TTL, Patience::Forever)).unwrap();
    let granted = async |session: &mut crate::Session| loop {
        let reply = timeout(Duration::from_secs(30), session.next()).await.expect("in time");
        if let Some((_, LockReply::Granted { token, .. })) = reply {
            return token;
        }
    };
    assert!(granted(&mut session).await.is_some());
    let before = entries();
    until("the second service stands still", &|| entries() > before + 5).await;
    let report = nodes[0].handle().inspect(name.clone()).await;
    assert_eq!(report.holders.len(), 1, "only users' locks are shown: {report:?}");
    session.release(1).unwrap();

    // A new life of one that was killed gets the records of both, and each understands its own.
    let third = nodes.pop().unwrap();
    let who = third.handle().status().await.unwrap().peer;
    drop(third);
    inside.lock().unwrap().now.remove(&who);
    let join = addresses(&nodes[0]).await;
    // Its disk is closed a moment later.
    tokio::time::sleep(Duration::from_millis(500)).await;
    nodes.push(start(config(2, join, Beginning::Join), &inside).await);
    assert!(nodes[2].resumes());
    let mut session = nodes[2].handle().open_session("user".into()).unwrap();
    session.acquire(1, Acquire::exclusive(name, TTL, Patience::Forever)).unwrap();
    assert!(granted(&mut session).await.is_some());
    let before = entries();
    until("the second service stands still", &|| entries() > before + 5).await;
    assert_eq!(inside.lock().unwrap().together, 0, "two were inside together");
    for node in nodes {
        let status = node.handle().status().await.unwrap();
        assert_eq!(status.counters.nonsense, 0);
        node.leave().await.unwrap();
    }
}

#[test]
fn a_message_says_whose_it_is_and_that_of_a_service_that_is_not_there_is_none() {
    use sigmalock_protocols::agreed::Message;
    use sigmalock_protocols::parts::beside::Either;
    // Of the members, or of what they do together, in which view, and in which place.
    let said: Message<Either<u8, u8>> = Message::Inside { view: 9, message: Either::Second(7) };
    let bytes = postcard::to_stdvec(&said).unwrap();
    assert_eq!(bytes, [1, 9, 1, 7]);
    type Here = Message<Either<u8, Never>>;
    assert!(postcard::from_bytes::<Here>(&bytes).is_err());
    assert_eq!(
        postcard::from_bytes::<Here>(&[1, 9, 0, 7]).unwrap(),
        Message::Inside { view: 9, message: Either::First(7) }
    );
    // One more beside it changes nothing for those who were there.
    type Later = Message<Either<u8, Either<u8, Never>>>;
    let first: Later = Message::Inside { view: 9, message: Either::First(7) };
    assert_eq!(postcard::to_stdvec(&first).unwrap(), [1, 9, 0, 7]);
    let asked: Result<Never, Ask> = Ask::Lock(LockRequest::Cancel { call: CallId(1) }).try_into();
    assert!(asked.is_err());
    assert_eq!(Told::from(LockReply::Busy), Told::Lock(LockReply::Busy));
}
