/* SPDX-License-Identifier: GPL-2.0-only */
/* jbd2: the phases of a commit, and who has a part in which transaction. */
#ifndef IOPRO_JOURNAL_H
#define IOPRO_JOURNAL_H

#include "state.h"

static __always_inline int tell_commit(journal_t *journal, transaction_t *transaction, __u8 phase)
{
	struct rec_journal *rec;

	/* For all that the verifier knows, a module's tracepoint may pass nothing. */
	if (!journal || !transaction)
		return 0;
	rec = reserve(sizeof(*rec), LOST_JOURNAL);
	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_COMMIT);
	rec->rec.op = phase;
	rec->dev = GET(journal, j_fs_dev, bd_dev);
	rec->tid = GET(transaction, t_tid);
	SUBMIT(rec);
	return 0;
}

#define TELL_COMMIT(tracepoint, name, phase)					\
TRACEPOINT(tracepoint)							\
int PROGRAM(name, journal_t *journal, transaction_t *transaction)		\
{										\
	return tell_commit(journal, transaction, phase);			\
}

TELL_COMMIT(jbd2_start_commit, commit_starts, COMMIT_START)
TELL_COMMIT(jbd2_commit_locking, commit_locks, COMMIT_LOCKING)
TELL_COMMIT(jbd2_commit_flushing, commit_flushes, COMMIT_FLUSHING)
TELL_COMMIT(jbd2_commit_logging, commit_logs, COMMIT_LOGGING)
TELL_COMMIT(jbd2_end_commit, commit_ends, COMMIT_END)

TRACEPOINT(jbd2_handle_start)
int PROGRAM(handle_starts, __u32 dev, __u32 tid)
{
	struct thread *thread = this_thread();
	struct rec_journal *rec;

	if (!thread || (thread->journal_dev == dev && thread->journal_tid == tid))
		return 0;
	rec = reserve(sizeof(*rec), LOST_JOURNAL);
	if (!rec)
		return 0;
	thread->journal_dev = dev;
	thread->journal_tid = tid;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_JOINED | fault_bit(thread));
	rec->dev = dev;
	rec->tid = tid;
	SUBMIT(rec);
	return 0;
}

#endif
