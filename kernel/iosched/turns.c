// SPDX-License-Identifier: GPL-2.0
/*
 * Order of requests within a class.
 *
 * Asynchronous requests are served in order of age. Writeback submits in file
 * and sector order already, and flash gains nothing from an elevator sweep.
 *
 * Synchronous classes use start-time fair queueing between owners. Otherwise a
 * single request would wait for hundreds of a process that syncs scattered
 * pages. A request's turn starts at the end of its owner's last turn, or at the
 * present virtual time if that is later, and is as long as the request's cost.
 * Virtual time advances to the start of each dispatched turn. So a request
 * waits for at most one turn of each other owner.
 *
 * Among long processes a request's turn is its arrival plus what its process has
 * used of the device: who has used less goes first, as between the levels
 * (process.c).
 *
 * An owner is a process, or a file for promoted writes that a worker has
 * submitted. Requests of kernel threads, and those that hold up a commit, have
 * no turn and start at the present virtual time.
 */
#include "frontrow.h"

static unsigned int owner_of(const struct frontrow_rq *fr)
{
	if (!frontrow_classes[fr->own_class].is_async)
		return fr->owner;
	return hash_ptr(fr->mapping, FRONTROW_OWNER_BITS);
}

/* Cost in bytes; each command costs at least as much as a few pages. */
static u64 cost_bytes(u32 bytes)
{
	return max(bytes, MIN_SLICE_BYTES);
}

/*
 * Arrival, plus what the process has used. So nobody waits longer for others
 * that have used less than the class's processes differ by, whoever comes.
 */
static u64 turn_of_long(const struct frontrow_data *fd, const struct frontrow_rq *fr)
{
	/* Of promoted writes it is not known who waits for them. */
	if (frontrow_classes[fr->own_class].is_async)
		return fr->inserted_ns + BULK_NS;
	return fr->inserted_ns + fd->processes[fr->owner].used_ns;
}

/* Whether @fr moved the end of its payer's turn. */
static bool has_paid(const struct frontrow_rq *fr)
{
	return fr->charged_bytes && fr->class != FRONTROW_LONG;
}

static u64 next_turn(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	struct frontrow_turns *turns = &fd->turns[fr->class];
	u64 turn;

	if (fr->by_kernel || frontrow_holds_up_commit(fr))
		return turns->now;
	fr->payer = owner_of(fr);
	fr->charged_bytes = frontrow_bytes(fr->rq);
	if (fr->class == FRONTROW_LONG)
		return turn_of_long(fd, fr);
	turn = max(turns->ends[fr->payer], turns->now);
	turns->ends[fr->payer] = turn + cost_bytes(fr->charged_bytes);
	return turn;
}

static bool is_before(struct rb_node *node, const struct rb_node *other)
{
	return rb_entry(node, struct frontrow_rq, in_class)->turn <
	       rb_entry(other, struct frontrow_rq, in_class)->turn;
}

/* Inserts @fr into its class, after requests with the same turn. */
void frontrow_take_turn(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	fr->charged_bytes = 0;
	fr->turn = frontrow_classes[fr->class].is_async ? fr->inserted_ns :
							  next_turn(fd, fr);
	rb_add_cached(&fr->in_class, &fd->by_turn[fr->class], is_before);
}

/* Inserts @fr before all others of its class. */
void frontrow_go_first(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	struct rb_root_cached *tree = &fd->by_turn[fr->class];

	rb_erase_cached(&fr->in_class, tree);
	fr->turn = 0;
	rb_add_cached(&fr->in_class, tree, is_before);
}

/* Refunds the cost of a request that goes to another class or is merged. */
void frontrow_leave_turn(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	rb_erase_cached(&fr->in_class, &fd->by_turn[fr->class]);
	if (has_paid(fr))
		fd->turns[fr->class].ends[fr->payer] -= cost_bytes(fr->charged_bytes);
}

/* Charges the final size, with merged requests, at dispatch. */
void frontrow_use_turn(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	struct frontrow_turns *turns = &fd->turns[fr->class];
	struct rb_root_cached *tree = &fd->by_turn[fr->class];

	/* Usually it is alone, which needs no balancing. */
	if (fd->queued[fr->class] == 1)
		*tree = RB_ROOT_CACHED;
	else
		rb_erase_cached(&fr->in_class, tree);
	if (frontrow_classes[fr->class].is_async)
		return;
	turns->now = max(turns->now, fr->turn);
	if (has_paid(fr))
		turns->ends[fr->payer] += cost_bytes(frontrow_bytes(fr->rq)) -
					  cost_bytes(fr->charged_bytes);
}
