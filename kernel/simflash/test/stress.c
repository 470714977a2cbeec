// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random operations with remaps, collection and power cuts against the mirror,
 * as many as asked for. The last line is "N passed, N failed".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bytes.h"
#include "mirror.h"

#define BYTES 60000

int main(int arguments, char **argument)
{
	uint64_t wanted = arguments > 1 ? strtoull(argument[1], NULL, 0) : 10000000;
	struct mirror_counts counts = { 0 };
	uint8_t *bytes = malloc(BYTES);
	uint64_t seed;

	for (seed = 1; counts.operations < wanted; seed++) {
			const char *broken;

		bytes_fill(bytes, BYTES, seed);
		broken = mirror_play(bytes, BYTES, &counts);
		if (!broken)
			continue;
		fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, broken);
		printf("0 passed, 1 failed\n");
		return EXIT_FAILURE;
	}
	printf("%" PRIu64 " operations, %" PRIu64 " power cuts, %" PRIu64 " map pages written, %"
	       PRIu64 " pages folded, %" PRIu64 " suspensions, %" PRIu64 " units merged, %" PRIu64 " writes held, %"
	       PRIu64 " rows mixed, %" PRIu64 " pages prefetched\n"
	       "1 passed, 0 failed\n", counts.operations, counts.cuts, counts.map_pages,
	       counts.folded_pages, counts.suspensions, counts.unit_merges,
	       counts.held_writes, counts.mixed_rows, counts.prefetched_pages);
	free(bytes);
	return EXIT_SUCCESS;
}
