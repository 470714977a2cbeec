// SPDX-License-Identifier: GPL-2.0
/* A request's way: queued, merged, moved to another class, dispatched, completed. */
#include "internal.h"

/* @core is zeroed, but for what its device is: depth, is_serial and most_bytes. */
void frontrow_core_init(struct frontrow_core *core, u64 now_ns)
{
	enum frontrow_class class;
	unsigned int nr;

	for (class = 0; class < FRONTROW_NR_CLASSES; class++) {
		core->by_turn[class] = RB_ROOT_CACHED;
		/* Turn 0 is that of frontrow_go_first(). */
		core->turns[class].now = 1;
		INIT_LIST_HEAD(&core->by_age[class]);
	}
	INIT_LIST_HEAD(&core->before_flush);
	frontrow_chains_init(core);
	core->async_share_percent = DEFAULT_ASYNC_SHARE_PERCENT;
	core->background_share_percent = DEFAULT_BACKGROUND_SHARE_PERCENT;
	core->background_most_percent = 100;
	/* Until visible apps are named. */
	for (nr = 0; nr < FRONTROW_NR_VISIBLE; nr++)
		core->visible_share_percent[nr] = 1;
	core->slice_us = DEFAULT_SLICE_US;
	frontrow_budget_init(core, now_ns);
}

static void enter(struct frontrow_core *core, struct frontrow_item *item,
		  enum frontrow_class class)
{
	item->class = class;
	core->queued[class]++;
	core->nr_grouped += frontrow_is_group(class);
	list_add_tail(&item->by_age, &core->by_age[class]);
	INIT_LIST_HEAD(&item->before_flush);
	if (item->precedes_flush && frontrow_is_group(class))
		list_add_tail(&item->before_flush, &core->before_flush);
	frontrow_take_turn(core, item);
}

/* Queues a request at item->inserted_ns; @goes_first: before the others of @class. */
void frontrow_insert(struct frontrow_core *core, struct frontrow_item *item,
		     enum frontrow_class class, bool goes_first)
{
	if (item->is_sync && item->own_class != FRONTROW_DISCARD)
		frontrow_request_begins(core, item, item->inserted_ns);
	item->in_class_since_ns = item->inserted_ns;
	item->state = FRONTROW_RQ_QUEUED;
	/* A group that was empty must not have saved up turns while open. */
	if (frontrow_is_group(class) && !core->queued[class]) {
		struct frontrow_group *group =
			&core->groups[class - FRONTROW_FIRST_GROUP];

		group->served_ns = max(group->served_ns, core->served_floor_ns);
	}
	core->nr_owned[item->owner] += item->is_sync;
	core->nr_queued++;
	enter(core, item, class);
	if (goes_first)
		frontrow_go_first(core, item);
}

/* Moves a queued request to another class. */
void frontrow_reclass(struct frontrow_core *core, struct frontrow_item *item,
		      enum frontrow_class class, u64 now_ns)
{
	core->queued[item->class]--;
	core->nr_grouped -= frontrow_is_group(item->class);
	list_del(&item->by_age);
	list_del(&item->before_flush);
	frontrow_leave_turn(core, item);
	item->in_class_since_ns = now_ns;
	enter(core, item, class);
}

/* Takes a request out of the count of its class; its place there is left before. */
static void leave_queue(struct frontrow_core *core, struct frontrow_item *item)
{
	list_del(&item->by_age);
	list_del(&item->before_flush);
	core->queued[item->class]--;
	core->nr_queued--;
	core->nr_grouped -= frontrow_is_group(item->class);
	item->state = FRONTROW_RQ_IDLE;
}

/* The request that was chosen leaves the queue. */
void frontrow_dequeue(struct frontrow_core *core, struct frontrow_item *item)
{
	frontrow_use_turn(core, item);
	leave_queue(core, item);
}

/*
 * Merges @next, which is queued or being inserted and belongs into @class, into
 * @item, which gets the more urgent class of the two, with its role and level.
 */
void frontrow_merge_into(struct frontrow_core *core, struct frontrow_item *item,
			 struct frontrow_item *next, enum frontrow_class class,
			 u64 now_ns)
{
	if (next->state == FRONTROW_RQ_QUEUED) {
		frontrow_leave_turn(core, next);
		leave_queue(core, next);
		core->nr_owned[next->owner] -= next->is_sync;
		frontrow_request_ends(core, next, now_ns);
	}
	item->inserted_ns = min(item->inserted_ns, next->inserted_ns);
	item->own_class = min(item->own_class, next->own_class);
	item->under_handle |= next->under_handle;
	if (next->is_sync && (!item->is_counted || next->level > item->level)) {
		frontrow_request_ends(core, item, now_ns);
		item->level = next->level;
		frontrow_request_begins(core, item, now_ns);
	}
	if (!frontrow_is_more_urgent(class, item->class))
		return;
	item->role = next->role;
	frontrow_reclass(core, item, class, now_ns);
}

/* The device has returned a request that it did not begin. */
void frontrow_return(struct frontrow_core *core, struct frontrow_item *item, u64 now_ns)
{
	core->nr_in_device--;
	core->in_device[item->class]--;
	if (frontrow_is_more_urgent(item->class, FRONTROW_ASYNC))
		frontrow_process_uses(core, item, item->dispatched_ns, now_ns);
	if (item->is_background_write)
		core->background_bytes -= item->bytes;
	core->nr_owned[item->owner] -= item->is_sync;
	item->state = FRONTROW_RQ_IDLE;
	if (core->nr_waiters)
		frontrow_class_done(core, item->class, now_ns);
	frontrow_request_ends(core, item, now_ns);
}

void frontrow_complete(struct frontrow_core *core, struct frontrow_item *item, u64 now_ns)
{
	frontrow_return(core, item, now_ns);
	frontrow_budget_complete(core, item, now_ns);
}

/*
 * A commit record spends most of its time in the flush machinery, outside the
 * scheduler, while a task waits for it.
 */
void frontrow_flush_begins(struct frontrow_core *core, struct frontrow_item *item,
			   u64 now_ns)
{
	item->level = frontrow_level_of(core, item->role, item->by_kernel, item->owner,
					now_ns);
	frontrow_request_begins(core, item, now_ns);
	item->inserted_ns = now_ns;
	item->state = FRONTROW_RQ_FLUSHING;
	core->nr_flushing++;
	core->nr_flushing_awaited += item->level > FRONTROW_LEVEL_NONE;
}

/* @is_complete: its flush is done; otherwise it is queued as an ordinary write. */
void frontrow_flush_ends(struct frontrow_core *core, struct frontrow_item *item,
			 bool is_complete, u64 now_ns)
{
	if (is_complete)
		frontrow_process_uses(core, item, item->inserted_ns, now_ns);
	item->state = FRONTROW_RQ_IDLE;
	core->nr_flushing--;
	core->nr_flushing_awaited -= item->level > FRONTROW_LEVEL_NONE;
	frontrow_request_ends(core, item, now_ns);
	if (is_complete)
		frontrow_budget_flushed(core, item, now_ns);
}
