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
 * age of the oldest request, so that none gets old whatever the load.
 */
#include "frontrow.h"

#define WINDOW_NS		(20 * NSEC_PER_MSEC)
#define WINDOW_MIN_REQUESTS	4
/* Requests that stay longer than this only queue in the device. */
#define OPEN_LATENCY_NS		(10 * NSEC_PER_MSEC)
#define OPEN_LIMIT_MIN		2U
/* Until the first window: a slow card, so that the first seconds are safe. */
#define INITIAL_BYTES_PER_S	(32ULL << 20)
/* Below this the cost of a command outweighs what a waiter gains. */
#define MIN_SLICE_BYTES		(64U << 10)
/* Old age begins here, and everything goes to async here. */
#define AGE_RAMP_BEGIN_NS	(2ULL * NSEC_PER_SEC)
#define AGE_RAMP_END_NS		(4ULL * NSEC_PER_SEC)

static u64 slice_bytes(const struct frontrow_data *fd)
{
	u64 bytes = div_u64(fd->budget.bytes_per_s, USEC_PER_SEC) * fd->slice_us;

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

static u64 oldest_async_ns(struct frontrow_data *fd, u64 now_ns)
{
	enum frontrow_class class;
	u64 oldest_ns = now_ns;

	for (class = FRONTROW_ASYNC; class <= FRONTROW_DISCARD; class++) {
		struct request *rq = list_first_entry_or_null(&fd->fifo[class],
						struct request, queuelist);

		if (rq)
			oldest_ns = min(oldest_ns, frontrow_rq(rq)->inserted_ns);
	}
	return oldest_ns;
}

static unsigned int share_percent(struct frontrow_data *fd, u64 now_ns)
{
	u64 age_ns = now_ns - oldest_async_ns(fd, now_ns);
	unsigned int base = fd->async_share_percent;

	if (age_ns <= AGE_RAMP_BEGIN_NS)
		return base;
	if (age_ns >= AGE_RAMP_END_NS)
		return 100;
	return base + div64_u64((100 - base) * (age_ns - AGE_RAMP_BEGIN_NS),
				AGE_RAMP_END_NS - AGE_RAMP_BEGIN_NS);
}

/* Credit may not pile up beyond one request, or a burst would follow. */
static void earn(struct frontrow_data *fd, u64 now_ns)
{
	struct frontrow_budget *budget = &fd->budget;
	u64 elapsed_us = div_u64(now_ns - budget->credit_updated_ns, NSEC_PER_USEC);
	u64 earned;

	elapsed_us = min_t(u64, elapsed_us, USEC_PER_SEC);
	earned = div_u64(budget->bytes_per_s * share_percent(fd, now_ns), 100);
	earned = div_u64(earned * elapsed_us, USEC_PER_SEC);
	budget->credit_bytes = min_t(s64, budget->credit_bytes + earned,
				     slice_bytes(fd));
	budget->credit_updated_ns = now_ns;
}

bool frontrow_budget_has_credit(struct frontrow_data *fd, u64 now_ns)
{
	/* Small steps would be lost in rounding. */
	if (now_ns - fd->budget.credit_updated_ns > 100 * NSEC_PER_USEC)
		earn(fd, now_ns);
	return fd->budget.credit_bytes > 0;
}

/* Time until there is credit, at the present share. */
u64 frontrow_budget_wait_ns(const struct frontrow_data *fd)
{
	const struct frontrow_budget *budget = &fd->budget;
	u64 per_s = div_u64(budget->bytes_per_s * fd->async_share_percent, 100);

	if (budget->credit_bytes > 0)
		return NSEC_PER_MSEC;
	return NSEC_PER_MSEC +
	       div64_u64((u64)-budget->credit_bytes * NSEC_PER_SEC, per_s);
}

/*
 * An async request goes to the device. Discards have no bytes to move; they
 * are charged as one slice.
 */
void frontrow_budget_charge(struct frontrow_data *fd,
			    const struct frontrow_rq *fr, u64 now_ns)
{
	struct frontrow_budget *budget = &fd->budget;

	if (frontrow_somebody_waits(fd, now_ns)) {
		frontrow_budget_disturb(fd);
		budget->credit_bytes -= fr->class == FRONTROW_DISCARD ?
					slice_bytes(fd) : fr->bytes;
		return;
	}
	/* Idle time is paid for: whoever comes next finds no debt, no hoard. */
	budget->credit_bytes = 0;
	budget->credit_updated_ns = now_ns;
	if (!budget->window_start_ns) {
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
 * confirm a size. Sizes are powers of two and move only when the rate says so
 * clearly.
 */
static void adapt_slice(struct frontrow_data *fd)
{
	struct frontrow_budget *budget = &fd->budget;
	u64 mean_bytes = div_u64(budget->window_bytes, budget->window_requests);
	u64 wanted_bytes = slice_bytes(fd);
	unsigned int sectors;

	if (!fd->slice_us || mean_bytes < MIN_SLICE_BYTES / 2)
		return;
	sectors = rounddown_pow_of_two(wanted_bytes) >> SECTOR_SHIFT;
	if (sectors == fd->slice_sectors ||
	    (sectors > fd->slice_sectors &&
	     wanted_bytes < (u64)fd->slice_sectors * SECTOR_SIZE * 5 / 2))
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

	if (!budget->window_start_ns || fr->class != FRONTROW_ASYNC)
		return;
	budget->window_bytes += fr->bytes;
	budget->window_latency_ns += now_ns - fr->dispatched_ns;
	budget->window_requests++;

	/* The device ran dry: what it could take is not known. */
	if (!fd->queued[FRONTROW_ASYNC] && !fd->nr_in_device[FRONTROW_ASYNC])
		frontrow_budget_disturb(fd);
	else if (now_ns - budget->window_start_ns >= WINDOW_NS &&
		 budget->window_requests >= WINDOW_MIN_REQUESTS)
		close_window(fd, now_ns);
}
