//! Sources of the focused app.

mod scopes;
mod top_app;

pub use scopes::Scopes;
pub use top_app::TopApp;

use crate::{Cgroup, Error};
use std::os::fd::BorrowedFd;

/// A source of the focused apps. To add one, implement this trait and add it to the daemon's list.
pub trait Detector {
    /// Name for users.
    fn name(&self) -> &'static str;

    /// Descriptor that is readable when the focus may have changed.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Reads pending events without blocking; returns whether there were any.
    ///
    /// # Errors
    /// [`Error::Watch`].
    fn look(&mut self) -> Result<bool, Error>;

    /// Focused cgroups at the last call of the previous method.
    fn foreground(&self) -> Vec<Cgroup>;

    /// Whether users can forge it for their own apps. Then it counts only for users with an active
    /// session on a seat.
    fn is_the_users_word(&self) -> bool {
        false
    }

    /// Takes the log lines since the last call.
    fn log(&mut self) -> Vec<String> {
        Vec::new()
    }
}
