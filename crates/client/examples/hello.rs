//! Takes a lock, says so, and gives it back.
//!
//! `cargo run -p sigmalock --example hello -- /hello`

use std::time::Duration;

use sigmalock::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "/hello".to_owned());
    let client = Client::connect_or_start().await?;
    let guard = client
        .lock(&name)
        .wait(Duration::from_secs(30))
        .on_queue(|place| println!("{} before me", place.ahead))
        .acquire()
        .await?;
    println!("inside {name} with token {}, for {:?} or longer", guard.token(), guard.remaining());
    guard.release().await?;
    println!("outside");
    Ok(())
}
