/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy over a modelled device: actors send requests and wait for them, as
 * processes, writeback and fsync do. Virtual time only, so a run is a function of
 * its seed.
 */
#ifndef SIMULATE_H
#define SIMULATE_H

#include "../core/core.h"

#define MAX_ACTORS	64
#define MAX_REQUESTS	512

/* A device that works on @channels requests at once and holds @depth. */
struct device {
	unsigned int depth;
	unsigned int channels;
	u64 command_ns;		/* of each request */
	u64 bytes_per_s;	/* of a channel */
	/* Each stall_every-th request takes stall_ns more; 0: none does. */
	unsigned int stall_every;
	u64 stall_ns;
	bool only_background_stalls;
};

enum kind {
	READ, SYNC_WRITE, ASYNC_WRITE, DISCARD,
	FSYNC,	/* waits for one of the writes of another actor, and then flushes */
	DIRTY,	/* dirties pages, and is throttled each time */
	NR_KINDS,
};

struct actor {
	enum kind kind;
	enum frontrow_role role;
	unsigned int owner;
	bool by_kernel_thread;
	unsigned int depth;	/* requests that it keeps here */
	u32 bytes;		/* of each */
	u64 think_ns;		/* at most, between the end of one and the next */
	unsigned int file;	/* whose writes these are; of FSYNC: that it waits for */
	u64 from_ns, until_ns;	/* when it sends */

	unsigned int nr_here;
	u64 next_ns;
	/* What came of it. */
	u64 done, done_bytes;
	u64 longest_ns;		/* from a request's coming to its completion */
	struct frontrow_wait wait;
	u64 wait_from_ns;
	u64 wait_until_ns;	/* FSYNC: 0: it waits for nothing */
	int waits_for;		/* request; -1: its flush */
};

struct sim_request {
	struct frontrow_item item;
	struct actor *actor;	/* NULL: free */
	u64 came_ns;
	u64 ends_ns;		/* in the device: 0 until it is worked on */
	u64 order;		/* in the device */
};

struct sim {
	struct frontrow_core core;
	struct device device;
	u64 now_ns;
	u64 random;
	u64 look_again_ns;	/* U64_MAX: at the next completion only */
	bool rests;		/* not even then, but when enough have completed */
	u64 slice_bytes;	/* the largest request, as the policy wants it */
	u64 decisions;
	u64 idle_longest_ns;	/* the device without a request, while some are queued */
	u64 idle_from_ns;
	const char *broken;	/* a rule that did not hold, or NULL */
	unsigned int nr_actors;
	struct actor actors[MAX_ACTORS];
	unsigned int nr_used;	/* requests beyond were never in use */
	struct sim_request requests[MAX_REQUESTS];
};

void sim_init(struct sim *sim, const struct device *device, u64 seed);
struct actor *sim_add(struct sim *sim, const struct actor *actor);
/* Runs until @until_ns; then nobody sends any more, and what is queued is served. */
void sim_run(struct sim *sim, u64 until_ns);
u64 sim_below(struct sim *sim, u64 limit);

#endif
