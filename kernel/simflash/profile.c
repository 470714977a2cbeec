// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's parameters are the device: experiments/devices/ has profiles.
 * Without any, it is one gibibyte that answers at once.
 */
#include <linux/blkdev.h>
#include <linux/moduleparam.h>

#include "simflash.h"

#define PARAMETER(name, type, value, text)		\
	static type name = value;			\
	module_param(name, type, 0444);			\
	MODULE_PARM_DESC(name, text)

PARAMETER(capacity_mib, uint, 1024, "what the host sees, MiB");
PARAMETER(spare_percent, uint, 100, "flash beyond the capacity, percent of it");
PARAMETER(channels, uint, 4, "channels");
PARAMETER(dies_per_channel, uint, 1, "dies on each channel");
PARAMETER(block_pages, uint, 256, "4 KiB pages that one erase clears, at most 256");
PARAMETER(row_pages, uint, 4, "4 KiB pages that a die reads or programs at once");
PARAMETER(cache_kib, uint, 256, "write cache, KiB");
PARAMETER(queue_depth, uint, 32, "commands in the device");
PARAMETER(request_kib, uint, 512, "largest read or write, KiB");
PARAMETER(discard_mib, uint, 64, "largest discard, MiB");
PARAMETER(policy, uint, 0, "a die serves: 0 in order of arrival, 1 reads first, 2 the foreground first");
PARAMETER(victim, uint, 0, "garbage collection empties: 0 the block with fewest valid pages, 1 by cost and benefit");
PARAMETER(wear_gap, uint, 0, "difference in erases at which cold data are moved to worn blocks; 0: never");
PARAMETER(log_kib, uint, 10240, "the defrag log at its largest, KiB");
PARAMETER(checkpoint_mib, uint, 0, "MiB programmed between checkpoints of the map; 0: only when asked");
PARAMETER(power_loss, bool, false, "flash keeps what a power cut needs, and the power can be cut");
PARAMETER(fua, bool, true, "writes may ask to be programmed before they complete");
PARAMETER(stable_pages, bool, false, "pages under write must not change (ext4 then waits)");
PARAMETER(stream_mib, uint, 0, "memory to write the command stream down in, MiB; 0: it is not");

PARAMETER(read_ns, ulong, 0, "a row from the cells to the die's register");
PARAMETER(program_ns, ulong, 0, "a row from the register to the cells");
PARAMETER(erase_ns, ulong, 0, "a block");
PARAMETER(channel_mb_s, uint, 0, "a channel, MB/s; 0: takes no time");
PARAMETER(link_mb_s, uint, 0, "between host and device, MB/s; 0: takes no time");
PARAMETER(read_command_ns, ulong, 0, "controller time of a read command");
PARAMETER(write_command_ns, ulong, 0, "controller time of a write command");
PARAMETER(flush_command_ns, ulong, 0, "controller time of a flush command");
PARAMETER(discard_command_ns, ulong, 0, "controller time of a discard command");
PARAMETER(discard_mib_ns, ulong, 0, "controller time of each MiB of a discard");
PARAMETER(response_ns, ulong, 0, "latency of every answer, passed in parallel");

int simflash_profile(struct ftl_config *config, struct simflash_limits *limits)
{
	const char *error;

	*config = (struct ftl_config){
		.capacity_pages = capacity_mib * (SZ_1M / FTL_PAGE_BYTES),
		.spare_percent = spare_percent,
		.channels = channels,
		.dies_per_channel = dies_per_channel,
		.block_pages = block_pages,
		.row_pages = row_pages,
		.cache_pages = cache_kib / (FTL_PAGE_BYTES / SZ_1K),
		.queue_depth = queue_depth,
		.command_pages = request_kib / (FTL_PAGE_BYTES / SZ_1K),
		.policy = policy,
		.victim = victim,
		.wear_gap = wear_gap,
		.log_pages = log_kib / (FTL_PAGE_BYTES / SZ_1K),
		.checkpoint_pages = checkpoint_mib * (SZ_1M / FTL_PAGE_BYTES),
		.power_loss = power_loss,
		.read_ns = read_ns,
		.program_ns = program_ns,
		.erase_ns = erase_ns,
		.channel_page_ns = ftl_page_ns(channel_mb_s),
		.link_page_ns = ftl_page_ns(link_mb_s),
		.read_command_ns = read_command_ns,
		.write_command_ns = write_command_ns,
		.flush_command_ns = flush_command_ns,
		.discard_command_ns = discard_command_ns,
		.discard_mib_ns = discard_mib_ns,
		.response_ns = response_ns,
	};
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
	if (!error && capacity_mib > SZ_8M)
		error = "capacity_mib must be at most 8388608";
	if (!error && (!discard_mib || discard_mib > 2048))
		error = "discard_mib must be 1 to 2048";
	if (!error && stream_mib > 65536)
		error = "stream_mib must be at most 65536";
	if (!error)
		return 0;
	pr_err(SIMFLASH_NAME ": %s\n", error);
	return -EINVAL;
}
