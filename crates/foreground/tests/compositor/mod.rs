//! A Wayland compositor with the parts of the protocols that the tests need.
// Each test file is a crate of its own and uses only a part of this module.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wayland_protocols_wlr::foreign_toplevel::v1::server::zwlr_foreign_toplevel_handle_v1::{
    self as handle, ZwlrForeignToplevelHandleV1,
};
use wayland_protocols_wlr::foreign_toplevel::v1::server::zwlr_foreign_toplevel_manager_v1::{
    self as manager, ZwlrForeignToplevelManagerV1,
};
use wayland_server::backend::ClientData;
use wayland_server::{
    Client, DataInit, Dispatch, Display, DisplayHandle, GlobalDispatch, New, Resource,
};

pub const MAXIMIZED: u32 = 0;
pub const ACTIVATED: u32 = 2;

/// An event that the test has the compositor send.
pub enum Say {
    /// A window of the app has these states.
    Window(&'static str, &'static [u32]),
    /// The window of the app was closed.
    Closed(&'static str),
}

#[derive(Default)]
struct Compositor {
    panel: Option<(ZwlrForeignToplevelManagerV1, Client)>,
    windows: BTreeMap<&'static str, ZwlrForeignToplevelHandleV1>,
}

impl Compositor {
    fn say(&mut self, display: &DisplayHandle, what: &Say) {
        match what {
            Say::Window(app, states) => {
                let (manager, client) = self.panel.as_ref().unwrap();
                let window = self.windows.entry(app).or_insert_with(|| {
                    let window = client
                        .create_resource::<ZwlrForeignToplevelHandleV1, (), Compositor>(
                            display,
                            manager.version(),
                            (),
                        )
                        .unwrap();
                    manager.toplevel(&window);
                    window.title("a title".to_owned());
                    window.app_id((*app).to_owned());
                    window
                });
                window.state(states.iter().flat_map(|it| it.to_ne_bytes()).collect());
                window.done();
            }
            Say::Closed(app) => self.windows.remove(app).unwrap().closed(),
        }
    }
}

impl GlobalDispatch<ZwlrForeignToplevelManagerV1, ()> for Compositor {
    fn bind(
        compositor: &mut Self,
        _: &DisplayHandle,
        client: &Client,
        manager: New<ZwlrForeignToplevelManagerV1>,
        (): &(),
        init: &mut DataInit<'_, Self>,
    ) {
        compositor.panel = Some((init.init(manager, ()), client.clone()));
    }
}

impl Dispatch<ZwlrForeignToplevelManagerV1, ()> for Compositor {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &ZwlrForeignToplevelManagerV1,
        _: manager::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}

impl Dispatch<ZwlrForeignToplevelHandleV1, ()> for Compositor {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &ZwlrForeignToplevelHandleV1,
        _: handle::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}

struct Nothing;
impl ClientData for Nothing {}

/// Runs a compositor until the other end of `said` is closed. `first` is sent when the client asks
/// for windows.
pub fn play(
    socket: UnixStream,
    first: Vec<Say>,
    said: Receiver<Say>,
    tells: bool,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut display = Display::<Compositor>::new().unwrap();
        let mut handle = display.handle();
        if tells {
            handle.create_global::<Compositor, ZwlrForeignToplevelManagerV1, ()>(3, ());
        }
        handle.insert_client(socket, Arc::new(Nothing)).unwrap();
        let mut compositor = Compositor::default();
        let mut first = Some(first);
        loop {
            display.dispatch_clients(&mut compositor).unwrap();
            if compositor.panel.is_some() {
                for what in first.take().into_iter().flatten() {
                    compositor.say(&handle, &what);
                }
            }
            match said.try_recv() {
                Ok(what) => compositor.say(&handle, &what),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => thread::sleep(Duration::from_millis(1)),
            }
            display.flush_clients().unwrap();
        }
    })
}
