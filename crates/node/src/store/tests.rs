mod damage;
mod kills;
pub(super) mod power;

use super::entry::Header;
use super::journal::Journal;
use super::*;
use crate::config::{Config, Membership, ProtocolName};
use crate::identity::tests::Folder;
use sigmalock_core::PeerId;
use sigmalock_protocols::parts::Quorum;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[test]
fn a_directory_of_a_swarm_without_a_key_is_refused() {
    let now = agreed();
    assert_eq!(now.objection(&now), None);
    let mut before = now.clone();
    before.keyed = false;
    assert!(before.objection(&now).is_some_and(|words| words.contains("without a key")));
}

#[test]
fn a_directory_of_a_swarm_with_another_lock_protocol_is_refused() {
    let now = agreed();
    let config = Config { protocol: ProtocolName::Strawman, ..config(Membership::Agreed) };
    let words = now.objection(&Charter::new(PeerId(1), &config)).unwrap();
    assert!(words.contains("whose lock protocol is sigma"), "{words}");
    assert!(words.contains("--protocol sigma"), "{words}");
}

fn config(membership: Membership) -> Config {
    Config::new(crate::transport::tests::key(), membership)
}

/// Of a peer with agreed membership.
pub(super) fn agreed() -> Charter {
    Charter::new(PeerId(1), &config(Membership::Agreed))
}

/// Of one with open membership, and so many votes of nine.
pub(super) fn charter(m: u16) -> Charter {
    let quorum = Quorum::new(9, m).unwrap();
    Charter::new(PeerId(1), &Config { quorum, ..config(Membership::Open) })
}

pub(super) fn batch(records: &[(u32, Option<&str>)]) -> Batch {
    let mut batch = Batch::default();
    for (key, value) in records {
        batch.push(key, value.as_ref()).unwrap();
    }
    batch
}

async fn write(store: &mut Store, batch: Batch) -> Result<(), WriteError> {
    store.write(batch);
    poll_fn(|cx| store.poll_written(cx)).await
}

fn open_as(dir: &Path, charter: &Charter, lived: bool) -> Result<(Store, Memory), OpenError> {
    Store::open(Directory::take(dir)?, charter, lived)
}

/// A directory of a peer that has lived.
fn open(dir: &Path) -> (Store, Memory) {
    open_as(dir, &charter(6), true).unwrap()
}

/// A new directory.
fn begin(dir: &Path) -> Store {
    let (store, memory) = open_as(dir, &charter(6), false).unwrap();
    assert!(matches!(memory, Memory::First), "it is new");
    store
}

/// What a store says; an error if its memory is lost.
fn kept(memory: Memory) -> Result<(Vec<(u32, String)>, u64), String> {
    match memory {
        Memory::Kept { records, writes } => Ok((decoded(&records), writes)),
        Memory::Lost(why) => Err(why),
        Memory::First => Ok((Vec::new(), 0)),
    }
}

fn decoded(records: &Records) -> Vec<(u32, String)> {
    let decode = |(key, value): &(Vec<u8>, Vec<u8>)| {
        (postcard::from_bytes(key).unwrap(), postcard::from_bytes(value).unwrap())
    };
    records.iter().map(decode).collect()
}

#[tokio::test]
async fn what_was_written_is_there_after_reopening_and_the_last_word_counts() {
    let folder = Folder::new();
    let mut store = begin(&folder.0);
    let first = batch(&[(1, Some("a")), (2, Some("b")), (1, Some("c")), (3, Some("d")), (3, None)]);
    write(&mut store, first).await.unwrap();
    write(&mut store, batch(&[(2, None), (4, Some("e"))])).await.unwrap();
    store.close().await;
    let (mut store, memory) = open(&folder.0);
    // Each record counts, also one that the next word on its key has made old.
    assert_eq!(kept(memory), Ok((vec![(1, "c".into()), (4, "e".into())], 7)));
    write(&mut store, batch(&[(4, Some("f"))])).await.unwrap();
    store.close().await;
    assert_eq!(kept(open(&folder.0).1), Ok((vec![(1, "c".into()), (4, "f".into())], 8)));
}

#[tokio::test]
async fn a_directory_of_another_swarm_or_in_use_is_refused_with_a_sentence() {
    let folder = Folder::new();
    let store = begin(&folder.0);
    let second = open_as(&folder.0, &charter(6), true);
    assert!(matches!(second, Err(OpenError::InUse(_))), "{second:?}");
    for file in FILES {
        std::fs::rename(folder.0.join(file), folder.0.join("away")).unwrap();
        let second = open_as(&folder.0, &charter(6), true);
        assert!(matches!(second, Err(OpenError::InUse(_))), "{second:?}");
        std::fs::rename(folder.0.join("away"), folder.0.join(file)).unwrap();
    }
    store.close().await;
    let other = open_as(&folder.0, &charter(7), true).unwrap_err().to_string();
    assert!(other.contains("a quorum of 6 of 9") && other.contains("with 7 of 9"), "{other}");
    let mut stranger = charter(6);
    stranger.peer = PeerId(2);
    let other = open_as(&folder.0, &stranger, true).unwrap_err().to_string();
    assert!(other.contains("another identity"), "{other}");
    // Also if something else is wrong with it.
    std::fs::rename(folder.0.join(JOURNAL), folder.0.join("away")).unwrap();
    assert!(matches!(open_as(&folder.0, &stranger, true), Err(OpenError::Foreign { .. })));
    std::fs::rename(folder.0.join("away"), folder.0.join(JOURNAL)).unwrap();
    assert!(kept(open(&folder.0).1).is_ok(), "nothing was changed");
}

/// A store on a disk that dies when told to.
pub(crate) fn mortal() -> (Store, Arc<AtomicBool>) {
    let dead = Arc::new(AtomicBool::new(false));
    let is_dead = Arc::clone(&dead);
    let store = Store::run(move |_| match is_dead.load(SeqCst) {
        true => Err(WriteError("the disk is dead".into())),
        false => Ok(()),
    });
    (store.unwrap(), dead)
}

/// Holds writes up for as long as a test wants.
pub(crate) struct Brake(std::sync::mpsc::Sender<()>, Arc<AtomicBool>);

impl Brake {
    pub(crate) fn pause(&self) {
        self.1.store(true, SeqCst);
    }
    pub(crate) fn go_on(&self) {
        self.1.store(false, SeqCst);
        let _ = self.0.send(());
    }
}

/// A store whose writes can be held up.
pub(crate) fn paused() -> (Store, Brake) {
    let (go_on, brake) = std::sync::mpsc::channel();
    let paused = Arc::new(AtomicBool::new(false));
    let is_paused = Arc::clone(&paused);
    let store = Store::run(move |_| {
        if is_paused.load(SeqCst) {
            let _ = brake.recv();
        }
        Ok(())
    });
    (store.unwrap(), Brake(go_on, paused))
}

#[tokio::test]
async fn a_dead_disk_is_told_and_nothing_after_it_is_acknowledged() {
    let (mut store, dead) = mortal();
    write(&mut store, batch(&[(1, Some("a"))])).await.unwrap();
    dead.store(true, SeqCst);
    assert!(write(&mut store, batch(&[(2, Some("b"))])).await.is_err());
    dead.store(false, SeqCst);
    assert!(write(&mut store, batch(&[(3, Some("c"))])).await.is_err());
}

/// In memory, where that can be had: what a sync costs is of no interest here.
fn in_memory() -> Folder {
    let shared = Path::new("/dev/shm");
    if !shared.is_dir() {
        return Folder::new();
    }
    let path = shared.join(format!("sigmalock-test-{:x}", getrandom::u64().unwrap()));
    std::fs::create_dir(&path).unwrap();
    Folder(path)
}

/// What a directory says, without changing it.
fn contents(dir: &Path) -> Result<Vec<(u32, String)>, String> {
    let copy = in_memory();
    for file in FILES {
        std::fs::copy(dir.join(file), copy.0.join(file)).unwrap();
    }
    kept(open(&copy.0).1).map(|(records, _)| records)
}

#[tokio::test]
async fn a_directory_of_another_version_is_refused() {
    let folder = Folder::new();
    begin(&folder.0).close().await;
    let refused = || open_as(&folder.0, &charter(6), true).unwrap_err().to_string();
    let path = folder.0.join(HEADER);
    let bytes = std::fs::read(&path).unwrap();
    let header = Header::from_bytes(&bytes).unwrap();
    let newer = Header { format: header.format + 1, ..header }.to_bytes();
    std::fs::write(&path, newer).unwrap();
    assert!(refused().contains("format 10, and this peer is to run with 9"), "{}", refused());
    // Whatever its database looks like.
    let database = std::fs::read(folder.0.join(DATABASE)).unwrap();
    std::fs::write(folder.0.join(DATABASE), "of the next version").unwrap();
    assert!(refused().contains("format 10"), "{}", refused());
    std::fs::write(folder.0.join(DATABASE), database).unwrap();
    std::fs::write(&path, bytes).unwrap();
    assert!(kept(open(&folder.0).1).is_ok(), "nothing was changed");
}

/// As versions up to 3 wrote it.
#[test]
fn a_directory_of_a_version_without_seals_is_refused() {
    let folder = Folder::new();
    let database = redb::Database::create(folder.0.join(DATABASE)).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let meta = redb::TableDefinition::<&str, &[u8]>::new("meta");
        let mut meta = transaction.open_table(meta).unwrap();
        meta.insert("charter", postcard::to_stdvec(&3u16).unwrap().as_slice()).unwrap();
        meta.insert("generation", [0; 8].as_slice()).unwrap();
        let durable = redb::TableDefinition::<&[u8], &[u8]>::new("durable");
        transaction.open_table(durable).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    std::fs::write(folder.0.join(JOURNAL), vec![0; 2 << 20]).unwrap();
    let refused = open_as(&folder.0, &charter(6), true).unwrap_err().to_string();
    assert!(refused.contains("format 3, and this peer is to run with 9"), "{refused}");
}

/// Up to where a journal has entries.
fn used(dir: &Path, len: usize) -> usize {
    let (_, batches) = Journal::open(dir, len).unwrap();
    batches.iter().map(entry::encoded_len).sum()
}

/// A journal with its header, and up to where it has entries.
#[derive(Clone)]
struct Written {
    journal: Vec<u8>,
    header: Vec<u8>,
    used: usize,
}

impl Written {
    fn read(dir: &Path) -> Self {
        let [journal, header] =
            [JOURNAL, HEADER].map(|file| std::fs::read(dir.join(file)).unwrap());
        Self { journal, header, used: used(dir, JOURNAL_LEN) }
    }

    /// What a directory says with them.
    fn says(&self, dir: &Path) -> Result<Vec<(u32, String)>, String> {
        std::fs::write(dir.join(JOURNAL), &self.journal).unwrap();
        std::fs::write(dir.join(HEADER), &self.header).unwrap();
        contents(dir)
    }
}

/// Four batches, and what the directory says after each; the store is still open.
async fn four_batches(dir: &Path) -> (Store, Vec<Vec<(u32, String)>>, Vec<Written>) {
    let mut store = begin(dir);
    let (mut states, mut journals) = (vec![contents(dir).unwrap()], vec![Written::read(dir)]);
    for round in 0..4u32 {
        let text = round.to_string();
        let mut records = vec![(round, Some(text.as_str())), (9, Some(text.as_str()))];
        records.extend(round.checked_sub(1).map(|before| (before, None)));
        write(&mut store, batch(&records)).await.unwrap();
        states.push(contents(dir).unwrap());
        journals.push(Written::read(dir));
    }
    assert_eq!(states[4], [(3, "3".into()), (9, "3".into())]);
    (store, states, journals)
}

#[tokio::test]
async fn a_crash_at_any_moment_leaves_whole_batches() {
    let folder = in_memory();
    let (_store, states, journals) = four_batches(&folder.0).await;
    for (round, moments) in journals.windows(2).enumerate() {
        let [before, after] = moments else { unreachable!() };
        // The entry under way is there up to a point; the header counts it only when it is there.
        for cut in before.used..=after.used {
            let mut torn = before.clone();
            torn.journal[before.used..].fill(0xff);
            torn.journal[before.used..cut].copy_from_slice(&after.journal[before.used..cut]);
            let whole = usize::from(cut == after.used);
            assert_eq!(torn.says(&folder.0), Ok(states[round + whole].clone()), "{round}, {cut}");
        }
        assert_eq!(after.says(&folder.0), Ok(states[round + 1].clone()));
    }
}

#[tokio::test]
async fn what_was_heard_of_and_is_not_there_is_missed() {
    let folder = in_memory();
    let (_store, states, journals) = four_batches(&folder.0).await;
    let whole = journals.last().unwrap();
    let missed = |damaged: &Written| {
        let why = damaged.says(&folder.0).unwrap_err();
        assert!(why.starts_with("votes.journal ") || why.starts_with("votes.header "), "{why}");
        assert!(why.contains("moved to votes.redb.damaged, votes.journal.damaged"), "{why}");
    };
    for place in 0..whole.used {
        let mut damaged = whole.clone();
        damaged.journal[place] ^= 1;
        missed(&damaged);
    }
    for place in 0..Header::LEN {
        let mut damaged = whole.clone();
        damaged.header[place] ^= 1;
        missed(&damaged);
    }
    for cut in [0, 1, whole.used - 1, whole.used, whole.journal.len() - 1] {
        missed(&Written { journal: whole.journal[..cut].to_vec(), ..whole.clone() });
    }
    for cut in 0..Header::LEN {
        missed(&Written { header: whole.header[..cut].to_vec(), ..whole.clone() });
    }
    assert_eq!(whole.says(&folder.0), Ok(states[4].clone()));
}

#[tokio::test]
async fn what_the_database_has_is_not_taken_from_the_journal_again() {
    let folder = Folder::new();
    let mut store = begin(&folder.0);
    write(&mut store, batch(&[(1, Some("new"))])).await.unwrap();
    let before = Written::read(&folder.0);
    store.close().await;
    // As if the process had died when the database had all of it, and the journal had not begun anew.
    assert_eq!(before.says(&folder.0), Ok(vec![(1, "new".into())]));
    // From the next life on it is one of another time.
    open(&folder.0).0.close().await;
    let why = before.says(&folder.0).unwrap_err();
    assert!(why.contains("votes.journal and votes.redb are not of the same time"), "{why}");
}

#[tokio::test]
async fn the_journal_of_a_former_life_is_not_taken_for_that_of_the_last() {
    let folder = Folder::new();
    let mut store = begin(&folder.0);
    write(&mut store, batch(&[(1, Some("former"))])).await.unwrap();
    store.close().await;
    let former = Written::read(&folder.0);
    let (mut store, _) = open(&folder.0);
    write(&mut store, batch(&[(1, Some("last"))])).await.unwrap();
    let last = Written::read(&folder.0);
    assert_eq!(last.says(&folder.0), Ok(vec![(1, "last".into())]), "as if it had been killed");
    let why = former.says(&folder.0).unwrap_err();
    assert!(why.contains("votes.journal and votes.redb are not of the same time"), "{why}");
}

#[tokio::test]
async fn a_full_journal_goes_to_the_database_and_nothing_is_lost() {
    let folder = Folder::new();
    let mut store = begin(&folder.0);
    let long = "x".repeat(100_000);
    for key in 0..50 {
        write(&mut store, batch(&[(key, Some(&long)), (1_000, Some(&key.to_string()))]))
            .await
            .unwrap();
    }
    let huge = "y".repeat(3 << 20);
    write(&mut store, batch(&[(2_000, Some(&huge))])).await.unwrap();
    let found = contents(&folder.0).unwrap();
    assert_eq!(found.len(), 52);
    assert_eq!(found.iter().filter(|(_, value)| *value == long).count(), 50);
    assert!(found.contains(&(1_000, "49".into())));
    assert!(found.contains(&(2_000, huge)));
    store.close().await;
    assert_eq!(kept(open(&folder.0).1).unwrap().1, 101);
}

#[tokio::test]
async fn a_peer_that_lived_and_misses_a_file_knows_that_it_lost_its_memory() {
    for missing in [&[DATABASE][..], &[JOURNAL], &[HEADER], &[DATABASE, JOURNAL], &FILES] {
        let folder = Folder::new();
        let mut store = begin(&folder.0);
        write(&mut store, batch(&[(1, Some("a"))])).await.unwrap();
        store.close().await;
        for file in missing {
            std::fs::remove_file(folder.0.join(file)).unwrap();
        }
        let (store, memory) = open(&folder.0);
        let why = kept(memory).unwrap_err();
        assert!(missing.iter().any(|file| why.contains(&format!("{file} is missing"))), "{why}");
        // And still knows it, if it ends before it wrote that down.
        store.close().await;
        let (mut store, memory) = open(&folder.0);
        let why = kept(memory).unwrap_err();
        assert!(why.contains("a former life"), "{why}");
        // From here on what it wrote says so, or not.
        write(&mut store, batch(&[(1, Some("lost"))])).await.unwrap();
        store.close().await;
        assert_eq!(kept(open(&folder.0).1), Ok((vec![(1, "lost".into())], 1)));
    }
}

#[tokio::test]
async fn damaged_files_are_kept_once_and_no_more() {
    let folder = Folder::new();
    begin(&folder.0).close().await;
    for round in ["first", "second"] {
        std::fs::write(folder.0.join(DATABASE), round).unwrap();
        let (store, memory) = open(&folder.0);
        assert!(kept(memory).is_err());
        store.close().await;
        let left = std::fs::read_to_string(folder.0.join("votes.redb.damaged")).unwrap();
        assert_eq!(left, round);
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 6);
}
