//! The file that a recording is in.
//!
//! ```text
//! file    = "FRIOPRO2" · u32 header length · header, JSON · u64 checksum of both · block*
//! block   = u32 "BLK1" · u16 kind · u16 cpu · u32 payload length · u32 0
//!           · u64 time · u64 checksum of all of the block but itself · payload
//! payload = record*, see `wire`
//! ```
//! All numbers are little-endian; checksums are XXH64. A block of kind *data*
//! holds what one CPU's ring buffer held, byte for byte: the recorder neither
//! decodes nor compresses, since each instruction of its own is one that the
//! recorded workload does not get (LZ4 would take more of them than all of the
//! capture does). The recorder empties all rings in rounds, and ends a round
//! with a block *round*; its time is that of the round's begin, and every event
//! from before then is in this or an earlier round, save what was being written
//! by a program just then. A recording that was ended in order has a last block
//! *end*. One that was not, because of a kill or a full disk, is good up to its
//! last whole block.

mod reader;
mod writer;

pub use reader::{Ending, Events, Reader, Step};
pub use writer::{WRITE_BYTES, Writer};

use crate::event::Dev;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// First bytes of a recording; the last of them is the format's version.
const MAGIC: [u8; 8] = *b"FRIOPRO2";
/// First bytes of a block, as a number.
const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"BLK1");
/// A block's fixed part.
const BLOCK_HEADER_BYTES: usize = 32;
/// More than any recorder writes in one block; a longer one is damaged.
const BLOCK_LIMIT_BYTES: usize = 64 << 20;
/// More than any header has.
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

/// What holds for all of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the program that recorded.
    pub frontrow: String,
    /// The kernel, as `uname -r` prints it.
    pub kernel: String,
    /// The machine, as `uname -m` prints it.
    pub machine: String,
    /// The size of a page of memory.
    pub page_bytes: u64,
    /// How many CPUs there can be.
    pub cpus: u32,
    /// When the recording began, CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// What to add to CLOCK_MONOTONIC for nanoseconds since 1970.
    pub realtime_offset_ns: i64,
    /// Whose waiting is of interest. Everything is recorded whatever this is,
    /// since whom a process waits for is somebody else.
    pub target: Target,
    /// The disks there were at the begin.
    pub disks: Vec<Disk>,
    /// The mounted file systems that are on disks, at the begin.
    pub mounts: Vec<Mount>,
    /// What this kernel does not offer and so is not in the recording, one
    /// sentence each.
    pub missing: Vec<String>,
}

/// Whose waiting is of interest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Everybody's.
    System,
    /// This process's and its children's.
    Process {
        /// Its id.
        pid: u32,
    },
    /// That of the processes of a cgroup and those below it.
    Cgroup {
        /// Its path below the root of the hierarchy.
        path: String,
        /// Its id.
        id: u64,
    },
    /// That of a command started for it, and of its children.
    Command {
        /// The command and its arguments.
        command: Vec<String>,
        /// Its process id.
        pid: u32,
    },
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Its number.
    pub dev: Dev,
    /// Its name below /dev.
    pub name: String,
    /// Its size.
    pub sectors: u64,
    /// Its I/O scheduler.
    pub scheduler: String,
    /// Requests that may be there at once (`queue/nr_requests`).
    pub nr_requests: u32,
    /// Its partitions.
    pub partitions: Vec<Partition>,
}

/// A part of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its number.
    pub dev: Dev,
    /// Its name below /dev.
    pub name: String,
    /// Where it begins on the disk.
    pub start_sector: u64,
    /// Its size.
    pub sectors: u64,
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The file system's device, as in [`FileId::dev`](crate::event::FileId::dev).
    pub dev: Dev,
    /// The directory of the file system that is mounted, `/` for all of it.
    pub root: String,
    /// Where it is mounted.
    pub path: String,
    /// Its type.
    pub kind: String,
}

/// Why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read or written.
    #[error("cannot access {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{path} is not a recording of `frontrow iopro record`: give the file that one wrote")]
    NotARecording {
        /// The file.
        path: PathBuf,
    },
    /// It is of a version that this program does not know.
    #[error(
        "{path} was recorded by another version of frontrow ({frontrow}): read it with that one"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// That version, or the format's.
        frontrow: String,
    },
}
