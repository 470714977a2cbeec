/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels in public headers, and in what they let modules
 * use. frontrow_abi.h tells which variant the target kernel has.
 */
#ifndef FRONTROW_COMPAT_H
#define FRONTROW_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <trace/events/block.h>

/* Initializes a timer of CLOCK_MONOTONIC. */
static inline void frontrow_timer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*expired)(struct hrtimer *))
{
#ifdef FRONTROW_ABI_HAS_HRTIMER_SETUP
	hrtimer_setup(timer, expired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = expired;
#endif
}

/* Runs the hardware queues of @q, in a worker. */
static inline void frontrow_run_queues(struct request_queue *q)
{
#ifdef FRONTROW_ABI_NO_RUN_HW_QUEUES
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		blk_mq_run_hw_queue(hctx, true);
#else
	blk_mq_run_hw_queues(q, true);
#endif
}

/*
 * Whoever changes another limit copies all of them and writes them back, so one that
 * changes meanwhile would be lost. Does not wait: the owner of the lock may wait until
 * the queue is frozen, which is how schedulers are changed.
 */
#ifdef FRONTROW_ABI_LIMITS_LOCK
static inline bool frontrow_trylock_limits(struct request_queue *q)
{
	return mutex_trylock(&q->limits_lock);
}

static inline void frontrow_unlock_limits(struct request_queue *q)
{
	mutex_unlock(&q->limits_lock);
}
#else
static inline bool frontrow_trylock_limits(struct request_queue *q)
{
	return true;
}

static inline void frontrow_unlock_limits(struct request_queue *q) {}
#endif

/*
 * Most asynchronous requests that root wants here (queue/async_depth). Each scheduler
 * sets it when it begins.
 */
#ifdef FRONTROW_ABI_ASYNC_DEPTH
static inline void frontrow_async_depth_init(struct request_queue *q)
{
	q->async_depth = q->nr_requests;
}

static inline unsigned int frontrow_async_depth(const struct request_queue *q)
{
	return q->async_depth;
}
#else
static inline void frontrow_async_depth_init(struct request_queue *q) {}

static inline unsigned int frontrow_async_depth(const struct request_queue *q)
{
	return UINT_MAX;
}
#endif

/* Tells blktrace of a request that is inserted. */
#ifdef FRONTROW_ABI_NO_TRACE_RQ_INSERT
static inline void frontrow_trace_insert(struct request *rq) {}
#else
static inline void frontrow_trace_insert(struct request *rq)
{
	trace_block_rq_insert(rq);
}
#endif

#endif /* FRONTROW_COMPAT_H */
