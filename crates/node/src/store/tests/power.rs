//! The power is cut while a store is at work: of what was not synced any sector is on disk, or not. That is no
//! damage, and nothing that was acknowledged is missing.
//!
//! The database is as its last transaction left it: that it outlives a power cut is its library's business.

use std::cell::RefCell;

use super::super::disk::Disk;
use super::damage::Draw;
use super::kills::{after, round};
use super::*;

/// Short, so that it often begins anew.
const LEN: usize = 8 << 10;
const SECTOR: usize = 512;
const LIVES: u64 = 500;
const ROUNDS: u32 = 24;

/// What happens to a file.
enum Event {
    Write { at: usize, bytes: Vec<u8> },
    Sync,
}

/// A moment: what is about to happen to which file, or has just, what is in the database, and how many rounds were
/// acknowledged.
struct Moment {
    file: &'static str,
    event: Event,
    votes: Vec<u8>,
    acknowledged: u32,
}

#[derive(Default)]
struct Watch {
    dir: std::path::PathBuf,
    moments: Vec<Moment>,
    acknowledged: u32,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

fn note(file: &'static str, event: impl FnOnce() -> Event) {
    WATCH.with_borrow_mut(|watch| {
        let Some(watch) = watch else { return };
        let (votes, event) = (std::fs::read(watch.dir.join(DATABASE)).unwrap(), event());
        let acknowledged = watch.acknowledged;
        watch.moments.push(Moment { file, event, votes, acknowledged });
    });
}

pub(in super::super) fn note_write(file: &'static str, at: usize, bytes: &[u8]) {
    note(file, || Event::Write { at, bytes: bytes.to_vec() });
}

pub(in super::super) fn note_sync(file: &'static str) {
    note(file, || Event::Sync);
}

/// A file as it is on disk, and what was written to it since that may not be.
struct File {
    synced: Vec<u8>,
    pending: Vec<(usize, Vec<u8>)>,
}

impl File {
    fn of(dir: &Path, name: &str) -> Self {
        Self { synced: std::fs::read(dir.join(name)).unwrap(), pending: Vec::new() }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Write { at, bytes } => self.pending.push((at, bytes)),
            Event::Sync => {
                for (at, bytes) in self.pending.drain(..) {
                    self.synced[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
    }

    /// What is left if the power is cut now.
    fn left(&self, draw: &mut Draw) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        // Of some everything was written, of some nothing.
        let odds = *draw.of(&[0, 1, 5, 9, 10]);
        for (at, written) in &self.pending {
            let mut begin = *at;
            while begin < at + written.len() {
                let end = (begin / SECTOR * SECTOR + SECTOR).min(at + written.len());
                if draw.below(10) < odds {
                    bytes[begin..end].copy_from_slice(&written[begin - at..end - at]);
                }
                begin = end;
            }
        }
        bytes
    }
}

/// Opens what is there, and says how many rounds it has.
fn open(dir: &Path, lived: bool) -> (Disk, u32) {
    let (disk, memory) =
        Disk::open(Directory::take(dir).unwrap(), &charter(6), lived, LEN).unwrap();
    let (records, writes) = kept(memory).expect("a power cut is no damage");
    let rounds = writes as u32 / 3;
    assert_eq!(records, after(rounds));
    (disk, rounds)
}

/// A life with that directory, until the power is cut. Says how many rounds were acknowledged by then.
fn live(dir: &Path, draw: &mut Draw) -> u32 {
    let mut files = [JOURNAL, HEADER].map(|name| File::of(dir, name));
    WATCH.set(Some(Watch { dir: dir.to_owned(), ..Watch::default() }));
    let (mut disk, rounds) = open(dir, true);
    let acknowledge =
        |round| WATCH.with_borrow_mut(|watch| watch.as_mut().unwrap().acknowledged = round);
    acknowledge(rounds);
    for number in rounds + 1..=rounds + ROUNDS {
        let records = round(number);
        let records: Vec<_> = records.iter().map(|(k, v)| (*k, v.as_deref())).collect();
        disk.write(&batch(&records)).unwrap();
        acknowledge(number);
    }
    drop(disk);
    let mut moments = WATCH.take().unwrap().moments;
    // Often while it still opens what the last life left.
    let last = if draw.below(3) == 0 { moments.len().min(12) } else { moments.len() };
    moments.truncate(1 + draw.below(last));
    let Moment { votes, acknowledged, .. } = moments.last().unwrap();
    let (votes, acknowledged) = (votes.clone(), *acknowledged);
    for Moment { file, event, .. } in moments {
        files[usize::from(file == HEADER)].take(event);
    }
    std::fs::write(dir.join(DATABASE), votes).unwrap();
    for (file, name) in files.iter().zip([JOURNAL, HEADER]) {
        std::fs::write(dir.join(name), file.left(draw)).unwrap();
    }
    acknowledged
}

#[test]
fn a_power_cut_at_any_moment_is_not_taken_for_damage_and_nothing_heard_of_is_missing() {
    let mut draw = Draw(1);
    let folder = in_memory();
    drop(open(&folder.0, false));
    let mut heard = 0;
    for _ in 0..LIVES {
        heard = live(&folder.0, &mut draw).max(heard);
        let copy = in_memory();
        for file in FILES {
            std::fs::copy(folder.0.join(file), copy.0.join(file)).unwrap();
        }
        assert!(open(&copy.0, true).1 >= heard, "{heard} rounds were acknowledged");
    }
    println!("{heard} rounds, {LIVES} power cuts");
}
