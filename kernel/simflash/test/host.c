// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "host.h"

long host_held;
long host_pages_left = -1;

void *ftl_alloc_page(void)
{
	void *page;

	if (host_pages_left == 0)
		return NULL;
	page = aligned_alloc(FTL_PAGE_BYTES, FTL_PAGE_BYTES);
	if (!page)
		abort();
	if (host_pages_left > 0)
		host_pages_left--;
	host_held++;
	return page;
}

void ftl_free_page(void *page)
{
	host_held--;
	free(page);
}

void *ftl_alloc_array(size_t count, size_t size)
{
	void *array = calloc(count, size);

	if (!array)
		abort();
	host_held++;
	return array;
}

void ftl_free_array(void *array)
{
	if (array)
		host_held--;
	free(array);
}
