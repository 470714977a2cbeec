// SPDX-License-Identifier: GPL-2.0
/*
 * Selection of the next request: limits the work in the device, and bridges the
 * gaps of a chain.
 *
 * Requests in the device cannot be recalled. So while somebody waits, classes
 * that are not open to that level (chain.c) stay queued, except for a
 * guaranteed share (budget.c).
 *
 * While anybody waits and requests are queued, the device idles for at most one
 * window of the waiting level's chain. If that level has no request by then,
 * the waiter depends on a request that is held back. Then closed requests are
 * dispatched one at a time: the foreground's own writeback first, otherwise the
 * oldest. This needs no list of possible dependencies.
 */
#include "internal.h"

static bool is_background_write(const struct frontrow_item *item)
{
	return item->role == FRONTROW_BACKGROUND && item->is_write;
}

/*
 * A foreground request that arrives later waits for the requests in the device.
 * So the background's writes there never exceed one slice, whether somebody
 * waits or not, and the background never waits for a driver tag, where it would
 * block the dispatch list. A write that others wait for is no longer the
 * background's.
 */
static bool background_fits(const struct frontrow_core *core,
			    const struct frontrow_item *item)
{
	if (item->role != FRONTROW_BACKGROUND || !frontrow_is_group(item->class))
		return true;
	return core->nr_in_device < core->depth &&
	       (!is_background_write(item) ||
		frontrow_budget_has_room(core, item->bytes));
}

static unsigned int nr_async_in_device(const struct frontrow_core *core)
{
	return core->in_device[FRONTROW_FG_ASYNC] + core->in_device[FRONTROW_ASYNC] +
	       core->in_device[FRONTROW_DISCARD];
}

static bool async_fits(const struct frontrow_core *core)
{
	return nr_async_in_device(core) < frontrow_async_limit(core);
}

/* Whether the first request of a class may be dispatched, but for the background's limits. */
static bool may_go_late(struct frontrow_core *core, const struct frontrow_view *view,
			enum frontrow_class class)
{
	return core->queued[class] && frontrow_is_open(view, class) &&
	       (!frontrow_classes[class].is_async || async_fits(core));
}

static bool may_go(struct frontrow_core *core, const struct frontrow_view *view,
		   enum frontrow_class class)
{
	return may_go_late(core, view, class) &&
	       background_fits(core, frontrow_first(core, class));
}

/*
 * End of the deadline of a class's oldest request; U64_MAX if it has none, or may
 * not go. A device that is kept full never has room for the background.
 */
static u64 overdue_since_ns(struct frontrow_core *core, const struct frontrow_view *view,
			    enum frontrow_class class)
{
	u64 deadline_ns = frontrow_classes[class].deadline_ms * NSEC_PER_MSEC;
	const struct frontrow_item *oldest = frontrow_oldest(core, class);
	u64 since_ns;

	if (!oldest || !deadline_ns)
		return U64_MAX;
	since_ns = oldest->in_class_since_ns + deadline_ns;
	return since_ns < view->now_ns && may_go_late(core, view, class) ? since_ns : U64_MAX;
}

/*
 * Class whose oldest request has been overdue for longest, but for @usual, which is
 * served anyway: it would take this turn as well and starve all others.
 */
static enum frontrow_class overdue_class(struct frontrow_core *core,
					 const struct frontrow_view *view,
					 enum frontrow_class usual)
{
	enum frontrow_class found = FRONTROW_NR_CLASSES;
	enum frontrow_class class;
	u64 longest_ns = U64_MAX;

	for (class = 0; class < FRONTROW_NR_CLASSES; class++) {
		u64 since_ns = class == usual ? U64_MAX : overdue_since_ns(core, view, class);

		if (since_ns >= longest_ns)
			continue;
		longest_ns = since_ns;
		found = class;
	}
	return found;
}

static unsigned int nr_closed_in_device(const struct frontrow_core *core,
					const struct frontrow_view *view)
{
	enum frontrow_class class;
	unsigned int nr = 0;

	for (class = FRONTROW_FIRST_GROUP; class < FRONTROW_NR_CLASSES; class++)
		if (!frontrow_is_open(view, class))
			nr += core->in_device[class];
	return nr;
}

/*
 * A task waits without a request here. It most likely depends on its own
 * writeback, otherwise on the oldest request.
 */
static enum frontrow_class searched_class(struct frontrow_core *core,
					  const struct frontrow_view *view)
{
	enum frontrow_class found = FRONTROW_NR_CLASSES;
	enum frontrow_class class;
	u64 since_ns = U64_MAX;

	if (!view->is_searching || core->nr_flushing || nr_closed_in_device(core, view))
		return FRONTROW_NR_CLASSES;
	if (core->queued[FRONTROW_FG_ASYNC] && view->who > FRONTROW_LEVEL_OTHER)
		return FRONTROW_FG_ASYNC;
	for (class = FRONTROW_FIRST_GROUP; class < FRONTROW_NR_CLASSES; class++) {
		const struct frontrow_item *oldest = frontrow_oldest(core, class);

		if (!oldest || frontrow_is_open(view, class) ||
		    oldest->inserted_ns >= since_ns)
			continue;
		since_ns = oldest->inserted_ns;
		found = class;
	}
	return found;
}

static bool is_flush_awaited(const struct frontrow_core *core)
{
	enum frontrow_level level;

	for (level = FRONTROW_LEVEL_BULK; core->nr_flushing && level < FRONTROW_NR_LEVELS; level++)
		if (core->chains[level].nr_fsyncs)
			return true;
	return core->nr_flushing_awaited;
}

/*
 * A device without FUA flushes after such a write, and the block layer begins no flush
 * while one has come and is not written (blk_kick_flush()): whoever waits for
 * a flush waits for those that are held back here.
 */
static enum frontrow_class class_before_flush(struct frontrow_core *core)
{
	struct frontrow_item *item = list_first_entry_or_null(&core->before_flush,
							      struct frontrow_item,
							      before_flush);

	if (!item || !is_flush_awaited(core))
		return FRONTROW_NR_CLASSES;
	frontrow_go_first(core, item);
	return item->class;
}

/* The open group that was served least. */
static enum frontrow_class class_whose_turn(struct frontrow_core *core,
					    const struct frontrow_view *view)
{
	enum frontrow_class found = FRONTROW_NR_CLASSES;
	u64 least_ns = U64_MAX;
	unsigned int i;

	for (i = 0; i < FRONTROW_NR_IN_TURNS; i++) {
		enum frontrow_class class = frontrow_in_turns[i];
		const struct frontrow_group *group =
			&core->groups[class - FRONTROW_FIRST_GROUP];

		if (group->served_ns >= least_ns || !may_go(core, view, class))
			continue;
		least_ns = group->served_ns;
		found = class;
	}
	return found;
}

/* The first open class in strict priority. */
static enum frontrow_class usual_class(struct frontrow_core *core,
				       const struct frontrow_view *view)
{
	unsigned int i;

	for (i = 0; i < FRONTROW_NR_IN_ORDER; i++) {
		enum frontrow_class class = frontrow_in_order[i];

		if (core->queued[class] && may_go(core, view, class))
			return class;
	}
	return FRONTROW_NR_CLASSES;
}

static enum frontrow_class pick(struct frontrow_core *core,
				const struct frontrow_view *view)
{
	enum frontrow_class class = core->last_class;
	enum frontrow_class usual;
	bool is_other;

	/* Usually all are of one class, and there is nothing to choose. */
	if (core->queued[class] == core->nr_queued && may_go(core, view, class))
		return class;
	/* Guaranteed share: one request of closed groups at a time. */
	if (core->nr_grouped && !nr_closed_in_device(core, view)) {
		class = frontrow_budget_due(core, view);
		if (class != FRONTROW_NR_CLASSES)
			return class;
	}
	usual = usual_class(core, view);
	if (usual == FRONTROW_NR_CLASSES && core->nr_grouped)
		usual = class_whose_turn(core, view);
	core->other_turn = !core->other_turn;
	is_other = core->other_turn && core->nr_queued > 1;
	if (!is_other && (usual != FRONTROW_NR_CLASSES || !core->nr_grouped))
		return usual;
	class = class_before_flush(core);
	if (class == FRONTROW_NR_CLASSES && is_other)
		class = overdue_class(core, view, usual);
	if (class == FRONTROW_NR_CLASSES)
		class = searched_class(core, view);
	return class != FRONTROW_NR_CLASSES ? class : usual;
}

/*
 * Whether the device should give @item priority: requests of the foreground, and
 * those of the kernel that it waits for, such as the commit of its fsync or a
 * promoted write.
 */
bool frontrow_is_for_foreground(const struct frontrow_core *core,
				const struct frontrow_item *item)
{
	if (item->role != FRONTROW_OTHER)
		return item->role == FRONTROW_FOREGROUND;
	return !frontrow_is_group(item->class) &&
	       core->chains[FRONTROW_LEVEL_FOREGROUND].nr_waiting;
}

static void send(struct frontrow_core *core, struct frontrow_item *item,
		 const struct frontrow_view *view)
{
	core->last_class = item->class;
	item->state = FRONTROW_RQ_IN_DEVICE;
	item->dispatched_ns = view->now_ns;
	item->is_background_write = is_background_write(item);
	if (item->is_background_write)
		core->background_bytes += item->bytes;
	core->nr_in_device++;
	core->in_device[item->class]++;
	core->dispatched[item->class]++;
	if (frontrow_classes[item->class].is_async)
		core->async_age_peak_ns = max(core->async_age_peak_ns,
					      view->now_ns - item->inserted_ns);
	if (frontrow_is_group(item->class))
		frontrow_budget_charge(core, item, view);
}

/* The request to dispatch, which then is in the device; NULL: none yet. */
struct frontrow_item *frontrow_next(struct frontrow_core *core,
				    const struct frontrow_view *view)
{
	enum frontrow_class class = pick(core, view);
	struct frontrow_item *item;

	if (class == FRONTROW_NR_CLASSES)
		return NULL;
	item = frontrow_first(core, class);
	frontrow_dequeue(core, item);
	send(core, item, view);
	return item;
}

/*
 * Requests stay queued as nobody waits and the device has all that it can use. Each
 * completion would make room for one, and a worker would run for each: nothing
 * is gained by asking before frontrow_has_rested(), unless a request comes or a
 * task begins to wait.
 */
bool frontrow_rests(const struct frontrow_core *core, const struct frontrow_view *view)
{
	return view->who == FRONTROW_LEVEL_NONE && !view->is_foreground_writing &&
	       !READ_ONCE(core->has_roles) && nr_async_in_device(core) &&
	       !async_fits(core);
}

/* At three quarters, so that the device does not run out of requests meanwhile. */
bool frontrow_has_rested(const struct frontrow_core *core)
{
	return nr_async_in_device(core) <= frontrow_async_limit(core) * 3 / 4;
}

/*
 * Requests stay queued: the time at which to look again, if no request completes
 * before that; U64_MAX: only then.
 */
u64 frontrow_look_again_ns(const struct frontrow_core *core,
			   const struct frontrow_view *view)
{
	u64 next_ns;

	if (!core->nr_grouped || nr_closed_in_device(core, view))
		return U64_MAX;
	next_ns = min(view->next_event_ns,
		      view->now_ns + frontrow_budget_wait_ns(core, view));
	/*
	 * The end of a wait changes the level without an event, so the time has
	 * an upper bound.
	 */
	return core->nr_in_device ? next_ns : min(next_ns, view->now_ns + MAX_WINDOW_NS);
}
