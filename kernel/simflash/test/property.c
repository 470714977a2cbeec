// SPDX-License-Identifier: GPL-2.0-only
/* Random streams of operations on random devices, against the model. */
#include <stdlib.h>

#include "bytes.h"
#include "suites.h"
#include "host.h"
#include "mirror.h"
#include "model.h"

static struct mirror_counts counts;

static const char *play_mirror(const uint8_t *bytes, size_t count)
{
	return mirror_play(bytes, count, &counts);
}

static const char *play_seed(const char *(*play)(const uint8_t *bytes, size_t count),
			     uint64_t seed, size_t count)
{
	uint8_t *bytes = malloc(count);
	const char *broken;

	bytes_fill(bytes, count, seed);
	broken = play(bytes, count);
	free(bytes);
	if (broken)
		fprintf(stderr, "seed %llu, %zu bytes: %s\n", (unsigned long long)seed, count,
			broken);
	return broken;
}

/* From the environment: how many times as many streams as usual. */
static uint64_t rounds(void)
{
	const char *text = getenv("ROUNDS");

	return text ? strtoull(text, NULL, 10) : 1;
}

static void many_short_streams(void)
{
	uint64_t seed;

	for (seed = 1; seed <= 2000 * rounds(); seed++)
		EXPECT(!play_seed(model_play, seed, 400));
}

static void few_long_streams(void)
{
	uint64_t seed;

	for (seed = 5001; seed <= 5000 + 40 * rounds(); seed++)
		EXPECT(!play_seed(model_play, seed, 60000));
}

static void power_cuts_lose_nothing_in_short_streams(void)
{
	uint64_t seed;

	for (seed = 1; seed <= 600 * rounds(); seed++)
		EXPECT(!play_seed(play_mirror, seed, 600));
	EXPECT(counts.cuts > 500);
	EXPECT(counts.spread_pages > 500);
	EXPECT(counts.map_pages > 500 && counts.map_misses > 500);
	EXPECT(counts.folded_pages > 500);
	EXPECT(counts.suspensions > 500);
	EXPECT(counts.unit_merges > 500);
	EXPECT(counts.held_writes > 20);
	EXPECT(counts.mixed_rows > 20);
	EXPECT(counts.prefetched_pages > 100);
}

static void power_cuts_lose_nothing_in_long_streams(void)
{
	uint64_t seed;

	for (seed = 7001; seed <= 7000 + 40 * rounds(); seed++)
		EXPECT(!play_seed(play_mirror, seed, 40000));
}

const struct test property_tests[] = {
	TEST(many_short_streams),
	TEST(few_long_streams),
	TEST(power_cuts_lose_nothing_in_short_streams),
	TEST(power_cuts_lose_nothing_in_long_streams),
	{ NULL, NULL },
};
