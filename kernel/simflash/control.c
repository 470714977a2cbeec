// SPDX-License-Identifier: GPL-2.0-only
/* Statistics: by ioctl for programs, in debugfs for people. */
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "simflash.h"
#include "simflash_ioctl.h"

static struct dentry *simflash_debugfs;

static const char *const simflash_op_name[SIMFLASH_OPS] = {
	[SIMFLASH_READ]		= "read",
	[SIMFLASH_WRITE]	= "write",
	[SIMFLASH_FLUSH]	= "flush",
	[SIMFLASH_DISCARD]	= "discard",
};

static void simflash_convert(struct simflash_stats *to, const struct ftl_stats *from)
{
	BUILD_BUG_ON(sizeof(to->commands) != sizeof(from->commands));
	BUILD_BUG_ON(sizeof(to->busy_ns) != sizeof(from->busy_ns));

	memcpy(to->commands, from->commands, sizeof(to->commands));
	memcpy(to->command_pages, from->command_pages, sizeof(to->command_pages));
	memcpy(to->command_ns, from->command_ns, sizeof(to->command_ns));
	memcpy(to->command_max_ns, from->command_max_ns, sizeof(to->command_max_ns));
	memcpy(to->busy_ns, from->busy_ns, sizeof(to->busy_ns));
	to->elapsed_ns = from->elapsed_ns;
	to->failed_commands = from->failed;
	to->fua_writes = from->fua_writes;
	to->cache_read_hit_pages = from->cache_read_hits;
	to->cache_overwrite_pages = from->cache_overwrites;
	to->unmapped_read_pages = from->unmapped_reads;
	to->row_reads = from->row_reads;
	to->page_reads = from->page_reads;
	to->row_programs = from->row_programs;
	to->page_programs = from->page_programs;
	to->padded_pages = from->padded_pages;
	to->erases = from->erases;
	to->die_read_wait_ns = from->die_read_wait_ns;
	to->die_read_wait_max_ns = from->die_read_wait_max_ns;
	to->die_program_wait_ns = from->die_program_wait_ns;
	to->die_program_wait_max_ns = from->die_program_wait_max_ns;
}

static void simflash_convert_usage(struct simflash_stats *to, const struct ftl_usage *from)
{
	to->mapped_pages = from->mapped_pages;
	to->buffered_pages = from->buffered_pages;
	to->cached_pages = from->cached_pages;
	to->free_rows = from->free_rows;
	to->total_rows = from->total_rows;
}

/* NULL if memory is short; the caller frees it. */
static struct simflash_stats *simflash_read_stats(struct simflash *dev)
{
	struct simflash_stats *stats = kzalloc(sizeof(*stats), GFP_KERNEL);
	struct ftl_stats *read = kzalloc(sizeof(*read), GFP_KERNEL);
	struct ftl_usage usage;

	if (!stats || !read) {
		kfree(stats);
		kfree(read);
		return NULL;
	}

	simflash_advance(dev);
	spin_lock_irq(&dev->lock);
	ftl_read_stats(dev->ftl, read);
	ftl_read_usage(dev->ftl, &usage);
	spin_unlock_irq(&dev->lock);

	stats->version = SIMFLASH_IOCTL_VERSION;
	stats->dies = dev->dies;
	simflash_convert(stats, read);
	simflash_convert_usage(stats, &usage);
	kfree(read);
	return stats;
}

static int simflash_ioctl_stats(struct simflash *dev, struct simflash_stats __user *to)
{
	struct simflash_stats *stats;
	u32 version;
	int error;

	if (get_user(version, &to->version))
		return -EFAULT;
	if (version != SIMFLASH_IOCTL_VERSION)
		return -EPROTO;
	stats = simflash_read_stats(dev);
	if (!stats)
		return -ENOMEM;
	error = copy_to_user(to, stats, sizeof(*stats)) ? -EFAULT : 0;
	kfree(stats);
	return error;
}

static void simflash_convert_ftl(struct simflash_ftl_stats *to, const struct ftl_stats *from,
				 const struct ftl_usage *usage)
{
	to->version = SIMFLASH_IOCTL_VERSION;
	to->collect_page_reads = from->collect_page_reads;
	to->collect_page_programs = from->collect_page_programs;
	to->collected_blocks = from->collected_blocks;
	to->level_blocks = from->level_blocks;
	to->log_page_programs = from->log_page_programs;
	to->log_erases = from->log_erases;
	to->log_compactions = from->log_compactions;
	to->checkpoints = from->checkpoints;
	to->remapped_pages = from->remapped_pages;
	to->elided_pages = from->elided_pages;
	to->spread_pages = from->spread_pages;
	to->map_look_ups = from->map_look_ups;
	to->map_misses = from->map_misses;
	to->map_page_reads = from->map_page_reads;
	to->map_page_programs = from->map_page_programs;
	to->slc_page_programs = from->slc_page_programs;
	to->folded_pages = from->folded_pages;
	to->suspensions = from->suspensions;
	to->unit_merges = from->unit_merges;
	to->mounts = from->mounts;
	to->mount_ns = from->mount_ns;
	to->remapped_now = usage->remapped_now;
	to->log_live_pages = usage->log_live_pages;
	to->log_buffered_entries = usage->log_buffered_entries;
	to->blocks = usage->blocks;
	to->erases_min = usage->erases_min;
	to->erases_max = usage->erases_max;
	to->erases_sum = usage->erases_sum;
}

/* False if memory is short. */
static bool simflash_read_ftl_stats(struct simflash *dev, struct simflash_ftl_stats *to)
{
	struct ftl_stats *stats = kzalloc(sizeof(*stats), GFP_KERNEL);
	struct ftl_usage usage;

	if (!stats)
		return false;
	memset(to, 0, sizeof(*to));
	simflash_advance(dev);
	spin_lock_irq(&dev->lock);
	ftl_read_stats(dev->ftl, stats);
	ftl_read_usage(dev->ftl, &usage);
	spin_unlock_irq(&dev->lock);
	simflash_convert_ftl(to, stats, &usage);
	kfree(stats);
	return true;
}

static int simflash_ioctl_ftl_stats(struct simflash *dev, struct simflash_ftl_stats __user *to)
{
	struct simflash_ftl_stats stats;
	u32 version;

	if (get_user(version, &to->version))
		return -EFAULT;
	if (version != SIMFLASH_IOCTL_VERSION)
		return -EPROTO;
	if (!simflash_read_ftl_stats(dev, &stats))
		return -ENOMEM;
	return copy_to_user(to, &stats, sizeof(stats)) ? -EFAULT : 0;
}

static int simflash_ioctl_reset_stats(struct simflash *dev)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	simflash_advance(dev);
	spin_lock_irq(&dev->lock);
	ftl_reset_stats(dev->ftl);
	spin_unlock_irq(&dev->lock);
	return 0;
}

static int simflash_ioctl_locked(struct simflash *dev, unsigned int cmd, void __user *arg)
{
	switch (cmd) {
	case SIMFLASH_IOC_STATS:
		return simflash_ioctl_stats(dev, arg);
	case SIMFLASH_IOC_RESET_STATS:
		return simflash_ioctl_reset_stats(dev);
	case SIMFLASH_IOC_FTL_STATS:
		return simflash_ioctl_ftl_stats(dev, arg);
	case SIMFLASH_IOC_IMAGE:
		return simflash_image_ioctl(dev, arg);
	default:
		return simflash_janus_ioctl(dev, cmd, arg);
	}
}

int simflash_ioctl(struct block_device *bdev, blk_mode_t mode, unsigned int cmd,
		   unsigned long arg)
{
	struct simflash *dev = bdev->bd_disk->private_data;
	int error = -ENODEV;

	if (_IOC_TYPE(cmd) != SIMFLASH_IOC_MAGIC)
		return -ENOTTY;
	mutex_lock(&dev->control);
	if (disk_live(bdev->bd_disk) && !dev->gone)
		error = simflash_ioctl_locked(dev, cmd, (void __user *)arg);
	mutex_unlock(&dev->control);
	return error;
}

static void simflash_show_commands(struct seq_file *file, const struct simflash_stats *stats)
{
	int op;

	seq_puts(file, "command          count        pages      mean_us       max_us\n");
	for (op = 0; op < SIMFLASH_OPS; op++)
		seq_printf(file, "%-10s %11llu %12llu %12llu %12llu\n", simflash_op_name[op],
			   stats->commands[op], stats->command_pages[op],
			   div64_u64(stats->command_ns[op],
				     max(stats->commands[op], 1ULL) * NSEC_PER_USEC),
			   div_u64(stats->command_max_ns[op], NSEC_PER_USEC));
}

static void simflash_show_flash(struct seq_file *file, const struct simflash_stats *stats)
{
	seq_printf(file, "failed_commands        %llu\n", stats->failed_commands);
	seq_printf(file, "fua_writes             %llu\n", stats->fua_writes);
	seq_printf(file, "cache_read_hit_pages   %llu\n", stats->cache_read_hit_pages);
	seq_printf(file, "cache_overwrite_pages  %llu\n", stats->cache_overwrite_pages);
	seq_printf(file, "unmapped_read_pages    %llu\n", stats->unmapped_read_pages);
	seq_printf(file, "row_reads              %llu\n", stats->row_reads);
	seq_printf(file, "page_reads             %llu\n", stats->page_reads);
	seq_printf(file, "row_programs           %llu\n", stats->row_programs);
	seq_printf(file, "page_programs          %llu\n", stats->page_programs);
	seq_printf(file, "padded_pages           %llu\n", stats->padded_pages);
	seq_printf(file, "erases                 %llu\n", stats->erases);
	seq_printf(file, "die_read_wait_us       %llu, worst %llu\n",
		   div_u64(stats->die_read_wait_ns, NSEC_PER_USEC),
		   div_u64(stats->die_read_wait_max_ns, NSEC_PER_USEC));
	seq_printf(file, "die_program_wait_us    %llu, worst %llu\n",
		   div_u64(stats->die_program_wait_ns, NSEC_PER_USEC),
		   div_u64(stats->die_program_wait_max_ns, NSEC_PER_USEC));
}

static void simflash_show_ftl(struct seq_file *file, const struct simflash_ftl_stats *stats)
{
	seq_printf(file, "\ncollect_page_programs  %llu\n", stats->collect_page_programs);
	seq_printf(file, "collected_blocks       %llu, %llu to level wear\n",
		   stats->collected_blocks, stats->level_blocks);
	seq_printf(file, "block_erases           %llu to %llu, %llu of %llu blocks\n",
		   stats->erases_min, stats->erases_max, stats->erases_sum, stats->blocks);
	seq_printf(file, "remapped_pages         %llu, %llu elided, %llu now\n",
		   stats->remapped_pages, stats->elided_pages, stats->remapped_now);
	seq_printf(file, "spread_pages           %llu\n", stats->spread_pages);
	seq_printf(file, "map_look_ups           %llu, %llu missed\n",
		   stats->map_look_ups, stats->map_misses);
	seq_printf(file, "map_page_programs      %llu, %llu read\n",
		   stats->map_page_programs, stats->map_page_reads);
	seq_printf(file, "slc_page_programs      %llu, %llu folded\n",
		   stats->slc_page_programs, stats->folded_pages);
	seq_printf(file, "suspensions            %llu\n", stats->suspensions);
	seq_printf(file, "unit_merges            %llu\n", stats->unit_merges);
	seq_printf(file, "log_page_programs      %llu, %llu live\n",
		   stats->log_page_programs, stats->log_live_pages);
	seq_printf(file, "log_compactions        %llu, %llu checkpoints\n",
		   stats->log_compactions, stats->checkpoints);
	seq_printf(file, "mounts                 %llu, the last took %llu us\n",
		   stats->mounts, div_u64(stats->mount_ns, NSEC_PER_USEC));
}

static int simflash_stats_show(struct seq_file *file, void *unused)
{
	struct simflash *dev = file->private;
	struct simflash_ftl_stats ftl;
	struct simflash_stats *stats;
	bool read;
	u32 dies;

	mutex_lock(&dev->control);
	stats = simflash_read_stats(dev);
	read = stats && simflash_read_ftl_stats(dev, &ftl);
	mutex_unlock(&dev->control);
	if (!read) {
		kfree(stats);
		return -ENOMEM;
	}
	seq_printf(file, "elapsed_us %llu\n\n", div_u64(stats->elapsed_ns, NSEC_PER_USEC));
	simflash_show_commands(file, stats);
	seq_putc(file, '\n');
	simflash_show_flash(file, stats);
	seq_puts(file, "\nbusy_dies      time_us\n");
	for (dies = 0; dies <= stats->dies; dies++)
		seq_printf(file, "%-9u %12llu\n", dies,
			   div_u64(stats->busy_ns[dies], NSEC_PER_USEC));
	seq_printf(file, "\nmapped_pages    %llu\n", stats->mapped_pages);
	seq_printf(file, "buffered_pages  %llu\n", stats->buffered_pages);
	seq_printf(file, "cached_pages    %llu\n", stats->cached_pages);
	seq_printf(file, "free_rows       %llu of %llu\n", stats->free_rows, stats->total_rows);
	simflash_show_ftl(file, &ftl);
	kfree(stats);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(simflash_stats);

/* debugfs is a convenience: a kernel without it still has the device. */
void simflash_control_add(struct simflash *dev)
{
	if (!simflash_debugfs)
		simflash_debugfs = debugfs_create_dir(SIMFLASH_NAME, NULL);
	dev->debugfs = debugfs_create_dir(dev->disk->disk_name, simflash_debugfs);
	debugfs_create_file("stats", 0400, dev->debugfs, dev, &simflash_stats_fops);
	simflash_stream_add(dev);
}

void simflash_control_remove(struct simflash *dev)
{
	debugfs_remove_recursive(dev->debugfs);
}

void simflash_control_exit(void)
{
	debugfs_remove_recursive(simflash_debugfs);
}
