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
 * While somebody waits, async earns credit at a share of that rate and sends
 * one request at a time when the credit is positive. The share grows with the
 * age of the oldest request, so that none gets old whatever the load. What is
 * behind a foreground that waits has a smaller share, and none as long as it has
 * only begun to, and its synchronous requests have one, too; an app that is seen
 * beside it has the share that it was given.
 */
#include <linux/pagemap.h>

#include "frontrow.h"

#define WINDOW_NS		(20 * NSEC_PER_MSEC)
#define WINDOW_MIN_REQUESTS	4
/* Requests that stay longer than this only queue in the device. */
#define OPEN_LATENCY_NS		(5 * NSEC_PER_MSEC)
#define OPEN_LIMIT_MIN		2U
/* Until the first window: a slow card, so that the first seconds are safe. */
#define INITIAL_BYTES_PER_S	(32ULL << 20)
#define INITIAL_DISCARD_NS	(500 * NSEC_PER_USEC)
/* Below this the cost of a command outweighs what a waiter gains. */
#define MIN_SLICE_BYTES		(64U << 10)
/* At most, where somebody is in front or behind. */
#define GROUNDS_SLICE_US	1000U
/* What read-ahead asks for at once. */
#define READ_BYTES		((u64)VM_READAHEAD_PAGES * PAGE_SIZE)
/* No use in asking again sooner. */
#define MIN_WAIT_NS		(500 * NSEC_PER_USEC)
/* Old age begins here, and everything goes to async here. */
#define AGE_RAMP_BEGIN_NS	(3000ULL * NSEC_PER_MSEC)
#define AGE_RAMP_END_NS		(4500ULL * NSEC_PER_MSEC)
/* Most of what a user waits for is over by then; nobody behind starves in it. */
#define GRACE_NS		(500ULL * NSEC_PER_MSEC)

/* Whoever is in front of somebody is to wait less than among equals. */
static u64 slice_bytes(const struct frontrow_data *fd)
{
	unsigned int slice_us = fd->slice_us;
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

	if (limits->max_sectors != fd->applied_max_sectors)
		fd->native_max_sectors = limits->max_sectors;
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
	if (limits->max_sectors == fd->applied_max_sectors)
		WRITE_ONCE(limits->max_sectors, fd->native_max_sectors);
}

/* A window that sync requests disturb says nothing about the device. */
void frontrow_budget_disturb(struct frontrow_data *fd)
{
	fd->budget.window_start_ns = 0;
}

void frontrow_budget_full(struct frontrow_data *fd)
{
	fd->budget.window_full = true;
}

static u64 oldest_ns(struct frontrow_data *fd, enum frontrow_class class,
		     u64 now_ns)
{
	struct request *rq = frontrow_oldest(fd, class);

	return rq ? frontrow_rq(rq)->inserted_ns : now_ns;
}

static u64 grace_left_ns(const struct frontrow_data *fd, u64 now_ns)
{
	u64 end_ns = fd->seen_since_ns + GRACE_NS;

	return end_ns > now_ns ? end_ns - now_ns : 0;
}

/*
 * Discards have an account of their own, half the size, or a foreground that
 * frees blocks would spend the background's share on them.
 */
static unsigned int base_percent(struct frontrow_data *fd,
				 enum frontrow_class class, u64 now_ns)
{
	unsigned int percent = READ_ONCE(fd->async_share_percent);

	if (frontrow_class_is_visible(class))
		return READ_ONCE(fd->visible_share_percent[class - FRONTROW_VISIBLE_1]);
	if (class != FRONTROW_FG_ASYNC && frontrow_seen_waits(fd, now_ns)) {
		if (grace_left_ns(fd, now_ns))
			return 0;
		percent = READ_ONCE(fd->background_share_percent);
	}
	return class == FRONTROW_DISCARD ? max(1U, percent / 2) : percent;
}

static unsigned int share_percent(struct frontrow_data *fd,
				  enum frontrow_class class, u64 now_ns)
{
	unsigned int base = base_percent(fd, class, now_ns);
	u64 age_ns = now_ns - oldest_ns(fd, class, now_ns);

	if (age_ns <= AGE_RAMP_BEGIN_NS)
		return base;
	if (age_ns >= AGE_RAMP_END_NS)
		return 100;
	return base + div64_u64((100 - base) * (age_ns - AGE_RAMP_BEGIN_NS),
				AGE_RAMP_END_NS - AGE_RAMP_BEGIN_NS);
}

static s64 *credit_of(struct frontrow_data *fd, enum frontrow_class class)
{
	return &fd->budget.credit_bytes[class - FRONTROW_SHARED];
}

/* Credit may not pile up beyond one request, or a burst would follow. */
static void earn(struct frontrow_data *fd, u64 now_ns)
{
	struct frontrow_budget *budget = &fd->budget;
	u64 elapsed_us = div_u64(now_ns - budget->credit_updated_ns, NSEC_PER_USEC);
	enum frontrow_class class;

	elapsed_us = min_t(u64, elapsed_us, USEC_PER_SEC);
	for (class = FRONTROW_SHARED; class < FRONTROW_NR_CLASSES; class++) {
		u64 per_s = div_u64(budget->bytes_per_s *
				    share_percent(fd, class, now_ns), 100);
		u64 earned = div_u64(per_s * elapsed_us, USEC_PER_SEC);
		s64 *credit = credit_of(fd, class);

		*credit = min_t(s64, *credit + earned, slice_bytes(fd));
	}
	budget->credit_updated_ns = now_ns;
}

static enum frontrow_class first_due(struct frontrow_data *fd,
				     enum frontrow_class class, u64 now_ns)
{
	for (; class < FRONTROW_NR_CLASSES; class++)
		if (fd->queued[class] && *credit_of(fd, class) > 0 &&
		    !frontrow_class_is_open(fd, class, now_ns))
			break;
	return class;
}

/*
 * The class that may send a request although it is not open, if one may. An app
 * that is seen and cannot spend its share on small requests has credit all the
 * time: it is the others' turn after each.
 */
enum frontrow_class frontrow_budget_due(struct frontrow_data *fd, u64 now_ns)
{
	struct frontrow_budget *budget = &fd->budget;
	enum frontrow_class due = FRONTROW_NR_CLASSES;

	/* Small steps would be lost in rounding. */
	if (now_ns - budget->credit_updated_ns > 100 * NSEC_PER_USEC)
		earn(fd, now_ns);
	if (frontrow_class_is_visible(budget->last_due))
		due = first_due(fd, budget->last_due + 1, now_ns);
	if (due == FRONTROW_NR_CLASSES)
		due = first_due(fd, FRONTROW_SHARED, now_ns);
	budget->last_due = due;
	return due;
}

/* Time until a queued class has credit, at its present share. */
u64 frontrow_budget_wait_ns(struct frontrow_data *fd, u64 now_ns)
{
	const struct frontrow_budget *budget = &fd->budget;
	u64 wait_ns = NSEC_PER_SEC;
	enum frontrow_class class;

	for (class = FRONTROW_SHARED; class < FRONTROW_NR_CLASSES; class++) {
		s64 credit = *credit_of(fd, class);
		u64 per_s = div_u64(budget->bytes_per_s *
				    base_percent(fd, class, now_ns), 100);

		if (!fd->queued[class])
			continue;
		if (credit > 0)
			return MIN_WAIT_NS;
		if (!per_s) {
			wait_ns = min(wait_ns, grace_left_ns(fd, now_ns));
			continue;
		}
		wait_ns = min(wait_ns,
			      div64_u64((u64)-credit * NSEC_PER_SEC, per_s));
	}
	return max_t(u64, wait_ns, MIN_WAIT_NS);
}

/* Whether that many bytes of a write from behind may join those in the device. */
bool frontrow_budget_has_room_behind(const struct frontrow_data *fd, u32 bytes)
{
	return !fd->behind_bytes || fd->behind_bytes + bytes <= slice_bytes(fd);
}

/*
 * What the device's rate is learnt from: writeback, and what is written and
 * synced behind, which may be all the writing there is.
 */
static bool shows_rate(const struct frontrow_rq *fr)
{
	return fr->class == FRONTROW_ASYNC ||
	       (fr->class == FRONTROW_BG_SYNC && fr->is_behind_write);
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

/* A request that has to share goes to the device. */
void frontrow_budget_charge(struct frontrow_data *fd,
			    const struct frontrow_rq *fr, u64 now_ns)
{
	struct frontrow_budget *budget = &fd->budget;

	if (!frontrow_class_is_open(fd, fr->class, now_ns)) {
		frontrow_budget_disturb(fd);
		/* What went without credit, for somebody who was stuck, is not owed. */
		*credit_of(fd, fr->class) = max_t(s64, *credit_of(fd, fr->class), 0) -
					    cost_bytes(fd, fr);
		return;
	}
	/* Whoever comes next waits for this one, and not for another soon. */
	*credit_of(fd, fr->class) = -(s64)cost_bytes(fd, fr);
	/* What is not held back for others takes no time from their accounts. */
	if (frontrow_class_is_visible(fr->class))
		return;
	budget->credit_updated_ns = now_ns;
	if (!budget->window_start_ns &&
	    (fr->class != FRONTROW_BG_SYNC || fr->is_behind_write)) {
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
		budget->open_limit = min(fd->q->tag_set->queue_depth,
					 budget->open_limit +
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
	if (!fd->slice_us || mean_bytes < MIN_SLICE_BYTES / 2)
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

void frontrow_budget_complete(struct frontrow_data *fd,
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
	if (!fd->queued[FRONTROW_ASYNC] && !fd->nr_in_device[FRONTROW_ASYNC] &&
	    !fd->queued[FRONTROW_BG_SYNC] && !fd->nr_in_device[FRONTROW_BG_SYNC])
		frontrow_budget_disturb(fd);
	else if (now_ns - budget->window_start_ns >= WINDOW_NS &&
		 budget->window_requests >= WINDOW_MIN_REQUESTS)
		close_window(fd, now_ns);
}
