// SPDX-License-Identifier: GPL-2.0-only
/* Images: a device's flash put into a new device, which goes on from there. */
#include <stdlib.h>

#include "../ftl/internal.h"
#include "suites.h"
#include "device.h"
#include "invariants.h"

#define MAX_LBAS 1024
#define MAX_PAGES 16

/* As image.c writes it. */
struct header {
	uint64_t magic, checksum, bytes;
	uint32_t version, lbas, dies, blocks, block_pages, row_pages, used, unused;
};

#define HEADER_WORDS (sizeof(struct header) / sizeof(uint64_t))

struct used {
	struct device device;
	uint64_t newest[MAX_LBAS];	/* each LBA's word, 0 if it has none */
	uint64_t state, next;
};

struct image {
	uint64_t *word;
	size_t bytes;
};

static char memory[MAX_PAGES * FTL_PAGE_BYTES];

static uint32_t below(uint64_t *state, uint32_t limit)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (*state >> 33) % limit;
}

static struct ftl_config random_config(uint64_t *state)
{
	struct ftl_config config = device_config();

	config.capacity_pages = 64 + below(state, MAX_LBAS - 64 + 1);
	config.spare_percent = below(state, 40);
	config.channels = 1 + below(state, 4);
	config.dies_per_channel = 1 + below(state, 2);
	config.row_pages = 1 + below(state, 4);
	config.block_pages = config.row_pages * (1 + below(state, 8));
	config.cache_pages = config.row_pages * (2 + below(state, 6));
	config.command_pages = MAX_PAGES;
	config.victim = below(state, FTL_VICTIMS);
	config.wear_gap = below(state, 4);
	config.log_pages = config.row_pages * 16;
	config.power_loss = below(state, 2);
	config.map_page_lbas = 1 + below(state, 12);
	config.map_cache_pages = below(state, 5);
	config.slc_pages = below(state, 2) * below(state, 200);
	config.fold_after_ns = 400;
	return config;
}

static void open_used(struct used *used, const struct ftl_config *config, uint64_t seed)
{
	memset(used, 0, sizeof(*used));
	used->state = seed;
	used->next = 1;
	device_open(&used->device, config);
}

static void write_pages(struct used *used, uint32_t lba, uint32_t pages)
{
	uint32_t i;

	for (i = 0; i < pages; i++) {
		used->newest[lba + i] = used->next++;
		if (used->next % 3)
			fill_uniform(memory + i * FTL_PAGE_BYTES, 1, used->newest[lba + i]);
		else
			fill_mixed(memory + i * FTL_PAGE_BYTES, 1, used->newest[lba + i]);
	}
	device_do(&used->device, FTL_WRITE, lba, pages, memory);
}

static void flush(struct used *used)
{
	device_do(&used->device, FTL_FLUSH, 0, 0, NULL);
	device_drain(&used->device);
}

/* Mostly writes to a part of the device, some everywhere, and discards. */
static void use(struct used *used, uint32_t commands)
{
	uint32_t lbas = used->device.config.capacity_pages;

	while (commands--) {
		uint32_t area = below(&used->state, 4) ? lbas / 4 + MAX_PAGES : lbas;
		uint32_t pages = 1 + below(&used->state, MAX_PAGES);
		uint32_t lba = below(&used->state, (area < lbas ? area : lbas) - pages + 1);

		if (below(&used->state, 8)) {
			write_pages(used, lba, pages);
		} else {
			device_do(&used->device, FTL_DISCARD, lba, pages, NULL);
			memset(&used->newest[lba], 0, pages * sizeof(used->newest[0]));
		}
	}
	flush(used);
}

/* Whether the first word of each page is the one it has to be. */
static bool holds(struct used *used)
{
	uint32_t lba;
	uint64_t word;

	for (lba = 0; lba < used->device.config.capacity_pages; lba++) {
		device_read(&used->device, lba, &word);
		if (word != used->newest[lba])
			return false;
	}
	return true;
}

static struct image take(const struct used *used)
{
	struct image image = { .bytes = ftl_image_bytes(used->device.ftl) };

	image.word = malloc(image.bytes);
	if (ftl_image_save(used->device.ftl, image.word, image.bytes)) {
		free(image.word);
		image.word = NULL;
	}
	return image;
}

/* What the image leaves in the pages. */
static void expect_loaded(struct used *used)
{
	uint32_t lba, physical;

	for (lba = 0; lba < used->device.config.capacity_pages; lba++)
		used->newest[lba] = ftl_map_find(used->device.ftl, lba, &physical) ?
				    0x61676564ull << 32 | lba : 0;
}

static bool same_map(const struct ftl *one, const struct ftl *other)
{
	return one->mapped_pages == other->mapped_pages &&
	       !memcmp(one->map, other->map, one->config.capacity_pages * sizeof(*one->map));
}

static bool same_erases(const struct ftl *one, const struct ftl *other)
{
	uint32_t i;

	for (i = 0; i < one->blocks; i++) {
		if (one->block[i].erases != other->block[i].erases)
			return false;
	}
	return true;
}

/* A used device, and a new one with its image; the caller closes both. */
static struct image copy(struct used *from, struct used *to, uint64_t seed)
{
	struct ftl_config config = random_config(&seed);
	struct image image;

	open_used(from, &config, seed);
	use(from, 400);
	image = take(from);
	open_used(to, &config, seed + 1);
	return image;
}

static void close_both(struct used *from, struct used *to, struct image *image)
{
	device_close(&from->device);
	device_close(&to->device);
	free(image->word);
}

static bool is_empty(const struct used *used)
{
	const struct ftl *ftl = used->device.ftl;
	uint32_t i;

	for (i = 0; i < ftl->blocks; i++) {
		if (ftl->block[i].page || ftl->block[i].old_page || ftl->block[i].erases)
			return false;
	}
	return !ftl->mapped_pages && ftl->next_sequence == 1 && !broken_invariant(ftl) &&
	       ftl_next_ns(ftl) == FTL_NEVER;
}

static void an_image_gives_the_map_and_the_wear(void)
{
	struct used from, to;
	struct image image, again;
	uint64_t seed;

	for (seed = 1; seed <= 60; seed++) {
		image = copy(&from, &to, seed);
		EXPECT(image.word);
		EXPECT(!ftl_image_load(to.device.ftl, image.word, image.bytes));
		EXPECT(same_map(from.device.ftl, to.device.ftl));
		EXPECT(same_erases(from.device.ftl, to.device.ftl));
		EXPECT(!broken_invariant(to.device.ftl));
		expect_loaded(&to);
		EXPECT(holds(&to));
		if (ftl_next_ns(to.device.ftl) == FTL_NEVER && !to.device.ftl->stats.erases &&
		    !to.device.ftl->stats.collect_page_reads) {
			again = take(&to);
			EXPECT(again.bytes == image.bytes);
			EXPECT(!memcmp(again.word, image.word, image.bytes));
			free(again.word);
		}
		close_both(&from, &to, &image);
	}
}

static void a_loaded_device_goes_on(void)
{
	struct used from, to;
	struct image image;
	uint64_t seed;

	for (seed = 101; seed <= 140; seed++) {
		image = copy(&from, &to, seed);
		EXPECT(!ftl_image_load(to.device.ftl, image.word, image.bytes));
		expect_loaded(&to);
		use(&to, 600);
		EXPECT(!broken_invariant(to.device.ftl));
		EXPECT(holds(&to));
		EXPECT(!to.device.ftl->stats.failed);
		close_both(&from, &to, &image);
	}
}

static bool remounts(struct used *used)
{
	ftl_cut_power(used->device.ftl, 0, 7);
	if (!ftl_power_on(used->device.ftl, used->device.now_ns))
		return false;
	device_drain(&used->device);
	return !broken_invariant(used->device.ftl) && holds(used);
}

/* As copy(), of this configuration; and the new one has loaded the image. */
static bool loaded(struct used *from, struct used *to, struct image *image,
		   const struct ftl_config *config, uint64_t seed)
{
	open_used(from, config, seed);
	use(from, 400);
	*image = take(from);
	open_used(to, config, seed);
	if (ftl_image_load(to->device.ftl, image->word, image->bytes))
		return false;
	expect_loaded(to);
	return true;
}

static void a_mount_of_a_loaded_device_finds_its_map(void)
{
	struct ftl_config config;
	struct used from, to;
	struct image image;
	uint64_t seed;

	for (seed = 201; seed <= 240; seed++) {
		uint64_t state = seed;

		config = random_config(&state);
		config.power_loss = true;
		EXPECT(loaded(&from, &to, &image, &config, seed));
		ftl_cut_power(to.device.ftl, 0, 7);
		EXPECT(ftl_power_on(to.device.ftl, to.device.now_ns));
		EXPECT(same_map(from.device.ftl, to.device.ftl));
		EXPECT(!broken_invariant(to.device.ftl));
		EXPECT(holds(&to));
		close_both(&from, &to, &image);
	}
}

/* Writes after the load, and what was loaded, outlive a cut together. */
static void what_is_written_after_a_load_is_newer(void)
{
	struct ftl_config config = device_config();
	struct used from, to;
	struct image image;
	uint64_t seed;

	config.capacity_pages = MAX_LBAS;
	config.command_pages = MAX_PAGES;
	config.spare_percent = 7;
	config.block_pages = 16;
	config.power_loss = true;
	for (seed = 301; seed <= 310; seed++) {
		EXPECT(loaded(&from, &to, &image, &config, seed));
		write_pages(&to, 8 * (seed - 300), MAX_PAGES);
		write_pages(&to, 500, MAX_PAGES);
		flush(&to);
		EXPECT(remounts(&to));
		close_both(&from, &to, &image);
	}
}

static void seal(struct image *image)
{
	struct header *header = (struct header *)image->word;
	uint64_t sum = 0;
	size_t i;

	for (i = 2; i < image->bytes / sizeof(uint64_t); i++) {
		sum = (sum ^ image->word[i]) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 32;
	}
	header->checksum = sum;
}

static struct image clone(const struct image *image)
{
	struct image made = { .word = malloc(image->bytes), .bytes = image->bytes };

	memcpy(made.word, image->word, image->bytes);
	return made;
}

static struct ftl_image_block *blocks_of(const struct image *image)
{
	return (struct ftl_image_block *)(image->word + HEADER_WORDS);
}

/* The ways in which one can be wrong and its checksum right, or not. */
static bool damage(struct image *image, int way)
{
	struct header *header = (struct header *)image->word;
	struct ftl_image_block *block = blocks_of(image);
	uint32_t *lba = (uint32_t *)(block + header->blocks);
	uint32_t free = header->blocks - header->used;
	uint32_t i = 0;

	switch (way) {
	case 0: header->magic++; return true;
	case 1: header->version++; break;
	case 2: header->lbas++; break;
	case 3: header->blocks--; break;
	case 4: header->dies++; break;
	case 5: header->row_pages++; break;
	case 6: header->used = ~0u; break;
	case 7: image->bytes -= 8; return true;
	case 8: image->bytes = sizeof(*header) - 8; return true;
	case 9: header->bytes = ~(uint64_t)7; return true;
	case 10: image->word[image->bytes / 16] ^= 1; return true;	/* not sealed */
	case 11: block[0].block = header->blocks; break;
	case 12: block[0].block = block[1].block; break;
	case 13: block[0].state = 9; break;
	case 14: block[0].state = 2; break;
	case 15: block[free].state = 0; break;
	case 16: lba[0] = header->lbas; break;
	case 17:	/* twice the same LBA */
		while (lba[i] >= header->lbas)
			i++;
		lba[i ? 0 : 1] = lba[i];
		break;
	case 18:	/* a block in use has nothing */
		for (i = 0; i < header->block_pages; i++)
			lba[i] = FTL_TORN_LBA;
		break;
	case 19: block[0].erases ^= 1; return true;	/* makes sense: only the checksum tells */
	default: return false;
	}
	seal(image);
	return true;
}

static void a_damaged_image_changes_nothing(void)
{
	struct used from, to;
	struct image image, bad;
	int way;

	image = copy(&from, &to, 1000);
	EXPECT(((struct header *)image.word)->used && image.word);
	for (way = 0;; way++) {
		bad = clone(&image);
		if (!damage(&bad, way)) {
			free(bad.word);
			break;
		}
		if (!ftl_image_load(to.device.ftl, bad.word, bad.bytes))
			fprintf(stderr, "damage %d was not seen\n", way);
		EXPECT(is_empty(&to));
		free(bad.word);
	}
	EXPECT(way == 20);
	EXPECT(!ftl_image_load(to.device.ftl, image.word, image.bytes));
	close_both(&from, &to, &image);
}

/* A word is changed at random and the checksum made right: refused, or a device that works. */
static void no_image_is_trusted(void)
{
	struct used from, to;
	struct image image, bad;
	uint32_t refused = 0;
	uint64_t state = 5;
	int round;

	image = copy(&from, &to, 1001);
	for (round = 0; round < 3000; round++) {
		uint32_t *half;

		bad = clone(&image);
		half = (uint32_t *)bad.word + below(&state, bad.bytes / sizeof(*half));
		*half = below(&state, 2) ? *half ^ 1u << below(&state, 32) :
					   below(&state, 2000);
		seal(&bad);
		if (ftl_image_load(to.device.ftl, bad.word, bad.bytes)) {
			refused++;
			EXPECT(is_empty(&to));
		} else {
			EXPECT(!broken_invariant(to.device.ftl));
			if (round % 16 == 0) {
				expect_loaded(&to);
				use(&to, 50);
				EXPECT(holds(&to));
			}
			device_close(&to.device);
			open_used(&to, &from.device.config, round);
		}
		free(bad.word);
	}
	EXPECT(refused > 500 && refused < 3000);
	close_both(&from, &to, &image);
}

static void where_memory_is_short_nothing_is_loaded(void)
{
	struct used from, to;
	struct image image;

	image = copy(&from, &to, 1002);
	for (host_pages_left = 0; host_pages_left < 3; host_pages_left++) {
		long left = host_pages_left;

		EXPECT(ftl_image_load(to.device.ftl, image.word, image.bytes));
		EXPECT(is_empty(&to));
		host_pages_left = left;
	}
	host_pages_left = -1;
	close_both(&from, &to, &image);
}

static void only_devices_at_rest_are_saved_and_only_new_ones_loaded(void)
{
	struct used from, to;
	struct image image;

	image = copy(&from, &to, 1003);
	write_pages(&to, 0, 1);
	EXPECT(ftl_image_save(to.device.ftl, image.word, ftl_image_bytes(to.device.ftl)));
	flush(&to);
	EXPECT(ftl_image_load(to.device.ftl, image.word, image.bytes));
	EXPECT(holds(&to));
	close_both(&from, &to, &image);
}

const struct test image_tests[] = {
	TEST(an_image_gives_the_map_and_the_wear),
	TEST(a_loaded_device_goes_on),
	TEST(a_mount_of_a_loaded_device_finds_its_map),
	TEST(what_is_written_after_a_load_is_newer),
	TEST(a_damaged_image_changes_nothing),
	TEST(no_image_is_trusted),
	TEST(where_memory_is_short_nothing_is_loaded),
	TEST(only_devices_at_rest_are_saved_and_only_new_ones_loaded),
	{ NULL, NULL },
};
