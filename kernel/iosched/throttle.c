// SPDX-License-Identifier: GPL-2.0
/*
 * Detection of tasks that sleep because they have dirtied more pages than their
 * disk takes (balance_dirty_pages(), mm/page-writeback.c).
 *
 * They wait for asynchronous writes as a task in fsync does, though for no file in
 * particular. The tracepoint of the same name tells each sleep before it begins, in
 * the task, and first where its pages go; its other arguments differ between
 * kernels, and are not read.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/tracepoint.h>

#include "frontrow.h"

static struct tracepoint *throttles;	/* NULL: the kernel has none */

static void throttled(struct frontrow_data *fd)
{
	enum frontrow_role role = frontrow_role_of(fd, current);
	u64 bytes = (u64)current->nr_dirtied << PAGE_SHIFT;
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	frontrow_throttled(&fd->core, role, frontrow_owner_of(current), bytes,
			   ktime_get_ns());
	spin_unlock_irqrestore(&fd->lock, flags);
}

/* Runs with preemption off. */
static void on_throttle(void *data, struct bdi_writeback *wb)
{
	const struct device *owner = READ_ONCE(wb->bdi->owner);

	/* Without one it is no disk: a network's file system, or FUSE. */
	if (!owner || frontrow_flags(current) & PF_KTHREAD)
		return;
	rcu_read_lock();
	frontrow_each_instance_below(dev_to_disk(owner)->queue, throttled);
	rcu_read_unlock();
}

static void find(struct tracepoint *found, void *unused)
{
	if (!strcmp(found->name, "balance_dirty_pages"))
		throttles = found;
}

/*
 * A kernel that checks the types of functions which it calls by pointer (CFI) would
 * refuse a handler that leaves out arguments. Without the tracepoint writeback keeps
 * its usual share.
 */
void frontrow_throttle_init(void)
{
	if (IS_ENABLED(CONFIG_CFI_CLANG) || IS_ENABLED(CONFIG_CFI))
		return;
	for_each_kernel_tracepoint(find, NULL);
	if (throttles && tracepoint_probe_register(throttles, on_throttle, NULL)) {
		pr_warn("frontrow: cannot use the tracepoint balance_dirty_pages\n");
		throttles = NULL;
	}
}

void frontrow_throttle_exit(void)
{
	if (!throttles)
		return;
	tracepoint_probe_unregister(throttles, on_throttle, NULL);
	tracepoint_synchronize_unregister();
}
