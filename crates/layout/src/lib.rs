//! Where an ext4 file system keeps its files: [`defrag`] changes it, and [`snapshot`] saves it without
//! the data and lays it out again.

pub mod defrag;
pub mod snapshot;
