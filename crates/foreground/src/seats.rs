//! Users with an active session on a seat, from logind.
//!
//! The foreground is served before all other apps, so only users in front of a screen may set it:
//! not users logged in by ssh, nor background sessions. logind (and elogind) writes the user of a
//! seat's active session to `/run/systemd/seats/SEAT` as `ACTIVE_UID=`, as sd_seat_get_active(3)
//! reads it. Without these files only root may set the foreground.

use crate::Error;
use crate::cgroup::below;
use crate::watch::{Added, Watch, WatchFlags};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/run/systemd/seats";
const ACTIVE_USER: &str = "ACTIVE_UID=";

/// Seats and the users of their active sessions.
#[derive(Debug)]
pub struct Seats {
    directory: PathBuf,
    watch: Watch<()>,
    active: BTreeSet<u32>,
}

impl Seats {
    pub fn new(root: &Path) -> Result<Self, Error> {
        let mut seats = Seats {
            directory: below(root, DIRECTORY),
            watch: Watch::new()?,
            active: BTreeSet::new(),
        };
        seats.begin()?;
        Ok(seats)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// logind replaces the files by rename.
    fn begin(&mut self) -> Result<(), Error> {
        let flags = WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR;
        if self.watch.add(&self.directory, flags, ())? == Added::Watched {
            self.read();
        }
        Ok(())
    }

    fn read(&mut self) {
        self.active = active_users(&self.directory);
    }

    /// Whether active sessions may have changed.
    pub fn look(&mut self) -> Result<bool, Error> {
        let events = self.watch.events()?;
        let any = events.lost || !events.list.is_empty();
        if any {
            self.read();
        }
        Ok(any)
    }

    /// Whether this user has the active session of a seat.
    pub fn are_used_by(&mut self, user: u32) -> Result<bool, Error> {
        // logind may have started later.
        if !self.watch.watches(&()) {
            self.begin()?;
        }
        Ok(self.active.contains(&user))
    }
}

/// Users who sit here: those with the active session of a seat.
pub fn users_at_seats(root: &Path) -> BTreeSet<u32> {
    active_users(&below(root, DIRECTORY))
}

fn active_users(directory: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| active_user(&text)).collect()
}

fn active_user(text: &str) -> Option<u32> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(ACTIVE_USER)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_the_active_session_of_a_seat_sits_there() {
        let root = tempfile::tempdir().unwrap();
        let mut seats = Seats::new(root.path()).unwrap();
        assert!(!seats.are_used_by(1000).unwrap());
        let directory = below(root.path(), DIRECTORY);
        fs::create_dir_all(&directory).unwrap();
        let seat = |text: &str| {
            fs::write(directory.join(".#new"), text).unwrap();
            fs::rename(directory.join(".#new"), directory.join("seat0")).unwrap();
        };
        seat("# private\nIS_SEAT0=1\nACTIVE=2\nACTIVE_UID=1000\nUIDS=1000 1001\n");
        assert!(seats.are_used_by(1000).unwrap());
        assert_eq!(users_at_seats(root.path()), BTreeSet::from([1000]));
        // A session by ssh, or an inactive one.
        assert!(!seats.are_used_by(1001).unwrap());
        seat("ACTIVE=3\nACTIVE_UID=1001\n");
        assert!(seats.look().unwrap());
        assert!(!seats.are_used_by(1000).unwrap() && seats.are_used_by(1001).unwrap());
        seat("IS_SEAT0=1\n");
        assert!(seats.look().unwrap());
        assert!(!seats.are_used_by(1001).unwrap());
    }
}
