//! Those who know which app has the focus.

mod scopes;
mod top_app;

pub use scopes::Scopes;
pub use top_app::TopApp;

use crate::{Cgroup, Error};
use std::os::fd::BorrowedFd;

/// Something that tells which apps have the focus. To add one, implement this and put it in
/// the daemon's list.
pub trait Detector {
    /// For people: what it goes by.
    fn name(&self) -> &'static str;

    /// Readable when something may have changed.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Reads what has happened, without waiting; whether anything has.
    ///
    /// # Errors
    /// [`Error::Watch`].
    fn look(&mut self) -> Result<bool, Error>;

    /// Who has the focus, as of the last look.
    fn front(&self) -> Vec<Cgroup>;

    /// Whether users can make it say what they like of their own apps; then it counts for those
    /// who sit at this machine.
    fn is_the_users_word(&self) -> bool {
        false
    }

    /// What happened since this was last asked, a line each.
    fn log(&mut self) -> Vec<String> {
        Vec::new()
    }
}
