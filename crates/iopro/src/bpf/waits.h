/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why a thread blocks in the storage stack. Programs on the functions that wait note
 * the reason before the thread blocks. A thread that blocks elsewhere, in a recorded
 * call or as the kernel's I/O wait, has its stack recorded. A stack would do for all
 * waits, but takes thousands of instructions.
 */
#ifndef IOPRO_WAITS_H
#define IOPRO_WAITS_H

#include "calls.h"
#include "block.h"

static __always_inline struct wait *push_wait(struct thread *thread, __u32 reason)
{
	struct wait *wait;

	/* Programs may miss an exit; without this the array would then stay full. */
	if (thread->waits >= MAX_WAITS)
		thread->waits = 0;
	wait = &thread->wait[thread->waits & (MAX_WAITS - 1)];
	thread->waits++;
	__builtin_memset(wait, 0, sizeof(*wait));
	wait->reason = reason;
	return wait;
}

static __always_inline struct wait *begin_wait(__u32 reason)
{
	struct thread *thread = this_thread();

	return thread ? push_wait(thread, reason) : NULL;
}

static __always_inline int end_wait(__u32 reason)
{
	struct thread *thread = known_thread(this_tid());
	__u32 top;

	if (!thread || !thread->waits)
		return 0;
	top = thread->waits - 1;
	if (thread->wait[top & (MAX_WAITS - 1)].reason == reason)
		thread->waits = top;
	return 0;
}

/* A wait of which nothing but the reason is known. */
static __always_inline int plain_wait(__u32 reason)
{
	begin_wait(reason);
	return 0;
}

/*
 * The two programs around a kernel function that waits for `reason`. `begin` notes what
 * its arguments tell.
 */
#define WAIT_IN(function, name, reason, begin, args...)				\
SEC("fentry/" #function)							\
int PROGRAM(name##_begins, ##args)						\
{										\
	return begin;								\
}										\
SEC("fexit/" #function)								\
int PROGRAM(name##_ends, ##args)						\
{										\
	return end_wait(reason);						\
}

static __always_inline __u32 folio_reason(int bit)
{
	return bit == bpf_core_enum_value(enum pageflags, PG_writeback) ? WAIT_WRITEBACK :
									    WAIT_PAGE_LOCK;
}

static __always_inline int folio_wait(struct folio *folio, __u32 reason)
{
	struct address_space *mapping = file_mapping(folio);
	struct wait *wait = begin_wait(reason);

	if (!wait)
		return 0;
	wait->value = folio->index;
	if (mapping)
		identify((unsigned long)BPF_CORE_READ(mapping, host), &wait->file);
	return 0;
}

/* The kernel calls these only after it found the bit set. */
WAIT_IN(folio_wait_bit, folio_wait, folio_reason(bit),
	folio_wait(folio, folio_reason(bit)), struct folio *folio, int bit)

WAIT_IN(folio_wait_bit_killable, killable_wait, folio_reason(bit),
	folio_wait(folio, folio_reason(bit)), struct folio *folio, int bit)

WAIT_IN(__folio_lock, folio_lock, WAIT_PAGE_LOCK,
	folio_wait(folio, WAIT_PAGE_LOCK), struct folio *folio)

WAIT_IN(__folio_lock_killable, killable_lock, WAIT_PAGE_LOCK,
	folio_wait(folio, WAIT_PAGE_LOCK), struct folio *folio)

WAIT_IN(__folio_lock_or_retry, fault_lock, WAIT_PAGE_LOCK,
	folio_wait(folio, WAIT_PAGE_LOCK), struct folio *folio)

static __always_inline int buffer_wait(struct buffer_head *buffer, __u32 reason)
{
	struct wait *wait = begin_wait(reason);

	if (!wait)
		return 0;
	wait->file.dev = buffer->b_bdev->bd_dev;
	wait->file.gen = buffer->b_size;
	wait->value = buffer->b_blocknr;
	return 0;
}

WAIT_IN(__wait_on_buffer, buffer_wait, WAIT_BUFFER,
	buffer_wait(buffer, WAIT_BUFFER), struct buffer_head *buffer)

WAIT_IN(__lock_buffer, buffer_lock, WAIT_BUFFER,
	buffer_wait(buffer, WAIT_BUFFER), struct buffer_head *buffer)

/* BH_Shadow: jbd2 is writing the buffer. The word with the bit is the buffer's first field. */
SEC("fentry/out_of_line_wait_on_bit")
int PROGRAM(bit_wait_begins, struct buffer_head *buffer, int bit)
{
	struct wait *wait;
	struct block_device *bdev;

	if (bit != bpf_core_enum_value(enum jbd_state_bits, BH_Shadow))
		return 0;
	wait = begin_wait(WAIT_JOURNAL_BUFFER);
	if (!wait)
		return 0;
	bdev = BPF_CORE_READ(buffer, b_bdev);
	wait->file.dev = BPF_CORE_READ(bdev, bd_dev);
	wait->file.gen = BPF_CORE_READ(buffer, b_size);
	wait->value = BPF_CORE_READ(buffer, b_blocknr);
	return 0;
}

SEC("fexit/out_of_line_wait_on_bit")
int PROGRAM(bit_wait_ends, void *word, int bit)
{
	if (bit != bpf_core_enum_value(enum jbd_state_bits, BH_Shadow))
		return 0;
	return end_wait(WAIT_JOURNAL_BUFFER);
}

static __always_inline int journal_wait(journal_t *journal, __u32 reason, __u64 value)
{
	struct wait *wait = begin_wait(reason);

	if (!wait)
		return 0;
	wait->file.dev = journal->j_fs_dev->bd_dev;
	wait->value = value;
	return 0;
}

WAIT_IN(jbd2_log_wait_commit, commit_wait, WAIT_JOURNAL_COMMIT,
	journal_wait(journal, WAIT_JOURNAL_COMMIT, tid), journal_t *journal, __u32 tid)

WAIT_IN(wait_transaction_locked, handle_wait, WAIT_JOURNAL_HANDLE,
	journal_wait(journal, WAIT_JOURNAL_HANDLE, 0), journal_t *journal)

/* The journal's thread itself waits for those who have a handle. */
WAIT_IN(jbd2_journal_wait_updates, updates_wait, WAIT_JOURNAL_HANDLE,
	journal_wait(journal, WAIT_JOURNAL_HANDLE, 0), journal_t *journal)

WAIT_IN(__jbd2_log_wait_for_space, space_wait, WAIT_JOURNAL_SPACE,
	journal_wait(journal, WAIT_JOURNAL_SPACE, 0), journal_t *journal)

/* Almost only direct I/O waits here. */
SEC("fentry/blk_io_schedule")
int PROGRAM(direct_wait_begins)
{
	struct cpu *cpu = this_cpu();

	if (cpu)
		cpu->direct = this_tid();
	return 0;
}

SEC("fexit/blk_io_schedule")
int PROGRAM(direct_wait_ends)
{
	struct cpu *cpu = this_cpu();

	/* It may have begun on another CPU, where the next one overwrites it. */
	if (cpu)
		cpu->direct = 0;
	return 0;
}

/* Else whoever submits a bio may wait for a tag or be throttled. */
#ifdef WITHOUT_TYPES
#define KNOWS_THROTTLING false
#else
#define KNOWS_THROTTLING true
#endif

WAIT_IN(rq_qos_wait, throttle, WAIT_QUEUE_THROTTLE, plain_wait(WAIT_QUEUE_THROTTLE))

WAIT_IN(balance_dirty_pages, dirty_throttle, WAIT_DIRTY_THROTTLE,
	plain_wait(WAIT_DIRTY_THROTTLE))

/* The kernel calls this for each inode that it evicts. */
SEC("fentry/inode_wait_for_writeback")
int PROGRAM(inode_wait_begins)
{
	struct wait *wait = begin_wait(WAIT_FLUSHER_DONE);

	__sync_fetch_and_add(&evictions, 1);
	if (wait)
		identify(raw_argument(ctx, 0), &wait->file);
	return 0;
}

SEC("fexit/inode_wait_for_writeback")
int PROGRAM(inode_wait_ends)
{
	return end_wait(WAIT_FLUSHER_DONE);
}

WAIT_IN(wb_wait_for_completion, flusher_wait, WAIT_FLUSHER_DONE, plain_wait(WAIT_FLUSHER_DONE))

WAIT_IN(reclaim_throttle, reclaim_wait, WAIT_RECLAIM_THROTTLE,
	plain_wait(WAIT_RECLAIM_THROTTLE))

/* A lock matters only in a call that is recorded. */
TRACEPOINT(contention_begin)
int PROGRAM(lock_wait_begins, void *lock, unsigned int flags)
{
	struct thread *thread;
	struct wait *wait;

	/*
	 * A frozen file system's lock is of this kind, and only the stack tells it
	 * from others (sb_start_write).
	 */
	if (flags & (LCB_F_SPIN | LCB_F_PERCPU))
		return 0;
	thread = known_thread(this_tid());
	if (!thread || !thread->call)
		return 0;
	wait = push_wait(thread, WAIT_LOCK);
	wait->value = (unsigned long)lock;
	if ((unsigned long)lock - bpf_core_field_offset(struct inode, i_rwsem) ==
	    thread->call_inode)
		wait->reserved = BLOCKED_OF_FILE;
	return 0;
}

TRACEPOINT(contention_end)
int PROGRAM(lock_wait_ends)
{
	return end_wait(WAIT_LOCK);
}

static __always_inline int reclaim_begins(void)
{
	struct thread *thread = this_thread();

	if (thread)
		thread->reclaim_begin_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int reclaim_ends(unsigned long pages)
{
	struct thread *thread = known_thread(this_tid());
	struct rec_reclaim *rec;

	if (!thread || !thread->reclaim_begin_ns)
		return 0;
	rec = reserve(sizeof(*rec), LOST_PAGES);
	if (rec) {
		begin_record(&rec->rec, bpf_ktime_get_ns(), REC_RECLAIM | fault_bit(thread));
		rec->begin_ns = thread->reclaim_begin_ns;
		rec->pages = pages;
		SUBMIT(rec);
	}
	thread->reclaim_begin_ns = 0;
	return 0;
}

TRACEPOINT(mm_vmscan_direct_reclaim_begin)
int PROGRAM(direct_reclaim_begins)
{
	return reclaim_begins();
}

TRACEPOINT(mm_vmscan_direct_reclaim_end)
int PROGRAM(direct_reclaim_ends, unsigned long pages)
{
	return reclaim_ends(pages);
}

TRACEPOINT(mm_vmscan_memcg_reclaim_begin)
int PROGRAM(cgroup_reclaim_begins)
{
	return reclaim_begins();
}

TRACEPOINT(mm_vmscan_memcg_reclaim_end)
int PROGRAM(cgroup_reclaim_ends, unsigned long pages)
{
	return reclaim_ends(pages);
}

/*
 * Waits that no function tells of beforehand, as it was inlined: the page that is
 * read (filemap_update_page(), filemap_read_folio()). Which of a larger read's it
 * is can only be guessed; mostly the first that had to be added.
 */
static __always_inline bool reads_page(struct thread *thread, struct wait *wait)
{
	if (thread->fault) {
		wait->file = thread->fault_file;
		wait->value = thread->fault_offset >> PAGE_SHIFT;
		return true;
	}
	if (thread->call_flags & FLAG_DIRECT)
		return false;
	wait->value = thread->call_added ? thread->call_added_index :
					   thread->call_offset >> PAGE_SHIFT;
	if (thread->call >= CALL_READ && thread->call <= CALL_PREADV2) {
		wait->file = thread->call_file;
		return true;
	}
	wait->file = thread->call_from;
	return thread->call_two;
}

/* The wait may be over; what the stack holds then may be anything. */
static __always_inline bool waits_for_own(struct thread *thread, struct task_struct *task)
{
	struct completion *done = (void *)thread->own_done;
	struct list_head *first;

	if (!done)
		return false;
	first = BPF_CORE_READ(done, wait.task_list.next);
	first = (void *)first - bpf_core_field_offset(struct swait_queue, task_list);
	return BPF_CORE_READ((struct swait_queue *)first, task) == task;
}

static __always_inline void set_own(struct wait *wait, __u32 opf)
{
	__u32 preflush = 1u << bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH);

	wait->reason = WAIT_OWN_BIO;
	wait->value = opf & preflush ? IO_FLUSH : io_op(opf);
}

/*
 * Whether the thread has a bio that has no request yet (submit_bio_noacct()). However
 * often another one takes the tag that it was woken for, it waits for a tag again.
 */
static __always_inline bool submits(struct thread *thread, struct task_struct *task)
{
	return (thread->own_done || KNOWS_THROTTLING) && GET(task, bio_list);
}

/*
 * The innermost functions are the scheduler's own and this program, so that a stack
 * whose place is another's may go without the first ones, which gives it other places.
 */
static __always_inline __s64 stack_of(void *ctx)
{
	__s64 id = -1;
	__u64 skipped;

	for (skipped = 0; skipped < SCHEDULERS_FRAMES && id < 0; skipped++)
		id = bpf_get_stackid(ctx, &stacks, BPF_F_FAST_STACK_CMP | skipped);
	return id;
}

static __always_inline void guess_reason(void *ctx, struct thread *thread,
					 struct task_struct *task)
{
	__u32 tid = GET(task, pid);
	struct wait *wait = &thread->blocked;
	struct cpu *cpu = this_cpu();

	__builtin_memset(wait, 0, sizeof(*wait));
	if (cpu && cpu->direct == tid) {
		wait->reason = WAIT_DIRECT_IO;
		cpu->direct = 0;
	} else if (thread->call == CALL_IO_URING_ENTER || thread->call == CALL_IO_GETEVENTS) {
		/* The results of what it has submitted. */
		wait->reason = WAIT_DIRECT_IO;
	} else if (submits(thread, task)) {
		/* For a tag; others of its own have it, if it submits one by one. */
		if (thread->own_done)
			set_own(wait, thread->own_opf);
		else
			wait->reason = WAIT_TAG;
	} else if (reads_page(thread, wait)) {
		wait->reason = WAIT_PAGE_LOCK;
	} else {
		__builtin_memset(wait, 0, sizeof(*wait));
		wait->reason = WAIT_OTHER;
		wait->value = stack_of(ctx);
	}
}

/* Notes why a thread blocks. */
static __always_inline void blocks(void *ctx, struct task_struct *task, unsigned int state)
{
	bool iowait = GET_BITFIELD(task, in_iowait);
	__u32 tid = GET(task, pid);
	struct thread *thread = known_thread(tid);
	__u32 waits;

	if (!thread && iowait)
		thread = new_thread(tid);
	if (!thread)
		return;
	waits = thread->waits;
	if (!thread->call && !thread->fault && !waits && !iowait)
		return;
	flush_run(thread);
	thread->blocked_begin_ns = bpf_ktime_get_ns();
	thread->blocked_woken_ns = 0;
	thread->blocked_flags = (state & TASK_UNINTERRUPTIBLE ? BLOCKED_UNINTERRUPTIBLE : 0) |
				(iowait ? BLOCKED_IOWAIT : 0) |
				(thread->reclaim_begin_ns ? BLOCKED_IN_RECLAIM : 0);
	if (waits_for_own(thread, task)) {
		__builtin_memset(&thread->blocked, 0, sizeof(thread->blocked));
		set_own(&thread->blocked, thread->own_opf);
		return;
	}
	if (!waits) {
		guess_reason(ctx, thread, task);
		return;
	}
	thread->blocked = thread->wait[(waits - 1) & (MAX_WAITS - 1)];
	thread->blocked_flags |= thread->blocked.reserved;
	if (thread->wait[0].reason == WAIT_JOURNAL_SPACE)
		thread->blocked_flags |= BLOCKED_FOR_JOURNAL_SPACE;
}

static __always_inline void runs(struct task_struct *task)
{
	__u32 tid = GET(task, pid);
	struct thread *thread = known_thread(tid);
	struct rec_blocked *rec;

	if (!thread || !thread->blocked_begin_ns)
		return;
	rec = reserve(sizeof(*rec), LOST_BLOCKED);
	if (rec) {
		begin_record(&rec->rec, bpf_ktime_get_ns(), REC_BLOCKED | fault_bit(thread));
		rec->rec.thread = tid;
		rec->rec.op = thread->blocked.reason;
		rec->rec.flags = thread->blocked_flags | (__u16)(thread->call << 8);
		rec->begin_ns = thread->blocked_begin_ns;
		rec->woken_ns = thread->blocked_woken_ns;
		rec->file = thread->blocked.file;
		rec->value = thread->blocked.value;
		rec->waker = thread->blocked_waker;
		rec->reserved = 0;
		SUBMIT(rec);
	}
	thread->blocked_begin_ns = 0;
}

TRACEPOINT(sched_switch)
int PROGRAM(switched, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	struct cpu *cpu = this_cpu();

	if (cpu)
		tell_queued(cpu);
	if (!preempt && state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE) && GET(prev, pid))
		blocks(ctx, prev, state);
	if (GET(next, pid))
		runs(next);
	return 0;
}

TRACEPOINT(sched_waking)
int PROGRAM(woken, struct task_struct *task)
{
	struct thread *thread = known_thread(GET(task, pid));

	if (!thread || !thread->blocked_begin_ns || thread->blocked_woken_ns)
		return 0;
	thread->blocked_woken_ns = bpf_ktime_get_ns();
	thread->blocked_waker = this_tid();
	return 0;
}

#endif
