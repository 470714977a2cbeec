// SPDX-License-Identifier: GPL-2.0
/*
 * What a request is when it comes, and where it is while it is queued: in its
 * dispatch class (turns.c) and, if it writes, by the file whose pages it has.
 */
#include <linux/ioprio.h>
#include <linux/pagemap.h>

#include "frontrow.h"

const struct frontrow_class_rules frontrow_classes[FRONTROW_NR_CLASSES] = {
	[FRONTROW_FG_READ]	= { "fg_read",	FRONTROW_FRONT },
	[FRONTROW_FG_WRITE]	= { "fg_write",	FRONTROW_FRONT, .deadline_ms = 100 },
	[FRONTROW_SYNC_READ]	= { "sync_read", FRONTROW_FRONT, .deadline_ms = 200 },
	[FRONTROW_SYNC_WRITE]	= { "sync_write", FRONTROW_FRONT, .deadline_ms = 100 },
	[FRONTROW_BOOSTED]	= { "boosted",	FRONTROW_FRONT, .deadline_ms = 50 },
	[FRONTROW_VISIBLE_1]	= { "visible_1", FRONTROW_SEEN, .deadline_ms = 200 },
	[FRONTROW_VISIBLE_2]	= { "visible_2", FRONTROW_SEEN, .deadline_ms = 200 },
	[FRONTROW_VISIBLE_3]	= { "visible_3", FRONTROW_SEEN, .deadline_ms = 200 },
	[FRONTROW_FG_ASYNC]	= { "fg_async",	FRONTROW_ANYBODY, .is_async = true },
	[FRONTROW_BG_SYNC]	= { "bg_sync",	FRONTROW_ANYBODY, .deadline_ms = 200 },
	[FRONTROW_ASYNC]	= { "async",	FRONTROW_NOBODY, .is_async = true },
	[FRONTROW_DISCARD]	= { "discard",	FRONTROW_NOBODY, .is_async = true },
};

/* By ground: read, synchronous write, asynchronous write. */
static const enum frontrow_class by_ground[FRONTROW_NR_GROUNDS][3] = {
	[FRONTROW_MIDDLE] = {
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

/*
 * The level that a request or a task of this ground waits at. What the kernel's
 * threads do while somebody is in fsync, the commit first of all, they do for the
 * highest of those; and for the background alone if nobody else is.
 */
enum frontrow_level frontrow_level_of(struct frontrow_data *fd,
				      enum frontrow_ground ground, bool by_kernel)
{
	enum frontrow_level level;

	if (ground == FRONTROW_FOREGROUND)
		return FRONTROW_FRONT;
	if (ground == FRONTROW_BACKGROUND)
		return FRONTROW_NOBODY;
	if (ground >= FRONTROW_VISIBLE)
		return FRONTROW_SEEN;
	for (level = FRONTROW_FRONT; by_kernel && level > FRONTROW_NOBODY; level--)
		if (fd->chains[level].nr_fsyncs)
			return level;
	return by_kernel && fd->chains[FRONTROW_NOBODY].nr_fsyncs ?
	       FRONTROW_NOBODY : FRONTROW_ANYBODY;
}

/*
 * The class of what a task turns out to wait for. A task of the background waits
 * in the background, or the foreground would wait beside a hundred small writes
 * because an app overwrites what is being written; but not with a journal handle,
 * for which everybody's commit waits.
 */
enum frontrow_class frontrow_class_for_waiter(enum frontrow_ground ground,
					      enum frontrow_level level,
					      bool under_handle)
{
	enum frontrow_class class = by_ground[ground][1];

	if (level == FRONTROW_FRONT)
		return FRONTROW_FG_WRITE;
	return frontrow_is_group(class) && !under_handle ? class : FRONTROW_BOOSTED;
}

/*
 * The mapping of a bio's first page: a key to compare, never dereferenced, for
 * the page may be anything's. (Software fscrypt and dm-crypt submit bounce pages,
 * which belong to no mapping: they are not promoted. Inline encryption is.)
 */
const void *frontrow_mapping_of(struct bio *bio)
{
	struct folio *folio;

	if (!bio || !bio_has_data(bio))
		return NULL;
	folio = page_folio(bio_page(bio));
	/* Direct I/O: a process's own memory is under no writeback but to swap. */
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

/* A bit of the mapping's hash; of two mappings they seldom are the same. */
static u64 mapping_bit(const void *mapping)
{
	return BIT_ULL(hash_ptr(mapping, 6));
}

/* A bio of another mapping than the request's first makes it a mixed one. */
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

/* Whether it has pages of that file; a mixed one may be mistaken for one that has. */
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
		/* Whatever follows may be anybody's. */
		if (++looked_at > MAX_BIOS_LOOKED_AT) {
			fr->mappings = U64_MAX;
			return;
		}
		frontrow_join_bio(fr, bio);
	}
}

/*
 * Who waits with a journal handle holds up everybody's commit. That is for what it
 * reads, and for blocks that it fills with zeroes; a file's pages are only submitted
 * under a handle, and would be in the commit's own way.
 */
static bool holds_up_commit(const struct frontrow_rq *fr)
{
	return fr->under_handle && (rq_data_dir(fr->rq) == READ || !fr->mapping);
}

/* The class that a request belongs to by itself, whoever waits for it. */
static enum frontrow_class class_of(const struct frontrow_rq *fr)
{
	enum frontrow_ground ground = fr->ground;
	bool is_read = rq_data_dir(fr->rq) == READ;

	if (req_op(fr->rq) == REQ_OP_DISCARD || req_op(fr->rq) == REQ_OP_SECURE_ERASE)
		return FRONTROW_DISCARD;
	/*
	 * Somebody waits for the memory that this frees. Not so what the background
	 * fills it with: whoever swaps without end would be served before others.
	 */
	if (!is_read && (fr->for_reclaim || (fr->rq->cmd_flags & REQ_SWAP)))
		return frontrow_class_for_waiter(ground, fr->level, false);
	if (!op_is_sync(fr->rq->cmd_flags))
		return by_ground[ground][2];
	/* Only root gives the class realtime: before the middle, and no foreground. */
	if (fr->level == FRONTROW_FRONT ||
	    (ground == FRONTROW_MIDDLE && fr->rq->bio &&
	     IOPRIO_PRIO_CLASS(fr->rq->bio->bi_ioprio) == IOPRIO_CLASS_RT))
		ground = FRONTROW_FOREGROUND;
	else if (holds_up_commit(fr))
		ground = FRONTROW_MIDDLE;
	return by_ground[ground][is_read ? 0 : 1];
}

/* Fills in all that is known of a request when it comes. */
void frontrow_identify(struct frontrow_data *fd, struct frontrow_rq *fr,
		       struct request *rq)
{
	fr->rq = rq;
	fr->ground = frontrow_ground_of_bio(fd, rq->bio);
	fr->level = frontrow_level_of(fd, fr->ground, fr->by_kernel);
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
	/* An open group that was empty has saved nothing up. */
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
	INIT_HLIST_NODE(&fr->by_mapping);
	hash(fd, fr);
}

/* It has left its turn and leaves the queue; it stays known by its mapping. */
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
	fr->state = FRONTROW_RQ_IDLE;
}

/* What was @next's is @fr's now. */
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

/* Move a queued request to another class. */
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
