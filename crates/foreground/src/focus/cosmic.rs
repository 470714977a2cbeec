//! COSMIC. `ext-foreign-toplevel-list` has the app of each window, and COSMIC's own extension of it
//! (`cosmic-toplevel-info`, from version 2 on) whether the window is active.

use crate::focus::wayland::{compositor, is_active, read};
use crate::focus::{Awaited, Error, Event, Focus, Screen, Source, Woken, lost, window};
use protocol::zcosmic_toplevel_handle_v1::{self as state, ZcosmicToplevelHandleV1};
use protocol::zcosmic_toplevel_info_v1::{self as info, ZcosmicToplevelInfoV1};
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use wayland_client::backend::ObjectId;
use wayland_client::globals::{GlobalList, GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::{Connection, Dispatch, EventQueue, Proxy, QueueHandle, event_created_child};
use wayland_protocols::ext::foreign_toplevel_list::v1::client::ext_foreign_toplevel_handle_v1::{
    self as handle, ExtForeignToplevelHandleV1,
};
use wayland_protocols::ext::foreign_toplevel_list::v1::client::ext_foreign_toplevel_list_v1::{
    self as list, ExtForeignToplevelListV1,
};

/// The protocol, of which the crate for it has a licence that does not go with this one's.
#[allow(
    missing_docs,
    missing_debug_implementations,
    clippy::all,
    clippy::pedantic,
    unused
)]
mod protocol {
    use wayland_client;
    use wayland_client::protocol::*;
    use wayland_protocols::ext::foreign_toplevel_list::v1::client::*;

    pub mod __interfaces {
        use wayland_client::protocol::__interfaces::*;
        use wayland_protocols::ext::foreign_toplevel_list::v1::client::__interfaces::*;
        wayland_scanner::generate_interfaces!("protocols/cosmic-toplevel-info.xml");
    }
    use self::__interfaces::*;
    wayland_scanner::generate_client_code!("protocols/cosmic-toplevel-info.xml");
}

/// A session of COSMIC.
#[derive(Debug)]
pub struct Cosmic {
    connection: Connection,
    queue: EventQueue<Windows>,
    windows: Windows,
}

impl Cosmic {
    /// Connects to the compositor that WAYLAND_DISPLAY names, and subscribes to changes.
    ///
    /// # Errors
    /// [`Error::NoCompositor`] or [`Error::NoWindows`].
    pub fn connect() -> Result<Self, Error> {
        let connection = Connection::connect_to_env();
        Self::over(connection.map_err(|error| Error::NoCompositor(error.to_string()))?)
    }

    /// As [`Cosmic::connect`], over a connected socket.
    ///
    /// # Errors
    /// As [`Cosmic::connect`].
    pub fn connect_through(socket: UnixStream) -> Result<Self, Error> {
        let connection = Connection::from_socket(socket);
        Self::over(connection.map_err(|error| Error::NoCompositor(error.to_string()))?)
    }

    fn over(connection: Connection) -> Result<Self, Error> {
        let (globals, mut queue) = registry_queue_init::<Windows>(&connection)
            .map_err(|error| Error::NoCompositor(error.to_string()))?;
        let mut windows = Windows {
            info: bind(&globals, &queue.handle())?,
            told: HashMap::new(),
            current: HashMap::new(),
            news: false,
            over: false,
        };
        // The windows; their properties, and a question for the state of each; the states.
        for _ in 0..3 {
            queue.roundtrip(&mut windows).map_err(lost)?;
        }
        Ok(Cosmic {
            connection,
            queue,
            windows,
        })
    }
}

/// The list makes windows known, of which the other object is asked.
fn bind(
    globals: &GlobalList,
    queue: &QueueHandle<Windows>,
) -> Result<ZcosmicToplevelInfoV1, Error> {
    let info = globals.bind::<ZcosmicToplevelInfoV1, _, _>(queue, 2..=3, ());
    let info = info.map_err(|_| Error::NoWindows)?;
    let list = globals.bind::<ExtForeignToplevelListV1, _, _>(queue, 1..=1, ());
    list.map_err(|_| Error::NoWindows)?;
    Ok(info)
}

impl Source for Cosmic {
    fn name(&self) -> &'static str {
        "COSMIC (cosmic-toplevel-info)"
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

/// Properties of a window, as far as they were told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    app: String,
    active: bool,
}

/// All windows by their handles in the list. Properties take effect with an event `done`, for all windows
/// together: one loses the focus as another gets it.
#[derive(Debug)]
struct Windows {
    info: ZcosmicToplevelInfoV1,
    told: HashMap<ObjectId, Told>,
    current: HashMap<ObjectId, Told>,
    news: bool,
    over: bool,
}

impl Windows {
    fn focus(&self) -> Focus {
        match self.current.values().find(|window| window.active) {
            Some(active) => Focus::Window(window(None, [active.app.as_str()])),
            None => Focus::Nobody,
        }
    }

    fn done(&mut self) {
        self.news |= self.told != self.current;
        self.current.clone_from(&self.told);
    }
}

impl Dispatch<ExtForeignToplevelListV1, ()> for Windows {
    fn event(
        windows: &mut Self,
        _: &ExtForeignToplevelListV1,
        event: list::Event,
        (): &(),
        _: &Connection,
        queue: &QueueHandle<Self>,
    ) {
        match event {
            list::Event::Toplevel { toplevel } => {
                let id = toplevel.id();
                windows.told.entry(id.clone()).or_default();
                windows.info.get_cosmic_toplevel(&toplevel, queue, id);
            }
            list::Event::Finished => windows.over = true,
            _ => {}
        }
    }

    event_created_child!(Windows, ExtForeignToplevelListV1, [
        list::EVT_TOPLEVEL_OPCODE => (ExtForeignToplevelHandleV1, ()),
    ]);
}

impl Dispatch<ExtForeignToplevelHandleV1, ()> for Windows {
    fn event(
        windows: &mut Self,
        window: &ExtForeignToplevelHandleV1,
        event: handle::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            handle::Event::AppId { app_id } => {
                windows.told.entry(window.id()).or_default().app = app_id;
            }
            handle::Event::Done => windows.done(),
            handle::Event::Closed => {
                windows.told.remove(&window.id());
                windows.done();
                window.destroy();
            }
            _ => {}
        }
    }
}

impl Dispatch<ZcosmicToplevelHandleV1, ObjectId> for Windows {
    fn event(
        windows: &mut Self,
        _: &ZcosmicToplevelHandleV1,
        event: state::Event,
        window: &ObjectId,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let state::Event::State { state } = event
            && let Some(told) = windows.told.get_mut(window)
        {
            told.active = is_active(&state);
        }
    }
}

impl Dispatch<ZcosmicToplevelInfoV1, ()> for Windows {
    fn event(
        windows: &mut Self,
        _: &ZcosmicToplevelInfoV1,
        event: info::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let info::Event::Done = event {
            windows.done();
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
