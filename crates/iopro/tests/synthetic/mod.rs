//! Streams of events with known answers, and queries of the tables.

use iopro::event::*;
use iopro::link::{Foreground, Linker};
use iopro::recording::{Disk, Ending, Header, Mount, Partition, Target};
use iopro::store::Store;

pub const DISK: Dev = Dev(8 << 20);
pub const PARTITION: Dev = Dev(8 << 20 | 1);
pub const PARTITION_START: u64 = 2048;
pub const APP: u32 = 100;
pub const OTHER_APP: u32 = 200;
pub const KWORKER: u32 = 30;
pub const JBD2: u32 = 31;
pub const MS: u64 = 1_000_000;
pub const PAGE: u64 = 4096;

/// Address of a bio, its first page, and its bytes.
pub type Part = (u64, Option<(FileId, u64)>, u64);

/// The file with this inode number.
pub fn file(inode: u64) -> FileId {
    FileId {
        dev: PARTITION,
        inode,
        generation: 1,
    }
}

/// The file system's metadata pages.
pub fn metadata() -> FileId {
    FileId {
        dev: PARTITION,
        inode: 0,
        generation: 0,
    }
}

pub fn header() -> Header {
    Header {
        frontrow: "test".to_owned(),
        kernel: "6.12.0".to_owned(),
        machine: "x86_64".to_owned(),
        page_bytes: PAGE,
        cpus: 2,
        begin_ns: 0,
        realtime_offset_ns: 0,
        target: Target::Process { pid: APP },
        disks: vec![Disk {
            dev: DISK,
            name: "sda".to_owned(),
            sectors: 1 << 30,
            scheduler: "none".to_owned(),
            nr_requests: 64,
            partitions: vec![Partition {
                dev: PARTITION,
                name: "sda1".to_owned(),
                start_sector: PARTITION_START,
                sectors: 1 << 29,
            }],
        }],
        mounts: vec![Mount {
            dev: PARTITION,
            root: "/".to_owned(),
            path: "/data".to_owned(),
            kind: "ext4".to_owned(),
        }],
        missing: Vec::new(),
        tells_taken: true,
    }
}

/// Builds a stream of events, each a nanosecond after the previous one.
pub struct Stream {
    pub events: Vec<Event>,
    pub now: u64,
    next_address: u64,
}

impl Stream {
    /// A stream with two apps, a worker, a journal's thread and three named files.
    pub fn new() -> Stream {
        let mut stream = Stream {
            events: Vec::new(),
            now: MS,
            next_address: 0x1000,
        };
        for (thread, name, kernel) in [
            (APP, "app", false),
            (OTHER_APP, "other-app", false),
            (KWORKER, "kworker/u4:1", true),
            (JBD2, "jbd2/sda1-8", true),
        ] {
            stream.thread(ThreadInfo {
                kernel,
                ..thread_info(thread, name)
            });
        }
        for (inode, path) in [(10, "/a"), (11, "/b"), (12, "/photo.jpg")] {
            stream.push(
                APP,
                What::Name(Name {
                    file: file(inode),
                    path: path.to_owned(),
                    cut: false,
                    why: NameReason::Seen,
                    mode: 0o100_644,
                }),
            );
        }
        stream
    }

    pub fn thread(&mut self, info: ThreadInfo) {
        self.push(info.thread, What::Thread(info));
    }

    pub fn push(&mut self, thread: u32, what: What) {
        self.now += 1;
        self.events.push(Event {
            time_ns: self.now,
            cpu: 0,
            thread,
            in_fault: false,
            what,
        });
    }

    pub fn pass(&mut self, ns: u64) {
        self.now += ns;
    }

    pub fn address(&mut self) -> u64 {
        self.next_address += 0x100;
        self.next_address
    }

    pub fn call(kind: CallKind, file: FileId, offset: u64, size: u64) -> Call {
        Call {
            kind,
            fd: Some(3),
            file: Some(file),
            from: None,
            offset_bytes: Some(offset),
            size_bytes: Some(size),
            flags: CallFlags::default(),
        }
    }

    pub fn enter(&mut self, thread: u32, call: &Call) -> u64 {
        self.push(thread, What::CallEnter(call.clone()));
        self.now
    }

    pub fn exit(&mut self, thread: u32, call: Call, begin_ns: u64, result: i64) {
        self.push(
            thread,
            What::CallExit(CallExit {
                call,
                begin_ns,
                result,
                unfinished: false,
            }),
        );
    }

    pub fn run(&self, file: FileId, index: u64, pages: u64) -> PageRun {
        PageRun {
            file,
            index,
            pages: pages as u32,
            begin_ns: self.now + 1,
        }
    }

    pub fn dirtied(&mut self, thread: u32, file: FileId, index: u64, pages: u64) {
        let run = self.run(file, index, pages);
        self.push(thread, What::Dirtied(run));
    }

    pub fn cleaned(&mut self, thread: u32, file: FileId, index: u64, pages: u64) {
        let run = self.run(file, index, pages);
        self.push(thread, What::Cleaned(run));
    }

    /// Writes whole pages, which all become dirty if `fresh` is set.
    pub fn write(&mut self, thread: u32, file: FileId, offset: u64, size: u64, fresh: bool) {
        let call = Stream::call(CallKind::Pwrite64, file, offset, size);
        let begin = self.enter(thread, &call);
        if fresh {
            let (first, end) = (offset / PAGE, (offset + size).div_ceil(PAGE));
            self.dirtied(thread, file, first, end - first);
        }
        self.exit(thread, call, begin, size as i64);
    }

    pub fn queue(&mut self, thread: u32, io: Io) -> u64 {
        let bio = self.address();
        self.push(thread, What::Queue(Queue { bio, io }));
        bio
    }

    /// Issues a request of these bios with their pages.
    pub fn issue(&mut self, io: Io, parts: &[Part]) -> u64 {
        let request = self.address();
        let told = Request {
            request,
            io,
            ioprio: 0,
        };
        self.push(0, What::Insert(told.clone()));
        self.push(0, What::Issue(told));
        let mut sector = io.sector;
        for (bio, pages, bytes) in parts {
            self.push(
                0,
                What::Segment(Segment {
                    request,
                    bio: *bio,
                    dev: io.dev,
                    sector,
                    bytes: *bytes as u32,
                    pages: *pages,
                    at_bytes: 0,
                }),
            );
            sector += bytes / 512;
        }
        request
    }

    pub fn complete(&mut self, request: u64, io: Io) {
        self.push(
            0,
            What::Complete(Complete {
                request,
                sector: io.sector,
                bytes: io.bytes,
                remaining_bytes: 0,
                status: 0,
            }),
        );
    }

    /// Sends a bio of these pages from the queue to completion, with a millisecond in each step.
    pub fn io(&mut self, thread: u32, io: Io, pages: Option<(FileId, u64)>) {
        let bio = self.queue(thread, io);
        self.pass(MS);
        let request = self.issue(io, &[(bio, pages, io.bytes.into())]);
        self.pass(MS);
        self.complete(request, io);
    }

    /// Writes these pages back by a worker.
    pub fn write_back(&mut self, file: FileId, index: u64, pages: u64) {
        self.cleaned(KWORKER, file, index, pages);
        self.io(
            KWORKER,
            io(Op::Write, 0, index * 8, pages * PAGE),
            Some((file, index)),
        );
    }

    /// Three fsyncs of an app, of 20 ms each, wait for another app's writes.
    pub fn fsyncs_behind_another_app(&mut self) {
        for round in 0..3 {
            let data = file(10 + round % 2);
            self.write(OTHER_APP, data, 0, 2 * PAGE, true);
            let fsync = Stream::call(CallKind::Fsync, data, 0, 0);
            let begin = self.enter(APP, &fsync);
            self.pass(20 * MS);
            self.write_back(data, 0, 2);
            let page = Reason::Writeback {
                file: data,
                index: 0,
            };
            self.blocked(APP, 10 * MS, page, Some(CallKind::Fsync));
            self.exit(APP, fsync, begin, 0);
        }
    }

    pub fn blocked(&mut self, thread: u32, for_ns: u64, reason: Reason, call: Option<CallKind>) {
        let blocked = Blocked {
            begin_ns: self.now.saturating_sub(for_ns),
            woken_ns: self.now,
            waker: 0,
            reason,
            uninterruptible: true,
            iowait: true,
            in_reclaim: false,
            for_journal_space: false,
            call,
        };
        self.push(thread, What::Blocked(blocked));
    }

    pub fn link(&self) -> Tables {
        self.link_for(None)
    }

    pub fn link_for(&self, foreground: Option<Foreground>) -> Tables {
        let store = Store::temporary().unwrap();
        let mut linker = Linker::new(&header(), foreground, store).unwrap();
        for event in &self.events {
            linker.event(event).unwrap();
        }
        let end_ns = self.now;
        Tables(linker.finish(Some(Ending::Complete { end_ns })).unwrap())
    }
}

/// A process of one thread, outside of all cgroups.
pub fn thread_info(thread: u32, name: &str) -> ThreadInfo {
    ThreadInfo {
        thread,
        process: thread,
        parent: 1,
        start_ns: u64::from(thread),
        cgroup: 0,
        name: name.to_owned(),
        process_name: name.to_owned(),
        kernel: false,
    }
}

pub fn io(op: Op, flags: u16, sector: u64, bytes: u64) -> Io {
    Io {
        dev: DISK,
        op,
        flags: IoFlags(flags),
        sector,
        bytes: bytes as u32,
    }
}

/// The tables of a linked stream.
pub struct Tables(pub Store);

impl Tables {
    /// The rows of a query, with their cells joined by blanks.
    pub fn ask(&self, query: &str) -> Vec<String> {
        let mut statement = self.0.database().prepare(query).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let cells = (0..columns).map(|column| {
                use rusqlite::types::ValueRef;
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => "-".to_owned(),
                    ValueRef::Integer(number) => number.to_string(),
                    ValueRef::Real(number) => number.to_string(),
                    ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    ValueRef::Blob(_) => "blob".to_owned(),
                })
            });
            Ok(cells
                .collect::<Result<Vec<_>, rusqlite::Error>>()?
                .join(" "))
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }
}
