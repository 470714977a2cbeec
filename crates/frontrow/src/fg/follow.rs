//! `frontrow fg follow`: a session tells frontrowd which app has the focus.

mod attribute;
mod explain;
mod resume;
mod seen;
mod teller;

use super::stop_signal;
use crate::exit::{Exit, Failure};
use clap::Args;
use explain::Explainer;
use foreground::Finder;
use foreground::focus::{
    Awaited, Cosmic, Error, Event, Hyprland, KWin, Niri, Screen, Source, Sway, Wayland, X11,
};
use resume::Resumer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use seen::Seen;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use teller::Teller;

/// Time for which a compositor that has ended is awaited, and between two attempts.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(10);
const ATTEMPTS_APART: Duration = Duration::from_millis(250);

#[derive(Args)]
pub struct Options {
    /// The X server to ask [default: the Wayland compositor that WAYLAND_DISPLAY names, or else
    /// the X server that DISPLAY does]
    #[arg(long)]
    display: Option<String>,
    /// Tell frontrowd nothing, but print each window that gets the focus, the units that it is taken
    /// for, and why. It may run beside another `frontrow fg follow`
    #[arg(long)]
    explain: bool,
    /// Load the pages of an app that has a profile of `frontrow launch record` and were evicted, when it
    /// gets the focus
    #[arg(long, conflicts_with = "explain")]
    resume: bool,
    /// Print a line of JSON for each
    #[arg(long, requires = "explain")]
    json: bool,
}

/// Takes what is seen: reports it to the daemon, or prints it.
trait Listener {
    /// Takes what is on the screen now.
    fn hear(&mut self, seen: Seen) -> Result<(), Failure>;

    /// Descriptor that becomes readable when [`Listener::go_on`] is due.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// When [`Listener::go_on`] is due in any case.
    fn due(&self) -> Option<Instant>;

    /// Does what was put off.
    fn go_on(&mut self);

    /// Nothing is seen any more.
    fn end(&mut self) -> Result<(), Failure>;
}

/// Reports the focus until the session ends or a signal arrives.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let stop = stop_signal()?;
    let mut listener: Box<dyn Listener + '_> = match options.explain {
        true => Box::new(Explainer::new(options.json)),
        false => Box::new(Teller::new(root)),
    };
    let _only_one = match options.explain {
        true => None,
        false => only_one(options)?,
    };
    let session = session(options);
    let tells_by_itself = matches!(session, Err(Error::NoWindows)) && is_desktop("GNOME");
    if options.resume {
        let inner = (!tells_by_itself).then_some(listener);
        listener = Box::new(Resumer::new(root, inner)?);
    }
    let followed = match session {
        Err(_) if tells_by_itself => {
            let listens = options.explain || options.resume;
            attribute::listen_or_leave(root, listens, &stop, listener.as_mut())
        }
        Err(error) => Err(lost(error)),
        Ok(source) => follow(root, options, source, &stop, listener.as_mut()),
    };
    let released = listener.end();
    followed.and(released)
}

/// Follows the session, also a compositor that is started anew.
fn follow(
    root: &Path,
    options: &Options,
    mut source: Box<dyn Source>,
    stop: &UnixStream,
    listener: &mut dyn Listener,
) -> Result<(), Failure> {
    let user = rustix::process::getuid().as_raw();
    loop {
        let finder = Finder::new(root, user, source.compositor());
        let error = match watch(source.as_mut(), &finder, stop, listener)? {
            Ended::Stopped => return Ok(()),
            Ended::Lost(error) => error,
        };
        drop(source);
        if let Err(refused) = listener.end() {
            eprintln!("{}", refused.sentence);
        }
        source = match session_again(options, stop) {
            Some(source) => source,
            None if is_readable(stop.as_fd()) => return Ok(()),
            None => return Err(lost(error)),
        };
    }
}

enum Ended {
    Stopped,
    Lost(Error),
}

/// Reports until the compositor ends or a signal arrives.
fn watch(
    source: &mut dyn Source,
    finder: &Finder<'_>,
    stop: &UnixStream,
    listener: &mut dyn Listener,
) -> Result<Ended, Failure> {
    let name = source.name();
    let mut screen: Result<Screen, Error> = source.now();
    loop {
        match screen {
            Ok(screen) => listener.hear(Seen::new(name, finder, screen))?,
            Err(error) => return Ok(Ended::Lost(error)),
        }
        screen = loop {
            let fds: Vec<_> = [stop.as_fd()].into_iter().chain(listener.fd()).collect();
            let awaited = Awaited {
                fds: &fds,
                until: listener.due(),
            };
            match source.wait(&awaited) {
                Ok(Event::Screen(screen)) => break Ok(screen),
                Ok(Event::Other) if is_readable(stop.as_fd()) => return Ok(Ended::Stopped),
                Ok(Event::Other) => listener.go_on(),
                Err(error) => break Err(error),
            }
        };
    }
}

/// The session of a compositor that comes back; `None` if it does not, or a signal arrives.
fn session_again(options: &Options, stop: &UnixStream) -> Option<Box<dyn Source>> {
    let until = Instant::now() + COMES_BACK_WITHIN;
    while Instant::now() < until {
        if let Ok(source) = session(options) {
            return Some(source);
        }
        let pause = Timespec::try_from(ATTEMPTS_APART).ok()?;
        let mut stops = [PollFd::new(stop, PollFlags::IN)];
        // A signal is seen by the byte that it leaves.
        let _ = poll(&mut stops, Some(&pause));
        if !stops[0].revents().is_empty() {
            return None;
        }
    }
    None
}

/// The way in which this session's compositor tells most.
fn session(options: &Options) -> Result<Box<dyn Source>, Error> {
    let display = options.display.as_deref();
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    if display.is_some() || !is_set("WAYLAND_DISPLAY") {
        return Ok(Box::new(X11::connect(display)?));
    }
    if let Some(sway) = Sway::connect()? {
        return Ok(Box::new(sway));
    }
    if let Some(hyprland) = Hyprland::connect()? {
        return Ok(Box::new(hyprland));
    }
    if let Some(niri) = Niri::connect()? {
        return Ok(Box::new(niri));
    }
    if is_desktop("KDE") {
        let plugin = match options.explain {
            true => "frontrow-explain",
            false => "frontrow-follow",
        };
        return Ok(Box::new(KWin::connect(plugin)?));
    }
    match Wayland::connect() {
        Ok(session) => Ok(Box::new(session)),
        Err(Error::NoWindows) => Ok(Box::new(Cosmic::connect()?)),
        Err(error) => Err(error),
    }
}

/// Whether the session is of this desktop, or of one made of it, as `ubuntu:GNOME`.
fn is_desktop(name: &str) -> bool {
    let desktops = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    desktops.split(':').any(|it| it == name)
}

/// A lock against a second process that follows the same display; `None` where there is no place for it.
fn only_one(options: &Options) -> Result<Option<File>, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    let display = options
        .display
        .clone()
        .or_else(|| variable("WAYLAND_DISPLAY"));
    let display = display.or_else(|| variable("DISPLAY")).unwrap_or_default();
    let Some(runtime) = variable("XDG_RUNTIME_DIR") else {
        return Ok(None);
    };
    let name = format!("frontrow-follow-{}.lock", display.replace('/', "_"));
    // Without the file, a second process would do what the first does, twice.
    let Ok(file) = File::create(PathBuf::from(runtime).join(name)) else {
        return Ok(None);
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(_) => Err(Failure::new(
            Exit::Refused,
            format_args!(
                "another `frontrow fg follow` follows {display} already: \
                 `systemctl --user status frontrow-follow` shows it if it is the service"
            ),
        )),
    }
}

/// Whether a descriptor has something to read, or its other end was closed.
fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let now = Timespec::default();
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

fn lost(error: Error) -> Failure {
    let exit = match error {
        Error::NoServer(_) | Error::NoCompositor(_) | Error::NoBus(_) => Exit::Missing,
        Error::NoManager | Error::NoProcesses | Error::NoWindows => Exit::Unsupported,
        Error::Lost(_) | Error::Wait(_) => Exit::Internal,
    };
    Failure::new(exit, error)
}
