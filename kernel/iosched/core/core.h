/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy of the scheduler: which request goes next, or none yet.
 *
 * A function of which requests came, who waits, which requests completed, and
 * the time; of nothing else. The module and the host's tests compile the same
 * files. The caller serializes all calls on one struct frontrow_core:
 *
 *	frontrow_identify()	a request has come: its level and class
 *	frontrow_insert()	... and is queued
 *	frontrow_look()		who waits most urgently
 *	frontrow_next()		the request to dispatch, or NULL; then
 *				frontrow_look_again_ns() says when to ask again
 *				if no request completes before that, or
 *				frontrow_rests() that a few have to
 *	frontrow_complete()	a dispatched request has completed
 *
 * frontrow_waiter_begins() and _ends() tell of tasks that wait,
 * frontrow_throttled() of tasks that have dirtied more than they may, and
 * frontrow_flush_begins() and _ends() of requests that are in the block layer's
 * flush machinery.
 */
#ifndef FRONTROW_CORE_H
#define FRONTROW_CORE_H

#include "platform.h"

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
/* One request in the device and one that its driver prepares. */
#define OPEN_LIMIT_MIN		2U
/* Rate before the first window: that of a slow card. */
#define INITIAL_BYTES_PER_S	(32ULL << 20)
#define INITIAL_REQUEST_NS	(500 * NSEC_PER_USEC)
#define INITIAL_REQUEST_BYTES	(16U << 10)
/* Below this size the cost of a command outweighs the gain of a waiter. */
#define MIN_SLICE_BYTES		(64U << 10)
/* Longest slice while any cgroup has a role. */
#define ROLES_SLICE_US	1000U
/* Shortest timer: the timer and kblockd cost about as much. */
#define MIN_WAIT_NS		(500 * NSEC_PER_USEC)
/*
 * Time of the device that a single action takes, and an app's whole start. A
 * process that has used more comes after those that have used less. A pause
 * forgives a multiple of its length.
 */
#define LONG_NS			(500ULL * NSEC_PER_MSEC)
#define BULK_NS			(2000ULL * NSEC_PER_MSEC)
#define USED_MOST_NS		(BULK_NS * 5 / 4)
#define FORGIVEN		2
/* The share of writeback where as many wait for it as for others: nobody is preferred. */
#define EQUAL_PERCENT		50U
/* A throttled task sleeps at most this long (MAX_PAUSE), and then throttles again. */
#define THROTTLED_NS		(200 * NSEC_PER_MSEC)
/*
 * A closed class's share grows with the age of its oldest request, up to 100 %.
 */
#define AGE_RAMP_BEGIN_NS	(3000ULL * NSEC_PER_MSEC)
#define AGE_RAMP_END_NS		(4500ULL * NSEC_PER_MSEC)
/*
 * Longest debt of a share, of the device's time: what a class of the background pays
 * until its share begins to grow, so that a device's stalls are paid in full.
 */
#define DEBT_NS_MAX		(240 * NSEC_PER_MSEC)
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

/*
 * Dispatch classes, in the order of statistics and traces, which is that of their
 * urgency: first those that are open to more levels, of equals those that are
 * dispatched first. "boosted" holds asynchronous writes that a task waits for; it comes
 * after all synchronous classes (QASIO, section 5.3). Each visible app has a class of
 * its own, up to three.
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

/* All that is particular to a class (classes.c), but for its share (budget.c). */
struct frontrow_class_rules {
	const char *name;
	u8 open_to;		/* highest level of waiters at which it is open */
	u8 serves;		/* levels whose tasks may wait for a request of it: a bit each */
	u8 pays_for;		/* levels for whose tasks the kernel works at its expense */
	bool is_async;
	u16 deadline_ms;	/* after this time it gets every other dispatch; 0: never */
};

extern const struct frontrow_class_rules frontrow_classes[FRONTROW_NR_CLASSES];

/* Strict priority among open classes; those in turns come last, the least served first. */
#define FRONTROW_NR_IN_TURNS 3
#define FRONTROW_NR_IN_ORDER (FRONTROW_NR_CLASSES - FRONTROW_NR_IN_TURNS)
extern const enum frontrow_class frontrow_in_order[FRONTROW_NR_IN_ORDER];
extern const enum frontrow_class frontrow_in_turns[FRONTROW_NR_IN_TURNS];

static inline bool frontrow_is_more_urgent(enum frontrow_class class,
					   enum frontrow_class other)
{
	return class < other;
}

/*
 * Not where whoever waits has sent the request himself. Those of groups may be held
 * up, and of boosted ones somebody more urgent may wait for some.
 */
static inline bool frontrow_may_be_promoted(enum frontrow_class class)
{
	return class >= FRONTROW_BOOSTED;
}

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

enum frontrow_state {
	FRONTROW_RQ_IDLE,	/* not ours: free, merged away or bypassing us */
	FRONTROW_RQ_QUEUED,	/* in its class's tree */
	FRONTROW_RQ_IN_DEVICE,	/* dispatched */
	FRONTROW_RQ_FLUSHING,	/* in the block layer's flush machinery */
};

/* A request as the policy knows it. */
struct frontrow_item {
	struct rb_node in_class;	/* while queued: by turn */
	struct list_head by_age;	/* ... and by in_class_since_ns */
	struct list_head before_flush;	/* ... if it precedes_flush and its class is a group */
	const void *mapping;	/* of its first page; an opaque key, NULL for a read */
	u64 turn;		/* smallest goes first in its class */
	u64 inserted_ns;	/* or begin of its flush sequence */
	u64 in_class_since_ns;
	u64 dispatched_ns;
	u32 bytes;		/* that it transfers; see frontrow_cost_bytes() */
	u32 charged_bytes;	/* charged to its payer's turn; 0: none */
	u16 payer;		/* owner that is charged: a process or a file */
	u16 owner;		/* its submitter's process */
	u8 class;
	u8 own_class;		/* its class without a promotion */
	u8 role;
	u8 level;		/* enum frontrow_level of its submitter */
	u8 state;
	bool is_read;
	bool is_write;		/* of data: no discard, no flush */
	bool is_discard;
	bool is_sync;
	bool is_realtime;	/* its submitter has the realtime class itself */
	bool is_counted;	/* in its level's chain */
	bool is_background_write;
	bool uses_share;	/* its class was not open at its dispatch */
	bool under_handle;	/* its submitter holds a journal handle */
	bool by_kernel;		/* its submitter is a kernel thread, jbd2 for one */
	bool by_kernel_thread;	/* ... or a worker */
	bool precedes_flush;	/* each flush of the block layer waits until it has completed */
	bool is_awaited_unseen;	/* somebody may wait for this write, and nobody will say so */
};

/* A task that waits: asleep until pages of a file are written, or inside fsync. */
struct frontrow_wait {
	u64 each_waiter_ns;	/* that of the core at its begin */
	u8 level;
	u16 owner;		/* the task's process */
	bool is_fsync;
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
	u64 idle_since_ns;	/* end of the last one; may be to come (frontrow_throttled()) */
	u64 used_ns;		/* time of the device, less what pauses have forgiven */
	u32 nr_here;
};

/* Account of a group. */
struct frontrow_group {
	s64 credit_ns;		/* of the device; while closed it may dispatch if positive */
	u64 served_ns;		/* while open: the group with the least goes next */
	u64 request_ns;		/* mean time of the device that its last requests took */
	u64 request_bytes;	/* mean size of the same */
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
	u64 credit_updated_ns;
	u64 completed_ns;	/* last completion of any request */
	enum frontrow_class last_due;	/* group that used its share last */

	u64 written_since_ns;	/* start of the window of all writes */
	u64 written_bytes;

	u64 window_start_ns;	/* 0: no undisturbed window is running */
	u64 window_bytes;
	unsigned int window_requests;

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

struct frontrow_core {
	struct rb_root_cached by_turn[FRONTROW_NR_CLASSES]; /* frontrow_item */
	struct list_head by_age[FRONTROW_NR_CLASSES];	/* the same, oldest first */
	unsigned int queued[FRONTROW_NR_CLASSES];
	unsigned int nr_queued;
	unsigned int nr_grouped;	/* of nr_queued: in groups */

	struct frontrow_turns turns[FRONTROW_NR_CLASSES]; /* synchronous classes only */
	/* Synchronous requests of each owner, queued or in the device. */
	u16 nr_owned[1 << FRONTROW_OWNER_BITS];
	struct frontrow_process processes[1 << FRONTROW_OWNER_BITS];
	u64 each_waiter_ns;	/* time of the device that each waiting task has caused */
	/* The last task of each level that waits for the page cache. */
	struct {
		u64 until_ns;
		u16 owner;
	} throttled[FRONTROW_NR_LEVELS];
	u64 nr_throttled;		/* times that a task was throttled */

	unsigned int in_device[FRONTROW_NR_CLASSES];
	unsigned int nr_in_device;
	unsigned int nr_flushing;	/* requests that wait for a flush */
	unsigned int nr_flushing_awaited; /* ... for which not only the background waits */
	struct list_head before_flush;	/* frontrow_item, oldest first */
	u32 background_bytes;		/* writes of the background in the device */
	enum frontrow_class last_class;	/* of the request that was dispatched last */
	bool other_turn;		/* toggles: see pick.c */

	struct frontrow_chain chains[FRONTROW_NR_LEVELS];
	unsigned int nr_awaited;	/* requests and waiting tasks of all levels but the background's */
	unsigned int nr_waiters;	/* waiting tasks of all levels */
	struct frontrow_group groups[FRONTROW_NR_GROUPS];
	u64 served_floor_ns;		/* of the open group that was served last */
	struct frontrow_budget budget;

	u64 idle_from_ns;		/* start of the present idle time; 0: none */
	u64 idle_ns;			/* sum of idle times */
	u64 idle_longest_ns;
	u64 dispatched[FRONTROW_NR_CLASSES];
	u64 async_age_peak_ns;		/* longest time in the queue */

	bool has_roles;			/* any cgroup has a role */
	unsigned int depth;		/* commands that the device or its driver holds at once */
	bool is_serial;			/* the device works on one at a time */
	u64 most_bytes;			/* of a request, by the device's own limit */
	u64 slice_bytes;		/* the limit that is wanted */
	bool is_slice_new;		/* slice_bytes has changed; the caller resets it */

	unsigned int async_share_percent;
	unsigned int background_share_percent;
	unsigned int background_most_percent; /* limit of the same beside visible apps */
	unsigned int visible_share_percent[FRONTROW_NR_VISIBLE];
	unsigned int slice_us;
};

/* What frontrow_look() found. */
struct frontrow_view {
	u64 now_ns;
	enum frontrow_level who;
	bool has_roles;
	bool is_searching;	/* the waiter has had no request here for longer than a window */
	bool is_foreground_writing;	/* its asynchronous writes are here */
	u64 next_event_ns;	/* time at which the view changes without an event, or U64_MAX */
};

/* Next request of @class; NULL if there is none. */
static inline struct frontrow_item *frontrow_first(const struct frontrow_core *core,
						   enum frontrow_class class)
{
	return rb_entry_safe(rb_first_cached(&core->by_turn[class]),
			     struct frontrow_item, in_class);
}

/* The one that has been in @class for longest; NULL if there is none. */
static inline struct frontrow_item *frontrow_oldest(const struct frontrow_core *core,
						    enum frontrow_class class)
{
	const struct list_head *list = &core->by_age[class];

	return list->next == list ? NULL : container_of(list->next, struct frontrow_item, by_age);
}

/*
 * The background of names is equal to services that have none. Without names it is
 * who has the idle class, and comes after all others.
 */
static inline bool frontrow_is_open(const struct frontrow_view *view,
				    enum frontrow_class class)
{
	if (class == FRONTROW_BG_SYNC && !view->has_roles)
		return view->who == FRONTROW_LEVEL_NONE;
	return view->who <= frontrow_classes[class].open_to &&
	       !(view->is_foreground_writing &&
		 frontrow_is_more_urgent(FRONTROW_FG_ASYNC, class));
}

/* It is served in a more urgent class than its own, since a task waits for it. */
static inline bool frontrow_is_promoted(const struct frontrow_item *item)
{
	return item->class != item->own_class;
}

/*
 * Every commit waits for a task with a journal handle, so it must not wait for
 * its reads, or for blocks that it zeroes. File pages are excluded: they are
 * only submitted under a handle, and would delay the commit itself.
 */
static inline bool frontrow_holds_up_commit(const struct frontrow_item *item)
{
	return item->under_handle && (item->is_read || !item->mapping);
}

/*
 * Bytes by which a request is measured and charged. One that only names blocks, as
 * WRITE_ZEROES does, may be of gigabytes and costs no more than a small one.
 */
static inline u32 frontrow_cost_bytes(u32 bytes, bool has_data)
{
	return has_data ? bytes : min(bytes, MIN_SLICE_BYTES);
}

/* classes.c: level and class */
enum frontrow_level frontrow_level_of(const struct frontrow_core *core,
				      enum frontrow_role role, bool by_kernel,
				      unsigned int owner, u64 now_ns);
enum frontrow_class frontrow_class_for_waiter(enum frontrow_role role,
					      enum frontrow_level level,
					      bool is_for_all);
void frontrow_identify(const struct frontrow_core *core, struct frontrow_item *item,
		       u64 now_ns);

/* budget.c */
unsigned int frontrow_async_limit(const struct frontrow_core *core);

/* queue.c: a request's way from its insertion to its completion */
void frontrow_core_init(struct frontrow_core *core, u64 now_ns);
void frontrow_insert(struct frontrow_core *core, struct frontrow_item *item,
		     enum frontrow_class class, bool goes_first);
void frontrow_reclass(struct frontrow_core *core, struct frontrow_item *item,
		      enum frontrow_class class, u64 now_ns);
void frontrow_merge_into(struct frontrow_core *core, struct frontrow_item *item,
			 struct frontrow_item *next, enum frontrow_class class,
			 u64 now_ns);
void frontrow_return(struct frontrow_core *core, struct frontrow_item *item, u64 now_ns);
void frontrow_complete(struct frontrow_core *core, struct frontrow_item *item, u64 now_ns);
void frontrow_flush_begins(struct frontrow_core *core, struct frontrow_item *item,
			   u64 now_ns);
void frontrow_flush_ends(struct frontrow_core *core, struct frontrow_item *item,
			 bool is_complete, u64 now_ns);

/* chain.c: who waits */
void frontrow_look(const struct frontrow_core *core, u64 now_ns,
		   struct frontrow_view *view);
void frontrow_waiter_begins(struct frontrow_core *core, struct frontrow_wait *wait,
			    u64 now_ns);
void frontrow_waiter_ends(struct frontrow_core *core, const struct frontrow_wait *wait,
			  u64 now_ns);
void frontrow_count_idle(struct frontrow_core *core, u64 now_ns);

/* process.c */
void frontrow_throttled(struct frontrow_core *core, enum frontrow_role role,
			unsigned int owner, u64 bytes, u64 now_ns);

/* pick.c: which request goes next, or none */
struct frontrow_item *frontrow_next(struct frontrow_core *core,
				    const struct frontrow_view *view);
u64 frontrow_look_again_ns(const struct frontrow_core *core,
			   const struct frontrow_view *view);
bool frontrow_rests(const struct frontrow_core *core, const struct frontrow_view *view);
bool frontrow_has_rested(const struct frontrow_core *core);
bool frontrow_is_for_foreground(const struct frontrow_core *core,
				const struct frontrow_item *item);

/* turns.c: which request of a class goes next */
void frontrow_go_first(struct frontrow_core *core, struct frontrow_item *item);

#endif /* FRONTROW_CORE_H */
