//! Echoes: the round trip of a bare stream, as a yardstick for everything else.

use std::time::{Duration, Instant};

use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::limits::{ECHO_LEN, ECHO_MAX, ECHO_ROUNDS_MAX};

/// Sends back what comes, for a while.
pub(crate) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let echo = async {
        let mut stream = stream;
        let mut message = [0; ECHO_LEN];
        while stream.read_exact(&mut message).await.is_ok() {
            stream.write_all(&message).await?;
            stream.flush().await?;
        }
        stream.close().await
    };
    let _ = tokio::time::timeout(ECHO_MAX, echo).await;
}

/// Times so many round trips, in nanoseconds.
pub(crate) async fn measure(
    stream: impl AsyncRead + AsyncWrite + Unpin, rounds: u32,
) -> Result<Vec<u64>, String> {
    let rounds = rounds.min(ECHO_ROUNDS_MAX);
    let measure = async {
        let mut stream = stream;
        let mut message = [7; ECHO_LEN];
        let mut times = Vec::new();
        for _ in 0..rounds {
            let begin = Instant::now();
            stream.write_all(&message).await?;
            stream.flush().await?;
            stream.read_exact(&mut message).await?;
            times.push(nanos(begin.elapsed()));
        }
        stream.close().await?;
        std::io::Result::Ok(times)
    };
    match tokio::time::timeout(ECHO_MAX, measure).await {
        Ok(times) => times.map_err(|error| format!("the stream broke: {error}")),
        Err(_) => Err(format!("it took longer than {} s", ECHO_MAX.as_secs())),
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos().min(u128::from(u64::MAX)) as u64
}
