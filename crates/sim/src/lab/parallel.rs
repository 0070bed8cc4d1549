//! Work on several threads, results in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Does `work` on every item on `jobs` threads and gives each result to `take`, in the order of the
/// items and as soon as it is its turn. The first error of `take` ends it; no further work is begun.
pub fn in_parallel<T: Sync, R: Send, E>(
    items: &[T], jobs: usize, work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (results, arriving) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            let (next, work, results) = (&next, &work, results.clone());
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    if results.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let mut early = BTreeMap::new();
        let mut turn = 0;
        for (index, result) in arriving {
            early.insert(index, result);
            while let Some(result) = early.remove(&turn) {
                turn += 1;
                take(result)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_number_of_jobs() {
        let items: Vec<u64> = (0..100).collect();
        for jobs in [1, 3, 200] {
            let mut seen = Vec::new();
            let done: Result<(), ()> = in_parallel(
                &items,
                jobs,
                |i| i * i,
                |square| {
                    seen.push(square);
                    Ok(())
                },
            );
            assert_eq!(done, Ok(()));
            assert_eq!(seen, items.iter().map(|i| i * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_it() {
        let items = [0u32; 1_000];
        let mut taken = 0;
        let done = in_parallel(
            &items,
            2,
            |_| (),
            |()| {
                taken += 1;
                if taken == 3 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!((done, taken), (Err("enough"), 3));
    }
}
