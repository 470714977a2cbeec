//! Which knobs there are, and how the value of each is read and written.
//!
//! A journal is a file, and a value that was read may be somebody else's words: the name of a
//! cgroup is its owner's to choose. So a knob's form goes by its path and never by what it
//! holds, and a path that is not here is not written, whatever a journal says.

use std::path::{Component, Path};

/// Format of a knob's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A word or a number.
    Word,
    /// The active one of several words in brackets: `none [mq-deadline] kyber`.
    Choice,
    /// A line `default 100`; lines for single devices stay as they are.
    Default,
    /// Cgroups, a line each, which are there or not by the time they are put back; `none` if
    /// there is none. Before a cgroup there may be its share.
    Cgroups,
}

/// Attributes of a disk's queue.
const QUEUE: [(&str, Form); 7] = [
    ("scheduler", Form::Choice),
    ("nr_requests", Form::Word),
    ("wbt_lat_usec", Form::Word),
    ("iosched/boost", Form::Word),
    ("iosched/foreground", Form::Cgroups),
    ("iosched/visible", Form::Cgroups),
    ("iosched/background", Form::Cgroups),
];

/// Attributes of a cgroup.
const CGROUP: [(&str, Form); 4] = [
    ("memory.low", Form::Word),
    ("memory.high", Form::Word),
    ("cpu.idle", Form::Word),
    ("io.bfq.weight", Form::Default),
];

/// Attributes of a disk's dirty pages.
const BDI: [&str; 3] = ["strict_limit", "max_ratio_fine", "min_ratio_fine"];

/// Knob that recording of an app's start changes.
const FAULT_AROUND: &str = "/sys/kernel/debug/fault_around_bytes";
const EXT4: (&str, &str) = ("/sys/fs/ext4", "inode_readahead_blks");

impl Form {
    /// Format of the knob at `path` of the running system; None if it is not a known knob.
    pub fn of(path: &Path) -> Option<Form> {
        let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(is_plain) {
            return None;
        }
        if let Ok(below) = path.strip_prefix("/sys/block") {
            let mut parts = below.components();
            parts.next()?;
            let attribute = parts.as_path().strip_prefix("queue").ok()?;
            let known = QUEUE.iter().find(|(name, _)| attribute == Path::new(name));
            return known.map(|(_, form)| *form);
        }
        let name = path.file_name()?.to_str()?;
        if let Ok(below) = path.strip_prefix("/sys/class/bdi") {
            let is_one = below.components().count() == 2 && BDI.contains(&name);
            return is_one.then_some(Form::Word);
        }
        if path.starts_with("/sys/fs/cgroup") {
            let known = CGROUP.iter().find(|(known, _)| *known == name);
            return known.map(|(_, form)| *form);
        }
        let (directory, attribute) = EXT4;
        let of_ext4 = path.parent()?.parent() == Some(Path::new(directory)) && name == attribute;
        (of_ext4 || path == Path::new(FAULT_AROUND)).then_some(Form::Word)
    }

    /// The value in a knob's `text`.
    pub(crate) fn value(self, text: &str) -> String {
        let text = text.trim_end_matches('\n');
        let value = match self {
            Form::Word => text.trim(),
            Form::Choice => chosen(text).unwrap_or(text.trim()),
            Form::Cgroups => text,
            Form::Default => {
                let all = text.lines().find_map(|line| line.strip_prefix("default "));
                all.unwrap_or(text).trim()
            }
        };
        value.to_owned()
    }
}

/// The word in brackets.
pub(crate) fn chosen(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// A list without the cgroups that are not there (any more): the kernel refuses a list of which
/// none is.
pub(crate) fn there_are(root: &Path, list: &str) -> String {
    let is_there = |line: &&str| {
        let cgroup = line.find('/').map(|at| &line[at + 1..]);
        cgroup.is_some_and(|it| root.join("sys/fs/cgroup").join(it).is_dir())
    };
    let lines: Vec<_> = list.lines().filter(is_there).collect();
    match lines.is_empty() {
        true => "none".to_owned(),
        false => lines.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_known_by_its_path_and_no_other_is_one() {
        for (path, form) in [
            ("/sys/block/sda/queue/scheduler", Some(Form::Choice)),
            ("/sys/block/sda/queue/nr_requests", Some(Form::Word)),
            (
                "/sys/block/sda/queue/iosched/foreground",
                Some(Form::Cgroups),
            ),
            ("/sys/fs/cgroup/a/b [c]/memory.high", Some(Form::Word)),
            ("/sys/fs/ext4/sda1/inode_readahead_blks", Some(Form::Word)),
            (FAULT_AROUND, Some(Form::Word)),
            ("/proc/sys/kernel/core_pattern", None),
            ("/sys/fs/cgroup/a/cgroup.procs", None),
            ("/sys/fs/cgroup/../../proc/sys/vm/memory.low", None),
            ("/sys/block/sda/queue/iosched", None),
            ("/sys/block/sda/device/delete", None),
            ("/sys/class/bdi/8:16/strict_limit", Some(Form::Word)),
            ("/sys/class/bdi/8:16/max_ratio_fine", Some(Form::Word)),
            ("/sys/class/bdi/8:16/read_ahead_kb", None),
            ("/sys/class/bdi/8:16/power/strict_limit", None),
            ("sys/block/sda/queue/scheduler", None),
        ] {
            assert_eq!(Form::of(Path::new(path)), form, "{path}");
        }
    }
}
