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
