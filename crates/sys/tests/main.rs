//! Knobs, journals and devices on pretended machines.

mod fuzz;
mod hid;
mod journal;
mod resolve;
