//! The report: which tasks waited, how long, in which layer and why. It is computed from the
//! [`tables`](crate::tables) alone, so users of an export can compute the same.

mod account;
mod ask;
mod flow;
mod history;
mod html;
mod live;
mod names;
mod rows;
mod sentences;
mod text;
mod timeline;

pub use account::{Accounted, Owner, Part};
pub use flow::Flow;
pub use html::{STYLE, render as html};
pub use live::{UnderWay, Waits, watch_waits};
pub use text::render as text;
pub use timeline::{LANES, Lane, Timeline};

use crate::event::Dev;
use crate::store::{Error, Store};
use crate::wait;
use serde::Serialize;

/// Most rows of a table in the report.
pub const TOP: u64 = 10;

/// All results of a recording that the report shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The recording and the machine.
    pub recording: Recording,
    /// Waits of the foreground, without those of the kernel's threads and of the background.
    pub foreground: Waiting,
    /// Waits of all tasks, the kernel's threads included.
    pub everybody: Waiting,
    /// Time of the foreground's calls by layer.
    pub layers: Vec<Layer>,
    /// Calls of the foreground by kind, the longest in total first; at most [`TOP`].
    pub calls: Vec<Calls>,
    /// Requests by operation and content, the most bytes first.
    pub io: Vec<Direction>,
    /// Reads and writes by size, the smallest first.
    pub sizes: Vec<Size>,
    /// The most awaited files; at most [`TOP`].
    pub files: Vec<File>,
    /// Page versions of buffered writes by their end, as in the table `links`.
    pub writes: Vec<Count>,
    /// Pages of reads, by where they came from.
    pub reads: Vec<Count>,
    /// Things that could not be linked, by kind.
    pub unlinked: Vec<Unlinked>,
    /// Load of each layer over time.
    pub timeline: Timeline,
}

/// Properties of the recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    /// Kernel release of the recorded machine, as `uname -r` prints it.
    pub kernel: String,
    /// The foreground: a process, a cgroup, a command, or `everybody`.
    pub target: String,
    /// Duration of the recording, in nanoseconds.
    pub duration_ns: u64,
    /// `complete`, `cut short` or `damaged`.
    pub ending: String,
    /// What this kernel cannot record, in one sentence each.
    pub missing: Vec<String>,
    /// Events that were lost, by kind.
    pub lost: Vec<Count>,
}

/// Time that tasks were blocked, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// Sum over all waits from blocking to wake-up, in nanoseconds.
    pub total_ns: u64,
    /// Waits by class, the longest in total first.
    pub classes: Vec<Class>,
    /// Waits by process, call, class, cause, file and the task at the other end. The longest in
    /// total are first; at most [`TOP`].
    pub top: Vec<Top>,
    /// The longest single wait; None without waits.
    pub longest: Option<Longest>,
}

/// All waits of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// The class; its name is that in the table `waits`.
    pub class: wait::Class,
    /// Meaning of the class in words, to be put after "waited".
    pub words: &'static str,
    /// Number of waits.
    pub waits: u64,
    /// Sum of the waits, in nanoseconds.
    pub total_ns: u64,
    /// Longest wait, in nanoseconds.
    pub longest_ns: u64,
}

/// Waits with the same process, call, class, cause, file and task at the other end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Top {
    /// Name of the process that waited.
    pub process: String,
    /// Kind of the call that it was in; None outside of calls.
    pub call: Option<String>,
    /// Class of the waits.
    pub class: wait::Class,
    /// Class of the wait of the task at the other end; None if it did not wait.
    pub cause: Option<wait::Class>,
    /// Path of the file; None if there is none or its name is not known.
    pub file: Option<String>,
    /// Name of the process at the other end; None if it is not known.
    pub other: Option<String>,
    /// Number of waits.
    pub waits: u64,
    /// Sum of the waits, in nanoseconds.
    pub total_ns: u64,
    /// Longest wait, in nanoseconds.
    pub longest_ns: u64,
}

/// The longest single wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Longest {
    /// The waiter and the reason; its counts are those of this wait.
    pub what: Top,
    /// Begin of the wait, in nanoseconds since the begin of the recording.
    pub at_ns: u64,
}

/// Time that calls spent in one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// Name of the layer.
    pub layer: &'static str,
    /// What counts as time in the layer, in words.
    pub words: &'static str,
    /// Sum over the calls, in nanoseconds.
    pub total_ns: u64,
}

/// All calls of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calls {
    /// Kind of the calls, as in the table `syscalls`.
    pub kind: String,
    /// Number of calls.
    pub calls: u64,
    /// Sum of their durations, in nanoseconds.
    pub total_ns: u64,
    /// Duration of the longest call, in nanoseconds.
    pub longest_ns: u64,
    /// Part of `total_ns` in which they were blocked.
    pub blocked_ns: u64,
}

/// Requests with the same operation and content.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// Operation: `read`, `write`, `flush`, `discard` …
    pub op: String,
    /// Content, as in the table `requests`.
    pub content: String,
    /// Number of requests.
    pub requests: u64,
    /// Sum of their bytes.
    pub bytes: u64,
    /// Mean time in the block layer before the issue, in nanoseconds.
    pub queued_ns: u64,
    /// Mean time from issue to completion, in nanoseconds.
    pub device_ns: u64,
}

/// Requests of one range of sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Size {
    /// Upper limit of the size, a power of two; the size is more than half of it.
    pub up_to_bytes: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
}

/// Waits for a file, and its requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct File {
    /// Path of the file; a text with its number if the name is not known.
    pub path: String,
    /// Sum of all tasks' waits for it, in nanoseconds.
    pub waited_ns: u64,
    /// Number of requests with its pages.
    pub requests: u64,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Bytes written to the device.
    pub written_bytes: u64,
    /// DoF_L of the pages that requests had: their pieces on the device over their pieces without
    /// fragmentation. None without requests.
    pub dof: Option<f64>,
}

/// Number of things of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Count {
    /// Name of the kind.
    pub kind: String,
    /// Number of things.
    pub count: u64,
}

/// Number of things of one kind that could not be linked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unlinked {
    /// Name of the kind, as in the table `unlinked`.
    pub kind: String,
    /// Number of things that could not be linked.
    pub count: u64,
    /// Number of all things of this kind.
    pub of: u64,
}

impl Report {
    /// Computes the report from linked tables.
    pub fn of(store: &Store) -> Result<Report, Error> {
        ask::report(store.database())
    }
}

/// Whether a recording has a task of the foreground: not if it names what is not there.
///
/// # Errors
/// The query of the database fails.
pub fn has_foreground(store: &Store) -> Result<bool, Error> {
    ask::has_foreground(store.database())
}

/// Names of processes that a report can be about, those with the most waits first; at most [`TOP`].
///
/// # Errors
/// The query of the database fails.
pub fn processes(store: &Store) -> Result<Vec<String>, Error> {
    ask::processes(store.database())
}

/// Bytes of one file that the device read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRead {
    /// Device of the file system.
    pub device: Dev,
    /// Inode number of the file.
    pub inode: u64,
    /// Bytes read; a byte counts each time it was read.
    pub bytes: u64,
}

/// Reads of all files that existed at the end of the recording and were read from the device.
///
/// # Errors
/// The query of the database fails.
pub fn reads_of_files(store: &Store) -> Result<Vec<FileRead>, Error> {
    ask::reads_of_files(store.database())
}

/// A call as its thread made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOnFile {
    /// `task_id` of the task that called.
    pub task: u64,
    /// Kind of the call, as in the table `syscalls`.
    pub kind: String,
    /// `file_id` of the file; None for a call without one.
    pub file: Option<u64>,
    /// Whether the file is a directory.
    pub is_directory: bool,
    /// `file_id` of the file that is read, for calls on two files.
    pub from: Option<u64>,
    /// Offset in the file; the new size for truncate.
    pub offset_bytes: Option<u64>,
    /// Bytes that the call asked for.
    pub size_bytes: Option<u64>,
    /// Return value: bytes, or a negative error number.
    pub result: i64,
    /// Begin of the call, in nanoseconds of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// Duration of the call, in nanoseconds.
    pub took_ns: u64,
    /// The recording ended before the call did.
    pub unfinished: bool,
    /// The file was opened with O_DIRECT.
    pub direct: bool,
    /// The call has O_SYNC or O_DSYNC.
    pub sync: bool,
}

/// A name that a file had, got or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameChange {
    /// `file_id` of the file.
    pub file: u64,
    /// When the name was told, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The path that the file had, got or lost.
    pub path: String,
    /// Reason, as in the table `file_names`.
    pub why: String,
    /// `task_id` of a task that was then in a call that renames or removes; None if none was.
    pub task: Option<u64>,
    /// Whether that call was a rename.
    pub by_rename: bool,
    /// Whether the file is a directory.
    pub is_directory: bool,
}

/// Gives `each` all calls on files, in the order of their ends.
///
/// # Errors
/// The query of the database fails.
pub fn calls_on_files(store: &Store, each: &mut dyn FnMut(CallOnFile)) -> Result<(), Error> {
    history::calls_on_files(store.database(), each)
}

/// Names of files, in the order in which they were told.
///
/// # Errors
/// The query of the database fails.
pub fn name_changes(store: &Store) -> Result<Vec<NameChange>, Error> {
    history::name_changes(store.database())
}

/// The flow of each owner's requests, and last the flow of requests without an owner. `window` is
/// the range of time and the length of an interval, in nanoseconds. A request with a page of a file
/// belongs to the first owner that `owner_of` gives for the paths of its files. Journal, metadata
/// and discards have no path.
///
/// # Errors
/// The query of the database fails.
pub fn flows(
    store: &Store,
    window: (std::ops::Range<u64>, u64),
    owners: usize,
    owner_of: &dyn Fn(&str) -> Option<usize>,
) -> Result<Vec<Flow>, Error> {
    flow::flows(store.database(), window, owners, owner_of)
}

/// Time of system calls of `kind`, such as `pread64`, by path of the file and layer.
///
/// # Errors
/// The query of the database fails.
pub fn layers_of_files(store: &Store, kind: &str) -> Result<Vec<(String, Vec<Layer>)>, Error> {
    ask::layers_of_files(store.database(), kind)
}

/// Share of dirtied page versions with a known request, of all that were taken for writeback. None
/// where nothing was written.
pub fn linked_share(writes: &[Count]) -> Option<f64> {
    let count = |kind| {
        writes
            .iter()
            .find(|it| it.kind == kind)
            .map_or(0, |it| it.count)
    };
    let (linked, unlinked) = (count("write"), count("unlinked"));
    match linked + unlinked {
        0 => None,
        all => Some(linked as f64 / all as f64),
    }
}
