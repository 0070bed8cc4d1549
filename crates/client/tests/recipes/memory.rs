//! The rule itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sigmalock::fence::{Fence, FenceError, MARKS_MAX};

#[test]
fn lower_tokens_and_equal_tokens_of_others_are_refused_per_name() {
    let fence = Fence::in_memory();
    fence.check("/a", 7, "alice").unwrap();
    fence.check("/a", 7, "alice").unwrap();
    assert!(matches!(fence.check("/a", 7, "bob"), Err(FenceError::Foreign { token: 7 })));
    fence.check("/a", 9, "bob").unwrap();
    assert!(matches!(fence.check("/a", 7, "alice"), Err(FenceError::Stale { shown: 7, seen: 9 })));
    fence.check("/b", 1, "alice").unwrap();
}

#[test]
fn who_has_no_token_is_refused_whether_it_writes_or_reads() {
    let fence = Fence::in_memory();
    for _ in 0..2 {
        assert!(matches!(fence.check("/a", 0, "alice"), Err(FenceError::NoToken)));
        assert!(matches!(fence.check_shared("/a", 0), Err(FenceError::NoToken)));
        fence.check("/a", 7, "alice").unwrap();
    }
}

#[test]
fn a_refused_action_is_not_run() {
    let fence = Fence::in_memory();
    fence.check("/a", 2, "bob").unwrap();
    let mut ran = false;
    assert!(fence.admit("/a", 1, "alice", || ran = true).is_err());
    assert!(!ran);
}

#[test]
fn actions_of_one_fence_never_overlap_and_never_go_back() {
    let fence = Arc::new(Fence::in_memory());
    let last = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let (fence, last) = (Arc::clone(&fence), Arc::clone(&last));
            std::thread::spawn(move || {
                for token in (thread..2_000).step_by(4) {
                    let _ = fence.admit("/a", token, &thread.to_string(), || {
                        let before = last.load(Ordering::Relaxed);
                        std::hint::spin_loop();
                        last.store(token, Ordering::Relaxed);
                        assert!(before <= token, "{before} then {token}");
                    });
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(last.load(Ordering::Relaxed), 1_999);
}

#[test]
fn a_full_fence_says_so_and_forgets_nobody() {
    let fence = Fence::in_memory();
    for number in 0..MARKS_MAX {
        fence.check(&number.to_string(), 5, "alice").unwrap();
    }
    assert!(matches!(fence.check("one more", 5, "alice"), Err(FenceError::Full)));
    assert!(matches!(fence.check("0", 4, "bob"), Err(FenceError::Stale { .. })));
    fence.check("0", 6, "bob").unwrap();
}
