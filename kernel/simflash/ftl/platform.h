/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The little the core needs from where it runs: fixed-width types, memory and
 * a way to say that an invariant broke. Everything else in ftl/ is plain C11.
 */
#ifndef FTL_PLATFORM_H
#define FTL_PLATFORM_H

#ifdef __KERNEL__

#include <linux/bug.h>
#include <linux/gfp.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#define ftl_invariant(holds) WARN_ON_ONCE(!(holds))

/* Nothing: in the lab the clock is the instruction, and a cache miss costs none. */
#define ftl_prefetch(address) ((void)(address))

/* Called with a spinlock held or in the block layer's issue path: never sleeps. */
static inline void *ftl_alloc_page(void)
{
	return (void *)__get_free_page(GFP_NOWAIT | __GFP_NOWARN);
}

static inline void ftl_free_page(void *page)
{
	free_page((unsigned long)page);
}

static inline void *ftl_alloc_array(size_t count, size_t size)
{
	return vcalloc(count, size);
}

static inline void ftl_free_array(void *array)
{
	vfree(array);
}

/*
 * copy_page() moves eight bytes an instruction where memcpy() may move one,
 * which counts on a machine whose clock is the instruction.
 */
static inline void ftl_copy_page(void *to, const void *from)
{
	if (PAGE_SIZE == 4096 && PAGE_ALIGNED(to) && PAGE_ALIGNED(from))
		copy_page(to, (void *)from);
	else
		memcpy(to, from, 4096);
}

static inline void ftl_fill_page(void *to, uint64_t word)
{
	memset64(to, word, 4096 / sizeof(word));
}

#else

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ftl_invariant(holds) assert(holds)
#define ftl_prefetch(address) __builtin_prefetch(address)

/* The host's own: tests count allocations and let them fail (test/host.c). */
void *ftl_alloc_page(void);
void ftl_free_page(void *page);
void *ftl_alloc_array(size_t count, size_t size);
void ftl_free_array(void *array);

static inline void ftl_copy_page(void *to, const void *from)
{
	memcpy(to, from, 4096);
}

static inline void ftl_fill_page(void *to, uint64_t word)
{
	unsigned char *at = to;
	size_t i;

	for (i = 0; i < 4096; i += sizeof(word))
		memcpy(at + i, &word, sizeof(word));
}

#endif

#endif
