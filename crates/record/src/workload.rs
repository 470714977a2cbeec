//! Workloads: what the foreground does in a run.

use crate::name::Unknown;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Table of all workloads: add one here. A line has the name, the code in `crates/workload`, and
/// what reports need. That crate takes the code of the same lines.
#[macro_export]
macro_rules! workloads {
    ($take:ident) => {
        $take! {
            "m1": micro::M1, Workload::new("creat, write 4 KB, fsync, close of one file")
                .words("create a file, write 4 KB, fsync, close").operations(&["creat", "fsync"]);
            "m2": micro::M2, Workload::new("creat, write 1 MB, fsync, close of one file")
                .words("create a file, write 1 MB, fsync, close").operations(&["creat", "fsync"]);
            "m3": micro::M3, Workload::new("1 KB writes to a new file")
                .words("append to a file in 1 KB writes").operations(&["write"])
                .headline("unthrottled_ms");
            "m4": micro::M4, Workload::new("truncate a 2 MB file and write it again")
                .words("truncate a 2 MB file and write it again").operations(&["truncate"]);
            "m5": micro::M5, Workload::new("a new 4 KB file while a big one is rewritten")
                .words("fsync one new 4 KB file").operations(&["fsync"]).headline("fsync_mean_ms");
            "a": launch::LAUNCHES, Workload::new("an app's start: cold reads, SQLite, preference files")
                .words("start an app: rename, write, fsync, unlink").operations(&["launch"])
                .headline("launch_mean_ms");
            "b": camera::BURSTS, Workload::new("a camera's bursts beside a thumbnail maker")
                .words("camera burst beside a thumbnail maker").operations(&["shot"])
                .headline("shots").without_total();
            "c": install::INSTALLS, Workload::new("an app's installation")
                .words("install an app: extract, write, fsync").operations(&["install"])
                .headline("install_mean_ms");
            "launch": loading::LOADING, Workload::new("16 apps start cold, one after another")
                .words("start 16 apps, none of their pages in memory").headline("load_time_ms")
                .without_total().only_in_the_lab();
            "resume": resuming::RESUMING,
                Workload::new("16 apps whose pages were evicted are resumed, one after another")
                .words("resume 16 apps, none of their files' pages in memory")
                .headline("load_time_ms").without_total().only_in_the_lab();
            "python": programs::code(Program::Python),
                Workload::new("Python imports its modules, cold, loaded and not")
                .words("start Python and import what larger programs begin with")
                .headline("loaded_over_demand").without_total().only_in_the_lab();
            "sqlite3": programs::code(Program::Sqlite),
                Workload::new("SQLite scans a table, cold, loaded and not")
                .words("start SQLite's shell and scan a table").headline("loaded_over_demand")
                .without_total().only_in_the_lab();
            "java": programs::code(Program::Java),
                Workload::new("Java lists a keystore, cold, loaded and not")
                .words("start Java and list a keystore").headline("loaded_over_demand")
                .without_total().only_in_the_lab();
            "sqlite3-flatpak": programs::packed(Program::Sqlite, Package::Flatpak),
                Workload::new("SQLite scans a table, cold, in a Flatpak's sandbox")
                .words("start SQLite's shell in a Flatpak's sandbox")
                .headline("loaded_over_demand").without_total().only_in_the_lab();
            "sqlite3-snap-lzo": programs::packed(Program::Sqlite, Package::Snap("lzo")),
                Workload::new("SQLite scans a table, cold, from a Snap packed by lzo")
                .words("start SQLite's shell from a Snap packed by lzo")
                .headline("loaded_over_demand").without_total().only_in_the_lab();
            "sqlite3-snap-xz": programs::packed(Program::Sqlite, Package::Snap("xz")),
                Workload::new("SQLite scans a table, cold, from a Snap packed by xz")
                .words("start SQLite's shell from a Snap packed by xz")
                .headline("loaded_over_demand").without_total().only_in_the_lab();
            "sqlite3-snap-zstd": programs::packed(Program::Sqlite, Package::Snap("zstd")),
                Workload::new("SQLite scans a table, cold, from a Snap packed by zstd")
                .words("start SQLite's shell from a Snap packed by zstd")
                .headline("loaded_over_demand").without_total().only_in_the_lab();
            "sqlite3-overlay": programs::packed(Program::Sqlite, Package::Overlay),
                Workload::new("SQLite scans a table, cold, from an overlayfs")
                .words("start SQLite's shell from an overlayfs")
                .headline("loaded_over_demand").without_total().only_in_the_lab();
            "python-snap-xz": programs::packed(Program::Python, Package::Snap("xz")),
                Workload::new("Python imports its modules, cold, from a Snap packed by xz")
                .words("start Python from a Snap packed by xz")
                .headline("loaded_over_demand").without_total().only_in_the_lab();
            "gallery": front::gallery::GALLERY, Workload::new("an album is opened: 50 photos become thumbnails")
                .words("open an album: photos become thumbnails").operations(&["response"])
                .headline("response_mean_ms");
            "camera": front::camera::CAMERA, Workload::new("a camera is left: its burst is made durable")
                .words("leave a camera: its burst is made durable").operations(&["response"])
                .headline("response_mean_ms");
            "game": front::game::GAME, Workload::new("a game loads: assets are read, caches written")
                .words("load a game: assets are read, caches written").operations(&["response"])
                .headline("response_mean_ms");
            "split-view": split_view::SPLIT_VIEW,
                Workload::new("three apps on the screen read at once")
                .words("three apps on the screen read at once, at random places")
                .operations(&["view_100_read", "view_60_read", "view_30_read"])
                .headline("view_100_read_mb_s").without_total().only_in_the_lab();
            "aged-gallery": aged::GALLERY, Workload::new("an album in pieces is opened cold")
                .words("open an album whose files are in pieces, none of them in memory")
                .operations(&["response"]).headline("response_mean_ms");
            "aged-game": aged::GAME, Workload::new("a game in pieces loads cold")
                .words("load a game whose files are in pieces, none of them in memory")
                .operations(&["response"]).headline("response_mean_ms");
            "phone": phone::READING, Workload::new("six apps' files read cold after months of use")
                .words("read six apps' files, none of them in memory, after months of use")
                .headline("read_mb_s").without_total().only_in_the_lab();
            "pieces": pieces::GRID, Workload::new("a 512 KB file read cold, by how it lies")
                .words("read a 512 KB file, by the pieces and dies that it is on")
                .without_total().only_in_the_lab();
            "sqlite-wal": sqlite::WAL, Workload::new("SQLite statements with a write-ahead log")
                .words("SQLite transactions, write-ahead log").operations(&["commit", "insert"]);
            "sqlite-rollback": sqlite::ROLLBACK,
                Workload::new("SQLite statements with a rollback journal")
                .words("SQLite transactions, rollback journal").operations(&["commit", "insert"]);
            "completion": price::COMPLETION,
                Workload::new("the load's time for its file, M1 beside it for a tenth")
                .words("the load's file from start to end, M1 beside it for a tenth")
                .operations(&[]).headline("background_completion_ms");
            "third": price::THIRD,
                Workload::new("the load's time for its work, an album opened cold beside it for a third")
                .words("the load's time for its work, an album opened cold beside it for a third")
                .operations(&["response"]).headline("background_completion_ms");
            "undisturbed": price::UNDISTURBED,
                Workload::new("the load's time for its work, nothing beside it")
                .words("the load's time for its work, behind an app that does nothing")
                .operations(&[]).headline("background_completion_ms");
            "share": price::SHARE, Workload::new("the load's rate beside a busy M1 over its rate alone")
                .words("the load's rate beside M1 over its rate alone").operations(&[])
                .headline("background_share");
            "seq-read-1": device::sequential(Direction::Read, 1),
                Workload::new("direct 128 KB reads in sequence, one at a time").without_total();
            "seq-read-32": device::sequential(Direction::Read, 32),
                Workload::new("direct 128 KB reads in sequence, 32 at a time").without_total();
            "seq-write-1": device::sequential(Direction::Write, 1),
                Workload::new("direct 128 KB writes in sequence, one at a time").without_total();
            "seq-write-32": device::sequential(Direction::Write, 32),
                Workload::new("direct 128 KB writes in sequence, 32 at a time").without_total();
            "rand-read-1": device::random(Direction::Read, 1),
                Workload::new("direct 4 KB reads at random, one at a time").without_total();
            "rand-read-32": device::random(Direction::Read, 32),
                Workload::new("direct 4 KB reads at random, 32 at a time").without_total();
            "rand-write-1": device::random(Direction::Write, 1),
                Workload::new("direct 4 KB writes at random, one at a time").without_total();
            "rand-write-32": device::random(Direction::Write, 32),
                Workload::new("direct 4 KB writes at random, 32 at a time").without_total();
            "calibrate-seq-read": calibrate::code(Order::Sequential, Direction::Read),
                Workload::new("direct reads in sequence, 4 KB to 512 KB a request").without_total();
            "calibrate-seq-write": calibrate::code(Order::Sequential, Direction::Write),
                Workload::new("direct writes in sequence, 4 KB to 512 KB a request").without_total();
            "calibrate-rand-read": calibrate::code(Order::Random, Direction::Read),
                Workload::new("direct reads at random, 4 KB to 512 KB a request").without_total();
            "calibrate-rand-write": calibrate::code(Order::Random, Direction::Write),
                Workload::new("direct writes at random, 4 KB to 512 KB a request").without_total();
            "storage-seq-read": storage::SEQ_READ,
                Workload::new("direct reads of a file in sequence, by the size of requests")
                .words("read a file in sequence, past the page cache")
                .operations(&["4k_read", "1024k_read"]).headline("4k_read_mean_ms").without_total();
            "storage-seq-write": storage::SEQ_WRITE,
                Workload::new("direct writes to a file in sequence, by the size of requests")
                .words("write a file in sequence, past the page cache")
                .operations(&["4k_write", "1024k_write"]).headline("4k_write_mean_ms")
                .without_total();
            "storage-rand-read": storage::RAND_READ,
                Workload::new("direct reads of a file at random, by the size of requests")
                .words("read a file at random, past the page cache")
                .operations(&["4k_read", "1024k_read"]).headline("4k_read_mean_ms").without_total();
            "storage-rand-write": storage::RAND_WRITE,
                Workload::new("direct writes to a file at random, by the size of requests")
                .words("write a file at random, past the page cache")
                .operations(&["4k_write", "1024k_write"]).headline("4k_write_mean_ms")
                .without_total();
            "storage-pieces": storage::PIECES,
                Workload::new("direct reads in sequence of a file in pieces, by the size of requests")
                .words("read a file that is in pieces in sequence, past the page cache")
                .operations(&["64k_read", "1024k_read"]).headline("1024k_read_mean_ms")
                .without_total();
            "overhead-read-1": device::overhead(Direction::Read, 1),
                Workload::new("instructions of a direct 4 KB read, one at a time")
                .without_total().only_in_the_lab();
            "overhead-read-32": device::overhead(Direction::Read, 32),
                Workload::new("instructions of a direct 4 KB read, 32 at a time")
                .without_total().only_in_the_lab();
            "overhead-write-1": device::overhead(Direction::Write, 1),
                Workload::new("instructions of a direct 4 KB write, one at a time")
                .without_total().only_in_the_lab();
            "overhead-write-32": device::overhead(Direction::Write, 32),
                Workload::new("instructions of a direct 4 KB write, 32 at a time")
                .without_total().only_in_the_lab();
            "trace": Code::TRACE, Workload::new("a phone's block trace is played")
                .words("play a phone's block trace, the requests of its app in front")
                .operations(&["front_read", "front_write", "behind_read", "behind_write"])
                .headline("front_read_mean_ms").only_in_the_lab();
        }
    };
}

macro_rules! table {
    ($($name:literal: $code:expr, $workload:expr;)*) => {
        /// All workloads, in the order in which commands list them.
        pub static WORKLOADS: &[Workload] = &[$($workload.named($name)),*];
    };
}

workloads!(table);

/// A workload's line in the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// Name in experiments, on the command line and in results.
    pub name: &'static str,
    /// What it does, for lists.
    pub title: &'static str,
    /// What it does, as a report says it to readers without the paper.
    pub words: Option<&'static str>,
    /// Name of the metric that represents it.
    pub headline: &'static str,
    /// Key operations, the most important first (paper table 2 for M1–M5). With None all operations count.
    pub operations: Option<&'static [&'static str]>,
    /// Whether its total says something. Scenario B shoots for a fixed time; requests on the bare
    /// device have a rate or a cost.
    pub has_total: bool,
    /// Whether `frontrow bench` leaves it out: it counts instructions, which only the lab's clock
    /// can, or is read cold, for which everybody's cache is dropped.
    pub only_in_the_lab: bool,
}

impl Workload {
    const fn new(title: &'static str) -> Self {
        Workload {
            name: "",
            title,
            words: None,
            headline: "total_ms",
            operations: None,
            has_total: true,
            only_in_the_lab: false,
        }
    }

    const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    const fn words(mut self, words: &'static str) -> Self {
        self.words = Some(words);
        self
    }

    const fn headline(mut self, metric: &'static str) -> Self {
        self.headline = metric;
        self
    }

    const fn operations(mut self, operations: &'static [&'static str]) -> Self {
        self.operations = Some(operations);
        self
    }

    const fn without_total(mut self) -> Self {
        self.has_total = false;
        self
    }

    const fn only_in_the_lab(mut self) -> Self {
        self.only_in_the_lab = true;
        self
    }

    /// The workload with this name; None if no line has it.
    pub fn find(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|it| it.name == name)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name)
    }
}

impl FromStr for &'static Workload {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        let known = || WORKLOADS.iter().map(|it| it.name);
        Workload::find(name).ok_or_else(|| Unknown::new(name, "a workload", known()))
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for &'static Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_one_workloads() {
        for workload in WORKLOADS {
            let found: &Workload = workload.name.parse().unwrap();
            assert!(std::ptr::eq(found, workload), "{workload}");
        }
    }

    #[test]
    fn a_misspelt_workload_is_told_the_nearest() {
        let error = "cammera".parse::<&Workload>().unwrap_err().to_string();
        assert!(error.contains("did you mean 'camera'?"), "{error}");
    }
}
