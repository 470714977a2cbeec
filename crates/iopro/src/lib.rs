//! Full-stack storage profiler, after IOPro (paper "002", chapter 3). It shows which task waits for
//! what, from the system call to the flash chip, and why.
//!
//! The kernel side writes [`event`]s into a [`recording`]. Linking, classification and export read
//! them from there.

pub mod capture;
pub mod event;
pub mod export;
pub mod link;
mod named;
pub mod recording;
pub mod report;
pub mod store;
pub mod tables;
pub mod wait;
mod wire;
