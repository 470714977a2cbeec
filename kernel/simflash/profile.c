// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's parameters are the device: experiments/devices/ has profiles.
 * Without any, it is one gibibyte that answers at once. A second device has a
 * profile of its own in one parameter, since each of the others has one value:
 *
 *	second=capacity_mib:8192,channels:1,discard_mib:64
 */
#include <linux/blkdev.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ftl/parameters.h"
#include "simflash.h"

#define PARAMETER(name, type, value, text)		\
	static type name = value;			\
	module_param(name, type, 0444);			\
	MODULE_PARM_DESC(name, text)

#define CORE_PARAMETER(name, unit, member, value, text) PARAMETER(name, ulong, value, text);

FTL_PARAMETERS(CORE_PARAMETER)
PARAMETER(discard_mib, uint, 64, "largest discard, MiB");
PARAMETER(hardware_queues, uint, 1, "hardware queues, queue_depth commands each");
PARAMETER(fua, bool, true, "writes may ask to be programmed before they complete");
PARAMETER(stable_pages, bool, false, "pages under write must not change (ext4 then waits)");
PARAMETER(in_turn, uint, 0, "issued only when all before have ended, the issuer waits: 0 nothing, 1 discards, 2 everything");
PARAMETER(budget, bool, false, "requests stay in the scheduler while the device is full, as SCSI's");
PARAMETER(removable, bool, false, "it says that it can be taken out");
PARAMETER(stream_mib, uint, 0, "memory to write the command stream down in, MiB; 0: it is not");

static char *second;
module_param(second, charp, 0444);
MODULE_PARM_DESC(second, "a second device's parameters, NAME:NUMBER,...; none: there is one");

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

/* What is the front end's and not the core's. */
struct simflash_front {
	unsigned long discard_mib, hardware_queues, in_turn, stream_mib;
	unsigned long budget, fua, stable_pages, removable;
};

static int simflash_limits(struct ftl_config *config, struct simflash_limits *limits,
			   const struct simflash_front *front)
{
	const char *error = NULL;

	if (!front->hardware_queues || front->hardware_queues > FTL_MAX_QUEUE_DEPTH ||
	    config->queue_depth > FTL_MAX_QUEUE_DEPTH / front->hardware_queues)
		error = "hardware_queues times queue_depth must be 1 to 1024";
	else
		config->queue_depth *= front->hardware_queues;
	if (!error)
		error = ftl_config_error(config);
	if (!error && (!front->discard_mib || front->discard_mib > 2048))
		error = "discard_mib must be 1 to 2048";
	if (!error && front->in_turn > SIMFLASH_ALL_IN_TURN)
		error = "in_turn must be 0, 1 or 2";
	if (!error && front->stream_mib > 65536)
		error = "stream_mib must be at most 65536";
	if (error) {
		pr_err(SIMFLASH_NAME ": %s\n", error);
		return -EINVAL;
	}
	*limits = (struct simflash_limits){
		.page_bytes = FTL_PAGE_BYTES,
		.request_sectors = config->command_pages * (FTL_PAGE_BYTES >> SECTOR_SHIFT),
		.request_segments = config->command_pages,
		.discard_sectors = front->discard_mib * (SZ_1M >> SECTOR_SHIFT),
		.hardware_queues = front->hardware_queues,
		.fua = front->fua,
		.stable_pages = front->stable_pages,
		.removable = front->removable,
		.budget = front->budget,
		.in_turn = front->in_turn,
		.write_streams = config->streams > 1 ? config->streams - 1 : 0,
		.stream_mib = front->stream_mib,
	};
	return 0;
}

static int simflash_first(struct ftl_config *config, struct simflash_limits *limits)
{
	const struct simflash_front front = {
		.discard_mib = discard_mib,
		.hardware_queues = hardware_queues,
		.in_turn = in_turn,
		.budget = budget,
		.fua = fua,
		.stable_pages = stable_pages,
		.removable = removable,
		.stream_mib = stream_mib,
	};
	const char *too_large;

	memset(config, 0, sizeof(*config));
	too_large = simflash_config(config);
	if (too_large) {
		pr_err(SIMFLASH_NAME ": %s is too large\n", too_large);
		return -EINVAL;
	}
	return simflash_limits(config, limits, &front);
}

static bool simflash_set(struct ftl_config *config, struct simflash_front *front, const char *name,
			 unsigned long value)
{
	const struct {
		const char *name;
		unsigned long *value;
	} members[] = {
		{ "discard_mib", &front->discard_mib },
		{ "hardware_queues", &front->hardware_queues },
		{ "in_turn", &front->in_turn },
		{ "budget", &front->budget },
		{ "fua", &front->fua },
		{ "stable_pages", &front->stable_pages },
		{ "removable", &front->removable },
		{ "stream_mib", &front->stream_mib },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(members); i++) {
		if (!strcmp(members[i].name, name)) {
			*members[i].value = value;
			return true;
		}
	}
	return ftl_config_set(config, name, value) == FTL_PARAMETER_SET;
}

static int simflash_second(struct ftl_config *config, struct simflash_limits *limits)
{
	struct simflash_front front = { .discard_mib = 64, .hardware_queues = 1, .fua = true };
	char *copy = kstrdup(second, GFP_KERNEL), *rest = copy, *setting;
	unsigned long value;
	int error = 0;

	if (!copy)
		return -ENOMEM;
	ftl_config_default(config);
	while (!error && (setting = strsep(&rest, ","))) {
		char *name = strsep(&setting, ":");

		if (!setting || kstrtoul(setting, 0, &value) ||
		    !simflash_set(config, &front, name, value)) {
			pr_err(SIMFLASH_NAME ": second: %s is unknown or too large\n", name);
			error = -EINVAL;
		}
	}
	kfree(copy);
	return error ?: simflash_limits(config, limits, &front);
}

u32 simflash_devices(void)
{
	return second ? 2 : 1;
}

int simflash_profile(u32 device, struct ftl_config *config, struct simflash_limits *limits)
{
	return device ? simflash_second(config, limits) : simflash_first(config, limits);
}
