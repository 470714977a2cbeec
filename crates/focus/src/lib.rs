//! Which app of a session has the focus, as its display server tells: what a user's own
//! processes may ask and a system's daemon may not.

mod wayland;
mod x11;

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
    /// Such as GNOME's, which has another way, and KDE's, which tells only its own panel.
    #[error(
        "the compositor does not tell of windows (wlr-foreign-toplevel-management): use one that does, or `frontrow fg set`; under GNOME this is not needed"
    )]
    NoWindows,
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
    /// Somebody else may have the focus.
    Focus(Focus),
    /// `stop` is readable.
    Stop,
}

/// Something that tells who has the focus. To add one, implement this and name it in
/// `frontrow fg follow`.
pub trait Source {
    /// Who has it now.
    ///
    /// # Errors
    /// [`Error::Lost`].
    fn now(&mut self) -> Result<Focus, Error>;

    /// Sleeps until the focus changes or `stop` is readable.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Wait`].
    fn wait(&mut self, stop: BorrowedFd<'_>) -> Result<Event, Error>;
}
