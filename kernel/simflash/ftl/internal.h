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
 * The life of a block:
 *
 *	erased --first row given out--> open --last row given out--> closed
 *	closed --all rows programmed--> candidate (in its die's list by valid pages)
 *	candidate --chosen by the collector--> collecting
 *	collecting --read to its end, valid pages left--> candidate
 *	candidate, collecting --nothing holds it any more--> invalid, or held
 *	held --the log's entries that made it invalid are in flash--> invalid
 *	invalid --erased ahead of need, or opened with its erase first--> erased, open
 *
 * valid counts the pages the map points to; programs the rows given out but
 * not yet programmed; readers the dies' reads that are to take data from it;
 * moving the pages the collector has in hand. A closed block with none of them
 * is forgotten: its pages' memory is returned (page is NULL in every block
 * that holds nothing), and its erase is charged before its next use.
 */
struct ftl_block {
	struct ftl_page *page;
	uint64_t first_sequence;
	struct ftl_page *old_page;	/* open, and not erased yet: what is still in it */
	uint64_t old_sequence;
	uint64_t changed;		/* sequence number at its last change of valid */
	uint32_t next, previous;	/* in the list it is in */
	uint32_t readers;
	uint32_t erases;
	uint16_t valid;
	uint16_t programs;
	uint16_t moving;
	bool closed;			/* all its rows are given out */
	bool candidate;			/* in its die's list of candidates */
	bool erase_first;		/* open, and its erase comes with the first program */
	bool worn;			/* written since its last erase, and not in use */
};

struct ftl_block_list {
	uint32_t head, tail, count;	/* FTL_NONE ends the list */
};

/*
 * Served in this order by FTL_READ_FIRST; background work always comes last. The
 * foreground's reads have a queue of their own under FTL_FG_AWARE, and urgent
 * collection has one where it yields.
 */
enum ftl_class {
	FTL_CLASS_FRONT_READ,
	FTL_CLASS_READ,
	FTL_CLASS_PROGRAM,
	FTL_CLASS_COLLECT,
	FTL_CLASS_BACKGROUND,
	FTL_CLASSES,
};

enum ftl_kind {
	FTL_READ_ROW,		/* pages of one row, for a read command */
	FTL_PROGRAM_ROW,
	FTL_ERASE_BLOCK,
	FTL_COLLECT_READ,	/* pages of one row, to be moved elsewhere */
	FTL_COLLECT_PROGRAM,
	FTL_SYSTEM_PROGRAM,	/* a row of the defrag log or of a checkpoint */
	FTL_SYSTEM_ERASE,
	FTL_SPREAD_READ,	/* for FTL_SPREAD; FTL_VERIFY_READ: the page an armed write brings again */
	FTL_VERIFY_READ,
	FTL_MAP_READ,		/* a page of the map; `first` is its number */
	FTL_MAP_PROGRAM,
	FTL_PREFETCH_READ,	/* for the read cache */
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
	bool foreground;		/* of a program: it has a page of the foreground's */
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
	FTL_SUSPENDING,			/* the cells are left as they are, for a read */
};

/* The block that a stream's rows on a die are given out of. */
struct ftl_open_block {
	uint32_t block;			/* FTL_NONE if none */
	uint32_t rows;			/* of it that are given out */
};

/* The host's streams, and one of the map's own pages. */
#define FTL_OPEN_STREAMS (FTL_MAX_STREAMS + 1)

/*
 * The write buffer's part on a die: blocks of its own, written one bit a cell. The host
 * is given their rows as long as there are any.
 */
struct ftl_buffer {
	struct ftl_block_list erased, invalid;
	struct ftl_block_list closed;	/* with valid pages, to be folded in this order */
	uint32_t open;			/* block, FTL_NONE if none */
	uint32_t open_rows;
};

/*
 * Garbage collection of one die, one flash operation at a time (gc.c). Pages
 * it has read are `gathered`; they stay valid where they are until they are
 * programmed elsewhere.
 */
struct ftl_collector {
	struct ftl_operation operation;
	bool busy;			/* the operation is queued or being served */
	enum ftl_class class;		/* and in which queue */
	uint32_t may_pass;		/* rows that can be programmed before it, at most */
	uint32_t victim;		/* block being read, FTL_NONE if none */
	uint32_t next;			/* page of it to look at */
	bool found;			/* it had a page to move */
	bool level;			/* a block may be moved to level wear */
	int64_t gain;			/* pages of flash freed, less those used, since a row was padded */
	uint32_t open;			/* block it writes to, FTL_NONE if none */
	uint32_t open_rows;		/* rows of it that are given out */
	uint32_t gathered;
	uint32_t page[2 * FTL_MAX_ROW_PAGES];
	uint32_t lba[FTL_MAX_ROW_PAGES]; /* of the row under program */
	uint64_t sequence;
};

struct ftl_die {
	struct ftl_queue queue[FTL_CLASSES];
	struct ftl_operation *serving;
	enum ftl_phase phase;
	struct ftl_operation *suspended; /* half done in the cells, while reads are served */
	enum ftl_phase suspended_phase;	/* in which it goes on; set while FTL_SUSPENDING, too */
	uint64_t suspended_ns;		/* what it takes then */
	uint32_t suspended_for;		/* reads, since it began */
	uint32_t channel;
	uint32_t passed_over;		/* reads served while a program waited */
	uint32_t reads_passed_over;	/* ... the foreground's while another waited */
	uint32_t front_programs;	/* queued here, the foreground's */
	struct ftl_die *next_waiting;	/* for the channel */

	struct ftl_block_list erased, invalid;
	struct ftl_block_list held;	/* invalid, by changes that are not in flash yet */
	struct ftl_open_block open[FTL_OPEN_STREAMS];
	struct ftl_operation erase;	/* ahead of need */
	bool erase_pending;		/* queued or being served */
	uint32_t erasing;		/* its block, FTL_NONE if none or taken already */
	struct ftl_block_list *candidates; /* by valid pages, each in order of last change */
	struct ftl_buffer buffer;
	struct ftl_collector collector;
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
	uint8_t stream;			/* in whose row it is staged */
	bool used, staged, listed, dropped;
	bool blank;			/* dropped before it was sent off: it is not programmed */
};

/* A row in the making (a staged one), or under program. */
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
	struct ftl_row *staged[FTL_MAX_STREAMS];	/* NULL if nothing is staged */
	uint32_t *written;		/* with own_streams, of an LBA: when, in pages written; 0: never */
	uint32_t pages_written;
	struct ftl_row *oldest, *newest; /* under program, in order of issue */
	uint64_t next_row;
	struct ftl_cmd *flush_head, *flush_tail;
};

/*
 * The read cache: pages of flash that are in RAM as well. An LBA is kept until it is
 * overwritten or discarded, or others need its place. Those that are wanted are read one
 * after another, one operation a die.
 */
struct ftl_kept {
	uint32_t lba;
	uint32_t next, previous;	/* the newest first; free ones: `next` only */
};

struct ftl_fetch {
	struct ftl_operation operation;	/* first: the fetch is found by it */
	bool busy;
	uint32_t lba[FTL_MAX_ROW_PAGES];
};

struct ftl_readcache {
	uint32_t *place;		/* of an LBA: its entry + 1, 0 if it is not kept */
	struct ftl_kept *kept;
	uint32_t newest, oldest, free;	/* entries, FTL_NONE if none */
	uint32_t *wanted;		/* LBAs to be read, a ring */
	uint32_t first_wanted, wanted_count;
	struct ftl_fetch fetch[FTL_MAX_DIES];
};

struct ftl_commands {
	struct ftl_cmd *head, *tail;
};

/* mapcache.c */
enum ftl_map_state { FTL_MAP_ABSENT, FTL_MAP_CLEAN, FTL_MAP_DIRTY, FTL_MAP_UNDER_PROGRAM };

struct ftl_map_page {
	struct ftl_operation read;
	uint32_t next, previous;	/* in the list of its state */
	uint8_t state;			/* enum ftl_map_state */
	uint8_t flush;			/* programs of it that the FLUSH waits for */
	bool reading;
	bool again;			/* under program, and changed meanwhile */
};

struct ftl_map_row {
	struct ftl_operation operation;	/* first: an operation's row is found by it */
	struct ftl_map_row *next;
	uint64_t sequence;
	bool busy;
	uint32_t page[FTL_MAX_ROW_PAGES];
};

struct ftl_map_list {
	uint32_t head, tail, count;	/* count 0: head and tail say nothing */
};

struct ftl_mapcache {
	struct ftl_map_page *page;	/* all of the map's; NULL: all of it is in RAM */
	uint32_t pages;
	struct ftl_map_list clean, dirty; /* the longest unused, the longest dirty first */
	uint32_t writing;		/* pages under program */
	struct ftl_map_row *row;	/* storage of all rows */
	struct ftl_map_row *free_row;
	struct ftl_commands waits;	/* reads whose entries are not in RAM */
	struct ftl_cmd *flushing;	/* the FLUSH that waits */
	uint32_t to_flush;		/* pages it waits for */
	bool wanted;			/* pages are to be written */
};

/* units.c */
#define FTL_MAX_OPEN_UNITS 16

struct ftl_unit {
	uint32_t unit;
	uint32_t next;			/* page of it behind the last that was written */
	bool in_order;			/* all writes began where the one before had ended */
};

struct ftl_units {
	struct ftl_unit open[FTL_MAX_OPEN_UNITS]; /* the last used first */
	uint32_t count;
};

/* pairs.c */
struct ftl_pair {
	uint32_t key, value, next;
};

struct ftl_pairs {
	struct ftl_pair *pair;
	uint32_t *bucket;
	uint32_t shift, limit, count, free;
};

/*
 * A page of the system area, as it is in flash. The body has log entries, or
 * for a checkpoint 32-bit words: the map from LBA `first` on, or the blocks that
 * were open. `next` is of RAM only.
 */
enum ftl_system_kind { FTL_SYSTEM_LOG, FTL_SYSTEM_MAP, FTL_SYSTEM_OPEN };

struct ftl_log_entry {
	uint64_t version;		/* a sequence number: orders it among the pages */
	uint32_t lba, from, pages;
	uint32_t kind;
};

#define FTL_SYSTEM_BODY 4032
#define FTL_LOG_ENTRIES (FTL_SYSTEM_BODY / sizeof(struct ftl_log_entry))
#define FTL_MAP_ENTRIES (FTL_SYSTEM_BODY / sizeof(uint32_t))

struct ftl_system_page {
	struct ftl_system_page *next;
	uint64_t number;		/* in the stream, from 1 */
	uint64_t follows;		/* number of the page before it that counts */
	uint64_t snapshot;		/* version of the snapshot it belongs to, 0: none */
	uint32_t kind;
	uint32_t count;			/* of entries or words */
	uint32_t first;
	uint16_t opens, closes;		/* a snapshot: its first, its last page */
	uint32_t full, unused;		/* the snapshot is a checkpoint */
	union {
		struct ftl_log_entry entry[FTL_LOG_ENTRIES];
		uint32_t word[FTL_MAP_ENTRIES];
	};
};

#define FTL_TORN_PAGE ((struct ftl_system_page *)1)

struct ftl_system_write {
	struct ftl_operation operation;
	struct ftl_system_page *page[FTL_MAX_ROW_PAGES];
	uint64_t index;
	uint32_t stripe, pages;
	bool busy;
};

struct ftl_stripe {
	uint32_t needed;		/* pages */
	uint32_t writing;		/* rows under program */
	bool erased;
};

struct ftl_system {
	struct ftl_system_page **page;	/* flash; NULL: erased */
	struct ftl_stripe *stripe;
	uint32_t stripes, stripe_rows;
	uint32_t filling, row;		/* where the next row goes */
	uint64_t next_number, last_number;
	struct ftl_system_page *pending_head, *pending_tail;
	struct ftl_system_write write[FTL_MAX_DIES];
	struct ftl_operation erase[FTL_MAX_DIES];
	uint32_t erasing, erases_left;
};

/* log.c */
enum ftl_log_kind {
	FTL_LOG_SHARE,		/* lba has what `from` has */
	FTL_LOG_MOVE,		/* as SHARE, and `from` loses it with the next COMMIT */
	FTL_LOG_MAP,		/* lba is in physical page `from` */
	FTL_LOG_UNMAP,
	FTL_LOG_COMMITTED,
	FTL_LOG_DISCARDED,
};

enum ftl_snapshot { FTL_NO_SNAPSHOT, FTL_COMPACTION, FTL_FULL_CHECKPOINT };

struct ftl_log {
	struct ftl_system_page *head, *tail;	/* buffered in RAM; the tail is being filled */
	struct ftl_system_page *spare;
	uint32_t spares;
	uint32_t buffered_pages, buffered_entries;
	uint64_t first_buffered;		/* version of the oldest buffered entry */
	uint64_t handed_number;			/* last page of it given to the system area */
	uint64_t handed_version, written_version; /* older entries are there, are in flash */
	bool must_flush;			/* a FLUSH has to wait for it */
	uint32_t pages;				/* in flash, since the last snapshot with it */
	struct ftl_range *moved;		/* not committed yet */
	uint32_t moves;
	struct ftl_cmd *remap;			/* as soon as nothing is under program ... */
	enum ftl_snapshot wanted;		/* ... and so is this */
	uint64_t snapshot;			/* the newest complete one */
	uint64_t checkpoint;			/* the newest complete full one */
	uint64_t snapshot_first, snapshot_last;	/* numbers of the one being written, or 0 */
	uint64_t snapshot_version;
	uint32_t snapshot_pages;
	enum ftl_snapshot writing;
	uint64_t log_start;			/* number after which entries count */
	uint64_t programmed;			/* pages since the last checkpoint */
	struct ftl_cmd *waits_head, *waits_tail; /* for the log, or a checkpoint */
};

/* image.c: a block of an image */
struct ftl_image_block {
	uint32_t block;
	uint32_t erases;
	uint32_t state;
};

#define FTL_RESERVED_BLOCKS 2	/* of each die, for its collector */
#define FTL_TORN_LBA (FTL_NO_LBA - 1)	/* in an OOB: the page cannot be read */

#define FTL_MAX_ALIASES 8	/* of a page */
#define FTL_MAX_MOVES 65536

enum ftl_fate { FTL_FATE_NOTHING, FTL_FATE_TORN, FTL_FATE_DONE };

/* FTL_SPREAD under way: the pages of one row at a time. */
struct ftl_spread {
	struct ftl_cmd *cmd;		/* NULL: none */
	uint32_t range, page;		/* the next one to look at */
	uint32_t pages;			/* in hand */
	uint32_t reads;			/* not ended yet */
	uint32_t lba[FTL_MAX_ROW_PAGES];
	uint32_t physical[FTL_MAX_ROW_PAGES];
};

/* hints.c */
struct ftl_hints {
	uint64_t rows;			/* that the host is still to be given */
	uint64_t reserved_until_ns;
	uint32_t *marked;		/* one bit an LBA: its data is soon invalid */
	uint32_t *in_block;		/* marked LBAs that are mapped there */
	uint64_t marks;
	uint64_t marked_until_ns;
};

struct ftl_power {
	uint64_t cut_in;		/* operations until the cut, 0: none is to come */
	uint64_t seed;
	bool off;
	uint64_t ready_ns;		/* the mount is done */
};

/* Sources of events; the dies follow the fixed ones. */
enum {
	FTL_DUE_CONTROLLER, FTL_DUE_LINK_READ, FTL_DUE_LINK_WRITE, FTL_DUE_RESPONSE,
	FTL_DUE_IDLE, FTL_DUE_DIE,
};

struct ftl {
	struct ftl_config config;
	uint64_t now_ns;
	uint32_t dies;
	uint32_t due_count;
	uint64_t due_ns[FTL_DUE_DIE + FTL_MAX_DIES];

	/* store.c */
	struct ftl_block *block;
	uint32_t blocks, blocks_per_die, rows_per_block;
	uint32_t main_blocks;		/* of each die; the others are the write buffer's */
	uint64_t free_rows;
	uint64_t next_sequence;
	uint32_t streams;		/* the host's, and the map's if it has one: the last */
	uint32_t next_die[FTL_OPEN_STREAMS];
	void *pool;			/* pages for blocks to be opened, a list */
	uint32_t pool_count, pool_target;
	uint64_t buffered_pages;
	uint64_t pins;			/* rows that reads are to take data from */
	struct ftl_block_list *candidates;	/* storage of the dies' */

	/* gc.c */
	uint64_t collect;		/* dies whose collector has to look: one bit each */
	uint64_t collect_waits;		/* ... has found nothing to do, though space is short */
	bool folding;			/* the host is idle: the write buffer is emptied */

	struct ftl_system system;
	struct ftl_log log;
	struct ftl_spread spread;
	struct ftl_hints hints;
	struct ftl_power power;

	/* map.c */
	struct ftl_pairs alias;		/* physical page -> LBAs that have it by the log */
	struct ftl_pairs armed;		/* dst -> src */
	uint32_t *map;			/* LBA -> physical page + 1, 0 if unmapped */
	uint32_t lbas;			/* the host's, then those of the map's own pages */
	uint64_t mapped_pages;

	struct ftl_mapcache mapcache;
	struct ftl_units units;
	struct ftl_cache cache;
	struct ftl_readcache readcache;

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
	struct ftl_commands arrived;	/* head is the one being served, if one is */
	struct ftl_commands writes;	/* waiting for the link; head is moving */
	struct ftl_commands responses;
	struct ftl_commands done;
	struct ftl_queue reads;		/* read pages waiting for the link */
	struct ftl_queue front_reads;	/* ... the foreground's, under FTL_FG_AWARE */
	uint32_t reads_passed_over;	/* on the link, as at a die */
	struct ftl_operation *link_read; /* on the link, or NULL */
	uint32_t link_write;		/* pages of writes' head on the link, or 0 */
	uint32_t discarded;		/* pages of arrived's head */
	uint32_t in_service;		/* commands that have begun and not been answered */
	bool held;			/* writes of the background wait for rows (front_rows) */
	uint64_t promised_rows;		/* to writes of the background that have begun */
	uint32_t unanswered;

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

static inline bool ftl_queue_remove(struct ftl_queue *queue, struct ftl_operation *operation)
{
	struct ftl_operation *before = NULL, *at = queue->head;

	while (at && at != operation) {
		before = at;
		at = at->next;
	}
	if (!at)
		return false;
	if (before)
		before->next = at->next;
	else
		queue->head = at->next;
	if (queue->tail == at)
		queue->tail = before;
	return true;
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

/* @place: the command before it, or NULL. */
static inline void ftl_commands_insert(struct ftl_commands *commands, struct ftl_cmd *place,
				       struct ftl_cmd *cmd)
{
	struct ftl_cmd **link = place ? &place->next : &commands->head;

	cmd->next = *link;
	*link = cmd;
	if (!cmd->next)
		commands->tail = cmd;
}

static inline struct ftl_cmd *ftl_commands_pop(struct ftl_commands *commands)
{
	struct ftl_cmd *cmd = commands->head;

	if (cmd)
		commands->head = cmd->next;
	return cmd;
}

/* config.c */
/* Of a die: those beside the write buffer, and the write buffer's. */
uint64_t ftl_config_main_blocks(const struct ftl_config *config);
uint32_t ftl_config_buffer_blocks(const struct ftl_config *config);
uint32_t ftl_config_streams(const struct ftl_config *config);	/* of the host's, at least 1 */

/* store.c: physical pages and blocks */
bool ftl_store_create(struct ftl *ftl);
void ftl_store_destroy(struct ftl *ftl);
bool ftl_store_reserve_row(struct ftl *ftl);
/* The first physical page of a row that was reserved, in a block of the stream's if there is one. */
uint32_t ftl_store_take_row(struct ftl *ftl, uint32_t stream, bool *erase_first);
bool ftl_store_has_row(const struct ftl *ftl, uint32_t stream);
void ftl_store_give_back_row(struct ftl *ftl);	/* that was reserved */
uint32_t ftl_store_map_stream(const struct ftl *ftl);
/* Blocks of a die that are open at a time, at most; and each of them, FTL_NONE if it is not. */
uint32_t ftl_store_open_blocks(const struct ftl *ftl);
uint32_t ftl_store_open_block(const struct ftl *ftl, const struct ftl_die *die, uint32_t index);
void ftl_store_program(struct ftl *ftl, uint32_t physical, uint32_t lba, uint64_t sequence,
		       struct ftl_content *content);
void ftl_store_stale(struct ftl *ftl, uint32_t physical);
/* What is in a page, to be programmed elsewhere; false if memory is short. */
bool ftl_store_copy(const struct ftl *ftl, uint32_t physical, struct ftl_content *content);
bool ftl_store_lift(struct ftl *ftl, uint32_t physical, struct ftl_content *content);
void ftl_store_hold(struct ftl *ftl, uint32_t physical, uint32_t pages); /* for the collector */
void ftl_store_let_go(struct ftl *ftl, uint32_t physical);
void ftl_store_row_done(struct ftl *ftl, uint32_t physical);
void ftl_store_pin(struct ftl *ftl, uint32_t physical);
void ftl_store_unpin(struct ftl *ftl, uint32_t physical);
void ftl_store_validate(struct ftl *ftl, uint32_t physical);
void ftl_store_invalidate(struct ftl *ftl, uint32_t physical, bool by_entry); /* of the log */
bool ftl_store_is_held(const struct ftl *ftl);
/* All valid pages of the page's block have been gathered by the collector. */
bool ftl_store_is_gathered(const struct ftl *ftl, uint32_t physical);
void ftl_store_erased(struct ftl *ftl, uint32_t physical);
void ftl_store_erased_ahead(struct ftl *ftl, struct ftl_die *die);
uint32_t ftl_store_lba(const struct ftl *ftl, uint32_t physical);
uint64_t ftl_store_sequence(const struct ftl *ftl, uint32_t physical);
void ftl_store_read(const struct ftl *ftl, uint32_t physical, void *memory);
struct ftl_die *ftl_die_of(struct ftl *ftl, uint32_t physical);
/* Rows that the host can be given of the die without another block, at most. */
uint32_t ftl_store_rows(const struct ftl *ftl, const struct ftl_die *die);
uint32_t ftl_store_main_rows(const struct ftl *ftl, const struct ftl_die *die); /* without the buffer's */
/* Blocks of a die that hold nothing and can be opened. */
uint32_t ftl_store_free_blocks(const struct ftl_die *die);
/* The first physical page of a row for the collector; false if there is none now. */
bool ftl_store_take_collect_row(struct ftl *ftl, struct ftl_die *die, uint32_t *physical,
				bool *erase_first);
bool ftl_store_is_buffer(const struct ftl *ftl, uint32_t physical);	/* the write buffer's */
void ftl_candidate_add(struct ftl *ftl, uint32_t block);
void ftl_candidate_remove(struct ftl *ftl, uint32_t block);

/* The power is cut while the operation is in service: it is half done. */
void ftl_store_torn_erase(struct ftl *ftl, uint32_t physical);
void ftl_store_torn_page(struct ftl *ftl, uint32_t physical);
/* After the cut: what is in flash, and nothing else. */
void ftl_store_power_lost(struct ftl *ftl);
void ftl_store_rebuild(struct ftl *ftl);	/* from the map */
void ftl_store_adopt(struct ftl *ftl, const struct ftl_image_block *from);
void ftl_store_release_held(struct ftl *ftl);
const struct ftl_page *ftl_store_page(const struct ftl *ftl, uint32_t physical);

/* pairs.c */
bool ftl_pairs_create(struct ftl_pairs *pairs, uint32_t limit);
void ftl_pairs_destroy(struct ftl_pairs *pairs);
void ftl_pairs_clear(struct ftl_pairs *pairs);
bool ftl_pairs_add(struct ftl_pairs *pairs, uint32_t key, uint32_t value);
bool ftl_pairs_remove(struct ftl_pairs *pairs, uint32_t key, uint32_t value);
bool ftl_pairs_find(const struct ftl_pairs *pairs, uint32_t key, uint32_t *value);
/* Indices of the pairs with the key, FTL_NONE at the end. */
uint32_t ftl_pairs_first(const struct ftl_pairs *pairs, uint32_t key);
uint32_t ftl_pairs_next(const struct ftl_pairs *pairs, uint32_t index);
uint32_t ftl_pairs_count(const struct ftl_pairs *pairs, uint32_t key);
bool ftl_pairs_has(const struct ftl_pairs *pairs, uint32_t key, uint32_t value);

/* system.c: flash for the log and the checkpoints */
bool ftl_system_create(struct ftl *ftl);
void ftl_system_destroy(struct ftl *ftl);
uint64_t ftl_system_pages(const struct ftl *ftl);
uint64_t ftl_system_append(struct ftl *ftl, struct ftl_system_page *page);	/* its number */
uint64_t ftl_system_written(const struct ftl *ftl);	/* all pages up to this number are */
uint32_t ftl_system_free_stripes(const struct ftl *ftl);
void ftl_system_run(struct ftl *ftl);
void ftl_system_programmed(struct ftl *ftl, uint32_t die);
void ftl_system_erased(struct ftl *ftl, uint32_t die);
void ftl_system_sort_out(struct ftl *ftl, bool (*needed)(const struct ftl *ftl,
							  const struct ftl_system_page *page));
void ftl_system_torn(struct ftl *ftl, uint32_t die, enum ftl_kind kind);
void ftl_system_reset(struct ftl *ftl);
void ftl_system_resume(struct ftl *ftl, uint64_t highest_number, uint64_t last_number,
		       uint64_t last_index);

/* log.c: what the OOBs do not tell */
void ftl_log_destroy(struct ftl *ftl);
void ftl_log_reset(struct ftl *ftl);
bool ftl_log_reserve(struct ftl *ftl, uint32_t entries);	/* false if memory is short */
bool ftl_log_append(struct ftl *ftl, enum ftl_log_kind kind, uint32_t lba, uint32_t from,
		    uint32_t pages);
bool ftl_log_is_full(const struct ftl *ftl);
void ftl_log_flush(struct ftl *ftl);
bool ftl_log_holds(const struct ftl *ftl, uint64_t version);
void ftl_log_written(struct ftl *ftl);
void ftl_log_snapshot(struct ftl *ftl, enum ftl_snapshot kind);
bool ftl_log_wants_quiet(const struct ftl *ftl);	/* no row is to be sent off */
void ftl_log_run(struct ftl *ftl);
void ftl_log_count(struct ftl *ftl, uint32_t pages);
void ftl_log_wait(struct ftl *ftl, struct ftl_cmd *cmd);
bool ftl_log_needed(const struct ftl *ftl, const struct ftl_system_page *page);

/* janus.c: the Janus commands */
void ftl_janus_start(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_janus_flushed(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_janus_remap(struct ftl *ftl, struct ftl_cmd *cmd);	/* nothing is under program */
void ftl_janus_read(struct ftl *ftl, struct ftl_operation *operation);
void ftl_janus_go_on(struct ftl *ftl);	/* the cache has room */
bool ftl_janus_elide(struct ftl *ftl, uint32_t lba, const struct ftl_content *content,
		     uint32_t *physical);	/* the page it was compared with */

/* hints.c: what the host announces */
void ftl_hints_destroy(struct ftl *ftl);
void ftl_hints_power_lost(struct ftl *ftl);
void ftl_hints_start(struct ftl *ftl, struct ftl_cmd *cmd);
/* Entries of the map, before and after. */
void ftl_hints_mapped(struct ftl *ftl, uint32_t lba, uint32_t before, uint32_t after);
bool ftl_hints_is_marked(const struct ftl *ftl, uint32_t lba);
uint32_t ftl_hints_marks_in(const struct ftl *ftl, uint32_t block);
bool ftl_hints_avoid(const struct ftl *ftl);	/* blocks with marked pages are left alone */
/* False without an announcement; else the rows that each die is to have free. */
bool ftl_hints_reserve(const struct ftl *ftl, uint32_t *rows_of_die);

/* power.c */
bool ftl_power_cut_now(struct ftl *ftl);	/* instead of an operation's end */
enum ftl_fate ftl_power_fate(struct ftl *ftl);

/* gc.c: moves valid pages out of blocks that are mostly invalid */
bool ftl_collect_has(struct ftl *ftl, uint32_t physical);	/* its copy is under program */
void ftl_collect_wake(struct ftl *ftl, const struct ftl_die *die);
void ftl_collect_wake_waiting(struct ftl *ftl);
void ftl_collect_run(struct ftl *ftl);		/* all that were woken */
void ftl_collect_idle(struct ftl *ftl);		/* the host has been, for long enough */
void ftl_collect_done(struct ftl *ftl, struct ftl_die *die);
bool ftl_collect_goes_on(struct ftl *ftl);	/* space will come of it */
bool ftl_collect_is_at_work(const struct ftl *ftl);
void ftl_collect_hurry(struct ftl *ftl);	/* writes are held until there is space */

/* map.c: from LBA to physical page */

/*
 * A large map and the pages that it leads to are hardly ever in the CPU's caches. So an
 * entry is fetched when its command arrives, what it leads to when a row that takes its
 * place is sent off, and entries that a collector will look at while it reads.
 */
static inline void ftl_map_prefetch(const struct ftl *ftl, uint32_t lba)
{
	ftl_prefetch(&ftl->map[lba]);
}

static inline void ftl_map_prefetch_page(const struct ftl *ftl, uint32_t lba)
{
	uint32_t physical = ftl->map[lba] - 1;
	const struct ftl_block *block = &ftl->block[physical / ftl->config.block_pages];

	if (ftl->map[lba])
		ftl_prefetch(&block->page[physical % ftl->config.block_pages]);
}

static inline void ftl_map_prefetch_owners(const struct ftl *ftl, const struct ftl_page *page,
					   uint32_t pages)
{
	for (; pages--; page++) {
		if (page->lba < ftl->lbas)
			ftl_map_prefetch(ftl, page->lba);
	}
}

bool ftl_map_create(struct ftl *ftl);
void ftl_map_destroy(struct ftl *ftl);
void ftl_map_power_lost(struct ftl *ftl);
bool ftl_map_find(const struct ftl *ftl, uint32_t lba, uint32_t *physical);
bool ftl_map_programmed(struct ftl *ftl, uint32_t lba, uint32_t physical); /* false if stale */
uint32_t ftl_map_owner(const struct ftl *ftl, uint32_t physical);	/* FTL_NO_LBA if none */
uint32_t ftl_map_owners(const struct ftl *ftl, uint32_t physical);
bool ftl_map_may_move(struct ftl *ftl);
/* `to` has become the copy of `from`; its OOB names `lba`. */
void ftl_map_moved(struct ftl *ftl, uint32_t from, uint32_t to, uint32_t lba);
void ftl_map_share(struct ftl *ftl, uint32_t lba, uint32_t physical);
void ftl_map_unmap(struct ftl *ftl, uint32_t lba);
bool ftl_map_names(const struct ftl *ftl, uint32_t physical, uint32_t lba);
bool ftl_map_has(const struct ftl *ftl, uint32_t lba, uint32_t pages);	/* something */
void ftl_map_discard(struct ftl *ftl, uint32_t lba, uint32_t pages);

/* units.c: what a write costs beside itself where the device maps large units */
uint64_t ftl_units_write_ns(struct ftl *ftl, const struct ftl_cmd *cmd);

/* mapcache.c: the map in flash, and what of it is in RAM */
uint32_t ftl_mapcache_pages(const struct ftl_config *config);	/* 0: all is in RAM */
bool ftl_mapcache_create(struct ftl *ftl);
void ftl_mapcache_destroy(struct ftl *ftl);
void ftl_mapcache_power_lost(struct ftl *ftl);
/* False: ftl_command_looked_up() is called when the read's entries are in RAM. */
bool ftl_mapcache_look_up(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_mapcache_read_done(struct ftl *ftl, struct ftl_operation *operation);
void ftl_mapcache_changed(struct ftl *ftl, uint32_t lba);
bool ftl_mapcache_is_full(const struct ftl *ftl);	/* of changes: writes wait */
bool ftl_mapcache_is_quiet(const struct ftl *ftl);	/* nothing is under program */
bool ftl_mapcache_under_program(const struct ftl *ftl, uint32_t lba);
void ftl_mapcache_run(struct ftl *ftl);
bool ftl_mapcache_flush(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_mapcache_row_done(struct ftl *ftl, struct ftl_map_row *row);
void ftl_mapcache_torn(struct ftl *ftl, const struct ftl_map_row *row);

/* cache.c: pages on their way to flash */
bool ftl_cache_create(struct ftl *ftl);
void ftl_cache_destroy(struct ftl *ftl);
bool ftl_cache_read(const struct ftl *ftl, uint32_t lba, void *memory);
bool ftl_cache_write(struct ftl *ftl, uint32_t lba, struct ftl_content *content,
		     struct ftl_cmd *cmd);
/* Pages in the row that the stream's next one goes to. */
uint32_t ftl_cache_staged(const struct ftl *ftl, uint32_t stream);
/* The next page of the stream finds a row that is being filled. */
bool ftl_cache_has_row(const struct ftl *ftl, uint32_t stream);
/* The stream that the device puts a write to the LBA in. */
uint32_t ftl_cache_stream(const struct ftl *ftl, uint32_t lba, const struct ftl_cmd *cmd);
void ftl_cache_push(struct ftl *ftl, uint32_t stream);	/* programs the staged row, padded */
void ftl_cache_push_all(struct ftl *ftl);
void ftl_cache_push_of(struct ftl *ftl, const struct ftl_cmd *fua);
void ftl_cache_flush(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_cache_discard(struct ftl *ftl, uint32_t lba, uint32_t pages);
bool ftl_cache_has_any(const struct ftl *ftl, uint32_t lba, uint32_t pages);
void ftl_cache_row_done(struct ftl *ftl, struct ftl_row *row);
bool ftl_cache_under_program(const struct ftl *ftl, uint32_t lba);
bool ftl_map_under_program(const struct ftl *ftl, uint32_t physical);	/* of any of its LBAs */
bool ftl_cache_has(const struct ftl *ftl, uint32_t lba);
void ftl_cache_power_lost(struct ftl *ftl);
void ftl_cache_end_flushes(struct ftl *ftl);
bool ftl_cache_is_quiet(const struct ftl *ftl);

/* readcache.c: pages of flash that are in RAM */
bool ftl_readcache_create(struct ftl *ftl);
void ftl_readcache_destroy(struct ftl *ftl);
void ftl_readcache_power_lost(struct ftl *ftl);
bool ftl_readcache_read(struct ftl *ftl, uint32_t lba, void *memory);
bool ftl_readcache_has(const struct ftl *ftl, uint32_t lba, uint32_t pages);	/* all of them */
void ftl_readcache_was_read(struct ftl *ftl, uint32_t lba);
void ftl_readcache_changed(struct ftl *ftl, uint32_t lba);
void ftl_readcache_want(struct ftl *ftl, const struct ftl_range *range);
void ftl_readcache_fetched(struct ftl *ftl, struct ftl_operation *operation);

/* die.c: dies and channels in time */
void ftl_die_queue(struct ftl *ftl, struct ftl_die *die, struct ftl_operation *operation,
		   enum ftl_class class);
/* Takes an operation out of the queue; false if it is being served. */
bool ftl_die_cancel(struct ftl_die *die, struct ftl_operation *operation, enum ftl_class class);
void ftl_die_event(struct ftl *ftl, struct ftl_die *die);
void ftl_die_power_lost(struct ftl *ftl);

/* command.c: commands in time */
bool ftl_command_create(struct ftl *ftl);
void ftl_command_destroy(struct ftl *ftl);
void ftl_command_looked_up(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_command_row_read(struct ftl *ftl, struct ftl_operation *operation);
/* Whether the device puts it first. */
bool ftl_command_is_front(const struct ftl *ftl, const struct ftl_cmd *cmd);
void ftl_command_respond(struct ftl *ftl, struct ftl_cmd *cmd);
void ftl_link_start(struct ftl *ftl);
void ftl_command_verified(struct ftl *ftl, struct ftl_operation *operation);
void ftl_command_power_lost(struct ftl *ftl);

/* stats.c */
void ftl_stats_busy(struct ftl *ftl, int change);

_Static_assert(sizeof(struct ftl_system_page) <= FTL_PAGE_BYTES, "a page of the system area");

#endif
