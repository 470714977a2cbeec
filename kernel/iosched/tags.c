// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of scheduler tags.
 *
 * Tasks without a tag sleep in blk_mq_get_tag() in FIFO order, invisible to the
 * scheduler: a foreground request queues behind the background's, and an
 * awaited write cannot be promoted. kworker may even sleep there with a journal
 * handle, which blocks each commit. So there should be many tags (the tools set
 * nr_requests; the kernel's default for an eMMC of depth 2 is 4), with these
 * limits:
 *
 *	synchronous requests			all,
 *	asynchronous ones of a task,
 *	under a journal handle, or
 *	before an awaited folio			three quarters,
 *	other ones of writeback workers		one eighth;
 *	the foreground, and workers
 *	that write for it			all,
 *	synchronous ones of a process
 *	with many requests here			half,
 *	the background				half; an eighth of its
 *						asynchronous ones that
 *						nobody depends on,
 *	metadata while roles are in use		three quarters.
 *
 * Of asynchronous requests there are no more than queue/async_depth, where the kernel
 * has that (7.x), but for the foreground's.
 *
 * A worker also submits no more of one file than the device takes in
 * FILE_LIMIT_MS.
 *
 * Tasks submit asynchronous writes themselves when ext4 flushes a truncated and
 * rewritten file at close, and would wait for the tag. The workers' eighth
 * bounds the age of requests at the guaranteed share, and the time that a page
 * stays under writeback and blocks its writers.
 */
#include <linux/sbitmap.h>

#include "frontrow.h"

/*
 * shallow_depth is per sbitmap word in older kernels and for the whole map in
 * newer ones, with the same type. A test map of our own tells which.
 */
static bool depth_counts_per_word;

int frontrow_tags_init(void)
{
	const unsigned int word_bits = 32, shallow = 16;
	struct sbitmap_queue map;
	unsigned int got = 0;
	int err, i;

	err = sbitmap_queue_init_node(&map, 4 * word_bits, ilog2(word_bits),
				      false, GFP_KERNEL, NUMA_NO_NODE);
	if (err)
		return err;
	sbitmap_queue_min_shallow_depth(&map, shallow);
	for (i = 0; i < 4 * word_bits; i++) {
		if (sbitmap_queue_get_shallow(&map, shallow) < 0)
			break;
		got++;
	}
	sbitmap_queue_free(&map);
	depth_counts_per_word = got > shallow;
	return 0;
}

static struct frontrow_sender *sender_of_current(struct frontrow_data *fd)
{
	return &fd->senders[hash_ptr(current, FRONTROW_SENDER_BITS)];
}

/*
 * Called in the sender of an asynchronous bio, or of a request that was just
 * filled (with nomerges only the latter, unless the bio is split). Unlocked: two
 * tasks that write a slot at once make the hint wrong for one of them.
 */
void frontrow_note_sender(struct frontrow_data *fd, enum frontrow_role role,
			  const void *mapping)
{
	struct frontrow_sender *sender = sender_of_current(fd);

	WRITE_ONCE(sender->role, role);
	WRITE_ONCE(sender->mapping, mapping);
	WRITE_ONCE(sender->task, current);
}

/* Called in the sender of @bio; notes nothing of a synchronous one. */
void frontrow_note_bio(struct frontrow_data *fd, struct bio *bio)
{
	if (!op_is_sync(bio->bi_opf))
		frontrow_note_sender(fd, frontrow_role_of_bio(fd, bio),
				     frontrow_mapping_of(bio));
}

/* What the current task is about to send. */
struct sending {
	blk_opf_t opf;
	enum frontrow_role role;
	bool is_noted;		/* asynchronous, and its sender's slot is the task's */
	const void *mapping;	/* NULL: no known file */
};

/*
 * The part that the block layer has just split off a bio is not offered to be
 * merged (bio_submit_split() sets REQ_NOMERGE), so the slot names what the task
 * sent before. The rest of the bio waits in the task's list, which is empty
 * otherwise.
 */
static void note_split(struct frontrow_data *fd)
{
	struct bio *rest = current->bio_list ? current->bio_list->tail : NULL;

	if (rest && bdev_get_queue(rest->bi_bdev) == fd->q)
		frontrow_note_bio(fd, rest);
}

/*
 * Read once, before any sleep: that flushes the task's plug, and the slot then
 * names the file of what was in it.
 *
 * Writeback workers have no cgroup, but their inodes do. A worker without a
 * recorded bio has the role "other".
 */
static struct sending what_is_sent(struct frontrow_data *fd, blk_opf_t opf)
{
	const struct frontrow_sender *sender = sender_of_current(fd);
	struct sending sent = { .opf = opf };

	if (!op_is_sync(opf))
		note_split(fd);
	sent.is_noted = !op_is_sync(opf) && READ_ONCE(sender->task) == current;
	if (sent.is_noted)
		sent.mapping = READ_ONCE(sender->mapping);
	if (sent.is_noted && (frontrow_flags(current) & PF_KTHREAD))
		sent.role = READ_ONCE(sender->role);
	else
		sent.role = frontrow_role_of(fd, current);
	return sent;
}

static bool is_awaited(struct frontrow_data *fd, const void *mapping)
{
	unsigned long flags;
	bool found;

	if (!mapping || !READ_ONCE(fd->core.nr_waiters))
		return false;
	spin_lock_irqsave(&fd->lock, flags);
	found = frontrow_is_awaited(fd, mapping);
	spin_unlock_irqrestore(&fd->lock, flags);
	return found;
}

/*
 * A thread that submits for a whole device (dm-crypt's, a RAID's, XFS's log) has others'
 * synchronous bios behind the one that it would sleep with. Those who wait are
 * known, even where their files are not.
 */
static bool submits_for_waiters(const struct frontrow_data *fd)
{
	return frontrow_is_kernels_own(current) && READ_ONCE(fd->core.nr_waiters);
}

/*
 * A metadata buffer stays locked while its worker sleeps for a tag, and there
 * is a worker for each background cgroup.
 */
static bool somebody_depends_on(struct frontrow_data *fd, const struct sending *sent)
{
	bool is_task = !(frontrow_flags(current) & PF_KTHREAD);

	return (is_task && sent->role != FRONTROW_BACKGROUND) || submits_for_waiters(fd) ||
	       current->journal_info || (frontrow_flags(current) & PF_MEMALLOC) ||
	       (sent->opf & REQ_SWAP) || READ_ONCE(fd->nr_unseen) ||
	       ((sent->opf & REQ_META) && rcu_access_pointer(fd->roles)) ||
	       is_awaited(fd, sent->mapping);
}

/*
 * A task that syncs scattered pages would take all tags, and a task with a
 * single request would wait for the first that is freed.
 */
static bool has_many(const struct frontrow_data *fd)
{
	return READ_ONCE(fd->core.nr_queued) >= fd->nr_many &&
	       !(current->flags & PF_KTHREAD) &&
	       READ_ONCE(fd->core.nr_owned[frontrow_owner_of(current)]) >= fd->nr_many;
}

/* Most bytes of a file's writeback that are here at once; NULL: of no known file. */
static u64 file_limit_bytes(const struct frontrow_data *fd, const void *mapping)
{
	return div_u64(READ_ONCE(fd->core.budget.bytes_per_s), MSEC_PER_SEC) *
	       (mapping ? FILE_LIMIT_MS : NAMELESS_LIMIT_MS);
}

/* Upper bound of the bytes in the task's plug, which are not inserted yet. */
static u64 plugged_bytes(const struct frontrow_data *fd)
{
	return current->plug ? ((u64)current->plug->rq_count *
				READ_ONCE(fd->applied_max_sectors)) << SECTOR_SHIFT : 0;
}

/*
 * ext4 ends the writeback of an extent's pages together, and a split bio ends
 * with its last part. So a task that appends to a file waits for all that a
 * worker has submitted of it before the task's page. While nobody waits for a
 * file, a worker submits no more of it than the device takes in FILE_LIMIT_MS.
 * Writes that name no file, such as dm-crypt's, cannot be promoted, so whoever
 * waits for one waits for all that are queued before it.
 *
 * It sleeps here rather than for a tag, since frontrow_wake_workers() can wake
 * it here. That is called when a wait begins and when the file's bytes have
 * fallen. The worker rechecks both once it is on the wait queue, and the
 * barrier in wq_has_sleeper() pairs with that, so no wake-up is lost; the
 * timeout bounds the sleep in any case.
 */
static void throttle_worker(struct frontrow_data *fd, const struct sending *sent)
{
	const u64 *bytes = &fd->file_async_bytes[frontrow_mapping_hash(sent->mapping)];
	u64 limit_bytes = file_limit_bytes(fd, sent->mapping);

	if (READ_ONCE(*bytes) + plugged_bytes(fd) <= limit_bytes ||
	    somebody_depends_on(fd, sent))
		return;
	wait_event_timeout(fd->file_wait,
			   READ_ONCE(*bytes) + plugged_bytes(fd) <= limit_bytes / 4 * 3 ||
			   somebody_depends_on(fd, sent),
			   msecs_to_jiffies(FILE_LIMIT_MS));
}

void frontrow_file_add(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	fr->file_async_bytes = blk_rq_bytes(fr->rq);
	fd->file_async_bytes[frontrow_mapping_hash(fr->item.mapping)] += fr->file_async_bytes;
}

void frontrow_file_sub(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	u64 *bytes = &fd->file_async_bytes[frontrow_mapping_hash(fr->item.mapping)];

	*bytes -= fr->file_async_bytes;
	if (*bytes <= file_limit_bytes(fd, fr->item.mapping) / 4 * 3)
		frontrow_wake_workers(fd);
}

/* A file's bytes have fallen, or a task has begun to wait for a file. */
void frontrow_wake_workers(struct frontrow_data *fd)
{
	if (wq_has_sleeper(&fd->file_wait))
		wake_up_all(&fd->file_wait);
}

/*
 * Several background apps that sync megabytes would leave no tag to a
 * foreground that is just starting. Not limited under a journal handle, since
 * the foreground may wait for it.
 */
void frontrow_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct frontrow_data *fd = data->q->elevator->elevator_data;
	const struct sending sent = what_is_sent(fd, opf);

	if (sent.is_noted && !(data->flags & BLK_MQ_REQ_NOWAIT))
		throttle_worker(fd, &sent);
	if (sent.role == FRONTROW_FOREGROUND)
		return;
	if (!op_is_sync(opf))
		data->shallow_depth = somebody_depends_on(fd, &sent) ?
				      fd->task_shallow_depth :
				      fd->worker_shallow_depth;
	else if (!current->journal_info &&
		 (sent.role == FRONTROW_BACKGROUND || has_many(fd)))
		data->shallow_depth = fd->half_shallow_depth;
}

static unsigned int eighths(unsigned int depth, unsigned int nr)
{
	return max(1U, depth * nr / 8);
}

/*
 * Runs with the queue frozen. Reads hctx->sched_tags, since nr_requests still
 * has the old value when the kernel calls depth_updated.
 */
void frontrow_tags_updated(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx)
{
	struct sbitmap_queue *map = &hctx->sched_tags->bitmap_tags;
	unsigned int depth = map->sb.depth;
	unsigned int async_depth = frontrow_async_depth(fd->q);
	unsigned int counted = depth;

	if (depth_counts_per_word)
		counted = min(depth, 1U << map->sb.shift);
	WRITE_ONCE(fd->worker_tags, min(eighths(depth, 1), async_depth));
	fd->worker_shallow_depth = min(eighths(counted, 1), async_depth);
	fd->task_shallow_depth = min(eighths(counted, 6), async_depth);
	fd->half_shallow_depth = eighths(counted, 4);
	fd->nr_many = max(MANY_OF_ONE_OWNER, depth / 64);
	sbitmap_queue_min_shallow_depth(map, 1);
}
