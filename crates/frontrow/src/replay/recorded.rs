//! Conversion of IOPro's recordings to replayable calls. Their calls name files rather than
//! descriptors, and have offsets.

use crate::exit::Failure;
use crate::iopro::linked;
use ::iopro::report::{CallOnFile, NameChange, calls_on_files, name_changes};
use ::iopro::store::Store;
use ::replay::{Builder, Calls, Fate, Input, Opening, When, pseudo};
use std::collections::HashMap;

/// Magic bytes of a recording, in all versions.
pub(super) const MAGIC: &[u8] = b"FRIOPRO";

/// The calls of a recording.
pub(super) fn read(input: Input) -> Result<Calls, Failure> {
    let store = Store::temporary().map_err(|error| linked::failed(&error))?;
    let path = input.path().to_owned();
    let store = linked::link_bytes(input.bytes(), &path, store)?;
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
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    builder: Builder,
    lanes: HashMap<u64, u32>,
    /// Path of each file, as it is now.
    names: HashMap<u64, String>,
    /// Handle of each file, by how it was opened.
    handles: HashMap<(u64, bool, bool), u32>,
    /// Number of calls that renamed or removed something, less those whose change of names is known.
    unnamed: u64,
}

const NO_NAME: &str = "on a file whose name is not known";

/// Size of a page that a fault reads or makes writable.
const PAGE_BYTES: u64 = 4096;

/// All that sync_file_range(2) can be asked: its flags are not recorded.
const SYNC_RANGE_FLAGS: u8 = 7;

impl Reader {
    fn finish(mut self) -> Calls {
        for _ in 0..self.unnamed {
            let what = "rename or removal of a name that is not known";
            self.builder.event(&Fate::left_out(what));
        }
        self.builder.finish()
    }

    fn when(&mut self, task: u64, time_ns: u64, took_ns: u64) -> When {
        let next = self.lanes.len() as u32;
        When {
            time_ns,
            took_ns,
            lane: *self.lanes.entry(task).or_insert(next),
        }
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
            _ => return,
        };
        self.unnamed = self.unnamed.saturating_sub(1);
        let fate = outcome.unwrap_or_else(|_| Fate::left_out(NO_NAME));
        self.builder.event(&fate);
    }

    fn called(&mut self, call: &CallOnFile) {
        let is_done = !call.unfinished && call.result >= 0;
        // These calls are replayed, and counted, by the changes of names.
        let of_names = [
            "rename",
            "renameat",
            "renameat2",
            "unlink",
            "unlinkat",
            "rmdir",
        ];
        if is_done && of_names.contains(&call.kind.as_str()) {
            self.unnamed += 1;
            return;
        }
        let fate = match (call.unfinished, call.result < 0) {
            (true, _) => Fate::left_out("unfinished at the end"),
            (_, true) => Fate::left_out("failed in the trace"),
            // A call with an invalid path is left out.
            _ => self.fate(call).unwrap_or_else(|_| Fate::lost(NO_NAME, 1)),
        };
        self.builder.event(&fate);
    }

    /// Adds the actions of a call.
    fn fate(&mut self, call: &CallOnFile) -> Result<Fate, String> {
        let bytes = call.result as u64;
        let when = self.when(call.task, call.begin_ns, call.took_ns);
        match call.kind.as_str() {
            "open" | "openat" | "openat2" | "creat" => self.opened(call, when),
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "io_uring:1" | "io_uring:4"
            | "io_uring:22" => self.transfer(call, when, bytes, Builder::read),
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "io_uring:2"
            | "io_uring:5" | "io_uring:23" => self.transfer(call, when, bytes, Builder::write),
            "read-fault" => {
                let fate = self.transfer(call, when, PAGE_BYTES, read_page)?;
                Ok(as_changed(
                    fate,
                    "page fault of a read, as a read of its page",
                ))
            }
            "write-fault" => {
                let fate = self.transfer(call, when, PAGE_BYTES, write_page)?;
                Ok(as_changed(
                    fate,
                    "page fault of a store, as a write of its page",
                ))
            }
            "copy_file_range" | "sendfile" | "splice" => self.copied(call, when, bytes),
            "fsync" | "fdatasync" | "io_uring:3" | "msync" => Ok(match self.handle(call)? {
                Ok(handle) => {
                    let data_only = call.kind == "fdatasync";
                    self.builder.sync(when, handle, data_only);
                    Fate::Played
                }
                Err(fate) => fate,
            }),
            "sync" | "syncfs" => {
                self.builder.sync_all(when);
                Ok(Fate::Played)
            }
            "sync_file_range" | "io_uring:8" => Ok(match self.handle(call)? {
                Ok(handle) => {
                    let range = (call.offset_bytes.unwrap_or(0), call.size_bytes.unwrap_or(0));
                    self.builder
                        .sync_range(when, handle, range, SYNC_RANGE_FLAGS)?;
                    Fate::changed("sync_file_range, with all its flags")
                }
                Err(fate) => fate,
            }),
            "truncate" | "ftruncate" => {
                let handle = self.handle(call)?;
                Ok(match (handle, call.offset_bytes) {
                    (Ok(handle), Some(size)) => {
                        self.builder.truncate(when, handle, size)?;
                        Fate::Played
                    }
                    (Err(fate), _) => fate,
                    (_, None) => Fate::left_out("truncate to a size that is not known"),
                })
            }
            "io_uring_enter" => Ok(Fate::left_out(
                "io_uring_enter: each of its requests is an event",
            )),
            // Its requests are not recorded for themselves.
            "io_submit" => Ok(Fate::lost("io_submit", bytes)),
            "readahead" => Ok(Fate::lost("readahead", 1)),
            other => Ok(Fate::left_out(other.to_owned())),
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

    fn opened(&mut self, call: &CallOnFile, when: When) -> Result<Fate, String> {
        let path = call.file.and_then(|it| self.names.get(&it)).cloned();
        let Some((path, key)) = path.zip(Self::key(call)) else {
            return Ok(Fate::left_out(NO_NAME));
        };
        // Closings are not recorded: the last opening counts.
        if let Some(old) = self.handles.remove(&key) {
            self.builder.close(when, old);
        }
        let handle = self
            .builder
            .open(when, path.as_bytes(), Self::opening(call))?;
        Ok(match handle {
            Some(handle) => {
                self.handles.insert(key, handle);
                Fate::Played
            }
            None => pseudo(),
        })
    }

    /// The handle of a call's file, or what becomes of a call without one.
    fn handle(&mut self, call: &CallOnFile) -> Result<Result<u32, Fate>, String> {
        let key = Self::key(call);
        if let Some(handle) = key.and_then(|it| self.handles.get(&it)) {
            return Ok(Ok(*handle));
        }
        let path = call.file.and_then(|it| self.names.get(&it)).cloned();
        let Some((path, key)) = path.zip(key) else {
            return Ok(Err(Fate::lost(NO_NAME, 1)));
        };
        let handle = self
            .builder
            .found_open(path.as_bytes(), Self::opening(call))?;
        Ok(match handle {
            Some(handle) => {
                self.handles.insert(key, handle);
                Ok(handle)
            }
            None => Err(pseudo()),
        })
    }

    fn transfer(
        &mut self,
        call: &CallOnFile,
        when: When,
        bytes: u64,
        put: fn(&mut Builder, When, u32, u64, u64) -> Result<(), String>,
    ) -> Result<Fate, String> {
        if bytes == 0 {
            return Ok(Fate::left_out("moved nothing"));
        }
        let handle = match self.handle(call)? {
            Ok(handle) => handle,
            Err(fate) => return Ok(fate),
        };
        let Some(offset) = call.offset_bytes else {
            return Ok(Fate::lost("at a position that is not known", 1));
        };
        put(&mut self.builder, when, handle, offset, bytes)?;
        Ok(Fate::Played)
    }

    /// Adds the write of a call on two files. Where it read is not recorded.
    fn copied(&mut self, call: &CallOnFile, when: When, bytes: u64) -> Result<Fate, String> {
        let reads = u64::from(call.from.is_some());
        Ok(match self.transfer(call, when, bytes, Builder::write)? {
            Fate::Played if reads > 0 => Fate::Changed {
                how: format!("{}, as its write", call.kind).into(),
                lost: reads,
            },
            Fate::LeftOut { lost: 1.., .. } => Fate::lost(call.kind.clone(), 1 + reads),
            fate => fate,
        })
    }
}

fn as_changed(fate: Fate, how: &'static str) -> Fate {
    match fate {
        Fate::Played => Fate::changed(how),
        fate => fate,
    }
}

fn read_page(
    builder: &mut Builder,
    when: When,
    handle: u32,
    offset: u64,
    bytes: u64,
) -> Result<(), String> {
    builder.read(when, handle, offset / PAGE_BYTES * PAGE_BYTES, bytes)
}

/// A store makes no file longer, as far as its size is known.
fn write_page(
    builder: &mut Builder,
    when: When,
    handle: u32,
    offset: u64,
    bytes: u64,
) -> Result<(), String> {
    let begin = offset / PAGE_BYTES * PAGE_BYTES;
    let bytes = match builder.size(handle).saturating_sub(begin) {
        0 => bytes,
        rest => bytes.min(rest),
    };
    builder.write(when, handle, begin, bytes)
}
