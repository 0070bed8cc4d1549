use super::*;
use crate::identity::tests::Folder;
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
    let stranger = Charter { peer: PeerId(2), ..charter(6) };
    let other = Store::open(&folder.0, &stranger).unwrap_err().to_string();
    assert!(other.contains("another identity"), "{other}");
    assert!(Store::open(&folder.0, &charter(6)).is_ok(), "nothing was changed");
}

/// A disk that can be told to die.
#[derive(Debug)]
struct Mortal(redb::backends::InMemoryBackend, Arc<AtomicBool>);

impl Mortal {
    fn alive(&self) -> Result<(), std::io::Error> {
        if self.1.load(SeqCst) {
            return Err(std::io::Error::other("the disk is dead"));
        }
        Ok(())
    }
}

impl redb::StorageBackend for Mortal {
    fn len(&self) -> Result<u64, std::io::Error> {
        self.0.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), std::io::Error> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> Result<(), std::io::Error> {
        self.alive()?;
        self.0.set_len(len)
    }
    fn sync_data(&self) -> Result<(), std::io::Error> {
        self.alive()?;
        self.0.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), std::io::Error> {
        self.alive()?;
        self.0.write(offset, data)
    }
}

/// A store on a disk that dies when told to.
pub(crate) fn mortal() -> (Store, Arc<AtomicBool>) {
    let dead = Arc::new(AtomicBool::new(false));
    let disk = Mortal(redb::backends::InMemoryBackend::new(), Arc::clone(&dead));
    let database = Database::builder().create_with_backend(disk).unwrap();
    (Store::run(database).unwrap(), dead)
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

/// A store in memory whose writes can be held up.
pub(crate) fn paused() -> (Store, Brake) {
    let memory = redb::backends::InMemoryBackend::new();
    let database = Database::builder().create_with_backend(memory).unwrap();
    let (batches, todo) = std::sync::mpsc::channel::<Batch>();
    let (done, written) = mpsc::unbounded_channel();
    let (go_on, brake) = std::sync::mpsc::channel();
    let paused = Arc::new(AtomicBool::new(false));
    let is_paused = Arc::clone(&paused);
    std::thread::spawn(move || {
        for batch in todo {
            if is_paused.load(SeqCst) {
                let _ = brake.recv();
            }
            let result = batch.write(&database).map_err(|error| WriteError(error.to_string()));
            let _ = done.send(result);
        }
    });
    (Store { batches, written }, Brake(go_on, paused))
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
