// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images: what a device's flash has become with use, put into a new one of the
 * same shape, so that nobody has to play the use again.
 *
 *	image = header · block * blocks · LBA * block_pages * used · padding to 8 bytes
 *
 * The blocks come in the order of their age: first the free ones as they became
 * free, then those in use as they changed last. The LBAs are those of the pages
 * of each block in use, in that order. Numbers are the machine's own; on another
 * kind of machine the magic is wrong.
 *
 * Data are not in it. A loaded page holds one word that tells its LBA, an
 * invalid one cannot be read. Blocks that were open are closed, as by a mount.
 * Sequence numbers grow with the blocks' age, so that OOBs, map and a mount
 * after a power cut agree, and so does what the collector goes by.
 */
#include "internal.h"

#define IMAGE_MAGIC 0x464c415348494d47ull	/* FLASHIMG */
#define IMAGE_VERSION 1

enum image_state { IMAGE_ERASED, IMAGE_WORN, IMAGE_USED };

struct image_header {
	uint64_t magic;
	uint64_t checksum;	/* of all that follows */
	uint64_t bytes;		/* of the image */
	uint32_t version;
	uint32_t lbas, dies, blocks, block_pages, row_pages;
	uint32_t used;		/* blocks that have valid pages */
	uint32_t unused;
};

static const char not_empty[] = "an image is loaded into a device that nobody has used";
static const char no_memory[] = "there is not enough memory for the image's pages";
static const char damaged[] = "the image is damaged: make it again";

static uint64_t image_bytes(const struct ftl *ftl, uint32_t used)
{
	uint64_t bytes = sizeof(struct image_header) +
			 (uint64_t)ftl->blocks * sizeof(struct ftl_image_block) +
			 (uint64_t)used * ftl->config.block_pages * sizeof(uint32_t);

	return (bytes + 7) / 8 * 8;
}

/* Each step is a bijection of the word: a change of one word is always seen. */
static uint64_t checksum_of(const struct image_header *header)
{
	const uint64_t *word = (const uint64_t *)&header->bytes;
	const uint64_t *end = (const uint64_t *)header + header->bytes / 8;
	uint64_t sum = 0;

	while (word < end) {
		sum = (sum ^ *word++) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 32;
	}
	return sum;
}

static struct ftl_image_block *blocks_of(const void *image)
{
	return (struct ftl_image_block *)((char *)image + sizeof(struct image_header));
}

static uint32_t *lbas_of(const struct ftl *ftl, const void *image)
{
	return (uint32_t *)(blocks_of(image) + ftl->blocks);
}

/* Saving. */

static enum image_state state_of(const struct ftl_block *block)
{
	if (block->valid)
		return IMAGE_USED;
	return block->worn || block->page ? IMAGE_WORN : IMAGE_ERASED;
}

static bool is_older(const struct ftl *ftl, const struct ftl_image_block *one,
		     const struct ftl_image_block *other)
{
	uint64_t changed = ftl->block[one->block].changed;
	uint64_t other_changed = ftl->block[other->block].changed;

	if ((one->state == IMAGE_USED) != (other->state == IMAGE_USED))
		return other->state == IMAGE_USED;
	return changed != other_changed ? changed < other_changed : one->block < other->block;
}

/* Shell's sort. */
static void sort_by_age(const struct ftl *ftl, struct ftl_image_block *block)
{
	uint32_t gap, i, at;

	for (gap = ftl->blocks / 2; gap; gap /= 2) {
		for (i = gap; i < ftl->blocks; i++) {
			struct ftl_image_block sorted = block[i];

			for (at = i; at >= gap && is_older(ftl, &sorted, &block[at - gap]); at -= gap)
				block[at] = block[at - gap];
			block[at] = sorted;
		}
	}
}

static void save_pages(const struct ftl *ftl, uint32_t block, uint32_t *lba)
{
	uint32_t physical = block * ftl->config.block_pages;
	uint32_t i;

	for (i = 0; i < ftl->config.block_pages; i++) {
		uint32_t owner = ftl_map_owner(ftl, physical + i);

		lba[i] = owner == FTL_NO_LBA ? FTL_TORN_LBA : owner;
	}
}

static uint32_t used_blocks(const struct ftl *ftl)
{
	uint32_t used = 0;
	uint32_t i;

	for (i = 0; i < ftl->blocks; i++)
		used += state_of(&ftl->block[i]) == IMAGE_USED;
	return used;
}

size_t ftl_image_bytes(const struct ftl *ftl)
{
	return image_bytes(ftl, used_blocks(ftl));
}

static bool is_at_rest(const struct ftl *ftl)
{
	return !ftl->power.off && ftl_next_ns(ftl) == FTL_NEVER && !ftl->arrived.head &&
	       !ftl->writes.head && ftl->cache.free_count == ftl->config.cache_pages;
}

const char *ftl_image_save(const struct ftl *ftl, void *image, size_t bytes)
{
	struct image_header *header = image;
	struct ftl_image_block *block = blocks_of(image);
	uint32_t *lba;
	uint32_t i;

	if (!is_at_rest(ftl))
		return "an image is taken of a device at rest: flush it, and let its flash come to an end";
	if (ftl->alias.count)
		return "an image cannot tell that pages were remapped";
	if (bytes != ftl_image_bytes(ftl))
		return "the memory for an image must be as large as ftl_image_bytes() says";

	memset(image, 0, bytes);
	*header = (struct image_header){
		.magic = IMAGE_MAGIC,
		.bytes = bytes,
		.version = IMAGE_VERSION,
		.lbas = ftl->lbas,
		.dies = ftl->dies,
		.blocks = ftl->blocks,
		.block_pages = ftl->config.block_pages,
		.row_pages = ftl->config.row_pages,
		.used = used_blocks(ftl),
	};
	for (i = 0; i < ftl->blocks; i++)
		block[i] = (struct ftl_image_block){
			.block = i,
			.erases = ftl->block[i].erases,
			.state = state_of(&ftl->block[i]),
		};
	sort_by_age(ftl, block);
	lba = lbas_of(ftl, image);
	for (i = ftl->blocks - header->used; i < ftl->blocks; i++) {
		save_pages(ftl, block[i].block, lba);
		lba += ftl->config.block_pages;
	}
	header->checksum = checksum_of(header);
	return NULL;
}

/* Loading. */

const char *ftl_image_check(const struct ftl *ftl, const void *image, size_t bytes)
{
	const struct image_header *header = image;

	if (bytes < sizeof(*header) || header->magic != IMAGE_MAGIC)
		return "this is no image of a flash device";
	if (header->version != IMAGE_VERSION)
		return "the image has another version: make it again";
	if (header->lbas != ftl->lbas || header->dies != ftl->dies ||
	    header->blocks != ftl->blocks || header->block_pages != ftl->config.block_pages ||
	    header->row_pages != ftl->config.row_pages)
		return "the image is of another device: capacity, spare_percent, dies, blocks and rows must agree";
	if (header->used > ftl->blocks || header->bytes != bytes ||
	    bytes != image_bytes(ftl, header->used) || header->checksum != checksum_of(header))
		return damaged;
	return NULL;
}

static uint64_t word_of(uint32_t lba)
{
	return 0x61676564ull << 32 | lba;
}

/* The pages of a block; false if the image is damaged. */
static bool fill(struct ftl *ftl, uint32_t index, struct ftl_page *page, const uint32_t *lba)
{
	uint32_t pages = ftl->config.block_pages;
	uint32_t first = index * pages + 1;	/* as in the map */
	uint32_t limit = ftl->lbas;
	uint32_t *map = ftl->map;
	uint32_t valid = 0;
	uint32_t i;

	for (i = 0; i < pages; i++) {
		uint32_t owner = lba[i];

		if (owner < limit) {
			if (map[owner])
				return false;
			map[owner] = first + i;
			valid++;
		} else if (owner != FTL_TORN_LBA) {
			return false;
		}
		page[i] = (struct ftl_page){
			.word = word_of(owner), .lba = owner, .sequence = i,
		};
	}
	ftl->block[index].valid = valid;
	ftl->mapped_pages += valid;
	return valid;
}

static const char *load_used(struct ftl *ftl, uint32_t index, const uint32_t *lba)
{
	struct ftl_page *page = ftl_alloc_page();

	if (!page)
		return no_memory;
	if (!fill(ftl, index, page, lba)) {
		ftl_free_page(page);
		return damaged;
	}
	ftl->block[index].page = page;
	return NULL;
}

/* What is in its cells until it is erased, a mount after a power cut may find. */
static const char *load_worn(struct ftl *ftl, struct ftl_block *block)
{
	uint32_t i;

	block->worn = true;
	if (!ftl->config.power_loss)
		return NULL;
	block->old_page = ftl_alloc_page();
	if (!block->old_page)
		return no_memory;
	block->old_sequence = block->first_sequence;
	for (i = 0; i < ftl->config.block_pages; i++)
		block->old_page[i] = (struct ftl_page){ .lba = FTL_TORN_LBA, .sequence = i };
	return NULL;
}

static const char *load_block(struct ftl *ftl, const struct ftl_image_block *from, uint32_t age,
			      const uint32_t *lba)
{
	struct ftl_block *block;

	if (from->block >= ftl->blocks || ftl->block[from->block].changed)
		return damaged;
	block = &ftl->block[from->block];
	block->first_sequence = 1 + (uint64_t)age * ftl->config.block_pages;
	block->changed = block->first_sequence;
	block->erases = from->erases;
	if (from->state == IMAGE_USED)
		return load_used(ftl, from->block, lba);
	return from->state == IMAGE_WORN ? load_worn(ftl, block) : NULL;
}

/* Without a free block a die's collector has nowhere to move pages to. */
static bool can_collect(const struct ftl *ftl, const struct ftl_image_block *block)
{
	uint32_t free[FTL_MAX_DIES] = { 0 };
	uint32_t i;

	for (i = 0; i < ftl->blocks; i++) {
		if (!ftl_store_is_buffer(ftl, block[i].block * ftl->config.block_pages))
			free[block[i].block / ftl->blocks_per_die] += block[i].state != IMAGE_USED;
	}
	for (i = 0; i < ftl->dies; i++) {
		if (!free[i])
			return false;
	}
	return true;
}

static const char *load_blocks(struct ftl *ftl, const struct image_header *header)
{
	const struct ftl_image_block *block = blocks_of(header);
	const uint32_t *lba = lbas_of(ftl, header);
	uint32_t free = ftl->blocks - header->used;
	const char *error;
	uint32_t i;

	for (i = 0; i < ftl->blocks; i++) {
		if (block[i].state > IMAGE_USED || (block[i].state == IMAGE_USED) != (i >= free))
			return damaged;
		error = load_block(ftl, &block[i], i, lba);
		if (error)
			return error;
		if (i >= free)
			lba += ftl->config.block_pages;
	}
	return can_collect(ftl, block) ? NULL : damaged;
}

static void undo(struct ftl *ftl)
{
	uint32_t i;

	for (i = 0; i < ftl->blocks; i++) {
		struct ftl_block *block = &ftl->block[i];

		if (block->page)
			ftl_free_page(block->page);
		if (block->old_page)
			ftl_free_page(block->old_page);
		block->page = block->old_page = NULL;
		block->first_sequence = block->old_sequence = block->changed = 0;
		block->erases = 0;
		block->valid = 0;
		block->worn = false;
	}
	ftl_map_power_lost(ftl);
}

const char *ftl_image_load(struct ftl *ftl, const void *image, size_t bytes)
{
	const char *error;

	if (!is_at_rest(ftl) || ftl->next_sequence != 1)
		return not_empty;
	error = ftl_image_check(ftl, image, bytes);
	if (error)
		return error;
	error = load_blocks(ftl, image);
	if (error) {
		undo(ftl);
		return error;
	}
	ftl->next_sequence = 1 + (uint64_t)ftl->blocks * ftl->config.block_pages;
	ftl_store_adopt(ftl, blocks_of(image));
	return NULL;
}
