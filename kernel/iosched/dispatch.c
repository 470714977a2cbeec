// SPDX-License-Identifier: GPL-2.0
/*
 * Third and fourth lever: what is in the device, and the gaps of a chain.
 *
 * What the device has taken cannot be recalled. So while somebody waits, at the
 * level that chain.c tells, the classes that are not open to that level stay in
 * the queue but for a guaranteed share (budget.c).
 *
 * While anybody waits and anything is queued the device does not idle for longer
 * than a window of the waiting level's chain. If nothing of that level has come
 * by then, the waiter waits for something that is held back or stands behind it,
 * and one closed request goes after another: the foreground's own writeback
 * first, then whatever is oldest. This asks for no list of what one can wait for.
 *
 * Whatever dispatch holds back, something starts it again: the end of a request in
 * the device, for which the hardware queue is marked; or, with an idle device, the
 * timer, which is set under the lock after the last look at all that could change.
 */
#include "frontrow.h"
#include "trace.h"

/* Strictly one before the other while they are open; what follows takes turns. */
static const enum frontrow_class order[] = {
	FRONTROW_FG_READ, FRONTROW_FG_WRITE,
	FRONTROW_VISIBLE_1, FRONTROW_VISIBLE_2, FRONTROW_VISIBLE_3,
	FRONTROW_SYNC_READ, FRONTROW_SYNC_WRITE, FRONTROW_BOOSTED,
	FRONTROW_FG_ASYNC,
};

static const enum frontrow_class in_turns[] = {
	FRONTROW_BG_SYNC, FRONTROW_ASYNC, FRONTROW_DISCARD,
};

static bool is_background_write(const struct frontrow_rq *fr)
{
	return fr->ground == FRONTROW_BACKGROUND && req_op(fr->rq) == REQ_OP_WRITE;
}

/*
 * A foreground that is about to wait meets what is in the device. Of the
 * background's writes there is never more than it takes in a slice, whether
 * somebody waits or not, and nothing of the background waits for a driver tag,
 * where it would be in everybody's way.
 */
static bool background_fits(const struct frontrow_data *fd,
			    const struct frontrow_rq *fr)
{
	if (fr->ground != FRONTROW_BACKGROUND)
		return true;
	return fd->nr_in_device < frontrow_depth(fd) &&
	       (!is_background_write(fr) ||
		frontrow_budget_has_room(fd, blk_rq_bytes(fr->rq)));
}

/*
 * While nobody waits: as many as the device can use, but never more than it
 * holds. A request that finds no driver tag blocks the dispatch list, and with
 * it all that is more urgent.
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

/* Whether the first of an open class may go. */
static bool may_go(struct frontrow_data *fd, const struct frontrow_view *view,
		   enum frontrow_class class)
{
	if (!fd->queued[class] || !frontrow_is_open(view, class))
		return false;
	if (frontrow_classes[class].is_async && !async_fits(fd))
		return false;
	return background_fits(fd, frontrow_first(fd, class));
}

static bool is_overdue(struct frontrow_data *fd, const struct frontrow_view *view,
		       enum frontrow_class class)
{
	u64 deadline_ns = frontrow_classes[class].deadline_ms * NSEC_PER_MSEC;
	const struct frontrow_rq *first = frontrow_first(fd, class);

	return first && deadline_ns &&
	       view->now_ns - first->in_class_since_ns > deadline_ns &&
	       may_go(fd, view, class);
}

/* Of the classes that others may pass over; the foreground is passed over by none. */
static enum frontrow_class overdue_class(struct frontrow_data *fd,
					 const struct frontrow_view *view)
{
	enum frontrow_class class = view->who > FRONTROW_ANYBODY ?
				    FRONTROW_FG_WRITE : FRONTROW_SYNC_READ;

	for (; class <= FRONTROW_BG_SYNC; class++)
		if (is_overdue(fd, view, class))
			return class;
	return FRONTROW_NR_CLASSES;
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
 * Somebody waits and nothing of his is here. What he can wait for most likely is
 * his own writeback; else whatever has been here longest.
 */
static enum frontrow_class searched_class(struct frontrow_data *fd,
					  const struct frontrow_view *view)
{
	enum frontrow_class found = FRONTROW_NR_CLASSES;
	enum frontrow_class class;
	u64 since_ns = U64_MAX;

	if (!view->is_searching || fd->nr_flushing || nr_closed_in_device(fd, view))
		return FRONTROW_NR_CLASSES;
	if (fd->queued[FRONTROW_FG_ASYNC] && view->who > FRONTROW_ANYBODY)
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

/* Of those that take turns the one that has been served least. */
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

static enum frontrow_class pick(struct frontrow_data *fd,
				const struct frontrow_view *view)
{
	enum frontrow_class class;
	unsigned int i;

	/* The guaranteed share, one request at a time. */
	if (fd->nr_grouped && !nr_closed_in_device(fd, view)) {
		class = frontrow_budget_due(fd, view);
		if (class != FRONTROW_NR_CLASSES)
			return class;
	}
	fd->other_turn = !fd->other_turn;
	if (fd->other_turn && fd->nr_queued > 1) {
		class = overdue_class(fd, view);
		if (class == FRONTROW_NR_CLASSES)
			class = searched_class(fd, view);
		if (class != FRONTROW_NR_CLASSES)
			return class;
	}
	for (i = 0; i < ARRAY_SIZE(order); i++)
		if (fd->queued[order[i]] && may_go(fd, view, order[i]))
			return order[i];
	if (!fd->nr_grouped)
		return FRONTROW_NR_CLASSES;
	class = class_whose_turn(fd, view);
	return class != FRONTROW_NR_CLASSES ? class : searched_class(fd, view);
}

/*
 * The device is told of the foreground's own requests, and of those of the kernel
 * that it waits for: the commit of its fsync, a promoted write.
 */
static bool is_in_front(const struct frontrow_data *fd, const struct frontrow_rq *fr)
{
	if (fr->ground != FRONTROW_MIDDLE)
		return fr->ground == FRONTROW_FOREGROUND;
	return !frontrow_is_group(fr->class) && fd->chains[FRONTROW_FRONT].nr_waiting;
}

static void send(struct frontrow_data *fd, struct frontrow_rq *fr,
		 const struct frontrow_view *view)
{
	struct request *rq = fr->rq;

	fr->state = FRONTROW_RQ_IN_DEVICE;
	fr->dispatched_ns = view->now_ns;
	fr->bytes = blk_rq_bytes(rq);
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
	if (is_in_front(fd, fr))
		frontrow_mark_foreground(rq);
	trace_frontrow_dispatch(rq, fr->class, view->now_ns - fr->inserted_ns);
}

/* Something was held back: see that someone asks again when it may go. */
static void hold(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx,
		 const struct frontrow_view *view)
{
	u64 next_ns;

	fd->is_held = true;
	blk_mq_sched_mark_restart_hctx(hctx);
	if (!fd->nr_grouped || nr_closed_in_device(fd, view))
		return;
	next_ns = min(view->next_event_ns,
		      view->now_ns + frontrow_budget_wait_ns(fd, view));
	/* A wait that ends changes the level, and tells nobody. */
	if (!fd->nr_in_device)
		next_ns = min(next_ns, view->now_ns + MAX_WINDOW_NS);
	hrtimer_start(&fd->rerun, ns_to_ktime(next_ns), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart rerun(struct hrtimer *timer)
{
	struct frontrow_data *fd = container_of(timer, struct frontrow_data, rerun);

	blk_mq_run_hw_queues(fd->q, true);
	return HRTIMER_NORESTART;
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

	spin_lock_irqsave(&fd->lock, flags);
	if (!list_empty(&fd->head)) {
		rq = list_first_entry(&fd->head, struct request, queuelist);
		list_del_init(&rq->queuelist);
		/* The commit record of a foreground's fsync comes this way. */
		if (fd->chains[FRONTROW_FRONT].nr_fsyncs && rq->bio)
			frontrow_mark_foreground(rq);
		goto unlock;
	}
	frontrow_look(fd, ktime_get_ns(), &view);
	frontrow_demote_unawaited(fd, view.now_ns);
	class = pick(fd, &view);
	if (class == FRONTROW_NR_CLASSES) {
		hold(fd, hctx, &view);
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

/* A hint without the lock; dispatch decides. */
bool frontrow_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct frontrow_data *fd = hctx->queue->elevator->elevator_data;

	return READ_ONCE(fd->nr_queued) || !list_empty(&fd->head);
}
