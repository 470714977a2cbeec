//! A session with an X server in this test.

use crate::server::{ACTIVE, Play, SUPPORTED, Shown, listen, serve};
use foreground::focus::{Awaited, Beside, Error, Event, Focus, Screen, Source, X11};
use foreground::{Process, Window};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

fn connected(play: Play) -> (Result<X11, Error>, JoinHandle<()>) {
    let (listener, display) = listen();
    let server = serve(listener, play);
    (X11::connect(Some(&display)), server)
}

fn window(pid: u32, names: &[&str]) -> Window {
    Window {
        process: Some(Process::Pid(pid)),
        names: names.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn process(pid: u32) -> Focus {
    Focus::Window(window(pid, &[]))
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
    let mut seen = vec![Event::Screen(x11.now().unwrap())];
    while seen.len() < 4 {
        seen.push(x11.wait(&Awaited::default()).unwrap());
    }
    let expected = [process(1234), Focus::Nobody, Focus::Nobody, process(77)];
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
    let beside = |all: &[(u32, u8)]| Screen {
        focus: process(1234),
        beside: all
            .iter()
            .map(|&(process, percent)| Beside {
                window: window(process, &[]),
                percent,
            })
            .collect(),
    };
    // The window is visible from 700 to 980, and those below it are not.
    assert_eq!(x11.now().unwrap(), beside(&[(77, 28)]));
    // The window was moved to the right.
    let next = x11.wait(&Awaited::default()).unwrap();
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
    let awaited = Awaited {
        fds: &[stop.as_fd()],
        until: None,
    };
    assert_eq!(x11.unwrap().wait(&awaited).unwrap(), Event::Other);
}

#[test]
fn a_window_has_its_names_and_a_panel_is_the_desktop() {
    let play = Play {
        supported: vec![ACTIVE],
        focused: vec![(7, Some(1234)), (4, Some(44)), (8, Some(9))],
        windows: vec![
            Shown {
                docked: true,
                ..shown(4, 44, 0, 0)
            },
            Shown {
                class: "navigator\0firefox\0",
                ..shown(7, 1234, 0, 1000)
            },
        ],
        ..Play::default()
    };
    let (x11, _server) = connected(play);
    let mut x11 = x11.unwrap();
    let firefox = Focus::Window(window(1234, &["firefox"]));
    assert_eq!(x11.now().unwrap().focus, firefox);
    let mut next = || match x11.wait(&Awaited::default()).unwrap() {
        Event::Screen(screen) => screen.focus,
        Event::Other => panic!("nothing else is awaited"),
    };
    assert_eq!(next(), Focus::Desktop);
    assert_eq!(next(), process(9));
}

/// Before 3.16.25 it sets no active window, although it says so; later each server has its own. Both
/// are as here.
#[test]
fn gamescope_tells_by_its_own_properties() {
    const STEAM: u32 = 769;
    // A window of Steam's and one of the game have the same number, on two servers.
    let windows = vec![21, STEAM, 100, 21, 570, 200, 22, 0, 300];
    let play = Play {
        supported: vec![ACTIVE],
        focused: vec![(21, Some(100))],
        gamescope: vec![
            (Some(21), STEAM, windows.clone()),
            (Some(21), 570, windows.clone()),
            (None, 0, Vec::new()),
            (Some(22), 0, windows),
        ],
        ..Play::default()
    };
    let (x11, _server) = connected(play);
    let mut x11 = x11.unwrap();
    assert!(x11.name().contains("gamescope"));
    let mut seen = vec![x11.now().unwrap().focus];
    while seen.len() < 4 {
        if let Event::Screen(screen) = x11.wait(&Awaited::default()).unwrap() {
            seen.push(screen.focus);
        }
    }
    let steam = Focus::Window(window(100, &["steam"]));
    let game = Focus::Window(window(200, &["steam_app_570"]));
    assert_eq!(seen, [steam, game, Focus::Nobody, process(300)]);
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
