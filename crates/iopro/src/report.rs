//! The report: who waited, how long, in which layer and why. All of it is
//! asked from the [`tables`](crate::tables), so whoever exports them can ask
//! the same.

mod ask;
mod flow;
mod history;
mod html;
mod live;
mod sentences;
mod text;
mod timeline;

pub use flow::Flow;
pub use html::render as html;
pub use live::{Frame, UnderWay, watch};
pub use text::{frame as frame_text, render as text};
pub use timeline::{LANES, Lane, Timeline};

use crate::event::Dev;
use crate::store::{Error, Store};
use serde::Serialize;

/// How many rows a table of the report has at most.
pub const TOP: u64 = 10;

/// What a report says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was recorded, and where.
    pub recording: Recording,
    /// The foreground's waiting: those of the kernel's threads and of the
    /// background are in `everybody`.
    pub foreground: Waiting,
    /// Everybody's waiting, the kernel's threads included.
    pub everybody: Waiting,
    /// Where the foreground's calls spent their time.
    pub layers: Vec<Layer>,
    /// The foreground's calls by kind, the slowest in sum first.
    pub calls: Vec<Calls>,
    /// Requests by direction.
    pub io: Vec<Direction>,
    /// Requests by size.
    pub sizes: Vec<Size>,
    /// The files that were waited for longest.
    pub files: Vec<File>,
    /// Page versions of buffered writes, by what became of them.
    pub writes: Vec<Count>,
    /// Pages of reads, by where they came from.
    pub reads: Vec<Count>,
    /// What could not be linked.
    pub unlinked: Vec<Unlinked>,
    /// The load of each layer over time.
    pub timeline: Timeline,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    /// The kernel.
    pub kernel: String,
    /// Whose waiting it is about.
    pub target: String,
    /// How long it is.
    pub duration_ns: u64,
    /// `complete`, `cut short` or `damaged`.
    pub ending: String,
    /// What this kernel does not let be seen.
    pub missing: Vec<String>,
    /// Events that were lost, by where.
    pub lost: Vec<Count>,
}

/// How long tasks waited, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// All of it, summed over the tasks.
    pub total_ns: u64,
    /// By class, the longest first.
    pub classes: Vec<Class>,
    /// By process, class, file and who was at the other end; the longest first.
    pub top: Vec<Top>,
    /// The longest single one.
    pub longest: Option<Longest>,
}

/// One class's waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// The class.
    pub class: String,
    /// What it means, after "waited".
    pub words: String,
    /// How many.
    pub waits: u64,
    /// How long together.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

/// Waits that have everything in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Top {
    /// Who waited.
    pub process: String,
    /// In which call.
    pub call: Option<String>,
    /// For what.
    pub class: String,
    /// What the other end waited for itself.
    pub cause: Option<String>,
    /// On which file.
    pub file: Option<String>,
    /// Because of whom.
    pub other: Option<String>,
    /// How many.
    pub waits: u64,
    /// How long together.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

/// A single wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Longest {
    /// Who, on what, why.
    pub what: Top,
    /// Its begin, since the recording's.
    pub at_ns: u64,
}

/// Time of calls in a layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// Its name.
    pub layer: &'static str,
    /// What counts as it.
    pub words: &'static str,
    /// The time.
    pub total_ns: u64,
}

/// Calls of a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calls {
    /// The kind.
    pub kind: String,
    /// How many.
    pub calls: u64,
    /// How long together.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// Of the time, blocked.
    pub blocked_ns: u64,
}

/// Requests of one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// `read`, `write`, `flush`, `discard` …
    pub op: String,
    /// What was in them.
    pub content: String,
    /// How many.
    pub requests: u64,
    /// Bytes together.
    pub bytes: u64,
    /// Mean time in the block layer.
    pub queued_ns: u64,
    /// Mean time in the device.
    pub device_ns: u64,
}

/// Requests of one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Size {
    /// At most that many bytes, a power of two, and more than half of it.
    pub up_to_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct File {
    /// Its path.
    pub path: String,
    /// How long it was waited for, by everybody.
    pub waited_ns: u64,
    /// Requests with its pages.
    pub requests: u64,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Bytes written to it.
    pub written_bytes: u64,
    /// How many pieces on the device the pages seen in requests are in, over
    /// how many they would be in without fragmentation (DoF_L of what was
    /// accessed); none without requests.
    pub dof: Option<f64>,
}

/// Something by its kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Count {
    /// The kind.
    pub kind: String,
    /// How many.
    pub count: u64,
}

/// Something that could not be linked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unlinked {
    /// The kind.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// Of how many.
    pub of: u64,
}

impl Report {
    /// What the tables say.
    pub fn of(store: &Store) -> Result<Report, Error> {
        ask::report(store.database())
    }
}

/// What the device read of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRead {
    /// The file system's device.
    pub device: Dev,
    /// The file's number there.
    pub inode: u64,
    /// Bytes, each as often as it was read.
    pub bytes: u64,
}

/// Of every file that was there at the end and of which the device read something.
///
/// # Errors
/// What the database says.
pub fn reads_of_files(store: &Store) -> Result<Vec<FileRead>, Error> {
    ask::reads_of_files(store.database())
}

/// A call as its thread made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOnFile {
    /// Who called.
    pub task: u64,
    /// As in the table `syscalls`.
    pub kind: String,
    /// The file, by its number in the tables.
    pub file: Option<u64>,
    /// It is a directory.
    pub is_directory: bool,
    /// Where in the file; the new size for truncate.
    pub offset_bytes: Option<u64>,
    /// What it returned: bytes, or an error as a negative number.
    pub result: i64,
    /// Its begin.
    pub begin_ns: u64,
    /// From there to its end.
    pub took_ns: u64,
    /// The recording ended before it did.
    pub unfinished: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// O_SYNC or O_DSYNC.
    pub sync: bool,
}

/// A name that a file was seen by, got or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameChange {
    /// The file, by its number in the tables.
    pub file: u64,
    /// When it was told.
    pub time_ns: u64,
    /// The path.
    pub path: String,
    /// As in the table `file_names`.
    pub why: String,
    /// Who was in a call then that changes names.
    pub task: Option<u64>,
    /// That call was a rename.
    pub by_rename: bool,
    /// The file is a directory.
    pub is_directory: bool,
}

/// All calls on files, one after the other as they ended.
///
/// # Errors
/// What the database says.
pub fn calls_on_files(store: &Store, each: &mut dyn FnMut(CallOnFile)) -> Result<(), Error> {
    history::calls_on_files(store.database(), each)
}

/// What names of files became known, in the order of their times.
///
/// # Errors
/// What the database says.
pub fn name_changes(store: &Store) -> Result<Vec<NameChange>, Error> {
    history::name_changes(store.database())
}

/// What lay in the queue and in the device in each interval of a time, both in nanoseconds:
/// what belongs to each owner, and last what is nobody's. A request with a page of a file
/// belongs to the first of the owners whom `owner_of` gives for its files' paths; journal,
/// metadata and discards have no path.
///
/// # Errors
/// What the database says.
pub fn flows(
    store: &Store,
    window: (std::ops::Range<u64>, u64),
    owners: usize,
    owner_of: &dyn Fn(&str) -> Option<usize>,
) -> Result<Vec<Flow>, Error> {
    flow::flows(store.database(), window, owners, owner_of)
}

/// What system calls of a kind, such as `pread64`, spent in each layer: by path of the file.
///
/// # Errors
/// What the database says.
pub fn layers_of_files(store: &Store, kind: &str) -> Result<Vec<(String, Vec<Layer>)>, Error> {
    ask::layers_of_files(store.database(), kind)
}

/// The share of dirtied page versions that a request is known for, of all that
/// were taken for writeback; none where nothing was written.
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
