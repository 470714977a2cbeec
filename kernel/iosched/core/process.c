// SPDX-License-Identifier: GPL-2.0
/*
 * What a process has used of the device, and so its level among those that no
 * cgroup names.
 *
 * Whoever has used less goes first: a tap on the screen before an app's start,
 * and that before a backup. So a single action is never held up by what goes
 * on for long, and nobody need say which is which. Time of the device counts,
 * not time spent waiting: a process that others hold up stays what it was. Who
 * has nothing to do here is forgiven a multiple of its pause.
 *
 * What kernel threads do, above all the commit, and promoted writeback are for
 * the tasks that wait: each has caused its part. A task that dirties pages uses
 * what the device will take for them, from when it is throttled.
 */
#include "internal.h"

void frontrow_waiters_use(struct frontrow_core *core, u64 ns)
{
	if (core->nr_waiters)
		core->each_waiter_ns += div_u64(ns, core->nr_waiters);
}

void frontrow_process_waits(struct frontrow_core *core, struct frontrow_wait *wait,
			    u64 now_ns)
{
	frontrow_process_begins(core, wait->owner, now_ns);
	wait->each_waiter_ns = core->each_waiter_ns;
}

void frontrow_process_waited(struct frontrow_core *core,
			     const struct frontrow_wait *wait, u64 now_ns)
{
	frontrow_owner_uses(core, wait->owner, core->each_waiter_ns - wait->each_waiter_ns);
	frontrow_process_ends(core, wait->owner, now_ns);
}

/* A process with a request or a wait sleeps for the page cache no longer. */
void frontrow_throttled_wakes(struct frontrow_core *core, unsigned int owner, u64 now_ns)
{
	enum frontrow_level level;

	core->processes[owner].idle_since_ns = now_ns;
	for (level = 0; level < FRONTROW_NR_LEVELS; level++)
		if (core->throttled[level].owner == owner)
			core->throttled[level].until_ns = 0;
}

/*
 * A task has dirtied @bytes since it was throttled last, and sleeps until pages of
 * anybody's are written (balance_dirty_pages()). So it waits for all writeback,
 * as urgently as for a request of its own.
 */
void frontrow_throttled(struct frontrow_core *core, enum frontrow_role role,
			unsigned int owner, u64 bytes, u64 now_ns)
{
	const struct frontrow_group *writeback =
		&core->groups[FRONTROW_ASYNC - FRONTROW_FIRST_GROUP];
	struct frontrow_process *process = &core->processes[owner];
	u64 until_ns = now_ns + THROTTLED_NS;
	enum frontrow_level level;

	frontrow_process_begins(core, owner, now_ns);
	frontrow_owner_uses(core, owner, div64_u64(bytes * writeback->request_ns,
						   max(writeback->request_bytes, 1ULL)));
	level = frontrow_level_of(core, role, false, owner, now_ns);
	frontrow_process_ends(core, owner, now_ns);
	process->idle_since_ns = max(process->idle_since_ns, until_ns);
	core->throttled[level].until_ns = until_ns;
	core->throttled[level].owner = owner;
	core->nr_throttled++;
}
