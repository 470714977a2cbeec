//! From the pages of a profile to the requests that read them.
//!
//! A **piece** is a run of a file's pages that is contiguous on the device. Adjoining pieces in the
//! device's order, of any file, are a **chunk** (the paper's `b_i`). Chunks are joined into a
//! **request** by reading the gaps between them.

pub mod map;
pub mod pad;

mod budget;
mod layout;

pub use layout::{DevicePieces, Part, Piece, Place, Purpose, Request, layout};

use crate::latency::Latency;

/// Rule for joining reads.
#[derive(Clone, Debug)]
pub enum Joining {
    /// Joins only adjoining pieces.
    Merge,
    /// Also joins across gaps where that is faster, until padding is this part of the working set.
    Pad {
        /// Read times of the device.
        latency: Box<Latency>,
        /// Largest padding as a part of the working set: 0.1 is 10 %.
        most: f64,
    },
}
