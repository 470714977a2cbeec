/* SPDX-License-Identifier: GPL-2.0 */
/* Schedulers between senders and a disk: Frontrow's policy, and a model of mq-deadline. */
#ifndef SCREEN_QUEUE_H
#define SCREEN_QUEUE_H

#include "disk.h"

enum scheduler { MQ_DEADLINE, FRONTROW };

/* As block/mq-deadline.c: two FIFOs, batches in order of place, writes that starve. */
struct deadline {
	struct io *by_age[2];		/* reads, writes; oldest first */
	unsigned int batch;		/* dispatched of the present one */
	unsigned int starved;		/* batches of reads while writes waited */
	unsigned int direction;
	u32 next_lba;			/* where the batch goes on */
};

struct queue {
	enum scheduler scheduler;
	struct disk *disk;
	struct frontrow_core core;
	struct deadline deadline;
	u64 slice_bytes;		/* the largest request */
	u64 look_again_ns;
	bool rests;
};

void queue_init(struct queue *queue, enum scheduler scheduler, struct disk *disk, bool has_roles);
void queue_insert(struct queue *queue, struct io *io, u64 now_ns);
/* Gives the disk what it may have now. */
void queue_run(struct queue *queue, u64 now_ns);
void queue_completed(struct queue *queue, struct io *io, u64 now_ns);
/* Most asynchronous requests of a writeback worker here at once. */
unsigned int queue_worker_tags(const struct queue *queue);

#endif
