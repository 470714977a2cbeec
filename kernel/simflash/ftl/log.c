// SPDX-License-Identifier: GPL-2.0-only
/*
 * The defrag log: what the map knows and the OOB does not tell.
 *
 * An OOB names the LBA its page was written for. The map is more than the
 * newest page of each LBA once an LBA was remapped or discarded; every such
 * change is an entry of the log. Its version is a sequence number of the same
 * count as the pages', so that pages and entries together are one history,
 * which a mount replays (recover.c).
 *
 * An entry is needed until a newer page or entry of its LBA is in flash:
 *
 *	buffered --flush, FLUSH after a remap, or a block waits to be erased--> written
 *	buffered, written --the LBA is overwritten, or collected with its new OOB--> obsolete
 *	obsolete --compaction--> gone
 *
 * Nobody looks for obsolete entries: the replay passes over them, for what
 * made them obsolete has a higher number. When the log has reached its size it
 * is compacted: a *snapshot* of all that the OOBs do not tell is written, and
 * then everything before it is dropped. A *checkpoint* is a snapshot with the
 * whole map: nothing before it has to be scanned, either. It is taken instead
 * where so much is remapped that the map is the shorter of both.
 *
 *	none --wanted--> waits until nothing is under program --> pages written --> complete
 *
 * A snapshot that is not complete counts for nothing.
 *
 * Erasing is what makes history unrepeatable. So a block that became invalid
 * by an entry (and not by a newer page) is held until the entry is in flash:
 * without that, an older page of the LBA would count as the newest. Discards
 * alone are therefore never waited for. Whatever they hit is, after a cut,
 * either gone or as it was before, never older.
 */
#include "internal.h"

static void free_list(struct ftl_system_page *page)
{
	while (page) {
		struct ftl_system_page *next = page->next;

		ftl_free_page(page);
		page = next;
	}
}

void ftl_log_destroy(struct ftl *ftl)
{
	free_list(ftl->log.head);
	free_list(ftl->log.spare);
	ftl_free_array(ftl->log.moved);
}

/* The power was cut: what was buffered is lost. */
void ftl_log_reset(struct ftl *ftl)
{
	struct ftl_log *log = &ftl->log;
	struct ftl_range *moved = log->moved;

	free_list(log->head);
	free_list(log->spare);
	memset(log, 0, sizeof(*log));
	log->moved = moved;
}

bool ftl_log_reserve(struct ftl *ftl, uint32_t entries)
{
	struct ftl_log *log = &ftl->log;
	uint32_t pages = entries / FTL_LOG_ENTRIES + 2;

	while (log->spares < pages) {
		struct ftl_system_page *page = ftl_alloc_page();

		if (!page)
			return false;
		page->next = log->spare;
		log->spare = page;
		log->spares++;
	}
	return true;
}

static struct ftl_system_page *new_page(struct ftl *ftl)
{
	struct ftl_log *log = &ftl->log;
	struct ftl_system_page *page = log->spare;

	if (!page)
		return NULL;
	log->spare = page->next;
	log->spares--;
	memset(page, 0, FTL_PAGE_BYTES);
	if (log->head)
		log->tail->next = page;
	else
		log->head = page;
	log->tail = page;
	log->buffered_pages++;
	return page;
}

static bool has_range(enum ftl_log_kind kind)
{
	return kind <= FTL_LOG_UNMAP;
}

/*
 * One entry for two changes, if the second continues the first's range and
 * nothing came between.
 */
static bool merge(const struct ftl *ftl, struct ftl_system_page *page, enum ftl_log_kind kind,
		  uint32_t lba, uint32_t from)
{
	const struct ftl_log_entry *last = &page->entry[page->count - 1];

	return has_range(kind) && last->kind == kind && last->lba + last->pages == lba &&
	       (kind == FTL_LOG_UNMAP || last->from + last->pages == from) &&
	       last->version + 1 == ftl->next_sequence;
}

/* False if memory is short, which it is not where it was reserved. */
bool ftl_log_append(struct ftl *ftl, enum ftl_log_kind kind, uint32_t lba, uint32_t from,
		    uint32_t pages)
{
	struct ftl_log *log = &ftl->log;
	struct ftl_system_page *page = log->head ? log->tail : new_page(ftl);
	struct ftl_log_entry *entry;

	if (!page)
		return false;
	log->must_flush |= kind != FTL_LOG_UNMAP;
	if (page->count && merge(ftl, page, kind, lba, from)) {
		page->entry[page->count - 1].pages += pages;
		page->entry[page->count - 1].version = ftl->next_sequence++;
		return true;
	}
	if (page->count == FTL_LOG_ENTRIES)
		page = new_page(ftl);
	if (!page)
		return false;
	if (!log->buffered_entries++)
		log->first_buffered = ftl->next_sequence;
	entry = &page->entry[page->count++];
	entry->version = ftl->next_sequence++;
	entry->kind = kind;
	entry->lba = lba;
	entry->from = from;
	entry->pages = pages;
	if (log->buffered_pages >= ftl->config.log_pages / 2)
		ftl_log_flush(ftl);
	return true;
}

/* Rows are padded: that is what the log takes of its size. */
static uint32_t whole_rows(uint32_t pages, uint32_t row_pages)
{
	return (pages + row_pages - 1) / row_pages * row_pages;
}

bool ftl_log_is_full(const struct ftl *ftl)
{
	return ftl->log.pages + ftl->log.buffered_pages >= ftl->config.log_pages;
}

/* Gives what is buffered to the system area. */
void ftl_log_flush(struct ftl *ftl)
{
	struct ftl_log *log = &ftl->log;
	struct ftl_system_page *page, *next;

	for (page = log->head; page; page = next) {
		next = page->next;
		log->handed_number = ftl_system_append(ftl, page);
	}
	log->pages += whole_rows(log->buffered_pages, ftl->config.row_pages);
	log->head = log->tail = NULL;
	log->buffered_pages = 0;
	log->buffered_entries = 0;
	log->must_flush = false;
	log->handed_version = ftl->next_sequence;
	ftl_system_run(ftl);
	if (ftl_log_is_full(ftl) || ftl_system_free_stripes(ftl) < 3)
		ftl_log_snapshot(ftl, FTL_COMPACTION);
}

/* An entry older than this may not be in flash yet. */
bool ftl_log_holds(const struct ftl *ftl, uint64_t version)
{
	const struct ftl_log *log = &ftl->log;

	if (log->buffered_entries && log->first_buffered <= version)
		return true;
	return log->handed_number > ftl_system_written(ftl) && log->written_version <= version;
}

static void end_waits(struct ftl *ftl, uint64_t written)
{
	struct ftl_log *log = &ftl->log;

	while (log->waits_head && log->waits_head->flush_log <= written) {
		struct ftl_cmd *cmd = log->waits_head;

		log->waits_head = cmd->next;
		ftl_command_respond(ftl, cmd);
	}
}

/* Its response comes when the page with number `flush_log` is in flash. */
void ftl_log_wait(struct ftl *ftl, struct ftl_cmd *cmd)
{
	struct ftl_log *log = &ftl->log;

	cmd->next = NULL;
	if (log->waits_head)
		log->waits_tail->next = cmd;
	else
		log->waits_head = cmd;
	log->waits_tail = cmd;
	end_waits(ftl, ftl_system_written(ftl));
}

bool ftl_log_needed(const struct ftl *ftl, const struct ftl_system_page *page)
{
	const struct ftl_log *log = &ftl->log;

	if (page->snapshot)
		return page->snapshot == log->snapshot || page->snapshot == log->checkpoint ||
		       (log->writing && page->snapshot == log->snapshot_version);
	return page->number > log->log_start;
}

static void snapshot_written(struct ftl *ftl)
{
	struct ftl_log *log = &ftl->log;

	log->snapshot = log->snapshot_version;
	log->log_start = log->snapshot_last;
	if (log->writing == FTL_FULL_CHECKPOINT) {
		log->checkpoint = log->snapshot_version;
		ftl->stats.checkpoints++;
	} else {
		ftl->stats.log_compactions++;
	}
	log->writing = FTL_NO_SNAPSHOT;
	ftl_system_sort_out(ftl, ftl_log_needed);
}

/* More of the stream is in flash. */
void ftl_log_written(struct ftl *ftl)
{
	struct ftl_log *log = &ftl->log;
	uint64_t written = ftl_system_written(ftl);

	if (log->handed_number <= written)
		log->written_version = log->handed_version;
	if (log->writing && log->snapshot_last <= written)
		snapshot_written(ftl);
	end_waits(ftl, written);
	ftl_cache_end_flushes(ftl);
	ftl_store_release_held(ftl);
}

/* Snapshots. */

static struct ftl_system_page *new_snapshot_page(struct ftl_system_page ***tail,
						 enum ftl_system_kind kind, uint32_t first)
{
	struct ftl_system_page *page = ftl_alloc_page();

	if (!page)
		return NULL;
	memset(page, 0, FTL_PAGE_BYTES);
	page->kind = kind;
	page->first = first;
	**tail = page;
	*tail = &page->next;
	return page;
}

static bool snapshot_words(struct ftl *ftl, struct ftl_system_page ***tail,
			   enum ftl_system_kind kind, uint32_t count,
			   uint32_t (*word)(const struct ftl *ftl, uint32_t index))
{
	uint32_t i, end;

	for (i = 0; i < count; i = end) {
		struct ftl_system_page *page = new_snapshot_page(tail, kind, i);

		if (!page)
			return false;
		end = count - i < FTL_MAP_ENTRIES ? count : i + FTL_MAP_ENTRIES;
		for (page->count = 0; i < end; i++)
			page->word[page->count++] = word(ftl, i);
	}
	return true;
}

static uint32_t map_word(const struct ftl *ftl, uint32_t lba)
{
	return ftl->map[lba];
}

/* The blocks that older and newer pages are in: they have to be scanned. */
static uint32_t open_word(const struct ftl *ftl, uint32_t index)
{
	uint32_t blocks = ftl_store_open_blocks(ftl);

	return ftl_store_open_block(ftl, &ftl->die[index / blocks], index % blocks);
}

struct snapshot_log {
	struct ftl_system_page ***tail;	/* NULL: they are only counted */
	struct ftl_system_page *page;
	uint32_t entries;
	struct ftl_log_entry entry;	/* being made: the run so far */
};

static bool snapshot_entry(struct snapshot_log *to)
{
	if (!to->entry.pages)
		return true;
	to->entries++;
	if (!to->tail) {
		to->entry.pages = 0;
		return true;
	}
	if (!to->page || to->page->count == FTL_LOG_ENTRIES)
		to->page = new_snapshot_page(to->tail, FTL_SYSTEM_LOG, 0);
	if (!to->page)
		return false;
	to->page->entry[to->page->count++] = to->entry;
	to->entry.pages = 0;
	return true;
}

static bool snapshot_lba(struct ftl *ftl, struct snapshot_log *to, uint32_t lba)
{
	uint32_t kind = FTL_LOG_UNMAP;
	uint32_t physical = 0;

	if (ftl_map_find(ftl, lba, &physical)) {
		if (!ftl_pairs_has(&ftl->alias, physical, lba))
			return snapshot_entry(to);
		kind = FTL_LOG_MAP;
	}
	if (to->entry.pages && (to->entry.kind != kind ||
	    (kind == FTL_LOG_MAP && to->entry.from + to->entry.pages != physical))) {
		if (!snapshot_entry(to))
			return false;
	}
	if (!to->entry.pages) {
		to->entry.kind = kind;
		to->entry.lba = lba;
		to->entry.from = kind == FTL_LOG_MAP ? physical : 0;
	}
	to->entry.pages++;
	return true;
}

static bool snapshot_lbas(struct ftl *ftl, struct snapshot_log *to)
{
	uint32_t lba;

	for (lba = 0; lba < ftl->config.capacity_pages; lba++) {
		if (!snapshot_lba(ftl, to, lba))
			return false;
	}
	return snapshot_entry(to);
}

/* All that the OOBs do not tell, as runs. */
static bool snapshot_entries(struct ftl *ftl, struct ftl_system_page ***tail, uint64_t version)
{
	struct snapshot_log to = { .tail = tail, .entry = { .version = version } };

	to.page = new_snapshot_page(tail, FTL_SYSTEM_LOG, 0);
	return to.page && snapshot_lbas(ftl, &to);
}

/*
 * Runs that are too many for half of the log, or for fewer pages than the map
 * has, are better told by the map: however much is remapped, the log keeps its
 * size.
 */
static bool map_is_shorter(struct ftl *ftl)
{
	uint32_t map_pages = ftl->lbas / FTL_MAP_ENTRIES + 2;
	struct snapshot_log runs = { 0 };
	uint32_t pages;

	snapshot_lbas(ftl, &runs);
	pages = runs.entries / FTL_LOG_ENTRIES + 1;
	return pages > map_pages || pages > ftl->config.log_pages / 2;
}

static bool snapshot_take(struct ftl *ftl, struct ftl_system_page **head, uint64_t version)
{
	struct ftl_system_page **tail = head;

	if (ftl->log.wanted == FTL_COMPACTION)
		return snapshot_entries(ftl, &tail, version);
	return snapshot_words(ftl, &tail, FTL_SYSTEM_OPEN, ftl_store_open_blocks(ftl) * ftl->dies,
			      open_word) &&
	       snapshot_words(ftl, &tail, FTL_SYSTEM_MAP, ftl->lbas, map_word);
}

static void snapshot_hand_over(struct ftl *ftl, struct ftl_system_page *page, uint64_t version)
{
	struct ftl_log *log = &ftl->log;
	struct ftl_system_page *next;

	log->writing = log->wanted;
	log->snapshot_version = version;
	log->snapshot_first = ftl->system.next_number;
	log->snapshot_pages = 0;
	for (; page; page = next) {
		next = page->next;
		page->snapshot = version;
		page->full = log->wanted == FTL_FULL_CHECKPOINT;
		page->opens = !log->snapshot_pages++;
		page->closes = !next;
		log->snapshot_last = ftl_system_append(ftl, page);
	}
	log->pages = log->wanted == FTL_COMPACTION ?
		     whole_rows(log->snapshot_pages, ftl->config.row_pages) : 0;
	/* What is in the map is in the snapshot: what is buffered need not be written. */
	free_list(log->head);
	log->head = log->tail = NULL;
	log->buffered_pages = 0;
	log->buffered_entries = 0;
	log->must_flush = false;
	log->handed_number = log->snapshot_last;
	log->handed_version = ftl->next_sequence;
	log->programmed = 0;
}

/* Commands that wait for a checkpoint wait for this one, or have failed. */
static void tell_waits(struct ftl_log *log, bool taken)
{
	struct ftl_cmd *cmd;

	for (cmd = log->waits_head; cmd; cmd = cmd->next) {
		if (cmd->flush_log != FTL_NEVER)
			continue;
		cmd->flush_log = taken ? log->snapshot_last : 0;
		if (!taken)
			cmd->status = FTL_LOG_FULL;
	}
}

/*
 * Nothing is under program: every page in flash with a lower number than
 * `version` is in the map, and what comes will have a higher one.
 */
static void take(struct ftl *ftl)
{
	struct ftl_system_page *page = NULL;
	uint64_t version = ftl->next_sequence++;
	bool full, taken;

	if (ftl->log.wanted == FTL_COMPACTION && map_is_shorter(ftl))
		ftl->log.wanted = FTL_FULL_CHECKPOINT;
	full = ftl->log.wanted == FTL_FULL_CHECKPOINT;
	taken = snapshot_take(ftl, &page, version);
	if (taken)
		snapshot_hand_over(ftl, page, version);
	else
		free_list(page);
	ftl->log.wanted = FTL_NO_SNAPSHOT;
	if (full)
		tell_waits(&ftl->log, taken);
	ftl_system_run(ftl);
	ftl_log_written(ftl);
}

/* No row is to be sent off: a snapshot or a remap waits for those under program. */
bool ftl_log_wants_quiet(const struct ftl *ftl)
{
	return ftl->log.remap || (ftl->log.wanted && !ftl->log.writing);
}

void ftl_log_run(struct ftl *ftl)
{
	struct ftl_cmd *remap = ftl->log.remap;

	if (!ftl_log_wants_quiet(ftl) || !ftl_cache_is_quiet(ftl))
		return;
	ftl->log.remap = NULL;
	if (remap)
		ftl_janus_remap(ftl, remap);
	if (ftl->log.wanted && !ftl->log.writing)
		take(ftl);
	ftl_collect_wake_waiting(ftl);
	ftl_link_start(ftl);
	ftl_janus_go_on(ftl);
}

/*
 * A snapshot is taken when all rows have ended; until then no new ones are
 * sent off. None is taken while moves wait for their commit: they would have
 * to be in it.
 */
void ftl_log_snapshot(struct ftl *ftl, enum ftl_snapshot kind)
{
	if (!ftl->log.moves && ftl->log.wanted < kind)
		ftl->log.wanted = kind;
}

/* So many pages more have been programmed. */
void ftl_log_count(struct ftl *ftl, uint32_t pages)
{
	ftl->log.programmed += pages;
	if (ftl->config.checkpoint_pages && ftl->log.programmed >= ftl->config.checkpoint_pages &&
	    !ftl->log.writing)
		ftl_log_snapshot(ftl, FTL_FULL_CHECKPOINT);
}
