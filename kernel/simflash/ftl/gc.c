// SPDX-License-Identifier: GPL-2.0-only
/*
 * Garbage collection: valid pages are moved out of blocks that are mostly
 * invalid, so that these can be erased.
 *
 * Every die collects its own blocks, one flash operation at a time:
 *
 *	at rest --woken, and space is wanted--> victim
 *	victim --a row of it has pages to move--> reading --done--> gathered
 *	gathered --a row's worth, or nothing more to come--> programming
 *	programming --done: the map points to the copies--> victim
 *	victim --read to its end--> the next victim, or at rest
 *
 * Pages are valid where they were until their copy is programmed: a power cut
 * on the way loses nothing. They are gathered over the ends of victims, so
 * that a collected row is a full one. A padded row is programmed only where
 * more flash is free after it than after the last one: collecting always comes
 * to an end.
 *
 * Space is wanted at once when the host can open no further block on the die;
 * then the collector's operations queue with the host's, or yield to programs of
 * the foreground (collect_yields). That cannot go on for ever: these have rows
 * already, and while the die gets no block back its rows come to an end. Some more is wanted
 * while the die has nothing else to do, and only from blocks that are worth
 * it. On a device that never fills up, neither happens.
 *
 * The write buffer is emptied in the same way while the host is idle, its blocks in
 * the order in which they were filled (*folding*): victims that are not chosen.
 */
#include "internal.h"

/* With nothing else to do, a die keeps this many free, and one of so many of its blocks. */
#define IDLE_BLOCKS (FTL_RESERVED_BLOCKS + 1)
#define IDLE_SHARE 64
/* ... from blocks that are at least a quarter invalid. */
#define IDLE_VALID(pages) ((pages) * 3 / 4)
/* With FTL_HEAT so many blocks with as many valid pages are compared. */
#define HEAT_BLOCKS 8

static uint32_t index_of(const struct ftl *ftl, const struct ftl_die *die)
{
	return die - ftl->die;
}

/*
 * The host can open no block, or with streams only one: another stream may be at the end of
 * its block, and would write to this one's.
 */
static bool urgent(const struct ftl *ftl, const struct ftl_die *die)
{
	return ftl_store_free_blocks(die) <= FTL_RESERVED_BLOCKS + (ftl->streams > 1);
}

/* Somebody waits for the space. */
static bool hurries(const struct ftl *ftl, const struct ftl_die *die)
{
	return urgent(ftl, die) || ftl->held;
}

/* Blocks of a die that are free when it has rested. */
static uint32_t idle_blocks(const struct ftl *ftl)
{
	uint64_t spare_pages;

	if (!ftl->config.idle_percent)
		return IDLE_BLOCKS + ftl->main_blocks / IDLE_SHARE;
	spare_pages = (uint64_t)ftl->config.capacity_pages * ftl->config.spare_percent / 100;
	return FTL_RESERVED_BLOCKS + spare_pages * ftl->config.idle_percent / 100 /
				     ftl->config.block_pages / ftl->dies;
}

static bool wanted(const struct ftl *ftl, const struct ftl_die *die)
{
	uint32_t rows;

	if (ftl_hints_reserve(ftl, &rows))
		return urgent(ftl, die) || ftl_store_main_rows(ftl, die) < rows;
	return ftl_store_free_blocks(die) <= idle_blocks(ftl);
}

/* The host is idle, and the write buffer has blocks to be emptied. */
static bool folds(const struct ftl *ftl, const struct ftl_die *die)
{
	return ftl->folding && die->buffer.closed.count && !urgent(ftl, die);
}

void ftl_collect_wake(struct ftl *ftl, const struct ftl_die *die)
{
	if (wanted(ftl, die) || folds(ftl, die) || die->collector.gathered || die->collector.level)
		ftl->collect |= 1ull << index_of(ftl, die);
}

void ftl_collect_idle(struct ftl *ftl)
{
	uint32_t i;

	ftl->folding = true;
	for (i = 0; i < ftl->dies; i++)
		ftl_collect_wake(ftl, &ftl->die[i]);
}

/* A page was invalidated or a program ended: a collector that waits may go on. */
void ftl_collect_wake_waiting(struct ftl *ftl)
{
	ftl->collect |= ftl->collect_waits;
	ftl->collect_waits = 0;
}

/* A block some pages of which are soon invalid will be cheaper, or free by itself. */
static bool is_left_alone(const struct ftl *ftl, const struct ftl_die *die, uint32_t block)
{
	return ftl_hints_avoid(ftl) && !hurries(ftl, die) && ftl_hints_marks_in(ftl, block);
}

static uint32_t oldest(const struct ftl *ftl, const struct ftl_die *die, uint32_t valid)
{
	const struct ftl_block_list *list = &die->candidates[valid];
	uint32_t block = list->count ? list->head : FTL_NONE;

	while (block != FTL_NONE && is_left_alone(ftl, die, block))
		block = ftl->block[block].next;
	return block;
}

/* Pages of the block that are soon invalid, where that counts. */
static uint32_t heat(const struct ftl *ftl, uint32_t block)
{
	return ftl->config.victim == FTL_HEAT && ftl_hints_avoid(ftl) ?
	       ftl_hints_marks_in(ftl, block) : 0;
}

/* Blocks without valid pages are left out: they are given back by themselves. */
static uint32_t greedy(const struct ftl *ftl, const struct ftl_die *die, uint32_t most_valid)
{
	uint32_t valid;

	for (valid = 1; valid <= most_valid; valid++) {
		uint32_t block = oldest(ftl, die, valid);

		if (block != FTL_NONE)
			return block;
	}
	return FTL_NONE;
}

struct best_victim {
	uint32_t block;
	uint64_t benefit, cost;
};

static void weigh(const struct ftl *ftl, uint32_t block, struct best_victim *best)
{
	uint32_t valid = ftl->block[block].valid;
	uint64_t cost = valid + heat(ftl, block);
	uint64_t benefit = (ftl->next_sequence - ftl->block[block].changed + 1) *
			   (ftl->config.block_pages - valid);

	if (best->block == FTL_NONE || benefit * best->cost > best->benefit * cost)
		*best = (struct best_victim){ block, benefit, cost };
}

/*
 * Rosenblum and Ousterhout's benefit / cost = age * (1 - u) / 2u. Of blocks
 * with as many valid pages the head of their list has not changed for longest,
 * so one block a list is enough to look at. With FTL_HEAT a page that is soon invalid
 * counts twice in the cost: its move is in vain, and left alone it costs nothing. Then
 * one that changed later may be the better.
 */
static uint32_t cost_benefit(const struct ftl *ftl, const struct ftl_die *die,
			     uint32_t most_valid)
{
	struct best_victim best = { .block = FTL_NONE };
	uint32_t most = ftl->config.victim == FTL_HEAT ? HEAT_BLOCKS : 1;
	uint32_t valid, block, looked_at;

	for (valid = 1; valid <= most_valid; valid++) {
		block = oldest(ftl, die, valid);
		for (looked_at = 0; block != FTL_NONE && looked_at < most; looked_at++) {
			weigh(ftl, block, &best);
			block = ftl->block[block].next;
		}
	}
	return best.block;
}

/*
 * The least erased block, if it has been erased much less often than the one
 * to be written next: its cold data are moved to worn flash, and it is written
 * in turn. Looked for once for each block the host opens.
 */
static uint32_t least_worn(const struct ftl *ftl, const struct ftl_die *die)
{
	uint32_t next = die->erased.count ? die->erased.head :
			die->erasing != FTL_NONE ? die->erasing : die->invalid.head;
	uint32_t block = index_of(ftl, die) * ftl->blocks_per_die;
	uint32_t end = block + ftl->main_blocks;
	uint32_t least = FTL_NONE;

	if (!die->collector.level || next == FTL_NONE || !ftl_store_free_blocks(die))
		return FTL_NONE;
	for (; block < end; block++) {
		if (ftl->block[block].candidate &&
		    (least == FTL_NONE || ftl->block[block].erases < ftl->block[least].erases))
			least = block;
	}
	if (least == FTL_NONE ||
	    ftl->block[next].erases < ftl->block[least].erases + ftl->config.wear_gap)
		return FTL_NONE;
	return least;
}

static uint32_t choose(struct ftl *ftl, struct ftl_die *die)
{
	uint32_t pages = ftl->config.block_pages;
	uint32_t most_valid = hurries(ftl, die) ? pages - 1 : IDLE_VALID(pages);
	uint32_t worn_least = least_worn(ftl, die);
	uint32_t block = FTL_NONE;

	die->collector.level = false;
	if (worn_least != FTL_NONE)
		ftl->stats.level_blocks++;
	if (worn_least != FTL_NONE)
		return worn_least;
	if (wanted(ftl, die))
		block = ftl->config.victim == FTL_GREEDY ?
			greedy(ftl, die, most_valid) : cost_benefit(ftl, die, most_valid);
	if (block == FTL_NONE && folds(ftl, die))
		block = die->buffer.closed.head;
	return block;
}

static bool take_victim(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_collector *collector = &die->collector;

	if (!wanted(ftl, die) && !folds(ftl, die) && !collector->level)
		return false;
	collector->victim = choose(ftl, die);
	if (collector->victim == FTL_NONE)
		return false;
	ftl_candidate_remove(ftl, collector->victim);
	collector->next = 0;
	collector->found = false;
	return true;
}

static uint32_t queued(const struct ftl_queue *queue)
{
	const struct ftl_operation *each;
	uint32_t count = 0;

	for (each = queue->head; each; each = each->next)
		count++;
	return count;
}

static void queue_urgent(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_collector *collector = &die->collector;

	collector->class = FTL_CLASS_PROGRAM;
	if (ftl->config.collect_yields) {
		collector->class = FTL_CLASS_COLLECT;
		collector->may_pass = queued(&die->queue[FTL_CLASS_PROGRAM]) +
				      ftl_store_rows(ftl, die);
	}
	ftl_die_queue(ftl, die, &collector->operation, collector->class);
}

static void queue(struct ftl *ftl, struct ftl_die *die, enum ftl_kind kind, uint32_t physical,
		  uint32_t pages)
{
	struct ftl_collector *collector = &die->collector;

	collector->operation.kind = kind;
	collector->operation.physical = physical;
	collector->operation.pages = pages;
	collector->busy = true;
	if (hurries(ftl, die)) {
		queue_urgent(ftl, die);
		return;
	}
	collector->class = FTL_CLASS_BACKGROUND;
	ftl_die_queue(ftl, die, &collector->operation, collector->class);
}

/* It waited for a quiet moment, and space has run out meanwhile. */
static void hurry(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_collector *collector = &die->collector;

	if (collector->class != FTL_CLASS_BACKGROUND || !hurries(ftl, die) ||
	    !ftl_die_cancel(die, &collector->operation, FTL_CLASS_BACKGROUND))
		return;
	queue_urgent(ftl, die);
}

/*
 * Both ends of a move that is not committed are to have one page until it is:
 * of copies, a power cut might leave each of them another one.
 */
static bool in_a_move(const struct ftl *ftl, uint32_t physical)
{
	return ftl->log.moves && ftl_map_owners(ftl, physical) > 1;
}

/* Valid, and no newer version is about to take its place. */
static bool to_be_moved(const struct ftl *ftl, uint32_t physical, uint32_t *lba)
{
	*lba = ftl_map_owner(ftl, physical);
	return *lba != FTL_NO_LBA && !in_a_move(ftl, physical) &&
	       !ftl_map_under_program(ftl, physical);
}

static uint32_t gather_row(struct ftl *ftl, struct ftl_collector *collector, uint32_t physical)
{
	uint32_t pages = 0;
	uint32_t i, lba;

	for (i = 0; i < ftl->config.row_pages; i++) {
		if (to_be_moved(ftl, physical + i, &lba))
			collector->page[collector->gathered + pages++] = physical + i;
	}
	collector->gathered += pages;
	return pages;
}

/* Reads the victim's next row with pages to move; false if there is none. */
static bool read_next(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_collector *collector = &die->collector;
	uint32_t first = collector->victim * ftl->config.block_pages;
	const struct ftl_page *page = ftl->block[collector->victim].page;

	while (collector->next < ftl->config.block_pages) {
		uint32_t physical = first + collector->next;
		uint32_t pages = gather_row(ftl, collector, physical);

		collector->next += ftl->config.row_pages;
		if (collector->next < ftl->config.block_pages)
			ftl_map_prefetch_owners(ftl, page + collector->next,
						ftl->config.row_pages);
		if (!pages)
			continue;
		collector->found = true;
		ftl_store_hold(ftl, physical, pages);
		queue(ftl, die, FTL_COLLECT_READ, physical, pages);
		return true;
	}
	return false;
}

/* Forgets gathered pages that need not be moved any more, or not now. */
static void sift(struct ftl *ftl, struct ftl_collector *collector)
{
	uint32_t kept = 0;
	uint32_t i, lba;

	for (i = 0; i < collector->gathered; i++) {
		uint32_t physical = collector->page[i];

		if (to_be_moved(ftl, physical, &lba))
			collector->page[kept++] = physical;
		else
			ftl_store_let_go(ftl, physical);
	}
	collector->gathered = kept;
}

/* Sends off the first gathered pages; false if there is no row for them now. */
static bool program(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_collector *collector = &die->collector;
	uint32_t pages = collector->gathered;
	uint32_t physical, i;

	if (ftl_log_wants_quiet(ftl))
		return false;
	if (pages > ftl->config.row_pages)
		pages = ftl->config.row_pages;
	if (!ftl_store_take_collect_row(ftl, die, &physical, &collector->operation.erase_first))
		return false;
	for (i = 0; i < pages; i++)
		collector->lba[i] = ftl_map_owner(ftl, collector->page[i]);
	collector->sequence = ftl->next_sequence;
	collector->gain -= ftl->config.row_pages;
	ftl->next_sequence += pages;
	queue(ftl, die, FTL_COLLECT_PROGRAM, physical, pages);
	return true;
}

/*
 * Where several LBAs have the page, all but one find its copy by the log only,
 * and where the log is not in flash, one may still have it that does no more.
 */
static bool take_data(struct ftl *ftl, uint32_t from, struct ftl_content *content)
{
	if (ftl_map_owners(ftl, from) > 1 ||
	    (ftl->config.power_loss && ftl_log_holds(ftl, ftl->next_sequence)))
		return ftl_store_copy(ftl, from, content);
	return ftl_store_lift(ftl, from, content);
}

/*
 * The copy is in flash. If the LBA was discarded or remapped meanwhile the
 * copy keeps the data all the same: the log may not be in flash before the
 * power is cut, and then the copy is the newest of its LBA. For the same
 * reason a copy that is not the LBA's page must not name it otherwise: where
 * memory is short it counts as unreadable.
 */
static void moved(struct ftl *ftl, uint32_t from, uint32_t to, uint32_t lba, uint64_t sequence)
{
	struct ftl_content content = { 0 };
	uint32_t now;
	bool mapped = ftl_map_find(ftl, lba, &now) && now == from;
	bool taken;

	if (mapped)
		taken = ftl_map_may_move(ftl) && take_data(ftl, from, &content);
	else
		taken = !ftl->config.power_loss || ftl_store_copy(ftl, from, &content);
	ftl_store_program(ftl, to, taken ? lba : FTL_TORN_LBA, sequence, &content);
	if (mapped && taken)
		ftl_map_moved(ftl, from, to, lba);
	ftl_store_let_go(ftl, from);
}

static void programmed(struct ftl *ftl, struct ftl_collector *collector)
{
	uint32_t pages = collector->operation.pages;
	uint32_t i;

	for (i = 0; i < pages; i++) {
		ftl->stats.folded_pages += ftl_store_is_buffer(ftl, collector->page[i]);
		moved(ftl, collector->page[i], collector->operation.physical + i,
		      collector->lba[i], collector->sequence + i);
	}
	collector->gathered -= pages;
	memmove(collector->page, collector->page + pages,
		collector->gathered * sizeof(collector->page[0]));
	if (pages < ftl->config.row_pages)
		collector->gain = 0;
	ftl_log_count(ftl, pages);
	ftl_store_row_done(ftl, collector->operation.physical);
}

bool ftl_collect_has(struct ftl *ftl, uint32_t physical)
{
	const struct ftl_collector *collector = &ftl_die_of(ftl, physical)->collector;
	uint32_t i;

	if (!collector->busy || collector->operation.kind != FTL_COLLECT_PROGRAM)
		return false;
	for (i = 0; i < collector->operation.pages; i++) {
		if (collector->page[i] == physical)
			return true;
	}
	return false;
}

void ftl_collect_done(struct ftl *ftl, struct ftl_die *die)
{
	die->collector.busy = false;
	if (die->collector.operation.kind == FTL_COLLECT_PROGRAM)
		programmed(ftl, &die->collector);
	ftl->collect |= 1ull << index_of(ftl, die);
}

/*
 * A victim that has been read to its end. What is left in it is about to be
 * overwritten or waits for a commit; it may be chosen again, but not in the
 * same search if it had nothing to move: it is `barren` until that is over.
 */
static void leave_victim(struct ftl *ftl, struct ftl_die *die, uint32_t *barren)
{
	struct ftl_collector *collector = &die->collector;
	uint32_t victim = collector->victim;

	collector->victim = FTL_NONE;
	if (!collector->found) {
		ftl->block[victim].next = *barren;
		*barren = victim;
		return;
	}
	ftl->stats.collected_blocks++;
	if (!ftl->block[victim].moving)
		ftl_candidate_add(ftl, victim);
}

/* A block of the write buffer is left where it is when the host comes back. */
static void stop_folding(struct ftl *ftl, struct ftl_die *die)
{
	uint32_t victim = die->collector.victim;

	if (victim == FTL_NONE || (ftl->folding && !urgent(ftl, die)) ||
	    !ftl_store_is_buffer(ftl, victim * ftl->config.block_pages))
		return;
	die->collector.victim = FTL_NONE;
	if (!ftl->block[victim].moving)
		ftl_candidate_add(ftl, victim);
}

static void end_search(struct ftl *ftl, uint32_t barren)
{
	while (barren != FTL_NONE) {
		uint32_t next = ftl->block[barren].next;

		ftl_candidate_add(ftl, barren);
		barren = next;
	}
}

/* Reads more pages; false if a row is gathered, or there is nothing to read. */
static bool gather(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_collector *collector = &die->collector;
	uint32_t barren = FTL_NONE;
	bool reading = false;

	stop_folding(ftl, die);
	while (!reading) {
		if (collector->gathered >= ftl->config.row_pages)
			sift(ftl, collector);
		if (collector->gathered >= ftl->config.row_pages ||
		    (collector->victim == FTL_NONE && !take_victim(ftl, die)))
			break;
		reading = read_next(ftl, die);
		if (!reading)
			leave_victim(ftl, die, &barren);
	}
	end_search(ftl, barren);
	return reading;
}

/*
 * A row for what is gathered leaves more flash free than there was when the
 * last row was padded: these pages are all that keeps some block.
 */
static bool padding_pays(const struct ftl *ftl, const struct ftl_collector *collector)
{
	int64_t gain = collector->gain - ftl->config.row_pages;
	uint32_t block, last = FTL_NONE;
	uint32_t i;

	for (i = 0; i < collector->gathered; i++) {
		block = collector->page[i] / ftl->config.block_pages;
		if (block != last && ftl_store_is_gathered(ftl, collector->page[i]))
			gain += ftl->config.block_pages;
		last = block;
	}
	return gain > 0;
}

/* What is left of a fold: its blocks are given back at once, for a row that is padded. */
static bool from_buffer(const struct ftl *ftl, const struct ftl_collector *collector)
{
	return ftl->folding && collector->gathered &&
	       ftl_store_is_buffer(ftl, collector->page[collector->gathered - 1]);
}

/* Moves on to the next flash operation; false if there is none to be had now. */
static bool step(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_collector *collector = &die->collector;

	if (gather(ftl, die))
		return true;
	if (collector->gathered >= ftl->config.row_pages)
		return program(ftl, die);
	if (!hurries(ftl, die) && !from_buffer(ftl, collector))
		return false;
	sift(ftl, collector);
	return collector->gathered && padding_pays(ftl, collector) && program(ftl, die);
}

static void collect(struct ftl *ftl, struct ftl_die *die)
{
	if (die->held.count && ftl->log.buffered_entries && urgent(ftl, die))
		ftl_log_flush(ftl);
	if (die->collector.busy)
		hurry(ftl, die);
	else if (!step(ftl, die) && (urgent(ftl, die) || ftl_log_wants_quiet(ftl)))
		ftl->collect_waits |= 1ull << index_of(ftl, die);
}

void ftl_collect_run(struct ftl *ftl)
{
	uint32_t i;

	while (ftl->collect) {
		for (i = 0; i < ftl->dies; i++) {
			if (!(ftl->collect >> i & 1))
				continue;
			ftl->collect &= ~(1ull << i);
			collect(ftl, &ftl->die[i]);
		}
	}
	ftl_janus_go_on(ftl);
	ftl_link_start(ftl);
}

bool ftl_collect_is_at_work(const struct ftl *ftl)
{
	uint32_t i;

	if (ftl->collect)
		return true;
	for (i = 0; i < ftl->dies; i++) {
		if (ftl->die[i].collector.busy)
			return true;
	}
	return false;
}

void ftl_collect_hurry(struct ftl *ftl)
{
	uint32_t i;

	/* Each of them: one that needs no more may have an operation queued that waits for rest. */
	for (i = 0; i < ftl->dies; i++)
		ftl->collect |= 1ull << i;
}

/*
 * Space will come: of a collector at work, or of what holds invalid pages
 * until it ends, if need be because it is asked to.
 */
bool ftl_collect_goes_on(struct ftl *ftl)
{
	if (ftl->log.buffered_entries && ftl_store_is_held(ftl))
		ftl_log_flush(ftl);
	return ftl->cache.oldest || ftl->pins || ftl_store_is_held(ftl) ||
	       ftl_log_wants_quiet(ftl) || ftl_collect_is_at_work(ftl);
}
