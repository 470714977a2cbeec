//! A session with a compositor in this test.

use crate::compositor::{ACTIVATED, MAXIMIZED, Say, play};
use foreground::Window;
use foreground::focus::{Awaited, Error, Event, Focus, Screen, Source, Wayland};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};

fn connected(first: Vec<Say>, tells: bool) -> (Result<Wayland, Error>, Sender<Say>) {
    let (own, other) = UnixStream::pair().unwrap();
    let (say, said) = channel();
    play(other, first, said, tells);
    (Wayland::connect_through(own), say)
}

fn screen(focus: Focus) -> Screen {
    Screen {
        focus,
        beside: Vec::new(),
    }
}

fn named(id: &str) -> Focus {
    Focus::Window(Window {
        process: None,
        names: vec![id.to_owned()],
    })
}

fn app(id: &str) -> Event {
    Event::Screen(screen(named(id)))
}

#[test]
fn whichever_window_is_active_is_told_by_its_apps_id() {
    let first = vec![
        Say::Window("foot", &[]),
        Say::Window("org.game", &[MAXIMIZED, ACTIVATED]),
    ];
    let (session, say) = connected(first, true);
    let mut session = session.unwrap();
    let (stop, mut signalled) = UnixStream::pair().unwrap();
    let game = screen(named("org.game"));
    assert_eq!(session.now().unwrap(), game);
    let mut next = |what: Say| {
        say.send(what).unwrap();
        let awaited = Awaited {
            fds: &[stop.as_fd()],
            until: None,
        };
        session.wait(&awaited).unwrap()
    };
    let nobody = Event::Screen(screen(Focus::Nobody));
    assert_eq!(next(Say::Window("org.game", &[MAXIMIZED])), nobody);
    assert_eq!(next(Say::Window("foot", &[ACTIVATED])), app("foot"));
    assert_eq!(next(Say::Closed("foot")), nobody);
    assert_eq!(next(Say::Window("org.game", &[ACTIVATED])), app("org.game"));
    signalled.write_all(b"x").unwrap();
    let awaited = Awaited {
        fds: &[stop.as_fd()],
        until: None,
    };
    assert_eq!(session.wait(&awaited).unwrap(), Event::Other);
}

#[test]
fn a_session_that_ends_is_told() {
    let (session, say) = connected(vec![Say::Window("foot", &[ACTIVATED])], true);
    let mut session = session.unwrap();
    drop(say);
    let error = loop {
        match session.wait(&Awaited::default()) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Lost(_)), "{error}");
}

#[test]
fn a_compositor_that_tells_nothing_is_named() {
    let (session, _say) = connected(Vec::new(), false);
    assert!(matches!(session, Err(Error::NoWindows)));
}
