//! Under GNOME, which tells no program of windows, frontrowd sees the units with the attribute of the app
//! with the focus.

use super::seen::{Focused, Seen, Taken};
use super::{Listener, is_readable};
use crate::exit::{Exit, Failure};
use foreground::{Detector, FOCUS_GRACE, Found, Scopes, Window};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fmt::Display;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

/// The daemon sees the focus by itself: each change is heard if `listens`, and else there is nothing to do.
pub fn listen_or_leave(
    root: &Path,
    listens: bool,
    stop: &UnixStream,
    listener: &mut dyn Listener,
) -> Result<(), Failure> {
    if listens {
        return listen(root, stop, listener);
    }
    eprintln!("GNOME tells frontrowd the focus by itself: there is nothing to follow");
    Ok(())
}

/// Has each change heard until a signal arrives, as the daemon takes it.
fn listen(root: &Path, stop: &UnixStream, listener: &mut dyn Listener) -> Result<(), Failure> {
    let user = format!("/user-{}.slice/", rustix::process::getuid().as_raw());
    let mut scopes = Scopes::new(root).map_err(failed)?;
    // Since when no app has the attribute, and is not yet taken for gone.
    let mut left_at = None;
    listener.hear(seen(&scopes, &user))?;
    loop {
        let due = left_at.map(|at: Instant| at + FOCUS_GRACE);
        let rest = due.map(|at| at.saturating_duration_since(Instant::now()));
        let rest = rest.and_then(|it| Timespec::try_from(it).ok());
        let fds = [stop.as_fd(), scopes.fd()];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, rest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
        if is_readable(stop.as_fd()) {
            return Ok(());
        }
        scopes.look().map_err(failed)?;
        let now = seen(&scopes, &user);
        let is_over = due.is_some_and(|at| at <= Instant::now());
        if now.has_units() || is_over {
            left_at = None;
            listener.hear(now)?;
        } else {
            left_at.get_or_insert_with(Instant::now);
        }
    }
}

/// Apps of this user with the attribute.
fn seen(scopes: &Scopes, user: &str) -> Seen {
    let units = scopes.foreground().into_iter();
    let units: Vec<_> = units.filter(|it| it.path().contains(user)).collect();
    let why = match units.is_empty() {
        true => "no app of this user has the attribute",
        false => "GNOME Shell has set the attribute on it",
    };
    Seen {
        by: scopes.name(),
        focus: Focused::Window(Taken {
            window: Window::default(),
            found: Found {
                units,
                why: why.to_owned(),
            },
        }),
        beside: Vec::new(),
    }
}

fn failed(error: impl Display) -> Failure {
    Failure::new(Exit::Internal, error)
}
