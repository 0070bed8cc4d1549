//! A file behind a fence.

use std::path::Path;

use crate::{Dir, recipe};

// recipe: file
use sigmalock::fence::{Fence, FenceError, FileStore};

fn write_fenced(
    fence: &Fence<FileStore>, path: &Path, name: &str, token: u64, holder: &str, text: &str,
) -> Result<(), FenceError> {
    fence.admit(name, token, holder, || std::fs::write(path, text))??;
    Ok(())
}
// end

#[test]
fn the_page_shows_what_is_tested() {
    assert!(include_str!("file.rs").contains(&recipe("rust file")));
}

#[test]
fn a_holder_that_overslept_does_not_write_the_file() {
    let dir = Dir::new("fence-file");
    let path = dir.0.join("data");
    let fence = || Fence::in_file(dir.0.join("fence"));
    write_fenced(&fence(), &path, "/a", 7, "alice", "alice").unwrap();
    write_fenced(&fence(), &path, "/a", 8, "bob", "bob").unwrap();
    // A fence of its own, as in a process of its own.
    let late = write_fenced(&fence(), &path, "/a", 7, "alice", "alice again");
    assert!(matches!(late, Err(FenceError::Stale { shown: 7, seen: 8 })), "{late:?}");
    let posing = write_fenced(&fence(), &path, "/a", 8, "alice", "alice again");
    assert!(matches!(posing, Err(FenceError::Foreign { token: 8 })), "{posing:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "bob");
}

#[test]
fn a_newer_holder_waits_for_one_who_is_paused_in_the_middle_of_its_write() {
    let dir = Dir::new("fence-pause");
    let marks = dir.0.join("fence");
    let (order, seen) = std::sync::mpsc::channel();
    let (inside, is_inside) = std::sync::mpsc::channel();
    let paused = std::thread::spawn({
        let (marks, order) = (marks.clone(), order.clone());
        move || {
            Fence::in_file(marks).admit("/a", 7, "alice", || {
                inside.send(()).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(200));
                order.send("alice").unwrap();
            })
        }
    });
    is_inside.recv().unwrap();
    Fence::in_file(&marks).admit("/a", 8, "bob", || order.send("bob").unwrap()).unwrap();
    paused.join().unwrap().unwrap();
    assert_eq!([seen.recv().unwrap(), seen.recv().unwrap()], ["alice", "bob"]);
}

#[test]
fn a_fence_that_cannot_be_read_lets_nobody_in() {
    let dir = Dir::new("fence-broken");
    let path = dir.0.join("fence");
    for broken in ["x\t/a\tbob\n", "8\t/a\n", "8\t/a\tbob\tmore\n", "\n"] {
        std::fs::write(&path, broken).unwrap();
        let answer = Fence::in_file(&path).check("/a", 9, "alice");
        assert!(matches!(answer, Err(FenceError::Store(_))), "{broken:?}: {answer:?}");
    }
    std::fs::write(&path, "8\t/a\tbob\n").unwrap();
    assert!(Fence::in_file(&path).check("/a", 9, "al\tice").is_err());
    Fence::in_file(&path).check("/a", 9, "alice").unwrap();
}
