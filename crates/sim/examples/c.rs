//! scratch
use sigmalock_sim::lab::torture::*;
use sigmalock_sim::watch::*;
use sigmalock_protocols::catalogue::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let v = Victim { protocol: ProtocolName::Sigma, variant: Variant::Shipped, mutant: None, quorum: None };
    let s: u64 = a[1].parse().unwrap();
    let (sub, mut c) = v.case(s); if a.get(3).is_some() { c.stop_at_violation = false; }
    if a.len() > 2 { c.duration = sigmalock_core::Span::from_millis(a[2].parse().unwrap());
      let mut t = Transcript::default();
      sub.run_watched(&c, &mut [], &mut t);
      for l in t.lines { println!("{l}"); } return; }
    println!("{s} on_hosts {} hosts {} n {:?} {:?} {:?}", c.workload.clients_on_hosts, c.hosts, sub.quorum, c.network, c.workload.arrivals);
}
