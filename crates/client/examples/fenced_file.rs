//! Counts in a file, under a lock, and behind a fence: even a process that is stopped in the middle (try
//! `kill -STOP`, wait, `kill -CONT`) does not overwrite what was written after it.
//!
//! `cargo run -p sigmalock --example fenced_file -- /tmp/count`

use std::path::PathBuf;
use std::time::Duration;

use sigmalock::Client;
use sigmalock::fence::Fence;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("usage: fenced_file PATH")?);
    let fence = Fence::in_file(path.with_extension("fence"));
    let client = Client::connect_or_start().await?;
    let guard = client.lock("/example/fenced-file").acquire().await?;

    let count: u64 = match std::fs::read_to_string(&path) {
        Ok(text) => text.trim().parse()?,
        Err(_) => 0,
    };
    // Long enough to be stopped in.
    tokio::time::sleep(Duration::from_secs(5)).await;
    fence.admit(guard.name(), guard.token(), &guard.holder_id(), || {
        std::fs::write(&path, format!("{}\n", count + 1))
    })??;
    println!("wrote {} with token {}", count + 1, guard.token());
    guard.release().await?;
    Ok(())
}
