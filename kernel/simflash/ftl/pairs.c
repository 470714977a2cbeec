// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hash table of pairs of page numbers; a key may have several values. All
 * memory is taken when it is made, for pairs are added where nothing can wait.
 */
#include "internal.h"

static uint32_t *bucket_of(const struct ftl_pairs *pairs, uint32_t key)
{
	return &pairs->bucket[(uint32_t)(key * 0x9e3779b1u) >> pairs->shift];
}

bool ftl_pairs_create(struct ftl_pairs *pairs, uint32_t limit)
{
	uint32_t bits = 1;

	while (bits < 31 && 1u << bits < limit)
		bits++;
	pairs->shift = 32 - bits;
	pairs->pair = ftl_alloc_array(limit, sizeof(*pairs->pair));
	pairs->bucket = ftl_alloc_array(1u << bits, sizeof(*pairs->bucket));
	if (!pairs->pair || !pairs->bucket) {
		ftl_pairs_destroy(pairs);
		return false;
	}
	pairs->limit = limit;
	ftl_pairs_clear(pairs);
	return true;
}

void ftl_pairs_destroy(struct ftl_pairs *pairs)
{
	ftl_free_array(pairs->pair);
	ftl_free_array(pairs->bucket);
	memset(pairs, 0, sizeof(*pairs));
}

void ftl_pairs_clear(struct ftl_pairs *pairs)
{
	uint32_t i;

	if (!pairs->limit)
		return;
	for (i = 0; i <= 0xffffffffu >> pairs->shift; i++)
		pairs->bucket[i] = FTL_NONE;
	pairs->free = FTL_NONE;
	for (i = pairs->limit; i--;) {
		pairs->pair[i].next = pairs->free;
		pairs->free = i;
	}
	pairs->count = 0;
}

bool ftl_pairs_add(struct ftl_pairs *pairs, uint32_t key, uint32_t value)
{
	uint32_t index = pairs->free;
	uint32_t *bucket;

	if (pairs->count == pairs->limit)
		return false;
	bucket = bucket_of(pairs, key);
	pairs->free = pairs->pair[index].next;
	pairs->pair[index].key = key;
	pairs->pair[index].value = value;
	pairs->pair[index].next = *bucket;
	*bucket = index;
	pairs->count++;
	return true;
}

static bool remove_at(struct ftl_pairs *pairs, uint32_t *link)
{
	uint32_t index = *link;

	*link = pairs->pair[index].next;
	pairs->pair[index].next = pairs->free;
	pairs->free = index;
	pairs->count--;
	return true;
}

bool ftl_pairs_remove(struct ftl_pairs *pairs, uint32_t key, uint32_t value)
{
	uint32_t *link;

	if (!pairs->count)
		return false;
	for (link = bucket_of(pairs, key); *link != FTL_NONE; link = &pairs->pair[*link].next) {
		if (pairs->pair[*link].key == key && pairs->pair[*link].value == value)
			return remove_at(pairs, link);
	}
	return false;
}

bool ftl_pairs_find(const struct ftl_pairs *pairs, uint32_t key, uint32_t *value)
{
	uint32_t index;

	if (!pairs->count)
		return false;
	index = *bucket_of(pairs, key);
	while (index != FTL_NONE && pairs->pair[index].key != key)
		index = pairs->pair[index].next;
	if (index == FTL_NONE)
		return false;
	*value = pairs->pair[index].value;
	return true;
}

bool ftl_pairs_has(const struct ftl_pairs *pairs, uint32_t key, uint32_t value)
{
	uint32_t index;

	if (!pairs->count)
		return false;
	for (index = *bucket_of(pairs, key); index != FTL_NONE; index = pairs->pair[index].next) {
		if (pairs->pair[index].key == key && pairs->pair[index].value == value)
			return true;
	}
	return false;
}

uint32_t ftl_pairs_count(const struct ftl_pairs *pairs, uint32_t key)
{
	uint32_t count = 0;
	uint32_t index;

	if (!pairs->count)
		return 0;
	for (index = *bucket_of(pairs, key); index != FTL_NONE; index = pairs->pair[index].next)
		count += pairs->pair[index].key == key;
	return count;
}

uint32_t ftl_pairs_first(const struct ftl_pairs *pairs, uint32_t key)
{
	uint32_t index = pairs->count ? *bucket_of(pairs, key) : FTL_NONE;

	while (index != FTL_NONE && pairs->pair[index].key != key)
		index = pairs->pair[index].next;
	return index;
}

uint32_t ftl_pairs_next(const struct ftl_pairs *pairs, uint32_t index)
{
	uint32_t key = pairs->pair[index].key;

	do
		index = pairs->pair[index].next;
	while (index != FTL_NONE && pairs->pair[index].key != key);
	return index;
}
