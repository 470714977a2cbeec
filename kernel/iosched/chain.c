// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits, and how long the device may idle for them.
 *
 * A foreground operation is a chain of requests: fsync writes data, journal
 * blocks and a commit record, each after the completion of the one before.
 * While requests of a level are here, and for a window after the last one,
 * requests of lower levels stay queued, except for their guaranteed share. The
 * window is the 95th percentile of the chain's gaps. An app that reads a photo
 * with four requests and then decodes it has three short gaps and a pause. If
 * most gaps are pauses, the window is zero.
 *
 * A waiting task may have no request here: a commit waits for a journal handle,
 * or a bio waits for a tag. It gets one window to submit a request. After that
 * dispatch.c serves closed classes, so no dependency, known or unknown, leaves
 * the device idle for longer.
 */
#include "frontrow.h"

/* The counts are halved at this many gaps, so the last few hundred decide. */
#define GAPS_KEPT	64

void frontrow_chains_init(struct frontrow_data *fd)
{
	enum frontrow_level level;

	for (level = 0; level < FRONTROW_NR_LEVELS; level++)
		fd->chains[level].window_ns = INITIAL_WINDOW_NS;
}

/* The 95th percentile; 0 if most gaps are pauses. */
static u64 window_of(const struct frontrow_chain *chain)
{
	unsigned int within = chain->nr_gaps - chain->gaps[NR_GAP_STEPS];
	unsigned int wanted = DIV_ROUND_UP(within * 19, 20);
	unsigned int seen = 0;
	unsigned int step;

	if (2 * within < chain->nr_gaps)
		return 0;
	for (step = 0; step < NR_GAP_STEPS - 1; step++) {
		seen += chain->gaps[step];
		if (seen >= wanted)
			break;
	}
	/* One step more: gaps are known to a step only. */
	return min_t(u64, (step + 2) * GAP_STEP_NS, MAX_WINDOW_NS);
}

static void gap_ends(struct frontrow_chain *chain, u64 gap_ns)
{
	unsigned int step;

	step = min_t(u64, div_u64(gap_ns, GAP_STEP_NS), NR_GAP_STEPS);
	chain->gaps[step]++;
	if (++chain->nr_gaps >= GAPS_KEPT) {
		chain->nr_gaps = 0;
		for (step = 0; step <= NR_GAP_STEPS; step++) {
			chain->gaps[step] /= 2;
			chain->nr_gaps += chain->gaps[step];
		}
	}
	/*
	 * Each of the first gaps changes the window; later ones only in groups.
	 */
	if (chain->nr_gaps < 8 || chain->nr_gaps % 8 == 0)
		chain->window_ns = window_of(chain);
}

/* A synchronous request was inserted. */
void frontrow_request_begins(struct frontrow_data *fd, struct frontrow_rq *fr,
			     u64 now_ns)
{
	struct frontrow_chain *chain = &fd->chains[fr->level];

	if (fr->role != FRONTROW_BACKGROUND)
		frontrow_budget_disturb(fd);
	fr->is_counted = true;
	fd->nr_awaited += fr->level > FRONTROW_LEVEL_NONE;
	frontrow_process_begins(fd, fr->owner, now_ns);
	if (!chain->nr_requests++)
		gap_ends(chain, now_ns - chain->idle_since_ns);
}

/* A synchronous request has completed or was merged into another. */
void frontrow_request_ends(struct frontrow_data *fd, struct frontrow_rq *fr,
			   u64 now_ns)
{
	struct frontrow_chain *chain = &fd->chains[fr->level];

	if (!fr->is_counted)
		return;
	fr->is_counted = false;
	fd->nr_awaited -= fr->level > FRONTROW_LEVEL_NONE;
	frontrow_process_ends(fd, fr->owner, now_ns);
	if (--chain->nr_requests)
		return;
	chain->idle_since_ns = now_ns;
	chain->quiet_since_ns = now_ns;
}

/* Classes that may hold the request that a task of the level waits for. */
static const u16 served_in[FRONTROW_NR_LEVELS] = {
	[FRONTROW_LEVEL_BULK] = BIT(FRONTROW_BULK) | BIT(FRONTROW_BOOSTED),
	[FRONTROW_LEVEL_LONG] = BIT(FRONTROW_LONG) | BIT(FRONTROW_BOOSTED),
	[FRONTROW_LEVEL_OTHER] = BIT(FRONTROW_SYNC_READ) | BIT(FRONTROW_SYNC_WRITE) |
			     BIT(FRONTROW_BOOSTED),
	[FRONTROW_LEVEL_VISIBLE] = BIT(FRONTROW_VISIBLE_1) | BIT(FRONTROW_VISIBLE_2) |
			  BIT(FRONTROW_VISIBLE_3) | BIT(FRONTROW_BOOSTED),
	[FRONTROW_LEVEL_FOREGROUND] = BIT(FRONTROW_FG_READ) | BIT(FRONTROW_FG_WRITE) |
			   BIT(FRONTROW_BOOSTED),
};

static bool is_served(const struct frontrow_data *fd, enum frontrow_level level)
{
	unsigned long classes = served_in[level];
	unsigned int class;

	for_each_set_bit(class, &classes, FRONTROW_NR_CLASSES)
		if (fd->queued[class] || fd->in_device[class])
			return true;
	return false;
}

/* A request of @class has completed, possibly a promoted one. */
void frontrow_class_done(struct frontrow_data *fd, enum frontrow_class class,
			 u64 now_ns)
{
	enum frontrow_level level;

	for (level = FRONTROW_LEVEL_BULK; level < FRONTROW_NR_LEVELS; level++)
		if (served_in[level] & BIT(class))
			fd->chains[level].quiet_since_ns = now_ns;
}

void frontrow_waiter_begins(struct frontrow_data *fd,
			    struct frontrow_waiter *waiter, u64 now_ns)
{
	struct frontrow_chain *chain = &fd->chains[waiter->level];

	fd->nr_awaited += waiter->level > FRONTROW_LEVEL_NONE;
	frontrow_process_waits(fd, waiter, now_ns);
	if (!chain->nr_waiting++)
		chain->quiet_since_ns = now_ns;
	chain->nr_fsyncs += waiter->is_fsync;
	fd->nr_waiters++;
	fd->nr_unseen += waiter->unseen;
}

void frontrow_waiter_ends(struct frontrow_data *fd,
			  const struct frontrow_waiter *waiter, u64 now_ns)
{
	struct frontrow_chain *chain = &fd->chains[waiter->level];

	fd->nr_awaited -= waiter->level > FRONTROW_LEVEL_NONE;
	frontrow_process_waited(fd, waiter, now_ns);
	chain->nr_waiting--;
	chain->nr_fsyncs -= waiter->is_fsync;
	fd->nr_waiters--;
	fd->nr_unseen -= waiter->unseen;
}

/* Finds the most urgent level at which somebody waits. */
void frontrow_look(const struct frontrow_data *fd, u64 now_ns,
		   struct frontrow_view *view)
{
	enum frontrow_level level;

	*view = (struct frontrow_view) {
		.now_ns = now_ns,
		.is_foreground_writing = fd->queued[FRONTROW_FG_ASYNC] +
				    fd->in_device[FRONTROW_FG_ASYNC],
		.next_event_ns = U64_MAX,
	};
	level = rcu_access_pointer(fd->roles) ? FRONTROW_LEVEL_FOREGROUND :
						FRONTROW_LEVEL_OTHER;
	for (; level > FRONTROW_LEVEL_NONE; level--) {
		const struct frontrow_chain *chain = &fd->chains[level];
		u64 end_ns = chain->window_ns;

		view->who = level;
		if (chain->nr_requests)
			return;
		end_ns += chain->nr_waiting ? chain->quiet_since_ns :
					      chain->idle_since_ns;
		if (!chain->nr_waiting && now_ns >= end_ns)
			continue;
		if (is_served(fd, level))
			return;
		if (now_ns < end_ns)
			view->next_event_ns = end_ns;
		else
			view->is_searching = true;
		return;
	}
	view->who = FRONTROW_LEVEL_NONE;
}

/* The device no longer idles while somebody waits. */
void frontrow_idle_ends(struct frontrow_data *fd, u64 now_ns)
{
	u64 idle_ns = now_ns - fd->idle_from_ns;

	fd->idle_from_ns = 0;
	fd->idle_ns += idle_ns;
	fd->idle_longest_ns = max(fd->idle_longest_ns, idle_ns);
}
