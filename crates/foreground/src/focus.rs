//! The focused app of a session, from its display server. Only processes of the session's user may
//! ask it, not a system daemon.

mod area;
mod calls;
mod wayland;
mod x11;

pub use calls::Calls;
pub use wayland::Wayland;
pub use x11::X11;

use std::os::fd::BorrowedFd;

/// The app that has the focus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// The process with this id owns the focused window.
    Process(u32),
    /// The app with this id, which is the name of its `.desktop` file, owns the focused window.
    App(String),
    /// No window has the focus, or its process is not known.
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
    /// The app; never [`Focus::Nobody`].
    pub whose: Focus,
    /// Visible part of its windows in per cent of the screen, 1 to 100.
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
    /// The compositor lacks the protocol, as those of GNOME and KDE do, which have other ways.
    #[error(
        "the compositor does not tell of windows (wlr-foreign-toplevel-management): use one that does, or `frontrow fg set`; under GNOME this is not needed"
    )]
    NoWindows,
    /// The session's D-Bus cannot be reached.
    #[error(
        "cannot be called by the desktop's scripts ({0}): run this in the session, where DBUS_SESSION_BUS_ADDRESS is set"
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
    /// The descriptor `stop` is readable.
    Stop,
}

/// A source of the focus. To add one, implement this trait and name it in `frontrow fg follow`.
pub trait Source {
    /// The apps that are visible now.
    ///
    /// # Errors
    /// [`Error::Lost`].
    fn now(&mut self) -> Result<Screen, Error>;

    /// Sleeps until the focus or the visible apps change, or `stop` is readable.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Wait`].
    fn wait(&mut self, stop: BorrowedFd<'_>) -> Result<Event, Error>;
}
