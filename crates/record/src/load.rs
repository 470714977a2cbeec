//! Loads: what the background does in a run.

use crate::name::Unknown;
use crate::summary::IDLE;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Table of all background processes: add one here. A line has the name, the code in
/// `crates/workload`, what it does in a list, and as a report says it.
#[macro_export]
macro_rules! loads {
    ($take:ident) => {
        $take! {
            "writer": load::WRITER, "one big file is written from start to end",
                "while a big file is being written";
            "rewrite": load::REWRITE, "a big file is truncated and written again",
                "while a big file is truncated and rewritten";
            "random": load::RANDOM, "random 4 KB pages of a big file are written",
                "while a file is written at random";
            "video": load::VIDEO, "a film is played: 1 MB/s are read", "while a film is played";
            "download": load::DOWNLOAD, "a file is downloaded: 5 MB/s are written",
                "while a file is downloaded";
            "update": load::UPDATE, "an app is updated: 6 MB/s read, 12 MB/s written and synced",
                "while an app is updated";
            "reinstall": load::REINSTALL, "an app's files are written and synced",
                "while an app's files are written and synced";
            "backup": load::BACKUP, "big files are read from start to end",
                "while big files are read from start to end";
            "database": transactions::DATABASE, "a database commits in a loop",
                "while a database commits in a loop";
            "unpack": unpack::UNPACK, "an archive becomes small files, and all is synced",
                "while an archive is unpacked and synced";
            "flat-out": load::FLAT_OUT, "128 KB are read, written and synced in a loop",
                "while another process reads, writes and syncs flat out";
        }
    };
}

macro_rules! table {
    ($($name:literal: $code:expr, $title:literal, $words:literal;)*) => {
        /// All kinds of background processes, in the order in which commands list them.
        pub static KINDS: &[Kind] = &[$(Kind { name: $name, title: $title, words: $words }),*];
    };
}

loads!(table);

/// Apps of the load `apps-N`, which uses the first N, with the load's name and meaning.
const APPS: [(&str, &str, &str); 6] = [
    ("reinstall", "", ""),
    ("backup", "apps-2", "reinstall and backup at once"),
    ("update", "apps-3", "these and update"),
    ("random", "apps-4", "these and random"),
    ("download", "apps-5", "these and download"),
    ("writer", "apps-6", "these and writer"),
];

/// Loads in a memory cgroup of their own.
const CONFINED: [(&str, &str); 3] = [
    ("writer-memcg", "the writer in a memory cgroup of its own"),
    (
        "rewrite-memcg",
        "the rewriter in a memory cgroup of its own",
    ),
    (
        "random-memcg",
        "the random writer in a memory cgroup of its own",
    ),
];

/// Suffix of loads beside which iopro records; alone it is iopro beside nothing else.
const RECORDED: &str = "recorded";

/// The rest of a trace, the load of the workload `trace`.
const BEHIND: &str = "behind";

/// A background process's line in the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name in experiments, on the command line and in results.
    pub name: &'static str,
    /// What it does, for lists.
    pub title: &'static str,
    /// What it does, as a report says it.
    pub words: &'static str,
}

/// A background process of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// What it does.
    pub kind: &'static Kind,
    /// Whether it has a memory cgroup of its own (`writer-memcg`).
    pub own_memory_cgroup: bool,
}

/// A load. Its name is read by [`FromStr`] and given back by [`Display`](std::fmt::Display).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Load {
    name: String,
    /// Processes that run at once; none for `idle`.
    pub processes: Vec<Process>,
    /// Whether iopro records beside it.
    pub recorded: bool,
}

impl Load {
    /// The load `idle`: no background work.
    pub fn idle() -> Load {
        Load {
            name: IDLE.to_owned(),
            processes: Vec::new(),
            recorded: false,
        }
    }

    /// Name in experiments, on the command line and in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing runs beside the workload.
    pub fn is_idle(&self) -> bool {
        self.name == IDLE
    }

    /// Whether it is the rest of a trace.
    pub fn is_rest_of_trace(&self) -> bool {
        self.name == BEHIND
    }

    /// The same load without a recording.
    pub fn unrecorded(&self) -> Load {
        Load {
            name: beside(&self.name).unwrap_or(&self.name).to_owned(),
            recorded: false,
            ..self.clone()
        }
    }

    /// What it does, as a report says it.
    pub fn words(&self) -> String {
        if self.recorded {
            let other = self.unrecorded();
            return match other.is_idle() {
                true => "alone, recorded".to_owned(),
                false => format!("{}, recorded", other.words()),
            };
        }
        match self.processes.as_slice() {
            [] if self.is_rest_of_trace() => "beside what else the phone did".to_owned(),
            [] => "on an idle device".to_owned(),
            [one] if one.own_memory_cgroup => {
                format!("{} in its own memory cgroup", one.kind.words)
            }
            [one] => one.kind.words.to_owned(),
            several => format!("beside {} busy apps", several.len()),
        }
    }
}

/// Names and meanings of the loads that commands list.
pub fn listed() -> impl Iterator<Item = (&'static str, &'static str)> {
    [(IDLE, "nothing in the background")]
        .into_iter()
        .chain(KINDS.iter().map(|kind| (kind.name, kind.title)))
        .chain(
            APPS.into_iter()
                .skip(1)
                .map(|(_, name, title)| (name, title)),
        )
        .chain(CONFINED)
}

/// Name of the load beside which iopro records; None if it does not.
fn beside(name: &str) -> Option<&str> {
    match name.strip_suffix(RECORDED)? {
        "" => Some(IDLE),
        other => other.strip_suffix('-'),
    }
}

fn processes(name: &str) -> Option<Vec<Process>> {
    let process = |name: &str, own_memory_cgroup| {
        let kind = KINDS.iter().find(|kind| kind.name == name)?;
        Some(Process {
            kind,
            own_memory_cgroup,
        })
    };
    if [IDLE, BEHIND].contains(&name) {
        return Some(Vec::new());
    }
    if let Some(last) = APPS.iter().skip(1).position(|(_, load, _)| *load == name) {
        let apps = APPS.iter().take(last + 2);
        return apps.map(|(app, ..)| process(app, false)).collect();
    }
    let confined = CONFINED.iter().any(|(load, _)| *load == name);
    let kind = match confined {
        true => name.trim_end_matches("-memcg"),
        false => name,
    };
    Some(vec![process(kind, confined)?])
}

impl FromStr for Load {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        let other = beside(name);
        let known = listed().map(|(name, _)| name);
        Ok(Load {
            name: name.to_owned(),
            processes: processes(other.unwrap_or(name))
                .ok_or_else(|| Unknown::new(name, "a background load", known))?,
            recorded: other.is_some(),
        })
    }
}

crate::name::written_as_its_name!(Load);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_load_is_known_and_nothing_else() {
        for (name, _) in listed() {
            let number = name.strip_prefix("apps-");
            let number = number.map_or(1, |it| it.parse().unwrap());
            let expected = if name == "idle" { 0 } else { number };
            let load: Load = name.parse().unwrap();
            assert_eq!(load.processes.len(), expected, "{name}");
            assert_eq!(load.to_string(), name);
        }
        for name in [
            "",
            "memcg",
            "idle-memcg",
            "reader",
            "apps-1",
            "apps-7",
            "apps-2-memcg",
        ] {
            let error = name.parse::<Load>().unwrap_err().to_string();
            assert!(error.contains("writer, rewrite, random"), "{error}");
        }
    }

    #[test]
    fn a_recorded_load_is_the_load_and_iopro() {
        let load: Load = "backup-recorded".parse().unwrap();
        assert!(load.recorded && load.processes.len() == 1);
        assert_eq!(load.unrecorded(), "backup".parse().unwrap());
        assert_eq!(
            load.words(),
            "while big files are read from start to end, recorded"
        );
        let alone: Load = "recorded".parse().unwrap();
        assert!(alone.recorded && alone.unrecorded().is_idle());
        assert_eq!(alone.words(), "alone, recorded");
    }
}
