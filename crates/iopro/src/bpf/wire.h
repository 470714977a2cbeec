/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records as they are in the ring buffers and in recordings; wire.rs decodes
 * them, event.rs says what they mean. Little-endian, each a multiple of eight
 * bytes with no hole, and of fixed size but for names.
 */
#ifndef IOPRO_WIRE_H
#define IOPRO_WIRE_H

enum rec_kind {
	REC_CALL_ENTER = 1,
	REC_CALL_EXIT = 2,
	REC_CALL_EXIT_FROM = 3,
	REC_RING_SUBMIT = 4,
	REC_RING_COMPLETE = 5,
	REC_ADDED = 6,
	REC_DIRTIED = 7,
	REC_CLEANED = 8,
	REC_TRUNCATED = 9,
	REC_WRITEBACK = 10,
	REC_QUEUE = 11,
	REC_UNPLUG = 13,
	REC_BACK_MERGE = 14,
	REC_FRONT_MERGE = 15,
	REC_RQ_MERGE = 16,
	REC_SPLIT = 17,
	REC_INSERT = 18,
	REC_ISSUE = 19,
	REC_SEGMENT = 20,
	REC_REQUEUE = 21,
	REC_COMPLETE = 22,
	REC_COMMIT = 23,
	REC_JOINED = 24,
	REC_BLOCKED = 25,
	REC_RECLAIM = 26,
	REC_THREAD = 27,
	REC_THREAD_END = 28,
	REC_NAME = 29,
	REC_CGROUP = 30,
	REC_DIRECT = 33,
	/* Written by the recorder itself. */
	REC_STACK = 31,
	REC_LOST = 32,
};

/* Set in rec.kind while the thread is in a page fault. */
#define REC_IN_FAULT 0x80

/* Every record begins with this. */
struct rec {
	__u64 time_ns;
	__u32 thread;
	__u8 kind;
	__u8 op;
	__u16 flags;
};

/* ino 0: the block device itself. */
struct file_key {
	__u64 ino;
	__u32 dev;
	__u32 gen;
};

/* CallKind of event.rs. */
enum call_kind {
	CALL_READ = 1,
	CALL_PREAD64 = 2,
	CALL_READV = 3,
	CALL_PREADV = 4,
	CALL_PREADV2 = 5,
	CALL_WRITE = 6,
	CALL_PWRITE64 = 7,
	CALL_WRITEV = 8,
	CALL_PWRITEV = 9,
	CALL_PWRITEV2 = 10,
	CALL_FSYNC = 11,
	CALL_FDATASYNC = 12,
	CALL_SYNC_FILE_RANGE = 13,
	CALL_SYNC = 14,
	CALL_SYNCFS = 15,
	CALL_MSYNC = 16,
	CALL_TRUNCATE = 17,
	CALL_FTRUNCATE = 18,
	CALL_FALLOCATE = 19,
	CALL_OPEN = 20,
	CALL_OPENAT = 21,
	CALL_OPENAT2 = 22,
	CALL_CREAT = 23,
	CALL_RENAME = 24,
	CALL_RENAMEAT = 25,
	CALL_RENAMEAT2 = 26,
	CALL_UNLINK = 27,
	CALL_UNLINKAT = 28,
	CALL_RMDIR = 29,
	CALL_MKDIR = 30,
	CALL_MKDIRAT = 31,
	CALL_SENDFILE = 32,
	CALL_COPY_FILE_RANGE = 33,
	CALL_SPLICE = 34,
	CALL_GETDENTS64 = 35,
	CALL_IO_URING_ENTER = 36,
	CALL_IO_SUBMIT = 37,
	CALL_IO_GETEVENTS = 38,
	CALL_FADVISE64 = 39,
	CALL_READAHEAD = 40,
	CALL_EXECVE = 41,
	CALL_READ_FAULT = 64,
	CALL_WRITE_FAULT = 65,
};

/* Which of the fields of a call are known; fd is -1 when it is not. */
#define CALL_HAS_FILE 1
#define CALL_HAS_OFFSET 2
#define CALL_HAS_SIZE 4
#define CALL_UNFINISHED 8

#define FLAG_DIRECT 1
#define FLAG_SYNC 2
#define FLAG_APPEND 4
#define FLAG_HALF 8

/* rec.flags: FLAG_, as CallFlags of event.rs; rec.op: call_kind. */
struct rec_call {
	struct rec rec;
	__u64 begin_ns;
	__s64 result;
	__u64 offset_bytes;
	__u64 size_bytes;
	struct file_key file;
	__s32 fd;
	__u32 has;
};

struct rec_call_from {
	struct rec_call call;
	struct file_key from;
};

/* rec.op: opcode. */
struct rec_ring_submit {
	struct rec rec;
	__u64 request;
	__u64 user_data;
	__u64 offset_bytes;
	__u64 size_bytes;
	struct file_key file;
	__u32 has;
	__u32 reserved;
};

struct rec_ring_complete {
	struct rec rec;
	__u64 request;
	__u64 user_data;
	__s32 result;
	__u32 reserved;
};

struct rec_pages {
	struct rec rec;
	__u64 begin_ns;
	struct file_key file;
	__u64 index;
	__u32 pages;
	__u32 reserved;
};

/* rec.op: 1 if the file has no link any more. */
struct rec_truncated {
	struct rec rec;
	struct file_key file;
	__u64 from_bytes;
	__u64 to_bytes;
};

/* rec.op: 1 for WB_SYNC_ALL. */
struct rec_writeback {
	struct rec rec;
	struct file_key file;
	__u64 begin_ns;
	__u64 pages;
};

enum io_op {
	IO_READ = 0,
	IO_WRITE = 1,
	IO_FLUSH = 2,
	IO_DISCARD = 3,
	IO_SECURE_ERASE = 4,
	IO_WRITE_ZEROES = 5,
	IO_OTHER = 6,
};

/* Block layer: rec.op is an io_op, rec.flags are IoFlags. */
struct rec_bio {
	struct rec rec;
	__u64 bio;
	__u64 sector;
	__u32 bytes;
	__u32 dev;
};

struct rec_split {
	struct rec_bio front;
	__u64 parent;
	__u64 rest_sector;
};

/* rec.op: explicit, rec.flags: nothing. */
struct rec_plug {
	struct rec rec;
	__u32 dev;
	__u32 requests;
};

struct rec_request {
	struct rec rec;
	__u64 request;
	__u64 sector;
	__u32 bytes;
	__u32 dev;
	__u32 ioprio;
	__u32 reserved;
};

/* What a segment has; from SEGMENT_AT_SHIFT on, the sector of its first page that it begins at. */
#define SEGMENT_HAS_PAGES 1
#define SEGMENT_AT_SHIFT 1

/*
 * The first segment comes along, has is as rec.op of rec_segment. bio is 0 if there is none; file
 * and index only come with SEGMENT_HAS_PAGES.
 */
struct rec_issue {
	struct rec_request rq;
	__u64 bio;
	__u32 segment_bytes;
	__u32 has;
	struct file_key file;
	__u64 index;
};

/* REC_QUEUE and REC_ISSUE of a request with but one bio, of a program's own memory. */
struct rec_direct {
	struct rec rec;
	__u64 request;
	__u64 bio;
	__u64 sector;
	__u32 bytes;
	__u32 dev;
	__u32 ioprio;
	__u32 queued_before_ns;
};

/* rec.op: SEGMENT_HAS_PAGES, and its sector of the page: a page of 64 KB has 128. */
struct rec_segment {
	struct rec rec;
	__u64 request;
	__u64 bio;
	__u64 sector;
	__u32 bytes;
	__u32 dev;
	struct file_key file;
	__u64 index;
};

/* rec.op: blk_status_t. */
struct rec_complete {
	struct rec rec;
	__u64 request;
	__u64 sector;
	__u32 bytes;
	__u32 remaining_bytes;
};

/* CommitPhase of event.rs. */
enum commit_phase {
	COMMIT_START,
	COMMIT_LOCKING,
	COMMIT_FLUSHING,
	COMMIT_LOGGING,
	COMMIT_END,
};

/* rec.op: commit_phase. */
struct rec_journal {
	struct rec rec;
	__u32 dev;
	__u32 tid;
};

enum wait_reason {
	WAIT_NONE = 0,
	WAIT_WRITEBACK = 1,	/* file, value: index */
	WAIT_PAGE_LOCK = 2,	/* file, value: index */
	WAIT_BUFFER = 3,	/* file.dev, value: block, file.gen: bytes */
	WAIT_JOURNAL_BUFFER = 4, /* file.dev */
	WAIT_JOURNAL_COMMIT = 5, /* file.dev, value: tid */
	WAIT_JOURNAL_HANDLE = 6, /* file.dev */
	WAIT_JOURNAL_SPACE = 7,	/* file.dev */
	WAIT_TAG = 8,
	WAIT_QUEUE_THROTTLE = 9,
	WAIT_DIRTY_THROTTLE = 10,
	WAIT_OWN_BIO = 11,	/* value: io_op */
	WAIT_DIRECT_IO = 12,
	WAIT_LOCK = 13,		/* value: address */
	WAIT_FLUSHER_DONE = 14,
	WAIT_RECLAIM_THROTTLE = 15,
	WAIT_OTHER = 16,	/* value: stack id, or -1 */
};

#define BLOCKED_UNINTERRUPTIBLE 1
#define BLOCKED_IOWAIT 2
#define BLOCKED_IN_RECLAIM 4
#define BLOCKED_OF_FILE 8
#define BLOCKED_FOR_JOURNAL_SPACE 16

/* rec.op: wait_reason, rec.flags: BLOCKED_ and the CallKind in the upper half. */
struct rec_blocked {
	struct rec rec;
	__u64 begin_ns;
	__u64 woken_ns;
	struct file_key file;
	__u64 value;
	__u32 waker;
	__u32 reserved;
};

struct rec_reclaim {
	struct rec rec;
	__u64 begin_ns;
	__u64 pages;
};

#define COMM_BYTES 16

/* rec.op: 1 for a thread of the kernel's. */
struct rec_thread {
	struct rec rec;
	__u64 start_ns;
	__u64 cgroup;
	__u32 tid;
	__u32 tgid;
	__u32 parent;
	__u32 reserved;
	char comm[COMM_BYTES];
	char process_comm[COMM_BYTES];
};

/* NameReason of event.rs. */
enum name_why {
	NAME_SEEN,
	NAME_SEEN_REMOVED,
	NAME_RENAMED,
	NAME_REMOVED,
};

#define NAME_CUT 1

/*
 * rec.op: name_why; rec.flags: mode. The path's components follow,
 * from the file up to below the root, each with a NUL after it.
 */
struct rec_name {
	struct rec rec;
	struct file_key file;
	__u32 length;
	__u32 has;
};

/* The path follows. */
struct rec_cgroup {
	struct rec rec;
	__u64 id;
	__u32 length;
	__u32 reserved;
};

/* The functions follow, innermost first, each with a NUL after it. */
struct rec_stack {
	struct rec rec;
	__u32 id;
	__u32 length;
};

/* LostKind of event.rs. */
enum lost_kind {
	LOST_CALLS,
	LOST_PAGES,
	LOST_BLOCK,
	LOST_SEGMENTS,
	LOST_JOURNAL,
	LOST_BLOCKED,
	LOST_NAMES,
	LOST_MISSED,
	LOST_THREADS,
	LOST_LONG_REQUESTS,
	LOST_KINDS,
};

/* rec.op: lost_kind. */
struct rec_lost {
	struct rec rec;
	__u64 count;
};

#endif
