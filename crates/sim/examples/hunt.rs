#![allow(missing_docs)]
use std::time::Instant;
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;
use sigmalock_sim::lab::mutants::hunt;
use sigmalock_sim::lab::torture::{Membership, Victim, torture};
use sigmalock_sim::mutant::Mutant;
struct Story(Vec<String>);
impl sigmalock_sim::watch::Watch for Story {
    fn on_note(&mut self, at: sigmalock_sim::history::TrueTime, peer: sigmalock_core::PeerId, note: &dyn std::fmt::Display) {
        let n = note.to_string();
        if n.contains("view") && !n.contains("promise") || n.contains("proposal") || n.contains("proposer") || n.contains("begins to vote") || n.contains("lease lapsed") || n.contains("vouch") || n.contains("disk") { println!("{:10.3} {peer} {n}", at.0 as f64 / 1e6); }
    }
    fn on_fault(&mut self, at: sigmalock_sim::history::TrueTime, f: &dyn std::fmt::Display) { println!("{:10.3} !! {f}", at.0 as f64 / 1e6); }
    fn on_send(&mut self, at: sigmalock_sim::history::TrueTime, from: sigmalock_core::PeerId, to: sigmalock_core::PeerId, m: &dyn std::fmt::Display, arrives: Option<sigmalock_sim::history::TrueTime>) {
        let t = m.to_string();
        if self.0.iter().any(|k| t.starts_with(k.as_str())) { println!("{:10.3} {from} -> {to} {t} {}", at.0 as f64 / 1e6, arrives.map_or("LOST".into(), |a| format!("{:.3}", a.0 as f64 / 1e6))); }
    }
    fn on_record(&mut self, r: &sigmalock_sim::history::Record) {
        use sigmalock_sim::history::What;
        match &r.what { What::Wrote{..} | What::Asked{..} => {} w => println!("{:10.3}      {w:?}", r.at.0 as f64 / 1e6) }
    }
}
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "mutants" {
        let max: u64 = args[1].parse().unwrap();
        for mutant in Mutant::all() {
            if args.len() > 2 && !args[2..].contains(&mutant.as_str().to_owned()) { continue; }
            let t = Instant::now();
            let f = hunt(mutant, None, 0..max, 2);
            println!("{mutant:32} {:>8} {:6.1}s {}", f.as_ref().map_or("ESCAPED".into(), |f| f.seed.to_string()), t.elapsed().as_secs_f64(), f.map_or(String::new(), |f| f.violations[0].sentence.clone()));
        }
        return;
    }
    // torture MEMBERSHIP FROM TO [flags agents modes strawman mutant=x n=,m=] 
    let membership = match args[1].as_str() { "fixed" => Membership::Fixed, "open" => Membership::Open, _ => Membership::Agreed };
    let (from, to): (u64, u64) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let has = |f: &str| args.iter().any(|a| a == f);
    let val = |f: &str| args.iter().find_map(|a| a.strip_prefix(f).map(str::to_owned));
    let quorum = val("n=").map(|q| { let (n, m) = q.split_once('/').unwrap(); Quorum::new(n.parse().unwrap(), m.parse().unwrap()).unwrap() });
    let protocol = if has("strawman") { ProtocolName::Strawman } else { ProtocolName::Sigma };
    let victim = Victim { protocol, variant: Variant::Shipped, mutant: val("mutant=").map(|m| m.parse().unwrap()), agents: has("agents"), modes: has("modes"), quorum, membership };
    if args[0] == "story" {
        let (subject, config) = victim.case(from);
        println!("{:?}\n{:?}\n{:?}", subject.tuning, config.network, config.workload);
        let kinds = val("kinds=").map_or(Vec::new(), |k| k.split(',').map(str::to_owned).collect());
        let outcome = subject.run_watched(&config, &mut subject.oracles(&config), &mut Story(kinds));
        println!("{:?}", outcome.violations);
        return;
    }
    let t = Instant::now();
    let r = torture(&victim, from..to, val("jobs=").map_or(2, |j| j.parse().unwrap()), &|_| (), has("first"));
    println!("{} {from}..{to} {:?}: {} seeds, {} failed, {:.1}s, entries {}, delivered {} digest {:x}", args[1], &args[4..], r.seeds, r.failed, t.elapsed().as_secs_f64(), r.entries, r.delivered, r.digest);
    for f in r.failures.iter().take(12) {
        println!("  {} {:?}\n     {}", f.seed, f.violations.iter().take(2).map(|v| format!("{} {} {}", v.at.0, v.oracle, v.sentence)).collect::<Vec<_>>(), f.replay);
    }
    if has("faults") { println!("{:?}\n{:?}", r.faults, r.notes); }
}
