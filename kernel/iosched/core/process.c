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
 * the tasks that wait: each has caused its part.
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
