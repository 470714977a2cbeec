// SPDX-License-Identifier: GPL-2.0-only
/* Ioctls that change what the device holds: the Janus commands, and its power. */
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "simflash.h"
#include "simflash_ioctl.h"

static int simflash_error(enum ftl_status status)
{
	switch (status) {
	case FTL_OK:
		return 0;
	case FTL_BAD_RANGE:
		return -EINVAL;
	case FTL_BUSY:
		return -EBUSY;
	case FTL_LOG_FULL:
	case FTL_NO_SPACE:
		return -ENOSPC;
	default:
		return -EIO;
	}
}

/* Called with the control lock held. */
static int simflash_run(struct simflash *dev, enum ftl_op op, const struct ftl_range *range,
			u32 ranges)
{
	struct ftl_cmd *cmd = dev->control_cmd;
	u32 i;

	cmd->op = op;
	cmd->fua = false;
	cmd->lba = 0;
	cmd->pages = 0;
	cmd->stream = 0;
	cmd->range = range;
	cmd->ranges = ranges;
	for (i = 0; i < ranges; i++)
		cmd->pages += range[i].pages;
	simflash_control(dev);
	return simflash_error(cmd->status);
}

/* The caller frees it. */
static struct ftl_range *simflash_take_ranges(u64 ranges, u32 count)
{
	const struct simflash_range __user *from = u64_to_user_ptr(ranges);
	struct ftl_range *range = kvcalloc(count, sizeof(*range), GFP_KERNEL);
	struct simflash_range one;
	u32 i;

	if (!range)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < count; i++) {
		if (copy_from_user(&one, &from[i], sizeof(one))) {
			kvfree(range);
			return ERR_PTR(-EFAULT);
		}
		range[i].src = one.src;
		range[i].dst = one.dst;
		range[i].pages = one.pages;
	}
	return range;
}

static u32 simflash_spreads(const struct ftl_range *range, u32 ranges)
{
	u32 spreads = 0;

	while (ranges--)
		spreads += range[ranges].dst == SIMFLASH_SPREAD;
	return spreads;
}

static int simflash_defrag(struct simflash *dev, struct simflash_ranges *arg,
			   const struct ftl_range *range)
{
	u32 spreads = simflash_spreads(range, arg->count);
	int error;

	if (spreads && spreads != arg->count)
		return -EINVAL;
	error = simflash_run(dev, spreads ? FTL_SPREAD : FTL_REMAP, range, arg->count);
	arg->pages_done = spreads ? dev->control_cmd->moved : error ? 0 : dev->control_cmd->pages;
	return error;
}

/* So many that the core, which has interrupts off meanwhile, is not kept for long. */
static bool simflash_are_few(const struct ftl_range *range, u32 ranges)
{
	u64 pages = 0;

	while (ranges--)
		pages += range[ranges].pages;
	return pages <= SIMFLASH_MAX_RANGE_PAGES;
}

static int simflash_dof_p(struct simflash *dev, struct simflash_ranges *arg,
			  const struct ftl_range *range)
{
	if (!simflash_are_few(range, arg->count))
		return -EINVAL;
	spin_lock_irq(&dev->lock);
	arg->dof_p_permille = ftl_dof_p_permille(dev->ftl, range, arg->count);
	spin_unlock_irq(&dev->lock);
	return 0;
}

static int simflash_with_ranges(struct simflash *dev, unsigned int cmd,
				struct simflash_ranges *arg)
{
	struct ftl_range *range;
	int error;

	if (arg->count > SIMFLASH_MAX_RANGES || (!arg->count && cmd != SIMFLASH_IOC_ARM))
		return -EINVAL;
	range = arg->count ? simflash_take_ranges(arg->ranges, arg->count) : NULL;
	if (IS_ERR(range))
		return PTR_ERR(range);
	if (cmd == SIMFLASH_IOC_DOF_P)
		error = simflash_dof_p(dev, arg, range);
	else if (!ftl_prepare_remap(dev->ftl))
		error = -ENOMEM;
	else if (cmd == SIMFLASH_IOC_ARM)
		error = simflash_run(dev, FTL_ARM, range, arg->count);
	else
		error = simflash_defrag(dev, arg, range);
	kvfree(range);
	return error;
}

static int simflash_ioctl_ranges(struct simflash *dev, unsigned int cmd,
				 struct simflash_ranges __user *user)
{
	struct simflash_ranges arg;
	int error;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.version != SIMFLASH_IOCTL_VERSION)
		return -EPROTO;
	error = simflash_with_ranges(dev, cmd, &arg);
	if (copy_to_user(user, &arg, sizeof(arg)))
		return -EFAULT;
	return error;
}

static int simflash_announce(struct simflash *dev, const struct simflash_announce *arg,
			     const struct ftl_range *range)
{
	static const enum ftl_op command[SIMFLASH_ANNOUNCE_OPS] = {
		[SIMFLASH_RESERVE]	= FTL_RESERVE,
		[SIMFLASH_SOON_INVALID]	= FTL_SOON_INVALID,
		[SIMFLASH_PREFETCH]	= FTL_PREFETCH,
	};
	struct ftl_cmd *cmd = dev->control_cmd;

	if (!simflash_are_few(range, arg->count))
		return -EINVAL;
	if (!ftl_prepare_hints(dev->ftl))
		return -ENOMEM;
	cmd->op = command[arg->op];
	cmd->fua = false;
	cmd->stream = 0;
	cmd->lba = 0;
	cmd->pages = arg->pages;
	cmd->range = range;
	cmd->ranges = arg->count;
	cmd->within_ns = arg->within_ns;
	simflash_control(dev);
	return simflash_error(cmd->status);
}

static int simflash_ioctl_announce(struct simflash *dev, struct simflash_announce __user *user)
{
	struct simflash_announce arg;
	struct ftl_range *range;
	int error;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.version != SIMFLASH_IOCTL_VERSION)
		return -EPROTO;
	/* A stream's records have no time until which something holds. */
	if (dev->stream)
		return -EOPNOTSUPP;
	if (arg.op >= SIMFLASH_ANNOUNCE_OPS || arg.count > SIMFLASH_MAX_RANGES ||
	    (arg.op == SIMFLASH_RESERVE && arg.count))
		return -EINVAL;
	range = arg.count ? simflash_take_ranges(arg.ranges, arg.count) : NULL;
	if (IS_ERR(range))
		return PTR_ERR(range);
	error = simflash_announce(dev, &arg, range);
	kvfree(range);
	return error;
}

static int simflash_ioctl_log(struct simflash *dev, struct simflash_log __user *user)
{
	static const enum ftl_op command[SIMFLASH_LOG_OPS] = {
		[SIMFLASH_LOG_FLUSH]		= FTL_LOG_FLUSH,
		[SIMFLASH_LOG_COMMIT]		= FTL_LOG_COMMIT,
		[SIMFLASH_LOG_DISCARD]		= FTL_LOG_DISCARD,
		[SIMFLASH_LOG_CHECKPOINT]	= FTL_CHECKPOINT,
	};
	struct simflash_log arg;
	int error = 0;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.version != SIMFLASH_IOCTL_VERSION)
		return -EPROTO;
	if (arg.op >= SIMFLASH_LOG_OPS)
		return -EINVAL;
	if (arg.op != SIMFLASH_LOG_CHECK)
		error = simflash_run(dev, command[arg.op], NULL, 0);
	spin_lock_irq(&dev->lock);
	arg.committed = ftl_log_committed(dev->ftl);
	if (ftl_power_is_off(dev->ftl))
		error = -EIO;
	spin_unlock_irq(&dev->lock);
	if (copy_to_user(user, &arg, sizeof(arg)))
		return -EFAULT;
	return error;
}

static void simflash_cut(struct simflash *dev, const struct simflash_power *arg)
{
	simflash_advance(dev);
	spin_lock_irq(&dev->lock);
	ftl_cut_power(dev->ftl, arg->operations, arg->seed);
	spin_unlock_irq(&dev->lock);
	simflash_advance(dev);
}

/*
 * A mount takes memory and time, so it is not done under the spinlock: with
 * the queue frozen, the timer stopped and the control lock held nobody else
 * is in the core.
 */
static int simflash_power_on(struct simflash *dev)
{
	unsigned int flags = simflash_freeze(dev->disk->queue);
	bool on;

	hrtimer_cancel(&dev->timer);
	dev->timer_ns = FTL_NEVER;
	on = ftl_power_on(dev->ftl, ktime_get_ns());
	simflash_unfreeze(dev->disk->queue, flags);
	simflash_advance(dev);
	return on ? 0 : -ENOMEM;
}

static int simflash_ioctl_power(struct simflash *dev, struct simflash_power __user *user)
{
	struct simflash_power arg;
	int error = 0;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.version != SIMFLASH_IOCTL_VERSION)
		return -EPROTO;
	/* A stream is of a device whose power is not cut: that is done with it elsewhere. */
	if (!dev->config.power_loss || dev->stream)
		return -EOPNOTSUPP;
	if (arg.op >= SIMFLASH_POWER_OPS)
		return -EINVAL;
	if (arg.op == SIMFLASH_POWER_CUT)
		simflash_cut(dev, &arg);
	else
		error = simflash_power_on(dev);
	arg.off = ftl_power_is_off(dev->ftl);
	if (copy_to_user(user, &arg, sizeof(arg)))
		return -EFAULT;
	return error;
}

int simflash_janus_ioctl(struct simflash *dev, unsigned int cmd, void __user *arg)
{
	if (cmd != SIMFLASH_IOC_DOF_P && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	switch (cmd) {
	case SIMFLASH_IOC_DEFRAG:
	case SIMFLASH_IOC_ARM:
	case SIMFLASH_IOC_DOF_P:
		return simflash_ioctl_ranges(dev, cmd, arg);
	case SIMFLASH_IOC_ANNOUNCE:
		return simflash_ioctl_announce(dev, arg);
	case SIMFLASH_IOC_LOG:
		return simflash_ioctl_log(dev, arg);
	case SIMFLASH_IOC_POWER:
		return simflash_ioctl_power(dev, arg);
	default:
		return -ENOTTY;
	}
}
