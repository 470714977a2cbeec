//! `frontrow fg`: who is in front on this machine.

use crate::exit::{Exit, Failure};
use clap::{Args, Subcommand};
use foreground::{Cgroup, Error, Grounds, Parts};
use knobs::{Change, Restored};
use serde_json::json;
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
    /// What is behind gets memory limits of its own, what is in front memory that reclaim
    /// passes over, and every disk under the frontrow scheduler serves the front first.
    /// `frontrow fg release` undoes all of it.
    Set(Set),
    /// Show who is in front and what was changed for it
    Status(Format),
    /// Put everything back as it was
    Release(Format),
}

#[derive(Args)]
struct Set {
    /// A process, or a cgroup as /proc/PID/cgroup shows it
    #[arg(required = true, value_name = "PID|CGROUP")]
    front: Vec<String>,
    /// A cgroup that is behind; if none is given, the other apps of the same app.slice
    #[arg(long, value_name = "PID|CGROUP")]
    behind: Vec<String>,
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
    }
}

fn set(root: &Path, action: &Set) -> Result<(), Failure> {
    let front = resolve(root, &action.front)?;
    let behind = match action.behind.as_slice() {
        [] => Cgroup::other_apps(root, &front).map_err(failure)?,
        named => resolve(root, named)?,
    };
    let grounds = Grounds { front, behind };
    let changes = foreground::hold(root, &grounds, Parts::ALL).map_err(failure)?;
    if action.format.json {
        println!("{}", json!({ "changes": changes }));
        return Ok(());
    }
    println!("In front: {}", names(&grounds.front));
    println!("Behind:   {}", names(&grounds.behind));
    println!("{}", told(&changes));
    println!("To undo: frontrow fg release");
    Ok(())
}

fn resolve(root: &Path, what: &[String]) -> Result<Vec<Cgroup>, Failure> {
    what.iter()
        .map(|it| Cgroup::resolve(root, it).map_err(failure))
        .collect()
}

fn names(cgroups: &[Cgroup]) -> String {
    match cgroups {
        [] => "nobody".to_owned(),
        _ => {
            let paths: Vec<_> = cgroups.iter().map(Cgroup::path).collect();
            paths.join(", ")
        }
    }
}

fn told(changes: &[Change]) -> String {
    let line = |change: &Change| format!("  {change} ({})", change.reason);
    changes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn status(root: &Path, format: &Format) -> Result<(), Failure> {
    let changes = foreground::changes(root).map_err(failure)?;
    if format.json {
        println!("{}", json!({ "changes": changes }));
    } else if changes.is_empty() {
        println!("Nobody is in front: nothing is changed");
    } else {
        println!("Changed for who is in front:\n{}", told(&changes));
    }
    Ok(())
}

fn release(root: &Path, format: &Format) -> Result<(), Failure> {
    let restored = foreground::release(root).map_err(failure)?;
    if format.json {
        let restored: Vec<_> = restored
            .iter()
            .map(|(change, outcome)| json!({ "change": change, "outcome": outcome }))
            .collect();
        println!("{}", json!({ "restored": restored }));
        return Ok(());
    }
    if restored.is_empty() {
        println!("Nobody is in front: nothing to restore");
        return Ok(());
    }
    println!("As it was before:");
    for (change, outcome) in restored {
        let gone = match outcome {
            Restored::Gone => " (gone meanwhile)",
            Restored::Written | Restored::Unchanged => "",
        };
        println!("  {}: {}{gone}", change.path.display(), change.before);
    }
    Ok(())
}

fn failure(error: Error) -> Failure {
    let denied = match &error {
        Error::Knobs(error) => error.io(),
        _ => None,
    };
    let exit = match &error {
        _ if denied.is_some_and(|it| it.kind() == std::io::ErrorKind::PermissionDenied) => {
            return Failure::new(
                Exit::Permission,
                "changing cgroups and disks needs root: run the command with sudo",
            );
        }
        Error::Unknown(_) | Error::Root(_) => Exit::Usage,
        Error::NoHierarchy | Error::NoController { .. } | Error::NoScheduler => Exit::Unsupported,
        Error::Held => Exit::Refused,
        Error::Device(_) | Error::Knobs(_) | Error::Memory { .. } => Exit::Internal,
    };
    Failure::new(exit, error)
}
