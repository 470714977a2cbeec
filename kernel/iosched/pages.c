// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages of which files a request has, and its place in the bucket of their
 * mapping, where a wait finds it (wait.c).
 */
#include <linux/pagemap.h>

#include "frontrow.h"

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

	if (!fr->item.mapping || !mapping)
		return;
	if (mapping == fr->item.mapping && !fr->mappings) {
		widen_to(fr, bio);
		return;
	}
	fr->mappings |= mapping_bit(fr->item.mapping) | mapping_bit(mapping);
}

/*
 * Whether @fr may have pages of @mapping; for a mixed request there are false
 * positives.
 */
bool frontrow_may_hold(const struct frontrow_rq *fr, const void *mapping)
{
	return fr->mappings ? fr->mappings & mapping_bit(mapping) :
			      fr->item.mapping == mapping;
}

/* Those of fr->rq, which is new. */
void frontrow_find_pages(struct frontrow_rq *fr)
{
	unsigned int looked_at = 0;
	struct bio *bio;

	fr->item.mapping = NULL;
	fr->mappings = 0;
	if (rq_data_dir(fr->rq) == READ)
		return;
	fr->item.mapping = frontrow_mapping_of(fr->rq->bio);
	if (!fr->item.mapping)
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

/* Puts a write into the bucket of its mapping. */
void frontrow_hash(struct frontrow_data *fd, struct frontrow_rq *fr)
{
	unsigned int bucket;

	if (!fr->item.mapping)
		return;
	bucket = fr->mappings ? FRONTROW_MIXED : frontrow_mapping_hash(fr->item.mapping);
	hlist_add_head(&fr->by_mapping, &fd->by_mapping[bucket]);
}

/* Moves the pages of @next to @fr. */
void frontrow_join_pages(struct frontrow_data *fd, struct frontrow_rq *fr,
			 const struct frontrow_rq *next)
{
	if (!fr->item.mapping || !next->item.mapping)
		return;
	if (fr->item.mapping == next->item.mapping && !fr->mappings && !next->mappings) {
		fr->first_page = min(fr->first_page, next->first_page);
		fr->last_page = max(fr->last_page, next->last_page);
		return;
	}
	fr->mappings |= next->mappings | mapping_bit(fr->item.mapping) |
			mapping_bit(next->item.mapping);
	hlist_del_init(&fr->by_mapping);
	frontrow_hash(fd, fr);
}
