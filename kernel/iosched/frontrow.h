/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The frontrow I/O scheduler: declarations that its files share.
 *
 * A foreground operation waits for background writes in four places, in the
 * order in which a request passes them: for a scheduler tag (tags.c); for a
 * write that it depends on and that the scheduler serves last (probes.c,
 * wait.c); for requests that the device has already taken (budget.c); and after
 * a gap between two of its own requests, in which the device filled up
 * (dispatch.c). role.c tells the role of a request.
 *
 * Where no cgroup has a role, a process's level follows from what it has used of
 * the device (process.c).
 *
 * Each dispatch first finds the most urgent level at which somebody waits. A
 * class is open if nobody waits above its own level. A closed class gets a
 * guaranteed share.
 */
#ifndef FRONTROW_H
#define FRONTROW_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hash.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "frontrow_abi.h"
#include "compat.h"

/* Constants that are not settings, with their reasons. */

/*
 * Resolution of a chain's gap histogram: a tenth of an eMMC's shortest fsync.
 */
#define GAP_STEP_NS		(500 * NSEC_PER_USEC)
/* Longer gaps are pauses: idling for them costs more than it gains. */
#define NR_GAP_STEPS		16
#define MAX_WINDOW_NS		(NR_GAP_STEPS * GAP_STEP_NS)
/*
 * Window before the first gap is known: time to write 1 MB to the page cache.
 */
#define INITIAL_WINDOW_NS	(4 * NSEC_PER_MSEC)
/* Time until a waiter asks for the next page of a range (fsync at 1 GIPS). */
#define NEXT_WAIT_NS		(4 * NSEC_PER_MSEC)
/* Shortest window of rate measurement: 1 MB on the slowest card. */
#define RATE_WINDOW_NS		(20 * NSEC_PER_MSEC)
#define RATE_WINDOW_REQUESTS	4
/* Request sizes whose rates are compared: MIN_SLICE_BYTES and its doubles. */
#define NR_SIZES		6
/* A size's rate is known after this time in the device, and forgotten after that of all. */
#define SIZE_KNOWN_NS		(100 * NSEC_PER_MSEC)
#define SIZES_FORGOTTEN_NS	(60 * NSEC_PER_SEC)
/* Part of the device's rate that smaller requests must leave it. */
#define SIZE_RATE_PERCENT	90
/*
 * Window of all writes, whoever waits: long enough that a write cache of some
 * MiB changes little.
 */
#define WRITTEN_WINDOW_NS	(100 * NSEC_PER_MSEC)
/* At this mean latency, more requests only queue up inside the device. */
#define OPEN_LATENCY_NS		(5 * NSEC_PER_MSEC)
/* Longest debt of a share, of the device's time: 250 ms at a share of 8 %. */
#define DEBT_US_MAX		(20 * USEC_PER_MSEC)
/* One request in the device and one that its driver prepares. */
#define OPEN_LIMIT_MIN		2U
/* Rate before the first window: that of a slow card. */
#define INITIAL_BYTES_PER_S	(32ULL << 20)
#define INITIAL_DISCARD_NS	(500 * NSEC_PER_USEC)
/* Below this size the cost of a command outweighs the gain of a waiter. */
#define MIN_SLICE_BYTES		(64U << 10)
/* Longest slice while any cgroup has a role. */
#define ROLES_SLICE_US	1000U
/* Shortest timer: the timer and kblockd cost about as much. */
#define MIN_WAIT_NS		(500 * NSEC_PER_USEC)
/*
 * Most of one file's writeback at once, in time of the device: below what users
 * notice.
 */
#define FILE_LIMIT_MS		100
/* The same of writes that name no file: what mq-deadline's four tags hold. */
#define NAMELESS_LIMIT_MS	10
/*
 * Time of the device that a single action takes, and an app's whole start. A
 * process that has used more comes after those that have used less. A pause
 * forgives a multiple of its length.
 */
#define LONG_NS			(500ULL * NSEC_PER_MSEC)
#define BULK_NS			(2000ULL * NSEC_PER_MSEC)
#define USED_MOST_NS		(BULK_NS * 5 / 4)
#define FORGIVEN		2
/* The share of writeback beside bulk: nobody is preferred. */
#define BESIDE_BULK_PERCENT	50U
/*
 * A closed class's share grows with the age of its oldest request, up to 100 %.
 */
#define AGE_RAMP_BEGIN_NS	(3000ULL * NSEC_PER_MSEC)
#define AGE_RAMP_END_NS		(4500ULL * NSEC_PER_MSEC)
/* 10 % are guaranteed; the rest compensates for rounding and timers. */
#define DEFAULT_ASYNC_SHARE_PERCENT	14
/*
 * A tenth of the background's rate beside the same foreground under
 * mq-deadline.
 */
#define DEFAULT_BACKGROUND_SHARE_PERCENT 8
/*
 * Longest time that a synchronous request may wait for the device's present
 * work.
 */
#define DEFAULT_SLICE_US	2500
/* More requests than a task's read-ahead and one write need. */
#define MANY_OF_ONE_OWNER	8U
/* Most bios of a request that are checked for their mapping. */
#define MAX_BIOS_LOOKED_AT	64

/*
 * Dispatch classes, in the order of statistics and traces. "boosted" holds
 * asynchronous writes that a task waits for; it comes after all synchronous
 * classes (QASIO, section 5.3). Each visible app has a class of its own, up to
 * three.
 */
enum frontrow_class {
	FRONTROW_FG_READ,
	FRONTROW_FG_WRITE,
	FRONTROW_SYNC_READ,
	FRONTROW_SYNC_WRITE,
	FRONTROW_BOOSTED,
	FRONTROW_VISIBLE_1,
	FRONTROW_VISIBLE_2,
	FRONTROW_VISIBLE_3,
	FRONTROW_FG_ASYNC,
	FRONTROW_BG_SYNC,
	FRONTROW_LONG,
	FRONTROW_BULK,
	FRONTROW_ASYNC,
	FRONTROW_DISCARD,
	FRONTROW_NR_CLASSES,
};

/* Classes from here on are groups: they share the device while closed. */
#define FRONTROW_FIRST_GROUP FRONTROW_VISIBLE_1
#define FRONTROW_NR_GROUPS (FRONTROW_NR_CLASSES - FRONTROW_FIRST_GROUP)
#define FRONTROW_NR_VISIBLE (FRONTROW_FG_ASYNC - FRONTROW_VISIBLE_1)

/* Levels of waiters, least urgent first. */
enum frontrow_level {
	FRONTROW_LEVEL_NONE,	/* no waiter outside the background */
	FRONTROW_LEVEL_BULK,	/* a process that has used the device longer than an app's start */
	FRONTROW_LEVEL_LONG,	/* ... longer than a single action */
	FRONTROW_LEVEL_OTHER,	/* services, the kernel, unnamed cgroups */
	FRONTROW_LEVEL_VISIBLE,	/* a visible app */
	FRONTROW_LEVEL_FOREGROUND,
	FRONTROW_NR_LEVELS,
};

struct frontrow_class_rules {
	const char *name;
	u8 open_to;		/* highest level of waiters at which it is open */
	bool is_async;
	u16 deadline_ms;	/* after this time it gets every other dispatch */
};

extern const struct frontrow_class_rules frontrow_classes[FRONTROW_NR_CLASSES];

static inline bool frontrow_is_group(enum frontrow_class class)
{
	return class >= FRONTROW_FIRST_GROUP;
}

static inline bool frontrow_is_visible(enum frontrow_class class)
{
	return class >= FRONTROW_VISIBLE_1 && class < FRONTROW_FG_ASYNC;
}

static inline bool frontrow_is_long(enum frontrow_class class)
{
	return class == FRONTROW_LONG || class == FRONTROW_BULK;
}

/* Role of a request or a task (FastTrack). */
enum frontrow_role {
	FRONTROW_OTHER,	/* services, the kernel, and all unnamed cgroups */
	FRONTROW_FOREGROUND,
	FRONTROW_BACKGROUND,
	FRONTROW_VISIBLE,	/* visible but inactive; one value for each class */
	FRONTROW_NR_ROLES = FRONTROW_VISIBLE + FRONTROW_NR_VISIBLE,
};

/* Why a task waits for a write that was submitted as asynchronous. */
enum frontrow_dependency {
	FRONTROW_META,		/* buffer lock: D_meta */
	FRONTROW_DATA,		/* folio under writeback: D_data and D_sync */
	FRONTROW_JOURNAL,	/* jbd2 itself waits: I_jcommit for all that wait for it */
	FRONTROW_DISCARD_WAIT,	/* ENOSPC retry waits for discards: D_discard */
	FRONTROW_NR_DEPENDENCIES,
};

/* What became of the write that a task waits for. */
enum frontrow_outcome {
	FRONTROW_WAIT_BOOSTED,		/* found in the queue and promoted */
	FRONTROW_WAIT_IN_DEVICE,	/* already dispatched: nothing to do */
	FRONTROW_WAIT_PENDING,		/* not in this queue yet: promoted on insertion */
	FRONTROW_WAIT_SYNC,		/* was synchronous all along */
	FRONTROW_WAIT_NOT_OURS,		/* not a wait for a write */
	FRONTROW_NR_OUTCOMES,
};

struct frontrow_counters {
	u64 waits;		/* waits on asynchronous writes */
	u64 boosted;		/* ... found in the queue */
	u64 in_device;		/* ... already dispatched */
	u64 pending;		/* ... neither: it was still to come */
	u64 pending_matched;	/* ... and came while the task slept */
	u64 requests;		/* requests promoted, of all waits */
	u64 wait_ns;		/* time slept in these waits */
};

enum frontrow_state {
	FRONTROW_RQ_IDLE,	/* not ours: free, merged away or bypassing us */
	FRONTROW_RQ_QUEUED,	/* in its class's tree */
	FRONTROW_RQ_IN_DEVICE,	/* dispatched */
	FRONTROW_RQ_FLUSHING,	/* in the block layer's flush machinery */
};

/*
 * Per-request data, indexed by the scheduler tag. (elv.priv shares its memory
 * with the flush state on some kernels.)
 */
struct frontrow_rq {
	struct request *rq;
	struct rb_node in_class;	/* while queued */
	struct hlist_node by_mapping;	/* writes, while queued or in the device */
	const void *mapping;	/* of the first page; an opaque key */
	u64 mappings;		/* bits of its mappings' hashes; 0: one mapping */
	pgoff_t first_page, last_page;	/* in the file; the span over all of its files */
	u64 turn;		/* smallest goes first in its class */
	u64 inserted_ns;	/* or begin of its flush sequence */
	u64 in_class_since_ns;
	u64 dispatched_ns;
	u64 completed_ns;
	u32 bytes;
	u32 charged_bytes;	/* charged to its payer's turn; 0: none */
	u32 share_bytes;	/* charged to its class's share; 0: none */
	u32 file_async_bytes;	/* its part of fd->file_async_bytes */
	u16 payer;		/* owner that is charged: a process or a file */
	u16 owner;		/* its submitter's process */
	u8 class;
	u8 own_class;		/* its class without a promotion */
	u8 role;
	u8 level;		/* enum frontrow_level of its submitter */
	u8 state;
	bool is_counted;	/* in its level's chain */
	bool is_background_write;
	bool uses_share;	/* its class was not open at its dispatch */
	bool under_handle;	/* its submitter holds a journal handle */
	bool by_kernel;		/* its submitter is a kernel thread, jbd2 for one */
	bool by_kernel_thread;	/* ... or a worker */
	bool for_reclaim;	/* its submitter frees memory by it */
	bool is_realtime;	/* its submitter has the realtime class itself */
};

struct frontrow_hctx {
	unsigned int nr;
	struct frontrow_rq *rqs;
};

/*
 * A waiting task: asleep until pages of a file are written, or inside fsync.
 * Lives in the return probe's instance, so exactly as long as the wait; without
 * return probes in a slot (tracepoints.c).
 */
struct frontrow_waiter {
	struct hlist_node node;		/* in fd->waiters, or in those above stacked devices */
	struct frontrow_data *fd;	/* NULL: is_above, or the scheduler was removed */
	struct frontrow_waiter *original;	/* of a copy, which is above a stacked device */
	unsigned long known_to;		/* is_above: bits of instances with a copy */
	const void *mapping;
	const void *upper;	/* queue of its device, or its file system if that names none; a key, too */
	pgoff_t first_page, last_page;
	struct task_struct *task;
	u64 begin_ns;
	u64 each_waiter_ns;	/* that of fd at its begin */
	u8 dependency;
	u8 role;
	u8 class;		/* class of the writes that it waits for */
	u8 level;
	u16 owner;		/* the task's process */
	bool is_fsync;
	bool is_above;		/* a stacked device; instances have copies */
	bool may_promote;
	bool pending;		/* no write of the mapping has been inserted yet */
	bool unseen;		/* no write with its pages has been inserted yet */
	bool is_counted;	/* it waits for an asynchronous write */
	struct folio *folio;	/* the wait ends with its writeback; NULL: its end is reported */
};

/* Owners with the same hash share a turn: with 24 owners, one in twenty. */
#define FRONTROW_OWNER_BITS	9

/* Virtual time of a class, in bytes served (turns.c). */
struct frontrow_turns {
	u64 now;			/* turn of the last dispatched request */
	u64 ends[1 << FRONTROW_OWNER_BITS]; /* end of each owner's last turn */
};

/* A process's synchronous requests and its waiting tasks (process.c, turns.c). */
struct frontrow_process {
	u64 idle_since_ns;	/* end of the last one */
	u64 used_ns;		/* time of the device, less what pauses have forgiven */
	u32 nr_here;
};

/* Account of a group. */
struct frontrow_group {
	s64 credit_bytes;	/* while closed it may dispatch if positive */
	u64 served_bytes;	/* while open: the group with the least goes next */
};

/* Writes of one size, and the time that they took in the device. */
struct frontrow_size {
	u64 bytes;
	u64 ns;
};

/*
 * Measured rate of asynchronous writes, and the limits derived from it
 * (budget.c).
 */
struct frontrow_budget {
	u64 bytes_per_s;	/* of large writes */
	unsigned int open_limit; /* most async requests in the device while nobody waits */
	u64 credit_updated_ns;
	u64 completed_ns;	/* last completion of any request */
	enum frontrow_class last_due;	/* group that used its share last */
	u64 discard_ns;		/* mean time that a discard takes */

	u64 written_since_ns;	/* start of the window of all writes */
	u64 written_bytes;

	u64 window_start_ns;	/* 0: no undisturbed window is running */
	u64 window_bytes;
	u64 window_latency_ns;
	unsigned int window_requests;
	bool window_full;	/* open_limit was reached in this window */

	struct frontrow_size sizes[NR_SIZES];	/* of a device that takes one request */
	u64 sizes_ns;		/* since they were forgotten */
};

/* Synchronous requests of a level, and a histogram of the gaps between them. */
struct frontrow_chain {
	unsigned int nr_requests;	/* queued, in the device, or flushing */
	unsigned int nr_waiting;	/* tasks in fsync or asleep for a page */
	unsigned int nr_fsyncs;		/* of these, in fsync */
	u64 idle_since_ns;		/* completion of the last request */
	u64 quiet_since_ns;		/* the same, or the start of a later wait */
	u64 window_ns;			/* 95th percentile of the gaps */
	u8 gaps[NR_GAP_STEPS + 1];	/* histogram; the last bucket counts pauses */
	u8 nr_gaps;
};

/*
 * Last asynchronous bio of a task, in a slot of its address: a hint for
 * limit_depth, which does not get the bio that needs a tag.
 */
struct frontrow_sender {
	const struct task_struct *task;
	const void *mapping;
	u8 role;
};

#define FRONTROW_SENDER_BITS	6
#define FRONTROW_MAPPING_BITS	7
/* Bucket of requests with pages of several files. */
#define FRONTROW_MIXED		(1 << FRONTROW_MAPPING_BITS)

/* Most instances that take part in waits above stacked devices. */
#define NR_BELOW_STACKS		BITS_PER_LONG
/* Stacked devices above an instance that it remembers; the oldest is forgotten. */
#define NR_UPPERS		8

struct frontrow_roles;

struct frontrow_data {
	struct request_queue *q;
	struct list_head instance;	/* RCU list of all schedulers in use */
	u64 id;				/* unique since the module was loaded */
	unsigned int bit;		/* in known_to; NR_BELOW_STACKS: none was free */

	spinlock_t lock;
	bool is_one_by_one;		/* its driver may sleep (dispatch.c) */
	const struct frontrow_rq *handed_on;	/* to such a driver, last; NULL: it has ended */
	struct list_head head;		/* inserted at head: before all classes */
	struct rb_root_cached by_turn[FRONTROW_NR_CLASSES]; /* frontrow_rq */
	unsigned int queued[FRONTROW_NR_CLASSES];
	unsigned int nr_queued;
	unsigned int nr_grouped;	/* of nr_queued: in groups */
	struct hlist_head by_mapping[FRONTROW_MIXED + 1]; /* frontrow_rq */
	struct hlist_head waiters[FRONTROW_MIXED];
	const void *uppers[NR_UPPERS];	/* of waits that had a write here */
	unsigned int next_upper;

	struct frontrow_turns turns[FRONTROW_NR_CLASSES]; /* synchronous classes only */
	/* Synchronous requests of each owner, queued or in the device. */
	u16 nr_owned[1 << FRONTROW_OWNER_BITS];
	struct frontrow_process processes[1 << FRONTROW_OWNER_BITS];
	u64 each_waiter_ns;	/* time of the device that each waiting task has caused */

	unsigned int in_device[FRONTROW_NR_CLASSES];
	unsigned int nr_in_device;
	unsigned int nr_flushing;	/* requests that wait for a flush */
	u32 background_bytes;		/* writes of the background in the device */
	enum frontrow_class last_class;	/* of the request that was dispatched last */
	bool other_turn;		/* toggles: see dispatch.c */
	bool is_held;			/* the last dispatch left requests queued on purpose */

	struct frontrow_chain chains[FRONTROW_NR_LEVELS];
	unsigned int nr_awaited;	/* requests and waiting tasks of all levels but the background's */
	struct frontrow_group groups[FRONTROW_NR_GROUPS];
	u64 served_floor_bytes;		/* of the open group that was served last */
	struct frontrow_budget budget;
	struct hrtimer rerun;		/* runs the queue again */

	u64 idle_from_ns;		/* start of the present idle time; 0: none */
	u64 idle_ns;			/* sum of idle times */
	u64 idle_longest_ns;

	struct work_struct resize;	/* applies slice_bytes to the queue */
	unsigned int slice_sectors;	/* wanted max_sectors; 0: unchanged */
	unsigned int native_max_sectors; /* the queue's own limit, to restore */
	unsigned int applied_max_sectors; /* what resize wrote last */

	unsigned int nr_waiters;
	unsigned int nr_unseen;		/* of nr_waiters: unseen */
	unsigned int nr_folio_waiters;	/* of nr_waiters: with a folio */
	bool any_promoted;		/* since the last frontrow_demote() */
	u64 demote_ns;			/* time of the next frontrow_demote() */
	unsigned int discard_waiters;
	unsigned int discard_pending;	/* of discard_waiters: no discard inserted yet */
	unsigned long boost_mask;	/* bit per frontrow_dependency */
	struct frontrow_counters counters[FRONTROW_NR_DEPENDENCIES];
	u64 dispatched[FRONTROW_NR_CLASSES];
	u64 async_age_peak_ns;	/* longest time in the queue */

	unsigned int worker_tags;	/* tags that writeback workers may use */
	unsigned int worker_shallow_depth; /* the same in units of sbitmap */
	unsigned int task_shallow_depth; /* async ones of tasks, or awaited */
	unsigned int half_shallow_depth; /* limit of synchronous requests of the background */
	unsigned int nr_many;		/* owners with more sync ones get half the tags */
	struct frontrow_sender senders[1 << FRONTROW_SENDER_BITS];
	/*
	 * Asynchronous bytes of each file (hash of its mapping), queued or in
	 * the device.
	 */
	u64 file_async_bytes[1 << FRONTROW_MAPPING_BITS];
	wait_queue_head_t file_wait;	/* workers that wait for their file's bytes to fall */

	unsigned int async_share_percent;
	unsigned int background_share_percent;
	unsigned int background_most_percent; /* limit of the same beside visible apps */
	unsigned int visible_share_percent[FRONTROW_NR_VISIBLE];
	unsigned int slice_us;

	struct frontrow_roles __rcu *roles; /* NULL: all cgroups have the role "other" */
};

static inline struct frontrow_rq *frontrow_rq(struct request *rq)
{
	struct frontrow_hctx *fh = rq->mq_hctx->sched_data;

	if (rq->internal_tag < 0 || (unsigned int)rq->internal_tag >= fh->nr)
		return NULL;
	return &fh->rqs[rq->internal_tag];
}

/*
 * Callers test only flags that never change, or that only the current task
 * changes for itself. Other bits of the word may change at any time
 * (PF_BLOCK_TS at preemption).
 */
static inline unsigned int frontrow_flags(const struct task_struct *task)
{
	return READ_ONCE(task->flags);
}

/*
 * True for kernel threads with work of their own, such as jbd2; false for
 * workqueue workers and kswapd.
 */
static inline bool frontrow_is_kernels_own(const struct task_struct *task)
{
	return (frontrow_flags(task) & (PF_KTHREAD | PF_WQ_WORKER | PF_KSWAPD)) ==
	       PF_KTHREAD;
}

/* Next request of @class; NULL if there is none. */
static inline struct frontrow_rq *frontrow_first(const struct frontrow_data *fd,
						 enum frontrow_class class)
{
	return rb_entry_safe(rb_first_cached(&fd->by_turn[class]),
			     struct frontrow_rq, in_class);
}

/*
 * Every commit waits for a task with a journal handle, so it must not wait for
 * its reads, or for blocks that it zeroes. File pages are excluded: they are
 * only submitted under a handle, and would delay the commit itself.
 */
static inline bool frontrow_holds_up_commit(const struct frontrow_rq *fr)
{
	return fr->under_handle && (rq_data_dir(fr->rq) == READ || !fr->mapping);
}

static inline unsigned int frontrow_mapping_hash(const void *mapping)
{
	return hash_ptr(mapping, FRONTROW_MAPPING_BITS);
}

static inline unsigned int frontrow_owner_of(const struct task_struct *task)
{
	return hash_ptr(task->signal, FRONTROW_OWNER_BITS);
}

/* Commands that the device holds at once, over all hardware queues. */
static inline unsigned int frontrow_depth(const struct frontrow_data *fd)
{
	const struct blk_mq_tag_set *set = fd->q->tag_set;

	return set->flags & BLK_MQ_F_TAG_HCTX_SHARED ? set->queue_depth :
	       set->queue_depth * fd->q->nr_hw_queues;
}

/* role.c: roles of cgroups */
enum frontrow_role frontrow_role_of_bio(struct frontrow_data *fd,
					struct bio *bio);
bool frontrow_is_realtime(const struct task_struct *task);
enum frontrow_role frontrow_role_of(struct frontrow_data *fd,
				    struct task_struct *task);
ssize_t frontrow_roles_show(struct frontrow_data *fd,
			    enum frontrow_role role, char *page);
int frontrow_roles_store(struct frontrow_data *fd,
			 enum frontrow_role role, const char *page,
			 size_t count);
void frontrow_roles_exit(struct frontrow_data *fd);
void frontrow_mark_foreground(struct request *rq);

/* queue.c: class of a request, and the queues */
enum frontrow_level frontrow_level_of(struct frontrow_data *fd,
				      enum frontrow_role role, bool by_kernel,
				      unsigned int owner, u64 now_ns);
enum frontrow_class frontrow_class_for_waiter(enum frontrow_role role,
					      enum frontrow_level level,
					      bool is_for_all);
void frontrow_identify(struct frontrow_data *fd, struct frontrow_rq *fr,
		       struct request *rq, u64 now_ns);
void frontrow_enqueue(struct frontrow_data *fd, struct frontrow_rq *fr,
		      enum frontrow_class class);
void frontrow_dequeue(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_forget(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_reclass(struct frontrow_data *fd, struct frontrow_rq *fr,
		      enum frontrow_class class);
void frontrow_join(struct frontrow_data *fd, struct frontrow_rq *fr,
		   const struct frontrow_rq *next);
void frontrow_join_bio(struct frontrow_rq *fr, struct bio *bio);
bool frontrow_may_hold(const struct frontrow_rq *fr, const void *mapping);
const void *frontrow_mapping_of(struct bio *bio);

/* process.c: what a process has used of the device */
void frontrow_waiters_use(struct frontrow_data *fd, u64 ns);
void frontrow_process_waits(struct frontrow_data *fd, struct frontrow_waiter *waiter,
			    u64 now_ns);
void frontrow_process_waited(struct frontrow_data *fd,
			     const struct frontrow_waiter *waiter, u64 now_ns);

static inline void frontrow_owner_uses(struct frontrow_data *fd, unsigned int owner,
				       u64 ns)
{
	struct frontrow_process *process = &fd->processes[owner];

	process->used_ns = min(process->used_ns + ns, USED_MOST_NS);
}

/*
 * What a request that has been in the device since @since_ns has used of it. The
 * time counts from the completion before, if that is later: a device that works
 * on several requests takes a part of its time for each.
 */
static inline u64 frontrow_device_ns(const struct frontrow_data *fd, u64 since_ns,
				     u64 now_ns)
{
	return now_ns - min(max(since_ns, fd->budget.completed_ns), now_ns);
}

/* Somebody has waited for a request that has been in the device since @since_ns. */
static inline void frontrow_process_uses(struct frontrow_data *fd,
					 const struct frontrow_rq *fr,
					 u64 since_ns, u64 now_ns)
{
	u64 ns = frontrow_device_ns(fd, since_ns, now_ns);

	if (fr->by_kernel_thread)
		frontrow_waiters_use(fd, ns);
	else
		frontrow_owner_uses(fd, fr->owner, ns);
}

static inline u64 frontrow_process_used_ns(const struct frontrow_process *process,
					   u64 now_ns)
{
	u64 pause_ns = process->nr_here ? 0 : now_ns - process->idle_since_ns;

	return process->used_ns - min(process->used_ns, FORGIVEN * pause_ns);
}

static inline enum frontrow_level
frontrow_level_of_process(const struct frontrow_data *fd, unsigned int owner, u64 now_ns)
{
	const struct frontrow_process *process = &fd->processes[owner];

	if (process->used_ns <= LONG_NS ||
	    frontrow_process_used_ns(process, now_ns) <= LONG_NS)
		return FRONTROW_LEVEL_OTHER;
	return frontrow_process_used_ns(process, now_ns) > BULK_NS ?
	       FRONTROW_LEVEL_BULK : FRONTROW_LEVEL_LONG;
}

/* A process has a request here, or a task that waits. */
static inline void frontrow_process_begins(struct frontrow_data *fd,
					   unsigned int owner, u64 now_ns)
{
	struct frontrow_process *process = &fd->processes[owner];
	u64 pause_ns;

	if (process->nr_here++)
		return;
	pause_ns = now_ns - process->idle_since_ns;
	process->used_ns -= min(process->used_ns, FORGIVEN * pause_ns);
}

static inline void frontrow_process_ends(struct frontrow_data *fd, unsigned int owner,
					 u64 now_ns)
{
	struct frontrow_process *process = &fd->processes[owner];

	if (!--process->nr_here)
		process->idle_since_ns = now_ns;
}

/* turns.c: which request of a class goes next */
void frontrow_take_turn(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_go_first(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_leave_turn(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_use_turn(struct frontrow_data *fd, struct frontrow_rq *fr);

/* chain.c: who waits, and how long the device may idle for them */
struct frontrow_view {
	u64 now_ns;
	enum frontrow_level who;
	bool is_searching;	/* the waiter has had no request here for longer than a window */
	bool is_foreground_writing;	/* its asynchronous writes are here */
	u64 next_event_ns;	/* time at which the view changes without an event, or U64_MAX */
};

void frontrow_look(const struct frontrow_data *fd, u64 now_ns,
		   struct frontrow_view *view);
void frontrow_chains_init(struct frontrow_data *fd);
void frontrow_request_begins(struct frontrow_data *fd, struct frontrow_rq *fr,
			     u64 now_ns);
void frontrow_request_ends(struct frontrow_data *fd, struct frontrow_rq *fr,
			   u64 now_ns);
void frontrow_class_done(struct frontrow_data *fd, enum frontrow_class class,
			 u64 now_ns);
void frontrow_waiter_begins(struct frontrow_data *fd,
			    struct frontrow_waiter *waiter, u64 now_ns);
void frontrow_waiter_ends(struct frontrow_data *fd,
			  const struct frontrow_waiter *waiter, u64 now_ns);
void frontrow_idle_ends(struct frontrow_data *fd, u64 now_ns);

/*
 * Accounts the time in which the device idles although somebody waits and
 * requests are queued. Call it after each change of one of the three.
 */
static inline void frontrow_count_idle(struct frontrow_data *fd, u64 now_ns)
{
	bool is_idle = !fd->nr_in_device && fd->nr_queued && !fd->nr_flushing &&
		       fd->nr_awaited;

	if (is_idle == !!fd->idle_from_ns)
		return;
	if (is_idle)
		fd->idle_from_ns = now_ns;
	else
		frontrow_idle_ends(fd, now_ns);
}

static inline bool frontrow_is_open(const struct frontrow_view *view,
				    enum frontrow_class class)
{
	return view->who <= frontrow_classes[class].open_to &&
	       !(view->is_foreground_writing && class > FRONTROW_FG_ASYNC);
}

/*
 * Bytes that @rq transfers. One that only names blocks, as WRITE_ZEROES does, may
 * be of gigabytes and costs no more than a small one.
 */
static inline u32 frontrow_bytes(struct request *rq)
{
	bool has_data = req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;

	return has_data ? blk_rq_bytes(rq) : min(blk_rq_bytes(rq), MIN_SLICE_BYTES);
}

/* dispatch.c: which request goes next, or none */
struct request *frontrow_dispatch(struct blk_mq_hw_ctx *hctx);
bool frontrow_has_work(struct blk_mq_hw_ctx *hctx);
void frontrow_rerun_init(struct frontrow_data *fd);
void frontrow_await_written(struct frontrow_data *fd, u64 now_ns);
void frontrow_rerun_exit(struct frontrow_data *fd);

/* budget.c: how much asynchronous work the device may hold */

/* Synchronous requests distort the measured rate: discard the window. */
static inline void frontrow_budget_disturb(struct frontrow_data *fd)
{
	fd->budget.window_start_ns = 0;
}

void frontrow_budget_init(struct frontrow_data *fd);
void frontrow_budget_exit(struct frontrow_data *fd);
void frontrow_budget_full(struct frontrow_data *fd);
void frontrow_budget_charge(struct frontrow_data *fd, struct frontrow_rq *fr,
			    const struct frontrow_view *view);
void frontrow_budget_learn(struct frontrow_data *fd,
			   const struct frontrow_rq *fr, u64 now_ns);
void frontrow_budget_written(struct frontrow_data *fd,
			     const struct frontrow_rq *fr, u64 now_ns);
void frontrow_budget_flushed(struct frontrow_data *fd,
			     const struct frontrow_rq *fr, u64 now_ns);

void frontrow_budget_charge_kernel(struct frontrow_data *fd,
				   const struct frontrow_rq *fr,
				   u64 since_ns, u64 now_ns);

/* A request of the device has completed. */
static inline void frontrow_budget_complete(struct frontrow_data *fd,
					    const struct frontrow_rq *fr, u64 now_ns)
{
	if (frontrow_is_group(fr->class))
		frontrow_budget_learn(fd, fr, now_ns);
	else if (fr->by_kernel && fr->level < FRONTROW_LEVEL_OTHER)
		frontrow_budget_charge_kernel(fd, fr, fr->dispatched_ns, now_ns);
	if (req_op(fr->rq) == REQ_OP_WRITE)
		frontrow_budget_written(fd, fr, now_ns);
	fd->budget.completed_ns = now_ns;
}

enum frontrow_class frontrow_budget_due(struct frontrow_data *fd,
					const struct frontrow_view *view);
u64 frontrow_budget_wait_ns(struct frontrow_data *fd,
			    const struct frontrow_view *view);
u64 frontrow_slice_bytes(const struct frontrow_data *fd);
bool frontrow_budget_has_room(const struct frontrow_data *fd, u32 bytes);

/* wait.c: from a wait to a promotion */
bool frontrow_wait_begins(struct frontrow_data *fd,
			  struct frontrow_waiter *waiter, bool surely_writeback);
void frontrow_wait_ended(struct frontrow_data *fd, struct frontrow_waiter *waiter);
bool frontrow_wait_begins_above(struct frontrow_waiter *waiter);
bool frontrow_wait_begins_below(struct frontrow_data *fd,
				struct frontrow_waiter *waiter, bool surely_writeback);
void frontrow_wait_ended_above(struct frontrow_waiter *waiter);
unsigned int frontrow_waits_not_copied(void);
void frontrow_end_wait(struct frontrow_data *fd, struct frontrow_waiter *waiter,
		       u64 now_ns);
void frontrow_waiters_exit(struct frontrow_data *fd);
void frontrow_boost_discards(struct frontrow_data *fd);
void frontrow_discard_wait_ended(struct frontrow_data *fd, u64 slept_ns);
bool frontrow_discard_is_awaited(struct frontrow_data *fd,
				 const struct frontrow_rq *fr);
enum frontrow_class frontrow_class_awaited(struct frontrow_data *fd,
					   struct frontrow_rq *fr,
					   enum frontrow_class class,
					   bool *has_page);
bool frontrow_is_awaited(struct frontrow_data *fd, const void *mapping);
void frontrow_demote(struct frontrow_data *fd, u64 now_ns);

/* Demotes promoted requests that nobody waits for any more. */
static inline void frontrow_demote_unawaited(struct frontrow_data *fd, u64 now_ns)
{
	if (fd->any_promoted && now_ns >= fd->demote_ns)
		frontrow_demote(fd, now_ns);
}

extern const char *const frontrow_dependency_names[FRONTROW_NR_DEPENDENCIES];

/* detect.c: which device a wait is for */
int frontrow_detect_init(void);
void frontrow_detect_exit(void);
bool frontrow_has_probes(void);
void frontrow_detect_add(struct frontrow_data *fd);
void frontrow_detect_del(struct frontrow_data *fd);
unsigned int frontrow_detect_missed(void);
int frontrow_detect_emit_hits(char *page, int length);
int frontrow_detect_emit(char *page, int length, const char *kind, const char *name,
			 const unsigned long __percpu *hits);
bool frontrow_detect_wait(struct frontrow_waiter *waiter,
			  struct address_space *mapping, bool surely_writeback);
void frontrow_detect_wait_ended(struct frontrow_waiter *waiter);
enum frontrow_dependency frontrow_whose_wait(enum frontrow_dependency usual);
/* Both need rcu_read_lock(). */
struct frontrow_data *frontrow_instance_on(const struct request_queue *q);
struct frontrow_data *frontrow_instance_of_id(u64 id);

/* probes.c: detection by return probes */
#ifdef CONFIG_KRETPROBES
int frontrow_probes_init(void);
void frontrow_probes_exit(void);
unsigned int frontrow_probes_missed(void);
int frontrow_probes_emit_hits(char *page, int length);
#else
static inline int frontrow_probes_init(void)
{
	return -EOPNOTSUPP;
}
static inline void frontrow_probes_exit(void) {}
static inline unsigned int frontrow_probes_missed(void)
{
	return 0;
}
static inline int frontrow_probes_emit_hits(char *page, int length)
{
	return 0;
}
#endif

/* tracepoints.c: detection where there are no return probes */
#ifdef FRONTROW_ABI_NO_TRACEPOINT_NOTIFIER
static inline int frontrow_tracepoints_init(void)
{
	return -EOPNOTSUPP;
}
static inline void frontrow_tracepoints_exit(void) {}
static inline unsigned int frontrow_tracepoints_missed(void)
{
	return 0;
}
static inline int frontrow_tracepoints_emit_hits(char *page, int length)
{
	return 0;
}
static inline void frontrow_end_written(struct frontrow_data *fd, u64 now_ns) {}
static inline void frontrow_free_slot(struct frontrow_waiter *waiter) {}
#else
int frontrow_tracepoints_init(void);
void frontrow_tracepoints_exit(void);
unsigned int frontrow_tracepoints_missed(void);
int frontrow_tracepoints_emit_hits(char *page, int length);
void frontrow_end_written(struct frontrow_data *fd, u64 now_ns);
void frontrow_free_slot(struct frontrow_waiter *waiter);
#endif

/* main.c */
void frontrow_flush_begins(struct frontrow_data *fd, struct request *rq);

/* tags.c: limits of scheduler tags */
int frontrow_tags_init(void);
void frontrow_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void frontrow_file_add(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_file_sub(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_wake_workers(struct frontrow_data *fd);
void frontrow_note_sender(struct frontrow_data *fd, enum frontrow_role role,
			  const void *mapping);
void frontrow_note_bio(struct frontrow_data *fd, struct bio *bio);
void frontrow_tags_updated(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx);

/* sysfs.c */
extern struct elv_fs_entry frontrow_attrs[];

#endif /* FRONTROW_H */
