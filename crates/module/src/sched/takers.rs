//! Who else sets disks' schedulers on this machine: udev's rules, and tuned's profile.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use sys::device::Device;

/// Directories of udev's rules, the administrator's first. Of files with the same name the first one's counts.
const RULES: [&str; 5] = [
    "etc/udev/rules.d",
    "run/udev/rules.d",
    "usr/local/lib/udev/rules.d",
    "usr/lib/udev/rules.d",
    "lib/udev/rules.d",
];

/// The rule of `frontrow on`; rules are read by name, and it is behind all others.
pub const OWN_RULE: &str = "zz-frontrow.rules";

/// tuned's own files: which profile is in force, and that the daemon runs.
const TUNED_PROFILE: &str = "etc/tuned/active_profile";
const TUNED_RUNS: &str = "run/tuned/tuned.pid";
const TUNED_PROFILES: [&str; 4] = [
    "etc/tuned/profiles",
    "etc/tuned",
    "usr/lib/tuned/profiles",
    "usr/lib/tuned",
];
/// Profiles include others; more would be a circle.
const MOST_INCLUDED: usize = 16;

/// Who gave a disk another scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Taker {
    /// A line of udev's rules.
    UdevRule {
        /// The file of the rules.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// A program that a line of udev's rules has started, and that goes on after the rules.
    UdevProgram {
        /// The file of the rules.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// A profile of tuned's.
    Tuned {
        /// Name of the active profile.
        profile: String,
    },
    /// A program or a person that left no such trace.
    Unknown,
}

impl fmt::Display for Taker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Taker::UdevRule { path, line } => {
                write!(out, "the udev rule {}:{line}", sys::plain::path(path))
            }
            Taker::UdevProgram { path, line } => write!(
                out,
                "a program that the udev rule {}:{line} starts",
                sys::plain::path(path)
            ),
            Taker::Tuned { profile } => {
                write!(out, "tuned's profile {}", sys::knobs::shown(profile))
            }
            Taker::Unknown => out.write_str("another program, or by hand"),
        }
    }
}

/// Who can have given `device` the scheduler `name`. While udev's rules are run for it, or while no
/// rule of ours comes after the others, that may be a rule; at any time a program that one has started.
pub(crate) fn taker(root: &Path, device: &Device, name: &str, by_rules: bool) -> Taker {
    let rule = rule(root, &Kind::of(root, device), name);
    let by_rules = by_rules || !root.join(RULES[0]).join(OWN_RULE).exists();
    match (rule, tuned(root, name)) {
        (Some(rule), _) if by_rules => Taker::UdevRule {
            path: rule.path,
            line: rule.line,
        },
        (_, Some(profile)) => Taker::Tuned { profile },
        (Some(rule), None) if rule.way == Way::Program => Taker::UdevProgram {
            path: rule.path,
            line: rule.line,
        },
        _ => Taker::Unknown,
    }
}

/// Properties of a disk that rules ask for.
struct Kind {
    name: String,
    partitions: Vec<String>,
    is_rotating: bool,
}

impl Kind {
    fn of(root: &Path, device: &Device) -> Self {
        let entries = fs::read_dir(root.join("sys/block").join(device.name()));
        let entries = entries.into_iter().flatten().flatten();
        let partitions = entries.filter(|it| it.path().join("partition").exists());
        let names = partitions.filter_map(|it| it.file_name().into_string().ok());
        Kind {
            name: device.name().to_owned(),
            partitions: names.collect(),
            is_rotating: device.identity().is_ok_and(|it| it.rotational),
        }
    }

    /// Whether `is` holds for a name of the device in whose event a rule sets the scheduler in this way.
    fn has_name(&self, way: Way, is: impl Fn(&str) -> bool) -> bool {
        match way {
            Way::Disk | Way::Program => is(&self.name),
            Way::Partition => self.partitions.iter().any(|it| is(it)),
        }
    }
}

/// How a rule sets a disk's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In an event of the disk.
    Disk,
    /// In an event of one of its partitions.
    Partition,
    /// By a program that it runs.
    Program,
}

/// A line of udev's rules.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    path: PathBuf,
    line: usize,
    way: Way,
}

/// The last of udev's rules that gives such a disk the scheduler `name`.
fn rule(root: &Path, kind: &Kind, name: &str) -> Option<Rule> {
    let mut last = None;
    for (file, directory) in rule_files(root) {
        let path = Path::new("/").join(directory).join(&file);
        let text = fs::read_to_string(root.join(directory).join(&file)).unwrap_or_default();
        for (line, rule) in lines(&text) {
            if let Some(way) = sets(&rule, name).filter(|way| fits(&rule, kind, *way)) {
                let path = path.clone();
                last = Some(Rule { path, line, way });
            }
        }
    }
    last
}

/// Each file of rules and its directory, in the order in which they are run.
fn rule_files(root: &Path) -> BTreeMap<OsString, &'static str> {
    let mut files = BTreeMap::new();
    for directory in RULES {
        let entries = fs::read_dir(root.join(directory)).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_rule = Path::new(&name).extension().is_some_and(|it| it == "rules");
            if is_rule && name != OWN_RULE {
                files.entry(name).or_insert(directory);
            }
        }
    }
    files
}

/// Rules with the number of their first line; a backslash at a line's end continues it.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut rules: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let part = line.strip_suffix('\\').unwrap_or(line);
        match rules.last_mut() {
            Some((_, rule)) if goes_on => rule.push_str(part),
            _ => rules.push((number + 1, part.to_owned())),
        }
        goes_on = line.ends_with('\\');
    }
    rules
}

/// Keys of a rule, as (key, operator, value).
fn keys(rule: &str) -> Vec<(&str, &str, &str)> {
    let mut keys = Vec::new();
    let mut rest = rule;
    while let Some((before, after)) = rest.split_once('"') {
        let Some((value, next)) = after.split_once('"') else {
            break;
        };
        let key_and_operator = before.trim_matches([',', ' ', '\t']);
        let end = key_and_operator.find(['=', '!', '+', ':', '-']);
        if let Some((key, operator)) = end.map(|end| key_and_operator.split_at(end)) {
            keys.push((key.trim(), operator.trim(), value));
        }
        rest = next;
    }
    keys
}

/// How the rule sets the scheduler `name`; None if it does not.
fn sets(rule: &str, name: &str) -> Option<Way> {
    let mut keys = keys(rule).into_iter();
    keys.find_map(|(key, operator, value)| {
        let is_set = matches!(operator, "=" | ":=") && value == name;
        match key {
            "ATTR{queue/scheduler}" => is_set.then_some(Way::Disk),
            "ATTR{../queue/scheduler}" => is_set.then_some(Way::Partition),
            "RUN" | "RUN{program}" => names(value, name).then_some(Way::Program),
            _ => None,
        }
    })
}

/// Whether a command names the scheduler beside the file that it is written to.
fn names(command: &str, scheduler: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let mut words = command.split(|it| !is_part(it));
    command.contains("queue/scheduler") && words.any(|it| it == scheduler)
}

/// Whether what the rule asks of the device's name and kind holds; it may ask for more.
fn fits(rule: &str, kind: &Kind, way: Way) -> bool {
    let rotating = if kind.is_rotating { "1" } else { "0" };
    keys(rule).into_iter().all(|(key, operator, wanted)| {
        let is_one = |held: &str| {
            let mut patterns = wanted.split('|');
            patterns.any(|one| is_like(one.as_bytes(), held.as_bytes())) == (operator == "==")
        };
        match (key, operator) {
            ("KERNEL", "==" | "!=") => kind.has_name(way, is_one),
            ("ATTR{queue/rotational}" | "ATTR{../queue/rotational}", "==" | "!=") => {
                is_one(rotating)
            }
            _ => true,
        }
    })
}

/// Whether `text` is as the shell's `pattern` says.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => {
            is_like(rest, text) || !text.is_empty() && is_like(pattern, &text[1..])
        }
        (_, []) => false,
        ([b'?', rest @ ..], [_, text @ ..]) => is_like(rest, text),
        ([b'[', rest @ ..], [letter, text @ ..]) => match one_of(rest, *letter) {
            Some((is_in, rest)) => is_in && is_like(rest, text),
            None => *letter == b'[' && is_like(rest, text),
        },
        ([wanted, rest @ ..], [letter, text @ ..]) => wanted == letter && is_like(rest, text),
    }
}

/// Whether `letter` is in the set that `pattern` begins with, and what follows the set; None if it does
/// not end.
fn one_of(pattern: &[u8], letter: u8) -> Option<(bool, &[u8])> {
    let (is_not, set) = match pattern {
        [b'!' | b'^', rest @ ..] => (true, rest),
        all => (false, all),
    };
    // A bracket that comes first is one of the letters.
    let end = 1 + set.iter().skip(1).position(|it| *it == b']')?;
    let (mut letters, rest) = (&set[..end], &set[end + 1..]);
    let mut is_in = false;
    while let [first, after @ ..] = letters {
        let (last, left) = match after {
            [b'-', last, left @ ..] => (last, left),
            left => (first, left),
        };
        is_in |= (*first..=*last).contains(&letter);
        letters = left;
    }
    Some((is_in != is_not, rest))
}

/// The active profiles of a tuned that runs, if they give some disk the scheduler `name`.
fn tuned(root: &Path, name: &str) -> Option<String> {
    if !root.join(TUNED_RUNS).exists() {
        return None;
    }
    let active = fs::read_to_string(root.join(TUNED_PROFILE)).ok()?;
    let mut profiles = active.split_whitespace();
    let is_so = profiles.any(|it| gives(root, it, name, MOST_INCLUDED));
    is_so.then(|| active.trim().to_owned())
}

/// Whether a profile, or one that it includes, has `elevator=` with this name. It may do so for each kind
/// of disk apart.
fn gives(root: &Path, profile: &str, name: &str, most: usize) -> bool {
    let mut texts = TUNED_PROFILES
        .iter()
        .map(|it| fs::read_to_string(root.join(it).join(profile).join("tuned.conf")));
    let Some(Ok(text)) = texts.find(Result::is_ok) else {
        return false;
    };
    let mut settings = text.lines().filter_map(|line| line.split_once('='));
    settings.any(|(key, value)| match key.trim() {
        "elevator" => value.trim() == name,
        "include" if most > 0 => {
            let mut included = value.split([',', ' ']).filter(|it| !it.is_empty());
            included.any(|it| gives(root, it, name, most - 1))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As CachyOS, Pop!_OS and Arch's wiki have them.
    const CACHYOS: &str = r#"# HDD
ACTION=="add|change", KERNEL=="sd[a-z]*", ATTR{queue/rotational}=="1", \
    ATTR{queue/scheduler}="bfq"

# SSD
ACTION=="add|change", KERNEL=="sd[a-z]*|mmcblk[0-9]*", ATTR{queue/rotational}=="0", \
    ATTR{queue/scheduler}="mq-deadline"

# NVMe SSD
ACTION=="add|change", KERNEL=="nvme[0-9]*", ATTR{queue/rotational}=="0", \
    ATTR{queue/scheduler}="kyber"
"#;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn found(root: &Path, disk: &str, is_rotating: bool, name: &str) -> Option<(String, usize)> {
        let kind = Kind {
            name: disk.to_owned(),
            partitions: vec![format!("{disk}p1"), format!("{disk}p2")],
            is_rotating,
        };
        let rule = rule(root, &kind, name)?;
        Some((rule.path.display().to_string(), rule.line))
    }

    #[test]
    fn the_rule_that_sets_a_scheduler_is_found_by_disk_and_value() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let file = "usr/lib/udev/rules.d/60-ioschedulers.rules";
        write(root, file, CACHYOS);
        let at = |line| Some((format!("/{file}"), line));
        assert_eq!(found(root, "nvme0n1", false, "kyber"), at(10));
        assert_eq!(found(root, "sda", true, "bfq"), at(2));
        assert_eq!(found(root, "mmcblk0", false, "mq-deadline"), at(6));
        assert_eq!(found(root, "sda", false, "bfq"), None);
        assert_eq!(found(root, "sda", false, "kyber"), None);
        let own = r#"KERNEL=="nvme0n1", ATTR{queue/scheduler} = "kyber""#;
        write(root, "etc/udev/rules.d/99-mine.rules", own);
        let mine = Some(("/etc/udev/rules.d/99-mine.rules".to_owned(), 1));
        assert_eq!(found(root, "nvme0n1", false, "kyber"), mine);
        assert_eq!(found(root, "nvme1n1", false, "kyber"), at(10));
        // The administrator's file of the same name is read in its place.
        write(root, "etc/udev/rules.d/60-ioschedulers.rules", "");
        assert_eq!(found(root, "nvme1n1", false, "kyber"), None);
    }

    #[test]
    fn asking_for_a_scheduler_is_not_setting_it() {
        for (rule, way) in [
            (r#"ATTR{queue/scheduler}=="kyber", RUN+="x""#, None),
            (
                r#"ATTR{queue/scheduler}!="kyber", ATTR{queue/scheduler}="kyber""#,
                Some(Way::Disk),
            ),
            (r#"ATTR{queue/scheduler}="bfq""#, None),
            (r#"ENV{X}="ATTR{queue/scheduler}", ENV{Y}="kyber""#, None),
            ("ATTR{queue/scheduler}=kyber", None),
            (
                r#"RUN+="/bin/sh -c 'echo kyber > /sys/block/%k/queue/scheduler'""#,
                Some(Way::Program),
            ),
            (
                r#"RUN+="/bin/sh -c 'echo kyber2 > /sys/block/%k/queue/scheduler'""#,
                None,
            ),
            (r#"RUN{program}+="/bin/logger kyber""#, None),
        ] {
            assert_eq!(sets(rule, "kyber"), way, "{rule}");
        }
    }

    /// As users of ZFS on NixOS have it: the partition's own event sets the scheduler of its disk.
    #[test]
    fn a_rule_for_partitions_is_one_for_their_disk() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let file = "etc/udev/rules.d/99-local.rules";
        let rule = r#"ACTION=="add|change", KERNEL=="sd[a-z]*[0-9]*|mmcblk[0-9]*p[0-9]*|nvme[0-9]*n[0-9]*p[0-9]*", ENV{ID_FS_TYPE}=="zfs_member", ATTR{../queue/scheduler}="none""#;
        write(root, file, rule);
        let at = Some((format!("/{file}"), 1));
        assert_eq!(found(root, "nvme0n1", false, "none"), at);
        assert_eq!(found(root, "vda", false, "none"), None);
    }

    #[test]
    fn patterns_are_the_shells() {
        for (pattern, text, is) in [
            ("sd[a-z]*", "sda", true),
            ("sd[!a-c]", "sda", false),
            ("sd[!a-c]", "sdd", true),
            ("nvme[0-9]n[0-9]", "nvme0n1", true),
            ("nvme?n?", "nvme0n1", true),
            ("*", "", true),
            ("[]a]x", "]x", true),
            ("a[", "a[", true),
            ("mmcblk*", "mmcblk", true),
            ("vd?", "vd", false),
        ] {
            let is_so = is_like(pattern.as_bytes(), text.as_bytes());
            assert_eq!(is_so, is, "{pattern} {text}");
        }
    }

    #[test]
    fn tuneds_profile_is_asked_with_what_it_includes() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "etc/tuned/active_profile", "mine\n");
        let base = "[disk]\ndevices=sda\nelevator = kyber\n[more]\nelevator=none\n";
        write(root, "usr/lib/tuned/profiles/base/tuned.conf", base);
        write(root, "etc/tuned/mine/tuned.conf", "[main]\ninclude=base\n");
        assert_eq!(tuned(root, "kyber"), None, "it does not run");
        write(root, "run/tuned/tuned.pid", "1\n");
        assert_eq!(tuned(root, "kyber").as_deref(), Some("mine"));
        assert_eq!(tuned(root, "bfq"), None);
        assert_eq!(tuned(root, "none").as_deref(), Some("mine"));
        write(root, "etc/tuned/mine/tuned.conf", "[main]\ninclude=mine\n");
        assert_eq!(tuned(root, "kyber"), None, "a circle ends");
    }
}
