use super::disk::{DATABASE, JOURNAL};
use super::*;
use crate::identity::tests::Folder;
use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::parts::Quorum;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn charter(m: u16) -> Charter {
    Charter::open(PeerId(1), Quorum::new(9, m).unwrap(), Span::from_secs(15), 8)
}

fn batch(records: &[(u32, Option<&str>)]) -> Batch {
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

fn decoded(records: &Records) -> Vec<(u32, String)> {
    let decode = |(key, value): &(Vec<u8>, Vec<u8>)| {
        (postcard::from_bytes(key).unwrap(), postcard::from_bytes(value).unwrap())
    };
    records.iter().map(decode).collect()
}

#[tokio::test]
async fn what_was_written_is_there_after_reopening_and_the_last_word_counts() {
    let folder = Folder::new();
    let (mut store, records) = Store::open(&folder.0, &charter(6)).unwrap();
    assert!(records.is_none(), "it is new");
    let first = batch(&[(1, Some("a")), (2, Some("b")), (1, Some("c")), (3, Some("d")), (3, None)]);
    write(&mut store, first).await.unwrap();
    write(&mut store, batch(&[(2, None), (4, Some("e"))])).await.unwrap();
    store.close().await;
    let (_store, records) = Store::open(&folder.0, &charter(6)).unwrap();
    assert_eq!(decoded(&records.unwrap()), [(1, "c".into()), (4, "e".into())]);
}

#[tokio::test]
async fn a_directory_of_another_swarm_or_in_use_is_refused_with_a_sentence() {
    let folder = Folder::new();
    let (store, _) = Store::open(&folder.0, &charter(6)).unwrap();
    let second = Store::open(&folder.0, &charter(6));
    assert!(matches!(second, Err(OpenError::InUse(_))), "{second:?}");
    store.close().await;
    let other = Store::open(&folder.0, &charter(7)).unwrap_err().to_string();
    assert!(other.contains("a quorum of 6 of 9") && other.contains("with 7 of 9"), "{other}");
    let mut stranger = charter(6);
    stranger.peer = PeerId(2);
    let other = Store::open(&folder.0, &stranger).unwrap_err().to_string();
    assert!(other.contains("another identity"), "{other}");
    assert!(Store::open(&folder.0, &charter(6)).is_ok(), "nothing was changed");
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

/// What a directory says, without changing it.
fn contents(dir: &Path) -> Vec<(u32, String)> {
    let copy = Folder::new();
    for file in [DATABASE, JOURNAL] {
        std::fs::copy(dir.join(file), copy.0.join(file)).unwrap();
    }
    let (_store, records) = Store::open(&copy.0, &charter(6)).unwrap();
    decoded(&records.unwrap())
}

#[tokio::test]
async fn a_crash_at_any_moment_leaves_whole_batches() {
    let folder = Folder::new();
    let (mut store, _) = Store::open(&folder.0, &charter(6)).unwrap();
    let mut states = vec![contents(&folder.0)];
    for round in 0..4u32 {
        let text = round.to_string();
        let mut records = vec![(round, Some(text.as_str())), (9, Some(text.as_str()))];
        records.extend(round.checked_sub(1).map(|before| (before, None)));
        write(&mut store, batch(&records)).await.unwrap();
        states.push(contents(&folder.0));
    }
    assert_eq!(states[4], [(3, "3".into()), (9, "3".into())]);
    let whole = std::fs::read(folder.0.join(JOURNAL)).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut seen = 0;
    for cut in 0..used {
        let mut torn = whole[..cut].to_vec();
        torn.resize(whole.len(), 0xff);
        std::fs::write(folder.0.join(JOURNAL), torn).unwrap();
        let found = contents(&folder.0);
        let place = states.iter().position(|state| *state == found).expect("whole batches");
        assert!(place >= seen && place < 4, "nothing is lost but the end");
        seen = place;
    }
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn what_the_database_has_is_not_taken_from_the_journal_again() {
    let folder = Folder::new();
    let (mut store, _) = Store::open(&folder.0, &charter(6)).unwrap();
    write(&mut store, batch(&[(1, Some("old"))])).await.unwrap();
    let journal = std::fs::read(folder.0.join(JOURNAL)).unwrap();
    store.close().await;
    let (mut store, _) = Store::open(&folder.0, &charter(6)).unwrap();
    write(&mut store, batch(&[(1, Some("new"))])).await.unwrap();
    store.close().await;
    // As if the disk had kept the journal as it was before the database had it.
    std::fs::write(folder.0.join(JOURNAL), journal).unwrap();
    assert_eq!(contents(&folder.0), [(1, "new".into())]);
}

#[tokio::test]
async fn a_full_journal_goes_to_the_database_and_nothing_is_lost() {
    let folder = Folder::new();
    let (mut store, _) = Store::open(&folder.0, &charter(6)).unwrap();
    let long = "x".repeat(100_000);
    for key in 0..50 {
        write(&mut store, batch(&[(key, Some(&long)), (1_000, Some(&key.to_string()))]))
            .await
            .unwrap();
    }
    let huge = "y".repeat(3 << 20);
    write(&mut store, batch(&[(2_000, Some(&huge))])).await.unwrap();
    let found = contents(&folder.0);
    assert_eq!(found.len(), 52);
    assert_eq!(found.iter().filter(|(_, value)| *value == long).count(), 50);
    assert!(found.contains(&(1_000, "49".into())));
    assert!(found.contains(&(2_000, huge)));
}

#[tokio::test]
async fn without_its_journal_a_directory_is_refused() {
    let folder = Folder::new();
    let (store, _) = Store::open(&folder.0, &charter(6)).unwrap();
    store.close().await;
    std::fs::remove_file(folder.0.join(JOURNAL)).unwrap();
    let refused = Store::open(&folder.0, &charter(6)).unwrap_err().to_string();
    assert!(refused.contains("votes.journal is missing"), "{refused}");
}
