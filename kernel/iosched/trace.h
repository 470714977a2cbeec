/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM frontrow

#if !defined(FRONTROW_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FRONTROW_TRACE_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

/*
 * A task is about to sleep for a write, or has promoted writes by beginning to sync; see
 * frontrow.h for the numbers.
 */
TRACE_EVENT(frontrow_wait,
	TP_PROTO(struct request_queue *q, unsigned int dependency,
		 unsigned int outcome, unsigned int promoted),
	TP_ARGS(q, dependency, outcome, promoted),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned int, dependency)
		__field(unsigned int, outcome)
		__field(unsigned int, promoted)
	),
	TP_fast_assign(
		__entry->dev = q->disk ? disk_devt(q->disk) : 0;
		__entry->dependency = dependency;
		__entry->outcome = outcome;
		__entry->promoted = promoted;
	),
	TP_printk("%d,%d %s %s promoted=%u",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __print_symbolic(__entry->dependency,
				   { 0, "meta" }, { 1, "data" },
				   { 2, "journal" }, { 3, "discard" }),
		  __print_symbolic(__entry->outcome,
				   { 0, "boosted" }, { 1, "in_device" },
				   { 2, "pending" }, { 3, "sync" },
				   { 4, "not_ours" }),
		  __entry->promoted)
);

/* A request is dispatched. */
TRACE_EVENT(frontrow_dispatch,
	TP_PROTO(struct request *rq, unsigned int class, u64 age_ns),
	TP_ARGS(rq, class, age_ns),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(unsigned int, bytes)
		__field(unsigned int, class)
		__field(u64, age_ns)
	),
	TP_fast_assign(
		__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
		__entry->sector = blk_rq_pos(rq);
		__entry->bytes = blk_rq_bytes(rq);
		__entry->class = class;
		__entry->age_ns = age_ns;
	),
	TP_printk("%d,%d %s sector=%llu bytes=%u age_ns=%llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __print_symbolic(__entry->class,
				   { 0, "fg_read" }, { 1, "fg_write" },
				   { 2, "sync_read" }, { 3, "sync_write" },
				   { 4, "boosted" }, { 5, "visible_1" },
				   { 6, "visible_2" }, { 7, "visible_3" },
				   { 8, "fg_async" }, { 9, "bg_sync" },
				   { 10, "long" }, { 11, "bulk" },
				   { 12, "async" }, { 13, "discard" }),
		  (unsigned long long)__entry->sector, __entry->bytes,
		  __entry->age_ns)
);

#endif /* FRONTROW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
