// SPDX-License-Identifier: GPL-2.0-only
/*
 * Physical pages and blocks.
 *
 * Rows are given out round robin over the dies, each from its die's open
 * block, so that data written one after another can be read in parallel. A
 * block is reused once nothing in it is valid; there is no garbage collection
 * that would move valid pages away, so a device needs spare flash for the
 * blocks that a few valid pages keep. A row is reserved before its first page
 * is accepted: what has been acknowledged can always be programmed.
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
	if (list->count++)
		ftl->block[list->tail].next = block;
	else
		list->head = block;
	list->tail = block;
}

static uint32_t list_pop(struct ftl *ftl, struct ftl_block_list *list)
{
	uint32_t block = list->head;

	list->head = ftl->block[block].next;
	list->count--;
	return block;
}

bool ftl_store_create(struct ftl *ftl)
{
	const struct ftl_config *config = &ftl->config;
	uint64_t in_flight = (uint64_t)config->queue_depth * config->command_pages;
	uint32_t die, i;

	ftl->rows_per_block = config->block_pages / config->row_pages;
	ftl->block = ftl_alloc_array(ftl->blocks, sizeof(*ftl->block));
	if (!ftl->block)
		return false;

	for (die = 0; die < ftl->dies; die++) {
		ftl->die[die].open = FTL_NONE;
		ftl->die[die].erasing = FTL_NONE;
		for (i = 0; i < ftl->blocks_per_die; i++)
			list_push(ftl, &ftl->die[die].erased, die * ftl->blocks_per_die + i);
	}
	ftl->free_rows = (uint64_t)ftl->blocks * ftl->rows_per_block;

	/*
	 * The most blocks that can be opened before the pool is filled again:
	 * every page in flight may be forced out in a row of its own by a FUA
	 * or flush beside it, and each die may be at the end of its block.
	 */
	ftl->pool_target = (in_flight + config->cache_pages) / ftl->rows_per_block +
			   ftl->dies;
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

static void forget_pages(struct ftl *ftl, struct ftl_block *block)
{
	struct ftl_page *page = block->page;
	uint32_t i;

	if (!page)
		return;
	for (i = 0; i < ftl->config.block_pages; i++)
		drop_data(ftl, &page[i]);
	block->page = NULL;
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

	for (i = 0; ftl->block && i < ftl->blocks; i++)
		forget_pages(ftl, &ftl->block[i]);
	while (ftl->pool) {
		void *page = ftl->pool;

		ftl->pool = *(void **)page;
		ftl_free_page(page);
	}
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

/* Has the die erase its next block before the open one is full. */
static void erase_ahead(struct ftl *ftl, struct ftl_die *die)
{
	if (die->erased.count || !die->invalid.count || die->erase_pending)
		return;
	die->erasing = list_pop(ftl, &die->invalid);
	die->erase_pending = true;
	die->erase.kind = FTL_ERASE_BLOCK;
	die->erase.physical = die->erasing * ftl->config.block_pages;
	ftl_die_queue(ftl, die, &die->erase, FTL_CLASS_BACKGROUND);
}

void ftl_store_erased(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->worn = false;
	ftl->stats.erases++;
}

void ftl_store_erased_ahead(struct ftl *ftl, struct ftl_die *die)
{
	uint32_t block = die->erasing;

	ftl_store_erased(ftl, die->erase.physical);
	die->erase_pending = false;
	die->erasing = FTL_NONE;
	if (block != FTL_NONE)
		list_push(ftl, &die->erased, block);
	erase_ahead(ftl, die);
}

static void forget_if_invalid(struct ftl *ftl, uint32_t index)
{
	struct ftl_block *block = &ftl->block[index];
	struct ftl_die *die = block_die(ftl, index);

	if (!block->closed || block->valid || block->programs || block->readers)
		return;
	forget_pages(ftl, block);
	block->closed = false;
	block->worn = true;
	ftl->free_rows += ftl->rows_per_block;
	list_push(ftl, &die->invalid, index);
	erase_ahead(ftl, die);
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
	if (ftl_die_cancel_background(die)) {
		die->erase_pending = false;
		ftl->block[block].erase_first = true;
	}
	return block;
}

static void open_block(struct ftl *ftl, struct ftl_die *die)
{
	uint32_t index = take_block(ftl, die);
	struct ftl_block *block = &ftl->block[index];
	struct ftl_page *page = ftl->pool;
	uint32_t i;

	ftl->pool = *(void **)page;
	ftl->pool_count--;
	for (i = 0; i < ftl->config.block_pages; i++) {
		page[i].lba = FTL_NO_LBA;
		page[i].buffer = 0;
	}
	block->page = page;
	block->closed = false;
	block->first_sequence = ftl->next_sequence;
	die->open = index;
	die->open_rows = 0;
	erase_ahead(ftl, die);
}

bool ftl_store_reserve_row(struct ftl *ftl)
{
	if (!ftl->free_rows)
		return false;
	ftl->free_rows--;
	return true;
}

static bool die_has_row(const struct ftl_die *die)
{
	return die->open != FTL_NONE || die->erased.count || die->invalid.count ||
	       die->erasing != FTL_NONE;
}

uint32_t ftl_store_take_row(struct ftl *ftl, bool *erase_first)
{
	struct ftl_die *die = &ftl->die[ftl->next_die];
	struct ftl_block *block;
	uint32_t physical;

	while (!die_has_row(die)) {
		ftl->next_die = (ftl->next_die + 1) % ftl->dies;
		die = &ftl->die[ftl->next_die];
	}
	ftl->next_die = (ftl->next_die + 1) % ftl->dies;

	if (die->open == FTL_NONE)
		open_block(ftl, die);
	block = &ftl->block[die->open];
	physical = die->open * ftl->config.block_pages + die->open_rows * ftl->config.row_pages;
	*erase_first = block->erase_first;
	block->erase_first = false;
	block->programs++;
	if (++die->open_rows == ftl->rows_per_block) {
		block->closed = true;
		die->open = FTL_NONE;
	}
	return physical;
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

/* A page that was out of date before it was programmed. */
void ftl_store_stale(struct ftl *ftl, uint32_t physical)
{
	drop_data(ftl, page_of(ftl, physical));
}

void ftl_store_row_done(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->programs--;
	forget_if_invalid(ftl, physical / ftl->config.block_pages);
}

void ftl_store_pin(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->readers++;
}

void ftl_store_unpin(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->readers--;
	forget_if_invalid(ftl, physical / ftl->config.block_pages);
}

void ftl_store_validate(struct ftl *ftl, uint32_t physical)
{
	block_of(ftl, physical)->valid++;
}

/*
 * The page's OOB stays until its block is erased, its data goes at once: what
 * replaces it is in flash already, and memory should not hold what nobody can
 * read. A read that found the page before still needs it, though.
 */
void ftl_store_invalidate(struct ftl *ftl, uint32_t physical)
{
	struct ftl_block *block = block_of(ftl, physical);

	ftl_invariant(block->valid);
	block->valid--;
	if (!block->readers)
		drop_data(ftl, page_of(ftl, physical));
	forget_if_invalid(ftl, physical / ftl->config.block_pages);
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
