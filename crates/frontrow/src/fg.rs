//! `frontrow fg`: who is in front on this machine.

mod daemon;
mod follow;
mod words;

use crate::exit::{Exit, Failure};
use crate::print::print_text;
use clap::{Args, Subcommand};
use foreground::{Cgroup, Error, Grounds, Kind, Order, Parts, Reply, Request, Visible};
use knobs::{Change, Restored};
use serde_json::{Value, json};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Put an app in front of the others, see what that did, and let go
#[derive(Args)]
pub struct Fg {
    /// The root of the system to read and change
    #[arg(long, global = true, hide = true, default_value = "/")]
    sysroot: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Put an app in front, and say what that changed
    ///
    /// Background apps get memory limits of their own, and reclaim passes over the memory of the
    /// app in front. Every disk under the frontrow scheduler serves that app first. A disk with one
    /// hardware queue that is not under it gets BFQ, with weights for both.
    /// `frontrow fg release` undoes all of it. Where frontrowd runs, it does this, and the
    /// app stays in front, whichever has the focus, until it ends or is released.
    Set(Set),
    /// Show who is in front, why, what was changed for it and what it cost the others
    Status(Format),
    /// Put everything back as it was
    ///
    /// Where frontrowd runs, it begins again with the next change of focus.
    Release(Format),
    /// Keep in front whichever app has the focus (frontrowd, a service of systemd's)
    ///
    /// Several tell it which app that is. GNOME's compositor marks the apps that systemd has
    /// started (the attribute user.xdg.inactive-since of their cgroups). Android has its top-app
    /// cpuset. Users have `frontrow fg set`, and org.frontrow.Foreground1 on the system's D-Bus
    /// (SetForeground with a process id, Release, Status). Everything is as it was when it
    /// ends; what a killed one left is undone by the next, and by `frontrow fg release`.
    Daemon(daemon::Options),
    /// Tell frontrowd which app of this session has the focus
    ///
    /// For desktops that do not say so themselves (GNOME does). It runs in the session, as its
    /// user, until that ends: a line in its autostart, or `systemctl --user enable --now
    /// frontrow-follow`. On X11 it goes by what the window manager writes on the root window
    /// (_NET_ACTIVE_WINDOW), and by the X server's word for the window's process. It also tells
    /// how much is visible of the other windows. On Wayland it goes by
    /// wlr-foreign-toplevel-management (sway, labwc, Hyprland and others), for apps that have
    /// units of their own. Under KDE it needs KWin's script `frontrow-follow`, which you enable.
    /// What it put in front it lets go at its end.
    Follow(follow::Options),
}

#[derive(Args)]
struct Set {
    /// A process, or a cgroup as /proc/PID/cgroup shows it
    #[arg(required = true, value_name = "PID|CGROUP")]
    front: Vec<String>,
    /// A cgroup that is behind; if none is given, the other apps of the same app.slice
    #[arg(long, value_name = "PID|CGROUP")]
    behind: Vec<String>,
    /// Cgroup of a visible but inactive app, with its share of the screen in percent. It comes
    /// next, with that weight beside the 100 of the app in front
    #[arg(long, value_name = "PID|CGROUP=PERCENT")]
    visible: Vec<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Args)]
struct Format {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Fg) -> Result<(), Failure> {
    let root = &arguments.sysroot;
    match arguments.action {
        Action::Set(action) => set(root, &action),
        Action::Status(format) => status(root, &format),
        Action::Release(format) => release(root, &format),
        Action::Daemon(options) => daemon::run(root, &options),
        Action::Follow(options) => follow::run(root, &options),
    }
}

impl Format {
    fn print(&self, words: String, value: &Value) -> Result<(), Failure> {
        match self.json {
            true => print_text(&format!("{value}\n")),
            false => print_text(&(words + "\n")),
        }
    }
}

fn set(root: &Path, action: &Set) -> Result<(), Failure> {
    let order = Order {
        front: resolve(root, &action.front)?,
        visible: visible(root, &action.visible)?,
        behind: resolve(root, &action.behind)?,
    };
    let (grounds, changes) = match ask(root, Request::Set(order.clone()))? {
        Some(Reply::Set { grounds, changes }) => (grounds, changes),
        None => set_alone(root, &order).map_err(failure)?,
        Some(_) => return Err(failure(Error::Garbled)),
    };
    let mut value = json!(grounds);
    value["changes"] = json!(changes);
    action.format.print(words::set(&grounds, &changes), &value)
}

/// Without a daemon; it stays so until somebody releases it.
fn set_alone(root: &Path, order: &Order) -> Result<(Grounds, Vec<Change>), Error> {
    let grounds = order.grounds(root)?;
    let changes = foreground::hold(root, &grounds, Parts::ALL)?;
    Ok((grounds, changes))
}

fn resolve(root: &Path, what: &[String]) -> Result<Vec<Cgroup>, Failure> {
    what.iter()
        .map(|it| Cgroup::resolve(root, it).map_err(failure))
        .collect()
}

fn visible(root: &Path, what: &[String]) -> Result<Vec<Visible>, Failure> {
    let each = what.iter().map(|it| {
        let (name, percent) = it.rsplit_once('=').unwrap_or((it, ""));
        match percent.parse() {
            Ok(percent @ 1..=100) => Ok(Visible {
                cgroup: Cgroup::resolve(root, name).map_err(failure)?,
                percent,
            }),
            _ => Err(Failure::new(
                Exit::Usage,
                format_args!("{it}: give how much of the screen is seen of it, as in {name}=30"),
            )),
        }
    });
    each.collect()
}

fn status(root: &Path, format: &Format) -> Result<(), Failure> {
    match ask(root, Request::Status)? {
        Some(Reply::Status(status)) => {
            let mut value = json!(status);
            value["daemon"] = json!(true);
            format.print(words::status(&status), &value)
        }
        None => {
            let changes = foreground::changes(root).map_err(failure)?;
            let value = json!({ "daemon": false, "changes": changes });
            format.print(words::changes(&changes), &value)
        }
        Some(_) => Err(failure(Error::Garbled)),
    }
}

fn release(root: &Path, format: &Format) -> Result<(), Failure> {
    let restored = match ask(root, Request::Release)? {
        Some(Reply::Released(restored)) => restored,
        None => foreground::release(root).map_err(failure)?,
        Some(_) => return Err(failure(Error::Garbled)),
    };
    let one =
        |(change, outcome): &(Change, Restored)| json!({ "change": change, "outcome": outcome });
    let value = json!({ "restored": restored.iter().map(one).collect::<Vec<_>>() });
    format.print(words::restored(&restored), &value)
}

fn ask(root: &Path, request: Request) -> Result<Option<Reply>, Failure> {
    foreground::ask(root, &request).map_err(failure)
}

fn failure(error: Error) -> Failure {
    let exit = match error.kind() {
        Kind::Usage => Exit::Usage,
        Kind::Unsupported => Exit::Unsupported,
        Kind::Permission => Exit::Permission,
        Kind::Refused => Exit::Refused,
        Kind::Internal => Exit::Internal,
    };
    match &error {
        Error::Knobs(_) | Error::Socket { .. } if exit == Exit::Permission => Failure::new(
            exit,
            "changing cgroups and disks needs root: run the command with sudo",
        ),
        _ => Failure::new(exit, error),
    }
}

/// Readable from the first signal on that asks to end.
fn stop_signal() -> Result<UnixStream, Failure> {
    let failed = |error: io::Error| {
        let sentence = format_args!("cannot catch signals: {error}");
        Failure::new(Exit::Internal, sentence)
    };
    let (stop, signalled) = UnixStream::pair().map_err(failed)?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let own = signalled.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(signal, own).map_err(failed)?;
    }
    Ok(stop)
}
