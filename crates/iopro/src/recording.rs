//! Format of the file that holds a recording.
//!
//! ```text
//! file    = "FRIOPRO2" · u32 header length · header, JSON · u64 checksum of both · block*
//! block   = u32 "BLK1" · u16 kind · u16 cpu · u32 payload length · u32 0
//!           · u64 time · u64 checksum of all of the block but itself · payload
//! payload = record*, see `wire`
//! ```
//! All numbers are little-endian; checksums are XXH64. A block of kind *data* holds the content of
//! one CPU's ring buffer, byte for byte. The recorder neither decodes nor compresses, since it
//! takes its CPU time from the recorded workload. LZ4 alone would take more than the whole capture.
//!
//! The recorder empties all rings in rounds, and ends a round with a block *round*, whose time is
//! the round's begin. Every event from before that time is in this or an earlier round, unless a
//! program was just writing it.
//!
//! A recording that was ended in order has a last block *end*. After a kill or on a full disk the
//! recording is good up to its last complete block.

mod reader;
mod writer;

pub use reader::{Ending, Events, Reader, Step};
pub use writer::{WRITE_BYTES, Writer};

use crate::event::Dev;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use sys::PathError;

/// First bytes of a recording; the last one is the version of the format.
const MAGIC: [u8; 8] = *b"FRIOPRO2";
/// First bytes of a block, as a little-endian number.
const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"BLK1");
/// Length of a block without its payload.
const BLOCK_HEADER_BYTES: usize = 32;
/// No recorder writes a longer payload; a block that has one is damaged.
const BLOCK_LIMIT_BYTES: usize = 64 << 20;
/// No header is longer.
const HEADER_LIMIT_BYTES: usize = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum BlockKind {
    Data = 1,
    Round = 2,
    End = 3,
}

impl BlockKind {
    fn from_wire(number: u16) -> Option<BlockKind> {
        match number {
            1 => Some(BlockKind::Data),
            2 => Some(BlockKind::Round),
            3 => Some(BlockKind::End),
            _ => None,
        }
    }
}

/// Properties of a whole recording, in its file's header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of frontrow that recorded.
    pub frontrow: String,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Hardware name, as `uname -m` prints it.
    pub machine: String,
    /// Size of a page of memory, in bytes.
    pub page_bytes: u64,
    /// Number of CPUs that the machine can have.
    pub cpus: u32,
    /// Begin of the recording, in nanoseconds of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// Nanoseconds to add to CLOCK_MONOTONIC for the time since 1970.
    pub realtime_offset_ns: i64,
    /// Tasks whose waiting is of interest. All tasks are recorded, since the target waits for
    /// others.
    pub target: Target,
    /// Disks at the begin of the recording.
    pub disks: Vec<Disk>,
    /// Mounted file systems on disks, at the begin of the recording.
    pub mounts: Vec<Mount>,
    /// What this kernel cannot record, in one sentence each.
    pub missing: Vec<String>,
    /// Whether it is told when pages are taken for writeback. Else they are in the request that
    /// carries them.
    #[serde(default = "yes")]
    pub tells_taken: bool,
}

/// In recordings from before it was noted.
fn yes() -> bool {
    true
}

/// Tasks whose waiting is of interest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// All tasks of the machine.
    System,
    /// A process that ran already, and its children.
    Process {
        /// Process id of the target.
        pid: u32,
    },
    /// The processes in a cgroup and in those below it.
    Cgroup {
        /// Path below the root of the v2 hierarchy.
        path: String,
        /// Id of the cgroup, which is the inode number of its directory.
        id: u64,
    },
    /// A command that was started for the recording, and its children.
    Command {
        /// The command and its arguments.
        command: Vec<String>,
        /// Process id of the command.
        pid: u32,
    },
}

/// A disk at the begin of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Device number of the disk.
    pub dev: Dev,
    /// Name below /dev.
    pub name: String,
    /// Size in sectors of 512 bytes.
    pub sectors: u64,
    /// Name of the I/O scheduler (`queue/scheduler`).
    pub scheduler: String,
    /// Requests that the queue can hold at once (`queue/nr_requests`).
    pub nr_requests: u32,
    /// Partitions of the disk, by name.
    pub partitions: Vec<Partition>,
}

/// A partition of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Device number of the partition.
    pub dev: Dev,
    /// Name below /dev.
    pub name: String,
    /// First sector on the disk, of 512 bytes.
    pub start_sector: u64,
    /// Size in sectors of 512 bytes.
    pub sectors: u64,
}

/// A mounted file system, from /proc/self/mountinfo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Device of the file system, as in [`FileId::dev`](crate::event::FileId::dev).
    pub dev: Dev,
    /// Directory of the file system that is mounted; `/` for all of it.
    pub root: String,
    /// Directory that it is mounted on.
    pub path: String,
    /// Type of the file system.
    pub kind: String,
}

/// Reasons why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] PathError),
    /// The file does not begin with the magic number of a recording.
    #[error("{path} is not a recording of `frontrow iopro record`: give the file that one wrote")]
    NotARecording {
        /// Path of the file.
        path: PathBuf,
    },
    /// The format's version is not the one that this program reads.
    #[error(
        "{path} was recorded by another version of frontrow ({frontrow}): read it with that one"
    )]
    Version {
        /// Path of the file.
        path: PathBuf,
        /// Version of frontrow that recorded, or of the format where the header is unreadable.
        frontrow: String,
    },
}
