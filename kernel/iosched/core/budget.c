// SPDX-License-Identifier: GPL-2.0
/*
 * Limit of asynchronous work in the device, measured at run time.
 *
 * While nobody waits, windows of undisturbed writeback measure the rate at which the
 * device takes writes, and so the largest request that it can complete within
 * slice_us. A synchronous request that arrives at the worst moment waits for about that
 * time. A device that takes one request at a time has larger ones if its rate needs
 * them. Where somebody always waits, what the device has taken of all writes is the
 * least that it can. The time that requests take in the device tells how many of them
 * it can use.
 *
 * While somebody waits, each class that is not open to that level earns credit
 * at a share of the time, dispatches one request at a time while its credit is
 * positive, and pays the time that the device took for it. The share
 * grows with the age of the oldest request, so no request starves. It is
 * smaller while the foreground waits; a visible app has the share of its list
 * entry. Writeback has half while a task is throttled that is as urgent.
 */
#include "internal.h"

/* Size of a read-ahead request. */
#define READ_BYTES	(128ULL << 10)

/*
 * Longest time of a request in the device. Smaller while roles are in use, since the
 * foreground should wait less than an app among equals.
 */
static unsigned int slice_us(const struct frontrow_core *core)
{
	unsigned int us = READ_ONCE(core->slice_us);

	return READ_ONCE(core->has_roles) ? min(us, ROLES_SLICE_US) : us;
}

static u64 slice_bytes(const struct frontrow_core *core)
{
	u64 bytes = div_u64(core->budget.bytes_per_s, USEC_PER_SEC) * slice_us(core);

	return max_t(u64, bytes, MIN_SLICE_BYTES);
}

void frontrow_budget_init(struct frontrow_core *core, u64 now_ns)
{
	struct frontrow_budget *budget = &core->budget;
	unsigned int nr;

	budget->bytes_per_s = INITIAL_BYTES_PER_S;
	budget->last_due = FRONTROW_NR_CLASSES - 1;
	budget->credit_updated_ns = now_ns;
	core->slice_bytes = core->most_bytes;
	for (nr = 0; nr < FRONTROW_NR_GROUPS; nr++)
		core->groups[nr] = (struct frontrow_group) {
			.request_ns = INITIAL_REQUEST_NS,
			.request_bytes = INITIAL_REQUEST_BYTES,
		};
}

static u64 oldest_ns(struct frontrow_core *core, enum frontrow_class class,
		     u64 now_ns)
{
	const struct frontrow_item *oldest = frontrow_oldest(core, class);

	return oldest ? oldest->inserted_ns : now_ns;
}

/*
 * Whether somebody waits for writeback who is as urgent as whoever else waits. The
 * foreground waits for its own.
 */
static bool is_awaited_by_equals(const struct frontrow_core *core,
				 const struct frontrow_view *view,
				 enum frontrow_class class)
{
	enum frontrow_level level;

	if (view->who == FRONTROW_LEVEL_BULK)
		return true;
	if (view->who == FRONTROW_LEVEL_NONE || !frontrow_classes[class].is_async ||
	    (view->who > FRONTROW_LEVEL_OTHER && class != FRONTROW_FG_ASYNC))
		return false;
	for (level = view->who; level < FRONTROW_NR_LEVELS; level++)
		if (view->now_ns < core->throttled[level].until_ns)
			return true;
	return false;
}

/* Of the background as a whole: its requests and writeback divide it while both have any. */
static unsigned int background_percent(const struct frontrow_core *core)
{
	unsigned int percent = min(READ_ONCE(core->background_share_percent),
				   READ_ONCE(core->background_most_percent));

	return core->queued[FRONTROW_BG_SYNC] && core->queued[FRONTROW_ASYNC] ?
	       max(1U, percent / 2) : percent;
}

/*
 * Discards have an account of their own, of half the size. Otherwise a
 * foreground that frees blocks would use up the background's share.
 */
static unsigned int base_percent(const struct frontrow_core *core,
				 const struct frontrow_view *view,
				 enum frontrow_class class)
{
	unsigned int percent = READ_ONCE(core->async_share_percent);

	if (frontrow_is_visible(class))
		return READ_ONCE(core->visible_share_percent[class - FRONTROW_VISIBLE_1]);
	if (frontrow_is_long(class) ||
	    (class == FRONTROW_BG_SYNC && view->who <= FRONTROW_LEVEL_OTHER))
		percent = READ_ONCE(core->background_share_percent);
	else if (is_awaited_by_equals(core, view, class))
		percent = max(percent, EQUAL_PERCENT);
	else if (class != FRONTROW_FG_ASYNC && view->who > FRONTROW_LEVEL_OTHER)
		percent = background_percent(core);
	return class == FRONTROW_DISCARD ? max(1U, percent / 2) : percent;
}

static unsigned int share_percent(struct frontrow_core *core,
				  const struct frontrow_view *view,
				  enum frontrow_class class)
{
	unsigned int base = base_percent(core, view, class);
	u64 age_ns = view->now_ns - oldest_ns(core, class, view->now_ns);

	if (age_ns <= AGE_RAMP_BEGIN_NS)
		return base;
	if (age_ns >= AGE_RAMP_END_NS)
		return 100;
	return base + div64_u64((100 - base) * (age_ns - AGE_RAMP_BEGIN_NS),
				AGE_RAMP_END_NS - AGE_RAMP_BEGIN_NS);
}

/*
 * Most asynchronous requests in the device while nobody waits, and no more than it
 * holds: one without a driver tag would block the dispatch list, and more urgent
 * ones with it. Each takes request_ns of the device's time, so this many are in it for
 * two slices (Little's law), one that it works on and one that follows. One more shows
 * whether a device that works on several at once would do so with more.
 */
unsigned int frontrow_async_limit(const struct frontrow_core *core)
{
	const struct frontrow_group *group =
		&core->groups[FRONTROW_ASYNC - FRONTROW_FIRST_GROUP];
	u64 target_ns = 2 * NSEC_PER_USEC * (slice_us(core) ?: DEFAULT_SLICE_US);
	u64 limit = div64_u64(target_ns, max(group->request_ns, 1ULL)) + 1;

	return min_t(u64, max_t(u64, limit, OPEN_LIMIT_MIN), core->depth);
}

static struct frontrow_group *group_of(struct frontrow_core *core,
				       enum frontrow_class class)
{
	return &core->groups[class - FRONTROW_FIRST_GROUP];
}

/* Credit is limited to one slice, so that no burst follows. */
static void earn(struct frontrow_core *core, const struct frontrow_view *view)
{
	s64 most_ns = max(slice_us(core) * NSEC_PER_USEC, MIN_WAIT_NS);
	struct frontrow_budget *budget = &core->budget;
	u64 elapsed_ns = min(view->now_ns - budget->credit_updated_ns, NSEC_PER_SEC);
	enum frontrow_class class;

	for (class = FRONTROW_FIRST_GROUP; class < FRONTROW_NR_CLASSES; class++) {
		s64 *credit_ns = &group_of(core, class)->credit_ns;

		*credit_ns = min_t(s64, *credit_ns + div_u64(elapsed_ns *
					share_percent(core, view, class), 100), most_ns);
	}
	budget->credit_updated_ns = view->now_ns;
}

static enum frontrow_class first_due(struct frontrow_core *core,
				     const struct frontrow_view *view,
				     enum frontrow_class class)
{
	for (; class < FRONTROW_NR_CLASSES; class++)
		if (core->queued[class] && group_of(core, class)->credit_ns > 0 &&
		    !frontrow_is_open(view, class))
			break;
	return class;
}

/*
 * Closed class that may dispatch a request, if any. Classes take turns: one with
 * few or small requests always has credit left.
 */
enum frontrow_class frontrow_budget_due(struct frontrow_core *core,
					const struct frontrow_view *view)
{
	struct frontrow_budget *budget = &core->budget;
	enum frontrow_class due = FRONTROW_NR_CLASSES;

	/* All groups are open, so none needs a share. */
	if (view->who == FRONTROW_LEVEL_NONE && !view->is_foreground_writing)
		return due;
	/* Smaller steps would be lost in rounding. */
	if (view->now_ns - budget->credit_updated_ns > 100 * NSEC_PER_USEC)
		earn(core, view);
	due = first_due(core, view, budget->last_due + 1);
	if (due == FRONTROW_NR_CLASSES)
		due = first_due(core, view, FRONTROW_FIRST_GROUP);
	if (due != FRONTROW_NR_CLASSES)
		budget->last_due = due;
	return due;
}

/* Time until a queued class has credit, at the present shares. */
u64 frontrow_budget_wait_ns(const struct frontrow_core *core,
			    const struct frontrow_view *view)
{
	u64 wait_ns = NSEC_PER_SEC;
	enum frontrow_class class;

	for (class = FRONTROW_FIRST_GROUP; class < FRONTROW_NR_CLASSES; class++) {
		s64 credit_ns = core->groups[class - FRONTROW_FIRST_GROUP].credit_ns;

		if (!core->queued[class])
			continue;
		if (credit_ns > 0)
			return MIN_WAIT_NS;
		wait_ns = min(wait_ns, div64_u64((u64)-credit_ns * 100,
						 max(base_percent(core, view, class), 1U)));
	}
	return max_t(u64, wait_ns, MIN_WAIT_NS);
}

/* Whether a background write fits beside those in the device. */
bool frontrow_budget_has_room(const struct frontrow_core *core, u32 bytes)
{
	return !core->background_bytes ||
	       core->background_bytes + bytes <= slice_bytes(core);
}

/*
 * Requests from which the rate is measured: writeback, and synchronous writes
 * of the background, which may be the only writes.
 */
static bool shows_rate(const struct frontrow_item *item)
{
	if (!item->is_write)
		return false;
	return item->class == FRONTROW_ASYNC ||
	       (item->class == FRONTROW_BG_SYNC && item->is_background_write);
}

/* A request of a group is dispatched; one that uses a share pays when it has completed. */
void frontrow_budget_charge(struct frontrow_core *core, struct frontrow_item *item,
			    const struct frontrow_view *view)
{
	struct frontrow_group *group = group_of(core, item->class);
	struct frontrow_budget *budget = &core->budget;
	u64 now_ns = view->now_ns;

	item->uses_share = !frontrow_is_open(view, item->class);
	if (item->uses_share) {
		frontrow_budget_disturb(core);
		/* One without credit, for a waiter without requests, pays for itself only. */
		group->credit_ns = max_t(s64, group->credit_ns, 0);
		return;
	}
	/*
	 * The next waiter waits for this request, and should not wait for
	 * another one soon.
	 */
	group->credit_ns = -(s64)group->request_ns;
	if (frontrow_is_long(item->class))
		return;
	core->served_floor_ns = group->served_ns;
	group->served_ns += group->request_ns;
	/* Visible apps leave the time from which closed classes earn credit. */
	if (frontrow_is_visible(item->class))
		return;
	budget->credit_updated_ns = now_ns;
	if (!budget->window_start_ns &&
	    (item->class != FRONTROW_BG_SYNC || item->is_background_write)) {
		budget->window_start_ns = now_ns;
		budget->window_bytes = 0;
		budget->window_requests = 0;
	}
}

static u64 bytes_per_s(u64 bytes, u64 elapsed_ns)
{
	return div64_u64(bytes * USEC_PER_SEC, div_u64(elapsed_ns, NSEC_PER_USEC));
}

/* Place among the sizes of the smallest that is not below @bytes. */
static unsigned int size_index(u64 bytes)
{
	return min_t(unsigned int, NR_SIZES - 1,
		     order_base_2(DIV_ROUND_UP_ULL(bytes, MIN_SLICE_BYTES)));
}

/* 0 if it is not known. */
static u64 rate_of_size(const struct frontrow_size *size)
{
	return size->ns < SIZE_KNOWN_NS ? 0 : bytes_per_s(size->bytes, size->ns);
}

/*
 * Smallest size from @bytes that leaves the device its rate. Where it takes one
 * request at a time, nothing covers what each costs. The largest size is
 * measured first, then the others as far as needed.
 */
static u64 efficient_bytes(const struct frontrow_core *core, u64 bytes)
{
	const struct frontrow_budget *budget = &core->budget;
	unsigned int most = size_index(core->most_bytes);
	unsigned int i;
	u64 best = 0;
	u64 rate;

	if (!rate_of_size(&budget->sizes[most]))
		return core->most_bytes;
	for (i = 0; i <= most; i++)
		best = max(best, rate_of_size(&budget->sizes[i]));
	for (i = size_index(bytes); i < most; i++) {
		rate = rate_of_size(&budget->sizes[i]);
		/* A size that is not known is used until it is. */
		if (!rate || rate * 100 >= best * SIZE_RATE_PERCENT)
			break;
	}
	return min((u64)MIN_SLICE_BYTES << i, core->most_bytes);
}

/*
 * Small requests show a lower rate than large ones would: windows with a mean
 * below MIN_SLICE_BYTES / 2 are ignored. Sizes are powers of two.
 */
static void adapt_slice(struct frontrow_core *core)
{
	struct frontrow_budget *budget = &core->budget;
	u64 mean_bytes = div_u64(budget->window_bytes, budget->window_requests);
	u64 wanted_bytes = slice_bytes(core);
	u64 bytes;

	/* The limit would split the foreground's reads, too. */
	if (READ_ONCE(core->has_roles))
		wanted_bytes = max(wanted_bytes, READ_BYTES);
	if (!READ_ONCE(core->slice_us) || mean_bytes < MIN_SLICE_BYTES / 2)
		return;
	bytes = rounddown_pow_of_two(wanted_bytes);
	if (core->is_serial)
		bytes = efficient_bytes(core, bytes);
	/* Keep the size if the measured one is only slightly smaller. */
	if (bytes == core->slice_bytes ||
	    (bytes < core->slice_bytes && wanted_bytes * 5 / 4 > core->slice_bytes))
		return;
	WRITE_ONCE(core->slice_bytes, bytes);
	core->is_slice_new = true;
}

/*
 * A request that is alone in the device shows what its size costs. It may have
 * been dispatched while the driver still had the one before.
 */
static void measure_size(struct frontrow_core *core, const struct frontrow_item *item,
			 u64 now_ns)
{
	struct frontrow_budget *budget = &core->budget;
	u64 ns = frontrow_device_ns(core, item->dispatched_ns, now_ns);
	unsigned int i = size_index(item->bytes);

	if (!ns || (item->bytes != MIN_SLICE_BYTES << i && item->bytes < core->most_bytes))
		return;
	if (budget->sizes_ns >= SIZES_FORGOTTEN_NS) {
		memset(budget->sizes, 0, sizeof(budget->sizes));
		budget->sizes_ns = 0;
	}
	budget->sizes[i].bytes += item->bytes;
	budget->sizes[i].ns += ns;
	budget->sizes_ns += ns;
}

/*
 * The device takes at least what it has taken, whoever waited meanwhile. Where
 * somebody always waits, no window is undisturbed, and nothing else shows the
 * rate.
 */
static void written(struct frontrow_core *core,
			     const struct frontrow_item *item, u64 now_ns)
{
	struct frontrow_budget *budget = &core->budget;
	u64 elapsed_ns = now_ns - budget->written_since_ns;

	if (core->is_serial)
		measure_size(core, item, now_ns);
	budget->written_bytes += item->bytes;
	if (elapsed_ns < WRITTEN_WINDOW_NS)
		return;
	budget->bytes_per_s = max(budget->bytes_per_s,
				  bytes_per_s(budget->written_bytes, elapsed_ns));
	budget->written_since_ns = now_ns;
	budget->written_bytes = 0;
}

static void close_window(struct frontrow_core *core, u64 now_ns)
{
	struct frontrow_budget *budget = &core->budget;
	u64 rate = bytes_per_s(budget->window_bytes, now_ns - budget->window_start_ns);

	budget->bytes_per_s = max_t(u64, (3 * budget->bytes_per_s + rate) / 4,
				    MIN_SLICE_BYTES);
	adapt_slice(core);
	frontrow_budget_disturb(core);
}

/*
 * Flushes are charged without being held up, so their debt must have an end:
 * other apps of the class would wait for it.
 */
static void owe(struct frontrow_core *core, enum frontrow_class class, u64 ns)
{
	s64 *credit_ns = &group_of(core, class)->credit_ns;

	if (*credit_ns > -(s64)DEBT_NS_MAX)
		*credit_ns = max_t(s64, *credit_ns - (s64)min(ns, DEBT_NS_MAX),
				   -(s64)DEBT_NS_MAX);
}

/* Class that pays for what the kernel does for tasks of a level, if any. */
static enum frontrow_class payer_of(enum frontrow_level level)
{
	enum frontrow_class class = FRONTROW_FIRST_GROUP;

	while (class < FRONTROW_NR_CLASSES && !(frontrow_classes[class].pays_for & BIT(level)))
		class++;
	return class;
}

/*
 * A flush or a request of the journal is never held up, since others may depend
 * on it. But if only tasks that others come before have asked for it, their
 * class pays before its next request is served.
 */
static void charge_kernel(struct frontrow_core *core,
				   const struct frontrow_item *item,
				   u64 since_ns, u64 now_ns)
{
	enum frontrow_class class = payer_of(item->level);
	struct frontrow_view view;

	if (class == FRONTROW_NR_CLASSES)
		return;
	frontrow_look(core, now_ns, &view);
	if (!frontrow_is_open(&view, class))
		owe(core, class, frontrow_device_ns(core, since_ns, now_ns));
}

void frontrow_budget_flushed(struct frontrow_core *core,
			     const struct frontrow_item *item, u64 now_ns)
{
	charge_kernel(core, item, item->inserted_ns, now_ns);
	core->budget.completed_ns = now_ns;
}

/* Measures a completed request of a group. */
static void learn(struct frontrow_core *core, const struct frontrow_item *item, u64 now_ns)
{
	u64 ns = frontrow_device_ns(core, item->dispatched_ns, now_ns);
	struct frontrow_group *group = group_of(core, item->class);
	struct frontrow_budget *budget = &core->budget;

	if (item->uses_share)
		owe(core, item->class, ns);
	group->request_ns = (7 * group->request_ns + ns) / 8;
	group->request_bytes = (7 * group->request_bytes + item->bytes) / 8;
	if (!budget->window_start_ns)
		return;
	/* The time that it took the device is no part of the window. */
	if (!shows_rate(item)) {
		budget->window_start_ns += ns;
		return;
	}
	budget->window_bytes += item->bytes;
	budget->window_requests++;

	/* The device ran out of requests, so its rate is unknown. */
	if (!core->queued[FRONTROW_ASYNC] && !core->in_device[FRONTROW_ASYNC] &&
	    !core->queued[FRONTROW_BG_SYNC] && !core->in_device[FRONTROW_BG_SYNC])
		frontrow_budget_disturb(core);
	else if (now_ns - budget->window_start_ns >= RATE_WINDOW_NS &&
		 budget->window_requests >= RATE_WINDOW_REQUESTS)
		close_window(core, now_ns);
}

/* A request of the device has completed. */
void frontrow_budget_complete(struct frontrow_core *core,
			      const struct frontrow_item *item, u64 now_ns)
{
	if (frontrow_is_group(item->class))
		learn(core, item, now_ns);
	else if (item->by_kernel && item->level < FRONTROW_LEVEL_OTHER)
		charge_kernel(core, item, item->dispatched_ns, now_ns);
	if (item->is_write)
		written(core, item, now_ns);
	core->budget.completed_ns = now_ns;
}
