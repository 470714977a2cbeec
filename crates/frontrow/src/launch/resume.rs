//! `frontrow launch resume`: loads the pages of an app that runs and is wanted again.

use super::start::allow_open_files;
use super::{latency, name, profile_name};
use crate::exit::{Exit, Failure};
use crate::print::{json, plain, print_text};
use ::launch::load::Error;
use ::launch::profile::Store;
use ::launch::resume::{Resumed, resume};
use serde_json::json;
use std::ffi::OsString;

#[derive(clap::Args)]
pub struct Resume {
    /// Name of the profile [default: the program's name]
    #[arg(long)]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Name of the app
    #[arg(value_name = "APP")]
    app: OsString,
}

/// Runs the subcommand.
pub fn run(args: &Resume) -> Result<(), Failure> {
    let name = profile_name(args.name.as_deref(), std::slice::from_ref(&args.app))?;
    let store = Store::of_user()?;
    let resumed = load(&store, &name)?;
    match args.json {
        true => print_text(&json(&as_json(&resumed))?),
        false => print_text(&(plain(&in_words(&name, &resumed)) + "\n")),
    }
}

/// Loads what is missing of a profile.
pub fn load(store: &Store, name: &str) -> Result<Resumed, Failure> {
    let profile = store.read(name)?;
    allow_open_files();
    Ok(resume(&profile, |device| latency(store, device))?)
}

/// Name of the profile of an app that runs; `None` if it has none. `units` are the names of its units,
/// and `commands` the command lines of its processes. A unit's name goes first: what runs in a sandbox is
/// called as in any other.
pub fn profile_of(store: &Store, units: &[String], commands: &[Vec<String>]) -> Option<String> {
    let of_units = units
        .iter()
        .flat_map(|unit| [unit.clone(), format!("snap.{unit}")]);
    let of_commands = commands.iter().filter_map(|words| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        name::of(&words)
    });
    of_units
        .chain(of_commands)
        .find(|name| store.path(name).is_ok_and(|path| path.is_file()))
}

/// One line about what was loaded.
pub fn in_words(name: &str, resumed: &Resumed) -> String {
    format!(
        "{name}: {} of {} pages were missing{}",
        resumed.missing_pages,
        resumed.valid_pages,
        if resumed.stopped {
            ", and memory got too short to load all"
        } else if resumed.missing_pages > 0 {
            " and are loaded"
        } else {
            ""
        }
    )
}

fn as_json(resumed: &Resumed) -> serde_json::Value {
    json!({
        "valid_pages": resumed.valid_pages,
        "missing_pages": resumed.missing_pages,
        "padding_bytes": resumed.padding_bytes,
        "stopped": resumed.stopped,
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::NoRing(_) => Exit::Unsupported,
            Error::System(source) => source.into(),
        };
        Failure::new(exit, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_that_runs_is_known_by_its_unit_then_by_its_commands() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::at(directory.path().to_owned());
        for name in [
            "org.mozilla.firefox",
            "firefox",
            "snap.code",
            "python3-opt.a.py",
        ] {
            std::fs::write(store.path(name).unwrap(), "").unwrap();
        }
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (units, command, name) in [
            (
                "org.mozilla.firefox",
                "/app/lib/firefox",
                Some("org.mozilla.firefox"),
            ),
            ("org.gnome.Browser", "/usr/bin/firefox -P", Some("firefox")),
            ("code", "/snap/code/1/code", Some("snap.code")),
            ("a", "/usr/bin/python3 /opt/a.py", Some("python3-opt.a.py")),
            ("../firefox", "/usr/bin/gedit", None),
        ] {
            let found = profile_of(&store, &[units.to_owned()], &[words(command)]);
            assert_eq!(found.as_deref(), name, "{units}");
        }
    }
}
