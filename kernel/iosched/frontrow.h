/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The frontrow I/O scheduler: declarations that its files share.
 *
 * A foreground operation waits for background writes in four places, in the
 * order in which a request passes them: for a scheduler tag (tags.c); for a
 * write that it depends on and that the scheduler serves last (probes.c,
 * wait.c); for requests that the device has already taken (core/budget.c); and
 * after a gap between two of its own requests, in which the device filled up
 * (core/pick.c). role.c tells the role of a request.
 *
 * Where no cgroup has a role, a process's level follows from what it has used of
 * the device (core/process.c).
 */
#ifndef FRONTROW_H
#define FRONTROW_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "core/core.h"
#include "frontrow_abi.h"
#include "compat.h"

/* Constants that are not settings, with their reasons; those of the policy are in core/core.h. */

/* Time until a waiter asks for the next page of a range (fsync at 1 GIPS). */
#define NEXT_WAIT_NS		(4 * NSEC_PER_MSEC)
/*
 * Most of one file's writeback at once, in time of the device: below what users
 * notice.
 */
#define FILE_LIMIT_MS		100
/* The same of writes that name no file: what mq-deadline's four tags hold. */
#define NAMELESS_LIMIT_MS	10
/* More requests than a task's read-ahead and one write need. */
#define MANY_OF_ONE_OWNER	8U
/* Most bios of a request that are checked for their mapping. */
#define MAX_BIOS_LOOKED_AT	64

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

/*
 * Per-request data, indexed by the scheduler tag. (elv.priv shares its memory
 * with the flush state on some kernels.)
 */
struct frontrow_rq {
	struct frontrow_item item;
	struct request *rq;
	struct hlist_node by_mapping;	/* writes, while queued or in the device */
	u64 mappings;		/* bits of its mappings' hashes; 0: one mapping */
	pgoff_t first_page, last_page;	/* in the file; the span over all of its files */
	u64 completed_ns;
	u32 file_async_bytes;	/* its part of fd->file_async_bytes */
	bool for_reclaim;	/* its submitter frees memory by it */
	u8 submitters_role;	/* for_reclaim: of the task, not of the pages */
	bool is_realtime;	/* its submitter has the realtime class itself */
};

/*
 * Those of the scheduler tags of a hardware queue, or of all hardware queues where they
 * share their tags.
 */
struct frontrow_rqs {
	unsigned int nr;
	struct frontrow_rq *rq;
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
	struct frontrow_wait wait;
	u64 begin_ns;
	u8 dependency;
	u8 role;
	u8 class;		/* class of the writes that it waits for */
	bool is_above;		/* a stacked device; instances have copies */
	bool may_promote;
	bool pending;		/* no write of the mapping has been inserted yet */
	bool unseen;		/* no write with its pages has been inserted yet */
	bool is_counted;	/* it waits for an asynchronous write */
	struct folio *folio;	/* the wait ends with its writeback; NULL: its end is reported */
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
	struct frontrow_core core;
	bool is_one_by_one;		/* its driver may sleep (dispatch.c) */
	const struct frontrow_rq *handed_on;	/* to such a driver, last; NULL: it has ended */
	struct frontrow_rqs shared_rqs;	/* of tags that all hardware queues share */
	struct list_head head;		/* inserted at head: before all classes */
	struct hlist_head by_mapping[FRONTROW_MIXED + 1]; /* frontrow_rq */
	struct hlist_head waiters[FRONTROW_MIXED];
	const void *uppers[NR_UPPERS];	/* of waits that had a write here */
	unsigned int next_upper;
	bool is_held;			/* the last dispatch left requests queued on purpose */
	bool rests;			/* ... until some have completed (frontrow_rests()) */
	struct hrtimer rerun;		/* runs the queue again */

	struct work_struct resize;	/* applies core.slice_bytes to the queue */
	unsigned int applied_max_sectors; /* what resize wrote last */

	unsigned int nr_unseen;		/* waiters: unseen */
	unsigned int nr_folio_waiters;	/* waiters with a folio */
	bool any_promoted;		/* since the last frontrow_demote() */
	u64 demote_ns;			/* time of the next frontrow_demote() */
	unsigned int discard_waiters;
	unsigned int discard_pending;	/* of discard_waiters: no discard inserted yet */
	unsigned long boost_mask;	/* bit per frontrow_dependency */
	struct frontrow_counters counters[FRONTROW_NR_DEPENDENCIES];

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

	struct frontrow_roles __rcu *roles; /* NULL: all cgroups have the role "other" */
};

static inline struct frontrow_rq *frontrow_rq(struct request *rq)
{
	struct frontrow_rqs *rqs = rq->mq_hctx->sched_data;

	if (rq->internal_tag < 0 || (unsigned int)rq->internal_tag >= rqs->nr)
		return NULL;
	return &rqs->rq[rq->internal_tag];
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

static inline unsigned int frontrow_mapping_hash(const void *mapping)
{
	return hash_ptr(mapping, FRONTROW_MAPPING_BITS);
}

/*
 * The address alone is often that of a process that has just ended, whose use of
 * the device would count for the new one.
 */
static inline unsigned int frontrow_owner_of(const struct task_struct *task)
{
	return hash_64((uintptr_t)task->signal + task->group_leader->start_time,
		       FRONTROW_OWNER_BITS);
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

/* pages.c: which pages a request has */
void frontrow_find_pages(struct frontrow_rq *fr);
void frontrow_hash(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_join_pages(struct frontrow_data *fd, struct frontrow_rq *fr,
			 const struct frontrow_rq *next);
void frontrow_join_bio(struct frontrow_rq *fr, struct bio *bio);
bool frontrow_may_hold(const struct frontrow_rq *fr, const void *mapping);
const void *frontrow_mapping_of(struct bio *bio);

/* resize.c: the queue's largest request */
void frontrow_resize_init(struct frontrow_data *fd);
void frontrow_resize_exit(struct frontrow_data *fd);

/* dispatch.c: the next request, and when to look for it again */
struct request *frontrow_dispatch(struct blk_mq_hw_ctx *hctx);
bool frontrow_has_work(struct blk_mq_hw_ctx *hctx);
void frontrow_rerun_init(struct frontrow_data *fd);
void frontrow_await_written(struct frontrow_data *fd, u64 now_ns);
void frontrow_rerun_exit(struct frontrow_data *fd);

/* wait.c: from a wait to a promotion */
bool frontrow_wait_begins(struct frontrow_data *fd,
			  struct frontrow_waiter *waiter, bool surely_writeback);
void frontrow_wait_ended(struct frontrow_data *fd, struct frontrow_waiter *waiter);
bool frontrow_wait_begins_above(struct frontrow_waiter *waiter);
bool frontrow_wait_begins_below(struct frontrow_data *fd,
				struct frontrow_waiter *waiter, bool surely_writeback);
void frontrow_wait_ended_above(struct frontrow_waiter *waiter);
bool frontrow_is_below(const struct frontrow_data *fd, const void *upper);
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
void frontrow_detect_throttled(const struct request_queue *q);
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

/* throttle.c: tasks that have dirtied too many pages */
#ifdef FRONTROW_ABI_NO_TRACEPOINT_NOTIFIER
static inline void frontrow_throttle_init(void) {}
static inline void frontrow_throttle_exit(void) {}
#else
void frontrow_throttle_init(void);
void frontrow_throttle_exit(void);
#endif

/* main.c */
void frontrow_flush_begun(struct frontrow_data *fd, struct request *rq);
void frontrow_leave_merging(struct frontrow_data *fd, struct request *rq);

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
