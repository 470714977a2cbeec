// SPDX-License-Identifier: GPL-2.0
/*
 * How much asynchronous work the device may hold, learnt from the device.
 *
 * While nobody waits, undisturbed windows of writeback measure three things:
 * the rate at which the device takes it, how many requests it can use before
 * they only wait there (the mean time in the device passes a target), and so
 * how large a request may be for the device to be rid of it within slice_us.
 * A synchronous request that comes at a bad moment waits for about that.
 *
 * While somebody waits, a class that is not open to his level earns credit at a
 * share of that rate and sends one request at a time when the credit is positive.
 * The share grows with the age of the oldest request, so that none gets old
 * whatever the load. It is smaller while the foreground waits; an app that is
 * visible beside it has the share that it was given.
 */
#include <linux/pagemap.h>

#include "frontrow.h"

/* What read-ahead asks for at once. */
#define READ_BYTES	((u64)VM_READAHEAD_PAGES * PAGE_SIZE)

/* A foreground is to wait less than one among equals. */
static u64 slice_bytes(const struct frontrow_data *fd)
{
	unsigned int slice_us = READ_ONCE(fd->slice_us);
	u64 bytes;

	if (rcu_access_pointer(fd->grounds))
		slice_us = min(slice_us, GROUNDS_SLICE_US);
	bytes = div_u64(fd->budget.bytes_per_s, USEC_PER_SEC) * slice_us;
	return max_t(u64, bytes, MIN_SLICE_BYTES);
}

/*
 * Lets the queue's largest request follow the measured rate. The limit is the
 * one in queue/max_sectors_kb; a number that somebody else wrote there since
 * is the new ceiling.
 */
static void resize(struct work_struct *work)
{
	struct frontrow_data *fd = container_of(work, struct frontrow_data, resize);
	struct queue_limits *limits = &fd->q->limits;
	unsigned int wanted = READ_ONCE(fd->slice_sectors);
	unsigned int found = READ_ONCE(limits->max_sectors);

	if (found != fd->applied_max_sectors)
		fd->native_max_sectors = found;
	fd->applied_max_sectors = min(wanted, fd->native_max_sectors);
	WRITE_ONCE(limits->max_sectors, fd->applied_max_sectors);
}

void frontrow_budget_init(struct frontrow_data *fd)
{
	struct frontrow_budget *budget = &fd->budget;

	budget->bytes_per_s = INITIAL_BYTES_PER_S;
	budget->open_limit = OPEN_LIMIT_MIN;
	budget->discard_ns = INITIAL_DISCARD_NS;
	budget->credit_updated_ns = ktime_get_ns();
	fd->native_max_sectors = fd->q->limits.max_sectors;
	fd->applied_max_sectors = fd->native_max_sectors;
	fd->slice_sectors = fd->native_max_sectors;
	INIT_WORK(&fd->resize, resize);
}

void frontrow_budget_exit(struct frontrow_data *fd)
{
	struct queue_limits *limits = &fd->q->limits;

	cancel_work_sync(&fd->resize);
	if (READ_ONCE(limits->max_sectors) == fd->applied_max_sectors)
		WRITE_ONCE(limits->max_sectors, fd->native_max_sectors);
}

void frontrow_budget_full(struct frontrow_data *fd)
{
	fd->budget.window_full = true;
}

static u64 oldest_ns(struct frontrow_data *fd, enum frontrow_class class,
		     u64 now_ns)
{
	const struct frontrow_rq *first = frontrow_first(fd, class);

	return first ? first->inserted_ns : now_ns;
}

/*
 * Discards have an account of their own, half the size, or a foreground that
 * frees blocks would spend the background's share on them.
 */
static unsigned int base_percent(struct frontrow_data *fd,
				 const struct frontrow_view *view,
				 enum frontrow_class class)
{
	unsigned int percent = READ_ONCE(fd->async_share_percent);

	if (frontrow_is_visible(class))
		return READ_ONCE(fd->visible_share_percent[class - FRONTROW_VISIBLE_1]);
	if (class != FRONTROW_FG_ASYNC && view->who > FRONTROW_ANYBODY)
		percent = min(READ_ONCE(fd->background_share_percent),
			      READ_ONCE(fd->background_most_percent));
	return class == FRONTROW_DISCARD ? max(1U, percent / 2) : percent;
}

static unsigned int share_percent(struct frontrow_data *fd,
				  const struct frontrow_view *view,
				  enum frontrow_class class)
{
	unsigned int base = base_percent(fd, view, class);
	u64 age_ns = view->now_ns - oldest_ns(fd, class, view->now_ns);

	if (age_ns <= AGE_RAMP_BEGIN_NS)
		return base;
	if (age_ns >= AGE_RAMP_END_NS)
		return 100;
	return base + div64_u64((100 - base) * (age_ns - AGE_RAMP_BEGIN_NS),
				AGE_RAMP_END_NS - AGE_RAMP_BEGIN_NS);
}

static struct frontrow_group *group_of(struct frontrow_data *fd,
				       enum frontrow_class class)
{
	return &fd->groups[class - FRONTROW_FIRST_GROUP];
}

/* Credit may not pile up beyond one request, or a burst would follow. */
static void earn(struct frontrow_data *fd, const struct frontrow_view *view)
{
	struct frontrow_budget *budget = &fd->budget;
	u64 elapsed_us = div_u64(view->now_ns - budget->credit_updated_ns, NSEC_PER_USEC);
	enum frontrow_class class;

	elapsed_us = min_t(u64, elapsed_us, USEC_PER_SEC);
	for (class = FRONTROW_FIRST_GROUP; class < FRONTROW_NR_CLASSES; class++) {
		u64 per_s = div_u64(budget->bytes_per_s *
				    share_percent(fd, view, class), 100);
		u64 earned = div_u64(per_s * elapsed_us, USEC_PER_SEC);
		s64 *credit = &group_of(fd, class)->credit_bytes;

		*credit = min_t(s64, *credit + earned, slice_bytes(fd));
	}
	budget->credit_updated_ns = view->now_ns;
}

static enum frontrow_class first_due(struct frontrow_data *fd,
				     const struct frontrow_view *view,
				     enum frontrow_class class)
{
	for (; class < FRONTROW_NR_CLASSES; class++)
		if (fd->queued[class] && group_of(fd, class)->credit_bytes > 0 &&
		    !frontrow_is_open(view, class))
			break;
	return class;
}

/*
 * The class that may send a request although it is not open, if one may. An app
 * that is visible and cannot spend its share on small requests has credit all the
 * time: it is the others' turn after each.
 */
enum frontrow_class frontrow_budget_due(struct frontrow_data *fd,
					const struct frontrow_view *view)
{
	struct frontrow_budget *budget = &fd->budget;
	enum frontrow_class due = FRONTROW_NR_CLASSES;

	/* All groups are open. */
	if (view->who == FRONTROW_NOBODY && !view->is_front_writing)
		return due;
	/* Small steps would be lost in rounding. */
	if (view->now_ns - budget->credit_updated_ns > 100 * NSEC_PER_USEC)
		earn(fd, view);
	if (frontrow_is_visible(budget->last_due))
		due = first_due(fd, view, budget->last_due + 1);
	if (due == FRONTROW_NR_CLASSES)
		due = first_due(fd, view, FRONTROW_FIRST_GROUP);
	budget->last_due = due;
	return due;
}

/* Time until a queued class has credit, at its present share. */
u64 frontrow_budget_wait_ns(struct frontrow_data *fd,
			    const struct frontrow_view *view)
{
	u64 wait_ns = NSEC_PER_SEC;
	enum frontrow_class class;

	for (class = FRONTROW_FIRST_GROUP; class < FRONTROW_NR_CLASSES; class++) {
		s64 credit = group_of(fd, class)->credit_bytes;
		u64 per_s = div_u64(fd->budget.bytes_per_s *
				    base_percent(fd, view, class), 100);

		if (!fd->queued[class])
			continue;
		if (credit > 0)
			return MIN_WAIT_NS;
		wait_ns = min(wait_ns, div64_u64((u64)-credit * NSEC_PER_SEC,
						 max(per_s, 1ULL)));
	}
	return max_t(u64, wait_ns, MIN_WAIT_NS);
}

/* Whether a write of the background may join those in the device. */
bool frontrow_budget_has_room(const struct frontrow_data *fd, u32 bytes)
{
	return !fd->background_bytes ||
	       fd->background_bytes + bytes <= slice_bytes(fd);
}

/*
 * What the device's rate is learnt from: writeback, and what is written and
 * synced in the background, which may be all the writing there is.
 */
static bool shows_rate(const struct frontrow_rq *fr)
{
	return fr->class == FRONTROW_ASYNC ||
	       (fr->class == FRONTROW_BG_SYNC && fr->is_background_write);
}

/* What a request costs in bytes; a discard moves none, but takes time. */
static u64 cost_bytes(const struct frontrow_data *fd, const struct frontrow_rq *fr)
{
	const struct frontrow_budget *budget = &fd->budget;

	if (fr->class != FRONTROW_DISCARD)
		return fr->bytes;
	return min(slice_bytes(fd),
		   div_u64(div_u64(budget->bytes_per_s, USEC_PER_SEC) *
			   budget->discard_ns, NSEC_PER_USEC));
}

/* A request of a group goes to the device. */
void frontrow_budget_charge(struct frontrow_data *fd,
			    const struct frontrow_rq *fr,
			    const struct frontrow_view *view)
{
	struct frontrow_group *group = group_of(fd, fr->class);
	struct frontrow_budget *budget = &fd->budget;
	u64 now_ns = view->now_ns;

	if (!frontrow_is_open(view, fr->class)) {
		frontrow_budget_disturb(fd);
		/* What went without credit, for somebody who searched, is not owed. */
		group->credit_bytes = max_t(s64, group->credit_bytes, 0) -
				      cost_bytes(fd, fr);
		return;
	}
	fd->served_floor_bytes = group->served_bytes;
	group->served_bytes += cost_bytes(fd, fr);
	/* Whoever comes next waits for this one, and not for another soon. */
	group->credit_bytes = -(s64)cost_bytes(fd, fr);
	/* What is not held back for others takes no time from their accounts. */
	if (frontrow_is_visible(fr->class))
		return;
	budget->credit_updated_ns = now_ns;
	if (!budget->window_start_ns &&
	    (fr->class != FRONTROW_BG_SYNC || fr->is_background_write)) {
		budget->window_start_ns = now_ns;
		budget->window_bytes = 0;
		budget->window_latency_ns = 0;
		budget->window_requests = 0;
		budget->window_full = false;
	}
}

static void adapt_open_limit(struct frontrow_data *fd)
{
	struct frontrow_budget *budget = &fd->budget;
	u64 latency_ns = div_u64(budget->window_latency_ns, budget->window_requests);

	if (latency_ns > OPEN_LATENCY_NS)
		budget->open_limit = max(OPEN_LIMIT_MIN, budget->open_limit * 3 / 4);
	else if (budget->window_full)
		budget->open_limit = min(frontrow_depth(fd), budget->open_limit +
					 max(1U, budget->open_limit / 4));
}

/*
 * Small requests show a rate that large ones would exceed, so they may only
 * confirm a size. Sizes are powers of two.
 */
static void adapt_slice(struct frontrow_data *fd)
{
	struct frontrow_budget *budget = &fd->budget;
	u64 mean_bytes = div_u64(budget->window_bytes, budget->window_requests);
	u64 wanted_bytes = slice_bytes(fd);
	unsigned int sectors;

	/* What the foreground reads would be cut, too. */
	if (rcu_access_pointer(fd->grounds))
		wanted_bytes = max(wanted_bytes, READ_BYTES);
	if (!READ_ONCE(fd->slice_us) || mean_bytes < MIN_SLICE_BYTES / 2)
		return;
	sectors = rounddown_pow_of_two(wanted_bytes) >> SECTOR_SHIFT;
	/* A little short of the size in use is no reason to change it. */
	if (sectors == fd->slice_sectors ||
	    (sectors < fd->slice_sectors &&
	     wanted_bytes * 5 / 4 > (u64)fd->slice_sectors * SECTOR_SIZE))
		return;
	WRITE_ONCE(fd->slice_sectors, sectors);
	schedule_work(&fd->resize);
}

static void close_window(struct frontrow_data *fd, u64 now_ns)
{
	struct frontrow_budget *budget = &fd->budget;
	u64 elapsed_us = div_u64(now_ns - budget->window_start_ns, NSEC_PER_USEC);
	u64 rate = div64_u64(budget->window_bytes * USEC_PER_SEC, elapsed_us);

	budget->bytes_per_s = max_t(u64, (3 * budget->bytes_per_s + rate) / 4,
				    MIN_SLICE_BYTES);
	adapt_open_limit(fd);
	adapt_slice(fd);
	frontrow_budget_disturb(fd);
}

/* The time that a request of a group took. */
void frontrow_budget_learn(struct frontrow_data *fd,
			   const struct frontrow_rq *fr, u64 now_ns)
{
	struct frontrow_budget *budget = &fd->budget;

	if (fr->class == FRONTROW_DISCARD)
		budget->discard_ns = (3 * budget->discard_ns +
				      now_ns - fr->dispatched_ns) / 4;
	if (!budget->window_start_ns || !shows_rate(fr))
		return;
	budget->window_bytes += fr->bytes;
	budget->window_latency_ns += now_ns - fr->dispatched_ns;
	budget->window_requests++;

	/* The device ran dry: what it could take is not known. */
	if (!fd->queued[FRONTROW_ASYNC] && !fd->in_device[FRONTROW_ASYNC] &&
	    !fd->queued[FRONTROW_BG_SYNC] && !fd->in_device[FRONTROW_BG_SYNC])
		frontrow_budget_disturb(fd);
	else if (now_ns - budget->window_start_ns >= RATE_WINDOW_NS &&
		 budget->window_requests >= RATE_WINDOW_REQUESTS)
		close_window(fd, now_ns);
}
