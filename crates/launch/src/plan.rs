//! From the pages of a profile to the requests that read them.
//!
//! A **piece** is a run of a file's pages that lies in one piece on the device. Pieces in
//! the device's order that adjoin, whatever their files, are a **chunk** (the paper's
//! `b_i`); chunks are joined into a **request** by reading the gaps between them, too.

pub mod map;
pub mod pad;

mod budget;
mod layout;

pub use layout::{Ground, Part, Piece, Place, Purpose, Request, layout};

use crate::latency::Latency;

/// How far apart reads are joined.
#[derive(Clone, Debug)]
pub enum Joining {
    /// Only what adjoins.
    Merge,
    /// Across gaps where that is faster, until padding is this part of the working set.
    Pad {
        /// The device's time.
        latency: Box<Latency>,
        /// 0.1 for 10 %.
        most: f64,
    },
}
