// SPDX-License-Identifier: GPL-2.0-only
/*
 * simflash: an emulated flash device, /dev/simflash0, or two.
 *
 * The front end between blk-mq and the core in ftl/. The tags of its hardware
 * queues are the core's command slots. A write's data is taken when the request
 * is issued, a read's is put where it belongs when its die has been read; the
 * request ends when the core's clock says so, from one timer.
 *
 * What the block layer hands on at once, and in what order, depends on the
 * driver. in_turn and budget have it as mmc's and SCSI's: mmc_mq_queue_rq()
 * and mmc_blk_mq_issue_rq(), scsi_mq_get_budget().
 *
 * The device is a platform device: unbinding its driver removes it under load
 * as pulling a card would.
 */
#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "simflash.h"

#define FTL_PAGE_SECTORS_SHIFT (12 - SECTOR_SHIFT)

/*
 * A request whose memory is not whole, aligned pages goes through pages of
 * our own; the file systems' and the page cache's never need that.
 */
struct simflash_request {
	bool bounced;
};

/* Each hardware queue has slots of its own. */
static struct ftl_cmd *simflash_command(struct simflash *dev, struct request *rq)
{
	return ftl_command(dev->ftl, rq->mq_hctx->queue_num * dev->tags.queue_depth + rq->tag);
}

static bool simflash_direct(struct request *rq)
{
	struct req_iterator iter;
	struct bio_vec vec;

	rq_for_each_bvec(vec, rq, iter) {
		if (vec.bv_len % FTL_PAGE_BYTES || vec.bv_offset % sizeof(u64))
			return false;
	}
	return true;
}

static void simflash_drop(struct ftl_cmd *cmd, u32 pages)
{
	struct simflash_request *request = blk_mq_rq_to_pdu(cmd->owner);
	u32 i;

	for (i = 0; i < pages; i++) {
		if (cmd->op == FTL_WRITE)
			ftl_content_drop(&cmd->page[i].content);
		else if (request->bounced)
			ftl_free_page(cmd->page[i].memory);
	}
}

/* One page of the request: where a read goes, or what a write brings. */
static bool simflash_take_page(struct ftl_cmd *cmd, u32 page, void *memory)
{
	if (cmd->op == FTL_WRITE)
		return ftl_capture(&cmd->page[page].content, memory);
	cmd->page[page].memory = memory;
	return true;
}

static bool simflash_take_pages(struct ftl_cmd *cmd)
{
	struct request *rq = cmd->owner;
	struct req_iterator iter;
	struct bio_vec vec;
	u32 page = 0;

	rq_for_each_bvec(vec, rq, iter) {
		void *memory = page_address(vec.bv_page) + vec.bv_offset;
		void *end = memory + vec.bv_len;

		for (; memory < end; memory += FTL_PAGE_BYTES, page++) {
			if (simflash_take_page(cmd, page, memory))
				continue;
			simflash_drop(cmd, page);
			return false;
		}
	}
	return true;
}

/* Between the request's memory and its bounce pages, `bounce[page]` each. */
static void simflash_copy_bounced(struct request *rq, struct ftl_cmd *cmd, u32 page, void *bounce,
				  bool to_request)
{
	u32 from = page * FTL_PAGE_BYTES, to = from + FTL_PAGE_BYTES;
	struct req_iterator iter;
	struct bio_vec vec;
	u32 at = 0;

	rq_for_each_bvec(vec, rq, iter) {
		void *memory = page_address(vec.bv_page) + vec.bv_offset;
		u32 start = max(at, from), end = min(at + vec.bv_len, to);

		if (start < end && to_request)
			memcpy(memory + start - at, bounce + start - from, end - start);
		else if (start < end)
			memcpy(bounce + start - from, memory + start - at, end - start);
		at += vec.bv_len;
	}
}

static bool simflash_take_bounced(struct ftl_cmd *cmd)
{
	u32 page;

	for (page = 0; page < cmd->pages; page++) {
		void *bounce = ftl_alloc_page();
		bool taken;

		if (!bounce) {
			simflash_drop(cmd, page);
			return false;
		}
		if (cmd->op == FTL_READ) {
			cmd->page[page].memory = bounce;
			continue;
		}
		simflash_copy_bounced(cmd->owner, cmd, page, bounce, false);
		taken = ftl_capture(&cmd->page[page].content, bounce);
		ftl_free_page(bounce);
		if (!taken) {
			simflash_drop(cmd, page);
			return false;
		}
	}
	return true;
}

static bool simflash_take_data(struct ftl_cmd *cmd, struct request *rq)
{
	struct simflash_request *request = blk_mq_rq_to_pdu(rq);

	request->bounced = false;
	if (cmd->op != FTL_READ && cmd->op != FTL_WRITE)
		return true;
	if (simflash_direct(rq))
		return simflash_take_pages(cmd);
	request->bounced = true;
	return simflash_take_bounced(cmd);
}

/*
 * The request comes back when the block layer tries again; if nothing frees
 * memory meanwhile, this line says why nothing goes on.
 */
static blk_status_t simflash_short_of_memory(struct simflash *dev)
{
	if (!dev->short_told)
		pr_warn(SIMFLASH_NAME "0: no memory for data that is written: it waits for some; data that does not repeat one word takes as much memory as it is long\n");
	dev->short_told = true;
	return BLK_STS_RESOURCE;
}

static blk_status_t simflash_take_command(struct ftl_cmd *cmd, struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		cmd->op = FTL_READ;
		break;
	case REQ_OP_WRITE:
		cmd->op = FTL_WRITE;
		break;
	case REQ_OP_FLUSH:
		cmd->op = FTL_FLUSH;
		break;
	case REQ_OP_DISCARD:
		cmd->op = FTL_DISCARD;
		break;
	default:
		return BLK_STS_NOTSUPP;
	}
	cmd->owner = rq;
	cmd->foreground = IOPRIO_PRIO_CLASS(req_get_ioprio(rq)) == IOPRIO_CLASS_RT;
	cmd->stream = cmd->op == FTL_WRITE ? simflash_write_stream(rq) : 0;
	cmd->fua = cmd->op == FTL_WRITE && rq->cmd_flags & REQ_FUA;
	cmd->lba = cmd->op == FTL_FLUSH ? 0 : blk_rq_pos(rq) >> FTL_PAGE_SECTORS_SHIFT;
	cmd->pages = cmd->op == FTL_FLUSH ? 0 : blk_rq_sectors(rq) >> FTL_PAGE_SECTORS_SHIFT;
	if (!simflash_take_data(cmd, rq))
		return simflash_short_of_memory(rq->q->queuedata);
	return BLK_STS_OK;
}

static blk_status_t simflash_status(struct simflash *dev, enum ftl_status status)
{
	switch (status) {
	case FTL_OK:
		return BLK_STS_OK;
	case FTL_NO_SPACE:
		if (!dev->full_told)
			pr_err(SIMFLASH_NAME "0: every erase block holds valid pages: discard what is unused, or load the module with a larger spare_percent\n");
		dev->full_told = true;
		return BLK_STS_NOSPC;
	case FTL_POWER_LOST:
		return BLK_STS_OFFLINE;
	default:
		pr_err(SIMFLASH_NAME "0: a page's OOB names another LBA than the map\n");
		return BLK_STS_IOERR;
	}
}

/* A place in the device, taken before the scheduler is asked for a request. */
static int simflash_get_budget(struct request_queue *queue)
{
	struct simflash *dev = queue->queuedata;
	unsigned long flags;
	int token = -1;

	spin_lock_irqsave(&dev->lock, flags);
	if (dev->budget < dev->config.queue_depth) {
		dev->budget++;
		token = 0;
	} else {
		dev->wanted = true;
	}
	spin_unlock_irqrestore(&dev->lock, flags);
	return token;
}

static void simflash_put_budget(struct request_queue *queue, int token)
{
	struct simflash *dev = queue->queuedata;
	unsigned long flags;
	bool wanted;

	spin_lock_irqsave(&dev->lock, flags);
	dev->budget--;
	wanted = dev->wanted;
	dev->wanted = false;
	spin_unlock_irqrestore(&dev->lock, flags);
	if (wanted)
		blk_mq_run_hw_queues(queue, true);
}

static void simflash_complete_rq(struct request *rq)
{
	struct request_queue *queue = rq->q;
	struct simflash *dev = queue->queuedata;
	struct simflash_request *request = blk_mq_rq_to_pdu(rq);
	struct ftl_cmd *cmd = simflash_command(dev, rq);
	u32 page;

	if (cmd->op == FTL_READ && request->bounced) {
		for (page = 0; page < cmd->pages; page++)
			simflash_copy_bounced(rq, cmd, page, cmd->page[page].memory, true);
		simflash_drop(cmd, cmd->pages);
	}
	if (!dev->budgeted) {
		blk_mq_end_request(rq, simflash_status(dev, cmd->status));
		return;
	}
	/* The request was what kept the queue from going. */
	percpu_ref_get(&queue->q_usage_counter);
	blk_mq_end_request(rq, simflash_status(dev, cmd->status));
	simflash_put_budget(queue, 0);
	percpu_ref_put(&queue->q_usage_counter);
}

/* Has the timer ring at the core's next event. Called with the lock held. */
static void simflash_set_timer(struct simflash *dev)
{
	u64 next_ns = ftl_next_ns(dev->ftl);

	if (next_ns == dev->timer_ns)
		return;
	dev->timer_ns = next_ns;
	if (next_ns != FTL_NEVER)
		hrtimer_start(&dev->timer, ns_to_ktime(next_ns), HRTIMER_MODE_ABS);
}

/* The commands that are done. Called with the lock held. */
static struct ftl_cmd *simflash_collect(struct simflash *dev)
{
	struct ftl_cmd *first = NULL, **last = &first;
	struct ftl_cmd *cmd;

	while ((cmd = ftl_take_done(dev->ftl))) {
		if (cmd == dev->control_cmd) {
			complete(&dev->control_done);
			continue;
		}
		*last = cmd;
		last = &cmd->next;
		if (!--dev->in_flight && dev->in_turn)
			wake_up(&dev->idle);
	}
	*last = NULL;
	return first;
}

static void simflash_end(struct ftl_cmd *cmd)
{
	while (cmd) {
		struct ftl_cmd *next = cmd->next;	/* cmd may be used again at once */
		struct request *rq = cmd->owner;

		blk_mq_complete_request(rq);
		cmd = next;
	}
}

void simflash_advance(struct simflash *dev)
{
	struct ftl_cmd *done;
	unsigned long flags;

	spin_lock_irqsave(&dev->lock, flags);
	ftl_run(dev->ftl, ktime_get_ns());
	done = simflash_collect(dev);
	simflash_set_timer(dev);
	spin_unlock_irqrestore(&dev->lock, flags);
	simflash_end(done);
}

void simflash_end_stream(struct simflash *dev, struct ftl_stats *stats)
{
	struct ftl_cmd *done;
	u64 now_ns;

	spin_lock_irq(&dev->lock);
	now_ns = ktime_get_ns();
	ftl_run(dev->ftl, now_ns);
	ftl_read_stats(dev->ftl, stats);
	simflash_stream_end(dev->stream, stats, now_ns);
	done = simflash_collect(dev);
	simflash_set_timer(dev);
	spin_unlock_irq(&dev->lock);
	simflash_end(done);
}

/* Called with the lock held. */
static void simflash_submit(struct simflash *dev, struct ftl_cmd *cmd)
{
	u64 now_ns = ktime_get_ns();

	simflash_stream_command(dev->stream, cmd, now_ns);
	ftl_submit(dev->ftl, cmd, now_ns);
}

void simflash_control(struct simflash *dev)
{
	struct ftl_cmd *done;

	reinit_completion(&dev->control_done);
	spin_lock_irq(&dev->lock);
	simflash_submit(dev, dev->control_cmd);
	done = simflash_collect(dev);
	simflash_set_timer(dev);
	spin_unlock_irq(&dev->lock);
	simflash_end(done);
	wait_for_completion(&dev->control_done);
}

static enum hrtimer_restart simflash_timer(struct hrtimer *timer)
{
	struct simflash *dev = container_of(timer, struct simflash, timer);

	spin_lock(&dev->lock);
	dev->timer_ns = FTL_NEVER;
	spin_unlock(&dev->lock);
	simflash_advance(dev);
	return HRTIMER_NORESTART;
}

static blk_status_t simflash_issue(struct simflash *dev, struct request *rq)
{
	struct ftl_cmd *cmd = simflash_command(dev, rq);
	blk_status_t status = simflash_take_command(cmd, rq);
	struct ftl_cmd *done;
	unsigned long flags;

	if (status != BLK_STS_OK)
		return status;

	spin_lock_irqsave(&dev->lock, flags);
	if (cmd->op == FTL_WRITE && !ftl_provide(dev->ftl)) {
		spin_unlock_irqrestore(&dev->lock, flags);
		simflash_drop(cmd, cmd->pages);
		return simflash_short_of_memory(dev);
	}
	blk_mq_start_request(rq);
	dev->in_flight++;
	simflash_submit(dev, cmd);
	done = simflash_collect(dev);
	simflash_set_timer(dev);
	spin_unlock_irqrestore(&dev->lock, flags);
	simflash_end(done);
	return BLK_STS_OK;
}

static blk_status_t simflash_queue_rq(struct blk_mq_hw_ctx *hctx,
				      const struct blk_mq_queue_data *bd)
{
	struct simflash *dev = hctx->queue->queuedata;
	blk_status_t status = simflash_issue(dev, bd->rq);

	if (dev->budgeted && status != BLK_STS_OK)
		simflash_put_budget(hctx->queue, 0);
	return status;
}

/* Whoever finds another issuing is told to come again. */
static bool simflash_begin_issue(struct simflash *dev)
{
	bool first;

	spin_lock_irq(&dev->lock);
	first = !READ_ONCE(dev->issuing);
	WRITE_ONCE(dev->issuing, true);
	spin_unlock_irq(&dev->lock);
	return first;
}

/*
 * The request that is issued waits here, with all that the block layer pulled
 * out of the scheduler behind it. Discards and flushes end before another
 * request is looked at.
 */
static blk_status_t simflash_queue_in_turn(struct blk_mq_hw_ctx *hctx,
					   const struct blk_mq_queue_data *bd)
{
	struct simflash *dev = hctx->queue->queuedata;
	enum req_op op = req_op(bd->rq);
	bool all = dev->in_turn == SIMFLASH_ALL_IN_TURN;
	bool alone = op == REQ_OP_DISCARD || (all && op == REQ_OP_FLUSH);
	blk_status_t status;

	if (!simflash_begin_issue(dev))
		return BLK_STS_RESOURCE;
	if (all || alone)
		wait_event(dev->idle, !READ_ONCE(dev->in_flight));
	status = simflash_issue(dev, bd->rq);
	if (alone && status == BLK_STS_OK)
		wait_event(dev->idle, !READ_ONCE(dev->in_flight));
	WRITE_ONCE(dev->issuing, false);
	return status;
}

static const struct blk_mq_ops simflash_mq_ops = {
	.queue_rq	= simflash_queue_rq,
	.complete	= simflash_complete_rq,
};

static const struct blk_mq_ops simflash_in_turn_ops = {
	.queue_rq	= simflash_queue_in_turn,
	.complete	= simflash_complete_rq,
};

static const struct blk_mq_ops simflash_budget_ops = {
	.queue_rq	= simflash_queue_rq,
	.complete	= simflash_complete_rq,
	.get_budget	= simflash_get_budget,
	.put_budget	= simflash_put_budget,
};

static const struct blk_mq_ops *simflash_ops(const struct simflash *dev)
{
	if (dev->in_turn)
		return &simflash_in_turn_ops;
	return dev->budgeted ? &simflash_budget_ops : &simflash_mq_ops;
}

static void simflash_free(struct simflash *dev)
{
	if (dev->ftl)
		ftl_destroy(dev->ftl);
	simflash_stream_destroy(dev->stream);
	kfree(dev);
}

static void simflash_free_disk(struct gendisk *disk)
{
	simflash_free(disk->private_data);
}

static const struct block_device_operations simflash_fops = {
	.owner		= THIS_MODULE,
	.ioctl		= simflash_ioctl,
	.compat_ioctl	= blkdev_compat_ptr_ioctl,
	.free_disk	= simflash_free_disk,
};

static int simflash_add_tags(struct simflash *dev, unsigned int slots, unsigned int queues)
{
	dev->tags.ops = simflash_ops(dev);
	dev->tags.nr_hw_queues = queues;
	dev->tags.queue_depth = slots / queues;
	dev->tags.numa_node = NUMA_NO_NODE;
	dev->tags.cmd_size = sizeof(struct simflash_request);
	dev->tags.flags = SIMFLASH_TAG_FLAGS | (dev->in_turn ? BLK_MQ_F_BLOCKING : 0);
	dev->tags.driver_data = dev;
	return blk_mq_alloc_tag_set(&dev->tags);
}

/* On success the disk owns `dev`. */
static int simflash_add_disk(struct simflash *dev, struct platform_device *parent,
			     const struct ftl_config *config, const struct simflash_limits *limits)
{
	struct gendisk *disk = simflash_alloc_disk(&dev->tags, dev, limits);
	int error;

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	dev->disk = disk;
	disk->fops = &simflash_fops;
	disk->private_data = dev;
	disk->flags |= GENHD_FL_NO_PART;
	if (limits->removable)
		disk->flags |= GENHD_FL_REMOVABLE;
	snprintf(disk->disk_name, DISK_NAME_LEN, SIMFLASH_NAME "%d", parent->id);
	set_capacity(disk, (sector_t)config->capacity_pages << FTL_PAGE_SECTORS_SHIFT);

	error = device_add_disk(&parent->dev, disk, NULL);
	if (error) {
		put_disk(disk);		/* calls free_disk only for a disk that was added */
		return error;
	}
	return 0;
}

static int simflash_probe(struct platform_device *platform)
{
	struct simflash_limits limits;
	struct ftl_config config;
	struct simflash *dev;
	int error;

	error = simflash_profile(platform->id, &config, &limits);
	if (error)
		return error;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;

	spin_lock_init(&dev->lock);
	mutex_init(&dev->control);
	init_completion(&dev->control_done);
	init_waitqueue_head(&dev->idle);
	dev->in_turn = limits.in_turn;
	dev->budgeted = limits.budget;
	dev->config = config;
	simflash_timer_setup(&dev->timer, simflash_timer);
	dev->timer_ns = FTL_NEVER;
	dev->dies = config.channels * config.dies_per_channel;
	error = -ENOMEM;
	dev->stream = simflash_stream_create(&config, limits.stream_mib);
	if (limits.stream_mib && !dev->stream)
		goto free;
	dev->ftl = ftl_create(&config, ktime_get_ns());
	if (!dev->ftl)
		goto free;
	dev->control_cmd = ftl_command(dev->ftl, config.queue_depth);
	error = simflash_add_tags(dev, config.queue_depth, limits.hardware_queues);
	if (error)
		goto free;
	error = simflash_add_disk(dev, platform, &config, &limits);
	if (error)
		goto free_tags;

	platform_set_drvdata(platform, dev);
	simflash_control_add(dev);
	return 0;

free_tags:
	blk_mq_free_tag_set(&dev->tags);
free:
	simflash_free(dev);
	return error;
}

/*
 * del_gendisk() lets what is under way end and refuses what comes; open file
 * handles keep the disk, and with it `dev`, until the last is closed.
 */
static void simflash_remove(struct platform_device *platform)
{
	struct simflash *dev = platform_get_drvdata(platform);

	del_gendisk(dev->disk);
	simflash_control_remove(dev);
	mutex_lock(&dev->control);
	dev->gone = true;
	mutex_unlock(&dev->control);
	hrtimer_cancel(&dev->timer);
	blk_mq_free_tag_set(&dev->tags);
	put_disk(dev->disk);
}

static struct platform_driver simflash_driver = {
	.probe				= simflash_probe,
	.simflash_remove_callback	= simflash_remove,
	.driver.name			= SIMFLASH_NAME,
};

static struct platform_device *simflash_device[SIMFLASH_MAX_DEVICES];

static void simflash_unregister(void)
{
	u32 i;

	for (i = 0; i < SIMFLASH_MAX_DEVICES; i++)
		platform_device_unregister(simflash_device[i]);
	platform_driver_unregister(&simflash_driver);
}

static int simflash_register(u32 i)
{
	struct platform_device *device;

	device = platform_device_register_simple(SIMFLASH_NAME, i, NULL, 0);
	if (IS_ERR(device))
		return PTR_ERR(device);
	simflash_device[i] = device;
	return platform_get_drvdata(device) ? 0 : -ENOMEM;
}

static int __init simflash_init(void)
{
	struct simflash_limits limits;
	struct ftl_config config;
	int error = 0;
	u32 i;

	/* A driver's probe error does not reach insmod; a wrong profile should. */
	for (i = 0; !error && i < simflash_devices(); i++)
		error = simflash_profile(i, &config, &limits);
	if (!error)
		error = platform_driver_register(&simflash_driver);
	if (error)
		return error;
	for (i = 0; !error && i < simflash_devices(); i++)
		error = simflash_register(i);
	if (error)
		simflash_unregister();
	return error;
}

static void __exit simflash_exit(void)
{
	simflash_unregister();
	simflash_control_exit();
}

module_init(simflash_init);
module_exit(simflash_exit);

MODULE_DESCRIPTION("Emulated flash storage device with a page-level FTL");
MODULE_AUTHOR("Frontrow developers");
MODULE_LICENSE("GPL");
