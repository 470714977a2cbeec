/* SPDX-License-Identifier: GPL-2.0-only */
/* jbd2: the phases of a commit, and who has a part in which transaction. */
#ifndef IOPRO_JOURNAL_H
#define IOPRO_JOURNAL_H

#include "state.h"

/* CommitPhase of event.rs. */
enum commit_phase {
	COMMIT_START,
	COMMIT_LOCKING,
	COMMIT_FLUSHING,
	COMMIT_LOGGING,
	COMMIT_END,
};

static __always_inline int tell_commit(journal_t *journal, transaction_t *transaction, __u8 phase)
{
	struct rec_journal *rec = reserve(sizeof(*rec), LOST_JOURNAL);

	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_COMMIT);
	rec->rec.op = phase;
	rec->dev = journal->j_fs_dev->bd_dev;
	rec->tid = transaction->t_tid;
	SUBMIT(rec);
	return 0;
}

SEC("tp_btf/jbd2_start_commit")
int PROGRAM(commit_starts, journal_t *journal, transaction_t *transaction)
{
	return tell_commit(journal, transaction, COMMIT_START);
}

SEC("tp_btf/jbd2_commit_locking")
int PROGRAM(commit_locks, journal_t *journal, transaction_t *transaction)
{
	return tell_commit(journal, transaction, COMMIT_LOCKING);
}

SEC("tp_btf/jbd2_commit_flushing")
int PROGRAM(commit_flushes, journal_t *journal, transaction_t *transaction)
{
	return tell_commit(journal, transaction, COMMIT_FLUSHING);
}

SEC("tp_btf/jbd2_commit_logging")
int PROGRAM(commit_logs, journal_t *journal, transaction_t *transaction)
{
	return tell_commit(journal, transaction, COMMIT_LOGGING);
}

SEC("tp_btf/jbd2_end_commit")
int PROGRAM(commit_ends, journal_t *journal, transaction_t *transaction)
{
	return tell_commit(journal, transaction, COMMIT_END);
}

SEC("tp_btf/jbd2_handle_start")
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
