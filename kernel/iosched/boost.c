// SPDX-License-Identifier: GPL-2.0
/*
 * Second lever: promotion (QASIO, sections 5.1 to 5.3).
 *
 * A task that waits for a folio or a buffer waits for a file's range more
 * often than for one page: fsync and truncate walk over all of it, a journal
 * handle needs several metadata blocks. So a wait promotes every queued
 * request of the mapping, not one page after another. Metadata has one too:
 * the block device's.
 *
 * A write that is not found has three reasons. It is in the device: nothing
 * can be done. It is in a plug list, or its bio waits for a tag: then it comes
 * later (the paper polls with a timer). So a waiter is noted for as long as it
 * sleeps, and what comes of its mapping meanwhile is promoted on insertion.
 * Writeback sends a file in order, and the awaited folio may be the last of
 * many: until it has been seen the workers get more tags (tags.c).
 */
#include <linux/pagemap.h>

#include "frontrow.h"
#include "trace.h"

/* A waiter whose end was not seen does no harm, but must not stay for ever. */
#define WAITER_LIFE_NS		(5ULL * NSEC_PER_SEC)
/* Who waits for a range has come to its next folio after this. */
#define NEXT_WAIT_NS		(4 * NSEC_PER_MSEC)
/* Writeback merges few bios into one request; a look at these is enough. */
#define MAX_BIOS_LOOKED_AT	64

const char *const frontrow_dependency_names[FRONTROW_NR_DEPENDENCIES] = {
	[FRONTROW_META]		= "meta",
	[FRONTROW_DATA]		= "data",
	[FRONTROW_JOURNAL]	= "journal",
	[FRONTROW_DISCARD_WAIT]	= "discard",
};

/*
 * The mapping of a bio's first page: a key to compare, never dereferenced, for
 * the page may be anything's. (Software fscrypt submits bounce pages, which
 * belong to no mapping: their files are not boosted. Inline encryption is.)
 */
const void *frontrow_mapping_of(struct bio *bio)
{
	if (!bio || !bio_has_data(bio))
		return NULL;
	return READ_ONCE(page_folio(bio_page(bio))->mapping);
}

static bool request_has_mapping(struct request *rq, const void *mapping)
{
	unsigned int looked_at = 0;
	struct bio *bio;

	__rq_for_each_bio(bio, rq) {
		if (frontrow_mapping_of(bio) == mapping)
			return true;
		if (++looked_at == MAX_BIOS_LOOKED_AT)
			break;
	}
	return false;
}

static unsigned int promote_of(struct frontrow_data *fd,
			       enum frontrow_class class, const void *mapping,
			       enum frontrow_class wanted)
{
	struct request *rq, *next;
	unsigned int promoted = 0;

	if (class <= wanted)
		return 0;
	list_for_each_entry_safe(rq, next, &fd->fifo[class], queuelist) {
		if (rq_data_dir(rq) == READ || !request_has_mapping(rq, mapping))
			continue;
		frontrow_reclass(fd, rq, wanted);
		promoted++;
	}
	fd->any_promoted |= promoted;
	return promoted;
}

/* In whichever ground: who waits for a write of the background waits for it. */
static unsigned int promote_queued(struct frontrow_data *fd,
				   const void *mapping,
				   enum frontrow_class wanted)
{
	return promote_of(fd, FRONTROW_FG_ASYNC, mapping, wanted) +
	       promote_of(fd, FRONTROW_ASYNC, mapping, wanted);
}

/* What others write and sync has a share only; not so who waits for it. */
static unsigned int promote_synchronous(struct frontrow_data *fd,
					const void *mapping,
					enum frontrow_class wanted)
{
	unsigned int promoted = 0;
	enum frontrow_class class;

	for (class = FRONTROW_SHARED; class < FRONTROW_NR_CLASSES; class++)
		if (frontrow_class_is_sync(class))
			promoted += promote_of(fd, class, mapping, wanted);
	return promoted;
}

static bool has_pfns(const struct bio_vec *vec, unsigned long begin,
		     unsigned long end)
{
	unsigned long pfn = page_to_pfn(vec->bv_page);

	return pfn < end && pfn + PFN_UP(vec->bv_offset + vec->bv_len) > begin;
}

static bool request_has_pfns(struct request *rq, unsigned long begin,
			     unsigned long end)
{
	struct req_iterator iter;
	struct bio_vec vec;

	rq_for_each_bvec(vec, rq, iter)
		if (has_pfns(&vec, begin, end))
			return true;
	return false;
}

/*
 * Of a promoted range the awaited folio goes first: whoever appends to a file
 * waits for its last page, and only for that. Returns false if it is not there.
 */
static bool put_awaited_first(struct frontrow_data *fd, struct folio *folio,
			      const void *mapping, enum frontrow_class class)
{
	unsigned long begin = folio_pfn(folio);
	struct request *rq;

	list_for_each_entry(rq, &fd->fifo[class], queuelist) {
		if (!request_has_mapping(rq, mapping) ||
		    !request_has_pfns(rq, begin, begin + folio_nr_pages(folio)))
			continue;
		frontrow_put_first(fd, rq);
		return true;
	}
	return false;
}

/*
 * A bio that was cut ends as one, when all its pieces have; the last of these is
 * the bio itself, and has all the pages.
 */
static bool request_ends_pfns(struct request *rq, unsigned long begin,
			      unsigned long end)
{
	struct bio_vec *vec;
	struct bio *bio;
	int i;

	__rq_for_each_bio(bio, rq) {
		if (bio_flagged(bio, BIO_CLONED))
			continue;
		bio_for_each_bvec_all(vec, bio, i)
			if (has_pfns(vec, begin, end))
				return true;
	}
	return false;
}

/* Whether a request that is queued, and not as an asynchronous one, brings it. */
static bool is_on_its_way(struct frontrow_data *fd, struct folio *folio,
			  const void *mapping)
{
	unsigned long begin = folio_pfn(folio);
	unsigned long end = begin + folio_nr_pages(folio);
	enum frontrow_class class;
	struct request *rq;

	for (class = 0; class < FRONTROW_NR_CLASSES; class++) {
		if (frontrow_class_is_async(class))
			continue;
		list_for_each_entry(rq, &fd->fifo[class], queuelist)
			if (frontrow_rq(rq)->mapping == mapping &&
			    (request_has_pfns(rq, begin, end) ||
			     request_ends_pfns(rq, begin, end)))
				return true;
	}
	return false;
}

static bool class_has_mapping(struct frontrow_data *fd,
			      enum frontrow_class class, const void *mapping)
{
	struct request *rq;

	list_for_each_entry(rq, &fd->fifo[class], queuelist)
		if (frontrow_rq(rq)->mapping == mapping)
			return true;
	return false;
}

/* Async wins: a mapping with both is waited for as a quasi-async one. */
static enum frontrow_outcome outcome_in_device(struct frontrow_data *fd,
					       const void *mapping)
{
	enum frontrow_outcome outcome = FRONTROW_NR_OUTCOMES;
	struct frontrow_rq *fr;

	list_for_each_entry(fr, &fd->in_device, in_device_node) {
		if (fr->mapping != mapping)
			continue;
		if (!frontrow_class_is_sync(fr->class))
			return FRONTROW_WAIT_IN_DEVICE;
		outcome = FRONTROW_WAIT_SYNC;
	}
	return outcome;
}

static void folio_seen(struct frontrow_data *fd, struct frontrow_waiter *waiter)
{
	fd->nr_unseen -= waiter->unseen;
	waiter->unseen = false;
}

static void drop_waiter(struct frontrow_data *fd, struct frontrow_waiter *waiter)
{
	folio_seen(fd, waiter);
	waiter->mapping = NULL;
	fd->nr_waiters--;
	fd->nr_front_waiters -= waiter->in_front;
}

/* One hook may sit in a function that calls another's. */
static bool is_noted(const struct frontrow_data *fd, const void *task,
		     struct folio *folio)
{
	int i;

	for (i = 0; fd->nr_waiters && i < FRONTROW_MAX_WAITERS; i++)
		if (fd->waiters[i].mapping && fd->waiters[i].task == task &&
		    fd->waiters[i].begin_pfn == folio_pfn(folio))
			return true;
	return false;
}

static struct frontrow_waiter *free_slot(struct frontrow_data *fd, u64 now_ns)
{
	struct frontrow_waiter *slot = NULL;
	int i;

	for (i = 0; i < FRONTROW_MAX_WAITERS; i++) {
		struct frontrow_waiter *waiter = &fd->waiters[i];

		if (waiter->mapping && waiter->expires_ns < now_ns)
			drop_waiter(fd, waiter);
		if (!waiter->mapping)
			slot = waiter;
	}
	return slot;
}

static void add_waiter(struct frontrow_data *fd, struct folio *folio,
		       const void *mapping,
		       enum frontrow_dependency dependency,
		       enum frontrow_class class, bool pending, bool unseen,
		       bool for_writeback)
{
	u64 now_ns = ktime_get_ns();
	struct frontrow_waiter *slot = free_slot(fd, now_ns);

	/* So many wait already that async is held back whatever we note here. */
	if (!slot)
		return;
	*slot = (struct frontrow_waiter) {
		.mapping = mapping,
		.begin_pfn = folio_pfn(folio),
		.end_pfn = folio_pfn(folio) + folio_nr_pages(folio),
		.task = current,
		.expires_ns = now_ns + WAITER_LIFE_NS,
		.dependency = dependency,
		.class = class,
		.pending = pending,
		.unseen = unseen,
		.for_writeback = for_writeback,
		.in_front = frontrow_ground_of_current(fd) == FRONTROW_FOREGROUND,
	};
	if (slot->in_front)
		frontrow_seen_begins(fd, now_ns);
	if (!fd->nr_waiters && !fd->nr_fsyncs)
		fd->waiting_since_ns = now_ns;
	fd->nr_waiters++;
	fd->nr_front_waiters += slot->in_front;
	fd->nr_unseen += unseen;
}

/*
 * The class of @rq, which comes now and belongs into @class, if a task sleeps for a
 * write of its file; @has_folio, if for one that is in it.
 */
enum frontrow_class frontrow_class_awaited(struct frontrow_data *fd,
					   struct request *rq,
					   enum frontrow_class class, u64 now_ns,
					   bool *has_folio)
{
	const void *mapping = frontrow_rq(rq)->mapping;
	enum frontrow_class own = class;
	int i;

	if (!fd->nr_waiters || !mapping)
		return class;
	for (i = 0; i < FRONTROW_MAX_WAITERS; i++) {
		struct frontrow_waiter *waiter = &fd->waiters[i];

		if (!waiter->mapping)
			continue;
		if (waiter->expires_ns < now_ns) {
			drop_waiter(fd, waiter);
			continue;
		}
		if (waiter->mapping != mapping)
			continue;
		if (waiter->unseen &&
		    request_has_pfns(rq, waiter->begin_pfn, waiter->end_pfn)) {
			*has_folio = true;
			folio_seen(fd, waiter);
		}
		if (waiter->class >= own)
			continue;
		class = min_t(enum frontrow_class, class, waiter->class);
		fd->any_promoted = true;
		fd->counters[waiter->dependency].requests++;
		if (waiter->pending)
			fd->counters[waiter->dependency].pending_matched++;
		waiter->pending = false;
	}
	return class;
}

/*
 * True if a task waits although nothing urgent is here, for longer than its chain's
 * gaps last: what it waits for is among what is held back, or behind that, wherever
 * it may be. No list of what that could be has to be complete.
 */
bool frontrow_waiter_is_stuck(struct frontrow_data *fd, u64 window_ns, u64 now_ns)
{
	enum frontrow_class class;

	if (!(fd->nr_waiters || fd->nr_fsyncs) || fd->nr_flushing ||
	    now_ns - max(fd->urgent_done_ns, fd->waiting_since_ns) < window_ns)
		return false;
	for (class = 0; class <= FRONTROW_BOOSTED; class++)
		if (fd->queued[class] || fd->nr_in_device[class])
			return false;
	return true;
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

static enum frontrow_outcome look_for(struct frontrow_data *fd,
				      const void *mapping, bool may_promote,
				      enum frontrow_class wanted,
				      unsigned int *promoted)
{
	enum frontrow_outcome outcome;
	enum frontrow_class class;

	if (may_promote)
		*promoted = promote_queued(fd, mapping, wanted);
	if (*promoted || class_has_mapping(fd, FRONTROW_BOOSTED, mapping))
		return FRONTROW_WAIT_BOOSTED;
	outcome = outcome_in_device(fd, mapping);
	if (outcome != FRONTROW_NR_OUTCOMES)
		return outcome;
	for (class = FRONTROW_FG_READ; class < FRONTROW_NR_CLASSES; class++)
		if (frontrow_class_is_sync(class) &&
		    class_has_mapping(fd, class, mapping))
			return FRONTROW_WAIT_SYNC;
	return FRONTROW_WAIT_PENDING;
}

/*
 * The current task is about to sleep for @folio of @mapping. Called with
 * preemption off; runs the queue, if anything moved, from a worker.
 *
 * @surely_writeback: the page is under writeback. Then the task is noted even
 * if its file's requests are all synchronous: a worker may be about to send the
 * very page as an asynchronous one. A buffer may also be locked for something
 * else, and then the wait is none of ours.
 */
enum frontrow_outcome frontrow_boost_folio(struct frontrow_data *fd,
					   struct folio *folio,
					   const void *mapping,
					   enum frontrow_dependency dependency,
					   bool surely_writeback)
{
	enum frontrow_class wanted =
		frontrow_class_for_waiter(frontrow_ground_of_current(fd),
					  current->journal_info);
	bool may_promote = READ_ONCE(fd->boost_mask) & BIT(dependency);
	enum frontrow_outcome outcome;
	unsigned int promoted = 0, synchronous = 0;
	bool seen;
	unsigned long flags;

	spin_lock_irqsave(&fd->lock, flags);
	if (is_noted(fd, current, folio)) {
		spin_unlock_irqrestore(&fd->lock, flags);
		return FRONTROW_WAIT_NOT_OURS;
	}
	outcome = look_for(fd, mapping, may_promote, wanted, &promoted);
	if (may_promote)
		synchronous = promote_synchronous(fd, mapping, wanted);
	seen = put_awaited_first(fd, folio, mapping, wanted);
	if (outcome == FRONTROW_WAIT_PENDING && !surely_writeback)
		outcome = FRONTROW_WAIT_NOT_OURS;
	else if (may_promote && (surely_writeback || outcome != FRONTROW_WAIT_SYNC))
		add_waiter(fd, folio, mapping, dependency, wanted,
			   outcome == FRONTROW_WAIT_PENDING,
			   !seen && !is_on_its_way(fd, folio, mapping),
			   surely_writeback);
	count_wait(fd, dependency, outcome, promoted);
	spin_unlock_irqrestore(&fd->lock, flags);

	trace_frontrow_wait(fd->q, dependency, outcome, promoted);
	if (promoted || synchronous || outcome == FRONTROW_WAIT_PENDING)
		blk_mq_run_hw_queues(fd->q, true);
	return outcome;
}

static void demote_from(struct frontrow_data *fd, enum frontrow_class class)
{
	struct list_head *places[FRONTROW_NR_CLASSES];
	struct request *rq, *next;
	unsigned int i;

	for (i = 0; i < FRONTROW_NR_CLASSES; i++)
		places[i] = &fd->fifo[i];
	list_for_each_entry_safe(rq, next, &fd->fifo[class], queuelist) {
		enum frontrow_class own = frontrow_class_of(rq);

		if (own <= class ||
		    (own == FRONTROW_DISCARD && frontrow_rq(rq)->under_handle))
			continue;
		frontrow_reclass(fd, rq, own);
		places[own] = frontrow_put_by_age(fd, rq, places[own]);
	}
}

/*
 * What was promoted with an awaited folio and is awaited by nobody, once the
 * waiter has had time to ask for the next one, is the background's again. A
 * discard's submitter is in no list and still waits.
 */
void frontrow_demote_unawaited(struct frontrow_data *fd, u64 now_ns)
{
	enum frontrow_class class;

	if (!fd->any_promoted || fd->nr_waiters || fd->discard_waiters ||
	    now_ns - fd->waited_until_ns < NEXT_WAIT_NS)
		return;
	for (class = FRONTROW_BOOSTED; class < FRONTROW_ASYNC; class++)
		demote_from(fd, class);
	fd->any_promoted = false;
}

static unsigned int promote_discards(struct frontrow_data *fd)
{
	struct request *rq, *next;
	unsigned int promoted = 0;

	list_for_each_entry_safe(rq, next, &fd->fifo[FRONTROW_DISCARD], queuelist) {
		frontrow_reclass(fd, rq, FRONTROW_BOOSTED);
		promoted++;
	}
	fd->any_promoted |= promoted;
	return promoted;
}

/* The current task waits until all discards are done (ENOSPC retry). */
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
	else if (fd->nr_in_device[FRONTROW_DISCARD])
		outcome = FRONTROW_WAIT_IN_DEVICE;
	else if (fd->discard_waiters)
		fd->discard_pending++;
	count_wait(fd, FRONTROW_DISCARD_WAIT, outcome, promoted);
	spin_unlock_irqrestore(&fd->lock, flags);

	trace_frontrow_wait(fd->q, FRONTROW_DISCARD_WAIT, outcome, promoted);
	if (promoted)
		blk_mq_run_hw_queues(fd->q, true);
}

/*
 * True if a task waits for the discard that comes now: for all of them, or for
 * this one and in person, as whoever frees blocks does where ext4 has no
 * journal. (fstrim holds no handle, and may well wait.)
 */
bool frontrow_discard_is_awaited(struct frontrow_data *fd,
				 const struct frontrow_rq *fr)
{
	struct frontrow_counters *counters = &fd->counters[FRONTROW_DISCARD_WAIT];
	bool may_promote = READ_ONCE(fd->boost_mask) & BIT(FRONTROW_DISCARD_WAIT);

	counters->waits += fr->under_handle;
	if (!may_promote || !(fr->under_handle || fd->discard_waiters))
		return false;
	counters->boosted += fr->under_handle;
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
	fd->waited_until_ns = ktime_get_ns();
	fd->counters[FRONTROW_DISCARD_WAIT].wait_ns += slept_ns;
	spin_unlock_irqrestore(&fd->lock, flags);
}

void frontrow_wait_ended(struct frontrow_data *fd, const void *task,
			 enum frontrow_dependency dependency, u64 slept_ns)
{
	unsigned long flags;
	int i;

	spin_lock_irqsave(&fd->lock, flags);
	fd->waited_until_ns = ktime_get_ns();
	fd->counters[dependency].wait_ns += slept_ns;
	for (i = 0; fd->nr_waiters && i < FRONTROW_MAX_WAITERS; i++)
		if (fd->waiters[i].mapping && fd->waiters[i].task == task)
			drop_waiter(fd, &fd->waiters[i]);
	spin_unlock_irqrestore(&fd->lock, flags);
}
