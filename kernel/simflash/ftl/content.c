// SPDX-License-Identifier: GPL-2.0-only
/* A page's data: one repeated word, or a buffer of its own. */
#include "internal.h"

#define WORDS (FTL_PAGE_BYTES / sizeof(uint64_t))

/*
 * Most pages that are not uniform differ within the first words or at the
 * end; only a page that is uniform pays for the whole comparison.
 */
static bool ftl_content_uniform(const uint64_t *word)
{
	uint64_t first = word[0];
	size_t i;

	if (word[WORDS - 1] != first)
		return false;
	for (i = 0; i < WORDS; i += 8) {
		if (word[i] != first || word[i + 1] != first || word[i + 2] != first ||
		    word[i + 3] != first || word[i + 4] != first || word[i + 5] != first ||
		    word[i + 6] != first || word[i + 7] != first)
			return false;
	}
	return true;
}

bool ftl_capture(struct ftl_content *content, const void *memory)
{
	void *page;

	content->buffer = false;
	content->word = *(const uint64_t *)memory;
	if (ftl_content_uniform(memory))
		return true;

	page = ftl_alloc_page();
	if (!page)
		return false;
	ftl_copy_page(page, memory);
	content->word = (uintptr_t)page;
	content->buffer = true;
	return true;
}

void ftl_content_read(const struct ftl_content *content, void *memory)
{
	if (content->buffer)
		ftl_copy_page(memory, (const void *)(uintptr_t)content->word);
	else
		ftl_fill_page(memory, content->word);
}

void ftl_content_drop(struct ftl_content *content)
{
	if (content->buffer)
		ftl_free_page((void *)(uintptr_t)content->word);
	content->buffer = false;
	content->word = 0;
}
