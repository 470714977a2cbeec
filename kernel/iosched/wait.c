// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion of asynchronous writes that a task waits for (QASIO, sections 5.1
 * to 5.3).
 *
 * A task that waits for a folio or a buffer usually waits for a range of a
 * file: fsync and truncate walk over all of it, and a journal handle needs
 * several metadata blocks. So a wait promotes all queued writes of the mapping
 * at once. Metadata have a mapping, too: the block device's. fsync counts as a
 * wait for its whole file as long as it runs.
 *
 * A write that is not queued is in one of two places. It is in the device, and
 * nothing can be done. Or it is in a plug list, or its bio waits for a tag, and
 * it will be inserted later (the paper polls with a timer). So the waiter stays
 * registered while it waits, and writes of its mapping are promoted on
 * insertion. Writeback submits a file in order and the awaited page may come
 * last, so workers get more tags until it has been inserted (tags.c).
 *
 * Above a stacked device (dm, md) the requests are in other queues with the same
 * folios, and a file system may be on several devices (Btrfs). Each instance that
 * has or gets a write of the waiter's mapping has a copy of the waiter: each disk
 * of a mirror must hurry, and a disk that has no part in the wait must not. So an
 * instance learns what is above it, and then has a copy at once: a worker that
 * waits for a tag must know that the awaited page is yet to come.
 */
#include <linux/slab.h>

#include "frontrow.h"
#include "trace.h"

const char *const frontrow_dependency_names[FRONTROW_NR_DEPENDENCIES] = {
	[FRONTROW_META]		= "meta",
	[FRONTROW_DATA]		= "data",
	[FRONTROW_JOURNAL]	= "journal",
	[FRONTROW_DISCARD_WAIT]	= "discard",
};

/* Waiters above stacked devices. Nests inside an instance's lock. */
static struct hlist_head above[FRONTROW_MIXED];
static DEFINE_SPINLOCK(above_lock);
static atomic_t nr_above = ATOMIC_INIT(0);
static atomic_t nr_not_copied = ATOMIC_INIT(0);

/* Queued and dispatched writes of the waiter's mapping. */
struct findings {
	unsigned int promoted;		/* asynchronous writes promoted */
	unsigned int moved;		/* other writes moved from a group */
	bool boosted_before;
	bool async_in_device;
	bool sync_here;
	bool has_page;
};

static bool has_pages(const struct frontrow_rq *fr, pgoff_t first, pgoff_t last)
{
	return !fr->mappings && fr->first_page <= last && fr->last_page >= first;
}

static void promote(struct frontrow_data *fd, struct frontrow_rq *fr,
		    const struct frontrow_waiter *waiter, struct findings *found)
{
	lockdep_assert_held(&fd->lock);
	if (frontrow_classes[fr->item.class].is_async)
		found->promoted++;
	else
		found->moved++;
	frontrow_reclass(&fd->core, &fr->item, waiter->class, ktime_get_ns());
	fd->any_promoted = true;
}

static void look_at(struct frontrow_data *fd, struct frontrow_rq *fr,
		    const struct frontrow_waiter *waiter, struct findings *found)
{
	bool is_async = frontrow_classes[fr->item.class].is_async;
	bool is_boosted = frontrow_is_promoted(&fr->item);

	if (!frontrow_may_hold(fr, waiter->mapping))
		return;
	found->sync_here |= !is_async && !is_boosted;
	if (fr->item.state == FRONTROW_RQ_IN_DEVICE) {
		found->async_in_device |= is_async || is_boosted;
	} else {
		found->boosted_before |= is_boosted;
		if (waiter->may_promote && frontrow_may_be_promoted(fr->item.class) &&
		    frontrow_is_more_urgent(waiter->class, fr->item.class))
			promote(fd, fr, waiter, found);
	}
	if (waiter->wait.is_fsync || !has_pages(fr, waiter->first_page, waiter->last_page))
		return;
	/*
	 * The awaited page goes first within a promoted range: a task that
	 * appends to a file waits for the last page only.
	 */
	found->has_page = true;
	if (fr->item.state == FRONTROW_RQ_QUEUED && fr->item.class == waiter->class)
		frontrow_go_first(&fd->core, &fr->item);
}

/*
 * Most requests and waiters that a search or a demotion looks at, with interrupts off:
 * about 160 us. Users choose how many meet in one bucket, and each hardware queue has
 * nr_requests. What is left keeps its class until the next one, or is served in it.
 */
#define MAX_LOOKED_AT 4096

static void search_bucket(struct frontrow_data *fd, unsigned int bucket,
			  const struct frontrow_waiter *waiter, struct findings *found,
			  unsigned int *left)
{
	struct frontrow_rq *fr;

	hlist_for_each_entry(fr, &fd->by_mapping[bucket], by_mapping) {
		if (!*left)
			return;
		--*left;
		look_at(fd, fr, waiter, found);
	}
}

static void search(struct frontrow_data *fd, const struct frontrow_waiter *waiter,
		   struct findings *found)
{
	unsigned int left = MAX_LOOKED_AT;

	search_bucket(fd, frontrow_mapping_hash(waiter->mapping), waiter, found, &left);
	search_bucket(fd, FRONTROW_MIXED, waiter, found, &left);
}

static enum frontrow_outcome outcome_of(const struct findings *found)
{
	if (found->promoted || found->boosted_before)
		return FRONTROW_WAIT_BOOSTED;
	/* A mapping with both kinds of writes counts as quasi-asynchronous. */
	if (found->async_in_device)
		return FRONTROW_WAIT_IN_DEVICE;
	return found->sync_here ? FRONTROW_WAIT_SYNC : FRONTROW_WAIT_PENDING;
}

static void count_wait(struct frontrow_data *fd,
		       enum frontrow_dependency dependency,
		       enum frontrow_outcome outcome, unsigned int promoted)
{
	struct frontrow_counters *counters = &fd->counters[dependency];

	if (outcome >= FRONTROW_WAIT_SYNC)
		return;
	counters->waits++;
	counters->requests += promoted;
	if (outcome == FRONTROW_WAIT_BOOSTED)
		counters->boosted++;
	else if (outcome == FRONTROW_WAIT_IN_DEVICE)
		counters->in_device++;
	else
		counters->pending++;
}

/* The same wait of the same task in @waiters, by mapping; NULL if none. */
static struct frontrow_waiter *noted(struct hlist_head *waiters,
				     const struct frontrow_waiter *waiter)
{
	struct frontrow_waiter *each;

	hlist_for_each_entry(each, &waiters[frontrow_mapping_hash(waiter->mapping)], node)
		if (each->task == waiter->task && each->mapping == waiter->mapping &&
		    each->wait.is_fsync == waiter->wait.is_fsync)
			return each;
	return NULL;
}

bool frontrow_is_below(const struct frontrow_data *fd, const void *upper)
{
	unsigned int nr;

	for (nr = 0; nr < NR_UPPERS; nr++)
		if (READ_ONCE(fd->uppers[nr]) == upper)
			return true;
	return false;
}

/* The instance is known to be below the waiter's device from now on. */
static void note_copy(struct frontrow_data *fd, const struct frontrow_waiter *copy)
{
	set_bit(fd->bit, &copy->original->known_to);
	if (!frontrow_is_below(fd, copy->upper))
		WRITE_ONCE(fd->uppers[fd->next_upper++ % NR_UPPERS], copy->upper);
}

/*
 * From now on requests are looked at for @waiter. A copy is on the stack so far; false
 * if there is no memory for it: then the instance does not know of the wait.
 */
static bool note(struct frontrow_data *fd, struct frontrow_waiter *waiter,
		 u64 now_ns)
{
	lockdep_assert_held(&fd->lock);
	if (waiter->original)
		waiter = kmemdup(waiter, sizeof(*waiter), GFP_ATOMIC | __GFP_NOWARN);
	if (!waiter) {
		atomic_inc(&nr_not_copied);
		return false;
	}
	hlist_add_head(&waiter->node,
		       &fd->waiters[frontrow_mapping_hash(waiter->mapping)]);
	WRITE_ONCE(waiter->fd, fd);
	if (waiter->original)
		note_copy(fd, waiter);
	fd->nr_folio_waiters += !!waiter->folio;
	fd->nr_unseen += waiter->unseen;
	frontrow_waiter_begins(&fd->core, &waiter->wait, now_ns);
	frontrow_count_idle(&fd->core, now_ns);
	return true;
}

/*
 * Forgets @waiter, whose waiter->fd is @fd, and frees it if it is a copy. Otherwise the
 * last store returns it to its task, which checks without the lock and may reuse the
 * memory for another wait at once. Pairs with the load in frontrow_detect_wait_ended().
 */
static void drop(struct frontrow_data *fd, struct frontrow_waiter *waiter,
		 u64 now_ns)
{
	bool has_slot = waiter->folio;

	lockdep_assert_held(&fd->lock);
	hlist_del_init(&waiter->node);
	fd->nr_unseen -= waiter->unseen;
	frontrow_waiter_ends(&fd->core, &waiter->wait, now_ns);
	frontrow_count_idle(&fd->core, now_ns);
	fd->nr_folio_waiters -= has_slot;
	if (waiter->original) {
		kfree(waiter);
		return;
	}
	smp_store_release(&waiter->fd, NULL);
	if (has_slot)
		frontrow_free_slot(waiter);
}

void frontrow_end_wait(struct frontrow_data *fd, struct frontrow_waiter *waiter,
		       u64 now_ns)
{
	if (waiter->is_counted)
		fd->counters[waiter->dependency].wait_ns += now_ns - waiter->begin_ns;
	drop(fd, waiter, now_ns);
	fd->demote_ns = now_ns + NEXT_WAIT_NS;
}

/*
 * A probed function may call another one: a task is registered once. But if
 * nothing reports the end of a wait, its task waits for the next one now.
 */
static bool is_noted(struct frontrow_data *fd, const struct frontrow_waiter *waiter,
		     u64 now_ns)
{
	struct frontrow_waiter *earlier = noted(fd->waiters, waiter);

	if (earlier && earlier->folio) {
		frontrow_end_wait(fd, earlier, now_ns);
		return false;
	}
	return earlier;
}

/* Who waits, and how urgent that is. Its task is alive as long as it waits. */
static void identify(struct frontrow_data *fd, struct frontrow_waiter *waiter,
		     u64 now_ns)
{
	bool by_kernel = frontrow_is_kernels_own(waiter->task);

	waiter->role = frontrow_role_of(fd, waiter->task);
	waiter->wait.owner = frontrow_owner_of(waiter->task);
	waiter->may_promote = READ_ONCE(fd->boost_mask) & BIT(waiter->dependency);
	waiter->wait.level = frontrow_level_of(&fd->core, waiter->role, by_kernel, waiter->wait.owner,
					  now_ns);
	waiter->class = frontrow_class_for_waiter(waiter->role, waiter->wait.level,
						  by_kernel || waiter->task->journal_info);
}

/*
 * The current task is about to wait as @waiter says. Called with preemption
 * off. If requests were moved, a worker runs the queue.
 *
 * @surely_writeback: the page is under writeback. Then the task is registered
 * even if all queued requests of its file are synchronous: a worker may be
 * about to submit the awaited page asynchronously. Otherwise a buffer may be
 * locked for another reason than a write, and the wait is ignored.
 *
 * Returns whether the end of the wait must be reported. In that case the waiter
 * is shared and may be dropped at any time: the caller must not access it.
 */
bool frontrow_wait_begins(struct frontrow_data *fd,
			  struct frontrow_waiter *waiter, bool surely_writeback)
{
	enum frontrow_outcome outcome = FRONTROW_WAIT_NOT_OURS;
	enum frontrow_dependency dependency = waiter->dependency;
	bool is_fsync = waiter->wait.is_fsync;
	struct findings found = {};
	bool is_shared = false;
	unsigned long flags;
	u64 now_ns;

	spin_lock_irqsave(&fd->lock, flags);
	now_ns = ktime_get_ns();
	waiter->begin_ns = now_ns;
	identify(fd, waiter, now_ns);
	if (is_noted(fd, waiter, now_ns))
		goto unlock;
	search(fd, waiter, &found);
	outcome = outcome_of(&found);
	if (is_fsync) {
		fd->counters[waiter->dependency].requests += found.promoted;
		is_shared = (surely_writeback || outcome != FRONTROW_WAIT_PENDING) &&
			    note(fd, waiter, now_ns);
		goto unlock;
	}
	if (outcome == FRONTROW_WAIT_PENDING && !surely_writeback)
		outcome = FRONTROW_WAIT_NOT_OURS;
	count_wait(fd, waiter->dependency, outcome, found.promoted);
	if (outcome == FRONTROW_WAIT_NOT_OURS || !waiter->may_promote ||
	    (outcome == FRONTROW_WAIT_SYNC && !surely_writeback))
		goto unlock;
	waiter->pending = outcome == FRONTROW_WAIT_PENDING;
	waiter->unseen = !found.has_page;
	waiter->is_counted = outcome != FRONTROW_WAIT_SYNC;
	is_shared = note(fd, waiter, now_ns);
	frontrow_await_written(fd, now_ns);
unlock:
	spin_unlock_irqrestore(&fd->lock, flags);
	if (!is_fsync || found.promoted)
		trace_frontrow_wait(fd->q, dependency, outcome, found.promoted);
	if (is_shared)
		frontrow_wake_workers(fd);
	if (found.promoted || found.moved || outcome == FRONTROW_WAIT_PENDING)
		frontrow_run_queues(fd->q);
	return is_shared;
}

static struct frontrow_waiter copy_of(struct frontrow_waiter *waiter)
{
	struct frontrow_waiter copy = *waiter;

	copy.original = waiter;
	copy.is_above = false;
	return copy;
}

/* Waits that an instance does not know of, as memory was short. */
unsigned int frontrow_waits_not_copied(void)
{
	return atomic_read(&nr_not_copied);
}

/*
 * The current task is about to wait as @waiter says, for a stacked device. Returns
 * whether that is new.
 */
bool frontrow_wait_begins_above(struct frontrow_waiter *waiter)
{
	unsigned long flags;

	waiter->begin_ns = ktime_get_ns();
	spin_lock_irqsave(&above_lock, flags);
	waiter->is_above = !noted(above, waiter);
	if (waiter->is_above) {
		hlist_add_head(&waiter->node,
			       &above[frontrow_mapping_hash(waiter->mapping)]);
		atomic_inc(&nr_above);
	}
	spin_unlock_irqrestore(&above_lock, flags);
	return waiter->is_above;
}

/*
 * Copies it to @fd if that has writes of its mapping, or has had some of its
 * device and may get the awaited one. Returns whether it did.
 */
bool frontrow_wait_begins_below(struct frontrow_data *fd,
				struct frontrow_waiter *waiter, bool surely_writeback)
{
	struct frontrow_waiter copy = copy_of(waiter);

	return fd->bit < NR_BELOW_STACKS &&
	       frontrow_wait_begins(fd, &copy, surely_writeback &&
				    frontrow_is_below(fd, waiter->upper));
}

/* Copies waiters above to @fd, which gets a write of @mapping. */
static void copy_from_above(struct frontrow_data *fd, const void *mapping, u64 now_ns)
{
	struct frontrow_waiter *waiter, copy;

	spin_lock(&above_lock);
	hlist_for_each_entry(waiter, &above[frontrow_mapping_hash(mapping)], node) {
		if (waiter->mapping != mapping || test_bit(fd->bit, &waiter->known_to))
			continue;
		copy = copy_of(waiter);
		identify(fd, &copy, now_ns);
		if (!copy.wait.is_fsync) {
			copy.pending = copy.is_counted = true;
			count_wait(fd, copy.dependency, FRONTROW_WAIT_PENDING, 0);
		}
		note(fd, &copy, now_ns);
	}
	spin_unlock(&above_lock);
}

static struct frontrow_waiter *copy_in(struct frontrow_data *fd,
				       const struct frontrow_waiter *original)
{
	struct frontrow_waiter *waiter;

	hlist_for_each_entry(waiter, &fd->waiters[frontrow_mapping_hash(original->mapping)],
			     node)
		if (waiter->original == original)
			return waiter;
	return NULL;
}

/* The wait of @waiter, or of its copy here, has ended. */
void frontrow_wait_ended(struct frontrow_data *fd, struct frontrow_waiter *waiter)
{
	bool runs_queue = false;
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	if (waiter->is_above)
		waiter = copy_in(fd, waiter);
	else if (waiter->fd != fd)
		waiter = NULL;
	if (waiter) {
		frontrow_end_wait(fd, waiter, ktime_get_ns());
		runs_queue = fd->core.nr_queued && !fd->core.nr_in_device;
	}
	spin_unlock_irqrestore(&fd->lock, flags);
	/* Requests that were held back for this wait may be dispatched now. */
	if (runs_queue)
		frontrow_run_queues(fd->q);
}

/* No instance copies @waiter after this returns. */
void frontrow_wait_ended_above(struct frontrow_waiter *waiter)
{
	unsigned long flags;

	spin_lock_irqsave(&above_lock, flags);
	hlist_del_init(&waiter->node);
	atomic_dec(&nr_above);
	spin_unlock_irqrestore(&above_lock, flags);
}

/*
 * The scheduler is removed: drops all waiters. No new ones can come
 * (frontrow_detect_del()).
 */
void frontrow_waiters_exit(struct frontrow_data *fd)
{
	struct frontrow_waiter *waiter;
	struct hlist_node *next;
	unsigned long flags;
	unsigned int bucket;

	spin_lock_irqsave(&fd->lock, flags);
	for (bucket = 0; bucket < FRONTROW_MIXED; bucket++)
		hlist_for_each_entry_safe(waiter, next, &fd->waiters[bucket], node)
			drop(fd, waiter, ktime_get_ns());
	spin_unlock_irqrestore(&fd->lock, flags);
	synchronize_rcu();
}

/*
 * Class of @fr on insertion, if a task waits for a write of its file, otherwise
 * @class. Sets @has_page if a task waits for one of its pages.
 */
enum frontrow_class frontrow_class_awaited(struct frontrow_data *fd,
					   struct frontrow_rq *fr,
					   enum frontrow_class class,
					   bool *has_page)
{
	unsigned int bucket = frontrow_mapping_hash(fr->item.mapping);
	enum frontrow_class own = class;
	struct frontrow_waiter *waiter;

	lockdep_assert_held(&fd->lock);
	if (!fr->item.mapping)
		return class;
	if (atomic_read(&nr_above) && fd->bit < NR_BELOW_STACKS)
		copy_from_above(fd, fr->item.mapping, fr->item.inserted_ns);
	if (!fd->core.nr_waiters)
		return class;
	hlist_for_each_entry(waiter, &fd->waiters[bucket], node) {
		if (waiter->mapping != fr->item.mapping || !waiter->may_promote)
			continue;
		if (waiter->unseen &&
		    has_pages(fr, waiter->first_page, waiter->last_page)) {
			*has_page = true;
			fd->nr_unseen--;
			waiter->unseen = false;
		}
		if (!frontrow_is_more_urgent(waiter->class, own))
			continue;
		class = min_t(enum frontrow_class, class, waiter->class);
		fd->any_promoted = true;
		fd->counters[waiter->dependency].requests++;
		fd->counters[waiter->dependency].pending_matched += waiter->pending;
		waiter->pending = false;
	}
	return class;
}

/* Whether a task waits for writes of @mapping. */
bool frontrow_is_awaited(struct frontrow_data *fd, const void *mapping)
{
	const struct frontrow_waiter *waiter;

	lockdep_assert_held(&fd->lock);
	hlist_for_each_entry(waiter, &fd->waiters[frontrow_mapping_hash(mapping)],
			     node)
		if (waiter->mapping == mapping)
			return true;
	return false;
}

/* Counts @left down by the waiters looked at; with none left it is true. */
static bool is_still_awaited(struct frontrow_data *fd, const struct frontrow_rq *fr,
			     unsigned int *left)
{
	const struct frontrow_waiter *waiter;

	if (fr->item.own_class == FRONTROW_DISCARD)
		return fr->item.under_handle || fd->discard_waiters;
	/* Which of its mappings is awaited is unknown. */
	if (fr->mappings)
		return fd->core.nr_waiters;
	hlist_for_each_entry(waiter, &fd->waiters[frontrow_mapping_hash(fr->item.mapping)],
			     node) {
		if (waiter->mapping == fr->item.mapping || !*left)
			return true;
		--*left;
	}
	return false;
}

static void demote_from(struct frontrow_data *fd, enum frontrow_class class,
			unsigned int *left)
{
	struct rb_node *node, *next;

	for (node = rb_first_cached(&fd->core.by_turn[class]); node && *left; node = next) {
		struct frontrow_rq *fr = rb_entry(node, struct frontrow_rq, item.in_class);

		next = rb_next(node);
		--*left;
		if (frontrow_is_promoted(&fr->item) && !is_still_awaited(fd, fr, left))
			frontrow_reclass(&fd->core, &fr->item, fr->item.own_class, ktime_get_ns());
	}
}

/*
 * Demotes requests that no task waits for. Runs at most every NEXT_WAIT_NS,
 * since a waiter needs that time to ask for the next page of a promoted range.
 */
void frontrow_demote(struct frontrow_data *fd, u64 now_ns)
{
	unsigned int left = MAX_LOOKED_AT;
	enum frontrow_class class;

	lockdep_assert_held(&fd->lock);
	for (class = FRONTROW_FG_WRITE; frontrow_is_more_urgent(class, FRONTROW_ASYNC); class++)
		demote_from(fd, class, &left);
	fd->any_promoted = fd->core.nr_waiters || fd->discard_waiters || !left;
	fd->demote_ns = now_ns + NEXT_WAIT_NS;
}

static unsigned int promote_discards(struct frontrow_data *fd)
{
	struct frontrow_item *item;
	unsigned int promoted = 0;

	lockdep_assert_held(&fd->lock);
	while (promoted < MAX_LOOKED_AT &&
	       (item = frontrow_first(&fd->core, FRONTROW_DISCARD))) {
		frontrow_reclass(&fd->core, item, FRONTROW_BOOSTED, ktime_get_ns());
		promoted++;
	}
	fd->any_promoted |= promoted;
	return promoted;
}

/* The current task waits for all discards (ENOSPC retry). */
void frontrow_boost_discards(struct frontrow_data *fd)
{
	enum frontrow_outcome outcome = FRONTROW_WAIT_PENDING;
	unsigned int promoted = 0;
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	if (READ_ONCE(fd->boost_mask) & BIT(FRONTROW_DISCARD_WAIT)) {
		fd->discard_waiters++;
		promoted = promote_discards(fd);
	}
	if (promoted)
		outcome = FRONTROW_WAIT_BOOSTED;
	else if (fd->core.in_device[FRONTROW_DISCARD])
		outcome = FRONTROW_WAIT_IN_DEVICE;
	else if (fd->discard_waiters)
		fd->discard_pending++;
	count_wait(fd, FRONTROW_DISCARD_WAIT, outcome, promoted);
	spin_unlock_irqrestore(&fd->lock, flags);

	trace_frontrow_wait(fd->q, FRONTROW_DISCARD_WAIT, outcome, promoted);
	if (promoted)
		frontrow_run_queues(fd->q);
}

/*
 * Whether a task waits for a discard that is being inserted: for all discards,
 * or its submitter for this one, as in ext4 without a journal. (fstrim holds no
 * journal handle, and may wait.)
 */
bool frontrow_discard_is_awaited(struct frontrow_data *fd,
				 const struct frontrow_rq *fr)
{
	struct frontrow_counters *counters = &fd->counters[FRONTROW_DISCARD_WAIT];
	bool may_promote = READ_ONCE(fd->boost_mask) & BIT(FRONTROW_DISCARD_WAIT);

	counters->waits += fr->item.under_handle;
	if (!may_promote || !(fr->item.under_handle || fd->discard_waiters))
		return false;
	counters->boosted += fr->item.under_handle;
	counters->requests++;
	counters->pending_matched += fd->discard_pending;
	fd->discard_pending = 0;
	fd->any_promoted = true;
	return true;
}

void frontrow_discard_wait_ended(struct frontrow_data *fd, u64 slept_ns)
{
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	if (fd->discard_waiters)
		fd->discard_waiters--;
	if (!fd->discard_waiters)
		fd->discard_pending = 0;
	fd->counters[FRONTROW_DISCARD_WAIT].wait_ns += slept_ns;
	spin_unlock_irqrestore(&fd->lock, flags);
}
