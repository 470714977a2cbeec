//! Knobs, journals and devices on pretended machines; and what confined processes may do.

mod confine;
mod fuzz;
mod hid;
mod journal;
mod resolve;
