/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The frontrow I/O scheduler: what its files share.
 *
 * A foreground operation stalls behind background writes in four places, in the
 * order a request meets them: it waits for a tag (tags.c), it waits for a write
 * that the scheduler serves last (detect.c, wait.c), it waits behind what the
 * device has already taken (budget.c), and between two of its own requests the
 * device fills up again (dispatch.c). Whose a request is, ground.c knows.
 *
 * Each dispatch asks once at which level somebody waits. A class is open if
 * nobody waits above its own level; a class that is not open has a share.
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

/*
 * Every constant that is not a setting, and what it is measured from.
 */

/* Gaps of a chain are counted in steps of this: a tenth of an eMMC's shortest fsync. */
#define GAP_STEP_NS		(500 * NSEC_PER_USEC)
/* A gap beyond 16 steps is a pause: a device that idles longer loses more than it wins. */
#define NR_GAP_STEPS		16
#define MAX_WINDOW_NS		(NR_GAP_STEPS * GAP_STEP_NS)
/* Before the first gap: what an app takes to write 1 MB into the page cache. */
#define INITIAL_WINDOW_NS	(4 * NSEC_PER_MSEC)
/* Who waits for a range has come to its next page after this (fsync, 1 GIPS). */
#define NEXT_WAIT_NS		(4 * NSEC_PER_MSEC)
/* A window of rate measurement: 1 MB of the slowest card. */
#define RATE_WINDOW_NS		(20 * NSEC_PER_MSEC)
#define RATE_WINDOW_REQUESTS	4
/* Requests that stay longer than this only queue in the device. */
#define OPEN_LATENCY_NS		(5 * NSEC_PER_MSEC)
/* One in the device and one that its driver prepares. */
#define OPEN_LIMIT_MIN		2U
/* Until the first window: a slow card, so that the first seconds are safe. */
#define INITIAL_BYTES_PER_S	(32ULL << 20)
#define INITIAL_DISCARD_NS	(500 * NSEC_PER_USEC)
/* Below this the cost of a command outweighs what a waiter gains. */
#define MIN_SLICE_BYTES		(64U << 10)
/* At most, where somebody is in the foreground or background. */
#define GROUNDS_SLICE_US	1000U
/* The timer's and kblockd's own cost: no use in asking again sooner. */
#define MIN_WAIT_NS		(500 * NSEC_PER_USEC)
/* A closed class's share grows from here on, and is everything at the end. */
#define AGE_RAMP_BEGIN_NS	(3000ULL * NSEC_PER_MSEC)
#define AGE_RAMP_END_NS		(4500ULL * NSEC_PER_MSEC)
/* A tenth is promised; a little more covers what rounding and waiting lose. */
#define DEFAULT_ASYNC_SHARE_PERCENT	14
/* A tenth of what the background has beside the same foreground under stock. */
#define DEFAULT_BACKGROUND_SHARE_PERCENT 8
/* What a synchronous request that comes at a bad moment may have to wait. */
#define DEFAULT_SLICE_US	2500
/* What a task's read-ahead and its one write have here at once, and some. */
#define MANY_OF_ONE_OWNER	8U
/* Plugged bios that are looked at to learn whose pages a request has. */
#define MAX_BIOS_LOOKED_AT	64

/*
 * Dispatch classes, as they are counted and traced. boosted holds writes that
 * were submitted as asynchronous and that a task turned out to wait for; it
 * stays below everything synchronous (QASIO, section 5.3). Of the apps that are
 * visible beside the foreground each has a class.
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
	FRONTROW_ASYNC,
	FRONTROW_DISCARD,
	FRONTROW_NR_CLASSES,
};

/* From here on a class is a group: it shares the device while it is not open. */
#define FRONTROW_FIRST_GROUP FRONTROW_VISIBLE_1
#define FRONTROW_NR_GROUPS (FRONTROW_NR_CLASSES - FRONTROW_FIRST_GROUP)
#define FRONTROW_NR_VISIBLE (FRONTROW_FG_ASYNC - FRONTROW_VISIBLE_1)

/* Who waits, least urgent first. */
enum frontrow_level {
	FRONTROW_NOBODY,	/* or the background only */
	FRONTROW_ANYBODY,
	FRONTROW_SEEN,		/* an app that is visible beside the foreground */
	FRONTROW_FRONT,		/* the foreground */
	FRONTROW_NR_LEVELS,
};

struct frontrow_class_rules {
	const char *name;
	u8 open_to;		/* it is open while nobody above this level waits */
	bool is_async;
	u16 deadline_ms;	/* passed over longer, it gets every other dispatch */
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

/* Whose a request or a task is (FastTrack). */
enum frontrow_ground {
	FRONTROW_MIDDLE,	/* a service, the kernel, or nobody has said */
	FRONTROW_FOREGROUND,
	FRONTROW_BACKGROUND,
	FRONTROW_VISIBLE,	/* seen, but not worked with; three, as the classes */
	FRONTROW_NR_GROUNDS = FRONTROW_VISIBLE + FRONTROW_NR_VISIBLE,
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
	FRONTROW_WAIT_PENDING,		/* not here yet: promoted when it comes */
	FRONTROW_WAIT_SYNC,		/* was synchronous all along */
	FRONTROW_WAIT_NOT_OURS,		/* not for a write at all */
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
 * Our part of a request, found by its scheduler tag. (elv.priv shares its
 * memory with the flush state on some kernels.)
 */
struct frontrow_rq {
	struct request *rq;
	struct rb_node in_class;	/* while queued */
	struct hlist_node by_mapping;	/* writes, while queued or in the device */
	const void *mapping;	/* of the first page; an opaque key */
	u64 mappings;		/* a bit for each mapping's hash, if there are several */
	pgoff_t first_page, last_page;	/* in the file; of several, all */
	u64 turn;		/* the least goes next of its class */
	u64 inserted_ns;
	u64 in_class_since_ns;
	u64 dispatched_ns;
	u64 completed_ns;
	u32 bytes;
	u32 charged_bytes;	/* that its payer's turn was moved for; 0: none */
	u16 payer;		/* whose turn it takes: a process's or a file's */
	u16 owner;		/* its submitter's process */
	u8 class;
	u8 own_class;		/* without anybody who waits for it */
	u8 ground;
	u8 level;		/* who waits while it is here */
	u8 state;
	bool is_counted;	/* in its level's chain */
	bool is_background_write;
	bool under_handle;	/* its submitter holds a journal handle */
	bool by_kernel;		/* its submitter is a kernel thread, jbd2 for one */
	bool for_reclaim;	/* its submitter frees memory by it */
};

struct frontrow_hctx {
	unsigned int nr;
	struct frontrow_rq *rqs;
};

/*
 * A task that waits: asleep for pages of a file to be written, or inside fsync.
 * Lives in the return probe's instance, so exactly as long as the wait.
 */
struct frontrow_waiter {
	struct hlist_node node;		/* in fd->waiters or in the unplaced ones */
	struct frontrow_data *fd;	/* NULL: unplaced, or its scheduler has gone */
	const void *mapping;
	pgoff_t first_page, last_page;
	const struct task_struct *task;
	u64 begin_ns;
	u8 dependency;
	u8 ground;
	u8 class;		/* what it waits for goes into */
	u8 level;
	bool is_fsync;
	bool may_promote;
	bool pending;		/* nothing of the mapping has been seen yet */
	bool unseen;		/* its pages have not been seen */
	bool is_counted;	/* it waits for an asynchronous write */
};

/* Two owners in one slot share a turn: of 24 one in twenty meets another. */
#define FRONTROW_OWNER_BITS	9

/* Who is next in a class, in bytes served (turns.c). */
struct frontrow_turns {
	u64 now;			/* the turn of the request that went last */
	u64 ends[1 << FRONTROW_OWNER_BITS]; /* of each owner's last */
};

/* A class that shares. */
struct frontrow_group {
	s64 credit_bytes;	/* while it is not open it may send if positive */
	u64 served_bytes;	/* while it is open: of several the least goes next */
};

/* How fast the device takes asynchronous writes, and what follows (budget.c). */
struct frontrow_budget {
	u64 bytes_per_s;	/* measured while nobody waits */
	unsigned int open_limit; /* async requests in the device, nobody waiting */
	u64 credit_updated_ns;
	enum frontrow_class last_due;	/* the one whose turn it was */
	u64 discard_ns;		/* mean time that a discard takes */

	u64 window_start_ns;	/* 0: no undisturbed window is running */
	u64 window_bytes;
	u64 window_latency_ns;
	unsigned int window_requests;
	bool window_full;	/* open_limit was reached in this window */
};

/* A level's synchronous requests, one after another, and the gaps between. */
struct frontrow_chain {
	unsigned int nr_requests;	/* queued, in the device, or flushing */
	unsigned int nr_waiting;	/* tasks in fsync or asleep for a page */
	unsigned int nr_fsyncs;		/* of these, in fsync */
	u64 idle_since_ns;		/* the last request's end */
	u64 quiet_since_ns;		/* that, or the begin of the wait since */
	u64 window_ns;			/* nearly all gaps are shorter */
	u8 gaps[NR_GAP_STEPS + 1];	/* a histogram; the last one are pauses */
	u8 nr_gaps;
};

/*
 * The last asynchronous bio of a task, in a slot of its address: a hint to
 * limit_depth, which is not told whose bio it is that needs a tag.
 */
struct frontrow_sender {
	const struct task_struct *task;
	const void *mapping;
	u8 ground;
};

#define FRONTROW_SENDER_BITS	6
#define FRONTROW_MAPPING_BITS	7
/* Requests with pages of several files are in one bucket of their own. */
#define FRONTROW_MIXED		(1 << FRONTROW_MAPPING_BITS)

struct frontrow_grounds;

struct frontrow_data {
	struct request_queue *q;
	struct list_head instance;	/* RCU list of all schedulers in use */
	u64 id;				/* no other has had it */

	spinlock_t lock;
	struct list_head head;		/* inserted at head: before all classes */
	struct rb_root_cached by_turn[FRONTROW_NR_CLASSES]; /* frontrow_rq */
	unsigned int queued[FRONTROW_NR_CLASSES];
	unsigned int nr_queued;
	unsigned int nr_grouped;	/* of these, in groups */
	struct hlist_head by_mapping[FRONTROW_MIXED + 1]; /* frontrow_rq */
	struct hlist_head waiters[FRONTROW_MIXED];

	struct frontrow_turns turns[FRONTROW_NR_CLASSES]; /* of the synchronous ones */
	u16 nr_owned[1 << FRONTROW_OWNER_BITS]; /* synchronous, here */

	unsigned int in_device[FRONTROW_NR_CLASSES];
	unsigned int nr_in_device;
	unsigned int nr_flushing;	/* requests that wait for a flush */
	u32 background_bytes;		/* of its writes, in the device */
	bool other_turn;		/* toggles: see dispatch.c */
	bool is_held;			/* the last dispatch held something back */

	struct frontrow_chain chains[FRONTROW_NR_LEVELS];
	struct frontrow_group groups[FRONTROW_NR_GROUPS];
	u64 served_floor_bytes;		/* of the open group that went last */
	struct frontrow_budget budget;
	struct hrtimer rerun;		/* opens what dispatch held back */

	u64 idle_from_ns;		/* 0: not idle while somebody waits */
	u64 idle_ns;			/* the sum of these times */
	u64 idle_longest_ns;

	struct work_struct resize;	/* applies slice_bytes to the queue */
	unsigned int slice_sectors;	/* largest request wanted; 0: as it was */
	unsigned int native_max_sectors; /* the queue's own limit, to restore */
	unsigned int applied_max_sectors; /* what resize wrote last */

	unsigned int nr_waiters;
	unsigned int nr_unseen;		/* of these, with pages unseen */
	bool any_promoted;		/* since the unawaited were last demoted */
	u64 demote_ns;			/* not before this */
	unsigned int discard_waiters;
	unsigned int discard_pending;	/* of these, none has been seen yet */
	unsigned long boost_mask;	/* bit per frontrow_dependency */
	struct frontrow_counters counters[FRONTROW_NR_DEPENDENCIES];
	u64 dispatched[FRONTROW_NR_CLASSES];
	u64 async_age_peak_ns;	/* the longest that one stayed in the queue */

	unsigned int worker_tags;	/* tags that writeback workers may use */
	unsigned int worker_shallow_depth; /* the same as sbitmap counts it */
	unsigned int task_shallow_depth; /* where somebody depends on it */
	unsigned int half_shallow_depth; /* the background's synchronous ones */
	unsigned int nr_many;		/* synchronous ones that are many for one owner */
	struct frontrow_sender senders[1 << FRONTROW_SENDER_BITS];

	unsigned int async_share_percent;
	unsigned int background_share_percent;
	unsigned int background_most_percent; /* beside an app that is visible */
	unsigned int visible_share_percent[FRONTROW_NR_VISIBLE];
	unsigned int slice_us;

	struct frontrow_grounds __rcu *grounds; /* NULL: everybody is alike */
};

static inline struct frontrow_rq *frontrow_rq(struct request *rq)
{
	struct frontrow_hctx *fh = rq->mq_hctx->sched_data;

	if (rq->internal_tag < 0 || (unsigned int)rq->internal_tag >= fh->nr)
		return NULL;
	return &fh->rqs[rq->internal_tag];
}

/*
 * Of the flags only such as do not change are asked for, or those that only the task
 * itself changes, of itself. Others do change meanwhile: a task that is preempted goes
 * on without PF_BLOCK_TS.
 */
static inline unsigned int frontrow_flags(const struct task_struct *task)
{
	return READ_ONCE(task->flags);
}

/* jbd2 for one; a writeback worker and kswapd do nobody's work in particular. */
static inline bool frontrow_is_kernels_own(const struct task_struct *task)
{
	return (frontrow_flags(task) & (PF_KTHREAD | PF_WQ_WORKER | PF_KSWAPD)) ==
	       PF_KTHREAD;
}

/* The one whose turn it is in its class; NULL if that is empty. */
static inline struct frontrow_rq *frontrow_first(const struct frontrow_data *fd,
						 enum frontrow_class class)
{
	return rb_entry_safe(rb_first_cached(&fd->by_turn[class]),
			     struct frontrow_rq, in_class);
}

static inline unsigned int frontrow_mapping_hash(const void *mapping)
{
	return hash_ptr(mapping, FRONTROW_MAPPING_BITS);
}

static inline unsigned int frontrow_owner_of_current(void)
{
	return hash_ptr(current->signal, FRONTROW_OWNER_BITS);
}

/* Commands that the device holds at once, over all hardware queues. */
static inline unsigned int frontrow_depth(const struct frontrow_data *fd)
{
	const struct blk_mq_tag_set *set = fd->q->tag_set;

	return set->flags & BLK_MQ_F_TAG_HCTX_SHARED ? set->queue_depth :
	       set->queue_depth * fd->q->nr_hw_queues;
}

/* ground.c: who is in the foreground and who in the background */
enum frontrow_ground frontrow_ground_of_bio(struct frontrow_data *fd,
					    struct bio *bio);
enum frontrow_ground frontrow_ground_of_current(struct frontrow_data *fd);
ssize_t frontrow_grounds_show(struct frontrow_data *fd,
			      enum frontrow_ground ground, char *page);
int frontrow_grounds_store(struct frontrow_data *fd,
			   enum frontrow_ground ground, const char *page,
			   size_t count);
void frontrow_grounds_exit(struct frontrow_data *fd);
void frontrow_mark_foreground(struct request *rq);

/* queue.c: what a request is, and where it is while it is queued */
enum frontrow_level frontrow_level_of(struct frontrow_data *fd,
				      enum frontrow_ground ground, bool by_kernel);
enum frontrow_class frontrow_class_for_waiter(enum frontrow_ground ground,
					      enum frontrow_level level,
					      bool under_handle);
void frontrow_identify(struct frontrow_data *fd, struct frontrow_rq *fr,
		       struct request *rq);
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

/* turns.c: which request of a class goes next */
void frontrow_take_turn(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_go_first(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_leave_turn(struct frontrow_data *fd, struct frontrow_rq *fr);
void frontrow_use_turn(struct frontrow_data *fd, struct frontrow_rq *fr);

/* chain.c: who waits, and how long the device may idle for him */
struct frontrow_view {
	u64 now_ns;
	enum frontrow_level who;
	bool is_searching;	/* who waits has nothing here, for longer than a window */
	bool is_front_writing;	/* the foreground's own writeback is here */
	u64 next_event_ns;	/* when this may change by itself */
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
			    const struct frontrow_waiter *waiter, u64 now_ns);
void frontrow_waiter_ends(struct frontrow_data *fd,
			  const struct frontrow_waiter *waiter);
void frontrow_idle_changes(struct frontrow_data *fd, bool is_idle, u64 now_ns);

static inline bool frontrow_somebody_waits(const struct frontrow_data *fd)
{
	enum frontrow_level level;

	for (level = FRONTROW_ANYBODY; level < FRONTROW_NR_LEVELS; level++)
		if (fd->chains[level].nr_waiting || fd->chains[level].nr_requests)
			return true;
	return false;
}

/*
 * Adds up the time in which the device had nothing to do although somebody waited
 * and something was queued. Called whenever one of the three may have changed.
 */
static inline void frontrow_count_idle(struct frontrow_data *fd, u64 now_ns)
{
	bool is_idle = !fd->nr_in_device && fd->nr_queued && !fd->nr_flushing &&
		       frontrow_somebody_waits(fd);

	if (is_idle != !!fd->idle_from_ns)
		frontrow_idle_changes(fd, is_idle, now_ns);
}

static inline bool frontrow_is_open(const struct frontrow_view *view,
				    enum frontrow_class class)
{
	return view->who <= frontrow_classes[class].open_to &&
	       !(view->is_front_writing && class > FRONTROW_FG_ASYNC);
}

/* dispatch.c: which request goes next, or none */
struct request *frontrow_dispatch(struct blk_mq_hw_ctx *hctx);
bool frontrow_has_work(struct blk_mq_hw_ctx *hctx);
void frontrow_rerun_init(struct frontrow_data *fd);
void frontrow_rerun_exit(struct frontrow_data *fd);

/* budget.c: how much asynchronous work the device may hold */

/* A window that sync requests disturb says nothing about the device. */
static inline void frontrow_budget_disturb(struct frontrow_data *fd)
{
	fd->budget.window_start_ns = 0;
}

void frontrow_budget_init(struct frontrow_data *fd);
void frontrow_budget_exit(struct frontrow_data *fd);
void frontrow_budget_full(struct frontrow_data *fd);
void frontrow_budget_charge(struct frontrow_data *fd,
			    const struct frontrow_rq *fr,
			    const struct frontrow_view *view);
void frontrow_budget_learn(struct frontrow_data *fd,
			   const struct frontrow_rq *fr, u64 now_ns);

/* A request has come back from the device. */
static inline void frontrow_budget_complete(struct frontrow_data *fd,
					    const struct frontrow_rq *fr, u64 now_ns)
{
	if (frontrow_is_group(fr->class))
		frontrow_budget_learn(fd, fr, now_ns);
}

enum frontrow_class frontrow_budget_due(struct frontrow_data *fd,
					const struct frontrow_view *view);
u64 frontrow_budget_wait_ns(struct frontrow_data *fd,
			    const struct frontrow_view *view);
bool frontrow_budget_has_room(const struct frontrow_data *fd, u32 bytes);

/* wait.c: from a wait to a promotion */
bool frontrow_wait_begins(struct frontrow_data *fd,
			  struct frontrow_waiter *waiter, bool surely_writeback);
void frontrow_wait_unplaced(struct frontrow_waiter *waiter);
void frontrow_wait_ended(struct frontrow_waiter *waiter);
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

/* What was promoted and is awaited by nobody is the background's again. */
static inline void frontrow_demote_unawaited(struct frontrow_data *fd, u64 now_ns)
{
	if (fd->any_promoted && now_ns >= fd->demote_ns)
		frontrow_demote(fd, now_ns);
}

extern const char *const frontrow_dependency_names[FRONTROW_NR_DEPENDENCIES];

/* detect.c: hooks that see a task begin and end to wait */
int frontrow_detect_init(void);
void frontrow_detect_exit(void);
void frontrow_detect_add(struct frontrow_data *fd);
void frontrow_detect_del(struct frontrow_data *fd);
unsigned int frontrow_detect_missed(void);
int frontrow_detect_emit_hits(char *page, int length);

/* main.c */
void frontrow_flush_begins(struct frontrow_data *fd, struct request *rq);

/* tags.c: what asynchronous requests may take of the scheduler's tags */
int frontrow_tags_init(void);
void frontrow_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void frontrow_note_sender(struct frontrow_data *fd, enum frontrow_ground ground,
			  const void *mapping);
void frontrow_tags_updated(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx);

/* sysfs.c */
extern struct elv_fs_entry frontrow_attrs[];

#endif /* FRONTROW_H */
