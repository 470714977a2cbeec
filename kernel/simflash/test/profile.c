// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the [simflash] table of a profile: lines of `name = number`, names as
 * ../profile.c has them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "profile.h"

#ifndef PROFILES
#define PROFILES "../../../experiments/devices"
#endif


/* Each says whether it knows the name. */
static bool set_shape(struct ftl_config *config, const char *name, uint64_t value)
{
	const struct { const char *name; uint32_t *to; uint32_t scale; } shape[] = {
		{ "capacity_mib", &config->capacity_pages, 256 },
		{ "spare_percent", &config->spare_percent, 1 },
		{ "channels", &config->channels, 1 },
		{ "dies_per_channel", &config->dies_per_channel, 1 },
		{ "block_pages", &config->block_pages, 1 },
		{ "row_pages", &config->row_pages, 1 },
		{ "queue_depth", &config->queue_depth, 1 },
		{ "victim", &config->victim, 1 },
		{ "wear_gap", &config->wear_gap, 1 },
	};
	size_t i;

	for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		if (strcmp(shape[i].name, name))
			continue;
		*shape[i].to = value * shape[i].scale;
		return true;
	}
	return false;
}

static bool set_time(struct ftl_config *config, const char *name, uint64_t value)
{
	const struct { const char *name; uint64_t *to; } time[] = {
		{ "read_ns", &config->read_ns },
		{ "program_ns", &config->program_ns },
		{ "erase_ns", &config->erase_ns },
		{ "read_command_ns", &config->read_command_ns },
		{ "write_command_ns", &config->write_command_ns },
		{ "flush_command_ns", &config->flush_command_ns },
		{ "discard_command_ns", &config->discard_command_ns },
		{ "discard_mib_ns", &config->discard_mib_ns },
		{ "response_ns", &config->response_ns },
	};
	size_t i;

	for (i = 0; i < sizeof(time) / sizeof(time[0]); i++) {
		if (strcmp(time[i].name, name))
			continue;
		*time[i].to = value;
		return true;
	}
	return false;
}

static bool set(struct ftl_config *config, const char *name, uint64_t value)
{
	if (!strcmp(name, "cache_kib"))
		config->cache_pages = value / 4;
	else if (!strcmp(name, "request_kib"))
		config->command_pages = value / 4;
	else if (!strcmp(name, "log_kib"))
		config->log_pages = value / 4;
	else if (!strcmp(name, "policy"))
		config->policy = value;
	else if (!strcmp(name, "channel_mb_s"))
		config->channel_page_ns = ftl_page_ns(value);
	else if (!strcmp(name, "link_mb_s"))
		config->link_page_ns = ftl_page_ns(value);
	else if (strcmp(name, "fua") && strcmp(name, "stable_pages") && strcmp(name, "discard_mib"))
		return set_shape(config, name, value) || set_time(config, name, value);
	return true;
}

bool profile_read(const char *name, struct ftl_config *config)
{
	bool in_table = false, good = true;
	char path[256], line[256], key[64];
	unsigned long long value;
	FILE *file;

	memset(config, 0, sizeof(*config));
	config->log_pages = 2560;
	snprintf(path, sizeof(path), "%s/%s.toml", PROFILES, name);
	file = fopen(path, "r");
	if (!file) {
		perror(path);
		return false;
	}
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '[')
			in_table = !strncmp(line, "[simflash]", 10);
		else if (in_table && sscanf(line, "%63[a-z0-9_] = %llu", key, &value) == 2)
			good = good && set(config, key, value);
	}
	fclose(file);
	if (!good)
		fprintf(stderr, "%s: a parameter is unknown to %s\n", path, __FILE__);
	return good && !ftl_config_error(config);
}
