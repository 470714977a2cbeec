//! Meaning of descriptors and relative paths. Each process has a table of descriptors, which its
//! threads share, and a working directory. Each call has one fate, by which it is counted.

use super::super::Threads;
use super::aio::{self, Order};
use super::call::{Call, Name, Outcome, descriptor, number_in, parts};
use super::mappings::Mappings;
use crate::account::{Fate, NO_FILE};
use crate::calls::{Builder, Calls, Opening, When, pseudo};
use std::collections::{BTreeMap, HashMap};

/// Stands for a working directory that is not known; with `-y` strace names it.
const UNKNOWN_DIRECTORY: &[u8] = b"/working-directory";

/// Largest number of descriptors that all processes of a trace inherit.
const INHERITED_LIMIT: usize = 10_000_000;

/// Names below /dev of disks: what is read and written there is I/O like any other.
const DISKS: [&[u8]; 12] = [
    b"sd", b"hd", b"vd", b"xvd", b"nvme", b"mmcblk", b"dm-", b"mapper/", b"md", b"loop", b"zram",
    b"ram",
];

/// Most threads that play what one thread has given to io_submit: programs that fetch results from
/// the ring in their memory make no call that tells the end.
const AIO_THREADS: u64 = 256;

const UNKNOWN: &str = "of a descriptor that is not known";

/// Index of a table of descriptors.
type Table = usize;

/// Indices of the arguments with a directory's descriptor, if the call has one, and with a path.
type PathAt = (Option<usize>, usize);

/// What an open file description is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// A file or directory, by its handle in the trace.
    File(u32),
    /// A directory or file that only starts paths, one of a pseudo file system, a socket or a pipe.
    NoFile,
    /// A disk below /dev.
    Disk,
}

/// An open file description, which duplicated descriptors share.
#[derive(Clone, Debug)]
struct Description {
    path: Vec<u8>,
    meaning: Meaning,
    position: u64,
    append: bool,
    descriptors: u32,
}

/// A descriptor of a call that moves or syncs data.
enum Found {
    /// Index of its description, and the handle.
    File(usize, u32),
    /// It is no file's, so the call is left out so.
    Not(Fate),
}

#[derive(Default)]
pub(super) struct Processes {
    builder: Builder,
    /// The description of each descriptor, by table. A process has few, or uses few of them at a time.
    tables: Vec<BTreeMap<i32, usize>>,
    /// Working directory and shared mappings of each table's process.
    directories: Vec<Vec<u8>>,
    mappings: Vec<Mappings>,
    table_of: HashMap<String, Table>,
    /// The last thread and its table: the next call is often its, too.
    last: Option<(String, Table)>,
    inherited: usize,
    descriptions: Vec<Description>,
    /// Number of requests that each thread has given to io_submit and not got back.
    submitted: HashMap<String, u64>,
}

/// What a call needs besides its text.
#[derive(Clone, Copy)]
struct Caller<'a> {
    thread: &'a str,
    table: Table,
    when: When,
    result: u64,
    named: Name<'a>,
}

impl Processes {
    /// Counts an event, whose actions are those since the last one.
    pub(super) fn event(&mut self, fate: &Fate) {
        self.builder.event(fate);
    }

    pub(super) fn note(&mut self, note: &str) {
        self.builder.note(note);
    }

    pub(super) fn count(&self) -> usize {
        self.builder.count()
    }

    pub(super) fn finish(self) -> Calls {
        self.builder.finish()
    }

    /// The table of a thread; a thread without a known parent belongs to the first process.
    fn table(&mut self, thread: &str) -> Table {
        match &self.last {
            Some((last, table)) if last == thread => return *table,
            _ => {}
        }
        let known = self.table_of.get(thread).copied();
        let table = known.unwrap_or_else(|| self.first_table(thread));
        self.last = Some((thread.to_owned(), table));
        table
    }

    fn first_table(&mut self, thread: &str) -> Table {
        if self.tables.is_empty() {
            self.tables.push(BTreeMap::new());
            self.directories.push(UNKNOWN_DIRECTORY.to_vec());
            self.mappings.push(Mappings::default());
        }
        self.table_of.insert(thread.to_owned(), 0);
        0
    }

    /// Adds the actions of a call, and tells what becomes of it.
    ///
    /// # Errors
    /// A sentence that says why no kernel made this call.
    pub(super) fn call(
        &mut self,
        (thread, lane): (&str, u32),
        time_ns: u64,
        call: &Call,
        threads: &mut Threads,
    ) -> Result<Fate, String> {
        let (result, named) = match call.result {
            Outcome::Number(number, named) => (number as u64, named),
            Outcome::Failed => return Ok(Fate::left_out("failed in the trace")),
            Outcome::Unknown => return Ok(Fate::left_out("without a result in the trace")),
        };
        let caller = Caller {
            thread,
            table: self.table(thread),
            when: When {
                time_ns,
                took_ns: call.took_ns,
                lane,
            },
            result,
            named,
        };
        match self.data(caller, call, threads)? {
            Some(fate) => Ok(fate),
            None => self.other(caller, call),
        }
    }

    /// A call that moves or syncs data; None for any other.
    fn data(
        &mut self,
        caller: Caller,
        call: &Call,
        threads: &mut Threads,
    ) -> Result<Option<Fate>, String> {
        let fate = match call.name {
            "read" | "readv" => self.transfer(caller, call, false, None),
            "write" | "writev" => self.transfer(caller, call, true, None),
            "pread64" | "pread" | "preadv" | "preadv2" => {
                self.transfer(caller, call, false, Some(3))
            }
            "pwrite64" | "pwrite" | "pwritev" | "pwritev2" => {
                self.transfer(caller, call, true, Some(3))
            }
            "sendfile" | "sendfile64" => self.copy(caller, call, (1, Some(2)), (0, None)),
            "copy_file_range" | "splice" => self.copy(caller, call, (0, Some(1)), (2, Some(3))),
            "fsync" | "fdatasync" => self.sync(caller, call),
            "sync" => {
                self.builder.sync_all(caller.when);
                Ok(Fate::Played)
            }
            "syncfs" => match self.file(caller.table, call.argument(0)?)? {
                Found::Not(fate) => Ok(fate),
                Found::File(..) => {
                    self.builder.sync_all(caller.when);
                    Ok(Fate::Played)
                }
            },
            "sync_file_range" => self.sync_range(caller, call, (1, 2, 3)),
            "sync_file_range2" | "arm_sync_file_range" => self.sync_range(caller, call, (2, 3, 1)),
            "msync" => self.sync_mapping(caller, call),
            "fallocate" => self.allocate(caller, call),
            "io_submit" => self.submit(caller, call, threads),
            "io_getevents" | "io_pgetevents" => {
                let under_way = self.submitted.entry(caller.thread.to_owned()).or_default();
                *under_way = under_way.saturating_sub(caller.result);
                Ok(Fate::changed(match call.name {
                    "io_getevents" => "io_getevents, followed",
                    _ => "io_pgetevents, followed",
                }))
            }
            // Its requests are in memory that strace does not show.
            "io_uring_enter" => Ok(match caller.result {
                0 => Fate::left_out("io_uring_enter that gives no requests"),
                requests => Fate::lost(
                    "io_uring_enter: strace does not show its requests",
                    requests,
                ),
            }),
            "readahead" => Ok(match self.file(caller.table, call.argument(0)?)? {
                Found::Not(fate) => fate,
                Found::File(..) => Fate::lost("readahead", 1),
            }),
            "ioctl" => {
                let clones = call.argument(1)?;
                let clones = ["FICLONE", "FIDEDUPERANGE"]
                    .iter()
                    .any(|it| clones.contains(it));
                match clones {
                    true => Ok(Fate::lost("ioctl that clones data", 1)),
                    false => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        fate.map(Some)
    }

    /// A call that moves no data: it changes names and sizes, or what descriptors mean.
    fn other(&mut self, caller: Caller, call: &Call) -> Result<Fate, String> {
        let Caller { table, when, .. } = caller;
        match call.name {
            "open" => self.open(caller, call, (None, 0), Some(1)),
            "creat" => self.open(caller, call, (None, 0), None),
            "openat" | "openat2" => self.open(caller, call, (Some(0), 1), Some(2)),
            "close" => self.close(when, table, call),
            "lseek" => self.seek(table, call, Some(caller.result)),
            "_llseek" | "llseek" => self.seek(table, call, None),
            "ftruncate" | "ftruncate64" => self.truncate_open(when, table, call),
            "truncate" | "truncate64" => self.truncate(when, table, call),
            "rename" => self.rename(when, table, call, (None, 0), (None, 1)),
            "renameat" | "renameat2" => self.rename(when, table, call, (Some(0), 1), (Some(2), 3)),
            "unlink" => self.unlink(when, table, call, (None, 0), false),
            "rmdir" => self.unlink(when, table, call, (None, 0), true),
            "unlinkat" => {
                let directory = call.argument(2)?.contains("AT_REMOVEDIR");
                self.unlink(when, table, call, (Some(0), 1), directory)
            }
            "mkdir" => self.make_directory(when, table, call, (None, 0)),
            "mkdirat" => self.make_directory(when, table, call, (Some(0), 1)),
            "dup" | "dup2" | "dup3" => {
                self.duplicate(table, call, caller.result)?;
                Ok(Fate::changed("dup, followed"))
            }
            "fcntl" | "fcntl64" if call.argument(1)?.starts_with("F_DUPFD") => {
                self.duplicate(table, call, caller.result)?;
                Ok(Fate::changed("fcntl of F_DUPFD, followed"))
            }
            "chdir" => {
                self.directories[table] = self.path(table, call, (None, 0))?;
                Ok(Fate::changed("chdir, followed"))
            }
            "fchdir" => {
                if let Some(at) = self.description(table, call.argument(0)?)? {
                    self.directories[table] = self.descriptions[at].path.clone();
                }
                Ok(Fate::changed("fchdir, followed"))
            }
            "clone" | "clone3" | "fork" | "vfork" => {
                let shares = call.arguments.iter().any(|it| it.contains("CLONE_FILES"));
                self.begin_thread(table, shares, caller.result)?;
                Ok(Fate::changed("clone and fork, followed"))
            }
            "mmap" | "mmap2" | "old_mmap" => self.map(caller, call),
            "munmap" => {
                let (begin, bytes) = (call.number(0)?, call.number(1)?);
                self.mappings[table].unmap(begin, bytes);
                Ok(Fate::left_out("munmap"))
            }
            "pipe" | "pipe2" => self.no_files(table, call, 0),
            "socketpair" => self.no_files(table, call, 3),
            // Their result is a descriptor of something that is no file on a disk.
            name @ ("accept" | "accept4" | "epoll_create" | "epoll_create1" | "eventfd"
            | "eventfd2" | "fanotify_init" | "inotify_init" | "inotify_init1"
            | "io_uring_setup" | "memfd_create" | "perf_event_open" | "pidfd_open"
            | "signalfd4" | "socket" | "timerfd_create") => {
                self.describe_new(table, caller.result, Vec::new(), Meaning::NoFile, false);
                Ok(Fate::left_out(name.to_owned()))
            }
            other => Ok(Fate::left_out(other.to_owned())),
        }
    }

    /// Gives a new process a copy of its parent's table; a thread shares the table.
    fn begin_thread(&mut self, table: Table, shares: bool, thread: u64) -> Result<(), String> {
        let mut own = table;
        if !shares {
            self.inherited += self.tables[table].len() + self.mappings[table].len() + 1;
            if self.inherited > INHERITED_LIMIT {
                return Err(
                    "its processes have more descriptors than memory should hold".to_owned(),
                );
            }
            own = self.tables.len();
            self.tables.push(self.tables[table].clone());
            self.directories.push(self.directories[table].clone());
            self.mappings.push(self.mappings[table].clone());
            for at in self.tables[own].values() {
                self.descriptions[*at].descriptors += 1;
            }
        }
        self.table_of.insert(thread.to_string(), own);
        // A number that was another thread's before means this one now.
        self.last = None;
        Ok(())
    }

    /// The absolute path of a path argument and the directory's descriptor before it.
    fn path(
        &mut self,
        table: Table,
        call: &Call,
        (directory, path): PathAt,
    ) -> Result<Vec<u8>, String> {
        let path = call.path(path)?;
        if path.starts_with(b"/") {
            return Ok(path);
        }
        let mut whole = match directory {
            None => self.directories[table].clone(),
            Some(index) => match call.descriptor(index)? {
                (_, named @ Name::Path(_)) => named.path().unwrap_or_default(),
                (None, _) => self.directories[table].clone(),
                (Some(_), _) => match self.description(table, call.argument(index)?)? {
                    Some(at) => self.descriptions[at].path.clone(),
                    None => UNKNOWN_DIRECTORY.to_vec(),
                },
            },
        };
        whole.push(b'/');
        whole.extend(path);
        Ok(whole)
    }

    fn open(
        &mut self,
        caller: Caller,
        call: &Call,
        path: PathAt,
        flags: Option<usize>,
    ) -> Result<Fate, String> {
        let asked = self.path(caller.table, call, path)?;
        let flags = match flags {
            None => "O_WRONLY|O_CREAT|O_TRUNC",
            Some(index) => call.argument(index)?,
        };
        // strace names the target of links where it names the file.
        let mut path = caller.named.path().unwrap_or(asked);
        let has = |flag: &str| {
            let ends = |it: char| !it.is_ascii_alphanumeric() && it != '_';
            flags.split(ends).any(|it| it == flag)
        };
        if has("O_TMPFILE") {
            path.extend(format!("/#{}", caller.when.time_ns).bytes());
        }
        let opening = Opening {
            write: has("O_WRONLY") || has("O_RDWR"),
            create: has("O_CREAT") || has("O_TMPFILE"),
            exclusive: has("O_EXCL") || has("O_TMPFILE"),
            truncate: has("O_TRUNC"),
            append: has("O_APPEND"),
            direct: has("O_DIRECT"),
            sync: has("O_SYNC") || has("O_DSYNC"),
            directory: has("O_DIRECTORY") && !has("O_TMPFILE"),
        };
        if has("O_PATH") {
            self.describe_new(caller.table, caller.result, path, Meaning::NoFile, false);
            return Ok(Fate::changed("open of O_PATH, followed"));
        }
        let handle = self.builder.open(caller.when, &path, opening)?;
        let meaning = meaning(handle, &path);
        self.describe_new(caller.table, caller.result, path, meaning, opening.append);
        Ok(match meaning {
            Meaning::File(_) => Fate::Played,
            Meaning::NoFile | Meaning::Disk => pseudo(),
        })
    }

    /// Makes a description and gives it a descriptor.
    fn describe_new(
        &mut self,
        table: Table,
        descriptor: u64,
        path: Vec<u8>,
        meaning: Meaning,
        append: bool,
    ) -> usize {
        self.descriptions.push(Description {
            path,
            meaning,
            position: 0,
            append,
            descriptors: 1,
        });
        let at = self.descriptions.len() - 1;
        self.describe(table, descriptor, at);
        at
    }

    fn describe(&mut self, table: Table, descriptor: u64, at: usize) {
        // A descriptor's number was in use: its close was not traced.
        if let Some(old) = self.tables[table].insert(descriptor as i32, at) {
            self.descriptions[old].descriptors -= 1;
        }
    }

    /// Description of the descriptor in an argument; None where it is not known.
    fn description(&mut self, table: Table, argument: &str) -> Result<Option<usize>, String> {
        let (Some(number), named) = descriptor(argument)? else {
            return Ok(None);
        };
        let known = self.tables[table].get(&number).copied();
        // A file that was renamed meanwhile has another name but is the same file.
        if known.is_some() {
            return Ok(known);
        }
        let (path, meaning) = match named {
            // The standard streams are no files, as far as the trace tells.
            Name::None if (0..3).contains(&number) => (Vec::new(), Meaning::NoFile),
            Name::None => return Ok(None),
            Name::NoFile => (Vec::new(), Meaning::NoFile),
            Name::Path(_) => {
                let path = named.path().unwrap_or_default();
                let opening = Opening {
                    write: true,
                    ..Opening::default()
                };
                let handle = self.builder.found_open(&path, opening)?;
                let meaning = meaning(handle, &path);
                (path, meaning)
            }
        };
        let at = self.describe_new(table, number as u64, path, meaning, false);
        Ok(Some(at))
    }

    /// The file of the descriptor in an argument of a call that moves or syncs data.
    fn file(&mut self, table: Table, argument: &str) -> Result<Found, String> {
        let Some(at) = self.description(table, argument)? else {
            return Ok(Found::Not(Fate::lost(UNKNOWN, 1)));
        };
        Ok(match self.descriptions[at].meaning {
            Meaning::File(handle) => Found::File(at, handle),
            Meaning::NoFile => Found::Not(Fate::left_out(NO_FILE)),
            Meaning::Disk => Found::Not(Fate::lost("of a disk below /dev", 1)),
        })
    }

    fn close(&mut self, when: When, table: Table, call: &Call) -> Result<Fate, String> {
        let (Some(descriptor), _) = call.descriptor(0)? else {
            return Err("it closes no descriptor".to_owned());
        };
        let Some(at) = self.tables[table].remove(&descriptor) else {
            return Ok(Fate::left_out(UNKNOWN));
        };
        let description = &mut self.descriptions[at];
        description.descriptors -= 1;
        match (description.descriptors, description.meaning) {
            (0, Meaning::File(handle)) => {
                self.builder.close(when, handle);
                Ok(Fate::Played)
            }
            (_, Meaning::File(_)) => Ok(Fate::changed("close of a duplicate, followed")),
            _ => Ok(Fate::left_out(NO_FILE)),
        }
    }

    /// Adds a read or write, at its own offset or at the position, which it moves.
    fn transfer(
        &mut self,
        caller: Caller,
        call: &Call,
        writes: bool,
        offset: Option<usize>,
    ) -> Result<Fate, String> {
        let (at, handle) = match self.file(caller.table, call.argument(0)?)? {
            Found::File(at, handle) => (at, handle),
            Found::Not(fate) => return Ok(fate),
        };
        let bytes = caller.result;
        // preadv2 and pwritev2 take -1 for the current position.
        let offset = match offset {
            Some(index) if call.argument(index)? != "-1" => Some(call.number(index)?),
            _ => None,
        };
        if bytes == 0 {
            return Ok(Fate::left_out("moved nothing"));
        }
        let offset = self.place(at, handle, writes, offset, bytes);
        match writes {
            true => self.builder.write(caller.when, handle, offset, bytes)?,
            false => self.builder.read(caller.when, handle, offset, bytes)?,
        }
        Ok(Fate::Played)
    }

    /// Where a transfer begins: at `offset`, or at the position, which it moves. With O_APPEND a
    /// write goes to the end of the file.
    fn place(
        &mut self,
        at: usize,
        handle: u32,
        writes: bool,
        offset: Option<u64>,
        bytes: u64,
    ) -> u64 {
        let description = &mut self.descriptions[at];
        let appends = writes && description.append;
        if appends {
            description.position = self.builder.size(handle);
        }
        match offset {
            Some(offset) if !appends => offset,
            Some(_) => description.position,
            None => {
                let position = description.position;
                description.position = position.saturating_add(bytes);
                position
            }
        }
    }

    /// Adds a call that reads from one descriptor and writes to another, each given by the indices
    /// of its arguments with the descriptor and with a pointer to an offset.
    fn copy(
        &mut self,
        caller: Caller,
        call: &Call,
        from: (usize, Option<usize>),
        to: (usize, Option<usize>),
    ) -> Result<Fate, String> {
        let bytes = caller.result;
        if bytes == 0 {
            return Ok(Fate::left_out("moved nothing"));
        }
        let offset = |at: Option<usize>| at.map_or(Ok(None), |at| call.pointed(at));
        let (from_offset, to_offset) = (offset(from.1)?, offset(to.1)?);
        let source = self.file(caller.table, call.argument(from.0)?)?;
        let target = self.file(caller.table, call.argument(to.0)?)?;
        // The read takes the first half of the time, and the write the other.
        let half_ns = caller.when.took_ns / 2;
        let mut when = When {
            took_ns: half_ns,
            ..caller.when
        };
        let (mut played, mut lost, mut reason) = (false, 0, None);
        match source {
            Found::File(at, handle) => {
                let offset = self.place(at, handle, false, from_offset, bytes);
                self.builder.read(when, handle, offset, bytes)?;
                when.time_ns = when.time_ns.saturating_add(half_ns);
                played = true;
            }
            Found::Not(fate) => {
                lost += lost_of(&fate);
                reason = Some(fate);
            }
        }
        match target {
            Found::File(at, handle) => {
                let offset = self.place(at, handle, true, to_offset, bytes);
                self.builder.write(when, handle, offset, bytes)?;
                played = true;
            }
            Found::Not(fate) => {
                lost += lost_of(&fate);
                reason = Some(fate);
            }
        }
        Ok(match (played, reason) {
            (true, None) => Fate::changed(format!("{}, as a read and a write", call.name)),
            (true, Some(_)) => Fate::Changed {
                how: format!("{}, of which one side is a file", call.name).into(),
                lost,
            },
            (false, Some(fate)) => fate,
            (false, None) => Fate::left_out(NO_FILE),
        })
    }

    /// Adds the requests of an io_submit, of which the kernel took the first `result`. Each of them
    /// that is under way at once is played by a thread of its own.
    fn submit(
        &mut self,
        caller: Caller,
        call: &Call,
        threads: &mut Threads,
    ) -> Result<Fate, String> {
        let count = caller.result;
        if count == 0 {
            return Ok(Fate::left_out("moved nothing"));
        }
        let (mut played, mut no_file) = (0, 0);
        for request in aio::requests(call.argument(2)?)
            .into_iter()
            .take(count as usize)
        {
            let Some(request) = request else {
                continue;
            };
            let (at, handle) = match self.file(caller.table, request.descriptor)? {
                Found::File(at, handle) => (at, handle),
                Found::Not(fate) => {
                    no_file += u64::from(lost_of(&fate) == 0);
                    continue;
                }
            };
            let under_way = self.submitted.entry(caller.thread.to_owned()).or_default();
            let slot = *under_way % AIO_THREADS;
            let lane = threads.number(&format!("{} aio {slot}", caller.thread), "");
            *under_way += 1;
            let when = When {
                lane,
                ..caller.when
            };
            let (offset, bytes) = (request.offset, request.bytes);
            match request.order {
                Order::Read if bytes > 0 => self.builder.read(when, handle, offset, bytes)?,
                Order::Write if bytes > 0 => {
                    let offset = self.place(at, handle, true, Some(offset), bytes);
                    self.builder.write(when, handle, offset, bytes)?;
                }
                Order::Read | Order::Write => {}
                Order::Sync | Order::DataSync => {
                    let data_only = request.order == Order::DataSync;
                    self.builder.sync(when, handle, data_only);
                }
            }
            played += 1;
        }
        let lost = count.saturating_sub(played + no_file);
        Ok(match (played, lost) {
            (0, 0) => Fate::left_out(NO_FILE),
            (0, lost) => Fate::lost("io_submit: strace does not show its requests", lost),
            (_, 0) => Fate::changed("io_submit, each request by a thread of its own"),
            (_, lost) => Fate::Changed {
                how: "io_submit, of which strace shows some requests".into(),
                lost,
            },
        })
    }

    fn seek(&mut self, table: Table, call: &Call, result: Option<u64>) -> Result<Fate, String> {
        let position = match result {
            Some(position) => position,
            // _llseek(2) gives the new position through a pointer; strace prints it in brackets.
            None => {
                let mut places =
                    (1..call.arguments.len()).filter_map(|at| call.pointed(at).ok()?);
                places.next_back().ok_or("it tells no new position")?
            }
        };
        Ok(match self.file(table, call.argument(0)?)? {
            Found::File(at, _) => {
                self.descriptions[at].position = position;
                Fate::changed(match result {
                    Some(_) => "lseek, followed",
                    None => "_llseek, followed",
                })
            }
            Found::Not(Fate::LeftOut { what, .. }) => Fate::left_out(what),
            Found::Not(fate) => fate,
        })
    }

    fn sync(&mut self, caller: Caller, call: &Call) -> Result<Fate, String> {
        Ok(match self.file(caller.table, call.argument(0)?)? {
            Found::File(_, handle) => {
                let data_only = call.name == "fdatasync";
                self.builder.sync(caller.when, handle, data_only);
                Fate::Played
            }
            Found::Not(fate) => fate,
        })
    }

    fn sync_range(
        &mut self,
        caller: Caller,
        call: &Call,
        (offset, bytes, flags): (usize, usize, usize),
    ) -> Result<Fate, String> {
        let (_, handle) = match self.file(caller.table, call.argument(0)?)? {
            Found::File(at, handle) => (at, handle),
            Found::Not(fate) => return Ok(fate),
        };
        let flags = bits(
            call.argument(flags)?,
            &[
                (
                    "SYNC_FILE_RANGE_WAIT_BEFORE",
                    libc::SYNC_FILE_RANGE_WAIT_BEFORE,
                ),
                ("SYNC_FILE_RANGE_WRITE", libc::SYNC_FILE_RANGE_WRITE),
                (
                    "SYNC_FILE_RANGE_WAIT_AFTER",
                    libc::SYNC_FILE_RANGE_WAIT_AFTER,
                ),
            ],
        );
        let Some(flags) = flags else {
            return Ok(Fate::lost(
                "sync_file_range with flags that are not known",
                1,
            ));
        };
        let range = (call.number(offset)?, call.number(bytes)?);
        self.builder.sync_range(caller.when, handle, range, flags)?;
        Ok(Fate::Played)
    }

    /// Adds an msync(2), which is an fsync(2) of what was stored in the mapping. The stores are not in
    /// the trace.
    fn sync_mapping(&mut self, caller: Caller, call: &Call) -> Result<Fate, String> {
        if !call.argument(2)?.contains("MS_SYNC") {
            return Ok(Fate::left_out("msync that waits for nothing"));
        }
        let mapped = self.mappings[caller.table].at(call.number(0)?);
        Ok(match mapped.map(|at| self.descriptions[at].meaning) {
            Some(Meaning::File(handle)) => {
                self.builder.sync(caller.when, handle, false);
                Fate::Changed {
                    how: "msync, as fsync without what was stored before".into(),
                    lost: 1,
                }
            }
            _ => Fate::lost("msync of a mapping that is not known", 1),
        })
    }

    /// Follows a mapping. Reads and stores through it are page faults, which are not in the trace.
    fn map(&mut self, caller: Caller, call: &Call) -> Result<Fate, String> {
        let (begin, bytes) = (caller.result, call.number(1)?);
        self.mappings[caller.table].unmap(begin, bytes);
        let is_anonymous = call.argument(3)?.contains("MAP_ANON");
        let description = match is_anonymous {
            true => None,
            false => self.description(caller.table, call.argument(4)?)?,
        };
        let Some(at) = description else {
            return Ok(Fate::left_out("mmap without a file"));
        };
        if !matches!(self.descriptions[at].meaning, Meaning::File(_)) {
            return Ok(Fate::left_out(NO_FILE));
        }
        let is_shared = call.argument(3)?.contains("MAP_SHARED");
        if !is_shared {
            return Ok(Fate::left_out(
                "mmap of a file: its page faults are not in the trace",
            ));
        }
        self.mappings[caller.table].map(begin, bytes, at);
        Ok(match call.argument(2)?.contains("PROT_WRITE") {
            true => Fate::lost("mmap of a file for stores, which are not in the trace", 1),
            false => Fate::left_out("mmap of a file: its page faults are not in the trace"),
        })
    }

    fn allocate(&mut self, caller: Caller, call: &Call) -> Result<Fate, String> {
        let (_, handle) = match self.file(caller.table, call.argument(0)?)? {
            Found::File(at, handle) => (at, handle),
            Found::Not(fate) => return Ok(fate),
        };
        let mode = bits(
            call.argument(1)?,
            &[
                ("FALLOC_FL_KEEP_SIZE", libc::FALLOC_FL_KEEP_SIZE as u32),
                ("FALLOC_FL_PUNCH_HOLE", libc::FALLOC_FL_PUNCH_HOLE as u32),
                ("FALLOC_FL_ZERO_RANGE", libc::FALLOC_FL_ZERO_RANGE as u32),
            ],
        );
        let Some(mode) = mode else {
            return Ok(Fate::lost("fallocate that moves the end of a file", 1));
        };
        let grows = u32::from(mode) & libc::FALLOC_FL_KEEP_SIZE as u32 == 0;
        let range = (call.number(2)?, call.number(3)?);
        self.builder
            .allocate(caller.when, handle, range, (mode, grows))?;
        Ok(Fate::Played)
    }

    /// Two new descriptors in `[3, 4]`, which are no files'.
    fn no_files(&mut self, table: Table, call: &Call, index: usize) -> Result<Fate, String> {
        if let Some(inner) = call.argument(index)?.strip_prefix('[') {
            for item in parts(inner, b']')?.0 {
                if let (Some(number), _) = descriptor(item)? {
                    self.describe_new(table, number as u64, Vec::new(), Meaning::NoFile, false);
                }
            }
        }
        Ok(Fate::left_out(call.name.to_owned()))
    }

    fn truncate_open(&mut self, when: When, table: Table, call: &Call) -> Result<Fate, String> {
        let found = self.file(table, call.argument(0)?)?;
        Ok(match found {
            Found::File(_, handle) => {
                self.builder.truncate(when, handle, call.number(1)?)?;
                Fate::Played
            }
            Found::Not(Fate::LeftOut { what, .. }) => Fate::left_out(what),
            Found::Not(fate) => fate,
        })
    }

    fn truncate(&mut self, when: When, table: Table, call: &Call) -> Result<Fate, String> {
        let path = self.path(table, call, (None, 0))?;
        let opening = Opening {
            write: true,
            ..Opening::default()
        };
        match self.builder.found_open(&path, opening)? {
            Some(handle) => {
                self.builder.truncate(when, handle, call.number(1)?)?;
                Ok(Fate::Played)
            }
            None => Ok(pseudo()),
        }
    }

    fn rename(
        &mut self,
        when: When,
        table: Table,
        call: &Call,
        from: PathAt,
        to: PathAt,
    ) -> Result<Fate, String> {
        if call
            .arguments
            .iter()
            .any(|it| it.contains("RENAME_EXCHANGE"))
        {
            return Ok(Fate::left_out("renameat2 with RENAME_EXCHANGE"));
        }
        let from = self.path(table, call, from)?;
        let to = self.path(table, call, to)?;
        self.builder.rename(when, &from, &to)
    }

    fn unlink(
        &mut self,
        when: When,
        table: Table,
        call: &Call,
        path: PathAt,
        directory: bool,
    ) -> Result<Fate, String> {
        let path = self.path(table, call, path)?;
        self.builder.unlink(when, &path, directory)
    }

    fn make_directory(
        &mut self,
        when: When,
        table: Table,
        call: &Call,
        path: PathAt,
    ) -> Result<Fate, String> {
        let path = self.path(table, call, path)?;
        self.builder.make_directory(when, &path)
    }

    fn duplicate(&mut self, table: Table, call: &Call, descriptor: u64) -> Result<(), String> {
        let Some(at) = self.description(table, call.argument(0)?)? else {
            // The new descriptor is not known either, and the number's old meaning has ended.
            if let Some(old) = self.tables[table].remove(&(descriptor as i32)) {
                self.descriptions[old].descriptors -= 1;
            }
            return Ok(());
        };
        self.descriptions[at].descriptors += 1;
        self.describe(table, descriptor, at);
        Ok(())
    }
}

/// What a path means that was opened, with its handle if it is on a disk's file system.
fn meaning(handle: Option<u32>, path: &[u8]) -> Meaning {
    match (handle, path.strip_prefix(b"/dev/")) {
        (Some(handle), _) => Meaning::File(handle),
        (None, Some(name)) if DISKS.iter().any(|it| name.starts_with(it)) => Meaning::Disk,
        (None, _) => Meaning::NoFile,
    }
}

fn lost_of(fate: &Fate) -> u64 {
    match fate {
        Fate::Played => 0,
        Fate::Changed { lost, .. } | Fate::LeftOut { lost, .. } => *lost,
    }
}

/// The value of flags in words; None if one of them has no known value.
fn bits(text: &str, known: &[(&str, u32)]) -> Option<u8> {
    let mut all = 0;
    for word in text.split('|') {
        all |= match known.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => *value,
            None => number_in(word).filter(|it| *it == 0)? as u32,
        };
    }
    u8::try_from(all).ok()
}
