// SPDX-License-Identifier: GPL-2.0-only
/* A configuration: from its parameters by name, and whether it can be built. */
#include "internal.h"
#include "parameters.h"

enum unit { NUMBER, NS, KIB, MIB, MB_S };

struct parameter {
	const char *name;
	uint64_t value;		/* by default, in the parameter's unit */
	enum unit unit;
	uint32_t offset, size;	/* of the member of struct ftl_config */
};

#define MEMBER_SIZE(member) sizeof(((struct ftl_config *)0)->member)

#define PARAMETER(name, unit, member, value, text) \
	{ #name, value, unit, offsetof(struct ftl_config, member), MEMBER_SIZE(member) },

static const struct parameter parameters[] = { FTL_PARAMETERS(PARAMETER) };

#define COUNT (sizeof(parameters) / sizeof(parameters[0]))

uint32_t ftl_parameters(void)
{
	return COUNT;
}

const char *ftl_parameter_name(uint32_t index)
{
	return parameters[index].name;
}

uint64_t ftl_config_number(const struct ftl_config *config, uint32_t index)
{
	const void *member = (const char *)config + parameters[index].offset;

	return parameters[index].size == sizeof(uint64_t) ? *(const uint64_t *)member :
							    *(const uint32_t *)member;
}

bool ftl_config_set_number(struct ftl_config *config, uint32_t index, uint64_t number)
{
	void *member = (char *)config + parameters[index].offset;

	if (parameters[index].size == sizeof(uint64_t)) {
		*(uint64_t *)member = number;
		return true;
	}
	if (number > 0xffffffffu)
		return false;
	*(uint32_t *)member = number;
	return true;
}

static uint64_t in_members_unit(enum unit unit, uint64_t value)
{
	switch (unit) {
	case KIB:
		return value / 4;
	case MIB:
		return value > FTL_NEVER / 256 ? FTL_NEVER : value * 256;
	case MB_S:
		return ftl_page_ns(value);
	default:
		return value;
	}
}

enum ftl_parameter_fate ftl_config_set(struct ftl_config *config, const char *name, uint64_t value)
{
	uint32_t i;

	for (i = 0; i < COUNT; i++) {
		if (strcmp(parameters[i].name, name))
			continue;
		return ftl_config_set_number(config, i,
					     in_members_unit(parameters[i].unit, value)) ?
			FTL_PARAMETER_SET : FTL_PARAMETER_TOO_LARGE;
	}
	return FTL_PARAMETER_UNKNOWN;
}

void ftl_config_default(struct ftl_config *config)
{
	uint32_t i;

	memset(config, 0, sizeof(*config));
	for (i = 0; i < COUNT; i++)
		ftl_config_set(config, parameters[i].name, parameters[i].value);
}

/* A die's open block, the one erased ahead, and the one garbage collection writes to. */
#define BLOCKS_OPEN 3

uint64_t ftl_config_main_blocks(const struct ftl_config *config)
{
	uint64_t pages = config->capacity_pages;
	uint64_t dies = config->channels * config->dies_per_channel;
	uint64_t die_pages;

	pages += pages * config->spare_percent / 100;
	/* Each page of the map, and one more of which it is the newer version. */
	pages += 2 * ftl_mapcache_pages(config);
	die_pages = pages / dies + 1;
	return die_pages / config->block_pages + 1 + BLOCKS_OPEN + FTL_RESERVED_BLOCKS;
}

uint32_t ftl_config_buffer_blocks(const struct ftl_config *config)
{
	uint32_t stripe_pages = config->channels * config->dies_per_channel * config->block_pages;

	return (config->slc_pages + stripe_pages - 1) / stripe_pages;
}

uint32_t ftl_config_streams(const struct ftl_config *config)
{
	return config->streams ? config->streams : 1;
}

const char *ftl_config_error(const struct ftl_config *config)
{
	if (!config->channels || !config->dies_per_channel ||
	    config->channels > FTL_MAX_DIES || config->dies_per_channel > FTL_MAX_DIES ||
	    config->channels * config->dies_per_channel > FTL_MAX_DIES)
		return "channels times dies_per_channel must be 1 to 64";
	if (!config->row_pages || config->row_pages > FTL_MAX_ROW_PAGES)
		return "row_pages must be 1 to 16";
	if (!config->block_pages || config->block_pages > FTL_MAX_BLOCK_PAGES ||
	    config->block_pages % config->row_pages)
		return "block_pages must be a multiple of row_pages and at most 256";
	if (config->cache_pages < 2 * config->row_pages ||
	    config->cache_pages > FTL_MAX_CACHE_PAGES)
		return "the write cache must hold at least two rows and at most 256 MiB";
	if (!config->queue_depth || config->queue_depth > FTL_MAX_QUEUE_DEPTH)
		return "queue_depth must be 1 to 1024";
	if (!config->command_pages || config->command_pages > FTL_MAX_COMMAND_PAGES)
		return "the largest request must be 4 KiB to 4 MiB";
	if (config->policy >= FTL_POLICIES)
		return "policy must be 0 (fifo), 1 (read-first) or 2 (foreground-aware)";
	if ((config->collect_yields || config->front_rows) && config->policy != FTL_FG_AWARE)
		return "collect_yields and front_rows need policy 2: no other one knows the foreground";
	if (config->suspend_ns && config->policy == FTL_FIFO)
		return "suspend_ns needs policy 1 or 2: reads that wait their turn suspend nothing";
	if (config->victim >= FTL_VICTIMS)
		return "victim must be 0 (greedy), 1 (cost-benefit) or 2 (with heat)";
	if (config->streams > FTL_MAX_STREAMS)
		return "streams must be at most 8";
	if (config->own_streams && config->streams < 2)
		return "own_streams needs streams of at least 2";
	if (config->streams > 1 && config->cache_pages < (config->streams + 1) * config->row_pages)
		return "the write cache must hold a row for each stream, and one more";
	if (config->read_cache_pages > FTL_MAX_CACHE_PAGES)
		return "the read cache must hold at most 256 MiB";
	if (config->read_cache_announced && !config->read_cache_pages)
		return "read_cache_announced needs read_cache_kib";
	if (config->idle_percent > 1000)
		return "idle_percent must be at most 1000";
	if (config->unit_pages && (!config->open_units || config->open_units > FTL_MAX_OPEN_UNITS))
		return "open_units must be 1 to 16";
	if (config->map_cache_pages && (!config->map_page_lbas || config->map_page_lbas > 4096))
		return "map_page_lbas must be 1 to 4096";
	if (config->log_pages < 4 * config->row_pages || config->log_pages > 1 << 20)
		return "the defrag log must have four rows to 4 GiB";
	if (!config->capacity_pages || config->spare_percent > 1000 ||
	    config->slc_pages > FTL_NO_LBA / 2 ||
	    (ftl_config_main_blocks(config) + ftl_config_buffer_blocks(config)) *
		config->channels * config->dies_per_channel * config->block_pages >= FTL_NO_LBA)
		return "capacity and spare_percent must leave less than 8 TiB of flash, and more than none";
	return NULL;
}
