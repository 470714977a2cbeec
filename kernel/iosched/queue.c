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
	[FRONTROW_VISIBLE_1]	= "visible_1",
	[FRONTROW_VISIBLE_2]	= "visible_2",
	[FRONTROW_VISIBLE_3]	= "visible_3",
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
	[FRONTROW_VISIBLE] = {
		FRONTROW_VISIBLE_1, FRONTROW_VISIBLE_1, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_VISIBLE + 1] = {
		FRONTROW_VISIBLE_2, FRONTROW_VISIBLE_2, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_VISIBLE + 2] = {
		FRONTROW_VISIBLE_3, FRONTROW_VISIBLE_3, FRONTROW_FG_ASYNC,
	},
};

/*
 * Who waits with a journal handle holds up everybody's commit, the foreground's among
 * them. That is for what it reads, and for blocks that it fills with zeroes; a file's
 * pages are only submitted under a handle, and would be in the commit's own way.
 */
static bool holds_up_commit(struct request *rq)
{
	return frontrow_rq(rq)->under_handle &&
	       (rq_data_dir(rq) == READ || !frontrow_mapping_of(rq->bio));
}

/* The class that @rq belongs to by itself, whoever waits for it. */
enum frontrow_class frontrow_class_of(struct request *rq)
{
	const struct frontrow_rq *fr = frontrow_rq(rq);
	enum frontrow_ground ground = fr->ground;

	if (req_op(rq) == REQ_OP_DISCARD || req_op(rq) == REQ_OP_SECURE_ERASE)
		return FRONTROW_DISCARD;
	if (!op_is_sync(rq->cmd_flags))
		return classes[ground][2];
	if (holds_up_commit(rq) && ground != FRONTROW_FOREGROUND)
		ground = FRONTROW_MIDDLE;
	return classes[ground][rq_data_dir(rq) == READ ? 0 : 1];
}

/*
 * The class of what a task of this ground turns out to wait for. Who is behind
 * waits behind, or the foreground would wait beside a hundred small writes because
 * an app overwrites what is being written; but not with a journal handle.
 */
enum frontrow_class frontrow_class_for_waiter(enum frontrow_ground ground,
					      bool under_handle)
{
	bool is_shared = frontrow_class_is_shared(classes[ground][1]);

	return is_shared && !under_handle ? classes[ground][1] : FRONTROW_BOOSTED;
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

/* The one whose turn it is in its class; NULL if that is empty. */
struct request *frontrow_oldest(const struct frontrow_data *fd,
				enum frontrow_class class)
{
	if (list_empty(&fd->fifo[class]))
		return NULL;
	return list_first_entry(&fd->fifo[class], struct request, queuelist);
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
