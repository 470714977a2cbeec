//! Which app of a session has the focus, as its display server tells: what a user's own
//! processes may ask and a system's daemon may not.

mod x11;

pub use x11::X11;

use std::os::fd::BorrowedFd;

/// Who has the focus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// The window of this process.
    Process(u32),
    /// No window, or one of which nobody knows the process.
    Nobody,
}

/// Why nobody can tell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no session.
    #[error("cannot reach an X server ({0}): run this in the session, where DISPLAY is set")]
    NoServer(String),
    /// The window manager does not keep it.
    #[error(
        "the window manager does not tell which window has the focus (_NET_ACTIVE_WINDOW): use one that follows EWMH, or `frontrow fg set`"
    )]
    NoManager,
    /// The server is older than 2012.
    #[error("the X server does not tell whose a window is (X-Resource 1.2): use `frontrow fg set`")]
    NoProcesses,
    /// The session is over.
    #[error("the X server has ended the connection: {0}")]
    Lost(String),
    /// It could not be waited for.
    #[error("cannot wait for the X server: {0}")]
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
