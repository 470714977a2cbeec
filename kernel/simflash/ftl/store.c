// SPDX-License-Identifier: GPL-2.0-only
/*
 * Physical pages and blocks.
 *
 * Rows are given out round robin over the dies, each from its die's open
 * block, so that data written one after another can be read in parallel. Each
 * stream of writes has its own round and its own open blocks: what dies at the
 * same time shares blocks, and a stream's data are spread whoever else writes. That
 * is for what it saves, and no promise: where no block can be opened, a row
 * comes from another stream's. So a row that was reserved is one of any stream. A
 * block is reused once nothing in it is valid; gc.c empties those that a few
 * valid pages keep. A row is reserved before its first page is accepted: what
 * has been acknowledged can always be programmed. free_rows counts what can
 * still be reserved. The last free blocks of a die are not in it: the collector
 * is sure of one to move pages to, even if the power is cut while it fills one.
 * The write buffer's rows are not counted either: they are what a row that was
 * reserved may turn out to be.
 */
#include "internal.h"


static struct ftl_block *block_of(const struct ftl *ftl, uint32_t physical)
{
	return &ftl->block[physical / ftl->config.block_pages];
}

static struct ftl_page *page_of(const struct ftl *ftl, uint32_t physical)
{
	return &block_of(ftl, physical)->page[physical % ftl->config.block_pages];
}

static struct ftl_die *block_die(struct ftl *ftl, uint32_t block)
{
	return &ftl->die[block / ftl->blocks_per_die];
}

struct ftl_die *ftl_die_of(struct ftl *ftl, uint32_t physical)
{
	return block_die(ftl, physical / ftl->config.block_pages);
}

static void list_push(struct ftl *ftl, struct ftl_block_list *list, uint32_t block)
{
	ftl->block[block].next = FTL_NONE;
	ftl->block[block].previous = list->count ? list->tail : FTL_NONE;
	if (list->count++)
		ftl->block[list->tail].next = block;
	else
		list->head = block;
	list->tail = block;
}

static void list_remove(struct ftl *ftl, struct ftl_block_list *list, uint32_t block)
{
	uint32_t previous = ftl->block[block].previous;
	uint32_t next = ftl->block[block].next;

	if (previous == FTL_NONE)
		list->head = next;
	else
		ftl->block[previous].next = next;
	if (next == FTL_NONE)
		list->tail = previous;
	else
		ftl->block[next].previous = previous;
	list->count--;
}

static uint32_t list_pop(struct ftl *ftl, struct ftl_block_list *list)
{
	uint32_t block = list->head;

	list_remove(ftl, list, block);
	return block;
}

static bool is_buffer(const struct ftl *ftl, uint32_t block)
{
	return block % ftl->blocks_per_die >= ftl->main_blocks;
}

bool ftl_store_is_buffer(const struct ftl *ftl, uint32_t physical)
{
	return is_buffer(ftl, physical / ftl->config.block_pages);
}

uint32_t ftl_store_free_blocks(const struct ftl_die *die)
{
	return die->erased.count + die->invalid.count + (die->erasing != FTL_NONE);
}

/* Rows of free blocks that hosts may have. */
static uint32_t spare_rows(const struct ftl *ftl, const struct ftl_die *die)
{
	uint32_t blocks = ftl_store_free_blocks(die);

	return blocks > FTL_RESERVED_BLOCKS ? (blocks - FTL_RESERVED_BLOCKS) * ftl->rows_per_block : 0;
}

uint32_t ftl_store_main_rows(const struct ftl *ftl, const struct ftl_die *die)
{
	uint32_t rows = spare_rows(ftl, die);
	uint32_t stream;

	for (stream = 0; stream < ftl->streams; stream++) {
		if (die->open[stream].block != FTL_NONE)
			rows += ftl->rows_per_block - die->open[stream].rows;
	}
	return rows;
}

uint32_t ftl_store_rows(const struct ftl *ftl, const struct ftl_die *die)
{
	uint32_t buffer = die->buffer.erased.count + die->buffer.invalid.count + die->erase_pending;
	uint32_t rows = ftl_store_main_rows(ftl, die) + buffer * ftl->rows_per_block;

	if (die->buffer.open != FTL_NONE)
		rows += ftl->rows_per_block - die->buffer.open_rows;
	return rows;
}

/* Where a closed block waits for the collector. */
static struct ftl_block_list *candidates_of(struct ftl *ftl, uint32_t index)
{
	struct ftl_die *die = block_die(ftl, index);

	return is_buffer(ftl, index) ? &die->buffer.closed :
				       &die->candidates[ftl->block[index].valid];
}

void ftl_candidate_add(struct ftl *ftl, uint32_t index)
{
	list_push(ftl, candidates_of(ftl, index), index);
	ftl->block[index].candidate = true;
}

void ftl_candidate_remove(struct ftl *ftl, uint32_t index)
{
	list_remove(ftl, candidates_of(ftl, index), index);
	ftl->block[index].candidate = false;
}

static struct ftl_block_list *erased_of(struct ftl *ftl, uint32_t index)
{
	struct ftl_die *die = block_die(ftl, index);

	return is_buffer(ftl, index) ? &die->buffer.erased : &die->erased;
}

static struct ftl_block_list *invalid_of(struct ftl *ftl, uint32_t index)
{
	struct ftl_die *die = block_die(ftl, index);

	return is_buffer(ftl, index) ? &die->buffer.invalid : &die->invalid;
}

static void close_streams(struct ftl_die *die)
{
	uint32_t stream;

	for (stream = 0; stream < FTL_OPEN_STREAMS; stream++)
		die->open[stream].block = FTL_NONE;
}

/* The map's pages are rewritten often: with streams, they have one of their own. */
uint32_t ftl_store_map_stream(const struct ftl *ftl)
{
	return ftl->streams - 1;
}

/* The collector's, the write buffer's, and one of each stream. */
uint32_t ftl_store_open_blocks(const struct ftl *ftl)
{
	return ftl->streams + 2;
}

uint32_t ftl_store_open_block(const struct ftl *ftl, const struct ftl_die *die, uint32_t index)
{
	if (index < ftl->streams)
		return die->open[index].block;
	return index == ftl->streams ? die->collector.open : die->buffer.open;
}

bool ftl_store_create(struct ftl *ftl)
{
	const struct ftl_config *config = &ftl->config;
	uint64_t in_flight = (uint64_t)config->queue_depth * config->command_pages;
	uint32_t die, i;

	ftl->rows_per_block = config->block_pages / config->row_pages;
	ftl->block = ftl_alloc_array(ftl->blocks, sizeof(*ftl->block));
	ftl->candidates = ftl_alloc_array((size_t)ftl->dies * (config->block_pages + 1),
					  sizeof(*ftl->candidates));
	if (!ftl->block || !ftl->candidates)
		return false;

	for (die = 0; die < ftl->dies; die++) {
		close_streams(&ftl->die[die]);
		ftl->die[die].buffer.open = FTL_NONE;
		ftl->die[die].erasing = FTL_NONE;
		ftl->die[die].collector.open = FTL_NONE;
		ftl->die[die].collector.victim = FTL_NONE;
		ftl->die[die].candidates = ftl->candidates + die * (config->block_pages + 1);
		for (i = die * ftl->blocks_per_die; i < (die + 1) * ftl->blocks_per_die; i++)
			list_push(ftl, erased_of(ftl, i), i);
		ftl->free_rows += spare_rows(ftl, &ftl->die[die]);
	}

	/*
	 * The most blocks that can be opened before the pool is filled again:
	 * every page in flight may be forced out in a row of its own by a FUA
	 * or flush beside it, and each die may be at the end of its blocks, in the
	 * write buffer and of each stream.
	 */
	ftl->pool_target = (in_flight + config->cache_pages) / ftl->rows_per_block +
			   (1 + ftl->streams) * ftl->dies;
	return true;
}

static void drop_data(struct ftl *ftl, struct ftl_page *page)
{
	if (!page->buffer)
		return;
	ftl_free_page((void *)(uintptr_t)page->word);
	page->buffer = 0;
	page->word = 0;
	ftl->buffered_pages--;
}

static void drop_all_data(struct ftl *ftl, struct ftl_page *page)
{
	uint32_t i;

	for (i = 0; page && i < ftl->config.block_pages; i++)
		drop_data(ftl, &page[i]);
}

static void forget_pages(struct ftl *ftl, struct ftl_page **pages)
{
	struct ftl_page *page = *pages;

	if (!page)
		return;
	drop_all_data(ftl, page);
	*pages = NULL;
	if (ftl->pool_count >= ftl->pool_target) {
		ftl_free_page(page);
		return;
	}
	*(void **)page = ftl->pool;
	ftl->pool = page;
	ftl->pool_count++;
}

void ftl_store_destroy(struct ftl *ftl)
{
	uint32_t i;

	for (i = 0; ftl->block && i < ftl->blocks; i++) {
		forget_pages(ftl, &ftl->block[i].page);
		forget_pages(ftl, &ftl->block[i].old_page);
	}
	while (ftl->pool) {
		void *page = ftl->pool;

		ftl->pool = *(void **)page;
		ftl_free_page(page);
	}
	ftl_free_array(ftl->candidates);
	ftl_free_array(ftl->block);
}

bool ftl_provide(struct ftl *ftl)
{
	while (ftl->pool_count < ftl->pool_target) {
		void *page = ftl_alloc_page();

		if (!page)
			return false;
		*(void **)page = ftl->pool;
		ftl->pool = page;
		ftl->pool_count++;
	}
	return true;
}

/* The list that has the block to be erased next, before the host needs it; NULL if none has. */
static struct ftl_block_list *to_be_erased(struct ftl_die *die)
{
	if (!die->erased.count && die->invalid.count)
		return &die->invalid;
	return die->buffer.invalid.count ? &die->buffer.invalid : NULL;
}

/* Has the die erase its next block before the open one is full. */
static void erase_ahead(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_block_list *from = to_be_erased(die);
	uint32_t block;

	if (!from || die->erase_pending)
		return;
	block = list_pop(ftl, from);
	if (from == &die->invalid)
		die->erasing = block;
	die->erase_pending = true;
	die->erase.kind = FTL_ERASE_BLOCK;
	die->erase.physical = block * ftl->config.block_pages;
	ftl_die_queue(ftl, die, &die->erase, FTL_CLASS_BACKGROUND);
}

void ftl_store_erased(struct ftl *ftl, uint32_t physical)
{
	struct ftl_block *block = block_of(ftl, physical);

	forget_pages(ftl, &block->old_page);
	block->worn = false;
	block->erases++;
	ftl->stats.erases++;
}

void ftl_store_erased_ahead(struct ftl *ftl, struct ftl_die *die)
{
	uint32_t block = die->erase.physical / ftl->config.block_pages;
	bool taken = !is_buffer(ftl, block) && die->erasing == FTL_NONE;

	ftl_store_erased(ftl, die->erase.physical);
	die->erase_pending = false;
	if (!is_buffer(ftl, block))
		die->erasing = FTL_NONE;
	if (!taken)
		list_push(ftl, erased_of(ftl, block), block);
	erase_ahead(ftl, die);
}

/* It can be opened again. */
static void release(struct ftl *ftl, uint32_t index)
{
	struct ftl_die *die = block_die(ftl, index);

	drop_all_data(ftl, ftl->block[index].old_page);
	list_push(ftl, invalid_of(ftl, index), index);
	if (!is_buffer(ftl, index) && ftl_store_free_blocks(die) > FTL_RESERVED_BLOCKS)
		ftl->free_rows += ftl->rows_per_block;
	die->collector.may_pass += ftl->rows_per_block;
	erase_ahead(ftl, die);
	ftl_collect_wake(ftl, die);
}

void ftl_store_release_held(struct ftl *ftl)
{
	uint32_t i;

	for (i = 0; i < ftl->dies; i++) {
		struct ftl_block_list *held = &ftl->die[i].held;

		while (held->count && !ftl_log_holds(ftl, ftl->block[held->head].changed))
			release(ftl, list_pop(ftl, held));
	}
}

bool ftl_store_is_held(const struct ftl *ftl)
{
	uint32_t i;

	for (i = 0; i < ftl->dies; i++) {
		if (ftl->die[i].held.count)
			return true;
	}
	return false;
}

bool ftl_store_is_gathered(const struct ftl *ftl, uint32_t physical)
{
	const struct ftl_block *block = &ftl->block[physical / ftl->config.block_pages];

	return block->closed && block->valid == block->moving;
}

static void forget_if_invalid(struct ftl *ftl, uint32_t index)
{
	struct ftl_block *block = &ftl->block[index];
	struct ftl_die *die = block_die(ftl, index);

	if (!block->closed || block->valid || block->programs || block->readers || block->moving)
		return;
	if (block->candidate)
		ftl_candidate_remove(ftl, index);
	if (die->collector.victim == index)
		die->collector.victim = FTL_NONE;
	block->closed = false;
	block->worn = true;
	die->collector.gain += ftl->config.block_pages;
	if (ftl->config.power_loss) {
		block->old_page = block->page;
		block->old_sequence = block->first_sequence;
		block->page = NULL;
		block->changed = ftl->next_sequence;
		if (ftl_log_holds(ftl, block->changed)) {
			list_push(ftl, &die->held, index);
			ftl_collect_wake(ftl, die);
			return;
		}
	}
	forget_pages(ftl, &block->page);
	release(ftl, index);
}

/* A block that is closed and programmed to its end can be collected. */
static void settle(struct ftl *ftl, uint32_t index)
{
	struct ftl_block *block = &ftl->block[index];

	forget_if_invalid(ftl, index);
	if (block->closed && !block->programs && !block->moving && !block->candidate &&
	    block_die(ftl, index)->collector.victim != index)
		ftl_candidate_add(ftl, index);
}

/*
 * The next block to write to. One that is still to be erased is taken too: its
 * erase then comes with its first program. The one being erased ahead is taken
 * at once; programs cannot start before that erase ends, for the die is busy.
 */
static uint32_t take_block(struct ftl *ftl, struct ftl_die *die)
{
	uint32_t block;

	if (die->erased.count)
		return list_pop(ftl, &die->erased);
	if (die->erasing == FTL_NONE) {
		block = list_pop(ftl, &die->invalid);
		ftl->block[block].erase_first = true;
		return block;
	}

	block = die->erasing;
	die->erasing = FTL_NONE;
	if (ftl_die_cancel(die, &die->erase, FTL_CLASS_BACKGROUND)) {
		die->erase_pending = false;
		ftl->block[block].erase_first = true;
	}
	return block;
}

static void open_block(struct ftl *ftl, uint32_t index, struct ftl_page *page)
{
	struct ftl_block *block = &ftl->block[index];
	uint32_t i;

	for (i = 0; i < ftl->config.block_pages; i++) {
		page[i].lba = FTL_NO_LBA;
		page[i].buffer = 0;
	}
	block->page = page;
	block->closed = false;
	block->first_sequence = ftl->next_sequence;
	block->changed = ftl->next_sequence;
}

static struct ftl_page *take_from_pool(struct ftl *ftl)
{
	struct ftl_page *page = ftl->pool;

	ftl->pool = *(void **)page;
	ftl->pool_count--;
	return page;
}

static void open_for_host(struct ftl *ftl, struct ftl_die *die, uint32_t stream)
{
	struct ftl_open_block *open = &die->open[stream];

	open->block = take_block(ftl, die);
	open->rows = 0;
	open_block(ftl, open->block, take_from_pool(ftl));
	die->collector.level = ftl->config.wear_gap;
	erase_ahead(ftl, die);
	ftl_collect_wake(ftl, die);
}

/*
 * The collector takes the reserved block only, or one that no reserved row
 * may need.
 */
static bool open_for_collector(struct ftl *ftl, struct ftl_die *die)
{
	uint32_t blocks = ftl_store_free_blocks(die);
	struct ftl_page *page;

	if (!blocks || (blocks > FTL_RESERVED_BLOCKS && ftl->free_rows < ftl->rows_per_block))
		return false;
	page = ftl_alloc_page();
	if (!page)
		return false;
	if (blocks > FTL_RESERVED_BLOCKS)
		ftl->free_rows -= ftl->rows_per_block;
	die->collector.open = take_block(ftl, die);
	die->collector.open_rows = 0;
	open_block(ftl, die->collector.open, page);
	erase_ahead(ftl, die);
	return true;
}

bool ftl_store_reserve_row(struct ftl *ftl)
{
	if (!ftl->free_rows)
		return false;
	ftl->free_rows--;
	if (ftl->hints.rows)
		ftl->hints.rows--;
	return true;
}

void ftl_store_give_back_row(struct ftl *ftl)
{
	ftl->free_rows++;
}

static bool has_row(const struct ftl_die *die, uint32_t stream)
{
	return die->open[stream].block != FTL_NONE ||
	       ftl_store_free_blocks(die) > FTL_RESERVED_BLOCKS;
}

/* The next row of an open block; `open` is FTL_NONE when it was the last. */
static uint32_t next_row(struct ftl *ftl, uint32_t *open, uint32_t *open_rows, bool *erase_first)
{
	struct ftl_block *block = &ftl->block[*open];
	uint32_t physical = *open * ftl->config.block_pages + *open_rows * ftl->config.row_pages;

	*erase_first = block->erase_first;
	block->erase_first = false;
	block->programs++;
	if (++*open_rows == ftl->rows_per_block) {
		block->closed = true;
		*open = FTL_NONE;
	}
	return physical;
}

static bool buffer_has_row(const struct ftl_buffer *buffer)
{
	return buffer->open != FTL_NONE || buffer->erased.count;
}

/* The row that was reserved beside the buffer is given back. */
static uint32_t take_buffer_row(struct ftl *ftl, struct ftl_buffer *buffer, bool *erase_first)
{
	ftl->free_rows++;
	if (buffer->open == FTL_NONE) {
		buffer->open = list_pop(ftl, &buffer->erased);
		buffer->open_rows = 0;
		open_block(ftl, buffer->open, take_from_pool(ftl));
	}
	return next_row(ftl, &buffer->open, &buffer->open_rows, erase_first);
}

/* Some die can give a row of the stream's own. */
bool ftl_store_has_row(const struct ftl *ftl, uint32_t stream)
{
	uint32_t i;

	for (i = 0; i < ftl->dies; i++) {
		if (has_row(&ftl->die[i], stream) || buffer_has_row(&ftl->die[i].buffer))
			return true;
	}
	return false;
}

/* The next die in the stream's round that has a row for it, or for the write buffer; NULL if none has. */
static struct ftl_die *next_die(struct ftl *ftl, uint32_t round, uint32_t stream)
{
	uint32_t tried;

	for (tried = 0; tried < ftl->dies; tried++) {
		struct ftl_die *die = &ftl->die[ftl->next_die[round]];

		ftl->next_die[round] = (ftl->next_die[round] + 1) % ftl->dies;
		if (has_row(die, stream) || buffer_has_row(&die->buffer))
			return die;
	}
	return NULL;
}

uint32_t ftl_store_take_row(struct ftl *ftl, uint32_t stream, bool *erase_first)
{
	struct ftl_die *die = next_die(ftl, stream, stream);
	uint32_t from = stream, other;

	for (other = 0; !die && other < ftl->streams; other++) {
		from = other;
		die = next_die(ftl, stream, other);
	}
	if (buffer_has_row(&die->buffer))
		return take_buffer_row(ftl, &die->buffer, erase_first);
	ftl->stats.mixed_rows += from != stream;
	if (die->open[from].block == FTL_NONE)
		open_for_host(ftl, die, from);
	return next_row(ftl, &die->open[from].block, &die->open[from].rows, erase_first);
}

bool ftl_store_take_collect_row(struct ftl *ftl, struct ftl_die *die, uint32_t *physical,
				bool *erase_first)
{
	struct ftl_collector *collector = &die->collector;

	if (collector->open == FTL_NONE && !open_for_collector(ftl, die))
		return false;
	*physical = next_row(ftl, &collector->open, &collector->open_rows, erase_first);
	return true;
}

void ftl_store_program(struct ftl *ftl, uint32_t physical, uint32_t lba, uint64_t sequence,
		       struct ftl_content *content)
{
	struct ftl_page *page = page_of(ftl, physical);

	ftl_invariant(page->lba == FTL_NO_LBA && !block_of(ftl, physical)->worn);
	page->word = content->word;
	page->buffer = content->buffer;
	page->lba = lba;
	page->sequence = sequence - block_of(ftl, physical)->first_sequence;
	ftl->buffered_pages += content->buffer;
	content->buffer = false;
}

/*
 * A page that was out of date before it was programmed. One that a discard has
 * hit may come to life again: the power may be cut before the log is written.
 */
void ftl_store_stale(struct ftl *ftl, uint32_t physical)
{
	drop_data(ftl, page_of(ftl, physical));
}

bool ftl_store_copy(const struct ftl *ftl, uint32_t physical, struct ftl_content *content)
{
	const struct ftl_page *page = page_of(ftl, physical);
	void *copy;

	content->buffer = false;
	content->word = page->word;
	if (!page->buffer)
		return true;
	copy = ftl_alloc_page();
	if (!copy)
		return false;
	ftl_copy_page(copy, (const void *)(uintptr_t)page->word);
	content->word = (uintptr_t)copy;
	content->buffer = true;
	return true;
}

/* A copy where a read may still need the page, else the data itself. */
bool ftl_store_lift(struct ftl *ftl, uint32_t physical, struct ftl_content *content)
{
	struct ftl_page *page = page_of(ftl, physical);

	if (!page->buffer || block_of(ftl, physical)->readers)
		return ftl_store_copy(ftl, physical, content);
	content->word = page->word;
	content->buffer = true;
	page->buffer = 0;
	page->word = 0;
	ftl->buffered_pages--;
	return true;
}

void ftl_store_hold(struct ftl *ftl, uint32_t physical, uint32_t pages)
{
	block_of(ftl, physical)->moving += pages;
}

void ftl_store_let_go(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->moving--;
	settle(ftl, physical / ftl->config.block_pages);
}

void ftl_store_row_done(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->programs--;
	settle(ftl, physical / ftl->config.block_pages);
}

void ftl_store_pin(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->readers++;
	ftl->pins++;
}

void ftl_store_unpin(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->readers--;
	ftl->pins--;
	forget_if_invalid(ftl, physical / ftl->config.block_pages);
}

void ftl_store_validate(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->valid++;
}

/*
 * The page's OOB stays until its block is erased, its data goes at once: what
 * replaces it is in flash already, and memory should not hold what nobody can
 * read. A read that found the page before still needs it, though; and so may a
 * mount after a power cut, while entries of the log are not in flash.
 */
void ftl_store_invalidate(struct ftl *ftl, uint32_t physical, bool by_entry)
{
	struct ftl_block *block = block_of(ftl, physical);
	uint32_t index = physical / ftl->config.block_pages;
	bool candidate = block->candidate && !is_buffer(ftl, index);	/* listed by valid */

	ftl_invariant(block->valid);
	if (candidate)
		ftl_candidate_remove(ftl, index);
	block->valid--;
	block->changed = ftl->next_sequence;
	if (!block->readers && !(ftl->config.power_loss &&
				 (by_entry || ftl_log_holds(ftl, ftl->next_sequence))))
		drop_data(ftl, page_of(ftl, physical));
	if (candidate)
		ftl_candidate_add(ftl, index);
	forget_if_invalid(ftl, index);
	if (ftl->collect_waits)
		ftl_collect_wake_waiting(ftl);
}

uint32_t ftl_store_lba(const struct ftl *ftl, uint32_t physical)
{
	return page_of(ftl, physical)->lba;
}

uint64_t ftl_store_sequence(const struct ftl *ftl, uint32_t physical)
{
	return block_of(ftl, physical)->first_sequence + page_of(ftl, physical)->sequence;
}

void ftl_store_read(const struct ftl *ftl, uint32_t physical, void *memory)
{
	const struct ftl_page *page = page_of(ftl, physical);
	struct ftl_content content = { .word = page->word, .buffer = page->buffer };

	ftl_content_read(&content, memory);
}

const struct ftl_page *ftl_store_page(const struct ftl *ftl, uint32_t physical)
{
	return page_of(ftl, physical);
}

/* Cannot be read: half programmed, or padding. */
void ftl_store_torn_page(struct ftl *ftl, uint32_t physical)
{
	page_of(ftl, physical)->lba = FTL_TORN_LBA;
}

/* Each page of the block is as it was, or unreadable, or erased. */
void ftl_store_torn_erase(struct ftl *ftl, uint32_t physical)
{
	struct ftl_page *page = block_of(ftl, physical)->old_page;
	uint32_t i;

	for (i = 0; page && i < ftl->config.block_pages; i++) {
		enum ftl_fate fate = ftl_power_fate(ftl);

		if (fate == FTL_FATE_NOTHING)
			continue;
		drop_data(ftl, &page[i]);
		page[i].lba = fate == FTL_FATE_TORN ? FTL_TORN_LBA : FTL_NO_LBA;
	}
}

/* Every block is in no list, and nothing is open. */
static void forget_lists(struct ftl *ftl)
{
	uint32_t i;

	memset(ftl->candidates, 0, sizeof(*ftl->candidates) * ftl->dies *
	       (ftl->config.block_pages + 1));
	for (i = 0; i < ftl->dies; i++) {
		struct ftl_die *die = &ftl->die[i];

		memset(&die->erased, 0, sizeof(die->erased));
		memset(&die->invalid, 0, sizeof(die->invalid));
		memset(&die->held, 0, sizeof(die->held));
		memset(&die->buffer, 0, sizeof(die->buffer));
		close_streams(die);
		die->erasing = die->buffer.open = FTL_NONE;
		die->erase_pending = false;
		memset(&die->collector, 0, sizeof(die->collector));
		die->collector.open = die->collector.victim = FTL_NONE;
	}
	ftl->pins = 0;
	ftl->free_rows = 0;
	ftl->collect = ftl->collect_waits = 0;
	ftl->folding = false;
}

/* RAM is lost: what is left of a block is what its cells hold. */
void ftl_store_power_lost(struct ftl *ftl)
{
	uint32_t i;

	for (i = 0; i < ftl->blocks; i++) {
		struct ftl_block *block = &ftl->block[i];

		if (block->old_page) {
			forget_pages(ftl, &block->page);
			block->page = block->old_page;
			block->first_sequence = block->old_sequence;
			block->old_page = NULL;
		}
		block->readers = 0;
		block->valid = block->programs = block->moving = 0;
		block->closed = block->candidate = block->erase_first = block->worn = false;
	}
	forget_lists(ftl);
}

static void close(struct ftl *ftl, uint32_t index)
{
	ftl->block[index].closed = true;
	ftl_candidate_add(ftl, index);
}

/*
 * The collector goes on in a block that has erased rows left, so that power
 * cuts do not use up its reserve. The first of them may have been under
 * program. A checkpoint's mount must scan the block: it was opened after it.
 */
static void reopen(struct ftl *ftl, uint32_t index)
{
	struct ftl_block *block = &ftl->block[index];
	struct ftl_collector *collector = &block_die(ftl, index)->collector;
	uint32_t row = ftl->config.block_pages;

	if (is_buffer(ftl, index))
		return;
	while (row && block->page[row - 1].lba == FTL_NO_LBA)
		row--;
	row = (row + ftl->config.row_pages - 1) / ftl->config.row_pages + 1;
	if (row >= ftl->rows_per_block || block->first_sequence < ftl->log.checkpoint ||
	    (collector->open != FTL_NONE && collector->open_rows <= row))
		return;
	if (collector->open != FTL_NONE)
		close(ftl, collector->open);
	collector->open = index;
	collector->open_rows = row;
	block->closed = false;
	ftl_candidate_remove(ftl, index);
}

static void rebuild_block(struct ftl *ftl, uint32_t index)
{
	struct ftl_block *block = &ftl->block[index];
	uint32_t i;

	if (!block->page) {
		list_push(ftl, erased_of(ftl, index), index);
		return;
	}
	for (i = 0; i < ftl->config.block_pages; i++) {
		uint32_t physical = index * ftl->config.block_pages + i;

		if (ftl_map_owner(ftl, physical) != FTL_NO_LBA)
			block->valid++;
		else
			drop_data(ftl, &block->page[i]);
	}
	block->changed = ftl->next_sequence;
	if (block->valid) {
		close(ftl, index);
		reopen(ftl, index);
		return;
	}
	block->worn = true;
	block->old_page = block->page;
	block->old_sequence = block->first_sequence;
	block->page = NULL;
	list_push(ftl, invalid_of(ftl, index), index);
}

/* Each block is in its list. */
static void lists_are_complete(struct ftl *ftl)
{
	uint32_t i;

	for (i = 0; i < ftl->dies; i++)
		ftl->free_rows += spare_rows(ftl, &ftl->die[i]);
	for (i = 0; i < ftl->dies; i++) {
		erase_ahead(ftl, &ftl->die[i]);
		ftl_collect_wake(ftl, &ftl->die[i]);
	}
}

/*
 * A mount: blocks are what the map makes of them. One that was open is closed;
 * rows behind those that were under program are not to be trusted.
 */
void ftl_store_rebuild(struct ftl *ftl)
{
	uint32_t i;

	for (i = 0; i < ftl->blocks; i++)
		rebuild_block(ftl, i);
	lists_are_complete(ftl);
}

/* An image was loaded into a new device: blocks are what it made of them, oldest first. */
void ftl_store_adopt(struct ftl *ftl, const struct ftl_image_block *from)
{
	uint32_t i;

	forget_lists(ftl);
	for (i = 0; i < ftl->blocks; i++) {
		uint32_t index = from[i].block;

		if (ftl->block[index].page)
			close(ftl, index);
		else
			list_push(ftl, ftl->block[index].worn ? invalid_of(ftl, index) :
								erased_of(ftl, index), index);
	}
	lists_are_complete(ftl);
}
