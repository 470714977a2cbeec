// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the [simflash] table of a profile: lines of `name = number`, names as
 * ../ftl/parameters.h has them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "profile.h"

#ifndef PROFILES
#define PROFILES "../../../experiments/devices"
#endif

/* Those of the module around the core. */
static bool is_front_ends(const char *name)
{
	static const char *const front_end[] = {
		"fua", "stable_pages", "discard_mib", "hardware_queues", "removable",
		"in_turn", "budget",
	};
	size_t i;

	for (i = 0; i < sizeof(front_end) / sizeof(front_end[0]); i++) {
		if (!strcmp(front_end[i], name))
			return true;
	}
	return false;
}

bool profile_read(const char *name, struct ftl_config *config)
{
	bool in_table = false, good = true, all_in_turn = false;
	char path[256], line[256], key[64];
	unsigned long long value;
	FILE *file;

	ftl_config_default(config);
	snprintf(path, sizeof(path), "%s/%s.toml", PROFILES, name);
	file = fopen(path, "r");
	if (!file) {
		perror(path);
		return false;
	}
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '[')
			in_table = !strncmp(line, "[simflash]", 10);
		else if (in_table && sscanf(line, "%63[a-z0-9_] = %llu", key, &value) == 2) {
			good = good && (is_front_ends(key) ||
					ftl_config_set(config, key, value) == FTL_PARAMETER_SET);
			if (!strcmp(key, "in_turn"))
				all_in_turn = value == 2;
		}
	}
	fclose(file);
	if (all_in_turn)	/* one in the device, and one that its driver has begun */
		config->queue_depth = 2;
	if (!good)
		fprintf(stderr, "%s: a parameter is unknown or too large\n", path);
	return good && !ftl_config_error(config);
}
