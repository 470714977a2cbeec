//! Tests that boot guests: `frontrow-lab` as a user runs it, and the modules and programs in what
//! it boots. What `make test` leaves to `make stress` is ignored here.
//!
//! `cargo test -p frontrow --test guests -- lab::` runs those of one module.

mod android;
mod arm64;
mod beside;
mod confined;
mod defrag;
mod desktops;
mod doctor;
mod encrypted;
mod experiments;
mod fasttrack;
mod fasttrack_figures;
mod full_disk;
mod harness;
mod hosts;
mod interface;
mod iopro;
mod kernels;
mod lab;
mod launch;
mod life;
mod machine;
mod new_debian;
mod packages;
mod powercut;
mod pretended;
mod recording;
mod rows;
mod security;
mod sticks;
mod stress;
mod torture;
