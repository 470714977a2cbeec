/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parameters of a device, in one table: the module's parameters, the names in
 * experiments/devices/, what the host tests and crates/replay read, and the
 * configuration in a command stream are all made of it.
 *
 *	X(name, unit, member of struct ftl_config, default, text)
 *
 * The unit is that of the parameter: NUMBER and NS are kept as they are, KIB and
 * MIB become pages of 4 KB, MB_S (10^6 bytes a second) becomes nanoseconds a page.
 */
#ifndef FTL_PARAMETERS_H
#define FTL_PARAMETERS_H

#define FTL_PARAMETERS(X)							\
	X(capacity_mib, MIB, capacity_pages, 1024,				\
	  "what the host sees, MiB")						\
	X(spare_percent, NUMBER, spare_percent, 100,				\
	  "flash beyond the capacity, percent of it")				\
	X(channels, NUMBER, channels, 4, "channels")				\
	X(dies_per_channel, NUMBER, dies_per_channel, 1, "dies on each channel") \
	X(block_pages, NUMBER, block_pages, 256,				\
	  "4 KiB pages that one erase clears, at most 256")			\
	X(row_pages, NUMBER, row_pages, 4,					\
	  "4 KiB pages that a die reads or programs at once")			\
	X(cache_kib, KIB, cache_pages, 256, "write cache, KiB")			\
	X(queue_depth, NUMBER, queue_depth, 32, "commands that the device accepts") \
	X(commands_at_once, NUMBER, commands_at_once, 0,			\
	  "commands in service, the others wait; 0: all that are accepted")	\
	X(request_kib, KIB, command_pages, 512, "largest read or write, KiB")	\
	X(policy, NUMBER, policy, 0,						\
	  "a die serves: 0 in order of arrival, 1 reads first, 2 the foreground first") \
	X(collect_yields, NUMBER, collect_yields, 0,				\
	  "1: at a die, the foreground's programs go before garbage collection") \
	X(front_rows, NUMBER, front_rows, 0,					\
	  "free rows that writes of the background leave to the foreground")	\
	X(victim, NUMBER, victim, 0,						\
	  "garbage collection empties: 0 the block with fewest valid pages, 1 by cost and benefit, 2 with heat") \
	X(streams, NUMBER, streams, 0,						\
	  "write streams with blocks of their own, at most 8; 0: all writes share blocks") \
	X(own_streams, NUMBER, own_streams, 0,					\
	  "1: a write without a stream gets one by the age of what it overwrites") \
	X(read_cache_kib, KIB, read_cache_pages, 0, "RAM for pages that will be read, KiB") \
	X(read_cache_announced, NUMBER, read_cache_announced, 0,		\
	  "1: that RAM keeps what the host announces; 0: what it read last")	\
	X(idle_percent, NUMBER, idle_percent, 0,				\
	  "kept free while the device is idle, percent of the spare flash; 0: a 64th of the blocks") \
	X(wear_gap, NUMBER, wear_gap, 0,					\
	  "difference in erases at which cold data are moved to worn blocks; 0: never") \
	X(log_kib, KIB, log_pages, 10240, "the defrag log at its largest, KiB")	\
	X(checkpoint_mib, MIB, checkpoint_pages, 0,				\
	  "MiB programmed between checkpoints of the map; 0: only when asked")	\
	X(map_cache_kib, KIB, map_cache_pages, 0,				\
	  "memory for the map, which is read from flash page by page, KiB; 0: for all of it") \
	X(map_page_lbas, NUMBER, map_page_lbas, 1024,				\
	  "4 KiB pages of the host's that a page of the map is for")		\
	X(slc_mib, MIB, slc_pages, 0,						\
	  "write buffer in flash that programs fast, MiB")			\
	X(unit_mib, MIB, unit_pages, 0,						\
	  "units that the device maps as a whole, MiB; 0: it maps pages")	\
	X(open_units, NUMBER, open_units, 4, "units that are written at a time, at most 16") \
	X(power_loss, NUMBER, power_loss, 0,					\
	  "1: flash keeps what a power cut needs, and the power can be cut")	\
	X(link_duplex, NUMBER, link_duplex, 0,					\
	  "1: reads and writes cross the link side by side")			\
	X(read_ns, NS, read_ns, 0, "a row from the cells to the die's register") \
	X(read_upper_ns, NS, read_upper_ns, 0,					\
	  "every other row, an upper page of the cells; 0: as read_ns")		\
	X(program_ns, NS, program_ns, 0, "a row from the register to the cells") \
	X(program_upper_ns, NS, program_upper_ns, 0,				\
	  "every other row, an upper page of the cells; 0: as program_ns")	\
	X(erase_ns, NS, erase_ns, 0, "a block")					\
	X(suspend_ns, NS, suspend_ns, 0,					\
	  "until a program or erase has made way for a read; 0: it does not")	\
	X(merge_ns, NS, merge_ns, 0, "until one unit less is written")		\
	X(slc_read_ns, NS, slc_read_ns, 0, "as read_ns, in the write buffer")	\
	X(slc_program_ns, NS, slc_program_ns, 0, "as program_ns, in the write buffer") \
	X(fold_after_ns, NS, fold_after_ns, 100000000,				\
	  "without commands, until the write buffer is emptied")		\
	X(channel_mb_s, MB_S, channel_page_ns, 0, "a channel, MB/s; 0: takes no time") \
	X(link_mb_s, MB_S, link_page_ns, 0,					\
	  "between host and device, MB/s; 0: takes no time")			\
	X(read_command_ns, NS, read_command_ns, 0, "controller time of a read command") \
	X(write_command_ns, NS, write_command_ns, 0, "controller time of a write command") \
	X(flush_command_ns, NS, flush_command_ns, 0, "controller time of a flush command") \
	X(discard_command_ns, NS, discard_command_ns, 0,			\
	  "controller time of a discard command")				\
	X(discard_mib_ns, NS, discard_mib_ns, 0, "controller time of each MiB of a discard") \
	X(response_ns, NS, response_ns, 0, "latency of every answer, passed in parallel")

#endif
