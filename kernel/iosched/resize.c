// SPDX-License-Identifier: GPL-2.0
#include "frontrow.h"

/*
 * Adjusts the queue's largest request to the measured rate (core/budget.c), through the
 * limit of queue/max_sectors_kb. A value that another program has written there is
 * the new upper bound.
 */
static void resize(struct work_struct *work)
{
	struct frontrow_data *fd = container_of(work, struct frontrow_data, resize);
	struct queue_limits *limits = &fd->q->limits;
	unsigned int wanted = READ_ONCE(fd->core.slice_bytes) >> SECTOR_SHIFT;
	unsigned int found;

	if (!frontrow_trylock_limits(fd->q)) {
		/* A later completion tries again. */
		spin_lock_irq(&fd->lock);
		fd->core.is_slice_new = true;
		spin_unlock_irq(&fd->lock);
		return;
	}
	found = READ_ONCE(limits->max_sectors);
	if (found != fd->applied_max_sectors)
		WRITE_ONCE(fd->core.most_bytes, (u64)found << SECTOR_SHIFT);
	fd->applied_max_sectors = min_t(u64, wanted, fd->core.most_bytes >> SECTOR_SHIFT);
	WRITE_ONCE(limits->max_sectors, fd->applied_max_sectors);
	frontrow_unlock_limits(fd->q);
}

void frontrow_resize_init(struct frontrow_data *fd)
{
	fd->applied_max_sectors = fd->q->limits.max_sectors;
	fd->core.most_bytes = (u64)fd->applied_max_sectors << SECTOR_SHIFT;
	INIT_WORK(&fd->resize, resize);
}

void frontrow_resize_exit(struct frontrow_data *fd)
{
	struct queue_limits *limits = &fd->q->limits;
	bool is_locked;

	cancel_work_sync(&fd->resize);
	is_locked = frontrow_trylock_limits(fd->q);
	if (READ_ONCE(limits->max_sectors) == fd->applied_max_sectors)
		WRITE_ONCE(limits->max_sectors, fd->core.most_bytes >> SECTOR_SHIFT);
	if (is_locked)
		frontrow_unlock_limits(fd->q);
}
