// SPDX-License-Identifier: GPL-2.0-only
/* Random streams of operations on random devices, against the model. */
#include <stdlib.h>

#include "check.h"
#include "host.h"
#include "model.h"

/* xorshift64* */
static uint64_t random_word(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static const char *play_seed(uint64_t seed, size_t count)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
	uint8_t *bytes = malloc(count);
	const char *broken;
	size_t i;

	for (i = 0; i < count; i++)
		bytes[i] = random_word(&state) >> 56;
	broken = model_play(bytes, count);
	free(bytes);
	if (broken)
		fprintf(stderr, "seed %llu, %zu bytes: %s\n", (unsigned long long)seed, count,
			broken);
	return broken;
}

static void many_short_streams(void)
{
	uint64_t seed;

	for (seed = 1; seed <= 2000; seed++)
		EXPECT(!play_seed(seed, 400));
}

static void few_long_streams(void)
{
	uint64_t seed;

	for (seed = 5001; seed <= 5040; seed++)
		EXPECT(!play_seed(seed, 60000));
}

const struct test property_tests[] = {
	TEST(many_short_streams),
	TEST(few_long_streams),
	{ NULL, NULL },
};
