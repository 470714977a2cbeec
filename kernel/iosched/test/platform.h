/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's types, arithmetic and ordered trees on the host, as far as the core uses them. */
#ifndef FRONTROW_TEST_PLATFORM_H
#define FRONTROW_TEST_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define U64_MAX		UINT64_MAX
#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L
#define USEC_PER_MSEC	1000L
#define USEC_PER_SEC	1000000L

#define BIT(nr)		(1UL << (nr))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define READ_ONCE(value) (value)
#define WRITE_ONCE(variable, value) ((variable) = (value))

#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b) ((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define min(a, b) min_t(__typeof__((a) + (b)), a, b)
#define max(a, b) max_t(__typeof__((a) + (b)), a, b)

#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))
#define DIV_ROUND_UP_ULL(a, b) DIV_ROUND_UP((u64)(a), (b))

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

/* Exponent of the smallest power of two that is not below @value. */
static inline unsigned int order_base_2(u64 value)
{
	return value > 1 ? 64 - __builtin_clzll(value - 1) : 0;
}

static inline u64 rounddown_pow_of_two(u64 value)
{
	return 1ULL << (63 - __builtin_clzll(value));
}

static inline u32 hash_ptr(const void *key, unsigned int bits)
{
	return (u64)(uintptr_t)key * 0x61C8864680B583EBULL >> (64 - bits);
}

#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline void list_add_tail(struct list_head *node, struct list_head *list)
{
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}

static inline void list_del(struct list_head *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
}

#define list_first_entry_or_null(list, type, member) \
	((list)->next == (list) ? NULL : container_of((list)->next, type, member))

/*
 * In place of a tree a sorted list: requests come in about the order in which they
 * go, so a place is found from the end.
 */
struct rb_node {
	struct rb_node *before, *after;
};

struct rb_root_cached {
	struct rb_node *first, *last;
};

#define RB_ROOT_CACHED ((struct rb_root_cached) { NULL, NULL })
#define rb_entry(node, type, member) container_of(node, type, member)
#define rb_entry_safe(node, type, member) \
	({ struct rb_node *node_ = (node); node_ ? rb_entry(node_, type, member) : NULL; })

static inline struct rb_node *rb_first_cached(const struct rb_root_cached *tree)
{
	return tree->first;
}

static inline void rb_add_cached(struct rb_node *node, struct rb_root_cached *tree,
				 bool (*is_before)(struct rb_node *, const struct rb_node *))
{
	struct rb_node *before = tree->last;

	while (before && is_before(node, before))
		before = before->before;
	node->before = before;
	node->after = before ? before->after : tree->first;
	*(before ? &before->after : &tree->first) = node;
	*(node->after ? &node->after->before : &tree->last) = node;
}

static inline void rb_erase_cached(struct rb_node *node, struct rb_root_cached *tree)
{
	*(node->before ? &node->before->after : &tree->first) = node->after;
	*(node->after ? &node->after->before : &tree->last) = node->before;
}

#endif /* FRONTROW_TEST_PLATFORM_H */
