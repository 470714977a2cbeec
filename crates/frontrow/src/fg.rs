//! `frontrow fg`: the foreground app of this machine.

mod daemon;
mod follow;
mod words;

use crate::exit::{Exit, Failure};
use crate::print::{json_line, print_text};
use clap::{Args, Subcommand};
use foreground::{Cgroup, Error, Kind, Order, Parts, Reply, Request, Roles, Visible};
use serde_json::{Value, json};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use sys::knobs::{Change, Restored};

/// Make an app the foreground, show its effect, and undo it
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
    /// Make an app the foreground and print the changes
    ///
    /// Background apps get memory limits of their own, and reclaim spares the memory of the
    /// foreground app. Disks under the frontrow scheduler serve it first. Disks under another
    /// scheduler and with one hardware queue get BFQ with a weight for each app. `frontrow fg
    /// release` undoes all changes. If frontrowd runs, it makes them, and the app stays the
    /// foreground until it ends or is released, whichever app has the focus.
    Set(Set),
    /// Show the foreground app, the reason, the changes, and what they cost background apps
    Status(Format),
    /// Undo all changes
    ///
    /// If frontrowd runs, it makes no change until the focus changes.
    Release(Format),
    /// Make the focused app the foreground (frontrowd, a systemd service)
    ///
    /// It learns the focus from several sources. GNOME's compositor marks the apps that systemd has
    /// started (attribute user.xdg.inactive-since of their cgroups). Android has a cpuset top-app.
    /// Users have `frontrow fg set`, and org.frontrow.Foreground1 on the system's D-Bus
    /// (SetForeground with a process id, Release, Status). At its end it undoes all changes. If it
    /// was killed, its next start or `frontrow fg release` undoes them.
    Daemon(daemon::Options),
    /// Tell frontrowd which app of this session has the focus
    ///
    /// For desktops that do not report the focus. GNOME does, and there it ends at once. It runs as the session's user, from
    /// the session's autostart or by `systemctl --user enable --now frontrow-follow`. It asks sway,
    /// Hyprland and niri by their sockets, KWin by a script that it loads, and X servers and
    /// gamescope by properties of the root window. COSMIC and other Wayland compositors are asked
    /// by their protocols for panels. An app needs a systemd unit of its own, in the user's
    /// app.slice; `--explain` shows what is found. It waits for frontrowd and for a compositor that
    /// is started anew. At its end it releases the foreground that it has set.
    Follow(follow::Options),
}

#[derive(Args)]
struct Set {
    /// A process, or a cgroup as /proc/PID/cgroup shows it
    #[arg(required = true, value_name = "PID|CGROUP")]
    foreground: Vec<String>,
    /// Background process or cgroup; can be given several times [default: all other apps of the
    /// same app.slice]
    #[arg(long = "behind", value_name = "PID|CGROUP")]
    background: Vec<String>,
    /// Process or cgroup of a visible but inactive app, with its share of the screen in percent. It
    /// is served after the foreground app, with this weight beside its 100
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
            true => print_text(&(json_line(value) + "\n")),
            false => print_text(&(words + "\n")),
        }
    }
}

fn set(root: &Path, action: &Set) -> Result<(), Failure> {
    let order = Order {
        foreground: resolve(root, &action.foreground)?,
        visible: visible(root, &action.visible)?,
        background: resolve(root, &action.background)?,
    };
    let (roles, changes) = match ask(root, Request::Set(order.clone()))? {
        Some(Reply::Set { roles, changes }) => (roles, changes),
        None => set_alone(root, &order).map_err(failure)?,
        Some(_) => return Err(failure(Error::Garbled)),
    };
    let mut value = json!(roles);
    value["changes"] = json!(changes);
    action.format.print(words::set(&roles, &changes), &value)
}

/// Without a daemon; it stays so until somebody releases it.
fn set_alone(root: &Path, order: &Order) -> Result<(Roles, Vec<Change>), Error> {
    let roles = order.roles(root)?;
    let changes = foreground::apply(root, &roles, Parts::ALL)?;
    Ok((roles, changes))
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
                format_args!(
                    "{it}: give the visible share of the screen in percent, such as {name}=30"
                ),
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
