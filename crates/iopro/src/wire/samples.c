// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints one record of each structure in wire.h, with a value of its own in each field:
 * its name, its kind, and its bytes. layout.rs decodes them.
 */
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include "wire.h"

static void print(const char *name, const void *record, unsigned long bytes)
{
	const unsigned char *at = record;

	printf("%s ", name);
	while (bytes--)
		printf("%02x", *at++);
	putchar('\n');
}

#define FIELDS(head_kind, head_op, head_flags) \
	.time_ns = 9000, .thread = 77, .kind = head_kind, .op = head_op, .flags = head_flags
#define HEAD(head_kind, head_op, head_flags) { FIELDS(head_kind, head_op, head_flags) }
#define FILE_KEY { .ino = 12, .dev = 0x800001, .gen = 6 }
#define SAMPLE(type, ...)						\
	do {								\
		struct type record = { __VA_ARGS__ };			\
									\
		_Static_assert(sizeof(record) % 8 == 0, #type);		\
		print(#type, &record, sizeof(record));			\
	} while (0)

int main(void)
{
	SAMPLE(rec, FIELDS(REC_THREAD_END | REC_IN_FAULT, 0, 0));
	SAMPLE(rec_call, .rec = HEAD(REC_CALL_EXIT, CALL_PWRITE64, 1), .begin_ns = 1000,
	       .result = -5, .offset_bytes = 4096, .size_bytes = 512, .file = FILE_KEY, .fd = 4,
	       .has = CALL_HAS_FILE | CALL_HAS_OFFSET | CALL_HAS_SIZE | CALL_UNFINISHED);
	SAMPLE(rec_call_from, .call.rec = HEAD(REC_CALL_EXIT_FROM, CALL_SPLICE, 8),
	       .call.fd = -1, .from = FILE_KEY);
	SAMPLE(rec_ring_submit, .rec = HEAD(REC_RING_SUBMIT, 22, 2), .request = 501,
	       .user_data = 502, .offset_bytes = 503, .size_bytes = 504, .file = FILE_KEY,
	       .has = CALL_HAS_FILE | CALL_HAS_SIZE);
	SAMPLE(rec_ring_complete, .rec = HEAD(REC_RING_COMPLETE, 0, 0), .request = 501,
	       .user_data = 502, .result = -4);
	SAMPLE(rec_pages, .rec = HEAD(REC_DIRTIED, 0, 0), .begin_ns = 1000, .file = FILE_KEY,
	       .index = 505, .pages = 3);
	SAMPLE(rec_truncated, .rec = HEAD(REC_TRUNCATED, 1, 0), .file = FILE_KEY,
	       .from_bytes = 506, .to_bytes = 507);
	SAMPLE(rec_writeback, .rec = HEAD(REC_WRITEBACK, 1, 0), .file = FILE_KEY,
	       .begin_ns = 1000, .pages = 3);
	SAMPLE(rec_bio, .rec = HEAD(REC_FRONT_MERGE, IO_SECURE_ERASE, 3), .bio = 508,
	       .sector = 509, .bytes = 510, .dev = 0x800000);
	SAMPLE(rec_split, .front.rec = HEAD(REC_SPLIT, IO_WRITE, 3), .front.bio = 508,
	       .front.sector = 509, .front.bytes = 510, .front.dev = 0x800000, .parent = 511,
	       .rest_sector = 512);
	SAMPLE(rec_plug, .rec = HEAD(REC_UNPLUG, 1, 0), .dev = 0x800000, .requests = 3);
	SAMPLE(rec_request, .rec = HEAD(REC_INSERT, IO_READ, 3), .request = 501, .sector = 509,
	       .bytes = 510, .dev = 0x800000, .ioprio = 513);
	SAMPLE(rec_issue, .rq.rec = HEAD(REC_ISSUE, IO_WRITE, 3), .rq.request = 501,
	       .rq.sector = 509, .rq.bytes = 510, .rq.dev = 0x800000, .rq.ioprio = 513,
	       .bio = 508, .segment_bytes = 514, .has = SEGMENT_HAS_PAGES | 1 << SEGMENT_AT_SHIFT, .file = FILE_KEY,
	       .index = 505);
	SAMPLE(rec_direct, .rec = HEAD(REC_DIRECT, IO_WRITE, 3), .request = 501, .bio = 508,
	       .sector = 509, .bytes = 510, .dev = 0x800000, .ioprio = 513,
	       .queued_before_ns = 400);
	SAMPLE(rec_segment, .rec = HEAD(REC_SEGMENT, SEGMENT_HAS_PAGES | 127 << SEGMENT_AT_SHIFT, 0), .request = 501,
	       .bio = 508, .sector = 509, .bytes = 510, .dev = 0x800000, .file = FILE_KEY,
	       .index = 505);
	SAMPLE(rec_complete, .rec = HEAD(REC_COMPLETE, 10, 0), .request = 501, .sector = 509,
	       .bytes = 510, .remaining_bytes = 515);
	SAMPLE(rec_journal, .rec = HEAD(REC_COMMIT, COMMIT_LOGGING, 0), .dev = 0x800001,
	       .tid = 516);
	SAMPLE(rec_blocked,
	       .rec = HEAD(REC_BLOCKED, WAIT_LOCK,
			   BLOCKED_UNINTERRUPTIBLE | BLOCKED_IN_RECLAIM | BLOCKED_OF_FILE |
			   CALL_FSYNC << 8),
	       .begin_ns = 1000, .woken_ns = 2000, .file = FILE_KEY, .value = 517,
	       .waker = 518);
	SAMPLE(rec_reclaim, .rec = HEAD(REC_RECLAIM, 0, 0), .begin_ns = 1000, .pages = 3);
	SAMPLE(rec_thread, .rec = HEAD(REC_THREAD, 1, 0), .start_ns = 519, .cgroup = 520,
	       .tid = 521, .tgid = 522, .parent = 523, .comm = "thread",
	       .process_comm = "process");
	SAMPLE(rec_name, .rec = HEAD(REC_NAME, NAME_RENAMED, 0100644), .file = FILE_KEY,
	       .length = 0, .has = NAME_CUT);
	SAMPLE(rec_cgroup, .rec = HEAD(REC_CGROUP, 0, 0), .id = 520, .length = 0);
	SAMPLE(rec_stack, .rec = HEAD(REC_STACK, 0, 0), .id = 524, .length = 0);
	SAMPLE(rec_lost, .rec = HEAD(REC_LOST, LOST_LONG_REQUESTS, 0), .count = 525);
	return 0;
}
