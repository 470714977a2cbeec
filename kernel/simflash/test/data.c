// SPDX-License-Identifier: GPL-2.0-only
/* What is written is read back, from wherever it is. */
#include <stdlib.h>

#include "suites.h"
#include "device.h"
#include "invariants.h"

#define PAGES 128

static char in[PAGES * FTL_PAGE_BYTES], out[PAGES * FTL_PAGE_BYTES];

static void unwritten_pages_are_zero(void)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t word = 1;

	device_open(&device, &config);
	device_read(&device, config.capacity_pages - 1, &word);
	EXPECT(word == 0);
	device_close(&device);
}

static void data_survives_cache_and_flash(void)
{
	struct ftl_config config = device_config();
	struct device device;

	device_open(&device, &config);
	fill_mixed(in, PAGES, 1000);
	device_do(&device, FTL_WRITE, 77, PAGES, in);
	device_do(&device, FTL_READ, 77, PAGES, out);	/* the end of it is still in the cache */
	EXPECT(!memcmp(in, out, sizeof(in)));

	device_drain(&device);
	memset(out, 0, sizeof(out));
	device_do(&device, FTL_READ, 77, PAGES, out);
	EXPECT(!memcmp(in, out, sizeof(in)));
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void uniform_pages_take_no_memory(void)
{
	struct ftl_config config = device_config();
	struct ftl_usage usage;
	struct device device;

	device_open(&device, &config);
	fill_uniform(in, PAGES, 5);
	device_do(&device, FTL_WRITE, 0, PAGES, in);
	device_drain(&device);
	ftl_read_usage(device.ftl, &usage);
	EXPECT(usage.buffered_pages == 0);
	EXPECT(usage.mapped_pages == PAGES);

	fill_mixed(in, 1, 5);
	device_do(&device, FTL_WRITE, 500, 1, in);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	ftl_read_usage(device.ftl, &usage);
	EXPECT(usage.buffered_pages == 1);
	device_close(&device);
}

static void a_page_that_differs_in_one_word_is_not_uniform(void)
{
	struct ftl_content content;
	uint64_t page[512];
	size_t i;

	for (i = 0; i < 512; i++) {
		memset(page, 0x11, sizeof(page));
		page[i]++;
		EXPECT(ftl_capture(&content, page));
		EXPECT(content.buffer);
		ftl_content_drop(&content);
	}
}

static void the_newest_write_wins_while_an_older_is_programmed(void)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t word, version;

	device_open(&device, &config);
	for (version = 1; version <= 40; version++) {
		device_write(&device, 9, version);
		if (version % 3 == 0)
			device_do(&device, FTL_FLUSH, 0, 0, NULL);
		device_read(&device, 9, &word);
		EXPECT(word == version);
	}
	device_drain(&device);
	device_read(&device, 9, &word);
	EXPECT(word == 40);
	device_close(&device);
}

static void staged_pages_are_overwritten_in_place(void)
{
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;

	device_open(&device, &config);
	device_write(&device, 3, 1);
	device_write(&device, 3, 2);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.cache_overwrites == 1);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.page_programs == 1);
	device_close(&device);
}

static void discarded_pages_are_zero(void)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t word;

	device_open(&device, &config);
	fill_uniform(in, 8, 5);
	device_do(&device, FTL_WRITE, 0, 8, in);
	device_drain(&device);
	device_write(&device, 8, 5);		/* still in the cache */
	device_do(&device, FTL_DISCARD, 2, 7, NULL);
	device_do(&device, FTL_READ, 0, 9, out);
	EXPECT(!memcmp(out, in, 2 * FTL_PAGE_BYTES));
	fill_uniform(in, 7, 0);
	memset(in, 0, 7 * FTL_PAGE_BYTES);
	EXPECT(!memcmp(out + 2 * FTL_PAGE_BYTES, in, 7 * FTL_PAGE_BYTES));

	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	device_read(&device, 8, &word);
	EXPECT(word == 0);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void short_memory_is_told_before_a_write_starts(void)
{
	struct ftl_config config = device_config();
	struct device device;

	device_open(&device, &config);
	fill_mixed(in, PAGES, 1);
	host_pages_left = PAGES - 1;
	EXPECT(!device_command(&device, FTL_WRITE, 0, PAGES, in));
	host_pages_left = PAGES;
	EXPECT(!device_command(&device, FTL_WRITE, 0, PAGES, in));
	host_pages_left = -1;
	device_do(&device, FTL_WRITE, 0, PAGES, in);
	device_do(&device, FTL_READ, 0, PAGES, out);
	EXPECT(!memcmp(in, out, sizeof(in)));
	device_close(&device);
}

static void a_device_is_destroyed_with_pages_in_its_cache(void)
{
	struct ftl_config config = device_config();
	struct device device;

	device_open(&device, &config);
	fill_mixed(in, 6, 1);
	device_do(&device, FTL_WRITE, 0, 6, in);
	device_close(&device);
}

static void wrong_profiles_are_refused_with_a_sentence(void)
{
	struct ftl_config config = device_config();

	EXPECT(!ftl_config_error(&config));
	config.channels = 0;
	EXPECT(strstr(ftl_config_error(&config), "channels"));
	config.channels = 65;
	EXPECT(strstr(ftl_config_error(&config), "channels"));
	config = device_config();
	config.block_pages = 63;
	EXPECT(strstr(ftl_config_error(&config), "block_pages"));
	config = device_config();
	config.cache_pages = 4;
	EXPECT(strstr(ftl_config_error(&config), "cache"));
	config = device_config();
	config.queue_depth = 0;
	EXPECT(strstr(ftl_config_error(&config), "queue_depth"));
	config = device_config();
	config.capacity_pages = 0;
	EXPECT(strstr(ftl_config_error(&config), "capacity"));
	config.capacity_pages = 0x7fffffff;
	EXPECT(strstr(ftl_config_error(&config), "capacity"));
	config = device_config();
	config.policy = FTL_POLICIES;
	EXPECT(strstr(ftl_config_error(&config), "policy"));
}

const struct test data_tests[] = {
	TEST(unwritten_pages_are_zero),
	TEST(data_survives_cache_and_flash),
	TEST(uniform_pages_take_no_memory),
	TEST(a_page_that_differs_in_one_word_is_not_uniform),
	TEST(the_newest_write_wins_while_an_older_is_programmed),
	TEST(staged_pages_are_overwritten_in_place),
	TEST(discarded_pages_are_zero),
	TEST(short_memory_is_told_before_a_write_starts),
	TEST(a_device_is_destroyed_with_pages_in_its_cache),
	TEST(wrong_profiles_are_refused_with_a_sentence),
	{ NULL, NULL },
};
