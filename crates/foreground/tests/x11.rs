//! A session with an X server in this test.

use crate::server::{ACTIVE, Play, SUPPORTED, Shown, listen, serve};
use foreground::focus::{Beside, Error, Event, Focus, Screen, Source, X11};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

fn connected(play: Play) -> (Result<X11, Error>, JoinHandle<()>) {
    let (listener, display) = listen();
    let server = serve(listener, play);
    (X11::connect(Some(&display)), server)
}

#[test]
fn who_gets_the_focus_is_told_with_its_process() {
    let play = Play {
        supported: vec![SUPPORTED, ACTIVE],
        focused: vec![(7, Some(1234)), (0, None), (8, None), (9, Some(77))],
        ..Play::default()
    };
    let (x11, server) = connected(play);
    let mut x11 = x11.unwrap();
    let (stop, _kept) = UnixStream::pair().unwrap();
    let mut seen = vec![Event::Screen(x11.now().unwrap())];
    while seen.len() < 4 {
        seen.push(x11.wait(stop.as_fd()).unwrap());
    }
    let expected = [
        Focus::Process(1234),
        Focus::Nobody,
        Focus::Nobody,
        Focus::Process(77),
    ];
    let alone = |focus| Screen {
        focus,
        beside: Vec::new(),
    };
    assert_eq!(seen, expected.map(alone).map(Event::Screen));
    drop(x11);
    server.join().unwrap();
}

/// The window of a process, on a screen of 1000 by 800.
fn shown(window: u32, process: u32, x: i16, width: u16) -> Shown {
    Shown {
        window,
        process,
        x,
        width,
        height: 800,
        ..Shown::default()
    }
}

#[test]
fn other_windows_are_visible_by_their_area() {
    let player = shown(9, 77, 600, 400);
    let play = Play {
        supported: vec![ACTIVE],
        focused: vec![(7, Some(1234))],
        windows: vec![
            shown(5, 55, 0, 1000),
            Shown {
                hidden: true,
                ..shown(6, 66, 0, 1000)
            },
            player.clone(),
            shown(7, 1234, 0, 700),
            // Another window of the active app.
            shown(8, 1234, 980, 20),
            Shown {
                docked: true,
                ..shown(4, 44, 900, 100)
            },
        ],
        moved: Some(Shown {
            x: 800,
            ..player.clone()
        }),
        ..Play::default()
    };
    let (x11, server) = connected(play);
    let mut x11 = x11.unwrap();
    let (stop, _kept) = UnixStream::pair().unwrap();
    let beside = |all: &[(u32, u8)]| Screen {
        focus: Focus::Process(1234),
        beside: all
            .iter()
            .map(|&(process, percent)| Beside {
                whose: Focus::Process(process),
                percent,
            })
            .collect(),
    };
    // The window is visible from 700 to 980, and those below it are not.
    assert_eq!(x11.now().unwrap(), beside(&[(77, 28)]));
    // The window was moved to the right.
    let next = x11.wait(stop.as_fd()).unwrap();
    assert_eq!(next, Event::Screen(beside(&[(55, 10), (77, 18)])));
    drop(x11);
    server.join().unwrap();
}

#[test]
fn a_server_that_knows_no_processes_is_named() {
    let play = Play {
        supported: vec![ACTIVE],
        old: true,
        ..Play::default()
    };
    let (x11, _server) = connected(play);
    let error = x11.unwrap_err();
    assert!(matches!(error, Error::NoProcesses), "{error}");
}

#[test]
fn a_stop_ends_the_waiting() {
    let play = Play {
        supported: vec![ACTIVE],
        focused: vec![(7, Some(1234))],
        ..Play::default()
    };
    let (x11, _server) = connected(play);
    let (stop, mut signalled) = UnixStream::pair().unwrap();
    signalled.write_all(b"x").unwrap();
    assert_eq!(x11.unwrap().wait(stop.as_fd()).unwrap(), Event::Stop);
}

#[test]
fn a_window_manager_that_tells_nothing_is_named() {
    let play = Play {
        supported: vec![SUPPORTED],
        ..Play::default()
    };
    let (x11, _server) = connected(play);
    assert!(matches!(x11, Err(Error::NoManager)));
}

#[test]
fn without_a_server_there_is_a_sentence() {
    let error = X11::connect(Some("nowhere")).unwrap_err();
    assert!(matches!(error, Error::NoServer(_)), "{error}");
    assert!(error.to_string().contains("DISPLAY"));
}

#[test]
fn a_server_that_ends_is_told() {
    let (listener, display) = listen();
    let gone = thread::spawn(move || drop(listener.accept().unwrap()));
    let error = X11::connect(Some(&display)).unwrap_err();
    assert!(matches!(error, Error::NoServer(_)), "{error}");
    gone.join().unwrap();
}
