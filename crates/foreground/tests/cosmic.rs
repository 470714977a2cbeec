//! COSMIC, pretended: it speaks the protocols as its sources do.

use foreground::Window;
use foreground::focus::{Awaited, Cosmic, Error, Event, Focus, Source};
use protocol::zcosmic_toplevel_handle_v1::{self as state, ZcosmicToplevelHandleV1};
use protocol::zcosmic_toplevel_info_v1::{self as info, ZcosmicToplevelInfoV1};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;
use wayland_protocols::ext::foreign_toplevel_list::v1::server::ext_foreign_toplevel_handle_v1::{
    self as handle, ExtForeignToplevelHandleV1,
};
use wayland_protocols::ext::foreign_toplevel_list::v1::server::ext_foreign_toplevel_list_v1::{
    self as list, ExtForeignToplevelListV1,
};
use wayland_server::backend::ClientData;
use wayland_server::{
    Client, DataInit, Dispatch, Display, DisplayHandle, GlobalDispatch, New, Resource,
};

#[allow(missing_docs, clippy::all, unused)]
mod protocol {
    use wayland_protocols::ext::foreign_toplevel_list::v1::server::*;
    use wayland_server;
    use wayland_server::protocol::*;

    pub mod __interfaces {
        use wayland_protocols::ext::foreign_toplevel_list::v1::server::__interfaces::*;
        use wayland_server::protocol::__interfaces::*;
        wayland_scanner::generate_interfaces!("protocols/cosmic-toplevel-info.xml");
    }
    use self::__interfaces::*;
    wayland_scanner::generate_server_code!("protocols/cosmic-toplevel-info.xml");
}

/// Changes of windows that become known together: app, and whether it is active; `None` if it is closed.
type Change = Vec<(&'static str, Option<bool>)>;

#[derive(Default)]
struct Compositor {
    list: Option<(ExtForeignToplevelListV1, Client)>,
    info: Option<ZcosmicToplevelInfoV1>,
    windows: BTreeMap<&'static str, ExtForeignToplevelHandleV1>,
    states: Vec<(ExtForeignToplevelHandleV1, ZcosmicToplevelHandleV1)>,
    active: BTreeMap<&'static str, bool>,
}

impl Compositor {
    fn opens(&mut self, display: &DisplayHandle, app: &'static str) {
        let (list, client) = self.list.as_ref().unwrap();
        let window = client.create_resource::<ExtForeignToplevelHandleV1, (), Compositor>(
            display,
            list.version(),
            (),
        );
        let window = window.unwrap();
        list.toplevel(&window);
        window.identifier(app.to_owned());
        window.app_id(app.to_owned());
        window.done();
        self.windows.insert(app, window);
    }

    fn changes(&mut self, display: &DisplayHandle, change: Change) {
        for (app, active) in change {
            match active {
                Some(active) => {
                    self.active.insert(app, active);
                    if !self.windows.contains_key(app) {
                        self.opens(display, app);
                    }
                    self.tell_state(app);
                }
                None => self.windows.remove(app).unwrap().closed(),
            }
        }
        self.info.as_ref().unwrap().done();
    }

    fn tell_state(&self, app: &str) {
        let mut states = self.states.iter();
        if let Some((_, state)) = states.find(|(window, _)| *window == self.windows[app]) {
            let word: &[u32] = if self.active[app] { &[2] } else { &[0] };
            state.state(word.iter().flat_map(|it| it.to_ne_bytes()).collect());
        }
    }
}

impl GlobalDispatch<ExtForeignToplevelListV1, ()> for Compositor {
    fn bind(
        compositor: &mut Self,
        _: &DisplayHandle,
        client: &Client,
        list: New<ExtForeignToplevelListV1>,
        (): &(),
        init: &mut DataInit<'_, Self>,
    ) {
        compositor.list = Some((init.init(list, ()), client.clone()));
    }
}

impl GlobalDispatch<ZcosmicToplevelInfoV1, ()> for Compositor {
    fn bind(
        compositor: &mut Self,
        _: &DisplayHandle,
        _: &Client,
        info: New<ZcosmicToplevelInfoV1>,
        (): &(),
        init: &mut DataInit<'_, Self>,
    ) {
        compositor.info = Some(init.init(info, ()));
    }
}

impl Dispatch<ZcosmicToplevelInfoV1, ()> for Compositor {
    fn request(
        compositor: &mut Self,
        _: &Client,
        info: &ZcosmicToplevelInfoV1,
        request: info::Request,
        (): &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, Self>,
    ) {
        if let info::Request::GetCosmicToplevel {
            cosmic_toplevel,
            foreign_toplevel,
        } = request
        {
            let state = init.init(cosmic_toplevel, ());
            compositor.states.push((foreign_toplevel.clone(), state));
            let mut windows = compositor.windows.iter();
            let (app, _) = windows.find(|(_, it)| **it == foreign_toplevel).unwrap();
            compositor.tell_state(app);
            info.done();
        }
    }
}

impl Dispatch<ZcosmicToplevelHandleV1, ()> for Compositor {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &ZcosmicToplevelHandleV1,
        _: state::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}

impl Dispatch<ExtForeignToplevelListV1, ()> for Compositor {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &ExtForeignToplevelListV1,
        _: list::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}

impl Dispatch<ExtForeignToplevelHandleV1, ()> for Compositor {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &ExtForeignToplevelHandleV1,
        _: handle::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}

struct Nothing;
impl ClientData for Nothing {}

fn play(socket: UnixStream, first: Change, said: Receiver<Change>, version: u32) {
    let mut display = Display::<Compositor>::new().unwrap();
    let mut handle = display.handle();
    handle.create_global::<Compositor, ExtForeignToplevelListV1, ()>(1, ());
    handle.create_global::<Compositor, ZcosmicToplevelInfoV1, ()>(version, ());
    handle.insert_client(socket, Arc::new(Nothing)).unwrap();
    let mut compositor = Compositor::default();
    let mut first = Some(first);
    loop {
        display.dispatch_clients(&mut compositor).unwrap();
        if compositor.list.is_some() && compositor.info.is_some() {
            first
                .take()
                .into_iter()
                .for_each(|it| compositor.changes(&handle, it));
        }
        match said.try_recv() {
            Ok(change) => compositor.changes(&handle, change),
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => thread::sleep(Duration::from_millis(1)),
        }
        display.flush_clients().unwrap();
    }
}

fn connected(first: Change, version: u32) -> (Result<Cosmic, Error>, Sender<Change>) {
    let (own, other) = UnixStream::pair().unwrap();
    let (say, said) = channel();
    thread::spawn(move || play(other, first, said, version));
    (Cosmic::connect_through(own), say)
}

fn named(id: &str) -> Focus {
    Focus::Window(Window {
        process: None,
        names: vec![id.to_owned()],
    })
}

#[test]
fn whichever_window_is_active_is_told_by_its_apps_id() {
    for version in [2, 3] {
        let first = vec![("foot", Some(false)), ("org.game", Some(true))];
        let (session, say) = connected(first, version);
        let mut session = session.unwrap();
        assert_eq!(session.now().unwrap().focus, named("org.game"));
        let mut focus_after = |change: Change, wanted: Focus| {
            say.send(change).unwrap();
            loop {
                let Event::Screen(screen) = session.wait(&Awaited::default()).unwrap() else {
                    panic!("nothing else is awaited");
                };
                if screen.focus == wanted {
                    return;
                }
            }
        };
        // Both change at once: nobody is without the focus between.
        focus_after(
            vec![("org.game", Some(false)), ("foot", Some(true))],
            named("foot"),
        );
        focus_after(vec![("foot", None)], Focus::Nobody);
        focus_after(vec![("mail", Some(true))], named("mail"));
        drop(say);
        while session.wait(&Awaited::default()).is_ok() {}
    }
}

#[test]
fn a_first_version_that_had_its_own_windows_is_named() {
    let (session, _say) = connected(Vec::new(), 1);
    assert!(matches!(session, Err(Error::NoWindows)));
}
