//! Processes that are killed while they write: that is no damage, whenever it happens.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::disk::Disk;
use super::*;

const DIRECTORY: &str = "SIGMALOCK_TEST_STORE";
/// Short, so that it often begins anew.
const LEN: usize = 16 << 10;
const KILLS: u64 = 40;

/// The batch of a round; the first key has the round itself.
pub(super) fn round(number: u32) -> [(u32, Option<String>); 3] {
    let long = "x".repeat((number as usize * 37) % 900);
    let (here, there) = (1 + number % 20, 1 + (number + 7) % 20);
    [(0, Some(number.to_string())), (here, Some(long)), (there, None)]
}

/// What is there after so many rounds.
pub(super) fn after(rounds: u32) -> Vec<(u32, String)> {
    let mut records = BTreeMap::new();
    // Each key has its turn within twenty of them.
    let first = rounds.saturating_sub(40) + 1;
    for (key, value) in (first..=rounds).flat_map(round) {
        match value {
            Some(value) => records.insert(key, value),
            None => records.remove(&key),
        };
    }
    records.into_iter().collect()
}

fn open(dir: &Path, lived: bool) -> (Disk, u32) {
    let (disk, memory) =
        Disk::open(Directory::take(dir).unwrap(), &charter(6), lived, LEN).unwrap();
    let Memory::Kept { records, writes } = memory else {
        assert!(matches!(memory, Memory::First), "{memory:?}");
        return (disk, 0);
    };
    let rounds = writes as u32 / 3;
    assert_eq!(decoded(&records), after(rounds));
    (disk, rounds)
}

/// Not a test: the process that the one below kills. It says which rounds are on disk.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let (mut disk, rounds) = open(Path::new(&dir), true);
    for number in rounds + 1.. {
        let records = round(number);
        let records: Vec<_> = records.iter().map(|(k, v)| (*k, v.as_deref())).collect();
        disk.write(&batch(&records)).unwrap();
        println!("\nround {number}");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn a_kill_at_any_moment_is_not_taken_for_damage_and_nothing_heard_of_is_missing() {
    let folder = in_memory();
    drop(open(&folder.0, false));
    let mut heard = 0;
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::kills::child", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, &folder.0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut rounds = lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("round ").and_then(|number| number.parse::<u32>().ok())
        });
        // Every third one perhaps while it still reads what the one before left.
        if kill % 3 < 2 {
            heard = rounds.next().expect("it begins");
        }
        std::thread::sleep(Duration::from_micros(kill * 997 % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        heard = rounds.last().unwrap_or(heard);
        // Every other time the next process is the first to see what is left.
        if kill % 2 == 0 {
            assert!(open(&folder.0, true).1 >= heard);
        }
    }
    assert!(open(&folder.0, true).1 >= heard);
    println!("{heard} rounds, {KILLS} kills");
}
