//! Sessions of Wayland compositors, whichever protocol tells of their windows.

use crate::focus::{Error, Focus, News, Screen, Source, lost, peer};
use std::fmt::Debug;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use wayland_client::backend::WaylandError;
use wayland_client::globals::{GlobalList, GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::{Connection, Dispatch, EventQueue, QueueHandle};
use wayland_protocols_wlr::foreign_toplevel::v1::client::zwlr_foreign_toplevel_handle_v1::State;

/// The windows of a session, as a protocol tells of them.
pub trait Windows: Debug + Sized + Dispatch<WlRegistry, GlobalListContents> + 'static {
    /// Name of the protocol, for users.
    const NAME: &str;
    /// Round trips until all windows that are there have been told.
    const ROUND_TRIPS: usize;

    /// Subscribes to the windows.
    ///
    /// # Errors
    /// [`Error::NoWindows`] if the compositor lacks the protocol.
    fn bind(globals: &GlobalList, queue: &QueueHandle<Self>) -> Result<Self, Error>;

    /// The focus, by what was told until now.
    fn focus(&self) -> Focus;

    /// Whether the focus may have changed. The next answer is no.
    fn take_news(&mut self) -> bool;

    /// Whether no window will be told any more.
    fn is_over(&self) -> bool;
}

/// A connection to a Wayland compositor.
#[derive(Debug)]
pub struct Session<W> {
    connection: Connection,
    queue: EventQueue<W>,
    windows: W,
}

impl<W: Windows> Session<W> {
    /// Connects to the compositor that WAYLAND_DISPLAY names, and subscribes to changes.
    ///
    /// # Errors
    /// [`Error::NoCompositor`] or [`Error::NoWindows`].
    pub fn connect() -> Result<Self, Error> {
        Self::over(Connection::connect_to_env().map_err(no_compositor)?)
    }

    /// As [`Session::connect`], over a connected socket.
    ///
    /// # Errors
    /// The same as those of [`Session::connect`].
    pub fn connect_through(socket: UnixStream) -> Result<Self, Error> {
        Self::over(Connection::from_socket(socket).map_err(no_compositor)?)
    }

    fn over(connection: Connection) -> Result<Self, Error> {
        let (globals, mut queue) = registry_queue_init(&connection).map_err(no_compositor)?;
        let mut windows = W::bind(&globals, &queue.handle())?;
        for _ in 0..W::ROUND_TRIPS {
            queue.roundtrip(&mut windows).map_err(lost)?;
        }
        Ok(Session {
            connection,
            queue,
            windows,
        })
    }

    /// Handles the events that were read; whether the focus may have changed.
    fn dispatch(&mut self) -> Result<bool, Error> {
        let dispatched = self.queue.dispatch_pending(&mut self.windows);
        dispatched.map_err(lost)?;
        match self.windows.is_over() {
            true => Err(lost("it has no windows any more")),
            false => Ok(self.windows.take_news()),
        }
    }

    /// Takes the bytes that have arrived from the socket.
    fn read(&mut self) -> Result<(), Error> {
        self.connection.flush().map_err(lost)?;
        // Events have arrived meanwhile and are dispatched first.
        let Some(reading) = self.queue.prepare_read() else {
            return Ok(());
        };
        match reading.read() {
            Ok(_) => Ok(()),
            Err(WaylandError::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(lost(error)),
        }
    }
}

impl<W: Windows> Source for Session<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    /// By its socket.
    fn compositor(&self) -> Option<u32> {
        let fd = self.connection.backend().poll_fd().try_clone_to_owned();
        peer(&UnixStream::from(fd.ok()?))
    }

    fn now(&mut self) -> Result<Screen, Error> {
        self.windows.take_news();
        Ok(Screen {
            focus: self.windows.focus(),
            beside: Vec::new(),
        })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    fn news(&mut self) -> Result<News, Error> {
        // Events that came before the compositor's end go before it.
        if self.dispatch()? {
            return Ok(News::Screen);
        }
        self.read()?;
        Ok(News::of_change(self.dispatch()?))
    }
}

fn no_compositor(error: impl std::fmt::Display) -> Error {
    Error::NoCompositor(error.to_string())
}

/// Whether a state, which is an array of 32-bit words, has `activated`. It is the same number in each protocol.
pub(super) fn is_active(state: &[u8]) -> bool {
    const ACTIVATED: u32 = State::Activated as u32;
    let (words, _) = state.as_chunks::<4>();
    words
        .iter()
        .any(|word| u32::from_ne_bytes(*word) == ACTIVATED)
}

/// Other globals than windows do not matter.
#[derive(Debug)]
pub(super) struct Registry;

impl<W: Windows> Dispatch<WlRegistry, GlobalListContents, W> for Registry {
    fn event(
        _: &mut W,
        _: &WlRegistry,
        _: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<W>,
    ) {
    }
}
