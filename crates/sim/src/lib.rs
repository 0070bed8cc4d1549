//! A deterministic discrete-event simulator for protocols, and a laboratory on top of it.
//!
//! One [`run::RunConfig`] is one run, bit for bit: network, clocks, faults and clients all draw from
//! streams split from its seed. While a run goes on its [`history`] streams to [`oracles`], which
//! object when a property does not hold.
//!
//! Reading order: [`run`] (what goes in, what comes out), [`world`] (the engine), `crowd` (who uses the protocol),
//! [`network`], [`faults`], [`workload`], [`script`] for told instead of drawn runs, then [`subject`] (which protocol),
//! [`stepper`] (one event after the other) and [`lab`] (experiments).

mod chaos;
pub mod clock;
mod crowd;
pub mod duration;
pub mod faults;
pub mod history;
pub mod lab;
pub mod latency;
pub mod measure;
mod members;
pub mod mutant;
pub mod network;
mod notes;
pub mod oracles;
pub mod output;
pub mod overlay;
mod peer;
pub mod population;
mod queue;
mod recorder;
pub mod register;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod script;
pub mod stepper;
pub mod subject;
pub mod theory;
mod twins;
mod users;
pub mod watch;
pub mod workload;
pub mod world;
