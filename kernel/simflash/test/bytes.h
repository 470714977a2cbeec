/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes that decide what a model plays: random ones, or the fuzzer's. */
#ifndef BYTES_H
#define BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "../ftl/ftl.h"

struct bytes {
	const uint8_t *next;
	size_t left;
};

/* The next byte, 0 once there are none left. */
uint8_t bytes_take(struct bytes *bytes);

/* Less than @limit, of two bytes. */
uint32_t bytes_below(struct bytes *bytes, uint32_t limit);

/*
 * All of a device's shape but its size, and the times that decide what happens rather
 * than when: a map cache of a few pages, a write buffer, units, suspension, or none of them.
 */
void bytes_config(struct bytes *bytes, struct ftl_config *config);

/* The same for the same seed. */
void bytes_fill(uint8_t *memory, size_t count, uint64_t seed);

#endif
