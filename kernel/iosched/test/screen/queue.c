// SPDX-License-Identifier: GPL-2.0
#include "queue.h"

/* `frontrow sched enable` sets 512 requests, of which workers have an eighth. */
#define FRONTROW_WORKER_TAGS 64
/* wb_background of calc_wb_limits() in block/blk-wbt.c, at its usual depth of 16. */
#define WBT_BACKGROUND 4

/* Constants of block/mq-deadline.c. */
#define READ_EXPIRE_NS	(500 * NSEC_PER_MSEC)
#define WRITE_EXPIRE_NS	(5 * NSEC_PER_SEC)
#define WRITES_STARVED	2
#define FIFO_BATCH	16

void queue_init(struct queue *queue, enum scheduler scheduler, struct disk *disk, bool has_roles)
{
	memset(queue, 0, sizeof(*queue));
	queue->scheduler = scheduler;
	queue->disk = disk;
	queue->look_again_ns = U64_MAX;
	queue->core.depth = disk->tags;
	queue->core.is_serial = disk->is_serial;
	queue->core.most_bytes = disk->config.command_pages * FTL_PAGE_BYTES;
	frontrow_core_init(&queue->core, 0);
	queue->core.has_roles = has_roles;
	queue->slice_bytes = queue->core.most_bytes;
}

/* mq-deadline lets a worker have all; what limits it is wbt, beside others' I/O. */
unsigned int queue_worker_tags(const struct queue *queue)
{
	return queue->scheduler == FRONTROW ? FRONTROW_WORKER_TAGS : WBT_BACKGROUND;
}

void queue_insert(struct queue *queue, struct io *io, u64 now_ns)
{
	io->came_ns = now_ns;
	io->next = NULL;
	if (queue->scheduler == MQ_DEADLINE) {
		struct io **end = &queue->deadline.by_age[io->op != FTL_READ];

		while (*end)
			end = &(*end)->next;
		*end = io;
		return;
	}
	io->item.inserted_ns = now_ns;
	frontrow_identify(&queue->core, &io->item, now_ns);
	frontrow_insert(&queue->core, &io->item, io->item.own_class, false);
	queue->rests = false;
}

static bool has_expired(const struct io *io, unsigned int direction, u64 now_ns)
{
	return io && io->came_ns + (direction ? WRITE_EXPIRE_NS : READ_EXPIRE_NS) <= now_ns;
}

/* The lowest place from where the last batch ended; the oldest if there is none. */
static struct io *next_in_place(struct deadline *deadline, unsigned int direction)
{
	struct io *each, *found = NULL;

	for (each = deadline->by_age[direction]; each; each = each->next)
		if (each->lba >= deadline->next_lba && (!found || each->lba < found->lba))
			found = each;
	return found;
}

static void take_out(struct io **list, struct io *io)
{
	while (*list != io)
		list = &(*list)->next;
	*list = io->next;
}

/* __dd_dispatch_request() of one priority. */
static struct io *deadline_next(struct deadline *deadline, u64 now_ns)
{
	struct io *reads = deadline->by_age[0], *writes = deadline->by_age[1];
	struct io *io = next_in_place(deadline, deadline->direction);
	unsigned int direction = deadline->direction;

	if (!io || deadline->batch >= FIFO_BATCH) {
		direction = !reads;
		if (reads && writes && deadline->starved++ >= WRITES_STARVED)
			direction = 1;
		if (direction)
			deadline->starved = 0;
		if (!deadline->by_age[direction])
			return NULL;
		io = next_in_place(deadline, direction);
		if (!io || has_expired(deadline->by_age[direction], direction, now_ns))
			io = deadline->by_age[direction];
		deadline->batch = 0;
	}
	take_out(&deadline->by_age[direction], io);
	deadline->direction = direction;
	deadline->batch++;
	deadline->next_lba = io->lba + io->pages;
	return io;
}

/*
 * blk_mq_do_dispatch_sched() takes as many as have a driver tag and then issues them. A
 * driver that waits for each issues all of them before the scheduler is asked again.
 */
static void run_deadline(struct queue *queue, u64 now_ns)
{
	struct io *io;

	if (queue->disk->is_serial && !disk_has_begun(queue->disk))
		return;
	while (disk_has_tag(queue->disk) && (io = deadline_next(&queue->deadline, now_ns)))
		disk_give(queue->disk, io, now_ns);
}

static void run_frontrow(struct queue *queue, u64 now_ns)
{
	struct frontrow_core *core = &queue->core;
	struct frontrow_view view;
	struct frontrow_item *item;

	if (queue->rests && !frontrow_has_rested(core))
		return;
	queue->rests = false;
	queue->look_again_ns = U64_MAX;
	while (core->nr_queued && disk_has_tag(queue->disk)) {
		if (queue->disk->is_serial && !disk_has_begun(queue->disk))
			return;
		frontrow_look(core, now_ns, &view);
		item = frontrow_next(core, &view);
		if (!item) {
			queue->rests = frontrow_rests(core, &view);
			if (!queue->rests)
				queue->look_again_ns = frontrow_look_again_ns(core, &view);
			return;
		}
		disk_give(queue->disk, container_of(item, struct io, item), now_ns);
	}
}

void queue_run(struct queue *queue, u64 now_ns)
{
	if (queue->scheduler == FRONTROW)
		run_frontrow(queue, now_ns);
	else
		run_deadline(queue, now_ns);
}

void queue_completed(struct queue *queue, struct io *io, u64 now_ns)
{
	if (queue->scheduler != FRONTROW || io->item.state != FRONTROW_RQ_IN_DEVICE)
		return;
	frontrow_complete(&queue->core, &io->item, now_ns);
	if (queue->core.is_slice_new)
		queue->slice_bytes = queue->core.slice_bytes;
	queue->core.is_slice_new = false;
}
