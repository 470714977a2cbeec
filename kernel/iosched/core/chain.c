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
 * pick.c serves closed classes, so no dependency, known or unknown, leaves
 * the device idle for longer.
 */
#include "internal.h"

/* The counts are halved at this many gaps, so the last few hundred decide. */
#define GAPS_KEPT	64

void frontrow_chains_init(struct frontrow_core *core)
{
	enum frontrow_level level;

	for (level = 0; level < FRONTROW_NR_LEVELS; level++)
		core->chains[level].window_ns = INITIAL_WINDOW_NS;
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
void frontrow_request_begins(struct frontrow_core *core, struct frontrow_item *item,
			     u64 now_ns)
{
	struct frontrow_chain *chain = &core->chains[item->level];

	if (item->role != FRONTROW_BACKGROUND)
		frontrow_budget_disturb(core);
	item->is_counted = true;
	core->nr_awaited += item->level > FRONTROW_LEVEL_NONE;
	frontrow_process_begins(core, item->owner, now_ns);
	if (!chain->nr_requests++)
		gap_ends(chain, now_ns - chain->idle_since_ns);
}

/* A synchronous request has completed or was merged into another. */
void frontrow_request_ends(struct frontrow_core *core, struct frontrow_item *item,
			   u64 now_ns)
{
	struct frontrow_chain *chain = &core->chains[item->level];

	if (!item->is_counted)
		return;
	item->is_counted = false;
	core->nr_awaited -= item->level > FRONTROW_LEVEL_NONE;
	frontrow_process_ends(core, item->owner, now_ns);
	if (--chain->nr_requests)
		return;
	chain->idle_since_ns = now_ns;
	chain->quiet_since_ns = now_ns;
}

static bool is_served(const struct frontrow_core *core, enum frontrow_level level)
{
	enum frontrow_class class;

	for (class = 0; class < FRONTROW_NR_CLASSES; class++)
		if ((frontrow_classes[class].serves & BIT(level)) &&
		    (core->queued[class] || core->in_device[class]))
			return true;
	return false;
}

/* A request of @class has completed, possibly a promoted one. */
void frontrow_class_done(struct frontrow_core *core, enum frontrow_class class,
			 u64 now_ns)
{
	enum frontrow_level level;

	for (level = FRONTROW_LEVEL_BULK; level < FRONTROW_NR_LEVELS; level++)
		if (frontrow_classes[class].serves & BIT(level))
			core->chains[level].quiet_since_ns = now_ns;
}

void frontrow_waiter_begins(struct frontrow_core *core,
			    struct frontrow_wait *wait, u64 now_ns)
{
	struct frontrow_chain *chain = &core->chains[wait->level];

	core->nr_awaited += wait->level > FRONTROW_LEVEL_NONE;
	frontrow_process_waits(core, wait, now_ns);
	if (!chain->nr_waiting++)
		chain->quiet_since_ns = now_ns;
	chain->nr_fsyncs += wait->is_fsync;
	core->nr_waiters++;
}

void frontrow_waiter_ends(struct frontrow_core *core,
			  const struct frontrow_wait *wait, u64 now_ns)
{
	struct frontrow_chain *chain = &core->chains[wait->level];

	core->nr_awaited -= wait->level > FRONTROW_LEVEL_NONE;
	frontrow_process_waited(core, wait, now_ns);
	chain->nr_waiting--;
	chain->nr_fsyncs -= wait->is_fsync;
	core->nr_waiters--;
}

/* Finds the most urgent level at which somebody waits. */
void frontrow_look(const struct frontrow_core *core, u64 now_ns,
		   struct frontrow_view *view)
{
	enum frontrow_level level;

	*view = (struct frontrow_view) {
		.now_ns = now_ns,
		.has_roles = READ_ONCE(core->has_roles),
		.is_foreground_writing = core->queued[FRONTROW_FG_ASYNC] +
				    core->in_device[FRONTROW_FG_ASYNC],
		.next_event_ns = U64_MAX,
	};
	level = view->has_roles ? FRONTROW_LEVEL_FOREGROUND : FRONTROW_LEVEL_OTHER;
	for (; level > FRONTROW_LEVEL_NONE; level--) {
		const struct frontrow_chain *chain = &core->chains[level];
		u64 end_ns = chain->window_ns;

		view->who = level;
		if (chain->nr_requests)
			return;
		end_ns += chain->nr_waiting ? chain->quiet_since_ns :
					      chain->idle_since_ns;
		if (!chain->nr_waiting && now_ns >= end_ns)
			continue;
		if (is_served(core, level))
			return;
		if (now_ns < end_ns)
			view->next_event_ns = end_ns;
		else
			view->is_searching = true;
		return;
	}
	view->who = FRONTROW_LEVEL_NONE;
}

static void idle_ends(struct frontrow_core *core, u64 now_ns)
{
	u64 idle_ns = now_ns - core->idle_from_ns;

	core->idle_from_ns = 0;
	core->idle_ns += idle_ns;
	core->idle_longest_ns = max(core->idle_longest_ns, idle_ns);
}

/*
 * Accounts the time in which the device idles although somebody waits and
 * requests are queued. Call it after each change of one of the three.
 */
void frontrow_count_idle(struct frontrow_core *core, u64 now_ns)
{
	bool is_idle = !core->nr_in_device && core->nr_queued && !core->nr_flushing &&
		       core->nr_awaited;

	if (is_idle == !!core->idle_from_ns)
		return;
	if (is_idle)
		core->idle_from_ns = now_ns;
	else
		idle_ends(core, now_ns);
}
