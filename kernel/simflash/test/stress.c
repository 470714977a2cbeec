// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random operations with remaps, collection and power cuts against the mirror,
 * as many as asked for. The last line is "N passed, N failed".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mirror.h"

#define BYTES 60000

static uint64_t random_word(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

int main(int arguments, char **argument)
{
	uint64_t wanted = arguments > 1 ? strtoull(argument[1], NULL, 0) : 10000000;
	struct mirror_counts counts = { 0 };
	uint8_t *bytes = malloc(BYTES);
	uint64_t seed;
	size_t i;

	for (seed = 1; counts.operations < wanted; seed++) {
		uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
		const char *broken;

		for (i = 0; i < BYTES; i++)
			bytes[i] = random_word(&state) >> 56;
		broken = mirror_play(bytes, BYTES, &counts);
		if (!broken)
			continue;
		fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, broken);
		printf("0 passed, 1 failed\n");
		return EXIT_FAILURE;
	}
	printf("%" PRIu64 " operations, %" PRIu64 " power cuts\n1 passed, 0 failed\n",
	       counts.operations, counts.cuts);
	free(bytes);
	return EXIT_SUCCESS;
}
