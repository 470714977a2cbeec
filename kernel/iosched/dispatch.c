// SPDX-License-Identifier: GPL-2.0
/*
 * Hands the block layer the request that the policy chooses (core/pick.c), and sees
 * to it that the policy is asked again.
 *
 * Lost wake-ups: whenever dispatch leaves requests queued, one of two events
 * runs the queue again. If the device has requests, it is the next completion,
 * for which the hardware queue is marked, or one of the next that
 * frontrow_finish_request() finds to be enough (frontrow_rests()); so too if a driver has yet to begin what
 * it was given. If the device is idle, it is the timer, which
 * is armed under fd->lock after the last check of the conditions, so no change
 * between check and arming is missed.
 */
#include "frontrow.h"
#include "trace.h"

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
	u64 next_ns = frontrow_look_again_ns(&fd->core, view);

	fd->rests = frontrow_rests(&fd->core, view);
	if (fd->rests)
		return;
	fd->is_held = true;
	blk_mq_sched_mark_restart_hctx(hctx);
	if (next_ns != U64_MAX)
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

/* The policy has chosen @fr. */
static void send(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	struct frontrow_item *item = &fr->item;
	struct request *rq = fr->rq;

	frontrow_leave_merging(fd, rq);
	fd->handed_on = fd->is_one_by_one ? fr : NULL;
	if (frontrow_is_for_foreground(&fd->core, item))
		frontrow_mark_foreground(rq);
	trace_frontrow_dispatch(rq, item->class, item->dispatched_ns - item->inserted_ns);
}

struct request *frontrow_dispatch(struct blk_mq_hw_ctx *hctx)
{
	struct frontrow_data *fd = hctx->queue->elevator->elevator_data;
	struct frontrow_item *item;
	struct frontrow_view view;
	struct request *rq = NULL;
	struct frontrow_rq *fr;
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
		if (fd->core.chains[FRONTROW_LEVEL_FOREGROUND].nr_fsyncs && rq->bio)
			frontrow_mark_foreground(rq);
		goto unlock;
	}
	if (is_driver_behind(fd)) {
		blk_mq_sched_mark_restart_hctx(hctx);
		goto unlock;
	}
	now_ns = ktime_get_ns();
	frontrow_await_written(fd, now_ns);
	frontrow_look(&fd->core, now_ns, &view);
	frontrow_demote_unawaited(fd, now_ns);
	item = frontrow_next(&fd->core, &view);
	if (!item) {
		schedule_rerun(fd, hctx, &view);
		goto unlock;
	}
	fr = container_of(item, struct frontrow_rq, item);
	rq = fr->rq;
	send(fd, fr);
	frontrow_count_idle(&fd->core, now_ns);
unlock:
	spin_unlock_irqrestore(&fd->lock, flags);
	return rq;
}

/* Unlocked hint; dispatch decides under the lock. */
bool frontrow_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct frontrow_data *fd = hctx->queue->elevator->elevator_data;

	return READ_ONCE(fd->core.nr_queued) || !list_empty(&fd->head);
}
