// SPDX-License-Identifier: GPL-2.0-only
#include <stdbool.h>

#include "bytes.h"

uint8_t bytes_take(struct bytes *bytes)
{
	if (!bytes->left)
		return 0;
	bytes->left--;
	return *bytes->next++;
}

uint32_t bytes_below(struct bytes *bytes, uint32_t limit)
{
	uint32_t low = bytes_take(bytes);

	return (bytes_take(bytes) << 8 | low) % limit;
}

static void take_map(struct bytes *bytes, struct ftl_config *config)
{
	config->map_cache_pages = bytes_below(bytes, 5);
	config->map_page_lbas = 1 + bytes_below(bytes, 12);
}

static void take_buffer(struct bytes *bytes, struct ftl_config *config)
{
	config->slc_pages = bytes_below(bytes, 2) ? 0 : bytes_below(bytes, 200);
	config->slc_program_ns = 200;
	config->slc_read_ns = 50;
	config->fold_after_ns = 400;
}

static void take_units(struct bytes *bytes, struct ftl_config *config)
{
	config->unit_pages = bytes_below(bytes, 4) ? 0 : 1 + bytes_below(bytes, 32);
	config->open_units = 1 + bytes_below(bytes, 4);
	config->merge_ns = 5000;
}

static void take_foreground(struct bytes *bytes, struct ftl_config *config)
{
	uint32_t yields = bytes_below(bytes, 2), rows = bytes_below(bytes, 24);

	config->idle_percent = bytes_below(bytes, 2) * bytes_below(bytes, 200);

	if (config->policy != FTL_FG_AWARE)
		return;
	config->collect_yields = yields;
	config->front_rows = rows < 12 ? rows : 0;
}

static void take_streams(struct bytes *bytes, struct ftl_config *config)
{
	uint32_t streams = bytes_below(bytes, 2) * bytes_below(bytes, FTL_MAX_STREAMS + 1);
	uint32_t own = bytes_below(bytes, 2);

	config->read_cache_pages = bytes_below(bytes, 2) * bytes_below(bytes, 40);
	config->read_cache_announced = config->read_cache_pages && bytes_below(bytes, 2);
	config->streams = streams;
	if (streams < 2)
		return;
	config->own_streams = own;
	config->cache_pages += (streams - 1) * config->row_pages;
}

void bytes_config(struct bytes *bytes, struct ftl_config *config)
{
	config->channels = 1 + bytes_below(bytes, 3);
	config->dies_per_channel = 1 + bytes_below(bytes, 2);
	config->row_pages = 1 + bytes_below(bytes, 4);
	config->block_pages = config->row_pages * (1 + bytes_below(bytes, 6));
	config->cache_pages = config->row_pages * (2 + bytes_below(bytes, 6));
	config->policy = bytes_below(bytes, FTL_POLICIES);
	config->victim = bytes_below(bytes, FTL_VICTIMS);
	config->wear_gap = bytes_below(bytes, 4);
	config->commands_at_once = bytes_below(bytes, 3);
	config->link_duplex = bytes_below(bytes, 2);
	config->suspend_ns = config->policy == FTL_FIFO ? 0 : bytes_below(bytes, 2) * 40;
	config->read_upper_ns = 150;
	config->program_upper_ns = 2000;
	take_map(bytes, config);
	take_buffer(bytes, config);
	take_units(bytes, config);
	take_foreground(bytes, config);
	take_streams(bytes, config);
}

/* xorshift64* */
static uint64_t random_word(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

void bytes_fill(uint8_t *memory, size_t count, uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
	size_t i;

	for (i = 0; i < count; i++)
		memory[i] = random_word(&state) >> 56;
}
