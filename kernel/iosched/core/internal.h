/* SPDX-License-Identifier: GPL-2.0 */
/* What the core's files share. */
#ifndef FRONTROW_INTERNAL_H
#define FRONTROW_INTERNAL_H

#include "core.h"

/* process.c: what a process has used of the device */
void frontrow_waiters_use(struct frontrow_core *core, u64 ns);
void frontrow_process_waits(struct frontrow_core *core, struct frontrow_wait *wait,
			    u64 now_ns);
void frontrow_process_waited(struct frontrow_core *core,
			     const struct frontrow_wait *wait, u64 now_ns);

void frontrow_throttled_wakes(struct frontrow_core *core, unsigned int owner, u64 now_ns);

static inline void frontrow_owner_uses(struct frontrow_core *core, unsigned int owner,
				       u64 ns)
{
	struct frontrow_process *process = &core->processes[owner];

	process->used_ns = min(process->used_ns + ns, USED_MOST_NS);
}

/*
 * What a request that has been in the device since @since_ns has used of it. The
 * time counts from the completion before, if that is later: a device that works
 * on several requests takes a part of its time for each.
 */
static inline u64 frontrow_device_ns(const struct frontrow_core *core, u64 since_ns,
				     u64 now_ns)
{
	return now_ns - min(max(since_ns, core->budget.completed_ns), now_ns);
}

/* Somebody has waited for a request that has been in the device since @since_ns. */
static inline void frontrow_process_uses(struct frontrow_core *core,
					 const struct frontrow_item *item,
					 u64 since_ns, u64 now_ns)
{
	u64 ns = frontrow_device_ns(core, since_ns, now_ns);

	if (item->by_kernel_thread)
		frontrow_waiters_use(core, ns);
	else
		frontrow_owner_uses(core, item->owner, ns);
}

/* Of a process that has nothing here. */
static inline u64 frontrow_pause_ns(const struct frontrow_process *process, u64 now_ns)
{
	return now_ns - min(process->idle_since_ns, now_ns);
}

static inline u64 frontrow_process_used_ns(const struct frontrow_process *process,
					   u64 now_ns)
{
	u64 pause_ns = process->nr_here ? 0 : frontrow_pause_ns(process, now_ns);

	return process->used_ns - min(process->used_ns, FORGIVEN * pause_ns);
}

static inline enum frontrow_level
frontrow_level_of_process(const struct frontrow_core *core, unsigned int owner, u64 now_ns)
{
	const struct frontrow_process *process = &core->processes[owner];

	if (process->used_ns <= LONG_NS ||
	    frontrow_process_used_ns(process, now_ns) <= LONG_NS)
		return FRONTROW_LEVEL_OTHER;
	return frontrow_process_used_ns(process, now_ns) > BULK_NS ?
	       FRONTROW_LEVEL_BULK : FRONTROW_LEVEL_LONG;
}

/* A process has a request here, or a task that waits. */
static inline void frontrow_process_begins(struct frontrow_core *core,
					   unsigned int owner, u64 now_ns)
{
	struct frontrow_process *process = &core->processes[owner];

	if (process->idle_since_ns > now_ns)
		frontrow_throttled_wakes(core, owner, now_ns);
	if (process->nr_here++)
		return;
	process->used_ns -= min(process->used_ns,
				FORGIVEN * frontrow_pause_ns(process, now_ns));
}

static inline void frontrow_process_ends(struct frontrow_core *core, unsigned int owner,
					 u64 now_ns)
{
	struct frontrow_process *process = &core->processes[owner];

	if (!--process->nr_here)
		process->idle_since_ns = max(process->idle_since_ns, now_ns);
}

/* turns.c: which request of a class goes next */
void frontrow_take_turn(struct frontrow_core *core, struct frontrow_item *item);
void frontrow_leave_turn(struct frontrow_core *core, struct frontrow_item *item);
void frontrow_use_turn(struct frontrow_core *core, struct frontrow_item *item);

/* chain.c: who waits, and how long the device may idle for them */
void frontrow_chains_init(struct frontrow_core *core);
void frontrow_request_begins(struct frontrow_core *core, struct frontrow_item *item,
			     u64 now_ns);
void frontrow_request_ends(struct frontrow_core *core, struct frontrow_item *item,
			   u64 now_ns);
void frontrow_class_done(struct frontrow_core *core, enum frontrow_class class,
			 u64 now_ns);

/* queue.c */
void frontrow_dequeue(struct frontrow_core *core, struct frontrow_item *item);

/* budget.c: how much asynchronous work the device may hold */

/* Synchronous requests distort the measured rate: discard the window. */
static inline void frontrow_budget_disturb(struct frontrow_core *core)
{
	core->budget.window_start_ns = 0;
}

void frontrow_budget_init(struct frontrow_core *core, u64 now_ns);
void frontrow_budget_charge(struct frontrow_core *core, struct frontrow_item *item,
			    const struct frontrow_view *view);
void frontrow_budget_complete(struct frontrow_core *core,
			      const struct frontrow_item *item, u64 now_ns);
void frontrow_budget_flushed(struct frontrow_core *core,
			     const struct frontrow_item *item, u64 now_ns);
enum frontrow_class frontrow_budget_due(struct frontrow_core *core,
					const struct frontrow_view *view);
u64 frontrow_budget_wait_ns(const struct frontrow_core *core,
			    const struct frontrow_view *view);
bool frontrow_budget_has_room(const struct frontrow_core *core, u32 bytes);

#endif /* FRONTROW_INTERNAL_H */
