// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's parameters are the device: experiments/devices/ has profiles.
 * Without any, it is one gibibyte that answers at once.
 */
#include <linux/blkdev.h>
#include <linux/moduleparam.h>

#include "ftl/parameters.h"
#include "simflash.h"

#define PARAMETER(name, type, value, text)		\
	static type name = value;			\
	module_param(name, type, 0444);			\
	MODULE_PARM_DESC(name, text)

#define CORE_PARAMETER(name, unit, member, value, text) PARAMETER(name, ulong, value, text);

FTL_PARAMETERS(CORE_PARAMETER)
PARAMETER(discard_mib, uint, 64, "largest discard, MiB");
PARAMETER(fua, bool, true, "writes may ask to be programmed before they complete");
PARAMETER(stable_pages, bool, false, "pages under write must not change (ext4 then waits)");
PARAMETER(stream_mib, uint, 0, "memory to write the command stream down in, MiB; 0: it is not");

static const struct {
	const char *name;
	const unsigned long *value;
} simflash_parameters[] = {
#define CORE_VALUE(name, unit, member, value, text) { #name, &name },
	FTL_PARAMETERS(CORE_VALUE)
};

/* The name of a parameter that is too large, or NULL. */
static const char *simflash_config(struct ftl_config *config)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(simflash_parameters); i++) {
		if (ftl_config_set(config, simflash_parameters[i].name,
				   *simflash_parameters[i].value) != FTL_PARAMETER_SET)
			return simflash_parameters[i].name;
	}
	return NULL;
}

int simflash_profile(struct ftl_config *config, struct simflash_limits *limits)
{
	const char *too_large, *error;

	memset(config, 0, sizeof(*config));
	too_large = simflash_config(config);
	if (too_large) {
		pr_err(SIMFLASH_NAME ": %s is too large\n", too_large);
		return -EINVAL;
	}
	*limits = (struct simflash_limits){
		.page_bytes = FTL_PAGE_BYTES,
		.request_sectors = config->command_pages * (FTL_PAGE_BYTES >> SECTOR_SHIFT),
		.request_segments = config->command_pages,
		.discard_sectors = discard_mib * (SZ_1M >> SECTOR_SHIFT),
		.fua = fua,
		.stable_pages = stable_pages,
		.stream_mib = stream_mib,
	};

	error = ftl_config_error(config);
	if (!error && (!discard_mib || discard_mib > 2048))
		error = "discard_mib must be 1 to 2048";
	if (!error && stream_mib > 65536)
		error = "stream_mib must be at most 65536";
	if (!error)
		return 0;
	pr_err(SIMFLASH_NAME ": %s\n", error);
	return -EINVAL;
}
