//! The machine that Frontrow runs on, as all other crates see it.

pub mod arch;
pub mod confine;
pub mod device;
pub mod durable;
pub mod knobs;
pub mod memory;
pub mod output;
mod path_error;
pub mod places;
pub mod plain;
pub mod programs;
pub mod random;
pub mod realtime;
pub mod space;
pub mod walk;

pub use path_error::PathError;
