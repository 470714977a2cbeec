// SPDX-License-Identifier: GPL-2.0-only
/* The power is cut at every program and erase of a defragmentation; and how long a mount takes. */
#include <stdlib.h>

#include "../ftl/internal.h"
#include "suites.h"
#include "device.h"
#include "invariants.h"
#include "profile.h"

#define FILES 8
#define FILE_PAGES 24
#define FILE_LBA(file) ((file) * FILE_PAGES)
#define NEW_LBA(file) (512 + (file) * FILE_PAGES)
#define DATA(file, page) (1000 + (file) * 100 + (page))

static char memory[128 * FTL_PAGE_BYTES];

/* Where the host's metadata say that a file is: that is what its journal decides. */
struct run {
	struct device device;
	bool moved[FILES];
};

static struct ftl_config small_device(void)
{
	struct ftl_config config = device_config();

	config.capacity_pages = 1024;
	config.spare_percent = 10;
	config.block_pages = 16;
	config.log_pages = 64;
	config.power_loss = true;
	return config;
}

/* With three of 64 pages of the map in RAM, and a buffer of 128 pages that is emptied at rest. */
static struct ftl_config with_map_and_buffer(void)
{
	struct ftl_config config = small_device();

	config.map_page_lbas = 16;
	config.map_cache_pages = 3;
	config.slc_pages = 128;
	config.slc_program_ns = 250000;
	config.slc_read_ns = 40000;
	config.fold_after_ns = 1000000;
	return config;
}

/* Each false once the power is gone. */
static bool control(struct run *run, enum ftl_op op, const struct ftl_range *range)
{
	return device_run(&run->device, device_control(&run->device, op, range, !!range));
}

static bool write_page(struct run *run, uint32_t lba, uint64_t word)
{
	fill_uniform(memory, 1, word);
	return device_run(&run->device, device_command(&run->device, FTL_WRITE, lba, 1, memory));
}

static bool flush(struct run *run)
{
	return device_run(&run->device, device_command(&run->device, FTL_FLUSH, 0, 0, NULL));
}

/* Where there is a buffer nobody asks for anything until some of it is empty. */
static bool rest(struct run *run)
{
	if (!run->device.config.slc_pages)
		return true;
	run->device.now_ns += 20000000;
	ftl_run(run->device.ftl, run->device.now_ns);
	return !ftl_power_is_off(run->device.ftl);
}

/* Files page by page in turn, among overwrites: a full device, collected many times. */
static void age(struct run *run)
{
	uint32_t file, page, i;

	for (i = 0; i < 6000; i++)
		write_page(run, 256 + i * 37 % 768, i);
	for (page = 0; page < FILE_PAGES; page++) {
		for (file = 0; file < FILES; file++)
			write_page(run, FILE_LBA(file) + page, DATA(file, page));
	}
	device_run(&run->device,
		   device_command(&run->device, FTL_DISCARD, 512, FILES * FILE_PAGES, NULL));
	flush(run);
}

/*
 * The dissertation's protocol (figure 30), two files at a time: remap, flush
 * the log, write the metadata, commit. Other data are written meanwhile, so
 * that the collector is at work.
 */
static void defragment(struct run *run)
{
	uint32_t file, i;

	for (file = 0; file < FILES; file++) {
		const struct ftl_range range = {
			FILE_LBA(file), NEW_LBA(file), FILE_PAGES,
		};

		if (!control(run, FTL_REMAP, &range))
			return;
		for (i = 0; i < 60; i++) {
			if (!write_page(run, 800 + (file * 60 + i) * 5 % 200, file + i))
				return;
		}
		if (!rest(run))
			return;
		if (file % 2 == 0)
			continue;
		if (!control(run, FTL_LOG_FLUSH, NULL) || !flush(run))
			return;
		run->moved[file] = run->moved[file - 1] = true;
		if (!control(run, FTL_LOG_COMMIT, NULL))
			return;
		if (file == 3 && !control(run, FTL_CHECKPOINT, NULL))
			return;
	}
}

static uint64_t operations(struct run *run)
{
	struct ftl_stats stats;

	ftl_read_stats(run->device.ftl, &stats);
	return stats.row_programs + stats.collect_row_programs + stats.log_row_programs +
	       stats.map_row_programs + stats.erases + stats.log_erases;
}

static uint32_t wrong_pages(struct run *run)
{
	uint32_t wrong = 0;
	uint32_t file, page;
	uint64_t word;

	for (file = 0; file < FILES; file++) {
		for (page = 0; page < FILE_PAGES; page++) {
			uint32_t lba = run->moved[file] ? NEW_LBA(file) : FILE_LBA(file);

			device_read(&run->device, lba + page, &word);
			wrong += word != DATA(file, page);
		}
	}
	return wrong;
}

static bool mounts_again(struct run *run)
{
	struct ftl *ftl = run->device.ftl;

	while (device_next(&run->device))
		;
	if (!ftl_power_is_off(ftl))
		ftl_cut_power(ftl, 0, 1);
	return ftl_power_on(ftl, run->device.now_ns) && !broken_invariant(ftl);
}

/* The files are whole before the host has decided anything, and when it has. */
static bool survives(struct run *run)
{
	struct ftl *ftl = run->device.ftl;
	bool last_moved = false;
	uint32_t file;

	if (!mounts_again(run) || wrong_pages(run))
		return false;
	for (file = 0; file < FILES; file++)
		last_moved = run->moved[file] ? true : last_moved;
	/* Moves that are open are of the last pair: its metadata tell. */
	if (!ftl_log_committed(ftl) &&
	    !control(run, last_moved && run->moved[run->device.ftl->log.moved[0].src / FILE_PAGES] ?
			  FTL_LOG_COMMIT : FTL_LOG_DISCARD, NULL))
		return false;
	return !wrong_pages(run) && !broken_invariant(ftl);
}

static void open_run(struct run *run, const struct ftl_config *config)
{
	memset(run, 0, sizeof(*run));
	device_open(&run->device, config);
	ftl_prepare_remap(run->device.ftl);
	age(run);
	ftl_reset_stats(run->device.ftl);
}

/* What was cut in half, and that the map and the buffer were among it where there are such. */
static bool enough_to_cut(struct run *run, uint64_t count)
{
	const struct ftl_config *config = &run->device.config;
	struct ftl_stats stats;

	ftl_read_stats(run->device.ftl, &stats);
	printf("       %llu programs and erases, of them %llu rows of the map; %llu pages folded\n",
	       (unsigned long long)count, (unsigned long long)stats.map_row_programs,
	       (unsigned long long)stats.folded_pages);
	return count > 50 && (!config->map_cache_pages || stats.map_row_programs > 20) &&
	       (!config->slc_pages || stats.folded_pages > 20);
}

/* Runs that are cut at each operation, one after another. */
struct cut_runs {
	void (*open)(struct run *run, const struct ftl_config *config);
	void (*work)(struct run *run);
	bool (*survives)(struct run *run);
};

static void cut_each(const struct cut_runs *runs, const struct ftl_config *config, uint64_t count)
{
	static struct run run;
	uint64_t cut;

	for (cut = 1; cut <= count; cut++) {
		runs->open(&run, config);
		ftl_cut_power(run.device.ftl, cut, cut);
		runs->work(&run);
		EXPECT(runs->survives(&run));
		device_close(&run.device);
	}
}

static void cut_every_operation_of_a_defragmentation(struct ftl_config config)
{
	const struct cut_runs runs = { open_run, defragment, survives };
	static struct run run;
	uint64_t count;

	open_run(&run, &config);
	defragment(&run);
	count = operations(&run);
	EXPECT(!wrong_pages(&run));
	EXPECT(run.moved[FILES - 1]);
	EXPECT(enough_to_cut(&run, count));
	device_close(&run.device);
	cut_each(&runs, &config, count);
}

static void a_cut_at_every_operation_of_a_defragmentation_loses_nothing(void)
{
	cut_every_operation_of_a_defragmentation(small_device());
	cut_every_operation_of_a_defragmentation(with_map_and_buffer());
}

#define JOURNAL_LBA 500

/*
 * What ext4's EXT4_IOC_MOVE_EXT sends when the copy is elided: data to the new
 * place, a flush, and then the journal's commit, here a page that says how many
 * files are at their new place. The old place is discarded after that.
 */
static bool commit(struct run *run, uint32_t files)
{
	struct ftl_cmd *cmd;

	fill_uniform(memory, 1, files);
	cmd = device_command(&run->device, FTL_WRITE, JOURNAL_LBA, 1, memory);
	cmd->fua = true;
	return device_run(&run->device, cmd);
}

static bool move_elided(struct run *run, uint32_t file)
{
	const struct ftl_range range = { FILE_LBA(file), NEW_LBA(file), FILE_PAGES };
	uint32_t page;

	if (!control(run, FTL_ARM, &range))
		return false;
	for (page = 0; page < FILE_PAGES; page++) {
		if (!write_page(run, NEW_LBA(file) + page, DATA(file, page)))
			return false;
		/* Somebody else's, so that the collector is at work. */
		if (!write_page(run, 800 + (file * FILE_PAGES + page) * 5 % 200, page))
			return false;
	}
	if (!flush(run) || !control(run, FTL_ARM, NULL) || !commit(run, file + 1))
		return false;
	run->moved[file] = true;
	return device_run(&run->device, device_command(&run->device, FTL_DISCARD, FILE_LBA(file),
						       FILE_PAGES, NULL));
}

static void defragment_elided(struct run *run)
{
	uint32_t file;

	for (file = 0; file < FILES; file++) {
		if (!move_elided(run, file) || !rest(run))
			return;
		if (file == 3 && !control(run, FTL_CHECKPOINT, NULL))
			return;
	}
}

/* What the journal says after a mount; a commit that was not acknowledged may be there. */
static bool replay_journal(struct run *run)
{
	uint32_t file, acknowledged = 0;
	uint64_t files;

	while (acknowledged < FILES && run->moved[acknowledged])
		acknowledged++;
	device_read(&run->device, JOURNAL_LBA, &files);
	if (files < acknowledged || files > acknowledged + 1)
		return false;
	for (file = 0; file < FILES; file++)
		run->moved[file] = file < files;
	return true;
}

static bool survives_elided(struct run *run)
{
	return mounts_again(run) && replay_journal(run) && !wrong_pages(run) &&
	       ftl_log_committed(run->device.ftl);
}

static void open_with_journal(struct run *run, const struct ftl_config *config)
{
	open_run(run, config);
	commit(run, 0);
}

static void cut_every_operation_of_an_elided_copy(struct ftl_config config)
{
	const struct cut_runs runs = { open_with_journal, defragment_elided, survives_elided };
	static struct run run;
	struct ftl_stats stats;
	uint64_t count;

	open_with_journal(&run, &config);
	defragment_elided(&run);
	count = operations(&run);
	ftl_read_stats(run.device.ftl, &stats);
	EXPECT(!wrong_pages(&run));
	EXPECT(run.moved[FILES - 1]);
	EXPECT(stats.elided_pages == FILES * FILE_PAGES);
	EXPECT(enough_to_cut(&run, count));
	device_close(&run.device);
	cut_each(&runs, &config, count);
}

static void a_cut_at_every_operation_of_an_elided_copy_loses_nothing(void)
{
	cut_every_operation_of_an_elided_copy(small_device());
	cut_every_operation_of_an_elided_copy(with_map_and_buffer());
}

/* Each file on one die: three rows of somebody else's between two of its own. */
static void lay_on_one_die(struct run *run)
{
	uint32_t file, page;

	for (file = 0; file < FILES; file++) {
		for (page = 0; page < FILE_PAGES; page += 4) {
			fill_uniform(memory, 4, DATA(file, page));
			device_run(&run->device,
				   device_command(&run->device, FTL_WRITE, FILE_LBA(file) + page, 4,
						  memory));
			fill_uniform(memory, 12, 1);
			device_run(&run->device,
				   device_command(&run->device, FTL_WRITE,
						  256 + (file * FILE_PAGES + page) * 3, 12, memory));
		}
	}
	flush(run);
}

static uint32_t worst_dof_p(struct run *run)
{
	uint32_t worst = 0;
	uint32_t file;

	for (file = 0; file < FILES; file++) {
		const struct ftl_range range = { FILE_LBA(file), FTL_NONE, FILE_PAGES };
		uint32_t permille = ftl_dof_p_permille(run->device.ftl, &range, 1);

		if (permille > worst)
			worst = permille;
	}
	return worst;
}

/* Meanwhile the file is written, and others that have the collector work. */
static bool spread_file(struct run *run, uint32_t file, uint32_t writes)
{
	const struct ftl_range range = { FILE_LBA(file), FTL_NONE, FILE_PAGES };
	struct ftl_cmd *spread = device_control(&run->device, FTL_SPREAD, &range, 1);
	bool good = true;
	uint32_t i;

	device_submit(&run->device, spread);
	for (i = 0; good && i < writes; i++)
		good = write_page(run, 800 + (file * writes + i) * 5 % 200, i) &&
		       (i % 8 || write_page(run, FILE_LBA(file) + i, DATA(file, i)));
	while (spread->under_way && device_next(&run->device))
		;
	good &= spread->status == FTL_OK;
	device_release(&run->device, spread);
	return good;
}

static void spread_files(struct run *run, uint32_t writes)
{
	uint32_t file;

	for (file = 0; file < FILES && spread_file(run, file, writes) && rest(run); file++)
		;
}

static void open_on_one_die(struct run *run, const struct ftl_config *config)
{
	open_run(run, config);
	lay_on_one_die(run);
}

static void spread_written_files(struct run *run)
{
	spread_files(run, 20);
}

static bool keeps_all_pages(struct run *run)
{
	return mounts_again(run) && !wrong_pages(run);
}

static void cut_every_operation_of_a_redistribution(struct ftl_config config)
{
	const struct cut_runs runs = { open_on_one_die, spread_written_files, keeps_all_pages };
	static struct run run;
	struct ftl_stats stats;
	uint64_t count;

	open_on_one_die(&run, &config);
	ftl_reset_stats(run.device.ftl);
	EXPECT(worst_dof_p(&run) > 500);
	spread_written_files(&run);
	count = operations(&run);
	ftl_read_stats(run.device.ftl, &stats);
	EXPECT(!wrong_pages(&run));
	EXPECT(stats.spread_pages > 2 * FILE_PAGES);
	EXPECT(enough_to_cut(&run, count));
	spread_files(&run, 0);
	/* Of so small a map rows are written between those of a file, and take their dies. */
	EXPECT(config.map_cache_pages || worst_dof_p(&run) < 500);
	EXPECT(!wrong_pages(&run));
	device_close(&run.device);
	cut_each(&runs, &config, count);
}

static void a_cut_at_every_operation_of_a_redistribution_loses_nothing(void)
{
	cut_every_operation_of_a_redistribution(small_device());
	cut_every_operation_of_a_redistribution(with_map_and_buffer());
}

#define MOVED_LBA 32

/* After a cut in a checkpoint a page is moved, and many mounts follow. */
static bool keeps_what_is_logged_behind(uint64_t cut, uint64_t seed)
{
	struct ftl_config config = device_config();
	const struct ftl_range range = { 0, MOVED_LBA, 1 };
	static struct run run;
	uint64_t word = 0;
	uint32_t i;

	config.capacity_pages = 64;
	config.channels = 2;
	config.dies_per_channel = 1;
	config.row_pages = 1;
	config.block_pages = 2;
	config.cache_pages = 4;
	config.log_pages = 16;
	config.power_loss = true;
	device_open(&run.device, &config);
	ftl_prepare_remap(run.device.ftl);
	write_page(&run, 0, DATA(0, 0));
	flush(&run);
	ftl_cut_power(run.device.ftl, cut, seed);
	control(&run, FTL_CHECKPOINT, NULL);
	ftl_cut_power(run.device.ftl, 0, 1);
	ftl_power_on(run.device.ftl, run.device.now_ns);
	control(&run, FTL_REMAP, &range);
	control(&run, FTL_LOG_COMMIT, NULL);
	for (i = 0; i < 4; i++) {
		run.device.now_ns += 100000000;		/* a stripe is erased meanwhile */
		flush(&run);
		ftl_cut_power(run.device.ftl, 0, 1);
		ftl_power_on(run.device.ftl, run.device.now_ns);
	}
	device_read(&run.device, MOVED_LBA, &word);
	device_close(&run.device);
	return word == DATA(0, 0);
}

/* The pages of a snapshot that was cut short are erased; the log goes on without them. */
static void the_log_does_not_hang_on_a_snapshot_that_was_cut_short(void)
{
	uint64_t cut, seed;

	for (seed = 1; seed <= 8; seed++) {
		for (cut = 1; cut <= 3; cut++)
			EXPECT(keeps_what_is_logged_behind(cut, seed));
	}
}

/* As many remaps as the log takes, each an entry of its own. */
static void fill_log(struct device *device, uint32_t area)
{
	static struct ftl_range range[FTL_MAX_RANGES];
	struct ftl_usage usage;
	uint32_t round = 0, i;

	do {
		for (i = 0; i < FTL_MAX_RANGES; i++) {
			uint32_t lba = (round * FTL_MAX_RANGES + i) % (area / 4) * 2;

			range[i] = (struct ftl_range){ lba, area + lba, 1 };
			if (round * FTL_MAX_RANGES / (area / 4) % 2)
				range[i] = (struct ftl_range){ area + lba, lba, 1 };
		}
		device_submit(device, device_control(device, FTL_REMAP, range, FTL_MAX_RANGES));
		device_drain(device);
		device_submit(device, device_control(device, FTL_LOG_COMMIT, NULL, 0));
		device_drain(device);
		round++;
		ftl_read_usage(device->ftl, &usage);
	} while (usage.log_live_pages + 32 < device->config.log_pages);
}

/* After a checkpoint, 512 MiB of writes and the largest log. */
static uint64_t mount_ns(const char *profile)
{
	struct ftl_config config;
	struct ftl_stats stats;
	struct device device;
	uint32_t lba;

	if (!profile_read(profile, &config))
		return FTL_NEVER;
	config.power_loss = true;
	device_open(&device, &config);
	ftl_prepare_remap(device.ftl);
	device_submit(&device, device_control(&device, FTL_CHECKPOINT, NULL, 0));
	device_drain(&device);
	for (lba = 0; lba < 131072; lba += 128) {
		fill_uniform(memory, 128, lba + 1);
		device_do(&device, FTL_WRITE, lba, 128, memory);
	}
	fill_log(&device, 131072);
	ftl_cut_power(device.ftl, 0, 1);
	if (!ftl_power_on(device.ftl, device.now_ns) || broken_invariant(device.ftl))
		return FTL_NEVER;
	ftl_read_stats(device.ftl, &stats);
	device_close(&device);
	printf("       %s mounts in %llu ms of its time, log %u pages\n", profile,
	       (unsigned long long)stats.mount_ns / 1000000, config.log_pages);
	return stats.mount_ns;
}

static void a_mount_with_the_largest_log_takes_less_than_a_second(void)
{
	EXPECT(mount_ns("emmc") <= 1000000000);
	EXPECT(mount_ns("ufs") <= 1000000000);
}

const struct test powercut_tests[] = {
	TEST(a_cut_at_every_operation_of_a_defragmentation_loses_nothing),
	TEST(a_cut_at_every_operation_of_an_elided_copy_loses_nothing),
	TEST(a_cut_at_every_operation_of_a_redistribution_loses_nothing),
	TEST(the_log_does_not_hang_on_a_snapshot_that_was_cut_short),
	TEST(a_mount_with_the_largest_log_takes_less_than_a_second),
	{ NULL, NULL },
};
