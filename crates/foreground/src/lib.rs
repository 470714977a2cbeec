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
//! Whoever has the focus, a disk that can be taken out or is slow has a dirty limit of its own
//! (`dirty`); while nobody has it, so has an app that writes far ahead of its disk (`ahead`).
//!
//! Every change is written down by [`knobs`] first; [`release`] undoes all of them, also after
//! a crash. [`Daemon`] does it for whoever has the focus:
//!
//! | question | answered by |
//! |---|---|
//! | who has the focus? | a [`Detector`], or `frontrow fg set` through the socket |
//! | who is to be in front of whom, and since when? | [`Keeper`] |
//! | what is each knob to hold then? | `policy` |
//! | which knobs differ from that? | [`Hold`] |

mod ahead;
mod android;
mod bus;
mod cgroup;
mod cost;
mod daemon;
mod detect;
mod dirty;
mod error;
mod hold;
mod keeper;
mod life;
mod means;
mod policy;
mod rate;
mod seats;
mod shown;
mod socket;
mod watch;

pub use ahead::{Ahead, release_writers};
pub use cgroup::Cgroup;
pub use cost::Cost;
pub use daemon::Daemon;
pub use detect::{Detector, Scopes, TopApp};
pub use dirty::{DirtyLimits, release_limits};
pub use error::{Error, Kind};
pub use hold::{Hold, Step, changes, hold};
pub use keeper::{Keeper, Order, Status};
pub use policy::{Grounds, Pace, Parts, Visible};
pub use socket::{Reply, Request, ask};

use knobs::{Change, Restored};
use std::path::Path;

/// Undoes what was held, and the dirty limits of disks and writers, in this process or another one.
///
/// # Errors
/// [`Error::Knobs`]; what the one could not undo is no obstacle to the others.
pub fn release(root: &Path) -> Result<Vec<(Change, Restored)>, Error> {
    let limits = dirty::release_limits(root);
    let writers = ahead::release_writers(root);
    let mut restored = hold::release(root)?;
    restored.extend(limits?);
    restored.extend(writers?);
    Ok(restored)
}
