//! Is the leader as long as it holds the lock. Start it several times, on several machines of a swarm, and
//! kill the leader.
//!
//! `cargo run -p sigmalock --example leader`

use std::time::Duration;

use sigmalock::{AcquireError, Client, Guard};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect_default().await?;
    loop {
        match client.lock("/example/leader").acquire().await {
            Ok(guard) => lead(&guard).await,
            // The peer went away; it may come back.
            Err(AcquireError::Disconnected { reason }) => println!("no peer: {reason}"),
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Whatever a leader does, it stops when the lock is lost, wherever it is in its work.
async fn lead(guard: &Guard) {
    println!("leading, term {}", guard.token());
    tokio::select! {
        () = work() => {}
        () = guard.lost() => println!("no longer the leader"),
    }
}

async fn work() {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        println!("still leading");
    }
}
