//! Serves the foreground app before background apps (FastTrack, "002" chapter 5).
//!
//! The paper changes the kernel's page allocator, page reclaim and I/O dispatcher. This crate uses
//! settings of a stock kernel for each cgroup instead:
//!
//! | the paper's part | here |
//! |---|---|
//! | page allocator | background apps have memory limits, so their dirty pages are throttled apart and they reclaim their own pages |
//! | page reclaimer | the foreground has memory that reclaim spares |
//! | I/O dispatcher | the `frontrow` scheduler serves the foreground first, and gives the background a share |
//!
//! Removable and slow disks always get a dirty limit of their own (`dirty`). Without a foreground, apps
//! that write far ahead of their disks get one, too (`writers`).
//!
//! [`sys::knobs`] journals each change before it is made; [`release`] undoes all changes, also after a
//! crash. [`Daemon`] applies them for the focused app:
//!
//! | question | answered by |
//! |---|---|
//! | which app has the focus? | a [`Detector`], or `frontrow fg set` through the socket |
//! | which apps are foreground, visible and background, and since when? | [`Arbiter`] |
//! | what is the target value of each knob? | `policy`, `bfq` |
//! | which knobs differ from that? | [`AppliedPolicy`] |

mod android;
mod applied;
mod arbiter;
mod bfq;
mod bus;
mod cgroup;
mod cost;
mod daemon;
pub mod dbus;
pub mod demand;
mod desktop_files;
mod detect;
mod dirty;
mod error;
pub mod focus;
mod helped;
mod kept;
mod life;
mod policy;
mod rate;
mod seats;
mod shown;
mod socket;
mod unit;
mod watch;
mod whose;
mod writers;

pub use applied::{AppliedPolicy, Step, apply, changes};
pub use arbiter::{Arbiter, FOCUS_GRACE, Order, Status};
pub use cgroup::Cgroup;
pub use cost::Cost;
pub use daemon::Daemon;
pub use detect::{Detector, Scopes, TopApp};
pub use dirty::{DirtyLimits, release_limits};
pub use error::{Error, Kind};
pub use helped::Helped;
pub use policy::{Pace, Parts, Roles, Visible};
pub use seats::users_at_seats;
pub use socket::{Reply, Request, ask, attend};
pub use whose::{Finder, Found, Process, Window};
pub use writers::{WriterLimits, release_writers};

use std::path::Path;
use sys::knobs::{Change, Restored};

/// Undoes all settings for a foreground and all dirty limits of disks and writers, whichever process made
/// them.
///
/// # Errors
/// [`Error::Knobs`]; a failure of one part does not prevent the others.
pub fn release(root: &Path) -> Result<Vec<(Change, Restored)>, Error> {
    let limits = dirty::release_limits(root);
    let writers = writers::release_writers(root);
    let mut restored = applied::release(root)?;
    restored.extend(limits?);
    restored.extend(writers?);
    Ok(restored)
}
