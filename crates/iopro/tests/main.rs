//! Recordings linked, exported and reported, as those that use the crate see them.

mod apart;
mod docs;
mod export;
mod fuzz;
mod link;
mod live;
mod memory;
mod perfetto;
mod readers;
mod report;
mod stack;
mod synthetic;
mod versions;
mod wait;
