//! scratch
use sigmalock_sim::lab::torture::*;
use sigmalock_protocols::catalogue::*;
use sigmalock_protocols::parts::Quorum;
use std::str::FromStr;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let s: u64 = a[1].parse().unwrap(); let e: u64 = a[2].parse().unwrap();
    let mutant = a.get(3).filter(|x| *x != "-").map(|m| sigmalock_protocols::sigma::Mutant::from_str(m).unwrap());
    let quorum = match (a.get(4), a.get(5)) { (Some(n), Some(m)) => Some(Quorum::new(n.parse().unwrap(), m.parse().unwrap()).unwrap()), _ => None };
    let v = Victim { protocol: ProtocolName::Sigma, variant: Variant::Shipped, mutant, quorum };
    let t = std::time::Instant::now();
    let r = torture(&v, s..e, 2, &|s| if std::env::var("V").is_ok() { eprintln!("{s} {:?}", t.elapsed()) }, mutant.is_some());
    println!("{} seeds {} failed {:?} entries {} delivered {} simulated {}", r.seeds, r.failed, t.elapsed(), r.entries, r.delivered, r.simulated);
    println!("{:?}\n{:?}", r.faults, r.notes);
    for f in r.failures.iter().take(12) { println!("{} {}", f.replay, f.violations.len()); for v in f.violations.iter().take(3) { println!("   {:?} {} {}", v.at, v.oracle, v.sentence); } }
}
