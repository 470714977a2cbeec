//! A session on an X server that this test plays.

mod server;

use focus::{Error, Event, Focus, Source, X11};
use server::{ACTIVE, Play, SUPPORTED, listen, serve};
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
    };
    let (x11, server) = connected(play);
    let mut x11 = x11.unwrap();
    let (stop, _kept) = UnixStream::pair().unwrap();
    let mut seen = vec![Event::Focus(x11.now().unwrap())];
    while seen.len() < 4 {
        seen.push(x11.wait(stop.as_fd()).unwrap());
    }
    let expected = [
        Focus::Process(1234),
        Focus::Nobody,
        Focus::Nobody,
        Focus::Process(77),
    ];
    assert_eq!(seen, expected.map(Event::Focus));
    drop(x11);
    server.join().unwrap();
}

#[test]
fn a_stop_ends_the_waiting() {
    let play = Play {
        supported: vec![ACTIVE],
        focused: vec![(7, Some(1234))],
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
        focused: Vec::new(),
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
