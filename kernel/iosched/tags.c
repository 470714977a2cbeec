// SPDX-License-Identifier: GPL-2.0
/*
 * First lever: tags.
 *
 * Whoever finds no tag sleeps in blk_mq_get_tag() first come, first served,
 * and what sleeps there is invisible to the scheduler: a foreground request
 * queues behind the background's, and a write that somebody waits for cannot
 * be found. kworker may even sleep there with a journal handle open, which
 * holds up every commit. So there should be many tags (the tools set
 * nr_requests; the kernel's default on an eMMC of depth 2 is 4), and
 *
 *	synchronous requests		may use all,
 *	asynchronous ones of a task,
 *	under a journal handle, or
 *	on the way to an awaited folio	three quarters,
 *	writeback workers else		one eighth;
 *	the foreground, and workers
 *	that write for it		all,
 *	synchronous ones of a process
 *	that has many here		half,
 *	the background			half, of its asynchronous ones an eighth
 *					where nobody depends on them,
 *	metadata beside these		three quarters.
 *
 * A task submits asynchronous writes itself when ext4 flushes a file that was
 * truncated and written again, at its close: it would wait in person. The
 * workers' eighth bounds how old a request can get at the guaranteed share, and
 * how long a page stays under writeback, where it is in its writers' way.
 */
#include <linux/sbitmap.h>

#include "frontrow.h"

/*
 * shallow_depth counts per sbitmap word in older kernels and over the whole
 * map in newer ones. The type does not tell; a map of our own does.
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
 * Called in the sender of an asynchronous bio, or request that has just been filled. Bios
 * that are cut into many requests come here only by the latter. Without the lock: a
 * slot that two tasks write at once is a hint that is wrong for one of them.
 */
void frontrow_note_sender(struct frontrow_data *fd, enum frontrow_ground ground,
			  const void *mapping)
{
	struct frontrow_sender *sender = sender_of_current(fd);

	WRITE_ONCE(sender->ground, ground);
	WRITE_ONCE(sender->mapping, mapping);
	WRITE_ONCE(sender->task, current);
}

/*
 * A writeback worker belongs to no cgroup; what it writes does. A worker of which
 * nothing is known is in the middle.
 */
static enum frontrow_ground ground_of_sender(struct frontrow_data *fd)
{
	const struct frontrow_sender *sender = sender_of_current(fd);

	if (!(frontrow_flags(current) & PF_KTHREAD) || READ_ONCE(sender->task) != current)
		return frontrow_ground_of_current(fd);
	return READ_ONCE(sender->ground);
}

static bool sends_what_is_awaited(struct frontrow_data *fd)
{
	const struct frontrow_sender *sender = sender_of_current(fd);
	unsigned long flags;
	bool is_awaited;

	if (!READ_ONCE(fd->nr_waiters) || READ_ONCE(sender->task) != current)
		return false;
	spin_lock_irqsave(&fd->lock, flags);
	is_awaited = frontrow_is_awaited(fd, READ_ONCE(sender->mapping));
	spin_unlock_irqrestore(&fd->lock, flags);
	return is_awaited;
}

/*
 * A buffer of metadata stays locked while its worker sleeps, and with a worker for
 * each cgroup of the background that is a long line to stand in.
 */
static bool somebody_depends_on(struct frontrow_data *fd, blk_opf_t opf,
				enum frontrow_ground ground)
{
	bool is_task = !(frontrow_flags(current) & PF_KTHREAD);

	return (is_task && ground != FRONTROW_BACKGROUND) ||
	       current->journal_info || (frontrow_flags(current) & PF_MEMALLOC) ||
	       (opf & REQ_SWAP) || READ_ONCE(fd->nr_unseen) ||
	       ((opf & REQ_META) && rcu_access_pointer(fd->grounds)) ||
	       sends_what_is_awaited(fd);
}

/*
 * Whoever syncs a file of scattered pages would take all tags, and who comes with
 * one request would stand in line for the first that is free again.
 */
static bool has_many(const struct frontrow_data *fd)
{
	return READ_ONCE(fd->nr_queued) >= fd->nr_many &&
	       !(current->flags & PF_KTHREAD) &&
	       READ_ONCE(fd->nr_owned[frontrow_owner_of_current()]) >= fd->nr_many;
}

/*
 * The background may sync megabytes at a time, and several apps at once, which would
 * leave no tag to a foreground that has only begun to work; but not where it holds
 * a journal handle, for which that may wait.
 */
void frontrow_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct frontrow_data *fd = data->q->elevator->elevator_data;
	enum frontrow_ground ground = op_is_sync(opf) ?
				      frontrow_ground_of_current(fd) :
				      ground_of_sender(fd);

	if (ground == FRONTROW_FOREGROUND)
		return;
	if (!op_is_sync(opf))
		data->shallow_depth = somebody_depends_on(fd, opf, ground) ?
				      fd->task_shallow_depth :
				      fd->worker_shallow_depth;
	else if (!current->journal_info &&
		 (ground == FRONTROW_BACKGROUND || has_many(fd)))
		data->shallow_depth = fd->half_shallow_depth;
}

static unsigned int eighths(unsigned int depth, unsigned int nr)
{
	return max(1U, depth * nr / 8);
}

/*
 * Runs with the queue frozen. hctx->sched_tags is read because nr_requests
 * still holds the old number when the kernel calls depth_updated.
 */
void frontrow_tags_updated(struct frontrow_data *fd, struct blk_mq_hw_ctx *hctx)
{
	struct sbitmap_queue *map = &hctx->sched_tags->bitmap_tags;
	unsigned int depth = map->sb.depth;
	unsigned int counted = depth;

	if (depth_counts_per_word)
		counted = min(depth, 1U << map->sb.shift);
	WRITE_ONCE(fd->worker_tags, eighths(depth, 1));
	fd->worker_shallow_depth = eighths(counted, 1);
	fd->task_shallow_depth = eighths(counted, 6);
	fd->half_shallow_depth = eighths(counted, 4);
	fd->nr_many = max(MANY_OF_ONE_OWNER, depth / 64);
	sbitmap_queue_min_shallow_depth(map, 1);
}
