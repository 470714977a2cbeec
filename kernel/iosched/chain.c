// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits, and for how long the device may idle for him.
 *
 * A foreground operation is a chain of requests: an fsync writes data, journal
 * blocks and a commit record, each when the one before is done. While a level's
 * requests are here, and for a window after, what is below it stays in the
 * queue but for its share. The window covers nearly all gaps that the level's
 * chain has shown: an app that reads a photo by four requests and then decodes
 * it has three short gaps and a long one. Where requests come far apart there is
 * nothing to anticipate, and no window.
 *
 * A task that waits may have nothing here at all: a commit waits for a journal
 * handle, a page for a bio that waits for a tag. It is given one window to show
 * what it waits for. After that dispatch.c sends what was held back, so that no
 * dependency, known or not, leaves the device idle for longer.
 */
#include "frontrow.h"

/* Of so many gaps; then all count half, and so the last few hundred decide. */
#define GAPS_KEPT	64

void frontrow_chains_init(struct frontrow_data *fd)
{
	enum frontrow_level level;

	for (level = 0; level < FRONTROW_NR_LEVELS; level++)
		fd->chains[level].window_ns = INITIAL_WINDOW_NS;
}

/* The 95th percentile, or none if most gaps are pauses. */
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
	/* A step more, since a gap is known to a step only. */
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
	/* Each of the first ones tells; later it takes several. */
	if (chain->nr_gaps < 8 || chain->nr_gaps % 8 == 0)
		chain->window_ns = window_of(chain);
}

/* A synchronous request came. */
void frontrow_request_begins(struct frontrow_data *fd, struct frontrow_rq *fr,
			     u64 now_ns)
{
	struct frontrow_chain *chain = &fd->chains[fr->level];

	if (fr->ground != FRONTROW_BACKGROUND)
		frontrow_budget_disturb(fd);
	fr->is_counted = true;
	if (!chain->nr_requests++)
		gap_ends(chain, now_ns - chain->idle_since_ns);
}

/* It is done, or merged into another. */
void frontrow_request_ends(struct frontrow_data *fd, struct frontrow_rq *fr,
			   u64 now_ns)
{
	struct frontrow_chain *chain = &fd->chains[fr->level];

	if (!fr->is_counted)
		return;
	fr->is_counted = false;
	if (--chain->nr_requests)
		return;
	chain->idle_since_ns = now_ns;
	chain->quiet_since_ns = now_ns;
}

/* What a task of the level may wait for goes in these classes, if it is known. */
static const u16 served_in[FRONTROW_NR_LEVELS] = {
	[FRONTROW_ANYBODY] = BIT(FRONTROW_SYNC_READ) | BIT(FRONTROW_SYNC_WRITE) |
			     BIT(FRONTROW_BOOSTED),
	[FRONTROW_SEEN] = BIT(FRONTROW_VISIBLE_1) | BIT(FRONTROW_VISIBLE_2) |
			  BIT(FRONTROW_VISIBLE_3) | BIT(FRONTROW_BOOSTED),
	[FRONTROW_FRONT] = BIT(FRONTROW_FG_READ) | BIT(FRONTROW_FG_WRITE) |
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

/* A request of this class is done, a promoted one for one. */
void frontrow_class_done(struct frontrow_data *fd, enum frontrow_class class,
			 u64 now_ns)
{
	enum frontrow_level level;

	for (level = FRONTROW_ANYBODY; level < FRONTROW_NR_LEVELS; level++)
		if (served_in[level] & BIT(class))
			fd->chains[level].quiet_since_ns = now_ns;
}

void frontrow_waiter_begins(struct frontrow_data *fd,
			    const struct frontrow_waiter *waiter, u64 now_ns)
{
	struct frontrow_chain *chain = &fd->chains[waiter->level];

	if (!chain->nr_waiting++)
		chain->quiet_since_ns = now_ns;
	chain->nr_fsyncs += waiter->is_fsync;
	fd->nr_waiters++;
	fd->nr_unseen += waiter->unseen;
}

void frontrow_waiter_ends(struct frontrow_data *fd,
			  const struct frontrow_waiter *waiter)
{
	struct frontrow_chain *chain = &fd->chains[waiter->level];

	chain->nr_waiting--;
	chain->nr_fsyncs -= waiter->is_fsync;
	fd->nr_waiters--;
	fd->nr_unseen -= waiter->unseen;
}

/* The highest level at which somebody waits. */
void frontrow_look(const struct frontrow_data *fd, u64 now_ns,
		   struct frontrow_view *view)
{
	enum frontrow_level level;

	*view = (struct frontrow_view) {
		.now_ns = now_ns,
		.is_front_writing = fd->queued[FRONTROW_FG_ASYNC] +
				    fd->in_device[FRONTROW_FG_ASYNC],
		.next_event_ns = U64_MAX,
	};
	for (level = FRONTROW_FRONT; level > FRONTROW_NOBODY; level--) {
		const struct frontrow_chain *chain = &fd->chains[level];
		u64 since_ns = chain->nr_waiting ? chain->quiet_since_ns :
						   chain->idle_since_ns;
		u64 end_ns = since_ns + chain->window_ns;

		if (!chain->nr_requests && !chain->nr_waiting && now_ns >= end_ns)
			continue;
		view->who = level;
		if (chain->nr_requests || is_served(fd, level))
			return;
		if (now_ns < end_ns)
			view->next_event_ns = end_ns;
		else
			view->is_searching = true;
		return;
	}
}

/* The device begins to idle beside somebody who waits, or ends to. */
void frontrow_idle_changes(struct frontrow_data *fd, bool is_idle, u64 now_ns)
{
	u64 idle_ns;

	if (is_idle) {
		fd->idle_from_ns = now_ns;
		return;
	}
	idle_ns = now_ns - fd->idle_from_ns;
	fd->idle_from_ns = 0;
	fd->idle_ns += idle_ns;
	fd->idle_longest_ns = max(fd->idle_longest_ns, idle_ns);
}
