/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State that the programs share: ring buffers, counters of lost events, and what
 * each thread is doing. All of it together stays below 50 MB (capture.rs).
 */
#ifndef IOPRO_STATE_H
#define IOPRO_STATE_H

#include "program.h"
#include "wire.h"

#define MAX_THREADS 16384
#define MAX_STACKS 2048
#define STACK_DEPTH 24
#define SCHEDULERS_FRAMES 4	/* the program, what calls it, __schedule(), schedule() */
#define SEEN_FILES 32768

#define MAX_CALLS 512

/* Set by programs.rs before the programs are loaded; constants for the verifier. */
struct settings {
	/* System call number -> CallKind, 0 for those that are not recorded. */
	__u8 call_kinds[MAX_CALLS];
	/* A ring: so many segments of 1 << shift bytes. Both are powers of two. */
	__u32 segments;
	__u32 segment_shift;
	/* arm64 kernels have pages of 4, 16 or 64 KB. */
	__u32 page_shift;
};

const volatile struct settings settings SEC(".rodata.settings");

#define PAGE_SHIFT (settings.page_shift)
#define PAGE_SIZE (1u << PAGE_SHIFT)

struct cpu {
	__u64 lost[LOST_KINDS];
	/* Users of `paths`; an interrupt is one more. */
	__u32 nesting;
	/*
	 * The thread that is about to wait for direct I/O here. What looks at this does
	 * so on the same CPU, and a thread that moves away in between only loses a
	 * little: no lookup of the thread is needed where it would cost most.
	 */
	__u32 direct;
	/* Not told yet if it has a time (block.h). */
	struct rec_bio queued;
	__u32 holding;		/* it is being changed, should an interrupt look */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* What a thread waits for, should it block. */
struct wait {
	struct file_key file;
	__u64 value;
	__u32 reason;
	__u32 reserved;
};

#define MAX_WAITS 4	/* a power of two */

struct thread {
	/* The call it is in; call is 0 outside of those that are recorded. (wire.rs) */
	__u64 call_begin_ns;
	__u64 call_offset;
	__u64 call_size;
	struct file_key call_file;
	struct file_key call_from;
	__u64 call_inode;
	__s32 call_fd;
	__u32 call_has;
	__u16 call_flags;
	__u8 call;
	__u8 call_two;

	__u32 tid;	/* 0: the place is free */

	/* Pages that the call added to the page cache, from there on. */
	__u64 call_added_index;
	__u8 call_added;

	/* The file that was last looked at, valid as long as no inode goes (names.h). */
	__u64 known_inode;
	__u64 known_evictions;
	struct file_key known_file;

	__u64 cgroup;
	__u64 css_set;	/* changes when the cgroup does */

	/* The page fault it is in, possibly inside of a call. */
	__u8 fault;
	__u64 fault_begin_ns;
	__u64 fault_offset;
	struct file_key fault_file;

	/* Waits it is about to begin, from the outermost in. */
	__u32 waits;
	struct wait wait[MAX_WAITS];

	/*
	 * What ends submit_bio_wait() for the bio that it queued last, and the bio's
	 * bi_opf; 0 if that bio is none of submit_bio_wait()'s.
	 */
	__u64 own_done;
	__u32 own_opf;

	/* Off the CPU since then, if not 0. */
	__u64 blocked_begin_ns;
	__u64 blocked_woken_ns;
	__u32 blocked_waker;
	__u16 blocked_flags;
	struct wait blocked;

	/* Pages that had the same done to them, not told yet. */
	__u64 run_mapping;
	__u64 run_begin_ns;
	__u64 run_index;
	__u32 run_pages;
	__u8 run_kind;
	struct file_key run_file;

	__u64 writeback_begin_ns;
	__s64 writeback_budget;
	__u64 reclaim_begin_ns;

	/* The transaction it joined last. */
	__u32 journal_dev;
	__u32 journal_tid;
};

/*
 * A thread is at the place of its id, or at one of the next ones. A look there
 * takes a few instructions, a hash map more than a hundred. A free place is all
 * zeroes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

#define PLACES 8	/* that a thread may be at */

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, MAX_STACKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, STACK_DEPTH * sizeof(__u64));
} stacks SEC(".maps");

/* Argument n of a program, as a number, where it would be a typed pointer. */
static __always_inline __u64 raw_argument(const void *ctx, __u32 n)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), ctx + n * sizeof(value));
	return value;
}

/*
 * Zeroes, of which the verifier knows nothing. Before 6.7 it goes through the body of
 * a loop once, with what it knows from before the loop, and takes out the branches
 * that this does not reach: what bpf_loop() is to change may not begin as a constant.
 */
static __always_inline void clear_for_loop(void *memory, __u32 bytes)
{
	bpf_probe_read_kernel(memory, bytes, NULL);
}

static __always_inline struct cpu *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline __u32 this_tid(void)
{
	return GET(CURRENT(), pid);
}

static __always_inline void count_lost(enum lost_kind kind)
{
	struct cpu *cpu = this_cpu();

	/* An interrupt may count on the same CPU. */
	if (cpu)
		__sync_fetch_and_add(&cpu->lost[kind], 1);
}

#include "ring.h"

static __always_inline void begin_record(struct rec *rec, __u64 now, __u8 kind)
{
	rec->time_ns = now;
	rec->thread = this_tid();
	rec->kind = kind;
	rec->op = 0;
	rec->flags = 0;
}

static __always_inline __u8 fault_bit(const struct thread *thread)
{
	return thread->fault ? REC_IN_FAULT : 0;
}

/*
 * Functions that are not static are verified once and not for each use, so that
 * all of this stays verifiable. They get addresses as plain numbers.
 */

/* Tells who a thread is: `address` may be that of any task. */
__noinline int tell_thread(__u64 address, __u64 cgroup)
{
	struct rec_thread *rec = reserve(sizeof(*rec), LOST_NAMES);
	struct task_struct *task = (void *)address;
	struct task_struct *leader;

	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_THREAD);
	rec->rec.op = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	rec->start_ns = BPF_CORE_READ(task, start_boottime);
	rec->cgroup = cgroup;
	rec->tid = BPF_CORE_READ(task, pid);
	rec->tgid = BPF_CORE_READ(task, tgid);
	rec->parent = BPF_CORE_READ(task, real_parent, tgid);
	rec->reserved = 0;
	leader = BPF_CORE_READ(task, group_leader);
	BPF_CORE_READ_STR_INTO(&rec->comm, task, comm);
	BPF_CORE_READ_STR_INTO(&rec->process_comm, leader, comm);
	SUBMIT(rec);
	return 0;
}

static __always_inline struct thread *thread_at(__u32 place)
{
	place &= MAX_THREADS - 1;
	return bpf_map_lookup_elem(&threads, &place);
}

static __noinline struct thread *displaced_thread(__u32 tid)
{
	struct thread *thread;
	__u32 distance;

	for (distance = 1; distance < PLACES; distance++) {
		thread = thread_at(tid + distance);
		if (thread && thread->tid == tid)
			return thread;
	}
	return NULL;
}

static __always_inline struct thread *known_thread(__u32 tid)
{
	struct thread *thread = thread_at(tid);

	if (!tid)
		return NULL;
	return thread && thread->tid == tid ? thread : displaced_thread(tid);
}

/* An interrupt may come in between and take a place for the same thread. */
static __always_inline struct thread *take_place(__u32 tid)
{
	struct thread *thread;
	__u32 distance, owner;

	for (distance = 0; distance < PLACES; distance++) {
		thread = thread_at(tid + distance);
		if (!thread)
			return NULL;
		owner = __sync_val_compare_and_swap(&thread->tid, 0, tid);
		if (!owner || owner == tid)
			return thread;
	}
	return NULL;
}

static __noinline struct thread *new_thread(__u32 tid)
{
	struct thread *thread = take_place(tid);

	if (!thread) {
		count_lost(LOST_THREADS);
		return NULL;
	}
	thread->cgroup = bpf_get_current_cgroup_id();
	thread->css_set = (unsigned long)GET(CURRENT(), cgroups);
	tell_thread(bpf_get_current_task(), thread->cgroup);
	return thread;
}

/* tid is cleared last: a thread that takes the place finds the rest cleared. */
static __always_inline void forget_thread(struct thread *thread)
{
	const __u32 after = __builtin_offsetof(struct thread, tid) + sizeof(thread->tid);

	__builtin_memset(thread, 0, __builtin_offsetof(struct thread, tid));
	__builtin_memset((void *)thread + after, 0, sizeof(*thread) - after);
	__sync_lock_test_and_set(&thread->tid, 0);
}

/* The state of the thread that runs; NULL for the idle tasks. */
static __always_inline struct thread *this_thread(void)
{
	__u32 tid = this_tid();
	struct thread *thread;

	if (!tid)
		return NULL;
	thread = known_thread(tid);
	return thread ? thread : new_thread(tid);
}

#endif
