/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads, writes and syncs through io_uring, as they are begun and as they end. */
#ifndef IOPRO_URING_H
#define IOPRO_URING_H

#include "calls.h"

static __always_inline int ring_submit(struct io_kiocb *req, bool range)
{
	struct file *file = req->file;
	struct rec_ring_submit *rec;
	struct io_rw *rw = (void *)req;
	struct file_key key = {};

	if (!file || !identify((unsigned long)BPF_CORE_READ(file, f_inode), &key) || !this_thread())
		return 0;
	rec = reserve(sizeof(*rec), LOST_CALLS);
	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_RING_SUBMIT);
	rec->rec.op = req->opcode;
	rec->rec.flags = flags_of(file->f_flags);
	rec->request = (unsigned long)req;
	rec->user_data = req->cqe.user_data;
	rec->file = key;
	rec->has = CALL_HAS_FILE;
	rec->offset_bytes = 0;
	rec->size_bytes = 0;
	rec->reserved = 0;
	if (range) {
		rec->offset_bytes = BPF_CORE_READ(rw, kiocb.ki_pos);
		if ((__s64)rec->offset_bytes >= 0)
			rec->has |= CALL_HAS_OFFSET;
	}
	SUBMIT(rec);
	return 0;
}

SEC("fentry/io_read")
int PROGRAM(ring_read, struct io_kiocb *req)
{
	return ring_submit(req, true);
}

SEC("fentry/io_write")
int PROGRAM(ring_write, struct io_kiocb *req)
{
	return ring_submit(req, true);
}

SEC("fentry/io_fsync")
int PROGRAM(ring_fsync, struct io_kiocb *req)
{
	return ring_submit(req, false);
}

struct io_ring_ctx {
	unsigned int flags;
};

struct io_uring_cqe {
	__u64 user_data;
	int res;
} __attribute__((preserve_access_index));

/* The tracepoint's arguments since 6.17; before, the entry's parts one by one. */
typedef void (*btf_trace_io_uring_complete___entry)(void *, struct io_ring_ctx *, void *,
						     struct io_uring_cqe *);

TRACEPOINT(io_uring_complete)
int PROGRAM(ring_completed)
{
	struct io_kiocb *req = (void *)ctx[1];
	__u64 second = ctx[2];
	struct rec_ring_complete *rec;
	struct thread *thread;
	__u64 user_data;
	int result;

	/* Read here: in both branches clang makes one read of it, by a pointer that no verifier takes. */
	barrier_var(second);

	/* Made by the ring itself, without a request. */
	if (!req)
		return 0;
	if (bpf_core_type_exists(btf_trace_io_uring_complete___entry)) {
		struct io_uring_cqe *entry = (void *)second;

		user_data = GET(entry, user_data);
		result = GET(entry, res);
	} else {
		user_data = second;
		result = ctx[3];
	}
	/* Pages that it made dirty are told of while it is known. */
	thread = known_thread(this_tid());
	if (thread)
		flush_run(thread);
	rec = reserve(sizeof(*rec), LOST_CALLS);
	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_RING_COMPLETE);
	rec->request = (unsigned long)req;
	rec->user_data = user_data;
	rec->result = result;
	rec->reserved = 0;
	SUBMIT(rec);
	return 0;
}

#endif
