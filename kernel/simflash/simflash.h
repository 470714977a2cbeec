/* SPDX-License-Identifier: GPL-2.0-only */
/* The block device around the core. */
#ifndef SIMFLASH_H
#define SIMFLASH_H

#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/dcache.h>
#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "compat.h"
#include "ftl/ftl.h"

#define SIMFLASH_NAME "simflash"
#define SIMFLASH_MAX_DEVICES 2

/*
 * lock is held around every call into the core, from the issue path and from
 * the timer's interrupt alike. It is taken with interrupts off. control is held
 * around ioctls, for the core has one slot for their commands, and by what
 * needs the core for itself.
 */
struct simflash {
	struct ftl *ftl;
	struct ftl_config config;
	spinlock_t lock;
	struct hrtimer timer;
	u64 timer_ns;			/* what it is set to, FTL_NEVER if not */
	bool full_told, short_told;	/* said once in the kernel's log */
	u32 dies;
	struct mutex control;
	struct completion control_done;
	struct ftl_cmd *control_cmd;
	bool gone;			/* no ioctl may begin any more */
	struct gendisk *disk;
	struct blk_mq_tag_set tags;
	enum simflash_turns in_turn;
	bool issuing;			/* in turn: somebody issues a request, or waits to */
	u32 in_flight;			/* requests that the core has */
	wait_queue_head_t idle;		/* in turn: in_flight is 0 */
	bool budgeted;
	u32 budget;			/* places that requests have taken, and */
	bool wanted;			/* somebody found none free */
	struct dentry *debugfs;
	struct simflash_stream *stream;	/* NULL: not kept */
};

/* profile.c: the module's parameters */
u32 simflash_devices(void);
int simflash_profile(u32 device, struct ftl_config *config, struct simflash_limits *limits);

/* main.c: brings the core up to now and ends what is done */
void simflash_advance(struct simflash *dev);

/* main.c: the same, and ends the stream with what the core has counted until then */
void simflash_end_stream(struct simflash *dev, struct ftl_stats *stats);

/* main.c: submits the control slot's command and waits for its end */
void simflash_control(struct simflash *dev);

/* janus.c: ioctls that change what the device holds */
int simflash_janus_ioctl(struct simflash *dev, unsigned int cmd, void __user *arg);

/* image.c: what the device holds is replaced */
struct simflash_image;
int simflash_image_ioctl(struct simflash *dev, struct simflash_image __user *user);

/* stream.c: the command stream, written down; the lock is held around _command() and _end() */
struct simflash_stream *simflash_stream_create(const struct ftl_config *config, u32 mib);
void simflash_stream_destroy(struct simflash_stream *stream);
void simflash_stream_command(struct simflash_stream *stream, const struct ftl_cmd *cmd, u64 now_ns);
void simflash_stream_end(struct simflash_stream *stream, const struct ftl_stats *stats, u64 now_ns);
void simflash_stream_add(struct simflash *dev);

/* control.c: ioctl and debugfs */
int simflash_ioctl(struct block_device *bdev, blk_mode_t mode, unsigned int cmd,
		   unsigned long arg);
void simflash_control_add(struct simflash *dev);
void simflash_control_remove(struct simflash *dev);
void simflash_control_exit(void);

#endif
