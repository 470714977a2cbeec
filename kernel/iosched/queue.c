// SPDX-License-Identifier: GPL-2.0
/*
 * Class of a new request, and its place while queued: in its dispatch class
 * (turns.c) and, for writes, in the bucket of the mapping whose pages it has.
 */
#include <linux/ioprio.h>
#include <linux/pagemap.h>

#include "frontrow.h"

const struct frontrow_class_rules frontrow_classes[FRONTROW_NR_CLASSES] = {
	[FRONTROW_FG_READ]	= { "fg_read",	FRONTROW_LEVEL_FOREGROUND },
	[FRONTROW_FG_WRITE]	= { "fg_write",	FRONTROW_LEVEL_FOREGROUND, .deadline_ms = 100 },
	[FRONTROW_SYNC_READ]	= { "sync_read", FRONTROW_LEVEL_FOREGROUND, .deadline_ms = 200 },
	[FRONTROW_SYNC_WRITE]	= { "sync_write", FRONTROW_LEVEL_FOREGROUND, .deadline_ms = 100 },
	[FRONTROW_BOOSTED]	= { "boosted",	FRONTROW_LEVEL_FOREGROUND, .deadline_ms = 50 },
	[FRONTROW_VISIBLE_1]	= { "visible_1", FRONTROW_LEVEL_VISIBLE, .deadline_ms = 200 },
	[FRONTROW_VISIBLE_2]	= { "visible_2", FRONTROW_LEVEL_VISIBLE, .deadline_ms = 200 },
	[FRONTROW_VISIBLE_3]	= { "visible_3", FRONTROW_LEVEL_VISIBLE, .deadline_ms = 200 },
	[FRONTROW_FG_ASYNC]	= { "fg_async",	FRONTROW_LEVEL_OTHER, .is_async = true },
	[FRONTROW_BG_SYNC]	= { "bg_sync",	FRONTROW_LEVEL_OTHER, .deadline_ms = 200 },
	[FRONTROW_LONG]		= { "long",	FRONTROW_LEVEL_LONG, .deadline_ms = 200 },
	[FRONTROW_BULK]		= { "bulk",	FRONTROW_LEVEL_BULK, .deadline_ms = 200 },
	[FRONTROW_ASYNC]	= { "async",	FRONTROW_LEVEL_NONE, .is_async = true },
	[FRONTROW_DISCARD]	= { "discard",	FRONTROW_LEVEL_NONE, .is_async = true },
};

/* Classes by role: read, synchronous write, asynchronous write. */
static const enum frontrow_class by_role[FRONTROW_NR_ROLES][3] = {
	[FRONTROW_OTHER] = {
		FRONTROW_SYNC_READ, FRONTROW_SYNC_WRITE, FRONTROW_ASYNC,
	},
	[FRONTROW_FOREGROUND] = {
		FRONTROW_FG_READ, FRONTROW_FG_WRITE, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_BACKGROUND] = {
		FRONTROW_BG_SYNC, FRONTROW_BG_SYNC, FRONTROW_ASYNC,
	},
	[FRONTROW_VISIBLE] = {
		FRONTROW_VISIBLE_1, FRONTROW_VISIBLE_1, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_VISIBLE + 1] = {
		FRONTROW_VISIBLE_2, FRONTROW_VISIBLE_2, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_VISIBLE + 2] = {
		FRONTROW_VISIBLE_3, FRONTROW_VISIBLE_3, FRONTROW_FG_ASYNC,
	},
};

static bool is_long(enum frontrow_level level)
{
	return level == FRONTROW_LEVEL_LONG || level == FRONTROW_LEVEL_BULK;
}

static enum frontrow_class class_of_long(enum frontrow_level level)
{
	return level == FRONTROW_LEVEL_LONG ? FRONTROW_LONG : FRONTROW_BULK;
}

/*
 * Level of a request or a task with this role. Work of kernel threads, above
 * all the journal commit, counts for the most urgent task inside fsync; for the
 * background only if no other task is. Where there are roles, nothing is long:
 * the foreground may depend on it.
 */
enum frontrow_level frontrow_level_of(struct frontrow_data *fd, enum frontrow_role role,
				      bool by_kernel, unsigned int owner, u64 now_ns)
{
	enum frontrow_level level;

	if (role == FRONTROW_FOREGROUND)
		return FRONTROW_LEVEL_FOREGROUND;
	if (role == FRONTROW_BACKGROUND)
		return FRONTROW_LEVEL_NONE;
	if (role >= FRONTROW_VISIBLE)
		return FRONTROW_LEVEL_VISIBLE;
	if (!by_kernel)
		return rcu_access_pointer(fd->roles) ? FRONTROW_LEVEL_OTHER :
						       frontrow_level_of_process(fd, owner, now_ns);
	for (level = FRONTROW_LEVEL_FOREGROUND; level > FRONTROW_LEVEL_NONE; level--)
		if (fd->chains[level].nr_fsyncs)
			return level;
	return fd->chains[FRONTROW_LEVEL_NONE].nr_fsyncs ?
	       FRONTROW_LEVEL_NONE : FRONTROW_LEVEL_OTHER;
}

/*
 * Class of writes that a task waits for. Waits of a background task stay in the
 * background: otherwise an app that overwrites pages under writeback would put
 * hundreds of small writes beside the foreground's. Those of a long process
 * stay in its class, too. The exception is what waits for all: a kernel thread,
 * or a task with a journal handle, since every commit waits for it.
 */
enum frontrow_class frontrow_class_for_waiter(enum frontrow_role role,
					      enum frontrow_level level,
					      bool is_for_all)
{
	enum frontrow_class class = by_role[role][1];

	if (level == FRONTROW_LEVEL_FOREGROUND)
		return FRONTROW_FG_WRITE;
	if (!is_for_all && is_long(level))
		return class_of_long(level);
	return frontrow_is_group(class) && !is_for_all ? class : FRONTROW_BOOSTED;
}

/*
 * Mapping of a bio's first page: an opaque key that is never dereferenced, as
 * the page may be of any kind. Bounce pages of software fscrypt and dm-crypt
 * have no mapping, so these writes are not promoted; with inline encryption
 * they are.
 */
const void *frontrow_mapping_of(struct bio *bio)
{
	struct folio *folio;

	if (!bio || !bio_has_data(bio))
		return NULL;
	folio = page_folio(bio_page(bio));
	/*
	 * Anonymous pages are under writeback only for swap; other ones are
	 * direct I/O.
	 */
	if (folio_test_anon(folio) && !(bio->bi_opf & REQ_SWAP))
		return NULL;
	return READ_ONCE(folio->mapping);
}

static pgoff_t first_page_of(struct bio *bio)
{
	struct page *page = bio_page(bio);
	struct folio *folio = page_folio(page);

	return folio->index + folio_page_idx(folio, page);
}

static void widen_to(struct frontrow_rq *fr, struct bio *bio)
{
	pgoff_t first = first_page_of(bio);

	fr->first_page = min(fr->first_page, first);
	fr->last_page = max(fr->last_page,
			    first + (bio->bi_iter.bi_size >> PAGE_SHIFT));
}

/* One bit of 64 for a mapping; two mappings rarely share one. */
static u64 mapping_bit(const void *mapping)
{
	return BIT_ULL(hash_ptr(mapping, 6));
}

/* A bio of another mapping than the first makes the request a mixed one. */
void frontrow_join_bio(struct frontrow_rq *fr, struct bio *bio)
{
	const void *mapping = frontrow_mapping_of(bio);

	if (!fr->mapping || !mapping)
		return;
	if (mapping == fr->mapping && !fr->mappings) {
		widen_to(fr, bio);
		return;
	}
	fr->mappings |= mapping_bit(fr->mapping) | mapping_bit(mapping);
}

/*
 * Whether @fr may have pages of @mapping; for a mixed request there are false
 * positives.
 */
bool frontrow_may_hold(const struct frontrow_rq *fr, const void *mapping)
{
	return fr->mappings ? fr->mappings & mapping_bit(mapping) :
			      fr->mapping == mapping;
}

static void find_pages(struct frontrow_rq *fr)
{
	unsigned int looked_at = 0;
	struct bio *bio;

	fr->mapping = NULL;
	fr->mappings = 0;
	if (rq_data_dir(fr->rq) == READ)
		return;
	fr->mapping = frontrow_mapping_of(fr->rq->bio);
	if (!fr->mapping)
		return;
	fr->first_page = ULONG_MAX;
	fr->last_page = 0;
	widen_to(fr, fr->rq->bio);
	for (bio = fr->rq->bio->bi_next; bio; bio = bio->bi_next) {
		/* The rest may have pages of any mapping. */
		if (++looked_at > MAX_BIOS_LOOKED_AT) {
			fr->mappings = U64_MAX;
			return;
		}
		frontrow_join_bio(fr, bio);
	}
}

/* Class of a request without promotion. */
static enum frontrow_class class_of(const struct frontrow_rq *fr)
{
	enum frontrow_role role = fr->role;
	bool is_read = rq_data_dir(fr->rq) == READ;

	if (req_op(fr->rq) == REQ_OP_DISCARD || req_op(fr->rq) == REQ_OP_SECURE_ERASE)
		return FRONTROW_DISCARD;
	/*
	 * A task waits for the memory that this write frees. Writes of the
	 * background are excluded: a task that swaps constantly would be served
	 * before all others.
	 */
	if (!is_read && (fr->for_reclaim || (fr->rq->cmd_flags & REQ_SWAP)))
		return frontrow_class_for_waiter(role, fr->level, false);
	/* Without probes nobody says who waits for a metadata block. */
	if (!is_read && (fr->rq->cmd_flags & REQ_META) && !frontrow_has_probes())
		return frontrow_class_for_waiter(role, fr->level, false);
	if (!op_is_sync(fr->rq->cmd_flags))
		return by_role[role][2];
	/*
	 * Only root can give a task the realtime class. It precedes the role
	 * "other", but not the foreground. A cgroup gives it without a capability
	 * (io.prio.class), to whoever the cgroup is delegated to: that does not
	 * count.
	 */
	if (fr->level == FRONTROW_LEVEL_FOREGROUND ||
	    (role == FRONTROW_OTHER && fr->is_realtime && fr->rq->bio &&
	     IOPRIO_PRIO_CLASS(fr->rq->bio->bi_ioprio) == IOPRIO_CLASS_RT))
		role = FRONTROW_FOREGROUND;
	else if (frontrow_holds_up_commit(fr))
		role = FRONTROW_OTHER;
	else if (!fr->by_kernel && is_long(fr->level))
		return class_of_long(fr->level);
	return by_role[role][is_read ? 0 : 1];
}

/* Initializes @fr for @rq. */
void frontrow_identify(struct frontrow_data *fd, struct frontrow_rq *fr,
		       struct request *rq, u64 now_ns)
{
	fr->rq = rq;
	fr->role = frontrow_role_of_bio(fd, rq->bio);
	fr->level = frontrow_level_of(fd, fr->role, fr->by_kernel, fr->owner, now_ns);
	find_pages(fr);
	fr->own_class = class_of(fr);
}

static void hash(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	unsigned int bucket;

	if (!fr->mapping)
		return;
	bucket = fr->mappings ? FRONTROW_MIXED : frontrow_mapping_hash(fr->mapping);
	hlist_add_head(&fr->by_mapping, &fd->by_mapping[bucket]);
}

void frontrow_enqueue(struct frontrow_data *fd, struct frontrow_rq *fr,
		      enum frontrow_class class)
{
	fr->class = class;
	fr->in_class_since_ns = fr->inserted_ns;
	fr->state = FRONTROW_RQ_QUEUED;
	/* A group that was empty must not have saved up turns while open. */
	if (frontrow_is_group(class) && !fd->queued[class]) {
		struct frontrow_group *group =
			&fd->groups[class - FRONTROW_FIRST_GROUP];

		group->served_bytes = max(group->served_bytes,
					  fd->served_floor_bytes);
	}
	frontrow_take_turn(fd, fr);
	fd->nr_owned[fr->owner] += rq_is_sync(fr->rq);
	fd->queued[class]++;
	fd->nr_queued++;
	fd->nr_grouped += frontrow_is_group(class);
	fr->file_async_bytes = 0;
	if (frontrow_classes[fr->own_class].is_async && req_op(fr->rq) == REQ_OP_WRITE)
		frontrow_file_add(fd, fr);
	INIT_HLIST_NODE(&fr->by_mapping);
	hash(fd, fr);
}

/*
 * Removes @fr from its class; it stays in its mapping's bucket until
 * completion.
 */
void frontrow_dequeue(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	struct request *rq = fr->rq;

	fd->queued[fr->class]--;
	fd->nr_queued--;
	fd->nr_grouped -= frontrow_is_group(fr->class);
	elv_rqhash_del(fd->q, rq);
	if (fd->q->last_merge == rq)
		fd->q->last_merge = NULL;
	fr->state = FRONTROW_RQ_IDLE;
}

void frontrow_forget(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	hlist_del_init(&fr->by_mapping);
	fd->nr_owned[fr->owner] -= rq_is_sync(fr->rq);
	if (fr->file_async_bytes)
		frontrow_file_sub(fd, fr);
	fr->state = FRONTROW_RQ_IDLE;
}

/* Moves the pages of @next to @fr. */
void frontrow_join(struct frontrow_data *fd, struct frontrow_rq *fr,
		   const struct frontrow_rq *next)
{
	fr->inserted_ns = min(fr->inserted_ns, next->inserted_ns);
	fr->own_class = min(fr->own_class, next->own_class);
	fr->under_handle |= next->under_handle;
	if (!fr->mapping || !next->mapping)
		return;
	if (fr->mapping == next->mapping && !fr->mappings && !next->mappings) {
		fr->first_page = min(fr->first_page, next->first_page);
		fr->last_page = max(fr->last_page, next->last_page);
		return;
	}
	fr->mappings |= next->mappings | mapping_bit(fr->mapping) |
			mapping_bit(next->mapping);
	hlist_del_init(&fr->by_mapping);
	hash(fd, fr);
}

/* Moves a queued request to another class. */
void frontrow_reclass(struct frontrow_data *fd, struct frontrow_rq *fr,
		      enum frontrow_class class)
{
	fd->queued[fr->class]--;
	fd->queued[class]++;
	fd->nr_grouped -= frontrow_is_group(fr->class);
	fd->nr_grouped += frontrow_is_group(class);
	frontrow_leave_turn(fd, fr);
	fr->class = class;
	fr->in_class_since_ns = ktime_get_ns();
	frontrow_take_turn(fd, fr);
}
