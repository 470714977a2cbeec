//! The programs as their users run them, on this machine, without a guest; and what documents, packages and
//! dependencies promise.

mod age;
mod bench;
mod blame;
mod browser;
mod bus;
#[path = "../../foreground/tests/compositor/mod.rs"]
mod compositor;
mod confine;
mod defrag;
mod dependencies;
mod diagnoses;
mod doctor;
#[allow(dead_code, reason = "the other part is for IOPro's own tests")]
#[path = "../../iopro/tests/synthetic/mod.rs"]
mod events;
mod exits;
mod fg;
mod fleet;
mod flood;
mod follow;
mod guest_sources;
mod json;
mod launch;
mod on;
mod output;
mod pages;
mod papers;
mod prose;
mod replay;
mod reports;
mod results;
mod running;
mod sched;
mod schema;
#[path = "../../foreground/tests/server/mod.rs"]
mod server;
mod snapshot;
#[path = "../../record/tests/synthetic/mod.rs"]
mod synthetic;
#[path = "../../foreground/tests/system/mod.rs"]
mod system;
mod terminal;
mod top;
mod unit;
