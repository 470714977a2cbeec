/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between kernels. queue_limits carries the features since 6.11,
 * and blk_mq_alloc_disk() takes it since 6.9; before, each is set on the queue.
 * The SIMFLASH_HAS_ macros come from Kbuild, which looks into the kernel's headers.
 */
#ifndef SIMFLASH_COMPAT_H
#define SIMFLASH_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/platform_device.h>

/* Commands that the driver issues only when all before them have ended. */
enum simflash_turns {
	SIMFLASH_OVERLAP,		/* none */
	SIMFLASH_DISCARDS_IN_TURN,	/* as the mmc driver with a command queue */
	SIMFLASH_ALL_IN_TURN,		/* as the mmc driver without one */
};

struct simflash_limits {
	unsigned int page_bytes;
	unsigned int request_sectors;
	unsigned int request_segments;
	unsigned int discard_sectors;
	unsigned int hardware_queues;
	bool fua;
	bool stable_pages;
	bool removable;
	bool budget;
	enum simflash_turns in_turn;
	u32 write_streams;		/* that a writer may name, beside none */
	u32 stream_mib;			/* memory for the command stream; 0: it is not kept */
};

#ifdef BLK_FEAT_WRITE_CACHE

static inline struct gendisk *simflash_alloc_disk(struct blk_mq_tag_set *tags, void *data,
						  const struct simflash_limits *limits)
{
	struct queue_limits lim = {
		.logical_block_size = limits->page_bytes,
		.physical_block_size = limits->page_bytes,
		.io_min = limits->page_bytes,
		.max_hw_sectors = limits->request_sectors,
		.max_segments = limits->request_segments,
		.max_hw_discard_sectors = limits->discard_sectors,
		.discard_granularity = limits->page_bytes,
		.features = BLK_FEAT_WRITE_CACHE,
	};

	if (limits->fua)
		lim.features |= BLK_FEAT_FUA;
	if (limits->stable_pages)
		lim.features |= BLK_FEAT_STABLE_WRITES;
#ifdef SIMFLASH_HAS_WRITE_STREAM
	lim.max_write_streams = limits->write_streams;
#endif
	return blk_mq_alloc_disk(tags, &lim, data);
}

#else

static inline struct gendisk *simflash_alloc_disk(struct blk_mq_tag_set *tags, void *data,
						  const struct simflash_limits *limits)
{
#ifdef SIMFLASH_HAS_DISK_LIMITS
	struct gendisk *disk = blk_mq_alloc_disk(tags, NULL, data);
#else
	struct gendisk *disk = blk_mq_alloc_disk(tags, data);
#endif
	struct request_queue *queue;

	if (IS_ERR(disk))
		return disk;
	queue = disk->queue;
	blk_queue_logical_block_size(queue, limits->page_bytes);
	blk_queue_physical_block_size(queue, limits->page_bytes);
	blk_queue_io_min(queue, limits->page_bytes);
	blk_queue_max_hw_sectors(queue, limits->request_sectors);
	blk_queue_max_segments(queue, limits->request_segments);
	blk_queue_max_discard_sectors(queue, limits->discard_sectors);
	queue->limits.discard_granularity = limits->page_bytes;
	blk_queue_write_cache(queue, true, limits->fua);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, queue);
	if (limits->stable_pages)
		blk_queue_flag_set(QUEUE_FLAG_STABLE_WRITES, queue);
	return disk;
}

#endif

/*
 * The stream of a write: the one it names (since 6.16), or one for its data's lifetime
 * (F_SET_RW_HINT, again since 6.9): short, medium, long and extreme are 1 to 4.
 */
static inline u8 simflash_write_stream(const struct request *rq)
{
#ifdef SIMFLASH_HAS_WRITE_STREAM
	if (rq->bio && rq->bio->bi_write_stream)
		return rq->bio->bi_write_stream;
#endif
#ifdef SIMFLASH_HAS_WRITE_HINT
	if (rq->bio && rq->bio->bi_write_hint > WRITE_LIFE_NONE)
		return rq->bio->bi_write_hint - WRITE_LIFE_NONE;
#endif
	return 0;
}

#ifndef BLK_OPEN_READ
typedef fmode_t blk_mode_t;
#endif

/* Merging is what every queue does since 6.14, and is asked for before. */
#ifdef SIMFLASH_HAS_MERGE_FLAG
#define SIMFLASH_TAG_FLAGS BLK_MQ_F_SHOULD_MERGE
#else
#define SIMFLASH_TAG_FLAGS 0
#endif

/* platform_driver.remove() returns nothing since 6.11; remove_new() was the way there. */
#ifdef SIMFLASH_HAS_VOID_REMOVE
#define simflash_remove_callback remove
#else
#define simflash_remove_callback remove_new
#endif

/* Waits for the requests under way and lets none begin. */
static inline unsigned int simflash_freeze(struct request_queue *queue)
{
#ifdef SIMFLASH_HAS_FREEZE_FLAGS
	return blk_mq_freeze_queue(queue);
#else
	blk_mq_freeze_queue(queue);
	return 0;
#endif
}

static inline void simflash_unfreeze(struct request_queue *queue, unsigned int flags)
{
#ifdef SIMFLASH_HAS_FREEZE_FLAGS
	blk_mq_unfreeze_queue(queue, flags);
#else
	blk_mq_unfreeze_queue(queue);
#endif
}

/* Only if nobody has the device to himself; undone by bd_abort_claiming(). */
static inline int simflash_claim(struct block_device *bdev, void *holder)
{
#ifdef BLK_OPEN_READ
	return bd_prepare_to_claim(bdev, holder, NULL);
#else
	return bd_prepare_to_claim(bdev, holder);
#endif
}

static inline void simflash_timer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*expired)(struct hrtimer *))
{
#ifdef SIMFLASH_HAS_HRTIMER_SETUP
	hrtimer_setup(timer, expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = expired;
#endif
}

#endif
