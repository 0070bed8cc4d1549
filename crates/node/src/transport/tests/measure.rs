//! Not tests: numbers. `cargo test -p sigmalock-node --lib measure -- --ignored --nocapture`

use super::*;
use crate::wire::{Frames, Kind};

/// Starts a peer on a thread of its own that sends back every query.
fn answerer() -> (Multiaddr, oneshot::Sender<()>) {
    let (address, started) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut peer = Peer::start(&config(vec![])).await;
            address.send(peer.address()).unwrap();
            let answer = async {
                while let Some(event) = peer.next().await {
                    if let Event::Frame { body, .. } = event {
                        let mut frames = Frames::new();
                        assert!(frames.push(Kind::Answer, &body));
                        assert!(peer.up[0].2.send(frames.take()));
                    }
                }
            };
            tokio::select! { () = answer => {}, _ = stopped => {} }
        });
    });
    (started.recv().unwrap(), stop)
}

fn percentile(times: &mut [u64], percent: usize) -> f64 {
    times.sort_unstable();
    times[times.len() * percent / 100] as f64 / 1e3
}

fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
#[ignore = "a measurement"]
async fn measure_the_round_trip_of_a_frame_and_of_a_bare_stream() {
    let (address, _stop) = answerer();
    let mut peer = Peer::start(&config(vec![address])).await;
    assert!(peer.until_up(1, ms(2_000)).await);
    for _ in 0..3 {
        let mut times = vec![];
        for _ in 0..5_000 {
            let begin = std::time::Instant::now();
            let mut frames = Frames::new();
            assert!(frames.push(Kind::Query, &[7u8; 32]));
            assert!(peer.up[0].2.send(frames.take()));
            while !matches!(peer.next().await, Some(Event::Frame { .. })) {}
            times.push(begin.elapsed().as_nanos() as u64);
        }
        let (done, echoes) = oneshot::channel();
        let to = peer.up[0].1.peer;
        peer.commands.send(Command::Measure { peer: to, rounds: 5_000, done }).await.unwrap();
        let mut echoes = echoes.await.unwrap().unwrap();
        println!(
            "frame p50 {:.1} us, p99 {:.1} us; bare stream p50 {:.1} us, p99 {:.1} us",
            percentile(&mut times, 50),
            percentile(&mut times, 99),
            percentile(&mut echoes, 50),
            percentile(&mut echoes, 99),
        );
    }
}

#[tokio::test]
#[ignore = "a measurement"]
async fn measure_the_memory_of_sessions() {
    println!("process: {} KiB", memory_kib());
    let mut hub = Peer::start(&config(vec![])).await;
    println!("one peer, alone: {} KiB", memory_kib());
    let mut clients = vec![];
    for sessions in 1..=50 {
        let mut settings = config(vec![hub.address()]);
        settings.role = Role::ClientOnly;
        settings.mesh_max = 0;
        clients.push(Peer::start(&settings).await);
        assert!(hub.until_up(sessions, ms(2_000)).await);
        if [1, 50].contains(&sessions) {
            tokio::time::sleep(ms(1_000)).await;
            println!("{sessions} sessions, both ends here: {} KiB", memory_kib());
        }
    }
}
