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

#ifndef FRONTROW_ABI_NO_TRACEPOINT_NOTIFIER

static struct tracepoint *throttles;	/* NULL: the kernel has none */

/* Runs with preemption off. */
static void on_throttle(void *data, struct bdi_writeback *wb)
{
	const struct device *owner = READ_ONCE(wb->bdi->owner);

	/* Without one it is no disk: a network's file system, or FUSE. */
	if (!owner || frontrow_flags(current) & PF_KTHREAD)
		return;
	frontrow_detect_throttled(dev_to_disk(owner)->queue);
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

#endif /* FRONTROW_ABI_NO_TRACEPOINT_NOTIFIER */
