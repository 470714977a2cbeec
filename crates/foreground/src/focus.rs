//! The focused app of a session, from its display server. Only processes of the session's user may
//! ask it, not a system daemon.

mod area;
mod cosmic;
mod gamescope;
mod hyprland;
mod ipc;
mod kwin;
mod niri;
mod sway;
mod wayland;
mod wlr;
mod x11;

pub use cosmic::Cosmic;
pub use hyprland::Hyprland;
pub use kwin::KWin;
pub use niri::Niri;
pub use sway::Sway;
pub use wlr::Wayland;
pub use x11::X11;

use crate::whose::{Process, Window};
use area::{Area, seen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Pause after a window was moved, so that its place is not queried during the move.
const COMES_TO_REST: Duration = Duration::from_millis(250);

/// Smallest visible part of the screen at which an app counts as visible, in per cent.
const LEAST_PERCENT: u64 = 5;

/// The focus of the keyboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// This window has it.
    Window(Window),
    /// The desktop's own furniture has it: its background, a panel or a dock.
    Desktop,
    /// No window has it, or none is known.
    Nobody,
}

/// The visible apps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// The app that has the focus.
    pub focus: Focus,
    /// Other apps that are visible.
    pub beside: Vec<Beside>,
}

/// A visible app without the focus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// One of its windows.
    pub window: Window,
    /// Visible part of its windows in per cent of the screen, 5 to 100.
    pub percent: u8,
}

/// Reasons why the focus cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No X server can be reached.
    #[error("cannot reach an X server ({0}): run this in the session, where DISPLAY is set")]
    NoServer(String),
    /// No Wayland compositor can be reached.
    #[error(
        "cannot reach a compositor ({0}): run this in the session, where WAYLAND_DISPLAY is set"
    )]
    NoCompositor(String),
    /// The compositor lacks all protocols for it, as GNOME's does, which has another way.
    #[error(
        "the compositor does not tell of windows (wlr-foreign-toplevel-management): use one that does, or `frontrow fg set`; under GNOME this is not needed"
    )]
    NoWindows,
    /// KDE's compositor cannot be asked through the session's D-Bus.
    #[error(
        "cannot have KWin tell of windows ({0}): run this in the session, where DBUS_SESSION_BUS_ADDRESS is set"
    )]
    NoBus(String),
    /// The window manager does not set `_NET_ACTIVE_WINDOW`.
    #[error(
        "the window manager does not tell which window has the focus (_NET_ACTIVE_WINDOW): use one that follows EWMH, or `frontrow fg set`"
    )]
    NoManager,
    /// The X server lacks X-Resource 1.2, which came in 2012.
    #[error("the X server does not tell whose a window is (X-Resource 1.2): use `frontrow fg set`")]
    NoProcesses,
    /// The connection to the session was lost.
    #[error("the session is over: {0}")]
    Lost(String),
    /// poll(2) of the session's connection failed, for another reason than a signal.
    #[error("cannot wait for the session: {0}")]
    Wait(#[from] rustix::io::Errno),
}

/// The first of the awaited events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The focus, or the set of visible apps, may have changed.
    Screen(Screen),
    /// A descriptor of [`Awaited`] is readable, or its time has come.
    Other,
}

/// Events that the caller awaits beside those of the session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Awaited<'a> {
    /// Descriptors that become readable, or are closed by their other end.
    pub fds: &'a [BorrowedFd<'a>],
    /// When to return in any case.
    pub until: Option<Instant>,
}

/// A source of the focus. To add one, implement this trait and name it in `frontrow fg follow`.
pub trait Source {
    /// Name of the way in which it learns of windows, for users.
    fn name(&self) -> &'static str;

    /// Process of the compositor or window manager. Apps that have no unit may be in its own.
    fn compositor(&self) -> Option<u32>;

    /// The apps that are visible now.
    ///
    /// # Errors
    /// [`Error::Lost`].
    fn now(&mut self) -> Result<Screen, Error>;

    /// Descriptor that becomes readable when [`Source::news`] is to be asked.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Takes the events that have arrived, without waiting for more.
    ///
    /// # Errors
    /// [`Error::Lost`].
    fn news(&mut self) -> Result<News, Error>;

    /// Sleeps until the focus or the visible apps change, or something else that is awaited happens.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Wait`].
    fn wait(&mut self, awaited: &Awaited<'_>) -> Result<Event, Error> {
        let mut moving = false;
        loop {
            // An event may have arrived with an earlier reply, so that the descriptor is not readable.
            match self.news()? {
                News::Screen => return self.now().map(Event::Screen),
                News::Moving => moving = true,
                News::Nothing => {}
            }
            match sleep(self.fd(), awaited, moving.then_some(COMES_TO_REST))? {
                Woken::Pause => return self.now().map(Event::Screen),
                Woken::Awaited => return Ok(Event::Other),
                Woken::Session => {}
            }
        }
    }
}

/// Kinds of changes in the events that have arrived, the most urgent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum News {
    /// Neither the focus nor the visible apps have changed.
    Nothing,
    /// A window was moved, and may be moved further.
    Moving,
    /// The focus or the visible apps may have changed.
    Screen,
}

impl News {
    /// `Screen` if something has changed.
    fn of_change(is_changed: bool) -> Self {
        match is_changed {
            true => News::Screen,
            false => News::Nothing,
        }
    }
}

/// Whose descriptor is readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Session,
    Awaited,
    /// The session's own time has come.
    Pause,
}

/// Sleeps until `session` is readable, `pause` is over or something else happens.
fn sleep(
    session: BorrowedFd<'_>,
    awaited: &Awaited<'_>,
    pause: Option<Duration>,
) -> Result<Woken, Error> {
    let pause_until = pause.map(|pause| Instant::now() + pause);
    let mut fds: Vec<_> = awaited
        .fds
        .iter()
        .copied()
        .chain([session])
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    loop {
        let now = Instant::now();
        if awaited.until.is_some_and(|it| it <= now) {
            return Ok(Woken::Awaited);
        }
        if pause_until.is_some_and(|it| it <= now) {
            return Ok(Woken::Pause);
        }
        let due = awaited.until.into_iter().chain(pause_until).min();
        // The kernel rounds no timeout down, so that a wake-up is never early.
        let timeout = due.map(|due| crate::daemon::timespec(due - now));
        let timeout: Option<&Timespec> = timeout.as_ref();
        match poll(&mut fds, timeout) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_)
                if fds[..awaited.fds.len()]
                    .iter()
                    .any(|it| !it.revents().is_empty()) =>
            {
                return Ok(Woken::Awaited);
            }
            Ok(_) => return Ok(Woken::Session),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A window and its place.
#[derive(Clone, Debug)]
struct Placed {
    window: Window,
    area: Area,
}

/// Visible apps other than that of `focus`. Windows are ordered from the lowest up.
fn beside(windows: &[Placed], focus: &Window, screen: Area) -> Vec<Beside> {
    let areas: Vec<_> = windows.iter().map(|it| it.area).collect();
    let all = u64::from(screen.width.unsigned_abs()) * u64::from(screen.height.unsigned_abs());
    let mut pixels: Vec<(&Window, u64)> = Vec::new();
    for (placed, seen) in windows.iter().zip(seen(&areas, screen)) {
        if is_one_app(&placed.window, focus) {
            continue;
        }
        match pixels
            .iter_mut()
            .find(|(window, _)| is_one_app(window, &placed.window))
        {
            Some((_, sum)) => *sum += seen,
            None => pixels.push((&placed.window, seen)),
        }
    }
    let beside = pixels.into_iter().filter_map(|(window, pixels)| {
        let percent = (100 * pixels / all.max(1)).min(100);
        (percent >= LEAST_PERCENT).then(|| Beside {
            window: window.clone(),
            percent: percent as u8,
        })
    });
    beside.collect()
}

/// Whether two windows are of one process, or, if that is not known, of one name.
fn is_one_app(one: &Window, other: &Window) -> bool {
    match (one.process, other.process) {
        (Some(one), Some(other)) => one == other,
        _ => one.names == other.names,
    }
}

/// Process at the other end of a socket.
fn peer(socket: &UnixStream) -> Option<u32> {
    let credentials = rustix::net::sockopt::socket_peercred(socket).ok()?;
    credentials.pid.as_raw_nonzero().get().try_into().ok()
}

/// A window of these names; empty ones do not count.
fn window<'a>(process: Option<Process>, names: impl IntoIterator<Item = &'a str>) -> Window {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && !known.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            known.push(name.to_owned());
        }
    }
    Window {
        process,
        names: known,
    }
}

fn lost(error: impl std::fmt::Display) -> Error {
    Error::Lost(error.to_string())
}
