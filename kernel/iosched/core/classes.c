// SPDX-License-Identifier: GPL-2.0
/*
 * Classes, and which of them a request has: by its role, its level and what kind
 * of request it is.
 */
#include "internal.h"

#define NONE	BIT(FRONTROW_LEVEL_NONE)
#define BULK	BIT(FRONTROW_LEVEL_BULK)
#define LONG	BIT(FRONTROW_LEVEL_LONG)
#define OTHER	BIT(FRONTROW_LEVEL_OTHER)
#define VISIBLE	BIT(FRONTROW_LEVEL_VISIBLE)
#define FRONT	BIT(FRONTROW_LEVEL_FOREGROUND)

const struct frontrow_class_rules frontrow_classes[FRONTROW_NR_CLASSES] = {
	[FRONTROW_FG_READ]	= { "fg_read",	FRONTROW_LEVEL_FOREGROUND, .serves = FRONT },
	[FRONTROW_FG_WRITE]	= { "fg_write",	FRONTROW_LEVEL_FOREGROUND, .serves = FRONT,
				    .deadline_ms = 100 },
	[FRONTROW_SYNC_READ]	= { "sync_read", FRONTROW_LEVEL_FOREGROUND, .serves = OTHER,
				    .deadline_ms = 200 },
	[FRONTROW_SYNC_WRITE]	= { "sync_write", FRONTROW_LEVEL_FOREGROUND, .serves = OTHER,
				    .deadline_ms = 100 },
	[FRONTROW_BOOSTED]	= { "boosted",	FRONTROW_LEVEL_FOREGROUND,
				    .serves = BULK | LONG | OTHER | VISIBLE | FRONT,
				    .deadline_ms = 50 },
	[FRONTROW_VISIBLE_1]	= { "visible_1", FRONTROW_LEVEL_VISIBLE, .serves = VISIBLE,
				    .deadline_ms = 200 },
	[FRONTROW_VISIBLE_2]	= { "visible_2", FRONTROW_LEVEL_VISIBLE, .serves = VISIBLE,
				    .deadline_ms = 200 },
	[FRONTROW_VISIBLE_3]	= { "visible_3", FRONTROW_LEVEL_VISIBLE, .serves = VISIBLE,
				    .deadline_ms = 200 },
	[FRONTROW_FG_ASYNC]	= { "fg_async",	FRONTROW_LEVEL_OTHER, .is_async = true,
				    .deadline_ms = AGE_RAMP_BEGIN_NS / NSEC_PER_MSEC },
	[FRONTROW_BG_SYNC]	= { "bg_sync",	FRONTROW_LEVEL_OTHER, .pays_for = NONE,
				    .deadline_ms = 200 },
	[FRONTROW_LONG]		= { "long",	FRONTROW_LEVEL_LONG, .serves = LONG,
				    .pays_for = LONG, .deadline_ms = 200 },
	[FRONTROW_BULK]		= { "bulk",	FRONTROW_LEVEL_BULK, .serves = BULK,
				    .pays_for = BULK, .deadline_ms = 200 },
	[FRONTROW_ASYNC]	= { "async",	FRONTROW_LEVEL_NONE, .is_async = true },
	[FRONTROW_DISCARD]	= { "discard",	FRONTROW_LEVEL_NONE, .is_async = true },
};

const enum frontrow_class frontrow_in_order[FRONTROW_NR_IN_ORDER] = {
	FRONTROW_FG_READ, FRONTROW_FG_WRITE,
	FRONTROW_VISIBLE_1, FRONTROW_VISIBLE_2, FRONTROW_VISIBLE_3,
	FRONTROW_SYNC_READ, FRONTROW_SYNC_WRITE, FRONTROW_BOOSTED,
	FRONTROW_FG_ASYNC, FRONTROW_LONG, FRONTROW_BULK,
};

const enum frontrow_class frontrow_in_turns[FRONTROW_NR_IN_TURNS] = {
	FRONTROW_BG_SYNC, FRONTROW_ASYNC, FRONTROW_DISCARD,
};

/* Classes by role: read, synchronous write, asynchronous write. */
static const enum frontrow_class by_role[FRONTROW_NR_ROLES][3] = {
	[FRONTROW_OTHER] = {
		FRONTROW_SYNC_READ, FRONTROW_SYNC_WRITE, FRONTROW_ASYNC,
	},
	[FRONTROW_FOREGROUND] = {
		FRONTROW_FG_READ, FRONTROW_FG_WRITE, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_BACKGROUND] = {
		FRONTROW_BG_SYNC, FRONTROW_BG_SYNC, FRONTROW_ASYNC,
	},
	[FRONTROW_VISIBLE] = {
		FRONTROW_VISIBLE_1, FRONTROW_VISIBLE_1, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_VISIBLE + 1] = {
		FRONTROW_VISIBLE_2, FRONTROW_VISIBLE_2, FRONTROW_FG_ASYNC,
	},
	[FRONTROW_VISIBLE + 2] = {
		FRONTROW_VISIBLE_3, FRONTROW_VISIBLE_3, FRONTROW_FG_ASYNC,
	},
};

static bool is_long(enum frontrow_level level)
{
	return level == FRONTROW_LEVEL_LONG || level == FRONTROW_LEVEL_BULK;
}

static enum frontrow_class class_of_long(enum frontrow_level level)
{
	return level == FRONTROW_LEVEL_LONG ? FRONTROW_LONG : FRONTROW_BULK;
}

/*
 * Level of a request or a task with this role. Work of kernel threads, above
 * all the journal commit, counts for the most urgent task inside fsync; for the
 * background only if no other task is. Where there are roles, nothing is long:
 * the foreground may depend on it.
 */
enum frontrow_level frontrow_level_of(const struct frontrow_core *core,
				      enum frontrow_role role, bool by_kernel,
				      unsigned int owner, u64 now_ns)
{
	enum frontrow_level level;

	if (role == FRONTROW_FOREGROUND)
		return FRONTROW_LEVEL_FOREGROUND;
	if (role == FRONTROW_BACKGROUND)
		return FRONTROW_LEVEL_NONE;
	if (role >= FRONTROW_VISIBLE)
		return FRONTROW_LEVEL_VISIBLE;
	if (!by_kernel)
		return READ_ONCE(core->has_roles) ? FRONTROW_LEVEL_OTHER :
						       frontrow_level_of_process(core, owner, now_ns);
	for (level = FRONTROW_LEVEL_FOREGROUND; level > FRONTROW_LEVEL_NONE; level--)
		if (core->chains[level].nr_fsyncs)
			return level;
	return core->chains[FRONTROW_LEVEL_NONE].nr_fsyncs ?
	       FRONTROW_LEVEL_NONE : FRONTROW_LEVEL_OTHER;
}

/*
 * Class of writes that a task waits for. Waits of a background task stay in the
 * background: otherwise an app that overwrites pages under writeback would put
 * hundreds of small writes beside the foreground's. Those of a long process
 * stay in its class, too. The exception is what waits for all: a kernel thread,
 * or a task with a journal handle, since every commit waits for it.
 */
enum frontrow_class frontrow_class_for_waiter(enum frontrow_role role,
					      enum frontrow_level level,
					      bool is_for_all)
{
	enum frontrow_class class = by_role[role][1];

	if (level == FRONTROW_LEVEL_FOREGROUND)
		return FRONTROW_FG_WRITE;
	if (!is_for_all && is_long(level))
		return class_of_long(level);
	return frontrow_is_group(class) && !is_for_all ? class : FRONTROW_BOOSTED;
}

/* Class of a request without promotion. */
static enum frontrow_class class_of(const struct frontrow_item *item)
{
	enum frontrow_role role = item->role;

	if (item->is_discard)
		return FRONTROW_DISCARD;
	/*
	 * Writes of the background are excluded: a task that swaps constantly
	 * would be served before all others.
	 */
	if (item->is_awaited_unseen)
		return frontrow_class_for_waiter(role, item->level, false);
	if (!item->is_sync)
		return by_role[role][2];
	/* The realtime class precedes the role "other", but not the foreground. */
	if (item->level == FRONTROW_LEVEL_FOREGROUND ||
	    (role == FRONTROW_OTHER && item->is_realtime))
		role = FRONTROW_FOREGROUND;
	else if (frontrow_holds_up_commit(item))
		role = FRONTROW_OTHER;
	else if (!item->by_kernel && is_long(item->level))
		return class_of_long(item->level);
	return by_role[role][item->is_read ? 0 : 1];
}

/* A request has come, whose submitter, role and kind are known: its level and class. */
void frontrow_identify(const struct frontrow_core *core, struct frontrow_item *item,
		       u64 now_ns)
{
	item->level = frontrow_level_of(core, item->role, item->by_kernel, item->owner,
					now_ns);
	item->own_class = class_of(item);
}
