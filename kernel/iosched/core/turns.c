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
#include "internal.h"

static unsigned int owner_of(const struct frontrow_item *item)
{
	if (!frontrow_classes[item->own_class].is_async)
		return item->owner;
	return hash_ptr(item->mapping, FRONTROW_OWNER_BITS);
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
static u64 turn_of_long(const struct frontrow_core *core, const struct frontrow_item *item)
{
	/* Of promoted writes it is not known who waits for them. */
	if (frontrow_classes[item->own_class].is_async)
		return item->inserted_ns + BULK_NS;
	return item->inserted_ns + core->processes[item->owner].used_ns;
}

/* Whether @item moved the end of its payer's turn. */
static bool has_paid(const struct frontrow_item *item)
{
	return item->charged_bytes && item->class != FRONTROW_LONG;
}

static u64 next_turn(struct frontrow_core *core, struct frontrow_item *item)
{
	struct frontrow_turns *turns = &core->turns[item->class];
	u64 turn;

	if (item->by_kernel || frontrow_holds_up_commit(item))
		return turns->now;
	item->payer = owner_of(item);
	item->charged_bytes = item->bytes;
	if (item->class == FRONTROW_LONG)
		return turn_of_long(core, item);
	turn = max(turns->ends[item->payer], turns->now);
	turns->ends[item->payer] = turn + cost_bytes(item->charged_bytes);
	return turn;
}

static bool is_before(struct rb_node *node, const struct rb_node *other)
{
	return rb_entry(node, struct frontrow_item, in_class)->turn <
	       rb_entry(other, struct frontrow_item, in_class)->turn;
}

/* Inserts @item into its class, after requests with the same turn. */
void frontrow_take_turn(struct frontrow_core *core, struct frontrow_item *item)
{
	item->charged_bytes = 0;
	item->turn = frontrow_classes[item->class].is_async ? item->inserted_ns :
							  next_turn(core, item);
	rb_add_cached(&item->in_class, &core->by_turn[item->class], is_before);
}

/* Inserts @item before all others of its class. */
void frontrow_go_first(struct frontrow_core *core, struct frontrow_item *item)
{
	struct rb_root_cached *tree = &core->by_turn[item->class];

	rb_erase_cached(&item->in_class, tree);
	item->turn = 0;
	rb_add_cached(&item->in_class, tree, is_before);
}

/* Refunds the cost of a request that goes to another class or is merged. */
void frontrow_leave_turn(struct frontrow_core *core, struct frontrow_item *item)
{
	rb_erase_cached(&item->in_class, &core->by_turn[item->class]);
	if (has_paid(item))
		core->turns[item->class].ends[item->payer] -= cost_bytes(item->charged_bytes);
}

/* Charges the final size, with merged requests, at dispatch. */
void frontrow_use_turn(struct frontrow_core *core, struct frontrow_item *item)
{
	struct frontrow_turns *turns = &core->turns[item->class];
	struct rb_root_cached *tree = &core->by_turn[item->class];

	/* Usually it is alone, which needs no balancing. */
	if (core->queued[item->class] == 1)
		*tree = RB_ROOT_CACHED;
	else
		rb_erase_cached(&item->in_class, tree);
	if (frontrow_classes[item->class].is_async)
		return;
	turns->now = max(turns->now, item->turn);
	if (has_paid(item))
		turns->ends[item->payer] += cost_bytes(item->bytes) -
					  cost_bytes(item->charged_bytes);
}
