/* SPDX-License-Identifier: GPL-2.0-only */
/* The core's structures, and what its files ask of each other. */
#ifndef FTL_INTERNAL_H
#define FTL_INTERNAL_H

#include "ftl.h"

/*
 * A programmed page: its data and its out-of-band area. 256 of them fill the
 * 4 KB that an open block takes from the pool, so that flash nobody wrote to
 * costs no memory. `word` is as in ftl_content.
 */
struct ftl_page {
	uint64_t word;
	uint32_t lba : 31;
	uint32_t buffer : 1;
	uint32_t sequence;	/* the block's first_sequence, and this */
};

/*
 * valid counts the pages the map points to; programs the rows given out but
 * not yet programmed; readers the dies' reads that are to take data from it.
 * A closed block with none of them is forgotten: its pages' memory is returned
 * (page is NULL in every block that holds nothing), and its erase is charged
 * before its next use.
 */
struct ftl_block {
	struct ftl_page *page;
	uint64_t first_sequence;
	uint32_t next;
	uint32_t readers;
	uint16_t valid;
	uint16_t programs;
	bool closed;			/* all its rows are given out */
	bool erase_first;		/* open, and its erase comes with the first program */
	bool worn;			/* written since its last erase, and not in use */
};

struct ftl_block_list {
	uint32_t head, tail, count;	/* FTL_NONE ends the list */
};

/* Served in this order by FTL_READ_FIRST; background work always comes last. */
enum ftl_class { FTL_CLASS_READ, FTL_CLASS_PROGRAM, FTL_CLASS_BACKGROUND, FTL_CLASSES };

enum ftl_kind {
	FTL_READ_ROW,		/* pages of one row, for a read command */
	FTL_PROGRAM_ROW,
	FTL_ERASE_BLOCK,
	FTL_NO_FLASH,		/* pages that needed no die, on their way to the link */
};

/* What waits at a die, is served by one, or brings read pages to the link. */
struct ftl_operation {
	struct ftl_operation *next;
	struct ftl_cmd *cmd;		/* of a read */
	uint64_t arrival;		/* orders operations at a die */
	uint64_t queued_ns;
	uint32_t physical;		/* first page of the row or block */
	uint32_t first, pages;		/* of the command, or pages to move */
	enum ftl_kind kind;
	bool erase_first;		/* of a program: its block is not erased yet */
};

struct ftl_queue {
	struct ftl_operation *head, *tail;
};

/*
 * FTL_WHOLE stands for FTL_CELLS and FTL_CHANNEL in one where nobody shares
 * the channel: the same time, and one event less.
 */
enum ftl_phase {
	FTL_IDLE,
	FTL_ERASE_FIRST,
	FTL_CELLS,
	FTL_WAIT_CHANNEL,
	FTL_CHANNEL,
	FTL_WHOLE,
};

struct ftl_die {
	struct ftl_queue queue[FTL_CLASSES];
	struct ftl_operation *serving;
	enum ftl_phase phase;
	uint32_t channel;
	uint32_t passed_over;		/* reads served while a program waited */
	struct ftl_die *next_waiting;	/* for the channel */

	struct ftl_block_list erased, invalid;
	uint32_t open;			/* block, FTL_NONE if none */
	uint32_t open_rows;		/* rows of it that are given out */
	struct ftl_operation erase;	/* ahead of need */
	bool erase_pending;		/* queued or being served */
	uint32_t erasing;		/* its block, FTL_NONE if none or taken already */
};

struct ftl_channel {
	struct ftl_die *user;
	struct ftl_die *head, *tail;
};

/*
 * A page in the write cache. At most one slot an LBA is *listed*, the newest;
 * an older one that is still being programmed is not found any more, but its
 * program counts until the newer one is programmed as well. A slot that a
 * discard has hit is *dropped*: it is programmed and never mapped.
 */
struct ftl_slot {
	struct ftl_content content;
	struct ftl_cmd *fua;		/* waits for the program */
	uint32_t lba;
	uint32_t next;			/* free slots, or the same hash bucket */
	bool used, staged, listed, dropped;
};

/* A row in the making (the staged one), or under program. */
struct ftl_row {
	struct ftl_operation operation;	/* first: an operation's row is found by it */
	struct ftl_row *previous, *next;
	uint64_t number;
	uint64_t sequence;
	uint32_t pages;
	uint32_t slot[FTL_MAX_ROW_PAGES];
};

struct ftl_cache {
	struct ftl_slot *slot;
	uint32_t *bucket;
	uint32_t bucket_shift;
	uint32_t free_head, free_count;
	struct ftl_row *row;		/* storage of all rows */
	struct ftl_row *free_row;
	struct ftl_row *staged;		/* NULL if nothing is staged */
	struct ftl_row *oldest, *newest; /* under program, in order of issue */
	uint64_t next_row;
	struct ftl_cmd *flush_head, *flush_tail;
};

struct ftl_commands {
	struct ftl_cmd *head, *tail;
};

/* Sources of events; the dies follow the three fixed ones. */
enum { FTL_DUE_CONTROLLER, FTL_DUE_LINK, FTL_DUE_RESPONSE, FTL_DUE_DIE };

struct ftl {
	struct ftl_config config;
	uint64_t now_ns;
	uint32_t dies;
	uint32_t due_count;
	uint64_t due_ns[FTL_DUE_DIE + FTL_MAX_DIES];

	/* store.c */
	struct ftl_block *block;
	uint32_t blocks, blocks_per_die, rows_per_block;
	uint64_t free_rows;
	uint64_t next_sequence;
	uint32_t next_die;
	void *pool;			/* pages for blocks to be opened, a list */
	uint32_t pool_count, pool_target;
	uint64_t buffered_pages;

	/* map.c */
	uint32_t *map;			/* LBA -> physical page + 1, 0 if unmapped */
	uint64_t mapped_pages;

	struct ftl_cache cache;

	/* die.c */
	struct ftl_die die[FTL_MAX_DIES];
	struct ftl_channel channel[FTL_MAX_DIES];
	uint64_t next_arrival;
	uint32_t busy_dies;
	uint64_t busy_since_ns;

	/* command.c */
	struct ftl_cmd *command;
	struct ftl_command_page *command_page;
	struct ftl_operation *command_operation;
	uint64_t next_number;
	struct ftl_commands arrived;	/* head is the one being served */
	struct ftl_commands writes;	/* waiting for the link; head is moving */
	struct ftl_commands responses;
	struct ftl_commands done;
	struct ftl_queue reads;		/* read pages waiting for the link */
	struct ftl_operation *link_read; /* on the link, or NULL */
	uint32_t link_write;		/* pages of writes' head on the link, or 0 */
	uint32_t discarded;		/* pages of arrived's head */
	bool in_command;		/* arrived's head is before its protocol's end */

	struct ftl_stats stats;
	uint64_t stats_since_ns;
};

static inline void ftl_queue_push(struct ftl_queue *queue, struct ftl_operation *operation)
{
	operation->next = NULL;
	if (queue->head)
		queue->tail->next = operation;
	else
		queue->head = operation;
	queue->tail = operation;
}

static inline struct ftl_operation *ftl_queue_pop(struct ftl_queue *queue)
{
	struct ftl_operation *operation = queue->head;

	if (operation)
		queue->head = operation->next;
	return operation;
}

static inline void ftl_commands_push(struct ftl_commands *commands, struct ftl_cmd *cmd)
{
	cmd->next = NULL;
	if (commands->head)
		commands->tail->next = cmd;
	else
		commands->head = cmd;
	commands->tail = cmd;
}

static inline struct ftl_cmd *ftl_commands_pop(struct ftl_commands *commands)
{
	struct ftl_cmd *cmd = commands->head;

	if (cmd)
		commands->head = cmd->next;
	return cmd;
}

/* store.c: physical pages and blocks */
bool ftl_store_create(struct ftl *ftl);
void ftl_store_destroy(struct ftl *ftl);
bool ftl_store_reserve_row(struct ftl *ftl);
/* The first physical page of a row that was reserved. */
uint32_t ftl_store_take_row(struct ftl *ftl, bool *erase_first);
void ftl_store_program(struct ftl *ftl, uint32_t physical, uint32_t lba, uint64_t sequence,
		       struct ftl_content *content);
void ftl_store_stale(struct ftl *ftl, uint32_t physical);
void ftl_store_row_done(struct ftl *ftl, uint32_t physical);
void ftl_store_pin(struct ftl *ftl, uint32_t physical);
void ftl_store_unpin(struct ftl *ftl, uint32_t physical);
void ftl_store_validate(struct ftl *ftl, uint32_t physical);
void ftl_store_invalidate(struct ftl *ftl, uint32_t physical);
void ftl_store_erased(struct ftl *ftl, uint32_t physical);
void ftl_store_erased_ahead(struct ftl *ftl, struct ftl_die *die);
uint32_t ftl_store_lba(const struct ftl *ftl, uint32_t physical);
uint64_t ftl_store_sequence(const struct ftl *ftl, uint32_t physical);
void ftl_store_read(const struct ftl *ftl, uint32_t physical, void *memory);
struct ftl_die *ftl_die_of(struct ftl *ftl, uint32_t physical);

/* map.c: from LBA to physical page */
bool ftl_map_create(struct ftl *ftl);
void ftl_map_destroy(struct ftl *ftl);
bool ftl_map_find(const struct ftl *ftl, uint32_t lba, uint32_t *physical);
bool ftl_map_programmed(struct ftl *ftl, uint32_t lba, uint32_t physical); /* false if stale */
void ftl_map_discard(struct ftl *ftl, uint32_t lba, uint32_t pages);

/* cache.c: pages on their way to flash */
bool ftl_cache_create(struct ftl *ftl);
void ftl_cache_destroy(struct ftl *ftl);
bool ftl_cache_read(const struct ftl *ftl, uint32_t lba, void *memory);
bool ftl_cache_write(struct ftl *ftl, uint32_t lba, struct ftl_content *content,
		     struct ftl_cmd *fua);
uint32_t ftl_cache_staged(const struct ftl *ftl);
void ftl_cache_push(struct ftl *ftl);		/* programs the staged row, padded */
void ftl_cache_flush(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_cache_discard(struct ftl *ftl, uint32_t lba, uint32_t pages);
void ftl_cache_row_done(struct ftl *ftl, struct ftl_row *row);

/* die.c: dies and channels in time */
void ftl_die_queue(struct ftl *ftl, struct ftl_die *die, struct ftl_operation *operation,
		   enum ftl_class class);
bool ftl_die_cancel_background(struct ftl_die *die);	/* false if it is being served */
void ftl_die_event(struct ftl *ftl, struct ftl_die *die);

/* command.c: commands in time */
bool ftl_command_create(struct ftl *ftl);
void ftl_command_destroy(struct ftl *ftl);
void ftl_command_row_read(struct ftl *ftl, struct ftl_operation *operation);
void ftl_command_respond(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_link_start(struct ftl *ftl);

/* stats.c */
void ftl_stats_busy(struct ftl *ftl, int change);

#endif
