//! One peer that hosts all replicas itself.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{alone, answer, granted, name, next, resident_bytes, run, silent, start, wish};
use sigmalock_core::{Acquire, LocalTime, LockReply, Patience, Refusal, Span};
use sigmalock_node::handle::{CALLS_PER_SESSION_MAX, COMMANDS_MAX};
use sigmalock_node::report::EvictOutcome;
use sigmalock_node::{Allowance, Purse, Session, clock};

#[test]
fn a_lock_is_acquired_and_released_and_its_token_grows() {
    run(async {
        let node = start(alone()).await;
        let mut session = node.handle().open_session("test".into()).unwrap();
        session.acquire(1, wish("/a", Patience::Try)).unwrap();
        let first = granted(&mut session, 1).await;
        session.release(1).unwrap();
        assert_eq!(next(&mut session).await, (1, LockReply::Released));
        session.acquire(1, wish("/a", Patience::Try)).unwrap();
        let second = granted(&mut session, 1).await;
        assert!(second > first);
    });
}

#[test]
fn two_sessions_exclude_each_other_and_the_waiter_gets_in_on_release() {
    run(async {
        let node = start(alone()).await;
        let mut a = node.handle().open_session("a".into()).unwrap();
        let mut b = node.handle().open_session("b".into()).unwrap();
        a.acquire(1, wish("/a", Patience::Forever)).unwrap();
        let first = granted(&mut a, 1).await;
        b.acquire(7, wish("/a", Patience::Try)).unwrap();
        assert_eq!(answer(&mut b).await, (7, LockReply::Busy));
        b.acquire(8, wish("/a", Patience::Forever)).unwrap();
        silent(&mut b).await;
        a.release(1).unwrap();
        assert!(granted(&mut b, 8).await > first);
        assert_eq!(answer(&mut a).await, (1, LockReply::Released));
    });
}

#[test]
fn a_session_that_ends_releases_what_it_holds_and_waits_for_nothing() {
    run(async {
        let node = start(alone()).await;
        let mut a = node.handle().open_session("a".into()).unwrap();
        let b = node.handle().open_session("b".into()).unwrap();
        let mut c = node.handle().open_session("c".into()).unwrap();
        a.acquire(1, wish("/a", Patience::Forever)).unwrap();
        granted(&mut a, 1).await;
        b.acquire(1, wish("/a", Patience::Forever)).unwrap();
        c.acquire(1, wish("/a", Patience::Forever)).unwrap();
        silent(&mut c).await;
        drop(b);
        let begin = Instant::now();
        a.end();
        granted(&mut c, 1).await;
        assert!(begin.elapsed() < Duration::from_millis(200));
        let status = node.handle().status().await.unwrap();
        assert_eq!((status.sessions, status.held, status.waiting), (1, 1, 0));
    });
}

/// Grants this for a ttl of so many seconds, and returns the deadline.
async fn granted_for(session: &mut Session, name: &str, ttl_s: u64) -> LocalTime {
    let short = Acquire { ttl: Span::from_secs(ttl_s), ..wish(name, Patience::Try) };
    session.acquire(1, short).unwrap();
    match answer(session).await {
        (1, LockReply::Granted { deadline, .. }) => deadline,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_that_is_dropped_gives_nothing_back_before_its_lease_ends() {
    run(async {
        let node = start(alone()).await;
        let mut a = node.handle().open_session("a".into()).unwrap();
        let deadline = granted_for(&mut a, "/a", 2).await;
        drop(a);
        let mut b = node.handle().open_session("b".into()).unwrap();
        b.acquire(1, wish("/a", Patience::Forever)).unwrap();
        granted(&mut b, 1).await;
        assert!(clock::now() >= deadline, "two are inside");
    });
}

#[test]
fn who_does_not_read_bears_it_and_not_another_of_the_same_user() {
    run(async {
        let node = start(alone()).await;
        let purse = Arc::new(Purse::new(Allowance { unread: 8, ..Allowance::ALL }));
        let open = || node.handle().open_session_within("a".into(), Arc::clone(&purse)).unwrap();
        let (mut deaf, mut reads) = (open(), open());
        granted_for(&mut deaf, "/deaf", 2).await;
        for _ in 0..7 {
            deaf.release(7).unwrap();
        }
        for call in 1..100 {
            reads.acquire(call, wish("/a", Patience::Try)).unwrap();
            granted(&mut reads, call).await;
            reads.release(call).unwrap();
            assert_eq!(answer(&mut reads).await, (call, LockReply::Released));
            // More than there is room for beside what the other one has left.
            reads.release(200).unwrap();
            reads.release(200).unwrap();
            assert!(!reads.was_not_read(), "{call}");
            for _ in 0..2 {
                assert_eq!(next(&mut reads).await.0, 200);
            }
        }
        assert!(deaf.was_not_read());
        assert_eq!(deaf.next().await, None, "what it left is gone");
        while node.handle().status().await.unwrap().sessions > 1 {}
    });
}

#[test]
fn who_is_dismissed_may_give_back_and_nobody_else_is_followed_before_its_lease_ends() {
    run(async {
        let node = start(alone()).await;
        let open = || node.handle().open_session("a".into()).unwrap();
        let (mut heeds, mut sleeps, mut idle) = (open(), open(), open());
        heeds.acquire(1, wish("/a", Patience::Try)).unwrap();
        granted(&mut heeds, 1).await;
        let deadline = granted_for(&mut sleeps, "/b", 4).await;
        idle.acquire(1, wish("/a", Patience::Forever)).unwrap();
        silent(&mut idle).await;
        let begun = Instant::now();
        let handle = node.handle();
        let dismissed = tokio::spawn(async move { handle.dismiss().await });
        assert_eq!(answer(&mut heeds).await, (1, LockReply::Lost));
        assert_eq!(answer(&mut sleeps).await, (1, LockReply::Lost));
        // It waits for a lock that it will not get, and holds none.
        assert_eq!(idle.next().await, None);
        heeds.acquire(2, wish("/c", Patience::Try)).unwrap();
        heeds.release(1).unwrap();
        assert_eq!(heeds.next().await, Some((1, LockReply::Released)));
        assert_eq!(heeds.next().await, None);
        assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
        let mut next = open();
        next.acquire(1, wish("/a", Patience::Try)).unwrap();
        granted(&mut next, 1).await;
        next.acquire(2, wish("/b", Patience::Forever)).unwrap();
        granted(&mut next, 2).await;
        assert!(clock::now() >= deadline, "two are inside");
        // That was waited for for a while, but not as long as it was inside.
        assert_eq!(sleeps.next().await, None);
        dismissed.await.unwrap();
    });
}

#[test]
fn who_does_not_read_its_replies_may_be_inside_until_its_lease_ends() {
    run(async {
        let node = start(alone()).await;
        let purse = Arc::new(Purse::new(Allowance { unread: 8, ..Allowance::ALL }));
        let mut a = node.handle().open_session_within("a".into(), purse).unwrap();
        let deadline = granted_for(&mut a, "/a", 2).await;
        for _ in 0..9 {
            a.release(7).unwrap();
        }
        while node.handle().status().await.unwrap().sessions > 0 {}
        assert!(a.was_not_read(), "it is ended, and nobody told it so yet");
        let mut b = node.handle().open_session("b".into()).unwrap();
        assert!(!b.was_not_read());
        b.acquire(1, wish("/a", Patience::Try)).unwrap();
        assert_eq!(answer(&mut b).await, (1, LockReply::Busy));
        b.acquire(2, wish("/a", Patience::Forever)).unwrap();
        granted(&mut b, 2).await;
        assert!(clock::now() >= deadline, "two are inside");
    });
}

#[test]
fn who_cancels_or_runs_out_of_patience_is_told_and_leaves_the_queue() {
    run(async {
        let node = start(alone()).await;
        let mut a = node.handle().open_session("a".into()).unwrap();
        let mut b = node.handle().open_session("b".into()).unwrap();
        a.acquire(1, wish("/a", Patience::Forever)).unwrap();
        granted(&mut a, 1).await;
        b.acquire(1, wish("/a", Patience::Forever)).unwrap();
        b.cancel(1).unwrap();
        assert_eq!(answer(&mut b).await, (1, LockReply::Cancelled));
        b.acquire(2, wish("/a", Patience::For(Span::from_millis(50)))).unwrap();
        assert_eq!(answer(&mut b).await, (2, LockReply::TimedOut));
        assert_eq!(node.handle().status().await.unwrap().waiting, 0);
    });
}

#[test]
fn what_makes_no_sense_is_refused_under_its_own_number() {
    run(async {
        let node = start(alone()).await;
        let mut a = node.handle().open_session("a".into()).unwrap();
        let unknown = LockReply::Refused(Refusal::UnknownCall);
        a.release(5).unwrap();
        assert_eq!(next(&mut a).await, (5, unknown));
        a.cancel(6).unwrap();
        assert_eq!(next(&mut a).await, (6, unknown));
        a.acquire(1, wish("/a", Patience::Forever)).unwrap();
        granted(&mut a, 1).await;
        a.cancel(1).unwrap();
        assert_eq!(next(&mut a).await, (1, unknown));
        a.acquire(1, wish("/b", Patience::Forever)).unwrap();
        assert_eq!(next(&mut a).await, (1, LockReply::Refused(Refusal::DuplicateCall)));
        a.release(1).unwrap();
        assert_eq!(next(&mut a).await, (1, LockReply::Released));
        a.release(1).unwrap();
        assert_eq!(next(&mut a).await, (1, unknown));
    });
}

#[test]
fn an_evicted_holder_is_told_and_the_next_gets_in() {
    run(async {
        let node = start(alone()).await;
        let handle = node.handle();
        assert_eq!(handle.evict(name("/a")).await, Ok(EvictOutcome::NotHeld));
        let mut a = handle.open_session("who holds".into()).unwrap();
        let mut b = handle.open_session("who waits".into()).unwrap();
        a.acquire(1, wish("/a", Patience::Forever)).unwrap();
        granted(&mut a, 1).await;
        b.acquire(1, wish("/a", Patience::Forever)).unwrap();
        silent(&mut b).await;
        let me = handle.peers().await[0].peer;
        let outcome = handle.evict(name("/a")).await;
        let label = Some("who holds".to_owned());
        assert_eq!(outcome, Ok(EvictOutcome::Evicted { peer: me, label, others: 0 }));
        assert_eq!(answer(&mut a).await, (1, LockReply::Lost));
        // It may still be on its way out.
        silent(&mut b).await;
        a.release(1).unwrap();
        assert_eq!(answer(&mut a).await, (1, LockReply::Released));
        granted(&mut b, 1).await;
    });
}

#[test]
fn a_report_says_who_holds_and_who_waits() {
    run(async {
        let node = start(alone()).await;
        let handle = node.handle();
        let mut a = handle.open_session("who holds".into()).unwrap();
        let mut b = handle.open_session("who waits".into()).unwrap();
        let mut watch = handle.watch(name("/a"));
        assert!(watch.next().await.holders.is_empty());
        a.acquire(1, wish("/a", Patience::Forever)).unwrap();
        let token = granted(&mut a, 1).await;
        b.acquire(1, wish("/a", Patience::Forever)).unwrap();
        silent(&mut b).await;
        let report = handle.inspect(name("/a")).await;
        let holder = &report.holders[0];
        assert_eq!((holder.label.as_deref(), holder.token), (Some("who holds"), Some(token)));
        assert_eq!((report.replicas.len(), report.asked, report.answered), (9, 1, 1));
        let seen = watch.next().await;
        assert_eq!(seen.holders[0].token, Some(token));
        let list = handle.list("/".into(), 10).await;
        assert_eq!(list.len(), 1);
        assert!(list[0].held && list[0].token == token && list[0].waiting >= 1);
        assert!(handle.list("/b".into(), 10).await.is_empty());
        let status = handle.status().await.unwrap();
        assert!(status.can_grant, "{:?}", status.why_not);
        assert_eq!((status.held, status.waiting), (1, 1));
    });
}

#[test]
fn a_session_has_a_bounded_number_of_calls() {
    run(async {
        let node = start(alone()).await;
        let mut a = node.handle().open_session("a".into()).unwrap();
        for call in 0..=CALLS_PER_SESSION_MAX as u64 {
            a.acquire(call, wish("/a", Patience::Forever)).unwrap();
        }
        let refusal = Refusal::TooManyRequests { limit: CALLS_PER_SESSION_MAX };
        let last = CALLS_PER_SESSION_MAX as u64;
        loop {
            match next(&mut a).await {
                (call, LockReply::Refused(found)) => {
                    assert_eq!((call, found), (last, refusal));
                    break;
                }
                (call, _) => assert!(call < last),
            }
        }
    });
}

#[test]
fn more_commands_than_the_driver_can_hear_of_are_refused_at_once() {
    run(async {
        let node = start(alone()).await;
        let mut a = node.handle().open_session("a".into()).unwrap();
        // The driver gets no chance to run in between.
        for call in 0..=COMMANDS_MAX as u64 {
            a.release(call).unwrap();
        }
        let refusal = Refusal::TooManyRequests { limit: COMMANDS_MAX };
        let (_, reply) = a.try_next().unwrap();
        assert_eq!(reply, LockReply::Refused(refusal));
        drop(a);
        let mut b = node.handle().open_session("b".into()).unwrap();
        while node.handle().status().await.unwrap().sessions != 1 {}
        b.acquire(1, wish("/a", Patience::Forever)).unwrap();
        granted(&mut b, 1).await;
    });
}

#[test]
fn ten_thousand_waiters_on_one_name_all_get_in_one_after_the_other() {
    run(async {
        const WAITERS: u64 = 10_000;
        let node = start(alone()).await;
        let mut session = node.handle().open_session("crowd".into()).unwrap();
        for call in 0..WAITERS {
            session.acquire(call, wish("/a", Patience::Forever)).unwrap();
        }
        let (mut inside, mut entered, mut last) = (None, 0, None);
        while entered < WAITERS {
            match answer(&mut session).await {
                (call, LockReply::Granted { token, .. }) => {
                    assert_eq!(inside, None, "two at once");
                    assert!(token > last);
                    (inside, last) = (Some(call), token);
                    entered += 1;
                    session.release(call).unwrap();
                }
                (call, LockReply::Released) => assert_eq!(inside.take(), Some(call)),
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn a_hundred_thousand_names_are_held_by_one_peer() {
    run(async {
        const NAMES: u64 = 100_000;
        let before = resident_bytes();
        let node = start(alone()).await;
        let mut session = node.handle().open_session("many".into()).unwrap();
        let mut held = 0;
        for call in 0..NAMES {
            session.acquire(call, wish(&format!("/many/{call}"), Patience::Forever)).unwrap();
            if call % 1_000 == 999 {
                while held <= call {
                    if let (_, LockReply::Granted { .. }) = answer(&mut session).await {
                        held += 1;
                    }
                }
            }
        }
        let status = node.handle().status().await.unwrap();
        assert_eq!(status.held as u64, NAMES);
        println!("{} MiB for {NAMES} names", (resident_bytes() - before) >> 20);
        // They are renewed, and none is lost.
        let until = Instant::now() + Duration::from_secs(12);
        let mut lost = 0;
        while let Ok(Some((_, reply))) =
            tokio::time::timeout(until.saturating_duration_since(Instant::now()), session.next())
                .await
        {
            lost += u64::from(reply == LockReply::Lost);
        }
        assert_eq!(lost, 0);
    });
}
