//! Decoder of the records that the kernel side writes (`bpf/wire.h`).
//!
//! The bytes come from a file and may be anything. A record that is too short, or has a number
//! without a meaning, is rejected.

use crate::event::{
    Blocked, Call, CallExit, CallFlags, CallKind, Commit, CommitPhase, Complete, Dev, Event,
    FileId, Io, IoFlags, Lost, LostKind, Merge, Name, NameReason, Op, PageRun, Queue, Reason,
    Request, RingComplete, RingSubmit, Segment, Split, ThreadInfo, Transaction, Truncated, What,
    Writeback,
};
use crate::named::numbered;

/// Length field of a record, which precedes it in a ring buffer (`bpf/ring.h`).
pub const RING_HEADER_BYTES: usize = 8;

/// Flag in a record's kind: its thread is in a page fault.
const IN_FAULT: u8 = 0x80;

const CALL_HAS_FILE: u32 = 1;
const CALL_HAS_OFFSET: u32 = 2;
const CALL_HAS_SIZE: u32 = 4;
const CALL_UNFINISHED: u32 = 8;
const SEGMENT_HAS_PAGES: u32 = 1;
const SEGMENT_AT_SHIFT: u32 = 1;
const SECTOR_BYTES: u32 = 512;
const NAME_CUT: u32 = 1;

const BLOCKED_UNINTERRUPTIBLE: u16 = 1;
const BLOCKED_IOWAIT: u16 = 2;
const BLOCKED_IN_RECLAIM: u16 = 4;
const BLOCKED_OF_FILE: u16 = 8;
const BLOCKED_FOR_JOURNAL_SPACE: u16 = 16;

/// Largest number of a page in a file: file offsets are signed.
const INDEX_AT_MOST: u64 = 1 << 51;
/// No thread changes this many pages in the time of one record.
const PAGES_AT_MOST: u32 = 1 << 20;
/// No call or fault reads or writes more bytes (MAX_RW_COUNT).
const BYTES_AT_MOST: u64 = 1 << 31;

numbered! {
    /// Kinds of records.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kind {
        CallEnter = 1 "call_enter",
        CallExit = 2 "call_exit",
        CallExitFrom = 3 "call_exit_from",
        RingSubmit = 4 "ring_submit",
        RingComplete = 5 "ring_complete",
        Added = 6 "added",
        Dirtied = 7 "dirtied",
        Cleaned = 8 "cleaned",
        Truncated = 9 "truncated",
        Writeback = 10 "writeback",
        Queue = 11 "queue",
        Unplug = 13 "unplug",
        BackMerge = 14 "back_merge",
        FrontMerge = 15 "front_merge",
        RqMerge = 16 "rq_merge",
        Split = 17 "split",
        Insert = 18 "insert",
        Issue = 19 "issue",
        Segment = 20 "segment",
        Requeue = 21 "requeue",
        Complete = 22 "complete",
        Commit = 23 "commit",
        Joined = 24 "joined",
        Blocked = 25 "blocked",
        Reclaim = 26 "reclaim",
        Thread = 27 "thread",
        ThreadEnd = 28 "thread_end",
        Name = 29 "name",
        Cgroup = 30 "cgroup",
        Stack = 31 "stack",
        Lost = 32 "lost",
        Direct = 33 "direct",
    }
}

/// Offset in a record of kind [`Kind::Direct`] of the time between its bio's queueing and its own.
const QUEUED_BEFORE_AT: usize = 52;

/// Whether a call can be about this many bytes: linking takes time and memory for each page.
fn is_possible(exit: &CallExit) -> bool {
    let call = &exit.call;
    let bytes = match call.kind {
        _ if exit.unfinished => 0,
        CallKind::ReadFault | CallKind::WriteFault => call.size_bytes.unwrap_or(0),
        _ => u64::try_from(exit.result).unwrap_or(0),
    };
    let offset = call.offset_bytes.unwrap_or(0);
    // A call that fails may have asked for an impossible offset.
    bytes == 0 || bytes <= BYTES_AT_MOST && offset <= i64::MAX as u64
}

/// Splits the content of a ring into records, without their length fields. Stops at the first
/// length that cannot be one.
pub fn records(mut ring: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = ring.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let record = rest.get(..length).filter(|it| !it.is_empty())?;
        ring = rest.get(length.next_multiple_of(8)..).unwrap_or_default();
        Some(record)
    })
}

/// Time of a record in nanoseconds of CLOCK_MONOTONIC; None if it is too short.
pub fn time_ns(record: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*record.first_chunk()?))
}

/// Time at which the bio was queued, if this record tells of both its queueing and the issue of its
/// request. [`decode_queued`] gives the event of that time.
pub fn queued_ns(record: &[u8]) -> Option<u64> {
    if record.get(12)? & !IN_FAULT != Kind::Direct as u8 {
        return None;
    }
    let before_ns = record.get(QUEUED_BEFORE_AT..)?.first_chunk()?;
    Some(time_ns(record)?.saturating_sub(u32::from_le_bytes(*before_ns).into()))
}

/// The event for the time that [`queued_ns`] gives; None for other records.
pub fn decode_queued(record: &[u8], cpu: u32) -> Option<Event> {
    let time_ns = queued_ns(record)?;
    let (issue, segment) = decode(record, cpu)?;
    let (What::Issue(request), What::Segment(segment)) = (&issue.what, segment?.what) else {
        return None;
    };
    let queue = Queue {
        bio: segment.bio,
        io: request.io,
    };
    Some(Event {
        time_ns,
        what: What::Queue(queue),
        ..issue
    })
}

/// Decodes a record into an event. An issued request has a second event, its first segment. None if
/// the record is not valid.
pub fn decode(record: &[u8], cpu: u32) -> Option<(Event, Option<Event>)> {
    let mut fields = Fields(record);
    let time_ns = fields.u64()?;
    let thread = fields.u32()?;
    let kind = fields.u8()?;
    let head = Head {
        time_ns,
        kind: Kind::from_wire(kind & !IN_FAULT)?,
        op: fields.u8()?,
        flags: fields.u16()?,
    };
    let event = |what| Event {
        time_ns,
        cpu,
        thread,
        in_fault: kind & IN_FAULT != 0,
        what,
    };
    let (what, first) = fields.what(&head)?;
    Some((
        event(what),
        first.map(|segment| event(What::Segment(segment))),
    ))
}

/// The fixed part of a record, without the fields that go into the event as they are.
struct Head {
    time_ns: u64,
    kind: Kind,
    op: u8,
    flags: u16,
}

/// The bytes of a record that are not decoded yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|it| it[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn bytes(&mut self, length: u32) -> Option<&'a [u8]> {
        self.0.get(..length as usize)
    }

    fn file(&mut self) -> Option<FileId> {
        Some(FileId {
            inode: self.u64()?,
            dev: Dev(self.u32()?),
            generation: self.u32()?,
        })
    }

    fn comm(&mut self) -> Option<String> {
        let comm = self.take::<16>()?;
        let name = comm.split(|&byte| byte == 0).next().unwrap_or_default();
        Some(text(name))
    }

    fn what(&mut self, head: &Head) -> Option<(What, Option<Segment>)> {
        let what = match head.kind {
            Kind::CallEnter => What::CallEnter(self.call(head)?.call),
            Kind::CallExit => What::CallExit(self.call(head)?),
            Kind::CallExitFrom => What::CallExit(self.call_with_source(head)?),
            Kind::RingSubmit => What::RingSubmit(self.ring_submit(head)?),
            Kind::RingComplete => What::RingComplete(RingComplete {
                request: self.u64()?,
                user_data: self.u64()?,
                result: self.u32()? as i32,
            }),
            Kind::Added => What::Added(self.pages()?),
            Kind::Dirtied => What::Dirtied(self.pages()?),
            Kind::Cleaned => What::Cleaned(self.pages()?),
            Kind::Truncated => What::Truncated(Truncated {
                file: self.file()?,
                from_bytes: self.u64()?,
                to_bytes: self.u64()?,
                removed: head.op != 0,
            }),
            Kind::Writeback => What::Writeback(Writeback {
                file: self.file()?,
                begin_ns: self.u64()?,
                pages: self.u64()?,
                sync: head.op != 0,
            }),
            Kind::Queue => What::Queue(Queue {
                bio: self.u64()?,
                io: self.io(head)?,
            }),
            Kind::Unplug => What::Unplug {
                dev: Dev(self.u32()?),
                requests: self.u32()?,
                explicit: head.op != 0,
            },
            Kind::BackMerge | Kind::FrontMerge => What::Merge(Merge {
                bio: self.u64()?,
                io: self.io(head)?,
                front: head.kind == Kind::FrontMerge,
            }),
            Kind::RqMerge => What::RequestMerge(self.request(head)?),
            Kind::Split => What::Split(Split {
                bio: self.u64()?,
                io: self.io(head)?,
                parent: self.u64()?,
                rest_sector: self.u64()?,
            }),
            Kind::Insert => What::Insert(self.request(head)?),
            Kind::Issue => {
                let request = self.request(head)?;
                let first = self.first_segment(&request)?;
                return Some((What::Issue(request), first));
            }
            Kind::Segment => What::Segment(self.segment(head)?),
            Kind::Requeue => What::Requeue(self.request(head)?),
            Kind::Complete => What::Complete(self.complete(head)?),
            Kind::Commit => What::Commit(Commit {
                transaction: self.transaction()?,
                phase: CommitPhase::from_wire(head.op)?,
            }),
            Kind::Joined => What::Joined(self.transaction()?),
            Kind::Blocked => What::Blocked(self.blocked(head)?),
            Kind::Reclaim => What::Reclaim {
                begin_ns: self.u64()?,
                reclaimed_pages: self.u64()?,
            },
            Kind::Thread => What::Thread(self.thread(head)?),
            Kind::ThreadEnd => What::ThreadEnd,
            Kind::Name => What::Name(self.name(head)?),
            Kind::Cgroup => {
                let id = self.u64()?;
                let length = self.u32()?;
                self.u32()?;
                let path = text(self.bytes(length)?);
                What::Cgroup { id, path }
            }
            Kind::Stack => self.stack()?,
            Kind::Direct => {
                let (request, first) = self.direct(head)?;
                return Some((What::Issue(request), Some(first)));
            }
            Kind::Lost => What::Lost(Lost {
                kind: LostKind::from_wire(head.op)?,
                count: self.u64()?,
            }),
        };
        Some((what, None))
    }

    fn call(&mut self, head: &Head) -> Option<CallExit> {
        let begin_ns = self.u64()?;
        let result = self.u64()? as i64;
        let (offset, size) = (self.u64()?, self.u64()?);
        let file = self.file()?;
        let fd = self.u32()? as i32;
        let has = self.u32()?;
        let call = Call {
            kind: CallKind::from_wire(head.op)?,
            fd: (fd >= 0).then_some(fd),
            file: (has & CALL_HAS_FILE != 0).then_some(file),
            from: None,
            offset_bytes: (has & CALL_HAS_OFFSET != 0).then_some(offset),
            size_bytes: (has & CALL_HAS_SIZE != 0).then_some(size),
            flags: CallFlags(head.flags),
        };
        let exit = CallExit {
            call,
            begin_ns,
            result,
            unfinished: has & CALL_UNFINISHED != 0,
        };
        is_possible(&exit).then_some(exit)
    }

    fn call_with_source(&mut self, head: &Head) -> Option<CallExit> {
        let mut exit = self.call(head)?;
        exit.call.from = Some(self.file()?);
        Some(exit)
    }

    fn ring_submit(&mut self, head: &Head) -> Option<RingSubmit> {
        let (request, user_data) = (self.u64()?, self.u64()?);
        let (offset, size) = (self.u64()?, self.u64()?);
        let file = self.file()?;
        let has = self.u32()?;
        Some(RingSubmit {
            request,
            opcode: head.op,
            user_data,
            file: (has & CALL_HAS_FILE != 0).then_some(file),
            offset_bytes: (has & CALL_HAS_OFFSET != 0).then_some(offset),
            size_bytes: (has & CALL_HAS_SIZE != 0).then_some(size),
            flags: CallFlags(head.flags),
        })
    }

    fn pages(&mut self) -> Option<PageRun> {
        let run = PageRun {
            begin_ns: self.u64()?,
            file: self.file()?,
            index: self.u64()?,
            pages: self.u32()?,
        };
        (run.pages <= PAGES_AT_MOST && run.index <= INDEX_AT_MOST).then_some(run)
    }

    /// Sector, bytes and device, which are adjacent in all I/O records.
    fn io(&mut self, head: &Head) -> Option<Io> {
        Some(Io {
            sector: self.u64()?,
            bytes: self.u32()?,
            dev: Dev(self.u32()?),
            op: Op::from_wire(head.op)?,
            flags: IoFlags(head.flags),
        })
    }

    fn request(&mut self, head: &Head) -> Option<Request> {
        let request = Request {
            request: self.u64()?,
            io: self.io(head)?,
            ioprio: self.u32()? as u16,
        };
        self.u32()?;
        Some(request)
    }

    fn first_segment(&mut self, request: &Request) -> Option<Option<Segment>> {
        let bio = self.u64()?;
        let bytes = self.u32()?;
        let has = self.u32()?;
        let pages = match has & SEGMENT_HAS_PAGES {
            0 => None,
            _ => Some((self.file()?, self.u64()?)),
        };
        let segment = Segment {
            request: request.request,
            bio,
            dev: request.io.dev,
            sector: request.io.sector,
            bytes,
            pages,
            at_bytes: at_bytes(has),
        };
        Some((bio != 0).then_some(segment))
    }

    fn direct(&mut self, head: &Head) -> Option<(Request, Segment)> {
        let (request, bio) = (self.u64()?, self.u64()?);
        let io = self.io(head)?;
        let ioprio = self.u32()? as u16;
        self.u32()?;
        let first = Segment {
            request,
            bio,
            dev: io.dev,
            sector: io.sector,
            bytes: io.bytes,
            pages: None,
            at_bytes: 0,
        };
        let request = Request {
            request,
            io,
            ioprio,
        };
        Some((request, first))
    }

    fn segment(&mut self, head: &Head) -> Option<Segment> {
        let mut segment = Segment {
            request: self.u64()?,
            bio: self.u64()?,
            sector: self.u64()?,
            bytes: self.u32()?,
            dev: Dev(self.u32()?),
            pages: Some((self.file()?, self.u64()?)),
            at_bytes: at_bytes(head.op.into()),
        };
        if u32::from(head.op) & SEGMENT_HAS_PAGES == 0 {
            segment.pages = None;
        }
        Some(segment)
    }

    fn complete(&mut self, head: &Head) -> Option<Complete> {
        Some(Complete {
            request: self.u64()?,
            sector: self.u64()?,
            bytes: self.u32()?,
            remaining_bytes: self.u32()?,
            status: head.op,
        })
    }

    fn transaction(&mut self) -> Option<Transaction> {
        Some(Transaction {
            dev: Dev(self.u32()?),
            tid: self.u32()?,
        })
    }

    fn blocked(&mut self, head: &Head) -> Option<Blocked> {
        let (begin_ns, woken_ns) = (self.u64()?, self.u64()?);
        let (file, value) = (self.file()?, self.u64()?);
        let waker = self.u32()?;
        let flag = |flag| head.flags & flag != 0;
        Some(Blocked {
            begin_ns,
            // Zero: the thread was woken before the program could see it.
            woken_ns: if woken_ns == 0 {
                head.time_ns
            } else {
                woken_ns
            },
            waker,
            reason: reason(head.op, file, value, flag(BLOCKED_OF_FILE))?,
            uninterruptible: flag(BLOCKED_UNINTERRUPTIBLE),
            iowait: flag(BLOCKED_IOWAIT),
            in_reclaim: flag(BLOCKED_IN_RECLAIM),
            for_journal_space: flag(BLOCKED_FOR_JOURNAL_SPACE),
            call: CallKind::from_wire((head.flags >> 8) as u8),
        })
    }

    fn thread(&mut self, head: &Head) -> Option<ThreadInfo> {
        let mut info = ThreadInfo {
            start_ns: self.u64()?,
            cgroup: self.u64()?,
            thread: self.u32()?,
            process: self.u32()?,
            parent: self.u32()?,
            kernel: head.op != 0,
            ..ThreadInfo::default()
        };
        self.u32()?;
        info.name = self.comm()?;
        info.process_name = self.comm()?;
        Some(info)
    }

    fn name(&mut self, head: &Head) -> Option<Name> {
        let file = self.file()?;
        let length = self.u32()?;
        let cut = self.u32()? & NAME_CUT != 0;
        Some(Name {
            file,
            path: path(self.bytes(length)?, cut),
            cut,
            why: NameReason::from_wire(head.op)?,
            mode: head.flags,
        })
    }

    fn stack(&mut self) -> Option<What> {
        let id = self.u32()?;
        let length = self.u32()?;
        let names = self.bytes(length)?.split_inclusive(|&byte| byte == 0);
        let functions = names.map(|name| {
            let name = name.strip_suffix(&[0]).unwrap_or(name);
            text(name)
        });
        Some(What::Stack {
            id,
            functions: functions.collect(),
        })
    }
}

/// A name as text, of which bytes that are no UTF-8 are written as `\xff`: so two names stay two.
fn text(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// Components are ordered from the file upwards, each with a NUL after it.
fn path(components: &[u8], cut: bool) -> String {
    let components = components.strip_suffix(&[0]).unwrap_or(components);
    if components.is_empty() {
        return String::new();
    }
    let mut path = String::from(if cut { "…" } else { "" });
    for component in components.rsplit(|&byte| byte == 0) {
        path.push('/');
        // The name of the root directory's dentry is a slash.
        if component != b"/" {
            path.push_str(&text(component));
        }
    }
    path
}

fn reason(number: u8, file: FileId, value: u64, of_file: bool) -> Option<Reason> {
    let dev = file.dev;
    Some(match number {
        1 => Reason::Writeback { file, index: value },
        2 => Reason::PageLock { file, index: value },
        3 => Reason::Buffer {
            dev,
            block: value,
            block_bytes: file.generation,
        },
        4 => Reason::JournalBuffer { dev },
        5 => Reason::JournalCommit(Transaction {
            dev,
            tid: value as u32,
        }),
        6 => Reason::JournalHandle { dev },
        7 => Reason::JournalSpace { dev },
        8 => Reason::Tag,
        9 => Reason::QueueThrottle,
        10 => Reason::DirtyThrottle,
        11 => Reason::OwnBio {
            op: Op::from_wire(u8::try_from(value).ok()?)?,
        },
        12 => Reason::DirectIo,
        13 => Reason::Lock {
            address: value,
            of_file,
        },
        14 => Reason::FlusherDone,
        15 => Reason::ReclaimThrottle,
        16 => Reason::Other {
            stack: u32::try_from(value).ok(),
        },
        _ => return None,
    })
}

/// Encodes a record that the recorder itself adds, in the form it has in a ring.
fn own_record(time_ns: u64, kind: Kind, op: u8, body: &[u8]) -> Vec<u8> {
    let mut record = vec![0; RING_HEADER_BYTES];
    record.extend(time_ns.to_le_bytes());
    record.extend(0u32.to_le_bytes());
    record.extend([kind as u8, op, 0, 0]);
    record.extend(body);
    let length = (record.len() - RING_HEADER_BYTES) as u64;
    record[..RING_HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

/// Encodes the functions of stack `id`, from the innermost out.
pub fn stack(time_ns: u64, id: u32, functions: &[String]) -> Vec<u8> {
    let names: Vec<u8> = functions
        .iter()
        .flat_map(|name| name.bytes().chain([0]))
        .collect();
    let mut body = id.to_le_bytes().to_vec();
    body.extend((names.len() as u32).to_le_bytes());
    body.extend(names);
    own_record(time_ns, Kind::Stack, 0, &body)
}

/// Encodes a number of lost events.
pub fn lost(time_ns: u64, lost: Lost) -> Vec<u8> {
    own_record(
        time_ns,
        Kind::Lost,
        lost.kind as u8,
        &lost.count.to_le_bytes(),
    )
}

/// Encodes the path of cgroup `id`.
pub fn cgroup(time_ns: u64, id: u64, path: &str) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    body.extend((path.len() as u32).to_le_bytes());
    body.extend(0u32.to_le_bytes());
    body.extend(path.bytes());
    own_record(time_ns, Kind::Cgroup, 0, &body)
}

/// Encodes a call that a thread is still in, from the programs' state of the thread (the begin of
/// `struct thread` in `bpf/state.h`). None if the thread is in no call.
pub fn unfinished(time_ns: u64, state: &[u8]) -> Option<Vec<u8>> {
    let mut fields = Fields(state);
    let begin_ns = fields.take::<8>()?;
    let range = fields.take::<16>()?;
    let file = fields.take::<16>()?;
    fields.take::<24>()?;
    let fd = fields.take::<4>()?;
    let has = fields.u32()? | CALL_UNFINISHED;
    let flags = fields.u16()?;
    let call = fields.u8()?;
    fields.u8()?;
    let thread = fields.u32()?;
    if call == 0 {
        return None;
    }
    let body = [
        &begin_ns[..],
        &[0; 8],
        &range,
        &file,
        &fd,
        &has.to_le_bytes(),
    ]
    .concat();
    let mut record = own_record(time_ns, Kind::CallExit, call, &body);
    let head = &mut record[RING_HEADER_BYTES..];
    head[8..12].copy_from_slice(&thread.to_le_bytes());
    head[14..16].copy_from_slice(&flags.to_le_bytes());
    Some(record)
}

/// Where in its first page a segment begins; a page of 64 KB has 128 sectors.
fn at_bytes(has: u32) -> u32 {
    (has >> SEGMENT_AT_SHIFT & 0x7f) * SECTOR_BYTES
}

#[cfg(test)]
mod layout;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The second word of a record: thread, kind, op and flags.
    fn head(thread: u32, kind: u8, op: u8, flags: u16) -> u64 {
        u64::from(thread) | u64::from(kind) << 32 | u64::from(op) << 40 | u64::from(flags) << 48
    }

    fn decoded(words: &[u64]) -> (Event, Option<Event>) {
        decode(&bytes_of(words), 3).unwrap()
    }

    #[test]
    fn names_that_are_no_text_stay_different() {
        let of = |name: &[u8]| path(name, false);
        assert_eq!(of("é\0".as_bytes()), "/é");
        assert_eq!(of(b"a\xff\0"), "/a\\xff");
        assert_eq!(of(b"a\xfe\xc3\0"), "/a\\xfe\\xc3");
    }

    #[test]
    fn a_call_is_decoded_with_what_is_known_of_it() {
        let dev = 8u64 << 20 | 1;
        let has = u64::from(CALL_HAS_FILE | CALL_HAS_OFFSET);
        let words = [
            2000,
            head(7, Kind::CallExit as u8 | IN_FAULT, 7, 1),
            1000,
            -5i64 as u64,
            4096,
            99,
            12,
            dev | 6 << 32,
            4 | has << 32,
        ];
        let (event, second) = decoded(&words);
        assert_eq!((event.time_ns, event.cpu, event.thread), (2000, 3, 7));
        assert!(event.in_fault && second.is_none());
        let What::CallExit(exit) = event.what else {
            panic!("{event:?}");
        };
        assert_eq!((exit.begin_ns, exit.result), (1000, -5));
        assert_eq!(exit.call.kind, CallKind::Pwrite64);
        assert_eq!(exit.call.fd, Some(4));
        assert_eq!(exit.call.offset_bytes, Some(4096));
        assert_eq!(exit.call.size_bytes, None);
        let file = exit.call.file.unwrap();
        assert_eq!(
            (file.inode, file.dev, file.generation),
            (12, Dev::new(8, 1), 6)
        );
        assert!(exit.call.flags.has(CallFlags::DIRECT) && !exit.unfinished);
    }

    #[test]
    fn an_issued_request_brings_its_first_segment() {
        let dev = u64::from(Dev::new(259, 0).0);
        let words = [
            10,
            head(0, 19, 1, 1),
            0xff00,
            2048,
            8192 | dev << 32,
            0,
            0xbb00,
            4096 | u64::from(SEGMENT_HAS_PAGES | 8 << SEGMENT_AT_SHIFT) << 32,
            12,
            dev | 6 << 32,
            5,
        ];
        let (issue, segment) = decoded(&words);
        let What::Issue(request) = issue.what else {
            panic!("{issue:?}");
        };
        assert_eq!((request.io.op, request.io.bytes), (Op::Write, 8192));
        let Some(What::Segment(segment)) = segment.map(|it| it.what) else {
            panic!("no segment");
        };
        assert_eq!((segment.request, segment.bio), (0xff00, 0xbb00));
        assert_eq!((segment.sector, segment.bytes), (2048, 4096));
        assert_eq!(segment.at_bytes, 4096);
        assert_eq!(
            segment.pages.map(|(file, index)| (file.inode, index)),
            Some((12, 5))
        );
    }

    #[test]
    fn a_record_of_direct_io_tells_of_the_queued_bio_and_of_the_request() {
        let dev = u64::from(Dev::new(259, 0).0);
        let words = [
            1000,
            head(7, Kind::Direct as u8, 0, 1),
            0xff00,
            0xbb00,
            2048,
            4096 | dev << 32,
            3 | 400 << 32,
        ];
        let record = bytes_of(&words);
        assert_eq!(queued_ns(&record), Some(600));
        let queued = decode_queued(&record, 3).unwrap();
        assert_eq!((queued.time_ns, queued.thread), (600, 7));
        let What::Queue(queue) = queued.what else {
            panic!("{queued:?}");
        };
        let (issue, segment) = decoded(&words);
        let (What::Issue(request), Some(What::Segment(segment))) =
            (issue.what, segment.map(|it| it.what))
        else {
            panic!("no issue of a segment");
        };
        assert_eq!(issue.time_ns, 1000);
        assert_eq!((queue.bio, queue.io), (segment.bio, request.io));
        assert_eq!((request.request, request.ioprio), (0xff00, 3));
        assert_eq!(
            (segment.sector, segment.bytes, segment.pages),
            (2048, 4096, None)
        );
        // All other records have one event.
        assert_eq!(
            queued_ns(&bytes_of(&[1000, head(7, 19, 0, 1), 0, 0, 0, 0, 3])),
            None
        );
    }

    #[test]
    fn paths_are_put_together_from_the_file_up() {
        assert_eq!(path(b"file\0dir\0top\0", false), "/top/dir/file");
        assert_eq!(path(b"file\0dir\0", true), "…/dir/file");
        assert_eq!(path(b"/\0", false), "/");
        assert_eq!(path(b"", false), "");
        assert_eq!(path(b"\xff\0", false), "/\\xff");
    }

    #[test]
    fn a_record_that_is_cut_is_not_read() {
        let mut ring = bytes_of(&[3]);
        ring.extend([1, 2, 3, 0, 0, 0, 0, 0]);
        ring.extend(bytes_of(&[9, 4]));
        assert_eq!(records(&ring).collect::<Vec<_>>(), [[1, 2, 3]]);
    }

    #[test]
    fn own_records_come_back() {
        let names = ["schedule".to_owned(), "0x12".to_owned()];
        let ring = [stack(5, 9, &names), cgroup(6, 77, "/a.slice")].concat();
        let events: Vec<_> = records(&ring).map(|it| decode(it, 0).unwrap().0).collect();
        assert_eq!(
            events[0].what,
            What::Stack {
                id: 9,
                functions: names.to_vec()
            }
        );
        let path = "/a.slice".to_owned();
        assert_eq!(events[1].what, What::Cgroup { id: 77, path });
        assert_eq!(events[1].time_ns, 6);
    }

    #[test]
    fn a_call_that_has_not_returned_is_told_with_what_is_known() {
        let state = bytes_of(&[
            1000,
            4096,
            512,
            12,
            1,
            0,
            0,
            0,
            5 | 3 << 32,
            6 << 16 | 42 << 32,
        ]);
        let record = unfinished(2000, &state).unwrap();
        let (event, _) = decode(records(&record).next().unwrap(), 0).unwrap();
        assert_eq!((event.time_ns, event.thread), (2000, 42));
        let What::CallExit(exit) = event.what else {
            panic!("{event:?}");
        };
        assert!(exit.unfinished);
        assert_eq!(exit.call.kind, CallKind::Write);
        assert_eq!(exit.call.offset_bytes, Some(4096));
        assert_eq!(exit.call.size_bytes, None);
        let idle = bytes_of(&[0; 10]);
        assert_eq!(unfinished(2000, &idle), None);
    }

    proptest! {
        /// The decoder accepts or rejects any bytes and does nothing else.
        #[test]
        fn no_bytes_harm_the_decoder(
            kind in any::<u8>(),
            mut record in prop::collection::vec(any::<u8>(), 0..160),
        ) {
            if let Some(byte) = record.get_mut(12) {
                *byte = (kind % 36) | (kind & IN_FAULT);
            }
            let _ = decode(&record, 0);
            prop_assert_eq!(
                decode_queued(&record, 0).map(|event| event.time_ns),
                queued_ns(&record).filter(|_| decode(&record, 0).is_some())
            );
            let _ = unfinished(0, &record);
        }

        #[test]
        fn no_bytes_harm_the_search_for_records(
            ring in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..600),
        ) {
            let found: usize = records(&ring).map(|it| it.len()).sum();
            prop_assert!(found <= ring.len());
        }

        /// Each kind of record that is long enough is decoded, whatever its fields hold. Exceptions
        /// are numbers with a fixed set of meanings, and the counts of pages and bytes.
        #[test]
        fn fields_may_have_any_value(words in prop::collection::vec(any::<u64>(), 16)) {
            for kind in (1..=28).chain([Kind::Direct as u8]).filter(|kind| ![12, 25].contains(kind)) {
                let most = if [1, 2, 3, 6, 7, 8].contains(&kind) { 0xf_ffff } else { u64::MAX };
                let mut words: Vec<u64> = words.iter().map(|word| word & most).collect();
                words[1] = head(1, kind, 1, 0);
                prop_assert!(decode(&bytes_of(&words), 0).is_some(), "{kind}");
            }
        }
    }
}
