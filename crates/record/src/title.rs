//! Names of workloads and loads in words.

use crate::ResultFile;

/// A workload in words, for readers without the paper; None for an unknown one.
pub fn workload(name: &str) -> Option<&'static str> {
    let words = match name {
        "m1" => "create a file, write 4 KB, fsync, close",
        "m2" => "create a file, write 1 MB, fsync, close",
        "m3" => "append to a file in 1 KB writes",
        "m4" => "truncate a 2 MB file and write it again",
        "m5" => "fsync one new 4 KB file",
        "a" => "start an app: rename, write, fsync, unlink",
        "b" => "camera burst beside a thumbnail maker",
        "c" => "install an app: extract, write, fsync",
        "launch" => "start 16 apps, none of their pages in memory",
        "python" => "start Python and import what larger programs begin with",
        "sqlite3" => "start SQLite's shell and scan a table",
        "java" => "start Java and list a keystore",
        "phone" => "read six apps' files, none of them in memory, after months of use",
        "pieces" => "read a 512 KB file, by the pieces and dies that it is on",
        "sqlite-wal" => "SQLite transactions, write-ahead log",
        "sqlite-rollback" => "SQLite transactions, rollback journal",
        "completion" => "the load's file from start to end, M1 beside it for a tenth",
        "share" => "the load's rate beside M1 over its rate alone",
        "third" => "the load's time for its work, an album opened cold beside it for a third",
        "undisturbed" => "the load's time for its work, behind an app that does nothing",
        "gallery" => "open an album: photos become thumbnails",
        "camera" => "leave a camera: its burst is made durable",
        "game" => "load a game: assets are read, caches written",
        "trace" => "play a phone's block trace, the requests of its app in front",
        "aged-gallery" => "open an album whose files are in pieces, none of them in memory",
        "aged-game" => "load a game whose files are in pieces, none of them in memory",
        _ => return None,
    };
    Some(words)
}

/// A load in words.
pub fn load(name: &str) -> String {
    if let Some(other) = name.strip_suffix("recorded") {
        return match other.strip_suffix('-') {
            Some(other) => format!("{}, recorded", load(other)),
            None => "alone, recorded".to_owned(),
        };
    }
    let (pattern, place) = match name.strip_suffix("-memcg") {
        Some(pattern) => (pattern, " in its own memory cgroup"),
        None => (name, ""),
    };
    match pattern {
        "idle" => "on an idle device".to_owned(),
        "writer" => format!("while a big file is being written{place}"),
        "rewrite" => format!("while a big file is truncated and rewritten{place}"),
        "video" => "while a film is played".to_owned(),
        "download" => "while a file is downloaded".to_owned(),
        "update" => "while an app is updated".to_owned(),
        "reinstall" => "while an app's files are written and synced".to_owned(),
        "behind" => "beside what else the phone did".to_owned(),
        "backup" => "while big files are read from start to end".to_owned(),
        "database" => "while a database commits in a loop".to_owned(),
        "unpack" => "while an archive is unpacked and synced".to_owned(),
        "flat-out" => "while another process reads, writes and syncs flat out".to_owned(),
        "random" => format!("while a file is written at random{place}"),
        _ => match name.strip_prefix("apps-") {
            Some(number) => format!("beside {number} busy apps"),
            None => format!("under the load {name}"),
        },
    }
}

/// What a policy is called where a person compares it with others.
pub fn policy(name: &str) -> &str {
    match name {
        "fastt" => "frontrow, the app in front",
        other => other,
    }
}

/// A workload and its load, such as `m1: create a file …, while a big file is being written`.
pub fn situation(workload_name: &str, load_name: &str) -> String {
    match workload(workload_name) {
        Some(words) => format!("{workload_name}: {words}, {}", load(load_name)),
        None => format!("{workload_name} {}", load(load_name)),
    }
}

/// What a result is about, where no sentence says it.
pub fn experiment(result: &ResultFile) -> String {
    let words = match result.experiment.as_str() {
        "calibrate" => "Throughput by the size of requests",
        "fragments" => "A 512 KB file read cold, by its fragments",
        "throughput" => "Throughput with nothing else running, by scheduler",
        "overhead" => "What a request costs, by scheduler",
        "ablation" => "What each promotion does alone",
        "programs" => "How Python, SQLite and Java start",
        "iopro" => "What a recording costs the requests",
        crate::command::ON_ONES_OWN => "How long file operations take",
        other => return format!("{other} on {}", result.device),
    };
    format!("{words}, on {}", result.device)
}

/// A short form, such as `m1 under writer`; `m1` when idle.
pub fn short(workload: &str, load: &str) -> String {
    match load {
        "idle" => workload.to_owned(),
        load => format!("{workload} under {load}"),
    }
}
