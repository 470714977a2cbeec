// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images by ioctl: the device becomes one with a past, as often as it is asked.
 *
 * A new core is made and loaded beside the old one, and takes its place when no
 * request is under way: whatever goes wrong before that changes nothing.
 */
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "simflash.h"
#include "simflash_ioctl.h"

static struct ftl *simflash_make(struct simflash *dev, const void *image, size_t bytes,
				 struct simflash_image *arg)
{
	struct ftl *ftl = ftl_create(&dev->config, ktime_get_ns());
	const char *reason;

	if (!ftl)
		return ERR_PTR(-ENOMEM);
	reason = ftl_image_load(ftl, image, bytes);
	if (!reason)
		return ftl;
	strscpy(arg->reason, reason, sizeof(arg->reason));
	ftl_destroy(ftl);
	return ERR_PTR(-EINVAL);
}

/*
 * With the queue frozen, the timer stopped and the control lock held nobody is
 * in the old core.
 */
static void simflash_replace(struct simflash *dev, struct ftl *ftl)
{
	unsigned int flags = simflash_freeze(dev->disk->queue);
	struct ftl *old = dev->ftl;

	hrtimer_cancel(&dev->timer);
	dev->timer_ns = FTL_NEVER;
	dev->ftl = ftl;
	dev->control_cmd = ftl_command(ftl, dev->config.queue_depth);
	simflash_unfreeze(dev->disk->queue, flags);
	ftl_destroy(old);
	simflash_advance(dev);
}

static int simflash_load(struct simflash *dev, struct simflash_image *arg)
{
	struct ftl *ftl;
	void *image;

	if (arg->bytes > SIMFLASH_MAX_IMAGE_BYTES)
		return -EFBIG;
	image = vmemdup_user(u64_to_user_ptr(arg->image), arg->bytes);
	if (IS_ERR(image))
		return PTR_ERR(image);
	ftl = simflash_make(dev, image, arg->bytes, arg);
	kvfree(image);
	if (IS_ERR(ftl))
		return PTR_ERR(ftl);
	simflash_replace(dev, ftl);
	return 0;
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
