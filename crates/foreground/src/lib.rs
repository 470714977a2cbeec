//! Who is in front, and what is done for it (FastTrack, "002" chapter 5).
//!
//! The paper changed the kernel's page allocator, its reclaim and its dispatcher. Here the
//! same is asked of a stock kernel, by cgroup:
//!
//! | the paper's part | here |
//! |---|---|
//! | page allocator | what is behind has a memory limit, so that its dirty pages are throttled in a domain of its own and its reclaim is its own |
//! | page reclaimer | what is in front has memory that reclaim passes over |
//! | I/O dispatcher | the `frontrow` scheduler serves what is in front first, and what is behind by a share |
//!
//! Every change is written down by [`knobs`] first; [`release`] undoes all of them, also after
//! a crash.

mod cgroup;
mod error;
mod hold;

pub use cgroup::Cgroup;
pub use error::Error;
pub use hold::{Grounds, Parts, changes, hold, release};
