//! Loading of an app's working set in a few large reads, after "Enlarging I/O Size for Faster
//! Loading of Mobile Applications" (paper "003").
//!
//! [`record`] finds the pages that a start of the app touches and makes a [`profile`] of them.
//! [`plan`] orders the pages by their place on the device, merges adjoining ones, and pads gaps
//! where one larger read is faster than two. [`load`] reads the plan into the page cache of the
//! pages' files.

pub mod calibrate;
pub mod image;
pub mod load;
pub mod metadata;
pub mod plan;
pub mod prepare;
pub mod profile;
pub mod record;
pub mod resume;
pub mod unpack;

mod identity;
mod latency;
pub mod residency;
mod working_set;

pub use identity::Identity;
pub use latency::Latency;
pub use working_set::{Dropped, Opened, Places, WorkingSet};
