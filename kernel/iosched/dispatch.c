// SPDX-License-Identifier: GPL-2.0
/*
 * Selection of the next request: limits the work in the device, and bridges the
 * gaps of a chain.
 *
 * Requests in the device cannot be recalled. So while somebody waits, classes
 * that are not open to that level (chain.c) stay queued, except for a
 * guaranteed share (budget.c).
 *
 * While anybody waits and requests are queued, the device idles for at most one
 * window of the waiting level's chain. If that level has no request by then,
 * the waiter depends on a request that is held back. Then closed requests are
 * dispatched one at a time: the foreground's own writeback first, otherwise the
 * oldest. This needs no list of possible dependencies.
 *
 * Lost wake-ups: whenever dispatch leaves requests queued, one of two events
 * runs the queue again. If the device has requests, it is the next completion,
 * for which the hardware queue is marked; so too if a driver has yet to begin what
 * it was given. If the device is idle, it is the timer, which
 * is armed under fd->lock after the last check of the conditions, so no change
 * between check and arming is missed.
 */
#include "frontrow.h"
#include "trace.h"

/* Strict priority among open classes; all later classes take turns. */
static const enum frontrow_class order[] = {
	FRONTROW_FG_READ, FRONTROW_FG_WRITE,
	FRONTROW_VISIBLE_1, FRONTROW_VISIBLE_2, FRONTROW_VISIBLE_3,
	FRONTROW_SYNC_READ, FRONTROW_SYNC_WRITE, FRONTROW_BOOSTED,
	FRONTROW_FG_ASYNC, FRONTROW_LONG, FRONTROW_BULK,
};

static const enum frontrow_class in_turns[] = {
	FRONTROW_BG_SYNC, FRONTROW_ASYNC, FRONTROW_DISCARD,
};

static bool is_background_write(const struct frontrow_rq *fr)
{
	return fr->role == FRONTROW_BACKGROUND && req_op(fr->rq) == REQ_OP_WRITE;
}

/*
 * A foreground request that arrives later waits for the requests in the device.
 * So the background's writes there never exceed one slice, whether somebody
 * waits or not, and the background never waits for a driver tag, where it would
 * block the dispatch list.
 */
static bool background_fits(const struct frontrow_data *fd,
			    const struct frontrow_rq *fr)
{
	if (fr->role != FRONTROW_BACKGROUND)
		return true;
	return fd->nr_in_device < frontrow_depth(fd) &&
	       (!is_background_write(fr) ||
		frontrow_budget_has_room(fd, blk_rq_bytes(fr->rq)));
}

/*
 * Limit while nobody waits: as many requests as the device can use, and no more
 * than it holds. A request without a driver tag would block the dispatch list,
 * and more urgent requests with it.
 */
static bool async_fits(struct frontrow_data *fd)
{
	if (fd->in_device[FRONTROW_FG_ASYNC] + fd->in_device[FRONTROW_ASYNC] +
	    fd->in_device[FRONTROW_DISCARD] <
	    min(fd->budget.open_limit, frontrow_depth(fd)))
		return true;
	frontrow_budget_full(fd);
	return false;
}

/* Whether the first request of an open class may be dispatched. */
static bool may_go(struct frontrow_data *fd, const struct frontrow_view *view,
		   enum frontrow_class class)
{
	if (!fd->queued[class] || !frontrow_is_open(view, class))
		return false;
	if (frontrow_classes[class].is_async && !async_fits(fd))
		return false;
	return background_fits(fd, frontrow_first(fd, class));
}

/* End of the deadline of a class's first request; U64_MAX if it has none, or may not go. */
static u64 overdue_since_ns(struct frontrow_data *fd, const struct frontrow_view *view,
			    enum frontrow_class class)
{
	u64 deadline_ns = frontrow_classes[class].deadline_ms * NSEC_PER_MSEC;
	const struct frontrow_rq *first = frontrow_first(fd, class);
	u64 since_ns;

	if (!first || !deadline_ns)
		return U64_MAX;
	since_ns = first->in_class_since_ns + deadline_ns;
	return since_ns < view->now_ns && may_go(fd, view, class) ? since_ns : U64_MAX;
}

/*
 * Class whose first request has been overdue for longest, but for @usual, which is
 * served anyway: it would take this turn as well and starve all others.
 * Foreground reads have no deadline.
 */
static enum frontrow_class overdue_class(struct frontrow_data *fd,
					 const struct frontrow_view *view,
					 enum frontrow_class usual)
{
	enum frontrow_class found = FRONTROW_NR_CLASSES;
	enum frontrow_class class;
	u64 longest_ns = U64_MAX;

	for (class = FRONTROW_FG_WRITE; class <= FRONTROW_BULK; class++) {
		u64 since_ns = class == usual ? U64_MAX : overdue_since_ns(fd, view, class);

		if (since_ns >= longest_ns)
			continue;
		longest_ns = since_ns;
		found = class;
	}
	return found;
}

static unsigned int nr_closed_in_device(const struct frontrow_data *fd,
					const struct frontrow_view *view)
{
	enum frontrow_class class;
	unsigned int nr = 0;

	for (class = FRONTROW_FIRST_GROUP; class < FRONTROW_NR_CLASSES; class++)
		if (!frontrow_is_open(view, class))
			nr += fd->in_device[class];
	return nr;
}

/*
 * A task waits without a request here. It most likely depends on its own
 * writeback, otherwise on the oldest request.
 */
static enum frontrow_class searched_class(struct frontrow_data *fd,
					  const struct frontrow_view *view)
{
	enum frontrow_class found = FRONTROW_NR_CLASSES;
	enum frontrow_class class;
	u64 since_ns = U64_MAX;

	if (!view->is_searching || fd->nr_flushing || nr_closed_in_device(fd, view))
		return FRONTROW_NR_CLASSES;
	if (fd->queued[FRONTROW_FG_ASYNC] && view->who > FRONTROW_LEVEL_OTHER)
		return FRONTROW_FG_ASYNC;
	for (class = FRONTROW_FIRST_GROUP; class < FRONTROW_NR_CLASSES; class++) {
		const struct frontrow_rq *first = frontrow_first(fd, class);

		if (!first || frontrow_is_open(view, class) ||
		    first->inserted_ns >= since_ns)
			continue;
		since_ns = first->inserted_ns;
		found = class;
	}
	return found;
}

/* The open group that was served least. */
static enum frontrow_class class_whose_turn(struct frontrow_data *fd,
					    const struct frontrow_view *view)
{
	enum frontrow_class found = FRONTROW_NR_CLASSES;
	u64 least_bytes = U64_MAX;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(in_turns); i++) {
		const struct frontrow_group *group =
			&fd->groups[in_turns[i] - FRONTROW_FIRST_GROUP];

		if (group->served_bytes >= least_bytes ||
		    !may_go(fd, view, in_turns[i]))
			continue;
		least_bytes = group->served_bytes;
		found = in_turns[i];
	}
	return found;
}

/* The first open class in strict priority. */
static enum frontrow_class usual_class(struct frontrow_data *fd,
				       const struct frontrow_view *view)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		if (fd->queued[order[i]] && may_go(fd, view, order[i]))
			return order[i];
	return FRONTROW_NR_CLASSES;
}

static enum frontrow_class pick(struct frontrow_data *fd,
				const struct frontrow_view *view)
{
	enum frontrow_class class = fd->last_class;
	enum frontrow_class usual;

	/* Usually all are of one class, and there is nothing to choose. */
	if (fd->queued[class] == fd->nr_queued && may_go(fd, view, class))
		return class;
	/* Guaranteed share: one request of closed groups at a time. */
	if (fd->nr_grouped && !nr_closed_in_device(fd, view)) {
		class = frontrow_budget_due(fd, view);
		if (class != FRONTROW_NR_CLASSES)
			return class;
	}
	usual = usual_class(fd, view);
	fd->other_turn = !fd->other_turn;
	if (fd->other_turn && fd->nr_queued > 1) {
		class = overdue_class(fd, view, usual);
		if (class == FRONTROW_NR_CLASSES)
			class = searched_class(fd, view);
		if (class != FRONTROW_NR_CLASSES)
			return class;
	}
	if (usual != FRONTROW_NR_CLASSES || !fd->nr_grouped)
		return usual;
	class = class_whose_turn(fd, view);
	return class != FRONTROW_NR_CLASSES ? class : searched_class(fd, view);
}

/*
 * Whether the device should give @fr priority: requests of the foreground, and
 * those of the kernel that it waits for, such as the commit of its fsync or a
 * promoted write.
 */
static bool is_for_foreground(const struct frontrow_data *fd, const struct frontrow_rq *fr)
{
	if (fr->role != FRONTROW_OTHER)
		return fr->role == FRONTROW_FOREGROUND;
	return !frontrow_is_group(fr->class) && fd->chains[FRONTROW_LEVEL_FOREGROUND].nr_waiting;
}

static void send(struct frontrow_data *fd, struct frontrow_rq *fr,
		 const struct frontrow_view *view)
{
	struct request *rq = fr->rq;

	fd->last_class = fr->class;
	fd->handed_on = fd->is_one_by_one ? fr : NULL;
	fr->state = FRONTROW_RQ_IN_DEVICE;
	fr->dispatched_ns = view->now_ns;
	fr->bytes = frontrow_bytes(rq);
	fr->is_background_write = is_background_write(fr);
	if (fr->is_background_write)
		fd->background_bytes += fr->bytes;
	fd->nr_in_device++;
	fd->in_device[fr->class]++;
	fd->dispatched[fr->class]++;
	if (frontrow_classes[fr->class].is_async)
		fd->async_age_peak_ns = max(fd->async_age_peak_ns,
					    view->now_ns - fr->inserted_ns);
	if (frontrow_is_group(fr->class))
		frontrow_budget_charge(fd, fr, view);
	if (is_for_foreground(fd, fr))
		frontrow_mark_foreground(rq);
	trace_frontrow_dispatch(rq, fr->class, view->now_ns - fr->inserted_ns);
}

/*
 * A driver that may sleep issues requests one after another, and mmc's waits in
 * between until the device is done. A request that it has not begun would be in
 * front of all that is more urgent and comes later. So it gets the next one when
 * it has begun the last.
 */
static bool is_driver_behind(const struct frontrow_data *fd)
{
	return fd->handed_on && !blk_mq_request_started(fd->handed_on->rq);
}

/* Requests stay queued: arrange the event that runs the queue again. */
static void schedule_rerun(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx,
			   const struct frontrow_view *view)
{
	u64 next_ns;

	fd->is_held = true;
	blk_mq_sched_mark_restart_hctx(hctx);
	if (!fd->nr_grouped || nr_closed_in_device(fd, view))
		return;
	next_ns = min(view->next_event_ns,
		      view->now_ns + frontrow_budget_wait_ns(fd, view));
	/*
	 * The end of a wait changes the level without an event, so the timer
	 * has an upper bound.
	 */
	if (!fd->nr_in_device)
		next_ns = min(next_ns, view->now_ns + MAX_WINDOW_NS);
	hrtimer_start(&fd->rerun, ns_to_ktime(next_ns), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart rerun(struct hrtimer *timer)
{
	struct frontrow_data *fd = container_of(timer, struct frontrow_data, rerun);
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	frontrow_await_written(fd, ktime_get_ns());
	spin_unlock_irqrestore(&fd->lock, flags);
	frontrow_run_queues(fd->q);
	return HRTIMER_NORESTART;
}

/*
 * Ends the waits for folios that are written, and looks again later if there are
 * others: the file system may end their writeback after the last request.
 */
void frontrow_await_written(struct frontrow_data *fd, u64 now_ns)
{
	if (!fd->nr_folio_waiters)
		return;
	frontrow_end_written(fd, now_ns);
	if (fd->nr_folio_waiters && !hrtimer_is_queued(&fd->rerun))
		hrtimer_start(&fd->rerun, ns_to_ktime(now_ns + MAX_WINDOW_NS),
			      HRTIMER_MODE_ABS);
}

void frontrow_rerun_init(struct frontrow_data *fd)
{
	frontrow_timer_setup(&fd->rerun, rerun);
}

void frontrow_rerun_exit(struct frontrow_data *fd)
{
	hrtimer_cancel(&fd->rerun);
}

struct request *frontrow_dispatch(struct blk_mq_hw_ctx *hctx)
{
	struct frontrow_data *fd = hctx->queue->elevator->elevator_data;
	struct frontrow_view view;
	struct request *rq = NULL;
	struct frontrow_rq *fr;
	enum frontrow_class class;
	unsigned long flags;
	u64 now_ns;

	spin_lock_irqsave(&fd->lock, flags);
	if (!list_empty(&fd->head)) {
		rq = list_first_entry(&fd->head, struct request, queuelist);
		list_del_init(&rq->queuelist);
		/*
		 * The commit record of the foreground's fsync is inserted at
		 * head.
		 */
		if (fd->chains[FRONTROW_LEVEL_FOREGROUND].nr_fsyncs && rq->bio)
			frontrow_mark_foreground(rq);
		goto unlock;
	}
	if (is_driver_behind(fd)) {
		blk_mq_sched_mark_restart_hctx(hctx);
		goto unlock;
	}
	now_ns = ktime_get_ns();
	frontrow_await_written(fd, now_ns);
	frontrow_look(fd, now_ns, &view);
	frontrow_demote_unawaited(fd, view.now_ns);
	class = pick(fd, &view);
	if (class == FRONTROW_NR_CLASSES) {
		schedule_rerun(fd, hctx, &view);
		goto unlock;
	}
	fr = frontrow_first(fd, class);
	rq = fr->rq;
	frontrow_use_turn(fd, fr);
	frontrow_dequeue(fd, fr);
	send(fd, fr, &view);
	frontrow_count_idle(fd, view.now_ns);
unlock:
	spin_unlock_irqrestore(&fd->lock, flags);
	return rq;
}

/* Unlocked hint; dispatch decides under the lock. */
bool frontrow_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct frontrow_data *fd = hctx->queue->elevator->elevator_data;

	return READ_ONCE(fd->nr_queued) || !list_empty(&fd->head);
}
