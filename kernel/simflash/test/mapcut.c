// SPDX-License-Identifier: GPL-2.0-only
/*
 * What FLUSH promises of the map: when it ends, the pages of the map with the entries of what
 * was written before it are in flash, too, and a power cut does not bring older ones back.
 */
#include "../ftl/internal.h"
#include "suites.h"
#include "device.h"
#include "invariants.h"

#define ROUNDS 12
#define WRITES 20

/* What was written last, and certain; where the entry is only the map's own matter. */
struct certain {
	uint64_t data;		/* 0: never written */
	uint64_t map_version;	/* of the map's page when the FLUSH ended */
};

struct run {
	struct device device;
	struct certain certain[1024];
	uint64_t pending[1024];	/* written since the last FLUSH that ended */
	bool flush_too_early;
};

/* Flash to spare, so that pages move only out of the write buffer. */
static struct ftl_config small_map(uint32_t slc_pages)
{
	struct ftl_config config = device_config();

	config.capacity_pages = 1024;
	config.block_pages = 16;
	config.power_loss = true;
	config.map_page_lbas = 16;
	config.map_cache_pages = 3;
	config.slc_pages = slc_pages;
	config.slc_program_ns = 250000;
	config.slc_read_ns = 40000;
	config.fold_after_ns = 1000000;
	return config;
}

/* Which version of an LBA's page of the map is in flash; 0: none. */
static uint64_t map_version(const struct ftl *ftl, uint32_t lba)
{
	uint32_t index = ftl->config.capacity_pages + lba / ftl->config.map_page_lbas;
	uint32_t physical;

	return ftl_map_find(ftl, index, &physical) ? ftl_store_page(ftl, physical)->word : 0;
}

/* The low bits of a map page's word are the sequence number that it was written with. */
static uint64_t version_sequence(uint64_t version)
{
	return version & ((1ull << 40) - 1);
}

static bool write_somewhere(struct run *run, uint32_t number)
{
	static char memory[FTL_PAGE_BYTES];
	/* All over, and between that to a few pages of the map, which change while they are written. */
	uint32_t lba = number % 2 ? number * 389 % 1024 : number * 13 % 80;

	run->pending[lba] = number + 1;
	fill_uniform(memory, 1, number + 1);
	return device_run(&run->device, device_command(&run->device, FTL_WRITE, lba, 1, memory));
}

static void is_certain(struct run *run, uint32_t lba)
{
	const struct ftl *ftl = run->device.ftl;
	uint64_t version = map_version(ftl, lba);
	uint32_t physical;

	if (!run->pending[lba])
		return;
	run->flush_too_early |= !ftl_map_find(ftl, lba, &physical) ||
				version_sequence(version) <= ftl_store_sequence(ftl, physical);
	run->certain[lba] = (struct certain){ run->pending[lba], version };
	run->pending[lba] = 0;
}

static bool flush(struct run *run)
{
	uint32_t lba;

	if (!device_run(&run->device, device_command(&run->device, FTL_FLUSH, 0, 0, NULL)))
		return false;
	for (lba = 0; lba < 1024; lba++)
		is_certain(run, lba);
	return true;
}

static bool rest(struct run *run)
{
	run->device.now_ns += 10000000;
	ftl_run(run->device.ftl, run->device.now_ns);
	return !ftl_power_is_off(run->device.ftl);
}

static void play(struct run *run)
{
	uint32_t round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < WRITES; i++) {
			if (!write_somewhere(run, round * WRITES + i))
				return;
		}
		if (!flush(run) || (round % 3 == 2 && !rest(run)))
			return;
	}
}

/* What the run may have lost, in a word; NULL if nothing. */
static const char *lost(struct run *run)
{
	struct ftl *ftl = run->device.ftl;
	uint32_t lba;
	uint64_t data;

	for (lba = 0; lba < 1024; lba++) {
		const struct certain *certain = &run->certain[lba];

		if (version_sequence(map_version(ftl, lba)) < version_sequence(certain->map_version))
			return "an older page of the map came back";
		device_read(&run->device, lba, &data);
		if (data != certain->data && (!run->pending[lba] || data != run->pending[lba]))
			return "what was flushed is gone";
	}
	return run->flush_too_early ? "a FLUSH ended before the map was in flash" : NULL;
}

static bool survives(struct run *run)
{
	struct ftl *ftl = run->device.ftl;
	const char *what;

	while (device_next(&run->device))
		;
	if (!ftl_power_is_off(ftl))
		ftl_cut_power(ftl, 0, 1);
	what = ftl_power_on(ftl, run->device.now_ns) ? broken_invariant(ftl) : "no memory";
	if (!what)
		what = lost(run);
	if (what)
		fprintf(stderr, "%s\n", what);
	return !what;
}

static uint64_t operations(struct run *run, struct ftl_stats *stats)
{
	ftl_read_stats(run->device.ftl, stats);
	return stats->row_programs + stats->collect_row_programs + stats->log_row_programs +
	       stats->map_row_programs + stats->erases + stats->log_erases;
}

static void cut_every_operation(uint32_t slc_pages)
{
	const struct ftl_config config = small_map(slc_pages);
	static struct run run;
	struct ftl_stats stats;
	uint64_t count, cut;

	memset(&run, 0, sizeof(run));
	device_open(&run.device, &config);
	play(&run);
	count = operations(&run, &stats);
	EXPECT(stats.map_row_programs > 50 && (!slc_pages || stats.folded_pages > 50));
	EXPECT(survives(&run));
	device_close(&run.device);
	for (cut = 1; cut <= count; cut++) {
		memset(&run, 0, sizeof(run));
		device_open(&run.device, &config);
		ftl_cut_power(run.device.ftl, cut, cut);
		play(&run);
		EXPECT(survives(&run));
		device_close(&run.device);
	}
}

static void a_flush_that_ended_has_the_map_in_flash_whenever_the_power_fails(void)
{
	cut_every_operation(0);
	cut_every_operation(128);
}

const struct test mapcut_tests[] = {
	TEST(a_flush_that_ended_has_the_map_in_flash_whenever_the_power_fails),
	{ NULL, NULL },
};
