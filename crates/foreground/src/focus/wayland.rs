//! Wayland. Compositors based on wlroots, and others that support panels, tell the app of each
//! window, and whether it is active (`wlr-foreign-toplevel-management-unstable-v1`). They do not
//! tell its process, place or workspace, so no other window counts as visible.

use crate::focus::{
    Awaited, Error, Event, Focus, Screen, Source, Woken, lost, peer, sleep, window,
};
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use wayland_client::backend::ObjectId;
use wayland_client::globals::{BindError, GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::{Connection, Dispatch, EventQueue, Proxy, QueueHandle, event_created_child};
use wayland_protocols_wlr::foreign_toplevel::v1::client::zwlr_foreign_toplevel_handle_v1::{
    self as handle, ZwlrForeignToplevelHandleV1,
};
use wayland_protocols_wlr::foreign_toplevel::v1::client::zwlr_foreign_toplevel_manager_v1::{
    self as manager, ZwlrForeignToplevelManagerV1,
};

/// A session of a Wayland compositor.
#[derive(Debug)]
pub struct Wayland {
    connection: Connection,
    queue: EventQueue<Windows>,
    windows: Windows,
}

impl Wayland {
    /// Connects to the compositor that WAYLAND_DISPLAY names, and subscribes to changes.
    ///
    /// # Errors
    /// [`Error::NoCompositor`] or [`Error::NoWindows`].
    pub fn connect() -> Result<Self, Error> {
        let connection = Connection::connect_to_env();
        Self::over(connection.map_err(|error| Error::NoCompositor(error.to_string()))?)
    }

    /// As [`Wayland::connect`], over a connected socket.
    ///
    /// # Errors
    /// As [`Wayland::connect`].
    pub fn connect_through(socket: UnixStream) -> Result<Self, Error> {
        let connection = Connection::from_socket(socket);
        Self::over(connection.map_err(|error| Error::NoCompositor(error.to_string()))?)
    }

    fn over(connection: Connection) -> Result<Self, Error> {
        let (globals, mut queue) = registry_queue_init::<Windows>(&connection)
            .map_err(|error| Error::NoCompositor(error.to_string()))?;
        let manager =
            globals.bind::<ZwlrForeignToplevelManagerV1, _, _>(&queue.handle(), 1..=3, ());
        match manager {
            Ok(_) => {}
            Err(BindError::NotPresent | BindError::UnsupportedVersion) => {
                return Err(Error::NoWindows);
            }
        }
        let mut windows = Windows::default();
        // The first round trip brings the windows, the second one their properties.
        for _ in 0..2 {
            queue.roundtrip(&mut windows).map_err(lost)?;
        }
        Ok(Wayland {
            connection,
            queue,
            windows,
        })
    }
}

impl Source for Wayland {
    fn name(&self) -> &'static str {
        "wlr-foreign-toplevel-management"
    }

    fn compositor(&self) -> Option<u32> {
        compositor(&self.connection)
    }

    fn now(&mut self) -> Result<Screen, Error> {
        self.windows.news = false;
        Ok(Screen {
            focus: self.windows.focus(),
            beside: Vec::new(),
        })
    }

    fn wait(&mut self, awaited: &Awaited<'_>) -> Result<Event, Error> {
        loop {
            let dispatched = self.queue.dispatch_pending(&mut self.windows);
            dispatched.map_err(lost)?;
            if self.windows.over {
                return Err(lost("it has no windows any more"));
            }
            if self.windows.news {
                return self.now().map(Event::Screen);
            }
            if read(&self.connection, &self.queue, awaited)? == Woken::Awaited {
                return Ok(Event::Other);
            }
        }
    }
}

/// Process of the compositor, by its socket.
pub(super) fn compositor(connection: &Connection) -> Option<u32> {
    let fd = connection.backend().poll_fd().try_clone_to_owned().ok()?;
    peer(&UnixStream::from(fd))
}

/// Reads events, once there are some.
pub(super) fn read<State>(
    connection: &Connection,
    queue: &EventQueue<State>,
    awaited: &Awaited<'_>,
) -> Result<Woken, Error> {
    connection.flush().map_err(lost)?;
    // Events have arrived meanwhile and are dispatched first.
    let Some(reading) = queue.prepare_read() else {
        return Ok(Woken::Session);
    };
    let woken = sleep(reading.connection_fd(), awaited, None)?;
    if woken == Woken::Session {
        reading.read().map_err(lost)?;
    }
    Ok(woken)
}

/// Properties of a window, as far as they were told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Window {
    app: Option<String>,
    active: bool,
}

/// All windows. What the compositor tells of a window takes effect with its event `done`.
#[derive(Debug, Default)]
struct Windows {
    told: HashMap<ObjectId, Window>,
    current: HashMap<ObjectId, Window>,
    news: bool,
    over: bool,
}

impl Windows {
    fn focus(&self) -> Focus {
        let active = self.current.values().find(|window| window.active);
        match active.and_then(|window| window.app.clone()) {
            Some(app) => Focus::Window(window(None, [app.as_str()])),
            None => Focus::Nobody,
        }
    }

    fn done(&mut self, id: &ObjectId) {
        let window = self.told.get(id).cloned().unwrap_or_default();
        let before = self.current.insert(id.clone(), window.clone());
        self.news |= before.as_ref() != Some(&window);
    }

    fn closed(&mut self, id: &ObjectId) {
        self.told.remove(id);
        let before = self.current.remove(id);
        self.news |= before.is_some_and(|window| window.active);
    }
}

/// Whether a state, which is an array of 32-bit words, has `activated`.
pub(super) fn is_active(state: &[u8]) -> bool {
    const ACTIVATED: u32 = handle::State::Activated as u32;
    let (words, _) = state.as_chunks::<4>();
    words
        .iter()
        .any(|word| u32::from_ne_bytes(*word) == ACTIVATED)
}

impl Dispatch<ZwlrForeignToplevelManagerV1, ()> for Windows {
    fn event(
        windows: &mut Self,
        _: &ZwlrForeignToplevelManagerV1,
        event: manager::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let manager::Event::Finished = event {
            windows.over = true;
        }
    }

    event_created_child!(Windows, ZwlrForeignToplevelManagerV1, [
        manager::EVT_TOPLEVEL_OPCODE => (ZwlrForeignToplevelHandleV1, ()),
    ]);
}

impl Dispatch<ZwlrForeignToplevelHandleV1, ()> for Windows {
    fn event(
        windows: &mut Self,
        window: &ZwlrForeignToplevelHandleV1,
        event: handle::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        let id = window.id();
        match event {
            handle::Event::AppId { app_id } => {
                windows.told.entry(id).or_default().app = Some(app_id);
            }
            handle::Event::State { state } => {
                windows.told.entry(id).or_default().active = is_active(&state);
            }
            handle::Event::Done => windows.done(&id),
            handle::Event::Closed => {
                windows.closed(&id);
                window.destroy();
            }
            _ => {}
        }
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for Windows {
    fn event(
        _: &mut Self,
        _: &WlRegistry,
        _: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
    }
}
