//! What `frontrow fg` says to people.

use foreground::{Cgroup, Cost, Grounds, Status, Visible};
use knobs::{Change, Restored};
use std::path::PathBuf;

pub fn set(grounds: &Grounds, changes: &[Change]) -> String {
    format!(
        "In front: {}\n{}Behind:   {}\n{}\nTo undo: frontrow fg release",
        names(&grounds.front),
        seen(&grounds.visible),
        names(&grounds.behind),
        told(changes)
    )
}

/// Where no daemon runs.
pub fn changes(changes: &[Change]) -> String {
    match changes {
        [] => "Nobody is in front: nothing is changed".to_owned(),
        _ => format!("Changed for who is in front:\n{}", told(changes)),
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
    grounds(status) + &limits + &writers
}

fn grounds(status: &Status) -> String {
    let since = duration(status.since_s);
    if status.front.is_empty() && status.others {
        return format!("For {since}, {}: root is told which", status.why);
    }
    if status.front.is_empty() {
        return format!(
            "Nobody is in front, for {since}: {}\nNothing is changed for anybody",
            status.why
        );
    }
    let mut lines = vec![
        format!("In front: {}", names(&status.front)),
        format!("          for {since}: {}", status.why),
        format!(
            "{}Behind:   {}",
            seen(&status.visible),
            names(&status.behind)
        ),
        "Changed for it:".to_owned(),
        told(&status.changes),
    ];
    if !status.overruled.is_empty() {
        lines.push("Left as somebody else has set it since:".to_owned());
        lines.push(paths(&status.overruled));
    }
    if !status.left_out.is_empty() {
        let left_out = names(&status.left_out);
        lines.push(format!(
            "Served only in part, as the io and memory controllers do not reach both: {left_out}"
        ));
    }
    if !status.spared.is_empty() {
        let spared = names(&status.spared);
        lines.push(format!(
            "Without a memory limit, as theirs had them stand still: {spared}"
        ));
    }
    if !status.behind.is_empty() {
        lines.push(cost(&status.cost));
    }
    lines.join("\n")
}

/// A line, if there is anybody.
fn seen(visible: &[Visible]) -> String {
    let each: Vec<_> = visible
        .iter()
        .map(|it| format!("{} ({} %)", it.cgroup.path(), it.percent))
        .collect();
    match each.is_empty() {
        true => String::new(),
        false => format!("Seen:     {}\n", each.join(", ")),
    }
}

/// What one would have waited anyway is in it, and that is said.
fn cost(cost: &Cost) -> String {
    let waits = [("I/O", cost.io_wait_us), ("memory", cost.memory_wait_us)];
    let waits: Vec<_> = waits
        .iter()
        .filter_map(|(what, us)| Some(format!("{:.1} s for {what}", (*us)? as f64 / 1e6)))
        .collect();
    let waited = match waits.as_slice() {
        [] => "this kernel does not count what they wait (CONFIG_PSI)".to_owned(),
        _ => format!("they waited {}, on whosever account", waits.join(" and ")),
    };
    format!(
        "Since they are behind, {waited}; they were at their memory limits {} times, read \
         {:.1} MB and wrote {:.1} MB",
        cost.limit_hits,
        cost.read_bytes as f64 / 1e6,
        cost.written_bytes as f64 / 1e6
    )
}

pub fn restored(restored: &[(Change, Restored)]) -> String {
    if restored.is_empty() {
        return "Nobody is in front: nothing to restore".to_owned();
    }
    let lines = restored.iter().map(|(change, outcome)| {
        let path = knobs::shown(&change.path.to_string_lossy());
        let before = knobs::shown(&change.before);
        match outcome {
            Restored::Written | Restored::Unchanged => format!("  {path}: {before}"),
            Restored::Gone => format!("  {path}: {before} (gone meanwhile)"),
            Restored::Overruled => format!("  {path}: left as somebody else has set it since"),
        }
    });
    format!(
        "As it was before:\n{}",
        lines.collect::<Vec<_>>().join("\n")
    )
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
    let line = |change: &Change| format!("  {change:#}");
    changes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn paths(paths: &[PathBuf]) -> String {
    let lines: Vec<_> = paths
        .iter()
        .map(|it| format!("  {}", knobs::shown(&it.to_string_lossy())))
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
