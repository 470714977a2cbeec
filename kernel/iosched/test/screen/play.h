/* SPDX-License-Identifier: GPL-2.0 */
/* Tasks that send requests and wait for them, in virtual time: a screen's one run. */
#ifndef SCREEN_PLAY_H
#define SCREEN_PLAY_H

#include "queue.h"

/* What a task does over and over. */
enum habit {
	READS,		/* reads of a file, `depth` at a time */
	SYNCS,		/* writes a file and fsyncs it: data, journal, commit record */
	WRITES_BACK,	/* a worker with dirty pages without end */
};

struct task {
	enum habit habit;
	bool is_in_order;	/* of places; otherwise at random */
	u32 bytes;		/* that it reads or writes in one go */
	unsigned int depth;	/* reads at a time; a worker has what the scheduler lets it */
	u64 think_us;		/* between two goes */
};

#define PLAY_MOST_TASKS 8

/* What is in front, until it has done `goes`, and what goes on behind. */
struct scene {
	struct task front;
	unsigned int goes;
	struct task behind[PLAY_MOST_TASKS];
	unsigned int nr_behind;
};

struct played {
	u64 mean_ns, worst_ns;		/* of a go in front */
	u64 behind_bytes;		/* read and written behind, a second */
	u64 decisions;
};

/* @is_named: the front is the foreground, and what is behind it the background. */
struct played play(struct disk *disk, enum scheduler scheduler, bool is_named,
		   const struct scene *scene, u32 area_mib);

#endif
