//! COSMIC. `ext-foreign-toplevel-list` has the app of each window, and COSMIC's own extension of it
//! (`cosmic-toplevel-info`, from version 2 on) whether the window is active.

use crate::focus::wayland::{Registry, Session, Windows, is_active};
use crate::focus::{Error, Focus, window};
use protocol::zcosmic_toplevel_handle_v1::{self as state, ZcosmicToplevelHandleV1};
use protocol::zcosmic_toplevel_info_v1::{self as info, ZcosmicToplevelInfoV1};
use std::collections::HashMap;
use wayland_client::backend::ObjectId;
use wayland_client::globals::{GlobalList, GlobalListContents};
use wayland_client::protocol::wl_registry::WlRegistry;
use wayland_client::{
    Connection, Dispatch, Proxy, QueueHandle, delegate_dispatch, event_created_child,
};
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
pub type Cosmic = Session<Handles>;

/// Properties of a window, as far as they were told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    app: String,
    active: bool,
}

/// All windows by their handles in the list. Properties take effect with an event `done`, for all windows
/// together: one loses the focus as another gets it.
#[derive(Debug)]
pub struct Handles {
    info: ZcosmicToplevelInfoV1,
    told: HashMap<ObjectId, Told>,
    current: HashMap<ObjectId, Told>,
    news: bool,
    over: bool,
}

impl Windows for Handles {
    const NAME: &str = "COSMIC (cosmic-toplevel-info)";
    // The windows; their properties, and a question for the state of each; the states.
    const ROUND_TRIPS: usize = 3;

    /// The list makes windows known, of which the other object is asked.
    fn bind(globals: &GlobalList, queue: &QueueHandle<Self>) -> Result<Self, Error> {
        let info = globals.bind::<ZcosmicToplevelInfoV1, _, _>(queue, 2..=3, ());
        let info = info.map_err(|_| Error::NoWindows)?;
        let list = globals.bind::<ExtForeignToplevelListV1, _, _>(queue, 1..=1, ());
        list.map_err(|_| Error::NoWindows)?;
        Ok(Handles {
            info,
            told: HashMap::new(),
            current: HashMap::new(),
            news: false,
            over: false,
        })
    }

    fn focus(&self) -> Focus {
        match self.current.values().find(|window| window.active) {
            Some(active) => Focus::Window(window(None, [active.app.as_str()])),
            None => Focus::Nobody,
        }
    }

    fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

impl Handles {
    fn done(&mut self) {
        self.news |= self.told != self.current;
        self.current.clone_from(&self.told);
    }
}

impl Dispatch<ExtForeignToplevelListV1, ()> for Handles {
    fn event(
        handles: &mut Self,
        _: &ExtForeignToplevelListV1,
        event: list::Event,
        (): &(),
        _: &Connection,
        queue: &QueueHandle<Self>,
    ) {
        match event {
            list::Event::Toplevel { toplevel } => {
                let id = toplevel.id();
                handles.told.entry(id.clone()).or_default();
                handles.info.get_cosmic_toplevel(&toplevel, queue, id);
            }
            list::Event::Finished => handles.over = true,
            _ => {}
        }
    }

    event_created_child!(Handles, ExtForeignToplevelListV1, [
        list::EVT_TOPLEVEL_OPCODE => (ExtForeignToplevelHandleV1, ()),
    ]);
}

impl Dispatch<ExtForeignToplevelHandleV1, ()> for Handles {
    fn event(
        handles: &mut Self,
        window: &ExtForeignToplevelHandleV1,
        event: handle::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            handle::Event::AppId { app_id } => {
                handles.told.entry(window.id()).or_default().app = app_id;
            }
            handle::Event::Done => handles.done(),
            handle::Event::Closed => {
                handles.told.remove(&window.id());
                handles.done();
                window.destroy();
            }
            _ => {}
        }
    }
}

impl Dispatch<ZcosmicToplevelHandleV1, ObjectId> for Handles {
    fn event(
        handles: &mut Self,
        _: &ZcosmicToplevelHandleV1,
        event: state::Event,
        window: &ObjectId,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let state::Event::State { state } = event
            && let Some(told) = handles.told.get_mut(window)
        {
            told.active = is_active(&state);
        }
    }
}

impl Dispatch<ZcosmicToplevelInfoV1, ()> for Handles {
    fn event(
        handles: &mut Self,
        _: &ZcosmicToplevelInfoV1,
        event: info::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let info::Event::Done = event {
            handles.done();
        }
    }
}

delegate_dispatch!(Handles: [WlRegistry: GlobalListContents] => Registry);
