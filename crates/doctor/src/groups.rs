//! Groups of processes (cgroups) with limits of their own, and how near to these they were.

use crate::machine::Machine;
use crate::watch::some_ns;
use record::number;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the unified hierarchy is mounted.
const CGROUPS: &str = "sys/fs/cgroup";
/// Levels of the tree that are looked at, and most groups that are remembered.
const DEPTH: usize = 10;
const MOST: usize = 1024;
const PAGE_BYTES: u64 = 4096;

/// A limit of a group on a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Name of the disk.
    pub disk: String,
    /// The limit in words, such as `2.1 MB/s written`.
    pub words: String,
    /// Name of the file that sets it: `io.max` or `io.latency`.
    pub file: &'static str,
    /// Largest part of a limit that the group used, where it is a limit of its own use.
    pub used: f64,
}

/// A group, with what happened in the observed time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Path below the root of the hierarchy, such as `/pods`.
    pub path: String,
    /// Limits of its I/O.
    pub limits: Vec<Limit>,
    /// Time in which some task of it was held up by I/O (PSI), in nanoseconds.
    pub io_ns: u64,
    /// The same, by memory.
    pub memory_ns: u64,
    /// The lower one of `memory.high` and `memory.max`, if it has any.
    pub memory_bytes: Option<u64>,
    /// Name of the file that sets it.
    pub memory_file: &'static str,
    /// How often it was at one of these.
    pub memory_hits: u64,
    /// Bytes that were read again soon after eviction.
    pub refaulted_bytes: u64,
    /// Bytes that came back from swap.
    pub swapped_in_bytes: u64,
}

impl Group {
    /// Whether a process in the group with this path is in it.
    pub fn has(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.path.trim_end_matches('/'));
        below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
    }

    /// The last part of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether its memory was at the limit.
    pub fn is_short(&self) -> bool {
        self.memory_bytes.is_some() && (self.memory_hits > 0 || self.memory_ns > 0)
    }
}

/// Counters of a group since its start.
#[derive(Clone, Debug, Default)]
struct Counted {
    limits: Vec<(String, &'static str, BTreeMap<String, u64>)>,
    /// Numbers of `io.stat`, by device number and name.
    io: BTreeMap<String, BTreeMap<String, u64>>,
    io_ns: u64,
    memory_ns: u64,
    memory_bytes: Option<(u64, &'static str)>,
    memory_hits: u64,
    refaulted_bytes: u64,
    swapped_in_bytes: u64,
}

/// Counters of all groups that have a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups(BTreeMap<String, Counted>);

impl Groups {
    /// Reads the groups below `root`.
    pub fn look(root: &Path) -> Groups {
        let mut found = BTreeMap::new();
        add(&root.join(CGROUPS), String::new(), DEPTH, &mut found);
        Groups(found)
    }

    /// The growth since `before`, in a time of so many nanoseconds.
    pub fn since(&self, before: &Groups, watched_ns: u64, machine: &Machine) -> Vec<Group> {
        let none = Counted::default();
        let groups = self.0.iter().map(|(path, end)| {
            let begin = before.0.get(path).unwrap_or(&none);
            let since = |of: fn(&Counted) -> u64| of(end).saturating_sub(of(begin));
            let limits = end.limits.iter().filter_map(|(device, file, keys)| {
                let disk = machine.disks.iter().find(|it| it.number == *device)?;
                let used = keys.iter().map(|(key, limit)| {
                    let rate = rate(key, device, begin, end, watched_ns);
                    rate / *limit as f64
                });
                Some(Limit {
                    disk: disk.name.clone(),
                    words: words(keys),
                    file,
                    used: used.fold(0.0, f64::max),
                })
            });
            Group {
                path: path.clone(),
                limits: limits.collect(),
                io_ns: since(|it| it.io_ns),
                memory_ns: since(|it| it.memory_ns),
                memory_bytes: end.memory_bytes.map(|it| it.0),
                memory_file: end.memory_bytes.map_or("", |it| it.1),
                memory_hits: since(|it| it.memory_hits),
                refaulted_bytes: since(|it| it.refaulted_bytes),
                swapped_in_bytes: since(|it| it.swapped_in_bytes),
            }
        });
        groups.collect()
    }
}

/// Use in a second of what a key of `io.max` limits; a latency is no use of its own.
fn rate(key: &str, device: &str, begin: &Counted, end: &Counted, watched_ns: u64) -> f64 {
    let name = match key {
        "rbps" => "rbytes",
        "wbps" => "wbytes",
        "riops" => "rios",
        "wiops" => "wios",
        _ => return 0.0,
    };
    let of = |it: &Counted| it.io.get(device).and_then(|it| it.get(name)).copied();
    let used = of(end).unwrap_or(0).saturating_sub(of(begin).unwrap_or(0));
    used as f64 * 1e9 / watched_ns.max(1) as f64
}

fn words(keys: &BTreeMap<String, u64>) -> String {
    let each = keys.iter().map(|(key, limit)| match key.as_str() {
        "rbps" => format!("{}/s read", number::bytes(*limit)),
        "wbps" => format!("{}/s written", number::bytes(*limit)),
        "riops" => format!("{limit} reads a second"),
        "wiops" => format!("{limit} writes a second"),
        _ => format!(
            "others wait if its requests take {:.1} ms",
            *limit as f64 / 1e3
        ),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn add(directory: &Path, path: String, depth: usize, found: &mut BTreeMap<String, Counted>) {
    if found.len() >= MOST {
        return;
    }
    let counted = counted(directory);
    if !counted.limits.is_empty() || counted.memory_bytes.is_some() {
        found.insert(path.clone(), counted);
    }
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            add(&entry.path(), format!("{path}/{name}"), depth - 1, found);
        }
    }
}

fn counted(directory: &Path) -> Counted {
    let text = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let bytes = |name: &'static str| {
        let limit: Option<u64> = text(name).trim().parse().ok();
        limit.map(|it| (it, name))
    };
    let limits = ["io.max", "io.latency"].into_iter().flat_map(|file| {
        let lines = by_device(&text(file)).into_iter();
        lines.map(move |(device, keys)| (device, file, keys))
    });
    let limits: Vec<_> = limits.filter(|it| !it.2.is_empty()).collect();
    let memory = [bytes("memory.high"), bytes("memory.max")];
    let memory_bytes = memory.into_iter().flatten().min();
    if limits.is_empty() && memory_bytes.is_none() {
        return Counted::default();
    }
    let (events, memory) = (text("memory.events"), text("memory.stat"));
    Counted {
        limits,
        io: by_device(&text("io.stat")),
        io_ns: some_ns(&text("io.pressure")),
        memory_ns: some_ns(&text("memory.pressure")),
        memory_bytes,
        memory_hits: value(&events, "high") + value(&events, "max"),
        refaulted_bytes: value(&memory, "workingset_refault_file") * PAGE_BYTES,
        swapped_in_bytes: value(&memory, "workingset_refault_anon") * PAGE_BYTES,
    }
}

/// Lines such as `8:0 rbps=max wbps=1048576`: the numbers by device.
fn by_device(text: &str) -> BTreeMap<String, BTreeMap<String, u64>> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let device = words.next()?.to_owned();
        let keys = words.filter_map(|it| {
            let (key, value) = it.split_once('=')?;
            Some((key.to_owned(), value.parse().ok()?))
        });
        Some((device, keys.collect()))
    });
    lines.collect()
}

/// Number in a line such as `high 12`.
fn value(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|it| it.split_once(' '));
    let found = lines.find(|it| it.0 == name);
    found.map_or(0, |it| it.1.trim().parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Disk;

    #[test]
    fn a_group_at_its_limit_says_which_and_how_much_of_it_it_used() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(CGROUPS).join("pods").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("io.max", "8:0 rbps=max wbps=2097152 riops=max wiops=100\n");
        write("io.stat", "8:0 rbytes=0 wbytes=1000 rios=0 wios=10\n");
        write("memory.max", "40000000\n");
        write("memory.high", "max\n");
        write("memory.events", "high 0\nmax 7\n");
        write("inner/memory.max", "max\n");
        let before = Groups::look(root.path());
        write("io.stat", "8:0 rbytes=0 wbytes=500000 rios=0 wios=990\n");
        write("memory.events", "high 0\nmax 9\n");
        let machine = Machine {
            disks: vec![Disk {
                name: "sda".to_owned(),
                number: "8:0".to_owned(),
                ..Disk::default()
            }],
            ..Machine::default()
        };
        let groups = Groups::look(root.path()).since(&before, 10_000_000_000, &machine);
        let [group] = &groups[..] else {
            panic!("{groups:?}");
        };
        assert_eq!((group.name(), group.memory_hits), ("pods", 2));
        assert_eq!(group.memory_bytes, Some(40_000_000));
        let limit = &group.limits[0];
        assert_eq!((limit.disk.as_str(), limit.used), ("sda", 0.98));
        assert_eq!(limit.words, "2.10 MB/s written, 100 writes a second");
        assert!(group.has("/pods/inner") && !group.has("/podsmore"));
    }
}
