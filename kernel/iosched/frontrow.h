/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The frontrow I/O scheduler: what its files share.
 *
 * A foreground operation stalls behind background writes in four places, in
 * the order a request meets them: it waits for a tag (tags.c), it waits for a
 * write that the scheduler serves last (detect.c, boost.c), it waits behind
 * what the device has already taken (budget.c), and between two of its own
 * requests the device fills up again (dispatch.c). Each file holds one of the
 * four levers and says there how it works. Who is in front, where somebody has
 * said so, ground.c knows.
 */
#ifndef FRONTROW_H
#define FRONTROW_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hash.h>
#include <linux/hrtimer.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "frontrow_abi.h"

/*
 * Dispatch classes, most urgent first. boosted holds writes that were
 * submitted as asynchronous and that a task turned out to wait for; it stays
 * below everything synchronous (QASIO, section 5.3). Without a foreground and
 * a background (ground.c) seven of them are empty.
 *
 * Of the apps that are seen but not worked with each has a class, the one that
 * covers most of the screen the first: between fg_write and sync_read, but while
 * the foreground waits each has to make do with its share.
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

/* From here on a class may have to make do with a share (budget.c). */
#define FRONTROW_SHARED FRONTROW_VISIBLE_1
#define FRONTROW_NR_SHARED (FRONTROW_NR_CLASSES - FRONTROW_SHARED)
#define FRONTROW_NR_VISIBLE (FRONTROW_FG_ASYNC - FRONTROW_VISIBLE_1)

static inline bool frontrow_class_is_shared(enum frontrow_class class)
{
	return class >= FRONTROW_SHARED;
}

static inline bool frontrow_class_is_visible(enum frontrow_class class)
{
	return class >= FRONTROW_VISIBLE_1 && class < FRONTROW_FG_ASYNC;
}

static inline bool frontrow_class_is_async(enum frontrow_class class)
{
	return class >= FRONTROW_FG_ASYNC && class != FRONTROW_BG_SYNC;
}

static inline bool frontrow_class_is_sync(enum frontrow_class class)
{
	return class != FRONTROW_BOOSTED && !frontrow_class_is_async(class);
}

/* Whose a request or a task is (FastTrack). */
enum frontrow_ground {
	FRONTROW_MIDDLE,	/* a service, the kernel, or nobody has said */
	FRONTROW_FOREGROUND,
	FRONTROW_BACKGROUND,
	FRONTROW_VISIBLE,	/* seen, but not worked with; three, as the classes */
	FRONTROW_NR_GROUNDS = FRONTROW_VISIBLE + FRONTROW_NR_VISIBLE,
};

/* Why a task waits for a write that nobody was meant to wait for. */
enum frontrow_dependency {
	FRONTROW_META,		/* buffer lock: D_meta */
	FRONTROW_DATA,		/* folio under writeback: D_data and D_sync */
	FRONTROW_JOURNAL,	/* jbd2 itself waits: I_jcommit for all behind it */
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
	FRONTROW_RQ_QUEUED,	/* on its class's fifo */
	FRONTROW_RQ_IN_DEVICE,	/* dispatched, on the in_device list */
	FRONTROW_RQ_FLUSHING,	/* in the block layer's flush machinery */
};

/*
 * Our part of a request, found by its scheduler tag. (elv.priv shares its
 * memory with the flush state on some kernels.)
 */
struct frontrow_rq {
	struct list_head in_device_node;
	const void *mapping;	/* of the first page; an opaque key */
	u64 inserted_ns;
	u64 in_class_since_ns;
	u64 dispatched_ns;
	u32 bytes;
	u8 class;
	u8 ground;
	u8 state;
	bool is_behind_write;	/* counted in behind_bytes */
	bool under_handle;	/* its submitter holds a journal handle */
};

struct frontrow_hctx {
	unsigned int nr;
	struct frontrow_rq *rqs;
};

/* A task that sleeps for a folio of a mapping to be written. */
struct frontrow_waiter {
	const void *mapping;	/* NULL: the slot is free */
	unsigned long begin_pfn, end_pfn; /* the folio */
	const void *task;
	u64 expires_ns;
	u8 dependency;
	bool pending;		/* nothing of the mapping has been seen yet */
	bool unseen;		/* the folio has not been seen in the queue */
	bool for_writeback;	/* it sleeps until PG_writeback is cleared */
	u8 class;		/* what it waits for goes into */
	bool in_front;		/* the task is the foreground's */
};

#define FRONTROW_MAX_WAITERS	16

/* How fast the device takes asynchronous writes, and what follows (budget.c). */
struct frontrow_budget {
	u64 bytes_per_s;	/* measured while nobody waits */
	unsigned int open_limit; /* async requests in the device, nobody waiting */
	/* While somebody waits, a class may send if its credit is positive. */
	s64 credit_bytes[FRONTROW_NR_SHARED];
	u64 credit_updated_ns;
	enum frontrow_class last_due;	/* the one whose turn it was */
	u64 discard_ns;		/* mean time that a discard takes */

	u64 window_start_ns;	/* 0: no undisturbed window is running */
	u64 window_bytes;
	u64 window_latency_ns;
	unsigned int window_requests;
	bool window_full;	/* open_limit was reached in this window */
};

/* Somebody's synchronous requests, one after another, and the gaps between. */
struct frontrow_chain {
	u64 idle_since_ns;		/* last completion */
	u64 think_ns;			/* mean gap */
	u64 deviation_ns;		/* mean of how far gaps are from it */
};

/*
 * The last asynchronous bio of a task, in a slot of its address: a hint to
 * limit_depth, which is not told whose bio it is that needs a tag.
 */
struct frontrow_sender {
	const struct task_struct *task;
	u8 ground;
};

#define FRONTROW_SENDER_BITS	6

struct frontrow_grounds;

struct frontrow_data {
	struct request_queue *q;
	struct list_head instance;	/* RCU list of all schedulers in use */

	spinlock_t lock;
	struct list_head head;		/* inserted at head: before all classes */
	struct list_head fifo[FRONTROW_NR_CLASSES];
	unsigned int queued[FRONTROW_NR_CLASSES];
	struct rb_root sorted[2];	/* by direction, for merging */

	struct list_head in_device;	/* frontrow_rq.in_device_node */
	unsigned int nr_in_device[FRONTROW_NR_CLASSES];
	u32 behind_bytes;		/* of writes from behind, in the device */
	unsigned int nr_flushing;	/* requests that wait for a flush */
	bool served_overdue;		/* the last dispatch looked at overdue ones */

	struct frontrow_chain chain;	/* of everybody */
	struct frontrow_chain front_chain; /* of the foreground */
	struct frontrow_chain visible_chain; /* of what is seen beside it */
	u64 seen_since_ns;		/* when either last began to wait */
	u64 urgent_done_ns;		/* last completion of a sync or boosted one */
	struct hrtimer rerun;		/* opens what dispatch held back */
	struct work_struct resize;	/* applies slice_bytes to the queue */

	struct frontrow_budget budget;
	unsigned int slice_sectors;	/* largest request wanted; 0: as it was */
	unsigned int native_max_sectors; /* the queue's own limit, to restore */
	unsigned int applied_max_sectors; /* what resize wrote last */
	bool wbt_was_on;

	struct frontrow_waiter waiters[FRONTROW_MAX_WAITERS];
	unsigned int nr_waiters;
	unsigned int nr_unseen;		/* of these, with the folio unseen */
	bool any_promoted;		/* since the unawaited were last demoted */
	u64 waiting_since_ns;		/* when somebody began to, of all who wait */
	u64 waited_until_ns;		/* the end of the last wait */
	unsigned int nr_fsyncs;		/* tasks inside fsync */
	unsigned int nr_front_waiters;	/* of the waiters, the foreground's */
	unsigned int nr_front_fsyncs;
	unsigned int discard_waiters;
	unsigned int discard_pending;	/* of these, none has been seen yet */
	unsigned long boost_mask;	/* bit per frontrow_dependency */
	struct frontrow_counters counters[FRONTROW_NR_DEPENDENCIES];
	u64 dispatched[FRONTROW_NR_CLASSES];
	u64 async_age_peak_ns;	/* the longest that one stayed in the queue */

	unsigned int worker_tags;	/* tags that writeback workers may use */
	unsigned int task_tags;		/* ... where somebody depends on them */
	unsigned int worker_shallow_depth; /* the same as sbitmap counts it */
	unsigned int task_shallow_depth; /* where somebody depends on it */
	unsigned int behind_shallow_depth; /* synchronous ones from behind */
	unsigned int async_share_percent;
	unsigned int background_share_percent;
	unsigned int visible_share_percent[FRONTROW_NR_VISIBLE];
	unsigned int slice_us;

	struct frontrow_sender senders[1 << FRONTROW_SENDER_BITS];
	struct frontrow_grounds __rcu *grounds; /* NULL: everybody is alike */
};

static inline struct frontrow_rq *frontrow_rq(struct request *rq)
{
	struct frontrow_hctx *fh = rq->mq_hctx->sched_data;

	if (rq->internal_tag < 0 || (unsigned int)rq->internal_tag >= fh->nr)
		return NULL;
	return &fh->rqs[rq->internal_tag];
}

/* main.c */
void frontrow_flush_begins(struct frontrow_data *fd, struct request *rq);

/* ground.c: who is in front and who is behind */
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

/* queue.c: the classes as lists */
enum frontrow_class frontrow_class_of(struct request *rq);
enum frontrow_class frontrow_class_for_waiter(enum frontrow_ground ground,
					      bool under_handle);
void frontrow_enqueue(struct frontrow_data *fd, struct request *rq,
		      enum frontrow_class class);
void frontrow_dequeue(struct frontrow_data *fd, struct request *rq);
void frontrow_reclass(struct frontrow_data *fd, struct request *rq,
		      enum frontrow_class class);
struct request *frontrow_oldest(const struct frontrow_data *fd,
				enum frontrow_class class);
void frontrow_put_first(struct frontrow_data *fd, struct request *rq);
struct list_head *frontrow_put_by_age(struct frontrow_data *fd,
				      struct request *rq,
				      struct list_head *place);
const char *frontrow_class_name(enum frontrow_class class);

/* dispatch.c: which request goes next, or none */
struct request *frontrow_dispatch(struct blk_mq_hw_ctx *hctx);
bool frontrow_has_work(struct blk_mq_hw_ctx *hctx);
bool frontrow_somebody_waits(struct frontrow_data *fd, u64 now_ns);
bool frontrow_foreground_waits(struct frontrow_data *fd, u64 now_ns);
bool frontrow_seen_waits(struct frontrow_data *fd, u64 now_ns);
void frontrow_seen_begins(struct frontrow_data *fd, u64 now_ns);
bool frontrow_class_is_open(struct frontrow_data *fd, enum frontrow_class class,
			    u64 now_ns);
void frontrow_sync_begins(struct frontrow_data *fd, enum frontrow_ground ground,
			  u64 now_ns);
void frontrow_sync_ended(struct frontrow_data *fd, enum frontrow_ground ground,
			 u64 now_ns);
void frontrow_fsync_begins(struct frontrow_data *fd, bool in_front);
void frontrow_fsync_ended(struct frontrow_data *fd, bool in_front);
void frontrow_rerun_init(struct frontrow_data *fd);
void frontrow_rerun_exit(struct frontrow_data *fd);

/* budget.c: how much asynchronous work the device may hold */
void frontrow_budget_init(struct frontrow_data *fd);
void frontrow_budget_exit(struct frontrow_data *fd);
void frontrow_budget_disturb(struct frontrow_data *fd);
void frontrow_budget_full(struct frontrow_data *fd);
void frontrow_budget_charge(struct frontrow_data *fd,
			    const struct frontrow_rq *fr, u64 now_ns);
void frontrow_budget_complete(struct frontrow_data *fd,
			      const struct frontrow_rq *fr, u64 now_ns);
enum frontrow_class frontrow_budget_due(struct frontrow_data *fd, u64 now_ns);
u64 frontrow_budget_wait_ns(struct frontrow_data *fd, u64 now_ns);
bool frontrow_budget_has_room_behind(const struct frontrow_data *fd, u32 bytes);

/* boost.c: from a wait to a promotion */
enum frontrow_outcome frontrow_boost_folio(struct frontrow_data *fd,
					   struct folio *folio,
					   const void *mapping,
					   enum frontrow_dependency dependency,
					   bool surely_writeback);
void frontrow_boost_discards(struct frontrow_data *fd);
void frontrow_demote_unawaited(struct frontrow_data *fd, u64 now_ns);
void frontrow_wait_ended(struct frontrow_data *fd, const void *task,
			 enum frontrow_dependency dependency, u64 slept_ns);
void frontrow_discard_wait_ended(struct frontrow_data *fd, u64 slept_ns);
enum frontrow_class frontrow_class_awaited(struct frontrow_data *fd,
					   struct request *rq,
					   enum frontrow_class class, u64 now_ns,
					   bool *has_folio);
bool frontrow_discard_is_awaited(struct frontrow_data *fd,
				 const struct frontrow_rq *fr);
bool frontrow_waiter_is_stuck(struct frontrow_data *fd, u64 window_ns,
			      u64 now_ns);
const void *frontrow_mapping_of(struct bio *bio);
extern const char *const frontrow_dependency_names[FRONTROW_NR_DEPENDENCIES];

/* detect.c: hooks that see a task begin and end to wait */
int frontrow_detect_init(void);
void frontrow_detect_exit(void);
void frontrow_detect_add(struct frontrow_data *fd);
void frontrow_detect_del(struct frontrow_data *fd);
unsigned int frontrow_detect_missed(void);

/* tags.c: what asynchronous requests may take of the scheduler's tags */
int frontrow_tags_init(void);
void frontrow_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void frontrow_note_sender(struct frontrow_data *fd, blk_opf_t opf,
			  enum frontrow_ground ground);
void frontrow_tags_updated(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx);

/* sysfs.c */
extern struct elv_fs_entry frontrow_attrs[];

#endif /* FRONTROW_H */
