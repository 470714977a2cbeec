// SPDX-License-Identifier: GPL-2.0
/*
 * The dispatch classes as lists: fifo within a class, one sector-sorted tree a
 * direction for front merges.
 *
 * Writeback submits in file and sector order already, and flash does not mind
 * the rest, so there is no elevator sweep: fifo keeps every age bounded and
 * the order easy to check with blktrace.
 */
#include "frontrow.h"

static const char *const class_names[FRONTROW_NR_CLASSES] = {
	[FRONTROW_FG_READ]	= "fg_read",
	[FRONTROW_FG_WRITE]	= "fg_write",
	[FRONTROW_SYNC_READ]	= "sync_read",
	[FRONTROW_SYNC_WRITE]	= "sync_write",
	[FRONTROW_BOOSTED]	= "boosted",
	[FRONTROW_FG_ASYNC]	= "fg_async",
	[FRONTROW_BG_SYNC]	= "bg_sync",
	[FRONTROW_ASYNC]	= "async",
	[FRONTROW_DISCARD]	= "discard",
};

const char *frontrow_class_name(enum frontrow_class class)
{
	return class_names[class];
}

/* By ground: read, synchronous write, asynchronous write. */
static const enum frontrow_class classes[FRONTROW_NR_GROUNDS][3] = {
	[FRONTROW_MIDDLE] = {
		FRONTROW_SYNC_READ, FRONTROW_SYNC_WRITE, FRONTROW_ASYNC,
	},
	[FRONTROW_FOREGROUND] = {
		FRONTROW_FG_READ, FRONTROW_FG_WRITE, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_BACKGROUND] = {
		FRONTROW_BG_SYNC, FRONTROW_BG_SYNC, FRONTROW_ASYNC,
	},
};

/* The class that @rq belongs to by itself, whoever waits for it. */
enum frontrow_class frontrow_class_of(struct request *rq)
{
	const enum frontrow_class *of_ground = classes[frontrow_rq(rq)->ground];

	if (req_op(rq) == REQ_OP_DISCARD || req_op(rq) == REQ_OP_SECURE_ERASE)
		return FRONTROW_DISCARD;
	if (!op_is_sync(rq->cmd_flags))
		return of_ground[2];
	return of_ground[rq_data_dir(rq) == READ ? 0 : 1];
}

void frontrow_enqueue(struct frontrow_data *fd, struct request *rq,
		      enum frontrow_class class)
{
	struct frontrow_rq *fr = frontrow_rq(rq);

	fr->class = class;
	fr->in_class_since_ns = fr->inserted_ns;
	fr->state = FRONTROW_RQ_QUEUED;
	list_add_tail(&rq->queuelist, &fd->fifo[class]);
	fd->queued[class]++;
	elv_rb_add(&fd->sorted[rq_data_dir(rq)], rq);
}

void frontrow_dequeue(struct frontrow_data *fd, struct request *rq)
{
	struct frontrow_rq *fr = frontrow_rq(rq);

	list_del_init(&rq->queuelist);
	fd->queued[fr->class]--;
	elv_rb_del(&fd->sorted[rq_data_dir(rq)], rq);
	elv_rqhash_del(fd->q, rq);
	if (fd->q->last_merge == rq)
		fd->q->last_merge = NULL;
	fr->state = FRONTROW_RQ_IDLE;
}

/* Before all others of its class. */
void frontrow_put_first(struct frontrow_data *fd, struct request *rq)
{
	list_move(&rq->queuelist, &fd->fifo[frontrow_rq(rq)->class]);
}

/*
 * Behind @place and all that follow it and are no younger. Returns the place
 * where the next one may begin to look.
 */
struct list_head *frontrow_put_by_age(struct frontrow_data *fd,
				      struct request *rq, struct list_head *place)
{
	const struct list_head *fifo = &fd->fifo[frontrow_rq(rq)->class];

	while (place->next != fifo) {
		struct request *next = list_entry_rq(place->next);

		if (next == rq ||
		    frontrow_rq(next)->inserted_ns > frontrow_rq(rq)->inserted_ns)
			break;
		place = place->next;
	}
	list_move(&rq->queuelist, place);
	return &rq->queuelist;
}

/* Move a queued request to another class, at its end. */
void frontrow_reclass(struct frontrow_data *fd, struct request *rq,
		      enum frontrow_class class)
{
	struct frontrow_rq *fr = frontrow_rq(rq);

	fd->queued[fr->class]--;
	fd->queued[class]++;
	fr->class = class;
	fr->in_class_since_ns = ktime_get_ns();
	list_move_tail(&rq->queuelist, &fd->fifo[class]);
}
