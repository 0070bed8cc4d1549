//! Damage of every kind, to one file or several, drawn from a seed: whoever opens the directory then gets
//! all that was acknowledged, or is told that it is lost. There is nothing in between.
//!
//! What no check of the files can notice is not drawn: all files of one older moment (a backup put back; the
//! other members may notice that), and the journal with its header of an older moment since the database was
//! last written, which every start does (so it is a copy taken from a running peer).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::disk::Disk;
use super::*;

const CASES: u64 = 2_400;
const LEN: usize = 32 << 10;
/// What disks lose at once.
const BLOCKS: [usize; 2] = [512, 4_096];

/// SplitMix64.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
    pub(super) fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

type State = (BTreeMap<Vec<u8>, Vec<u8>>, u64);

/// The files of a directory, and what they are to say.
#[derive(Clone)]
struct Moment {
    files: [Vec<u8>; 3],
    /// One state; two, if a write was under way.
    states: Vec<State>,
    /// Up to here the journal has what was acknowledged.
    used: usize,
}

/// Places in [`FILES`].
const VOTES: usize = 0;
const ENTRIES: usize = 1;
const COUNT: usize = 2;

fn open_disk(dir: &Path, lived: bool) -> (Disk, Memory) {
    Disk::open(Directory::take(dir).unwrap(), &charter(6), lived, LEN)
        .expect("damage is no reason to refuse a directory")
}

fn read(dir: &Path) -> [Vec<u8>; 3] {
    FILES.map(|file| std::fs::read(dir.join(file)).unwrap())
}

impl Moment {
    fn of(dir: &Path, state: &State) -> Self {
        Self { files: read(dir), states: vec![state.clone()], used: used(dir, LEN) }
    }

    fn header(&self) -> Header {
        Header::from_bytes(&self.files[COUNT]).unwrap()
    }

    fn generation(&self) -> u64 {
        self.header().generation
    }
}

/// A peer that lives four times, and what its directory was after each write. The second life ends as lives
/// end that are killed, and in the third it writes nothing.
fn history(draw: &mut Draw) -> Vec<Moment> {
    let folder = in_memory();
    let (mut moments, mut state) = (Vec::new(), State::default());
    for (life, writes) in [24, 24, 0, 24].into_iter().enumerate() {
        let (mut disk, _) = open_disk(&folder.0, life > 0);
        for _ in 0..writes {
            let mut batch = Batch::default();
            for _ in 0..1 + draw.below(6) {
                let key = draw.below(40) as u32;
                let value = (draw.below(4) > 0).then(|| vec![key as u8; draw.below(600)]);
                batch.push(&key, value.as_ref()).unwrap();
            }
            disk.write(&batch).unwrap();
            state.1 += batch.len() as u64;
            for (key, value) in batch.records() {
                match value {
                    Some(value) => state.0.insert(key.to_vec(), value.to_vec()),
                    None => state.0.remove(key),
                };
            }
            moments.push(Moment::of(&folder.0, &state));
        }
        if life == 1 {
            let killed = read(&folder.0);
            drop(disk);
            for (name, bytes) in FILES.iter().zip(killed) {
                std::fs::write(folder.0.join(name), bytes).unwrap();
            }
        } else {
            disk.tidy().unwrap();
            drop(disk);
            moments.push(Moment::of(&folder.0, &state));
        }
    }
    moments
}

/// A moment between two: the entry is there up to a point, and not counted yet.
fn torn(before: &Moment, after: &Moment, draw: &mut Draw) -> Moment {
    let mut moment = before.clone();
    let written = before.used + draw.below(after.used - before.used + 1);
    let entry = before.used..written;
    moment.files[ENTRIES][entry.clone()].copy_from_slice(&after.files[ENTRIES][entry]);
    moment.states = vec![before.states[0].clone(), after.states[0].clone()];
    moment
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Damage {
    FlippedBits,
    Zeroed,
    Overwritten,
    Truncated,
    Extended,
    Swapped,
    SwappedBetweenFiles,
    Misdirected,
    StaleBlock,
    Missing,
    OlderFile,
    FileOfAnotherDirectory,
}

use Damage::*;

const DAMAGES: [Damage; 12] = [
    FlippedBits,
    Zeroed,
    Overwritten,
    Truncated,
    Extended,
    Swapped,
    SwappedBetweenFiles,
    Misdirected,
    StaleBlock,
    Missing,
    OlderFile,
    FileOfAnotherDirectory,
];

/// A place in a file, mostly where something is.
fn place(file: usize, moment: &Moment, draw: &mut Draw) -> usize {
    let bytes = &moment.files[file];
    match draw.below(4) {
        0 => draw.below(bytes.len()),
        _ if file == COUNT => draw.below(bytes.len()),
        _ if file == ENTRIES => draw.below(moment.used),
        _ => loop {
            let place = draw.below(bytes.len());
            let page = place / 4_096 * 4_096;
            if bytes[page..].iter().take(4_096).any(|byte| *byte != 0) {
                return place;
            }
        },
    }
}

fn block(file: usize, moment: &Moment, len: usize, draw: &mut Draw) -> std::ops::Range<usize> {
    let begin = place(file, moment, draw) / len * len;
    begin..(begin + len).min(moment.files[file].len())
}

/// Does it to a moment. `None` for what is not there any more.
fn damage(
    what: Damage, moment: &Moment, others: &[Moment], elsewhere: &Moment, draw: &mut Draw,
) -> [Option<Vec<u8>>; 3] {
    let file = *draw.of(&[VOTES, VOTES, ENTRIES, ENTRIES, COUNT]);
    let mut files = moment.files.clone();
    let mut missing = [false; 3];
    let at = place(file, moment, draw);
    let len = *draw.of(&BLOCKS);
    match what {
        FlippedBits => {
            files[file][at] ^= 1 << draw.below(8);
            for _ in 0..draw.below(3) {
                let at = place(file, moment, draw);
                files[file][at] ^= 1 << draw.below(8);
            }
        }
        Zeroed => {
            let end = (at + 1 + draw.below(3 * 4_096)).min(files[file].len());
            let range = if draw.below(2) == 0 { at..end } else { block(file, moment, len, draw) };
            files[file][range].fill(0);
        }
        Overwritten => {
            let range = block(file, moment, len, draw);
            files[file][range].fill_with(|| draw.next() as u8);
        }
        Truncated => {
            let cuts = [0, at, at / len * len, files[file].len() - 1];
            files[file].truncate(*draw.of(&cuts));
        }
        Extended => {
            let more = *draw.of(&[1, 512, 4_096, 1 << 20]);
            files[file].extend((0..more).map(|_| draw.next() as u8));
        }
        Swapped => {
            let (one, two) = (block(file, moment, len, draw), block(file, moment, len, draw));
            let bytes = files[file][one.clone()].to_vec();
            files[file].copy_within(two.clone(), one.start);
            files[file][two].copy_from_slice(&bytes);
        }
        SwappedBetweenFiles => {
            let [from, to] = [VOTES, ENTRIES].map(|file| block(file, moment, len, draw));
            let [votes, journal, _] = &mut files;
            votes[from].swap_with_slice(&mut journal[to]);
        }
        Misdirected => {
            let source = block(file, moment, len, draw);
            let target = block(file, moment, len, draw);
            let len = source.len().min(target.len());
            files[file].copy_within(source.start..source.start + len, target.start);
        }
        StaleBlock => {
            // The disk said that it wrote this, and did not.
            let older = draw.of(others);
            let range = block(file, moment, len, draw);
            let end = older.files[file].len();
            let range = range.start.min(end)..range.end.min(end);
            files[file][range.clone()].copy_from_slice(&older.files[file][range]);
        }
        Missing => {
            missing = [(); 3].map(|()| draw.below(3) == 0);
            missing[file] = true;
        }
        OlderFile => {
            let visible = |older: &&Moment| {
                let taken_in = older.header().end == moment.header().begin;
                older.generation() + 1 < moment.generation()
                    || (older.generation() < moment.generation() && !taken_in)
            };
            let older: Vec<&Moment> = others.iter().filter(visible).collect();
            let older = *draw.of(&older);
            files[file].clone_from(&older.files[file]);
            if file != VOTES && draw.below(2) == 0 {
                // The journal with its header.
                files[ENTRIES].clone_from(&older.files[ENTRIES]);
                files[COUNT].clone_from(&older.files[COUNT]);
            }
        }
        FileOfAnotherDirectory => files[file].clone_from(&elsewhere.files[file]),
    }
    let mut missing = missing.into_iter();
    files.map(|bytes| (missing.next() == Some(false)).then_some(bytes))
}

/// Why it does no harm that these files are not as they were. An objection if it should.
fn excuse(moment: &Moment, files: &[Option<Vec<u8>>; 3]) -> &'static str {
    let [Some(votes), Some(journal), Some(header)] = files else {
        panic!("a missing file is not missed")
    };
    let [was_votes, was_journal, was_header] = &moment.files;
    if moment.files.iter().eq([votes, journal, header]) {
        "not a byte is different"
    } else if header != was_header {
        let is = Header::from_bytes(header).expect("an unsound header is noticed");
        let was = moment.header();
        let lags = is.generation == was.generation && is.entries < was.entries;
        let taken_in = is.generation + 1 == was.generation && was.entries == 0;
        assert!(lags || taken_in, "{is:?}, {was:?}");
        "a header as a power cut leaves it, and nothing is missing"
    } else if journal == was_journal {
        assert_ne!(votes, was_votes);
        "where the database has no record, or what the library could repair"
    } else {
        assert_eq!(journal.len(), was_journal.len(), "another length is not noticed");
        let entries = [journal, was_journal].map(|journal| &journal[..moment.used]);
        let counted = moment.header().entries > 0;
        assert!(!counted || entries[0] == entries[1], "an entry is not as it was, unnoticed");
        "behind the last entry of the journal, or where it has none"
    }
}

/// Opens what is left. An error: it is said to be lost.
fn outcome(files: &[Option<Vec<u8>>; 3], states: &[State]) -> Result<(), String> {
    let folder = in_memory();
    for (name, bytes) in FILES.iter().zip(files) {
        if let Some(bytes) = bytes {
            std::fs::write(folder.0.join(name), bytes).unwrap();
        }
    }
    let state = |memory| match memory {
        Memory::Kept { records, writes } => Ok((records.into_iter().collect(), writes)),
        Memory::Lost(why) => Err(why),
        Memory::First => panic!("it has lived before"),
    };
    let (mut disk, memory) = open_disk(&folder.0, true);
    let found: State = match state(memory) {
        Ok(found) => found,
        Err(why) => {
            assert!(why.starts_with("votes."), "{why}");
            drop(disk);
            assert!(state(open_disk(&folder.0, true).1).is_err(), "it is still lost");
            return Err(why);
        }
    };
    assert!(states.contains(&found), "something else than what was acknowledged");
    // It goes on with that, and what was wrong does not come back later.
    let mut next = found.clone();
    let mut batch = Batch::default();
    for key in 100..140u32 {
        batch.push(&key, Some(&[1u8; 300].as_slice())).unwrap();
        next.1 += 1;
    }
    next.0.extend(batch.records().into_iter().map(|(k, v)| (k.to_vec(), v.unwrap().to_vec())));
    let written = catch_unwind(AssertUnwindSafe(move || {
        let written = disk.write(&batch).and_then(|()| disk.tidy());
        drop(disk);
        written
    }));
    match (written, state(open_disk(&folder.0, true).1)) {
        (Ok(Ok(())), Ok(found)) => assert_eq!(found, next, "something else than was acknowledged"),
        (_, Ok(later)) => assert!(later == found || later == next),
        (_, Err(why)) => panic!("noticed late: {why}"),
    }
    Ok(())
}

#[test]
fn no_damage_goes_unnoticed() {
    let mut draw = Draw(1);
    let moments = history(&mut draw);
    let elsewhere = history(&mut Draw(1)).pop().unwrap();
    // Of the last life, so that there are older ones of all kinds.
    let last = 24 + 1 + 24 + 1;
    let mut tally: BTreeMap<Damage, [usize; 2]> = BTreeMap::new();
    let mut excuses: BTreeMap<&str, usize> = BTreeMap::new();
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    for case in 0..CASES {
        let mut draw = Draw(case << 32);
        // One in four after an end in order.
        let within = moments.len() - last;
        let at = last + if draw.below(4) == 0 { within - 1 } else { draw.below(within) };
        let mut moment = moments[at].clone();
        if let Some(after) = moments.get(at + 1)
            && after.generation() == moment.generation()
            && draw.below(2) == 0
        {
            moment = torn(&moment, after, &mut draw);
        }
        let what = DAMAGES[case as usize % DAMAGES.len()];
        let files = damage(what, &moment, &moments[..at], &elsewhere, &mut draw);
        let result = catch_unwind(|| outcome(&files, &moment.states));
        let result = result.unwrap_or_else(|_| panic!("case {case}: {what:?}"));
        let noticed = usize::from(result.is_ok());
        tally.entry(what).or_default()[noticed] += 1;
        match result {
            Ok(()) => *excuses.entry(excuse(&moment, &files)).or_default() += 1,
            Err(why) => {
                let why = why.split(';').next().unwrap_or_default();
                let why: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
                *words.entry(why).or_default() += 1;
            }
        }
    }
    let sum = |which: usize| tally.values().map(|counts| counts[which]).sum::<usize>();
    println!("{CASES} damages: {} noticed, {} harmless", sum(0), sum(1));
    for (what, [noticed, harmless]) in &tally {
        println!("  {what:?}: {noticed} noticed, {harmless} harmless");
    }
    println!("harmless:");
    excuses.iter().for_each(|(excuse, count)| println!("  {count}: {excuse}"));
    println!("noticed:");
    words.iter().for_each(|(why, count)| println!("  {count}: {why}"));
    assert_eq!(tally[&Missing][1], 0);
    assert!(sum(0) > CASES as usize / 2, "most of it is noticed");
}
