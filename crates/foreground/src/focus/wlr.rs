//! Compositors based on wlroots, and others that support panels, tell the app of each window, and whether
//! it is active (`wlr-foreign-toplevel-management-unstable-v1`). They do not tell its process, place or
//! workspace, so no other window counts as visible.

use crate::focus::wayland::{Registry, Session, Windows, is_active};
use crate::focus::{Error, Focus, window};
use std::collections::HashMap;
use wayland_client::backend::ObjectId;
use wayland_client::globals::{GlobalList, GlobalListContents};
use wayland_client::protocol::wl_registry::WlRegistry;
use wayland_client::{
    Connection, Dispatch, Proxy, QueueHandle, delegate_dispatch, event_created_child,
};
use wayland_protocols_wlr::foreign_toplevel::v1::client::zwlr_foreign_toplevel_handle_v1::{
    self as handle, ZwlrForeignToplevelHandleV1,
};
use wayland_protocols_wlr::foreign_toplevel::v1::client::zwlr_foreign_toplevel_manager_v1::{
    self as manager, ZwlrForeignToplevelManagerV1,
};

/// A session of a compositor with this protocol.
pub type Wayland = Session<Toplevels>;

/// Properties of a window, as far as they were told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Window {
    app: Option<String>,
    active: bool,
}

/// All toplevels. What the compositor tells of a window takes effect with its event `done`.
#[derive(Debug, Default)]
pub struct Toplevels {
    told: HashMap<ObjectId, Window>,
    current: HashMap<ObjectId, Window>,
    news: bool,
    over: bool,
}

impl Windows for Toplevels {
    const NAME: &str = "wlr-foreign-toplevel-management";
    // The windows; their properties.
    const ROUND_TRIPS: usize = 2;

    fn bind(globals: &GlobalList, queue: &QueueHandle<Self>) -> Result<Self, Error> {
        let manager = globals.bind::<ZwlrForeignToplevelManagerV1, _, _>(queue, 1..=3, ());
        manager.map_err(|_| Error::NoWindows)?;
        Ok(Toplevels::default())
    }

    fn focus(&self) -> Focus {
        let active = self.current.values().find(|window| window.active);
        match active.and_then(|window| window.app.clone()) {
            Some(app) => Focus::Window(window(None, [app.as_str()])),
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

impl Toplevels {
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

impl Dispatch<ZwlrForeignToplevelManagerV1, ()> for Toplevels {
    fn event(
        toplevels: &mut Self,
        _: &ZwlrForeignToplevelManagerV1,
        event: manager::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let manager::Event::Finished = event {
            toplevels.over = true;
        }
    }

    event_created_child!(Toplevels, ZwlrForeignToplevelManagerV1, [
        manager::EVT_TOPLEVEL_OPCODE => (ZwlrForeignToplevelHandleV1, ()),
    ]);
}

impl Dispatch<ZwlrForeignToplevelHandleV1, ()> for Toplevels {
    fn event(
        toplevels: &mut Self,
        window: &ZwlrForeignToplevelHandleV1,
        event: handle::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        let id = window.id();
        match event {
            handle::Event::AppId { app_id } => {
                toplevels.told.entry(id).or_default().app = Some(app_id);
            }
            handle::Event::State { state } => {
                toplevels.told.entry(id).or_default().active = is_active(&state);
            }
            handle::Event::Done => toplevels.done(&id),
            handle::Event::Closed => {
                toplevels.closed(&id);
                window.destroy();
            }
            _ => {}
        }
    }
}

delegate_dispatch!(Toplevels: [WlRegistry: GlobalListContents] => Registry);
