//! systemd's units, through `systemctl`.

use std::io;
use std::path::Path;
use std::process::{Output, Stdio};
use sys::programs::administrators;

/// Directory that is there while systemd runs the machine (sd_booted(3)).
const BOOTED: &str = "run/systemd/system";

/// Whose units are meant.
#[derive(Clone, Copy)]
pub(super) enum Whose {
    /// Those of the whole system.
    System,
    /// Those of all users' sessions; only for what is at their start.
    AllUsers,
    /// Those of the sessions of one user.
    User(u32),
}

/// Whether systemd runs this machine.
pub(super) fn runs(root: &Path) -> bool {
    root.join(BOOTED).is_dir()
}

/// Runs `systemctl` with these words.
///
/// # Errors
/// What it said.
pub(super) fn order(whose: Whose, words: &[&str]) -> Result<(), String> {
    let output = run(whose, words).map_err(|error| format!("cannot run systemctl: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().map(str::trim).find(|it| !it.is_empty());
    Err(first.unwrap_or("systemctl failed").to_owned())
}

/// Whether it starts by itself. Units that it cannot be asked for do not.
pub(super) fn is_enabled(whose: Whose, unit: &str) -> bool {
    let output = run(whose, &["is-enabled", unit]);
    // It succeeds for static units and others, too.
    output.is_ok_and(|it| it.stdout.starts_with(b"enabled"))
}

/// Whether it runs.
pub(super) fn is_active(whose: Whose, unit: &str) -> bool {
    run(whose, &["is-active", unit]).is_ok_and(|it| it.status.success())
}

/// Names of the system's units in memory that are like `pattern`.
pub(super) fn units(pattern: &str) -> Vec<String> {
    let words = ["list-units", "--all", "--plain", "--no-legend", pattern];
    let Ok(output) = run(Whose::System, &words) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|it| it.split_whitespace().next());
    names.map(str::to_owned).collect()
}

fn run(whose: Whose, words: &[&str]) -> io::Result<Output> {
    let mut command = administrators("systemctl");
    match whose {
        Whose::System => {}
        Whose::AllUsers => {
            command.arg("--global");
        }
        Whose::User(uid) => {
            command.arg("--user").arg(format!("--machine={uid}@.host"));
        }
    }
    command
        .args(words)
        .env("LC_ALL", "C")
        .env("SYSTEMD_COLORS", "0")
        .stdin(Stdio::null())
        .output()
}
