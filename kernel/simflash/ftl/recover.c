// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mounting: the map is rebuilt from what is in flash.
 *
 * Pages (by their OOB) and log entries are one history, ordered by sequence
 * number. It is replayed from the newest checkpoint on, or from the beginning.
 * Why that gives the map as it was: an LBA's newest change is in flash, for a
 * block is erased only when no LBA has its pages and the entries that took
 * them away are in flash. Older pages may be missing, so that in between an
 * LBA may seem to have something else than it had; but whatever was moved on
 * from there and still exists was replayed in its order, too.
 *
 * A mount programs and erases nothing. If the power is cut during it, or
 * memory is short, it is done again.
 */
#include "internal.h"

/* A block of which pages are left to be replayed, in order of the next one's number. */
struct candidate {
	uint64_t sequence;
	uint32_t physical;
};

struct recovery {
	struct ftl *ftl;
	struct ftl_system_page **page;		/* of the stream, in order of their numbers */
	uint32_t pages;
	uint64_t last_number, last_index;	/* the highest, and where it is */
	uint64_t checkpoint, compaction;	/* the newest complete ones, 0: none */
	uint32_t log_from;			/* page[] after the newest of both */
	uint32_t compaction_from;		/* page[] it opens with */
	uint32_t next_page, next_entry;		/* of the log */
	uint64_t chain;				/* number of the last log page that counts */
	uint32_t log_pages;
	struct candidate *heap;
	uint32_t heaped;
	uint32_t *open;				/* blocks that were open at the checkpoint */
	uint32_t opens;
	uint64_t highest;			/* sequence number met */
	uint32_t scanned[FTL_MAX_DIES];		/* rows, only their OOB */
	uint32_t read[FTL_MAX_DIES];		/* rows, with their data */
};

/* Reading the system area. */

static void sift_down(struct ftl_system_page **page, uint32_t at, uint32_t count)
{
	struct ftl_system_page *sifted = page[at];
	uint32_t child;

	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && page[child + 1]->number > page[child]->number)
			child++;
		if (sifted->number >= page[child]->number)
			break;
		page[at] = page[child];
		at = child;
	}
	page[at] = sifted;
}

static void sort_pages(struct ftl_system_page **page, uint32_t count)
{
	uint32_t i;

	for (i = count / 2; i--;)
		sift_down(page, i, count);
	while (count > 1) {
		struct ftl_system_page *highest = page[0];

		page[0] = page[--count];
		page[count] = highest;
		sift_down(page, 0, count);
	}
}

static void count_system_row(struct recovery *recovery, uint64_t row)
{
	const struct ftl *ftl = recovery->ftl;
	uint32_t i;

	for (i = 0; i < ftl->config.row_pages; i++) {
		if (ftl->system.page[row * ftl->config.row_pages + i]) {
			recovery->read[row % ftl->dies]++;
			return;
		}
	}
}

/*
 * No number is given twice, not even one that is only in a page that counts
 * for nothing: what belongs together is found by it.
 */
static void note_numbers(struct recovery *recovery, const struct ftl_system_page *page)
{
	uint64_t last = page->snapshot;

	if (page->kind == FTL_SYSTEM_LOG && page->count)
		last = page->entry[page->count - 1].version;
	if (last > recovery->highest)
		recovery->highest = last;
}

static bool collect_pages(struct recovery *recovery)
{
	struct ftl *ftl = recovery->ftl;
	uint64_t count = ftl_system_pages(ftl);
	uint64_t i;

	recovery->page = ftl_alloc_array(count, sizeof(*recovery->page));
	if (!recovery->page)
		return false;
	for (i = 0; i < count / ftl->config.row_pages; i++)
		count_system_row(recovery, i);
	for (i = 0; i < count; i++) {
		struct ftl_system_page *page = ftl->system.page[i];

		if (!page || page == FTL_TORN_PAGE)
			continue;
		recovery->page[recovery->pages++] = page;
		note_numbers(recovery, page);
		if (page->number > recovery->last_number) {
			recovery->last_number = page->number;
			recovery->last_index = i;
		}
	}
	sort_pages(recovery->page, recovery->pages);
	return true;
}

/* The page behind the snapshot that opens at `at`, or 0 if it is not complete. */
static uint32_t end_of_snapshot(const struct recovery *recovery, uint32_t at)
{
	const struct ftl_system_page *first = recovery->page[at];
	uint32_t i;

	for (i = at; i < recovery->pages; i++) {
		const struct ftl_system_page *page = recovery->page[i];

		if (page->snapshot != first->snapshot || page->number != first->number + i - at)
			return 0;
		if (page->closes)
			return i + 1;
	}
	return 0;
}

static void find_snapshots(struct recovery *recovery)
{
	uint32_t i, end;

	for (i = 0; i < recovery->pages; i++) {
		const struct ftl_system_page *page = recovery->page[i];

		end = page->opens ? end_of_snapshot(recovery, i) : 0;
		if (!end)
			continue;
		recovery->log_from = end;
		recovery->chain = recovery->page[end - 1]->number;
		if (page->full) {
			recovery->checkpoint = page->snapshot;
			recovery->compaction = 0;	/* is in it */
		} else {
			recovery->compaction = page->snapshot;
			recovery->compaction_from = i;
		}
	}
}

static bool read_system_area(struct recovery *recovery)
{
	if (!collect_pages(recovery))
		return false;
	find_snapshots(recovery);
	return true;
}

/* The checkpoint. */

static void load_map(struct ftl *ftl, const struct ftl_system_page *page)
{
	uint32_t i;

	for (i = 0; i < page->count; i++)
		ftl->map[page->first + i] = page->word[i];
}

static bool load_checkpoint(struct recovery *recovery)
{
	struct ftl *ftl = recovery->ftl;
	uint32_t i;

	recovery->open = ftl_alloc_array(ftl_store_open_blocks(ftl) * ftl->dies,
					 sizeof(*recovery->open));
	if (!recovery->open)
		return false;
	for (i = 0; recovery->checkpoint && i < recovery->pages; i++) {
		const struct ftl_system_page *page = recovery->page[i];

		if (!page || page->snapshot != recovery->checkpoint)
			continue;
		if (page->kind == FTL_SYSTEM_MAP) {
			load_map(ftl, page);
			continue;
		}
		memcpy(recovery->open + page->first, page->word,
		       page->count * sizeof(*recovery->open));
		recovery->opens = page->first + page->count;
	}
	return true;
}

/* The blocks to be scanned. */

/*
 * One of so many rows of a block has a part of its summary: of 64 rows 8, and
 * 160 bytes in the OOB of each. That is what fits beside the codes of a page
 * of 16 KB.
 */
#define SUMMARY_SHARE 8

static bool readable(const struct recovery *recovery, uint32_t physical)
{
	return ftl_store_lba(recovery->ftl, physical) < recovery->ftl->lbas;
}

/* Puts the block's first readable page from `page` on where it belongs. */
static void heap_put(struct recovery *recovery, uint32_t block, uint32_t page)
{
	const struct ftl *ftl = recovery->ftl;
	uint32_t first = block * ftl->config.block_pages;
	struct candidate *heap = recovery->heap;
	struct candidate put;
	uint32_t at;

	while (page < ftl->config.block_pages && !readable(recovery, first + page))
		page++;
	if (page == ftl->config.block_pages)
		return;
	put.physical = first + page;
	put.sequence = ftl_store_sequence(ftl, put.physical);
	for (at = recovery->heaped++; at && heap[(at - 1) / 2].sequence > put.sequence;
	     at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = put;
}

static struct candidate heap_take(struct recovery *recovery)
{
	struct candidate *heap = recovery->heap;
	struct candidate first = heap[0];
	struct candidate last = heap[--recovery->heaped];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < recovery->heaped) {
		if (child + 1 < recovery->heaped &&
		    heap[child + 1].sequence < heap[child].sequence)
			child++;
		if (last.sequence <= heap[child].sequence)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return first;
}

static bool was_open(const struct recovery *recovery, uint32_t block)
{
	uint32_t i;

	for (i = 0; i < recovery->opens; i++) {
		if (recovery->open[i] == block)
			return true;
	}
	return false;
}

static bool is_full(const struct recovery *recovery, uint32_t block)
{
	const struct ftl *ftl = recovery->ftl;
	uint32_t last = (block + 1) * ftl->config.block_pages - 1;

	return readable(recovery, last);
}

/*
 * The first row of every block is read: it tells when the block was opened.
 * More only of those that were opened after the checkpoint, or were open at
 * it. The OOBs of a block's last rows repeat, in so many parts, what those of
 * all its rows say: a block that was written to its end is known by them, any
 * other by each of its rows.
 */
static bool find_blocks(struct recovery *recovery)
{
	struct ftl *ftl = recovery->ftl;
	uint32_t i;

	recovery->heap = ftl_alloc_array(ftl->blocks, sizeof(*recovery->heap));
	if (!recovery->heap)
		return false;
	for (i = 0; i < ftl->blocks; i++) {
		uint32_t die = i / ftl->blocks_per_die;

		recovery->scanned[die]++;
		if (!ftl->block[i].page)
			continue;
		if (recovery->checkpoint && !was_open(recovery, i) &&
		    ftl->block[i].first_sequence < recovery->checkpoint)
			continue;
		recovery->scanned[die] += is_full(recovery, i) ?
			(ftl->rows_per_block + SUMMARY_SHARE - 1) / SUMMARY_SHARE :
			ftl->rows_per_block - 1;
		heap_put(recovery, i, 0);
	}
	return true;
}

/* The history. */

#define BY_LOG 0x80000000u	/* in the map, while it is replayed: it came of an entry */

static bool same_page(const struct ftl *ftl, uint32_t one, uint32_t other)
{
	return ((ftl->map[one] ^ ftl->map[other]) & ~BY_LOG) == 0;
}

static bool intact(const struct recovery *recovery, uint32_t physical, uint64_t before)
{
	const struct ftl *ftl = recovery->ftl;

	return physical / ftl->config.block_pages < ftl->blocks &&
	       ftl->block[physical / ftl->config.block_pages].page &&
	       readable(recovery, physical) && ftl_store_sequence(ftl, physical) < before;
}

static void replay_entry(struct recovery *recovery, const struct ftl_log_entry *entry)
{
	struct ftl *ftl = recovery->ftl;
	struct ftl_log *log = &ftl->log;
	uint32_t i, page;

	switch (entry->kind) {
	case FTL_LOG_SHARE:
	case FTL_LOG_MOVE:
		for (i = 0; i < entry->pages; i++)
			ftl->map[entry->lba + i] = ftl->map[entry->from + i] ?
				ftl->map[entry->from + i] | BY_LOG : 0;
		if (entry->kind == FTL_LOG_MOVE)
			log->moved[log->moves++] = (struct ftl_range){
				.src = entry->from, .dst = entry->lba, .pages = entry->pages,
			};
		return;
	case FTL_LOG_MAP:
		for (i = 0; i < entry->pages; i++) {
			if (intact(recovery, entry->from + i, entry->version))
				ftl->map[entry->lba + i] = (entry->from + i + 1) | BY_LOG;
		}
		return;
	case FTL_LOG_UNMAP:
		for (i = 0; i < entry->pages; i++)
			ftl->map[entry->lba + i] = 0;
		return;
	default:
		break;
	}
	for (i = 0; i < log->moves; i++) {
		const struct ftl_range *range = &log->moved[i];
		uint32_t loser = entry->kind == FTL_LOG_COMMITTED ? range->src : range->dst;

		for (page = 0; page < range->pages; page++) {
			if (same_page(ftl, range->src + page, range->dst + page))
				ftl->map[loser + page] = 0;
		}
	}
	log->moves = 0;
}

/*
 * The next log page that counts, NULL if there is none: those of the newest
 * compaction, then those after the newest snapshot that follow one another. A
 * page whose predecessor was torn counts for nothing, and nobody was told that
 * it was written; the stream went on behind the predecessor's predecessor. So
 * it does behind a snapshot that was cut short, whose pages may be erased.
 */
static struct ftl_system_page *log_page(struct recovery *recovery)
{
	while (recovery->next_page < recovery->pages) {
		struct ftl_system_page *page = recovery->page[recovery->next_page];

		if (recovery->next_page < recovery->log_from) {
			if (recovery->compaction && page->snapshot == recovery->compaction)
				return page;
		} else if (page->number == recovery->chain) {
			return page;
		} else if (page->follows == recovery->chain && !page->snapshot) {
			recovery->chain = page->number;
			recovery->log_pages++;
			return page;
		}
		recovery->next_page++;
	}
	return NULL;
}

/* Entries up to this sequence number. */
static void replay_log(struct recovery *recovery, uint64_t until)
{
	struct ftl_system_page *page;

	while ((page = log_page(recovery))) {
		for (; recovery->next_entry < page->count; recovery->next_entry++) {
			const struct ftl_log_entry *entry = &page->entry[recovery->next_entry];

			if (entry->version > until)
				return;
			replay_entry(recovery, entry);
		}
		recovery->next_entry = 0;
		recovery->next_page++;
	}
}

static bool replay(struct recovery *recovery)
{
	struct ftl *ftl = recovery->ftl;

	recovery->next_page = recovery->compaction ? recovery->compaction_from :
						     recovery->log_from;
	while (recovery->heaped) {
		struct candidate page = heap_take(recovery);

		replay_log(recovery, page.sequence);
		if (page.sequence >= recovery->checkpoint)
			ftl->map[ftl_store_lba(ftl, page.physical)] = page.physical + 1;
		if (page.sequence > recovery->highest)
			recovery->highest = page.sequence;
		heap_put(recovery, page.physical / ftl->config.block_pages,
			 page.physical % ftl->config.block_pages + 1);
	}
	replay_log(recovery, FTL_NEVER - 1);
	return true;
}

/* The rest of RAM. */

static bool count(struct recovery *recovery)
{
	struct ftl *ftl = recovery->ftl;
	uint32_t lba, physical;

	for (lba = 0; lba < ftl->lbas; lba++) {
		bool by_log = ftl->map[lba] & BY_LOG;

		ftl->map[lba] &= ~BY_LOG;
		if (!ftl_map_find(ftl, lba, &physical))
			continue;
		if (!intact(recovery, physical, FTL_NEVER)) {
			ftl_invariant(false);
			ftl->map[lba] = 0;
			continue;
		}
		ftl->mapped_pages++;
		if ((by_log || ftl_store_lba(ftl, physical) != lba) &&
		    !ftl_pairs_add(&ftl->alias, physical, lba))
			return false;
	}
	return true;
}

static bool resume(struct recovery *recovery)
{
	struct ftl *ftl = recovery->ftl;
	struct ftl_log *log = &ftl->log;

	ftl->next_sequence = recovery->highest + 1;
	log->pages = recovery->log_pages * ftl->config.row_pages;
	ftl_system_resume(ftl, recovery->last_number, recovery->chain, recovery->last_index);
	log->checkpoint = recovery->checkpoint;
	log->snapshot = recovery->compaction ? recovery->compaction : recovery->checkpoint;
	log->log_start = recovery->log_from ? recovery->page[recovery->log_from - 1]->number : 0;
	log->handed_number = recovery->last_number;
	log->handed_version = log->written_version = ftl->next_sequence;
	ftl_store_rebuild(ftl);
	ftl_system_sort_out(ftl, ftl_log_needed);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct recovery *recovery);		/* false if memory is short */
} steps[] = {
	{ "read the system area", read_system_area },
	{ "load the checkpoint", load_checkpoint },
	{ "find the blocks written since", find_blocks },
	{ "replay pages and log", replay },
	{ "count what is valid", count },
	{ "make ready", resume },
};

/* Dies work side by side; those of a channel share it. An OOB is a hundredth of a row. */
static uint64_t mount_ns(const struct recovery *recovery)
{
	const struct ftl_config *config = &recovery->ftl->config;
	uint64_t row_ns = config->row_pages * config->channel_page_ns;
	uint64_t channel_ns[FTL_MAX_DIES] = { 0 };
	uint64_t most_ns = 0;
	uint32_t i;

	for (i = 0; i < recovery->ftl->dies; i++) {
		uint64_t moving_ns = recovery->read[i] * row_ns +
				     recovery->scanned[i] * (row_ns / 100);
		uint64_t die_ns = moving_ns +
			(uint64_t)(recovery->read[i] + recovery->scanned[i]) * config->read_ns;

		channel_ns[i % config->channels] += moving_ns;
		if (die_ns > most_ns)
			most_ns = die_ns;
	}
	for (i = 0; i < config->channels; i++) {
		if (channel_ns[i] > most_ns)
			most_ns = channel_ns[i];
	}
	return most_ns;
}

static void count_mount(const struct recovery *recovery)
{
	struct ftl *ftl = recovery->ftl;
	uint32_t i;

	ftl->stats.mounts++;
	ftl->stats.mount_ns = mount_ns(recovery);
	ftl->stats.mount_row_reads = 0;
	for (i = 0; i < ftl->dies; i++)
		ftl->stats.mount_row_reads += recovery->scanned[i] + recovery->read[i];
	ftl->power.ready_ns = ftl->now_ns + ftl->stats.mount_ns;
}

bool ftl_power_on(struct ftl *ftl, uint64_t now_ns)
{
	struct recovery recovery = { .ftl = ftl };
	bool done = true;
	size_t i;

	ftl_run(ftl, now_ns);
	if (!ftl->power.off)
		return true;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) && done; i++)
		done = steps[i].run(&recovery);
	ftl_free_array(recovery.page);
	ftl_free_array(recovery.open);
	ftl_free_array(recovery.heap);
	if (!done) {
		ftl_map_power_lost(ftl);
		return false;
	}
	ftl->power.off = false;
	count_mount(&recovery);
	return true;
}
