//! Text output of `frontrow fg`.

use foreground::{Cgroup, Cost, Roles, Status, Visible};
use record::number;
use std::path::PathBuf;
use sys::knobs::{Change, Restored};

pub fn set(roles: &Roles, changes: &[Change]) -> String {
    format!(
        "Foreground: {}\n{}Background: {}\n{}\nTo undo: frontrow fg release",
        names(&roles.foreground),
        visible_line(&roles.visible),
        names(&roles.background),
        told(changes)
    )
}

/// Text of `status` without a daemon.
pub fn changes(changes: &[Change]) -> String {
    match changes {
        [] => "No app is in the foreground: nothing is changed".to_owned(),
        _ => format!("Changed for the foreground app:\n{}", told(changes)),
    }
}

pub fn status(status: &Status) -> String {
    let limits = match status.limits.is_empty() {
        true => String::new(),
        false => format!("\nDirty limits of disks:\n{}", told(&status.limits)),
    };
    let writers = match status.writers.is_empty() {
        true => String::new(),
        false => format!(
            "\nApps that write far ahead of their disks:\n{}",
            told(&status.writers)
        ),
    };
    roles(status) + &schedulers(status) + &limits + &writers
}

/// A line on schedulers that wait for their time: each change stops a disk for all its users.
fn schedulers(status: &Status) -> String {
    let seconds = status.switch_in_s;
    let how_long = match seconds {
        0 => "up to a minute".to_owned(),
        _ => format!("{seconds} s more"),
    };
    match (status.kept.is_empty(), status.foreground.is_empty()) {
        (false, _) => format!(
            "\nKept for {how_long}, since a change of scheduler stops a disk for a moment:\n{}",
            told(&status.kept)
        ),
        (true, false) if seconds > 0 => {
            format!("\nDisks may change their scheduler again in {seconds} s")
        }
        _ => String::new(),
    }
}

fn roles(status: &Status) -> String {
    let since = match status.since_s {
        Some(seconds) => format!("for {}", duration(seconds)),
        None => "for a time that root is told".to_owned(),
    };
    if status.foreground.is_empty() && status.others {
        return format!("Now {}: root is told which", status.why);
    }
    if status.foreground.is_empty() {
        return format!(
            "No app has been in the foreground {since}: {}{}",
            status.why,
            match status.kept.is_empty() {
                true => "\nNothing is changed",
                false => "",
            }
        );
    }
    let mut lines = vec![
        format!("Foreground: {}", names(&status.foreground)),
        format!("            {since}: {}", status.why),
        format!(
            "{}Background: {}",
            visible_line(&status.visible),
            names(&status.background)
        ),
        "Changed for it:".to_owned(),
        told(&status.changes),
    ];
    if !status.overruled.is_empty() {
        lines.push("Left alone, since another program has set them:".to_owned());
        lines.push(paths(&status.overruled));
    }
    if !status.left_out.is_empty() {
        let left_out = names(&status.left_out);
        lines.push(format!(
            "Served only in part, since the io or memory controller is not enabled for: {left_out}"
        ));
    }
    if !status.spared.is_empty() {
        let spared = names(&status.spared);
        lines.push(format!(
            "Without a memory limit, since they stalled under one: {spared}"
        ));
    }
    if !status.background.is_empty() {
        lines.push(cost(&status.cost));
    }
    lines.join("\n")
}

/// A line with all visible apps; empty if there is none.
fn visible_line(visible: &[Visible]) -> String {
    let each: Vec<_> = visible
        .iter()
        .map(|it| format!("{} ({} %)", it.cgroup.path(), it.percent))
        .collect();
    match each.is_empty() {
        true => String::new(),
        false => format!("Visible:    {}\n", each.join(", ")),
    }
}

/// Cost of being in the background. It includes waits that the apps would have had in any case.
fn cost(cost: &Cost) -> String {
    let waits = [("I/O", cost.io_wait_us), ("memory", cost.memory_wait_us)];
    let waits: Vec<_> = waits
        .iter()
        .filter_map(|(what, us)| Some(format!("{:.1} s for {what}", (*us)? as f64 / 1e6)))
        .collect();
    let waited = match waits.as_slice() {
        [] => "this kernel does not count what they wait (CONFIG_PSI)".to_owned(),
        _ => format!("they waited {} (for any reason)", waits.join(" and ")),
    };
    format!(
        "Since they became background apps, {waited}; they hit their memory limits {} times, read \
         {} and wrote {}",
        cost.limit_hits,
        number::bytes(cost.read_bytes),
        number::bytes(cost.written_bytes)
    )
}

pub fn restored(restored: &[(Change, Restored)]) -> String {
    if restored.is_empty() {
        return "No app is in the foreground: nothing to undo".to_owned();
    }
    let lines = restored.iter().map(|(change, outcome)| {
        let path = sys::knobs::shown(&change.path.to_string_lossy());
        let before = sys::knobs::shown(&change.before);
        match outcome {
            Restored::Written | Restored::Unchanged => format!("  {path}: {before}"),
            Restored::Gone => format!("  {path}: {before} (no longer exists)"),
            Restored::Overruled => {
                format!("  {path}: left alone, another program has set it since")
            }
        }
    });
    format!(
        "As it was before:\n{}",
        lines.collect::<Vec<_>>().join("\n")
    )
}

fn names(cgroups: &[Cgroup]) -> String {
    match cgroups {
        [] => "none".to_owned(),
        _ => {
            let paths: Vec<_> = cgroups.iter().map(Cgroup::path).collect();
            paths.join(", ")
        }
    }
}

fn told(changes: &[Change]) -> String {
    let line = |change: &Change| format!("  {change:#}");
    changes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn paths(paths: &[PathBuf]) -> String {
    let lines: Vec<_> = paths
        .iter()
        .map(|it| format!("  {}", sys::knobs::shown(&it.to_string_lossy())))
        .collect();
    lines.join("\n")
}

fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
