// SPDX-License-Identifier: GPL-2.0
/*
 * Third and fourth lever: what is in the device, and the gaps of a chain.
 *
 * What the device has taken cannot be recalled, and a foreground operation is
 * a chain of requests: an fsync writes data, journal blocks and a commit
 * record, each when the one before is done. So while anyone waits, and for a
 * short while after, asynchronous requests stay in the queue but for a
 * guaranteed share (budget.c). The while is twice the gap that chains have
 * shown lately, or as far above it as gaps go: an app that reads a photo by four
 * requests and then decodes it has three short gaps and a long one. Where requests
 * come far apart there is nothing to anticipate.
 *
 *	nobody waits      async up to what the device can use (budget.c)
 *	somebody waits    sync read > sync write > boosted, async by its share
 *	the foreground    its reads > its writes > the above; what is seen beside
 *	waits             it, and what is behind, by their shares, also what is
 *			  synchronous there
 *	what is seen      before all the above; what is behind by its share
 *	beside it waits
 *	somebody is       writes from behind, one after another, as much as the
 *	behind            device is rid of in a slice (budget.c)
 */
#include "frontrow.h"
#include "trace.h"

/*
 * How long a class may be passed over by more urgent ones. When its oldest
 * request is older it gets every other dispatch. Async and discard have the
 * guaranteed share instead.
 */
static const u64 deadline_ns[FRONTROW_NR_CLASSES] = {
	[FRONTROW_FG_WRITE]	= 100 * NSEC_PER_MSEC,
	[FRONTROW_SYNC_READ]	= 200 * NSEC_PER_MSEC,
	[FRONTROW_SYNC_WRITE]	= 100 * NSEC_PER_MSEC,
	[FRONTROW_BOOSTED]	= 50 * NSEC_PER_MSEC,
	[FRONTROW_VISIBLE_1]	= 200 * NSEC_PER_MSEC,
	[FRONTROW_VISIBLE_2]	= 200 * NSEC_PER_MSEC,
	[FRONTROW_VISIBLE_3]	= 200 * NSEC_PER_MSEC,
	[FRONTROW_BG_SYNC]	= 200 * NSEC_PER_MSEC,
};

#define MIN_WINDOW_NS	(1 * NSEC_PER_MSEC)
#define MAX_WINDOW_NS	(8 * NSEC_PER_MSEC)
/* A gap says no more than "not a chain" beyond this. */
#define MAX_THINK_NS	(20 * NSEC_PER_MSEC)

static unsigned int nr_here(const struct frontrow_data *fd,
			    enum frontrow_class class)
{
	return fd->queued[class] + fd->nr_in_device[class];
}

static unsigned int nr_front(const struct frontrow_data *fd)
{
	return nr_here(fd, FRONTROW_FG_READ) + nr_here(fd, FRONTROW_FG_WRITE);
}

static unsigned int nr_visible(const struct frontrow_data *fd)
{
	return nr_here(fd, FRONTROW_VISIBLE_1) + nr_here(fd, FRONTROW_VISIBLE_2) +
	       nr_here(fd, FRONTROW_VISIBLE_3);
}

static unsigned int nr_sync(const struct frontrow_data *fd)
{
	return nr_front(fd) + nr_visible(fd) + nr_here(fd, FRONTROW_SYNC_READ) +
	       nr_here(fd, FRONTROW_SYNC_WRITE) +
	       nr_here(fd, FRONTROW_BG_SYNC) + fd->nr_flushing;
}

/* Of those that have to share just now. */
static unsigned int nr_shared_in_device(struct frontrow_data *fd, u64 now_ns)
{
	enum frontrow_class class;
	unsigned int nr = 0;

	for (class = FRONTROW_SHARED; class < FRONTROW_NR_CLASSES; class++)
		if (fd->nr_in_device[class] &&
		    !frontrow_class_is_open(fd, class, now_ns))
			nr += fd->nr_in_device[class];
	return nr;
}

static bool shared_queued(const struct frontrow_data *fd)
{
	enum frontrow_class class;

	for (class = FRONTROW_SHARED; class < FRONTROW_NR_CLASSES; class++)
		if (fd->queued[class])
			return true;
	return false;
}

/* Four mean deviations are beyond nearly all, as in TCP's timeouts (RFC 6298). */
static u64 window_ns(const struct frontrow_chain *chain)
{
	u64 window_ns = chain->think_ns +
			max(chain->think_ns, 4 * chain->deviation_ns);

	return clamp_t(u64, window_ns, MIN_WINDOW_NS, MAX_WINDOW_NS);
}

static u64 anticipation_end_ns(const struct frontrow_chain *chain)
{
	if (chain->think_ns > MAX_WINDOW_NS)
		return 0;
	return chain->idle_since_ns + window_ns(chain);
}

/* How long whoever waits is given to send what he waits for. */
static u64 waiters_window_ns(const struct frontrow_data *fd)
{
	if (fd->nr_front_waiters || fd->nr_front_fsyncs)
		return window_ns(&fd->front_chain);
	return window_ns(&fd->chain);
}

bool frontrow_somebody_waits(struct frontrow_data *fd, u64 now_ns)
{
	return nr_sync(fd) || nr_here(fd, FRONTROW_BOOSTED) || fd->nr_waiters ||
	       fd->nr_fsyncs || now_ns < anticipation_end_ns(&fd->chain);
}

bool frontrow_foreground_waits(struct frontrow_data *fd, u64 now_ns)
{
	if (likely(!rcu_access_pointer(fd->grounds)))
		return false;
	return nr_front(fd) || fd->nr_front_waiters || fd->nr_front_fsyncs ||
	       now_ns < anticipation_end_ns(&fd->front_chain);
}

/* The foreground, or what is seen beside it. */
bool frontrow_seen_waits(struct frontrow_data *fd, u64 now_ns)
{
	if (likely(!rcu_access_pointer(fd->grounds)))
		return false;
	return nr_visible(fd) || now_ns < anticipation_end_ns(&fd->visible_chain) ||
	       frontrow_foreground_waits(fd, now_ns);
}

/* The foreground, or what is seen beside it, waits from now on, if it did not before. */
void frontrow_seen_begins(struct frontrow_data *fd, u64 now_ns)
{
	if (!frontrow_seen_waits(fd, now_ns))
		fd->seen_since_ns = now_ns;
}

/* Whether a class that has to share may send as it likes. */
bool frontrow_class_is_open(struct frontrow_data *fd, enum frontrow_class class,
			    u64 now_ns)
{
	if (frontrow_class_is_visible(class))
		return !frontrow_foreground_waits(fd, now_ns);
	if (frontrow_seen_waits(fd, now_ns))
		return false;
	if (class == FRONTROW_FG_ASYNC)
		return true;
	if (nr_here(fd, FRONTROW_FG_ASYNC))
		return false;
	return class == FRONTROW_BG_SYNC || !frontrow_somebody_waits(fd, now_ns);
}

static void chain_goes_on(struct frontrow_chain *chain, u64 now_ns)
{
	u64 gap_ns = min_t(u64, now_ns - chain->idle_since_ns, MAX_THINK_NS);
	u64 off_ns = gap_ns > chain->think_ns ? gap_ns - chain->think_ns :
						chain->think_ns - gap_ns;

	chain->deviation_ns = (3 * chain->deviation_ns + off_ns) / 4;
	chain->think_ns = (3 * chain->think_ns + gap_ns) / 4;
}

/* A synchronous request came, before it is counted. */
void frontrow_sync_begins(struct frontrow_data *fd, enum frontrow_ground ground,
			  u64 now_ns)
{
	if (ground != FRONTROW_BACKGROUND)
		frontrow_budget_disturb(fd);
	if (ground == FRONTROW_FOREGROUND || ground >= FRONTROW_VISIBLE)
		frontrow_seen_begins(fd, now_ns);
	if (!nr_sync(fd))
		chain_goes_on(&fd->chain, now_ns);
	if (ground == FRONTROW_FOREGROUND && !nr_front(fd))
		chain_goes_on(&fd->front_chain, now_ns);
	if (ground >= FRONTROW_VISIBLE && !nr_visible(fd))
		chain_goes_on(&fd->visible_chain, now_ns);
}

/* A synchronous request is done, after it was taken off the count. */
void frontrow_sync_ended(struct frontrow_data *fd, enum frontrow_ground ground,
			 u64 now_ns)
{
	if (!nr_sync(fd))
		fd->chain.idle_since_ns = now_ns;
	if (ground == FRONTROW_FOREGROUND && !nr_front(fd))
		fd->front_chain.idle_since_ns = now_ns;
	if (ground >= FRONTROW_VISIBLE && !nr_visible(fd))
		fd->visible_chain.idle_since_ns = now_ns;
}

/*
 * Between an fsync's requests are gaps longer than any think time: a commit
 * waits for journal handles, and a worker may hold one for milliseconds.
 */
void frontrow_fsync_begins(struct frontrow_data *fd, bool in_front)
{
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	if (in_front)
		frontrow_seen_begins(fd, ktime_get_ns());
	if (!fd->nr_fsyncs && !fd->nr_waiters)
		fd->waiting_since_ns = ktime_get_ns();
	fd->nr_fsyncs++;
	fd->nr_front_fsyncs += in_front;
	spin_unlock_irqrestore(&fd->lock, flags);
}

void frontrow_fsync_ended(struct frontrow_data *fd, bool in_front)
{
	unsigned long flags;

	/* It may have begun under an instance before this one. */
	spin_lock_irqsave(&fd->lock, flags);
	if (fd->nr_fsyncs)
		fd->nr_fsyncs--;
	if (fd->nr_front_fsyncs)
		fd->nr_front_fsyncs -= in_front;
	spin_unlock_irqrestore(&fd->lock, flags);
}

/* Whose oldest request has waited longest, of @class and all after it. */
static enum frontrow_class oldest_class(const struct frontrow_data *fd,
					enum frontrow_class class)
{
	enum frontrow_class oldest = FRONTROW_NR_CLASSES;
	u64 since_ns = U64_MAX;

	for (; class < FRONTROW_NR_CLASSES; class++) {
		struct request *rq = frontrow_oldest(fd, class);

		if (!rq || frontrow_rq(rq)->inserted_ns >= since_ns)
			continue;
		since_ns = frontrow_rq(rq)->inserted_ns;
		oldest = class;
	}
	return oldest;
}

static bool is_behind_write(struct request *rq)
{
	return frontrow_rq(rq)->ground == FRONTROW_BACKGROUND &&
	       req_op(rq) == REQ_OP_WRITE;
}

static unsigned int nr_in_device(const struct frontrow_data *fd)
{
	enum frontrow_class class;
	unsigned int nr = 0;

	for (class = 0; class < FRONTROW_NR_CLASSES; class++)
		nr += fd->nr_in_device[class];
	return nr;
}

/*
 * A foreground that is about to wait meets what is in the device. Of the writes
 * from behind there is never more than it takes in a slice, whether somebody
 * waits or not, and nothing from behind waits for a driver tag, where it would
 * be in everybody's way.
 */
static bool behind_fits(const struct frontrow_data *fd, enum frontrow_class class)
{
	struct request *next = frontrow_oldest(fd, class);

	if (frontrow_rq(next)->ground != FRONTROW_BACKGROUND)
		return true;
	return nr_in_device(fd) < fd->q->tag_set->queue_depth &&
	       (!is_behind_write(next) ||
		frontrow_budget_has_room_behind(fd, blk_rq_bytes(next)));
}

/*
 * While nobody waits: as many as the device can use, but never more than it
 * holds. A request that finds no driver tag blocks the dispatch list, and with
 * it all that is more urgent.
 */
static bool async_fits(struct frontrow_data *fd)
{
	unsigned int limit = min(fd->budget.open_limit,
				 fd->q->tag_set->queue_depth);

	if (fd->nr_in_device[FRONTROW_FG_ASYNC] +
	    fd->nr_in_device[FRONTROW_ASYNC] +
	    fd->nr_in_device[FRONTROW_DISCARD] < limit)
		return true;
	frontrow_budget_full(fd);
	return false;
}

static enum frontrow_class first_visible(const struct frontrow_data *fd)
{
	enum frontrow_class class;

	for (class = FRONTROW_VISIBLE_1; class < FRONTROW_FG_ASYNC; class++)
		if (fd->queued[class])
			return class;
	return FRONTROW_NR_CLASSES;
}

/* The oldest of @class and all after it, if the device has room for that one. */
static enum frontrow_class oldest_that_fits(struct frontrow_data *fd,
					    enum frontrow_class class)
{
	class = oldest_class(fd, class);
	if (class == FRONTROW_NR_CLASSES ||
	    (frontrow_class_is_async(class) && !async_fits(fd)) ||
	    !behind_fits(fd, class))
		return FRONTROW_NR_CLASSES;
	return class;
}

static bool overdue(struct frontrow_data *fd, enum frontrow_class class,
		    u64 now_ns)
{
	struct request *oldest = frontrow_oldest(fd, class);

	return oldest &&
	       now_ns - frontrow_rq(oldest)->in_class_since_ns > deadline_ns[class];
}

/*
 * Of the classes that others may pass over. While the foreground waits, what is
 * synchronous behind it has its share instead.
 */
static enum frontrow_class overdue_class(struct frontrow_data *fd, u64 now_ns)
{
	enum frontrow_class first = nr_front(fd) + nr_visible(fd) ?
				    FRONTROW_FG_WRITE : FRONTROW_SYNC_WRITE;
	enum frontrow_class class;

	for (class = first; class <= FRONTROW_BOOSTED; class++)
		if (overdue(fd, class, now_ns))
			return class;
	for (class = FRONTROW_VISIBLE_1; class < FRONTROW_FG_ASYNC; class++)
		if (overdue(fd, class, now_ns) &&
		    frontrow_class_is_open(fd, class, now_ns))
			return class;
	if (overdue(fd, FRONTROW_BG_SYNC, now_ns) &&
	    behind_fits(fd, FRONTROW_BG_SYNC) &&
	    frontrow_class_is_open(fd, FRONTROW_BG_SYNC, now_ns))
		return FRONTROW_BG_SYNC;
	return FRONTROW_NR_CLASSES;
}

static enum frontrow_class pick_class(struct frontrow_data *fd, u64 now_ns)
{
	bool open = frontrow_class_is_open(fd, FRONTROW_ASYNC, now_ns);
	bool stuck = !open && frontrow_waiter_is_stuck(fd, waiters_window_ns(fd),
						       now_ns);
	enum frontrow_class class;

	/* The guaranteed share, one request at a time. */
	if (!open && !stuck && !nr_shared_in_device(fd, now_ns)) {
		class = frontrow_budget_due(fd, now_ns);
		if (class != FRONTROW_NR_CLASSES)
			return class;
	}
	fd->served_overdue = !fd->served_overdue;
	if (fd->served_overdue) {
		class = overdue_class(fd, now_ns);
		if (class != FRONTROW_NR_CLASSES)
			return class;
	}
	for (class = FRONTROW_FG_READ; class <= FRONTROW_FG_WRITE; class++)
		if (fd->queued[class])
			return class;
	if (frontrow_class_is_open(fd, FRONTROW_VISIBLE_1, now_ns)) {
		class = first_visible(fd);
		if (class != FRONTROW_NR_CLASSES)
			return class;
	}
	for (class = FRONTROW_SYNC_READ; class <= FRONTROW_BOOSTED; class++)
		if (fd->queued[class])
			return class;
	if (fd->queued[FRONTROW_FG_ASYNC] && async_fits(fd) &&
	    (stuck || frontrow_class_is_open(fd, FRONTROW_FG_ASYNC, now_ns)))
		return FRONTROW_FG_ASYNC;
	/*
	 * The workers' tags have to come free, and readers would go on for ever; so
	 * would workers, and the waiter's own may be a large one that needs room.
	 */
	if (stuck)
		return oldest_that_fits(fd, FRONTROW_SHARED);
	if (fd->queued[FRONTROW_BG_SYNC] && behind_fits(fd, FRONTROW_BG_SYNC) &&
	    frontrow_class_is_open(fd, FRONTROW_BG_SYNC, now_ns))
		return FRONTROW_BG_SYNC;
	return open ? oldest_that_fits(fd, FRONTROW_ASYNC) : FRONTROW_NR_CLASSES;
}

/*
 * The foreground's own requests, and those of the kernel that it waits for: the
 * commit of its fsync, a promoted write.
 */
static bool is_in_front(const struct frontrow_data *fd, const struct frontrow_rq *fr)
{
	if (fr->ground != FRONTROW_MIDDLE)
		return fr->ground == FRONTROW_FOREGROUND;
	return !frontrow_class_is_shared(fr->class) &&
	       (fd->nr_front_fsyncs || fd->nr_front_waiters);
}

static void send(struct frontrow_data *fd, struct request *rq, u64 now_ns)
{
	struct frontrow_rq *fr = frontrow_rq(rq);

	fr->state = FRONTROW_RQ_IN_DEVICE;
	fr->dispatched_ns = now_ns;
	fr->bytes = blk_rq_bytes(rq);
	fr->is_behind_write = is_behind_write(rq);
	if (fr->is_behind_write)
		fd->behind_bytes += fr->bytes;
	fr->mapping = frontrow_mapping_of(rq->bio);
	list_add_tail(&fr->in_device_node, &fd->in_device);
	fd->nr_in_device[fr->class]++;
	fd->dispatched[fr->class]++;
	if (frontrow_class_is_async(fr->class))
		fd->async_age_peak_ns = max(fd->async_age_peak_ns,
					    now_ns - fr->inserted_ns);
	if (frontrow_class_is_shared(fr->class))
		frontrow_budget_charge(fd, fr, now_ns);
	if (is_in_front(fd, fr))
		frontrow_mark_foreground(rq);
	trace_frontrow_dispatch(rq, fr->class, now_ns - fr->inserted_ns);
}

/* Something was held back: see that someone asks again when it may go. */
static void hold(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx, u64 now_ns)
{
	u64 wait_ns;

	blk_mq_sched_mark_restart_hctx(hctx);
	if (!shared_queued(fd) || nr_shared_in_device(fd, now_ns))
		return;
	wait_ns = frontrow_budget_wait_ns(fd, now_ns);
	if (!nr_sync(fd) && anticipation_end_ns(&fd->chain) > now_ns)
		wait_ns = min(wait_ns, anticipation_end_ns(&fd->chain) - now_ns);
	if (!nr_front(fd) && anticipation_end_ns(&fd->front_chain) > now_ns)
		wait_ns = min(wait_ns,
			      anticipation_end_ns(&fd->front_chain) - now_ns);
	if (!nr_visible(fd) && anticipation_end_ns(&fd->visible_chain) > now_ns)
		wait_ns = min(wait_ns,
			      anticipation_end_ns(&fd->visible_chain) - now_ns);
	if (fd->nr_waiters || fd->nr_fsyncs)
		wait_ns = min(wait_ns, waiters_window_ns(fd));
	hrtimer_start(&fd->rerun, ns_to_ktime(wait_ns), HRTIMER_MODE_REL);
}

static enum hrtimer_restart rerun(struct hrtimer *timer)
{
	struct frontrow_data *fd = container_of(timer, struct frontrow_data, rerun);

	blk_mq_run_hw_queues(fd->q, true);
	return HRTIMER_NORESTART;
}

void frontrow_rerun_init(struct frontrow_data *fd)
{
	hrtimer_init(&fd->rerun, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	fd->rerun.function = rerun;
}

void frontrow_rerun_exit(struct frontrow_data *fd)
{
	hrtimer_cancel(&fd->rerun);
}

struct request *frontrow_dispatch(struct blk_mq_hw_ctx *hctx)
{
	struct frontrow_data *fd = hctx->queue->elevator->elevator_data;
	struct request *rq = NULL;
	enum frontrow_class class;
	unsigned long flags;
	u64 now_ns;

	spin_lock_irqsave(&fd->lock, flags);
	if (!list_empty(&fd->head)) {
		rq = list_first_entry(&fd->head, struct request, queuelist);
		list_del_init(&rq->queuelist);
		/* The commit record of a foreground's fsync comes this way. */
		if (fd->nr_front_fsyncs && rq->bio)
			frontrow_mark_foreground(rq);
		goto unlock;
	}
	now_ns = ktime_get_ns();
	frontrow_demote_unawaited(fd, now_ns);
	class = pick_class(fd, now_ns);
	if (class == FRONTROW_NR_CLASSES) {
		hold(fd, hctx, now_ns);
		goto unlock;
	}
	rq = list_first_entry(&fd->fifo[class], struct request, queuelist);
	frontrow_dequeue(fd, rq);
	send(fd, rq, now_ns);
unlock:
	spin_unlock_irqrestore(&fd->lock, flags);
	return rq;
}

/* A hint without the lock; dispatch decides. */
bool frontrow_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct frontrow_data *fd = hctx->queue->elevator->elevator_data;
	enum frontrow_class class;

	if (!list_empty_careful(&fd->head))
		return true;
	for (class = 0; class < FRONTROW_NR_CLASSES; class++)
		if (READ_ONCE(fd->queued[class]))
			return true;
	return false;
}
