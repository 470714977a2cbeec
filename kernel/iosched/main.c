// SPDX-License-Identifier: GPL-2.0
/*
 * The frontrow I/O scheduler finds the asynchronous writes that tasks wait for
 * (QASIO, FAST '15) and serves them early. It limits all other asynchronous
 * requests, in the scheduler tags and in the device, so that they do not delay
 * synchronous ones.
 *
 * This file has the callbacks of the block layer and the states of frontrow_rq.
 * See frontrow.h for the other files.
 */
#include <linux/ioprio.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "frontrow.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static struct frontrow_data *data_of(struct request_queue *q)
{
	return q->elevator->elevator_data;
}

static bool has_data(const struct request *rq)
{
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;
}

static void set_bytes(struct frontrow_rq *fr)
{
	fr->item.bytes = frontrow_cost_bytes(blk_rq_bytes(fr->rq), has_data(fr->rq));
}

/* Removes @fr from where the block layer and waits look for it. */
static void forget(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	lockdep_assert_held(&fd->lock);
	hlist_del_init(&fr->by_mapping);
	if (fr->file_async_bytes)
		frontrow_file_sub(fd, fr);
}

/* @rq leaves the queue: nothing is merged into it any more. */
void frontrow_leave_merging(struct frontrow_data *fd, struct request *rq)
{
	lockdep_assert_held(&fd->lock);
	elv_rqhash_del(fd->q, rq);
	if (fd->q->last_merge == rq)
		fd->q->last_merge = NULL;
}

/*
 * Merging
 */

static bool frontrow_bio_merge(struct request_queue *q, struct bio *bio,
			       unsigned int nr_segs)
{
	struct frontrow_data *fd = data_of(q);
	struct request *free = NULL;
	unsigned long flags;
	bool merged;

	frontrow_note_bio(fd, bio);
	spin_lock_irqsave(&fd->lock, flags);
	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	spin_unlock_irqrestore(&fd->lock, flags);

	if (free)
		blk_mq_free_request(free);
	return merged;
}

/*
 * The block layer finds back merges by its hash. A front merge is found only
 * with the last request that can be merged: a tree by sector would find more, at a
 * cost for each request.
 */
static void frontrow_request_merged(struct request_queue *q, struct request *rq,
				    enum elv_merge type)
{
	struct frontrow_rq *fr = frontrow_rq(rq);

	set_bytes(fr);
	if (type != ELEVATOR_DISCARD_MERGE && rq_data_dir(rq) == WRITE)
		frontrow_join_bio(fr, type == ELEVATOR_FRONT_MERGE ? rq->bio : rq->biotail);
}

/*
 * Merges @next, which is queued or being inserted, into @rq. @rq gets the more
 * urgent class of the two, with its role and level.
 */
static void frontrow_requests_merged(struct request_queue *q, struct request *rq,
				     struct request *next)
{
	struct frontrow_data *fd = data_of(q);
	struct frontrow_rq *fr = frontrow_rq(rq), *next_fr = frontrow_rq(next);
	enum frontrow_class class = next_fr->item.own_class;
	bool has_page = false;

	if (next_fr->item.state == FRONTROW_RQ_QUEUED) {
		class = next_fr->item.class;
		frontrow_leave_merging(fd, next);
		forget(fd, next_fr);
	} else if (frontrow_is_group(class)) {
		class = frontrow_class_awaited(fd, next_fr, class, &has_page);
	}
	set_bytes(fr);
	frontrow_join_pages(fd, fr, next_fr);
	frontrow_merge_into(&fd->core, &fr->item, &next_fr->item, class, ktime_get_ns());
}

/*
 * Role of a bio that the current task sends. Reclaim is for the task that needs
 * memory, whoever's pages it writes: the swap of the background's pages by kswapd is
 * waited for by all.
 */
static enum frontrow_role role_of_sent(struct frontrow_data *fd, struct bio *bio)
{
	if (op_is_write(bio->bi_opf) && (frontrow_flags(current) & PF_MEMALLOC))
		return frontrow_role_of(fd, current);
	return frontrow_role_of_bio(fd, bio);
}

/*
 * A merge must not change the urgency of either bio; and the search for a
 * waiter's file must find all of its pages.
 */
static bool frontrow_allow_merge(struct request_queue *q, struct request *rq,
				 struct bio *bio)
{
	const struct frontrow_rq *fr = frontrow_rq(rq);

	if (op_is_sync(bio->bi_opf) != rq_is_sync(rq) || frontrow_is_promoted(&fr->item) ||
	    fr->item.role != role_of_sent(data_of(q), bio) ||
	    (frontrow_is_long(fr->item.class) && fr->item.owner != frontrow_owner_of(current)))
		return false;
	if (bio_op(bio) == REQ_OP_DISCARD)
		return fr->item.under_handle == !!current->journal_info;
	return rq_data_dir(rq) == READ ||
	       (!fr->mappings && fr->item.mapping == frontrow_mapping_of(bio));
}

/* Insertion, dispatch, completion */

static bool may_be_merged(const struct request *rq)
{
	return !(rq->cmd_flags & REQ_NOMERGE_FLAGS) &&
	       !(rq->rq_flags & RQF_NOMERGE_FLAGS);
}

static void insert_tracked(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	enum frontrow_class class = fr->item.own_class;
	struct request *rq = fr->rq;
	bool has_page = false;

	lockdep_assert_held(&fd->lock);
	if (class == FRONTROW_DISCARD)
		class = frontrow_discard_is_awaited(fd, fr) ? FRONTROW_BOOSTED : class;
	else if (frontrow_may_be_promoted(class) && rq_data_dir(rq) == WRITE)
		class = frontrow_class_awaited(fd, fr, class, &has_page);
	frontrow_insert(&fd->core, &fr->item, class, has_page);
	fr->file_async_bytes = 0;
	if (frontrow_classes[fr->item.own_class].is_async && fr->item.is_write)
		frontrow_file_add(fd, fr);
	INIT_HLIST_NODE(&fr->by_mapping);
	frontrow_hash(fd, fr);
	if (may_be_merged(rq)) {
		elv_rqhash_add(fd->q, rq);
		if (!fd->q->last_merge)
			fd->q->last_merge = rq;
	}
}

/* Nobody says who waits for memory that this write frees, and without probes for a metadata block. */
static bool is_awaited_unseen(const struct frontrow_rq *fr)
{
	blk_opf_t flags = fr->rq->cmd_flags;

	return rq_data_dir(fr->rq) == WRITE &&
	       (fr->for_reclaim || (flags & REQ_SWAP) ||
		((flags & REQ_META) && !frontrow_has_probes()));
}

/*
 * Only root can give a task the realtime class. A cgroup gives it without a
 * capability (io.prio.class), to whoever the cgroup is delegated to: that does
 * not count.
 */
static bool is_realtime(const struct frontrow_rq *fr)
{
	return fr->is_realtime && fr->rq->bio &&
	       IOPRIO_PRIO_CLASS(fr->rq->bio->bi_ioprio) == IOPRIO_CLASS_RT;
}

/* Tells the core what @rq is. */
static void identify(struct frontrow_data *fd, struct frontrow_rq *fr,
		     struct request *rq, u64 now_ns)
{
	struct frontrow_item *item = &fr->item;

	fr->rq = rq;
	frontrow_find_pages(fr);
	item->is_read = rq_data_dir(rq) == READ;
	item->role = fr->for_reclaim && !item->is_read ? fr->submitters_role :
							  frontrow_role_of_bio(fd, rq->bio);
	item->is_write = req_op(rq) == REQ_OP_WRITE;
	item->is_discard = req_op(rq) == REQ_OP_DISCARD ||
			   req_op(rq) == REQ_OP_SECURE_ERASE;
	item->is_sync = rq_is_sync(rq);
	item->precedes_flush = rq->rq_flags & RQF_FLUSH_SEQ;
	item->is_realtime = is_realtime(fr);
	item->is_awaited_unseen = is_awaited_unseen(fr);
	set_bytes(fr);
	frontrow_identify(&fd->core, item, now_ns);
}

/*
 * Do not merge an awaited discard into one that nobody waits for: it would lose
 * its urgency.
 */
static bool may_join_queued(const struct frontrow_data *fd,
			    const struct frontrow_rq *fr)
{
	return fr->item.own_class != FRONTROW_DISCARD ||
	       !(fr->item.under_handle || fd->discard_waiters);
}

/*
 * Commands that the device holds at once, over all hardware queues. Of a SCSI host's
 * tags a disk gets fewer than there are, and after a full queue fewer still. Beyond
 * that requests lie on the dispatch list, in front of all that comes later.
 */
static unsigned int depth_of(const struct request_queue *q)
{
	const struct blk_mq_tag_set *set = q->tag_set;
	unsigned int own_depth = READ_ONCE(q->queue_depth) ?: UINT_MAX;

	return min(own_depth, set->flags & BLK_MQ_F_TAG_HCTX_SHARED ? set->queue_depth :
			      set->queue_depth * q->nr_hw_queues);
}

static void insert_list(struct frontrow_data *fd, struct list_head *list,
			    bool at_head)
{
	struct request *rq, *next;
	unsigned long flags;
	LIST_HEAD(free);
	u64 now_ns;

	spin_lock_irqsave(&fd->lock, flags);
	now_ns = ktime_get_ns();
	fd->core.depth = depth_of(fd->q);
	list_for_each_entry_safe(rq, next, list, queuelist) {
		struct frontrow_rq *fr = frontrow_rq(rq);

		list_del_init(&rq->queuelist);
		/*
		 * Two kinds are inserted at head: data of a flush sequence,
		 * which still counts as flushing, and requests that the driver
		 * has returned. A request without a frontrow_rq goes the same
		 * way, without statistics.
		 */
		if (at_head || !fr) {
			list_add(&rq->queuelist, &fd->head);
			continue;
		}
		/* A write with FUA but without a flush is an ordinary write. */
		if (fr->item.state == FRONTROW_RQ_FLUSHING)
			frontrow_flush_ends(&fd->core, &fr->item, false, now_ns);
		identify(fd, fr, rq, now_ns);
		if (!op_is_sync(rq->cmd_flags))
			frontrow_note_sender(fd, fr->item.role, fr->item.mapping);
		fr->item.inserted_ns = now_ns;
		if (!may_join_queued(fd, fr) ||
		    !blk_mq_sched_try_insert_merge(fd->q, rq, &free)) {
			frontrow_trace_insert(rq);
			insert_tracked(fd, fr);
		}
	}
	frontrow_count_idle(&fd->core, now_ns);
	spin_unlock_irqrestore(&fd->lock, flags);

	list_for_each_entry_safe(rq, next, &free, queuelist) {
		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

#ifdef FRONTROW_ABI_INSERT_BLK_FLAGS
static void frontrow_insert_requests(struct blk_mq_hw_ctx *hctx,
				     struct list_head *list, blk_insert_t flags)
{
	insert_list(data_of(hctx->queue), list, flags & BLK_MQ_INSERT_AT_HEAD);
}
#else
static void frontrow_insert_requests(struct blk_mq_hw_ctx *hctx,
				     struct list_head *list, bool at_head)
{
	insert_list(data_of(hctx->queue), list, at_head);
}
#endif

/* Runs in the submitting task. */
static void note_submitter(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	unsigned int flags = frontrow_flags(current);

	fr->for_reclaim = flags & PF_MEMALLOC;
	if (fr->for_reclaim)
		fr->submitters_role = frontrow_role_of(fd, current);
	fr->item.state = FRONTROW_RQ_IDLE;
	fr->completed_ns = 0;
	fr->item.is_counted = false;
	fr->item.under_handle = current->journal_info;
	fr->item.owner = frontrow_owner_of(current);
	fr->item.by_kernel = frontrow_is_kernels_own(current);
	fr->item.by_kernel_thread = flags & PF_KTHREAD;
	fr->is_realtime = frontrow_is_realtime(current);
}

/*
 * A commit record spends most of its time in the flush machinery, outside the
 * scheduler, while a task waits for it. A probe (probes.c) reports when it
 * enters, in the submitting task, for which 6.1 does not call prepare_request.
 */
void frontrow_flush_begun(struct frontrow_data *fd, struct request *rq)
{
	struct frontrow_rq *fr = frontrow_rq(rq);
	unsigned long flags;
	u64 now_ns;

	if (!fr)
		return;
	note_submitter(fd, fr);
	spin_lock_irqsave(&fd->lock, flags);
	now_ns = ktime_get_ns();
	fr->item.role = frontrow_role_of_bio(fd, rq->bio);
	frontrow_flush_begins(&fd->core, &fr->item, now_ns);
	frontrow_count_idle(&fd->core, now_ns);
	spin_unlock_irqrestore(&fd->lock, flags);
}

/* Some kernels call finish_request only if prepare_request exists. */
static void frontrow_prepare_request(struct request *rq)
{
	struct frontrow_rq *fr = frontrow_rq(rq);

	if (fr)
		note_submitter(data_of(rq->q), fr);
}

static void leave_device(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	if (fd->handed_on == fr)
		fd->handed_on = NULL;
	forget(fd, fr);
}

static void complete_tracked(struct frontrow_data *fd, struct frontrow_rq *fr, u64 now_ns)
{
	lockdep_assert_held(&fd->lock);
	leave_device(fd, fr);
	frontrow_complete(&fd->core, &fr->item, now_ns);
	if (!fd->core.is_slice_new)
		return;
	fd->core.is_slice_new = false;
	schedule_work(&fd->resize);
}

/* The data of a flush sequence are written; its flush is to come. */
static noinline void data_completed(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	complete_tracked(fd, fr, fr->completed_ns);
	frontrow_flush_begins(&fd->core, &fr->item, fr->completed_ns);
	frontrow_count_idle(&fd->core, fr->completed_ns);
	spin_unlock_irqrestore(&fd->lock, flags);
}

static void frontrow_finish_request(struct request *rq)
{
	struct frontrow_rq *fr = frontrow_rq(rq);
	struct frontrow_data *fd = data_of(rq->q);
	bool runs_all = false;
	unsigned long flags;
	u64 now_ns;

	if (!fr || fr->item.state == FRONTROW_RQ_IDLE)
		return;
	spin_lock_irqsave(&fd->lock, flags);
	now_ns = fr->completed_ns ?: ktime_get_ns();
	if (fr->item.state == FRONTROW_RQ_FLUSHING)
		frontrow_flush_ends(&fd->core, &fr->item, true, now_ns);
	else
		complete_tracked(fd, fr, now_ns);
	frontrow_count_idle(&fd->core, now_ns);
	/*
	 * A completion restarts its own hardware queue only; requests may have
	 * been left in others.
	 */
	if (fd->is_held && rq->q->nr_hw_queues > 1) {
		fd->is_held = false;
		runs_all = true;
	}
	if (fd->rests && frontrow_has_rested(&fd->core)) {
		fd->rests = false;
		runs_all = true;
	}
	spin_unlock_irqrestore(&fd->lock, flags);
	if (runs_all)
		frontrow_run_queues(rq->q);
}

/* The driver has returned the request; insert_requests gets it again. */
static void frontrow_requeue_request(struct request *rq)
{
	struct frontrow_rq *fr = frontrow_rq(rq);
	struct frontrow_data *fd = data_of(rq->q);
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	if (fr && fr->item.state == FRONTROW_RQ_IN_DEVICE) {
		leave_device(fd, fr);
		frontrow_return(&fd->core, &fr->item, ktime_get_ns());
	}
	spin_unlock_irqrestore(&fd->lock, flags);
}

static noinline void flush_completed(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	frontrow_flush_ends(&fd->core, &fr->item, true, ktime_get_ns());
	spin_unlock_irqrestore(&fd->lock, flags);
}

/*
 * Records the completion time, so that finish_request need not read the clock.
 * @now may be the older time of a plug. Data of a flush sequence end here: some
 * kernels do not call finish_request for them.
 */
static void frontrow_completed_request(struct request *rq, u64 now)
{
	struct frontrow_rq *fr = frontrow_rq(rq);

	if (!fr)
		return;
	fr->completed_ns = max(now, fr->item.dispatched_ns);
	if (fr->item.state == FRONTROW_RQ_FLUSHING)
		flush_completed(data_of(rq->q), fr);
	else if (fr->item.state == FRONTROW_RQ_IN_DEVICE && fr->item.precedes_flush)
		data_completed(data_of(rq->q), fr);
}

/*
 * Set-up and tear-down of a queue and its hardware contexts
 */

/*
 * Runs with the queue frozen: no request holds a frontrow_rq. As with all memory that is
 * taken meanwhile, reclaim must not write to this queue.
 */
static int allocate_rqs(struct blk_mq_hw_ctx *hctx)
{
	struct frontrow_rqs *rqs = hctx->sched_data;
	unsigned int nr = hctx->sched_tags->nr_tags;
	struct frontrow_rq *rq;

	if (nr <= rqs->nr)
		return 0;
	rq = kvcalloc(nr, sizeof(*rq), GFP_NOIO);
	if (!rq)
		return -ENOMEM;
	kvfree(rqs->rq);
	rqs->rq = rq;
	rqs->nr = nr;
	return 0;
}

static void hctx_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	/* Without memory, requests with high tags bypass the classes. */
	if (allocate_rqs(hctx))
		pr_warn_ratelimited("frontrow: no memory to observe all of nr_requests\n");
	frontrow_tags_updated(data_of(hctx->queue), hctx);
}

#ifdef FRONTROW_ABI_DEPTH_UPDATED_QUEUE
static void frontrow_depth_updated(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		hctx_depth_updated(hctx);
}
#else
static void frontrow_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	hctx_depth_updated(hctx);
}
#endif

static void free_rqs(struct frontrow_data *fd, struct frontrow_rqs *rqs)
{
	if (rqs == &fd->shared_rqs)
		return;
	kvfree(rqs->rq);
	kfree(rqs);
}

/* The 2,048 tags of a SCSI host would take half a MB for each of its hardware queues. */
static struct frontrow_rqs *rqs_for(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx)
{
	if (hctx->flags & BLK_MQ_F_TAG_HCTX_SHARED)
		return &fd->shared_rqs;
	return kzalloc_node(sizeof(struct frontrow_rqs), GFP_NOIO, hctx->numa_node);
}

static int frontrow_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct frontrow_data *fd = data_of(hctx->queue);
	struct frontrow_rqs *rqs = rqs_for(fd, hctx);
	int err;

	if (!rqs)
		return -ENOMEM;
	hctx->sched_data = rqs;
	err = allocate_rqs(hctx);
	if (err) {
		hctx->sched_data = NULL;
		free_rqs(fd, rqs);
		return err;
	}
	frontrow_tags_updated(fd, hctx);
	return 0;
}

static void frontrow_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct frontrow_rqs *rqs = hctx->sched_data;

	hctx->sched_data = NULL;
	free_rqs(data_of(hctx->queue), rqs);
}

/*
 * wbt delays bios before they become requests, outside the scheduler. Dispatch
 * does what wbt does for reads.
 */
static void wbt_off(struct request_queue *q, struct elevator_queue *eq)
{
#ifdef FRONTROW_ABI_ELEVATOR_FLAGS
	set_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
#endif
#ifdef FRONTROW_ABI_QUEUE_FLAG_DISABLE_WBT
	/*
	 * Otherwise the core enables wbt after the previous scheduler has
	 * exited.
	 */
	blk_queue_flag_set(QUEUE_FLAG_DISABLE_WBT_DEF, q);
#endif
#ifdef FRONTROW_ABI_HAS_WBT
#ifdef FRONTROW_ABI_WBT_GENDISK
	wbt_disable_default(q->disk);
#else
	wbt_disable_default(q);
#endif
#endif
}

static void wbt_as_it_was(struct request_queue *q, struct elevator_queue *eq)
{
#ifdef FRONTROW_ABI_ELEVATOR_FLAGS
	clear_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
#endif
#ifdef FRONTROW_ABI_QUEUE_FLAG_DISABLE_WBT
	blk_queue_flag_clear(QUEUE_FLAG_DISABLE_WBT_DEF, q);
#endif
#ifdef FRONTROW_ABI_HAS_WBT
#ifdef FRONTROW_ABI_WBT_GENDISK
	wbt_enable_default(q->disk);
#else
	wbt_enable_default(q);
#endif
#endif
}

static struct frontrow_data *allocate_data(struct request_queue *q)
{
	struct frontrow_data *fd = kvzalloc_node(sizeof(*fd), GFP_NOIO, q->node);

	if (!fd)
		return NULL;
	fd->q = q;
	spin_lock_init(&fd->lock);
	init_waitqueue_head(&fd->file_wait);
	INIT_LIST_HEAD(&fd->head);
	fd->boost_mask = GENMASK(FRONTROW_NR_DEPENDENCIES - 1, 0);
	fd->is_one_by_one = q->nr_hw_queues == 1 && q->tag_set->flags & BLK_MQ_F_BLOCKING;
	frontrow_rerun_init(fd);
	frontrow_resize_init(fd);
	fd->core.depth = depth_of(q);
	fd->core.is_serial = fd->is_one_by_one || fd->core.depth == 1;
	frontrow_core_init(&fd->core, ktime_get_ns());
	return fd;
}

#ifdef FRONTROW_ABI_INIT_SCHED_EQ
static int frontrow_init_sched(struct request_queue *q, struct elevator_queue *eq)
{
	struct frontrow_data *fd = allocate_data(q);

	if (!fd)
		return -ENOMEM;
#else
static int frontrow_init_sched(struct request_queue *q, struct elevator_type *type)
{
	struct elevator_queue *eq = elevator_alloc(q, type);
	struct frontrow_data *fd;

	if (!eq)
		return -ENOMEM;
	fd = allocate_data(q);
	if (!fd) {
		kobject_put(&eq->kobj);
		return -ENOMEM;
	}
#endif
	eq->elevator_data = fd;
	q->elevator = eq;
	/* One lock and one set of lists serve all hardware queues. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	frontrow_async_depth_init(q);
	wbt_off(q, eq);
	frontrow_detect_add(fd);
	return 0;
}

static void frontrow_exit_sched(struct elevator_queue *eq)
{
	struct frontrow_data *fd = eq->elevator_data;

	frontrow_detect_del(fd);
	frontrow_rerun_exit(fd);
	frontrow_resize_exit(fd);
	frontrow_roles_exit(fd);
	wbt_as_it_was(fd->q, eq);
	WARN_ON_ONCE(fd->core.nr_in_device);
	kvfree(fd->shared_rqs.rq);
	kvfree(fd);
}

static struct elevator_type frontrow_elevator = {
	.ops = {
		.init_sched		= frontrow_init_sched,
		.exit_sched		= frontrow_exit_sched,
		.init_hctx		= frontrow_init_hctx,
		.exit_hctx		= frontrow_exit_hctx,
		.depth_updated		= frontrow_depth_updated,
		.limit_depth		= frontrow_limit_depth,
		.allow_merge		= frontrow_allow_merge,
		.bio_merge		= frontrow_bio_merge,
		.request_merged		= frontrow_request_merged,
		.requests_merged	= frontrow_requests_merged,
		.prepare_request	= frontrow_prepare_request,
		.insert_requests	= frontrow_insert_requests,
		.has_work		= frontrow_has_work,
		.dispatch_request	= frontrow_dispatch,
		.requeue_request	= frontrow_requeue_request,
		.completed_request	= frontrow_completed_request,
		.finish_request		= frontrow_finish_request,
	},
	.elevator_attrs = frontrow_attrs,
	.elevator_name = "frontrow",
	.elevator_owner = THIS_MODULE,
};

static int __init frontrow_init(void)
{
	int err;

	err = frontrow_tags_init();
	if (err)
		return err;
	err = frontrow_detect_init();
	if (err)
		return err;
	err = elv_register(&frontrow_elevator);
	if (err)
		frontrow_detect_exit();
	return err;
}

static void __exit frontrow_exit(void)
{
	elv_unregister(&frontrow_elevator);
	frontrow_detect_exit();
	/*
	 * Callbacks of call_rcu() in role.c are code of this module: wait for
	 * them before it is unloaded.
	 */
	rcu_barrier();
}

module_init(frontrow_init);
module_exit(frontrow_exit);

MODULE_LICENSE("GPL");
MODULE_ALIAS("frontrow-iosched");
MODULE_DESCRIPTION("I/O scheduler that serves first what somebody waits for");
