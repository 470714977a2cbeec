/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs share: ring buffers, counters of what did not fit, and what
 * each thread is doing. All of it together stays below 50 MB (capture.rs).
 */
#ifndef IOPRO_STATE_H
#define IOPRO_STATE_H

#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "wire.h"

#define MAX_THREADS 16384
#define MAX_STACKS 2048
#define STACK_DEPTH 24
#define SEEN_FILES 32768

/* As LostKind of event.rs. */
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

#define MAX_CALLS 512

/* Set by programs.rs before the programs are loaded; constants for the verifier. */
struct settings {
	/* System call number -> CallKind, 0 for those that are not recorded. */
	__u8 call_kinds[MAX_CALLS];
	/* A ring: so many segments of 1 << shift bytes. Both are powers of two. */
	__u32 segments;
	__u32 segment_shift;
};

const volatile struct settings settings SEC(".rodata.settings");

struct cpu {
	__u64 lost[LOST_KINDS];
	/* Users of `paths`; an interrupt is one more. */
	__u32 nesting;
	/*
	 * Threads that are in the middle of something here. What looks at these does
	 * so on the same CPU, and a thread that moves away in between only loses a
	 * little: no lookup of the thread is needed where it would cost most.
	 */
	__u32 submitting;	/* a bio that has no request yet */
	__u32 direct;		/* the wait for direct I/O */
	__u32 collecting;	/* a run of pages that is not told yet */
	__u64 submitting_bio;
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

static const struct thread no_thread;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_THREADS);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

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

#define CURRENT() ((struct task_struct *)bpf_get_current_task_btf())

static __always_inline struct cpu *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline __u32 this_tid(void)
{
	return (__u32)bpf_get_current_pid_tgid();
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

static __always_inline struct thread *known_thread(__u32 tid)
{
	return bpf_map_lookup_elem(&threads, &tid);
}

static __noinline struct thread *new_thread(__u32 tid)
{
	struct thread *thread;
	__u64 cgroup = bpf_get_current_cgroup_id();

	bpf_map_update_elem(&threads, &tid, &no_thread, BPF_NOEXIST);
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread) {
		count_lost(LOST_THREADS);
		return NULL;
	}
	thread->cgroup = cgroup;
	thread->css_set = (unsigned long)CURRENT()->cgroups;
	tell_thread(bpf_get_current_task(), cgroup);
	return thread;
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
