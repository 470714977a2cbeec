// SPDX-License-Identifier: GPL-2.0
/*
 * Which request of a class goes next.
 *
 * Asynchronous ones go by age: writeback submits in file and sector order
 * already, and flash does not mind the rest, so there is no elevator sweep.
 *
 * Of the synchronous ones some belong to whoever syncs a file of scattered pages
 * and has hundreds here at once. By age, another's single one would wait for all
 * of them. So owners take turns (start-time fair queueing): a request's turn is
 * where its owner's last one ended, or now, and it ends later by what it costs.
 * What is served now moves on to the turn of each that goes, so nobody's request
 * is passed over by more than one's worth of each other owner.
 *
 * An owner is a process; or, of writes that were submitted by a worker and turned
 * out to be awaited, a file. What the kernel does for everybody, or a task while
 * it holds a journal handle, takes no turn and goes now.
 */
#include "frontrow.h"

static unsigned int owner_of(const struct frontrow_rq *fr)
{
	if (!frontrow_classes[fr->own_class].is_async)
		return fr->owner;
	return hash_ptr(fr->mapping, FRONTROW_OWNER_BITS);
}

/* A command costs as much as a few pages do, however small it is. */
static u64 cost_bytes(u32 bytes)
{
	return max(bytes, MIN_SLICE_BYTES);
}

static u64 next_turn(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	struct frontrow_turns *turns = &fd->turns[fr->class];
	u64 turn;

	if (fr->by_kernel || fr->under_handle)
		return turns->now;
	fr->payer = owner_of(fr);
	fr->charged_bytes = blk_rq_bytes(fr->rq);
	turn = max(turns->ends[fr->payer], turns->now);
	turns->ends[fr->payer] = turn + cost_bytes(fr->charged_bytes);
	return turn;
}

static bool is_before(struct rb_node *node, const struct rb_node *other)
{
	return rb_entry(node, struct frontrow_rq, in_class)->turn <
	       rb_entry(other, struct frontrow_rq, in_class)->turn;
}

/* Into its class, behind those of the same turn. */
void frontrow_take_turn(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	fr->charged_bytes = 0;
	fr->turn = frontrow_classes[fr->class].is_async ? fr->inserted_ns :
							  next_turn(fd, fr);
	rb_add_cached(&fr->in_class, &fd->by_turn[fr->class], is_before);
}

/* Before all others of its class. */
void frontrow_go_first(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	struct rb_root_cached *tree = &fd->by_turn[fr->class];

	rb_erase_cached(&fr->in_class, tree);
	fr->turn = 0;
	rb_add_cached(&fr->in_class, tree, is_before);
}

/* To another class or request: what was not served costs nothing. */
void frontrow_leave_turn(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	rb_erase_cached(&fr->in_class, &fd->by_turn[fr->class]);
	if (fr->charged_bytes)
		fd->turns[fr->class].ends[fr->payer] -= cost_bytes(fr->charged_bytes);
}

/* To the device, with what was merged into it since it was charged. */
void frontrow_use_turn(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	struct frontrow_turns *turns = &fd->turns[fr->class];

	rb_erase_cached(&fr->in_class, &fd->by_turn[fr->class]);
	if (frontrow_classes[fr->class].is_async)
		return;
	turns->now = max(turns->now, fr->turn);
	if (fr->charged_bytes)
		turns->ends[fr->payer] += cost_bytes(blk_rq_bytes(fr->rq)) -
					  cost_bytes(fr->charged_bytes);
}
