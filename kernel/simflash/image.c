// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images by ioctl: the device becomes one with a past, as often as it is asked.
 *
 * A new core takes the old one's place when no request is under way. It is loaded
 * when the old one's memory is free again, and so after it was seen that the image
 * is one of such a device, and whole.
 */
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "simflash.h"
#include "simflash_ioctl.h"

static int simflash_refuse(struct simflash_image *arg, const char *reason)
{
	strscpy(arg->reason, reason, sizeof(arg->reason));
	return -EINVAL;
}

/*
 * With the queue frozen, the timer stopped and the control lock held nobody is
 * in the core.
 */
static const char *simflash_replace(struct simflash *dev, struct ftl *ftl, const void *image,
				    size_t bytes)
{
	unsigned int flags = simflash_freeze(dev->disk->queue);
	const char *reason;

	hrtimer_cancel(&dev->timer);
	dev->timer_ns = FTL_NEVER;
	ftl_destroy(dev->ftl);
	dev->ftl = ftl;
	dev->control_cmd = ftl_command(ftl, dev->config.queue_depth);
	reason = ftl_image_load(ftl, image, bytes);
	simflash_unfreeze(dev->disk->queue, flags);
	simflash_advance(dev);
	return reason;
}

static int simflash_become(struct simflash *dev, const void *image, struct simflash_image *arg)
{
	struct ftl *ftl = ftl_create(&dev->config, ktime_get_ns());
	const char *reason;

	if (!ftl)
		return -ENOMEM;
	reason = ftl_image_check(ftl, image, arg->bytes);
	if (reason)
		ftl_destroy(ftl);
	else
		reason = simflash_replace(dev, ftl, image, arg->bytes);
	return reason ? simflash_refuse(arg, reason) : 0;
}

static int simflash_load(struct simflash *dev, struct simflash_image *arg)
{
	void *image;
	int error;

	if (!arg->bytes || arg->bytes > SIMFLASH_MAX_IMAGE_BYTES)
		return simflash_refuse(arg, "an image has at least a byte and at most a gibibyte");
	image = vmemdup_user(u64_to_user_ptr(arg->image), arg->bytes);
	if (IS_ERR(image))
		return PTR_ERR(image);
	error = simflash_become(dev, image, arg);
	kvfree(image);
	return error;
}

/* Whoever has it open keeps it, but nobody may have it to himself, as a file system has. */
static int simflash_load_unused(struct simflash *dev, struct simflash_image *arg)
{
	struct block_device *bdev = dev->disk->part0;
	int error = simflash_claim(bdev, dev);

	if (error)
		return error;
	sync_blockdev(bdev);
	error = simflash_load(dev, arg);
	invalidate_bdev(bdev);
	bd_abort_claiming(bdev, dev);
	return error;
}

int simflash_image_ioctl(struct simflash *dev, struct simflash_image __user *user)
{
	struct simflash_image arg;
	int error;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.version != SIMFLASH_IOCTL_VERSION)
		return -EPROTO;
	/* A stream is of a device that was empty at its beginning. */
	if (dev->stream)
		return -EOPNOTSUPP;
	memset(arg.reason, 0, sizeof(arg.reason));
	error = simflash_load_unused(dev, &arg);
	if (copy_to_user(user, &arg, sizeof(arg)))
		return -EFAULT;
	return error;
}
