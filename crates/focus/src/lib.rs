//! Which app of a session has the focus, as its display server tells: what a user's own
//! processes may ask and a system's daemon may not.

mod area;
mod calls;
mod wayland;
mod x11;

pub use calls::Calls;
pub use wayland::Wayland;
pub use x11::X11;

use std::os::fd::BorrowedFd;

/// Who has the focus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// A window of this process.
    Process(u32),
    /// A window of the app with this id, as its `.desktop` file is called.
    App(String),
    /// No window, or one of which nobody knows the process.
    Nobody,
}

/// What is on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Who has the focus.
    pub focus: Focus,
    /// Who is seen besides.
    pub beside: Vec<Beside>,
}

/// An app that has not the focus, and is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Never [`Focus::Nobody`].
    pub whose: Focus,
    /// Of the screen, what is seen of it, 1 to 100.
    pub percent: u8,
}

/// Why nobody can tell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no X session.
    #[error("cannot reach an X server ({0}): run this in the session, where DISPLAY is set")]
    NoServer(String),
    /// There is no Wayland session.
    #[error(
        "cannot reach a compositor ({0}): run this in the session, where WAYLAND_DISPLAY is set"
    )]
    NoCompositor(String),
    /// Such as GNOME's and KDE's, which have other ways.
    #[error(
        "the compositor does not tell of windows (wlr-foreign-toplevel-management): use one that does, or `frontrow fg set`; under GNOME this is not needed"
    )]
    NoWindows,
    /// There is no D-Bus for scripts to call.
    #[error(
        "cannot be called by the desktop's scripts ({0}): run this in the session, where DBUS_SESSION_BUS_ADDRESS is set"
    )]
    NoBus(String),
    /// The window manager does not keep it.
    #[error(
        "the window manager does not tell which window has the focus (_NET_ACTIVE_WINDOW): use one that follows EWMH, or `frontrow fg set`"
    )]
    NoManager,
    /// The server is older than 2012.
    #[error("the X server does not tell whose a window is (X-Resource 1.2): use `frontrow fg set`")]
    NoProcesses,
    /// The session is over.
    #[error("the session is over: {0}")]
    Lost(String),
    /// It could not be waited for.
    #[error("cannot wait for the session: {0}")]
    Wait(#[from] rustix::io::Errno),
}

/// What happened first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody else may have the focus, or be seen.
    Screen(Screen),
    /// `stop` is readable.
    Stop,
}

/// Something that tells who has the focus. To add one, implement this and name it in
/// `frontrow fg follow`.
pub trait Source {
    /// What is on the screen now.
    ///
    /// # Errors
    /// [`Error::Lost`].
    fn now(&mut self) -> Result<Screen, Error>;

    /// Sleeps until that changes or `stop` is readable.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Wait`].
    fn wait(&mut self, stop: BorrowedFd<'_>) -> Result<Event, Error>;
}
