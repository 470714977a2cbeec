// SPDX-License-Identifier: GPL-2.0
/*
 * Detection of waits for writes on an unpatched kernel.
 *
 * Return probes tell the start and the end of each wait (probes.c). On a kernel
 * without them, as Raspberry Pi OS has it, tracepoints tell some of the starts
 * (tracepoints.c). Both end up here, where the wait's device is found.
 */
#include <linux/module.h>
#include <linux/pagemap.h>

#include "frontrow.h"

static bool probes = true;
module_param(probes, bool, 0444);
MODULE_PARM_DESC(probes, "detect waits by return probes if the kernel has them (default), not by tracepoints");

static LIST_HEAD(instances);
static DEFINE_SPINLOCK(instances_lock);
/*
 * fd->bit of each. A wait that outlasts an instance is unknown to the next one
 * with its bit.
 */
static unsigned long used_bits;

void frontrow_detect_add(struct frontrow_data *fd)
{
	static u64 last_id;

	spin_lock(&instances_lock);
	fd->id = ++last_id;
	fd->bit = find_first_zero_bit(&used_bits, NR_BELOW_STACKS);
	if (fd->bit < NR_BELOW_STACKS)
		__set_bit(fd->bit, &used_bits);
	list_add_rcu(&fd->instance, &instances);
	spin_unlock(&instances_lock);
}

/* No handler uses @fd after this returns. */
void frontrow_detect_del(struct frontrow_data *fd)
{
	spin_lock(&instances_lock);
	list_del_rcu(&fd->instance);
	if (fd->bit < NR_BELOW_STACKS)
		__clear_bit(fd->bit, &used_bits);
	spin_unlock(&instances_lock);
	synchronize_rcu();
	frontrow_waiters_exit(fd);
}

struct frontrow_data *frontrow_instance_on(const struct request_queue *q)
{
	struct frontrow_data *fd;

	list_for_each_entry_rcu(fd, &instances, instance)
		if (fd->q == q)
			return fd;
	return NULL;
}

struct frontrow_data *frontrow_instance_of_id(u64 id)
{
	struct frontrow_data *fd;

	list_for_each_entry_rcu(fd, &instances, instance)
		if (fd->id == id)
			return fd;
	return NULL;
}

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

/* The current task is throttled for the device of @q. */
void frontrow_detect_throttled(const struct request_queue *q)
{
	struct frontrow_data *fd;

	rcu_read_lock();
	list_for_each_entry_rcu(fd, &instances, instance)
		if (fd->q == q || frontrow_is_below(fd, q))
			throttled(fd);
	rcu_read_unlock();
}

/* Queue of a file's block device or of a block device itself; NULL if none is named. */
static struct request_queue *queue_of(struct inode *inode)
{
	struct block_device *bdev = inode->i_sb->s_bdev;

	if (sb_is_blkdev_sb(inode->i_sb))
		bdev = I_BDEV(inode);
	return bdev ? bdev_get_queue(bdev) : NULL;
}

/* Whether it is on block devices. Btrfs is, may be on several, and names none. */
static bool has_devices(const struct inode *inode)
{
	return inode->i_sb->s_type->fs_flags & FS_REQUIRES_DEV;
}

/*
 * Above a stacked device, any instance may have requests of the wait, and usually
 * none has one yet. A waiter with a folio is known to one instance only, which
 * ends it.
 */
static bool begin_above_stack(struct frontrow_waiter *waiter, bool surely_writeback)
{
	bool is_ours = surely_writeback && !list_empty(&instances);
	struct frontrow_data *fd;

	if (waiter->folio) {
		list_for_each_entry_rcu(fd, &instances, instance)
			if (frontrow_wait_begins(fd, waiter, false))
				return true;
		return false;
	}
	if (!frontrow_wait_begins_above(waiter))
		return false;
	list_for_each_entry_rcu(fd, &instances, instance)
		is_ours |= frontrow_wait_begins_below(fd, waiter, surely_writeback);
	if (!is_ours)
		frontrow_detect_wait_ended(waiter);
	return is_ours;
}

/*
 * The current task is about to wait for writes of @mapping, as @waiter says.
 *
 * Returns whether the wait is for one of our queues. Then the waiter is shared,
 * and its end must be reported unless it has a folio.
 */
bool frontrow_detect_wait(struct frontrow_waiter *waiter,
			  struct address_space *mapping, bool surely_writeback)
{
	struct inode *inode = mapping ? mapping->host : NULL;
	struct request_queue *q;
	struct frontrow_data *fd;
	bool is_shared = false;

	if (!inode)
		return false;
	q = queue_of(inode);
	if (!q && !has_devices(inode))
		return false;
	waiter->mapping = mapping;
	waiter->upper = q ? (void *)q : inode->i_sb;
	WRITE_ONCE(waiter->task, current);
	INIT_HLIST_NODE(&waiter->node);
	rcu_read_lock();
	fd = q ? frontrow_instance_on(q) : NULL;
	if (fd)
		is_shared = frontrow_wait_begins(fd, waiter, surely_writeback);
	else if (!q || !queue_is_mq(q))
		is_shared = begin_above_stack(waiter, surely_writeback);
	rcu_read_unlock();
	return is_shared;
}

/* The wait has ended, or the probed function has returned. */
void frontrow_detect_wait_ended(struct frontrow_waiter *waiter)
{
	struct frontrow_data *fd;

	rcu_read_lock();
	if (waiter->is_above) {
		frontrow_wait_ended_above(waiter);
		list_for_each_entry_rcu(fd, &instances, instance)
			frontrow_wait_ended(fd, waiter);
		waiter->is_above = false;
	} else {
		fd = smp_load_acquire(&waiter->fd);
		if (fd)
			frontrow_wait_ended(fd, waiter);
	}
	rcu_read_unlock();
}

/* The kernel's own threads wait for all that wait for them. */
enum frontrow_dependency frontrow_whose_wait(enum frontrow_dependency usual)
{
	return frontrow_is_kernels_own(current) ? FRONTROW_JOURNAL : usual;
}

/* A line for a probe or a tracepoint: its hits, a counter of each CPU. */
int frontrow_detect_emit(char *page, int length, const char *kind, const char *name,
			 const unsigned long __percpu *hits)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *per_cpu_ptr(hits, cpu);
	return sysfs_emit_at(page, length, "%s_%s %lu\n", kind, name, sum);
}

bool frontrow_has_probes(void)
{
	return IS_ENABLED(CONFIG_KRETPROBES) && probes;
}

int frontrow_detect_init(void)
{
	int err;

	/*
	 * Handlers run with preemption off, where PREEMPT_RT must not take its
	 * sleeping spinlocks.
	 */
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		pr_err("frontrow: kernels with PREEMPT_RT are not supported: boot one without\n");
		return -EOPNOTSUPP;
	}
	err = frontrow_has_probes() ? frontrow_probes_init() : frontrow_tracepoints_init();
	if (!err)
		frontrow_throttle_init();
	return err;
}

void frontrow_detect_exit(void)
{
	frontrow_throttle_exit();
	if (frontrow_has_probes())
		frontrow_probes_exit();
	else
		frontrow_tracepoints_exit();
}

/* Number of waits that had no room to be noted. */
unsigned int frontrow_detect_missed(void)
{
	return frontrow_waits_not_copied() +
	       (frontrow_has_probes() ? frontrow_probes_missed() : frontrow_tracepoints_missed());
}

/* A line for each function or tracepoint: its hits since the module was loaded. */
int frontrow_detect_emit_hits(char *page, int length)
{
	return frontrow_has_probes() ? frontrow_probes_emit_hits(page, length) :
				       frontrow_tracepoints_emit_hits(page, length);
}
