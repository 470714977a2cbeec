//! Conversion of IOPro's recordings to replayable calls. Their calls name files rather than
//! descriptors, and have offsets.

use crate::exit::Failure;
use crate::iopro::linked;
use ::iopro::report::{CallOnFile, NameChange, calls_on_files, name_changes};
use ::iopro::store::Store;
use ::replay::{Builder, Calls, Opening, When};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Magic bytes of a recording, in all versions.
const MAGIC: &[u8] = b"FRIOPRO";

/// Whether the file is an IOPro recording; false if it cannot be read, which is reported later.
pub(super) fn is_recording(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut it| it.read_exact(&mut begin));
    read.is_ok() && begin == MAGIC
}

/// The calls of a recording.
pub(super) fn read(path: &Path) -> Result<Calls, Failure> {
    let store = Store::temporary().map_err(|error| linked::failed(&error))?;
    let store = linked::link((linked::open(path)?, path), None, store)?;
    calls(&store).map_err(|error| linked::failed(&error))
}

fn calls(store: &Store) -> Result<Calls, ::iopro::store::Error> {
    let changes = name_changes(store)?;
    let mut reader = Reader::default();
    // A file has its first name from the start.
    for change in &changes {
        let names = reader.names.entry(change.file);
        names.or_insert_with(|| change.path.clone());
    }
    let mut changes = changes.into_iter().peekable();
    calls_on_files(store, &mut |call| {
        let end_ns = call.begin_ns + call.took_ns;
        while let Some(change) = changes.next_if(|it| it.time_ns <= end_ns) {
            reader.renamed(&change);
        }
        reader.called(&call);
    })?;
    for change in changes {
        reader.renamed(&change);
    }
    Ok(reader.builder.finish())
}

#[derive(Default)]
struct Reader {
    builder: Builder,
    lanes: HashMap<u64, u32>,
    /// Path of each file, as it is now.
    names: HashMap<u64, String>,
    /// Handle of each file, by how it was opened.
    handles: HashMap<(u64, bool, bool), u32>,
}

impl Reader {
    fn when(&mut self, task: u64, time_ns: u64, took_ns: u64) -> When {
        let next = self.lanes.len() as u32;
        When {
            time_ns,
            took_ns,
            lane: *self.lanes.entry(task).or_insert(next),
        }
    }

    /// Drops, and counts, calls with an invalid or missing path.
    fn counted<T>(&mut self, outcome: Result<T, String>) -> Option<T> {
        if outcome.is_err() {
            self.builder.leave_out("on a file whose name is not known");
        }
        outcome.ok()
    }

    fn renamed(&mut self, change: &NameChange) {
        let before = self.names.insert(change.file, change.path.clone());
        // The task is unknown, or a rename put another file in its place.
        let Some(task) = change.task else {
            return;
        };
        let when = self.when(task, change.time_ns, 0);
        let path = change.path.as_bytes();
        let outcome = match (change.why.as_str(), before) {
            ("renamed", Some(before)) if before != change.path => {
                self.builder.rename(when, before.as_bytes(), path)
            }
            ("removed", _) if !change.by_rename => {
                self.builder.unlink(when, path, change.is_directory)
            }
            _ => Ok(()),
        };
        self.counted(outcome);
    }

    fn called(&mut self, call: &CallOnFile) {
        if call.unfinished {
            self.builder.leave_out("unfinished at the end");
            return;
        }
        if call.result < 0 {
            self.builder.leave_out("failed in the trace");
            return;
        }
        let bytes = call.result as u64;
        let when = self.when(call.task, call.begin_ns, call.took_ns);
        match call.kind.as_str() {
            "open" | "openat" | "openat2" | "creat" => self.opened(call, when),
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "io_uring:1" | "io_uring:4"
            | "io_uring:22" => self.transfer(call, when, bytes, Builder::read),
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "io_uring:2"
            | "io_uring:5" | "io_uring:23" => self.transfer(call, when, bytes, Builder::write),
            "fsync" | "fdatasync" | "io_uring:3" => {
                if let Some(handle) = self.handle(call) {
                    self.builder.sync(when, handle, call.kind == "fdatasync");
                }
            }
            "truncate" | "ftruncate" => {
                if let (Some(handle), Some(size)) = (self.handle(call), call.offset_bytes) {
                    let outcome = self.builder.truncate(when, handle, size);
                    self.counted(outcome);
                }
            }
            // These calls are replayed from the changes of names.
            "rename" | "renameat" | "renameat2" | "unlink" | "unlinkat" | "rmdir" => {}
            other => self.builder.leave_out(other),
        }
    }

    /// Flags of the opening are not recorded: opens for reading and writing, and creates the file.
    fn opening(call: &CallOnFile) -> Opening {
        Opening {
            write: !call.is_directory,
            create: !call.is_directory,
            directory: call.is_directory,
            direct: call.direct,
            sync: call.sync,
            ..Opening::default()
        }
    }

    fn key(call: &CallOnFile) -> Option<(u64, bool, bool)> {
        call.file.map(|file| (file, call.direct, call.sync))
    }

    fn opened(&mut self, call: &CallOnFile, when: When) {
        let path = call.file.and_then(|it| self.names.get(&it)).cloned();
        let Some((path, key)) = path.zip(Self::key(call)) else {
            self.builder.leave_out("on a file whose name is not known");
            return;
        };
        // Closings are not recorded: the last opening counts.
        if let Some(old) = self.handles.remove(&key) {
            self.builder.close(when, old);
        }
        let outcome = self
            .builder
            .open(when, path.as_bytes(), Self::opening(call));
        if let Some(handle) = self.counted(outcome).flatten() {
            self.handles.insert(key, handle);
        }
    }

    /// None, and counted, for a call without a file or with an unnamed one.
    fn handle(&mut self, call: &CallOnFile) -> Option<u32> {
        let key = Self::key(call);
        if let Some(handle) = key.and_then(|it| self.handles.get(&it)) {
            return Some(*handle);
        }
        let path = call.file.and_then(|it| self.names.get(&it)).cloned();
        let Some((path, key)) = path.zip(key) else {
            self.builder.leave_out("on a file whose name is not known");
            return None;
        };
        let outcome = self
            .builder
            .found_open(path.as_bytes(), Self::opening(call));
        let handle = self.counted(outcome).flatten()?;
        self.handles.insert(key, handle);
        Some(handle)
    }

    fn transfer(
        &mut self,
        call: &CallOnFile,
        when: When,
        bytes: u64,
        put: fn(&mut Builder, When, u32, u64, u64) -> Result<(), String>,
    ) {
        if bytes == 0 {
            self.builder.leave_out("moved nothing");
            return;
        }
        let Some(handle) = self.handle(call) else {
            return;
        };
        let Some(offset) = call.offset_bytes else {
            self.builder.leave_out("at a position that is not known");
            return;
        };
        let outcome = put(&mut self.builder, when, handle, offset, bytes);
        self.counted(outcome);
    }
}
