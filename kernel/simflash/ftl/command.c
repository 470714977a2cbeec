// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands in time: the controller, the link and the response.
 *
 * The controller serves commands in order of arrival, one at a time, and none
 * while as many are unanswered as the device works on at once. Then a
 * read's rows wait at their dies and its pages cross the link as they come;
 * writes cross the link one command after another, as far as the cache has
 * room, and a write is done when its last page is in the cache.
 *
 * Under FTL_FG_AWARE the foreground's reads and writes overtake those of others
 * that wait for the controller or the link, but not what has begun or is of the
 * same LBAs, and none for ever.
 *
 * With front_rows, writes of the background do not begin while only so many rows
 * would be left: they are *held*, and what does not depend on them passes. They go on
 * when collection has made room, or has come to rest.
 */
#include "internal.h"

#define MIB_PAGES 256

/* So many of the foreground may overtake a command. */
#define MAX_OVERTAKEN 16

static void *page_memory(const struct ftl_cmd *cmd, uint32_t page)
{
	return cmd->page[page].memory;
}

bool ftl_command_create(struct ftl *ftl)
{
	uint32_t depth = ftl->config.queue_depth + 1;
	uint32_t pages = ftl->config.command_pages;
	uint32_t i;

	ftl->command = ftl_alloc_array(depth, sizeof(*ftl->command));
	ftl->command_page = ftl_alloc_array((size_t)depth * pages, sizeof(*ftl->command_page));
	ftl->command_operation =
		ftl_alloc_array((size_t)depth * pages, sizeof(*ftl->command_operation));
	if (!ftl->command || !ftl->command_page || !ftl->command_operation)
		return false;
	for (i = 0; i < depth; i++) {
		ftl->command[i].page = ftl->command_page + (size_t)i * pages;
		ftl->command[i].operation = ftl->command_operation + (size_t)i * pages;
	}
	return true;
}

void ftl_command_destroy(struct ftl *ftl)
{
	ftl_free_array(ftl->command);
	ftl_free_array(ftl->command_page);
	ftl_free_array(ftl->command_operation);
}

struct ftl_cmd *ftl_command(struct ftl *ftl, uint32_t tag)
{
	return &ftl->command[tag];
}

void ftl_command_respond(struct ftl *ftl, struct ftl_cmd *cmd)
{
	cmd->due_ns = ftl->now_ns + ftl->config.response_ns;
	if (!ftl->responses.head)
		ftl->due_ns[FTL_DUE_RESPONSE] = cmd->due_ns;
	ftl_commands_push(&ftl->responses, cmd);
}

static void count_command(struct ftl_stats *stats, const struct ftl_cmd *cmd, uint64_t took_ns)
{
	if (cmd->op >= FTL_OPS)
		return;
	stats->commands[cmd->op]++;
	stats->command_pages[cmd->op] += cmd->pages;
	stats->command_ns[cmd->op] += took_ns;
	if (took_ns > stats->command_max_ns[cmd->op])
		stats->command_max_ns[cmd->op] = took_ns;
	stats->fua_writes += cmd->op == FTL_WRITE && cmd->fua;
	stats->failed += cmd->status != FTL_OK;
}

static void controller_start(struct ftl *ftl);

static void response_event(struct ftl *ftl)
{
	struct ftl_cmd *cmd = ftl_commands_pop(&ftl->responses);

	count_command(&ftl->stats, cmd, ftl->now_ns - cmd->arrival_ns);
	cmd->under_way = false;
	ftl->due_ns[FTL_DUE_RESPONSE] =
		ftl->responses.head ? ftl->responses.head->due_ns : FTL_NEVER;
	ftl_commands_push(&ftl->done, cmd);
	ftl->in_service--;
	ftl->unanswered--;
	if (ftl->config.slc_pages && !ftl->unanswered)
		ftl->due_ns[FTL_DUE_IDLE] = ftl->now_ns + ftl->config.fold_after_ns;
	controller_start(ftl);
}

/* Reads. */

static bool same_row(const struct ftl *ftl, uint32_t one, uint32_t other)
{
	return one / ftl->config.row_pages == other / ftl->config.row_pages;
}

/* Gives page `page` of the command to `last` if it belongs to the same piece of work. */
static bool append(const struct ftl *ftl, struct ftl_operation *last, enum ftl_kind kind,
		   const struct ftl_cmd *cmd, uint32_t page)
{
	if (!last || last->kind != kind || last->pages == ftl->config.row_pages)
		return false;
	if (kind == FTL_READ_ROW && !same_row(ftl, last->physical, cmd->page[page].physical))
		return false;
	last->pages++;
	return true;
}

static enum ftl_kind look_up(struct ftl *ftl, struct ftl_cmd *cmd, uint32_t page)
{
	uint32_t lba = cmd->lba + page;

	if (ftl_cache_read(ftl, lba, page_memory(cmd, page))) {
		ftl->stats.cache_read_hits++;
		return FTL_NO_FLASH;
	}
	if (ftl_readcache_read(ftl, lba, page_memory(cmd, page)))
		return FTL_NO_FLASH;
	if (ftl_map_find(ftl, lba, &cmd->page[page].physical)) {
		cmd->page[page].oob = lba;
		if (ftl->alias.count && ftl_map_names(ftl, cmd->page[page].physical, lba))
			cmd->page[page].oob = ftl_store_lba(ftl, cmd->page[page].physical);
		return FTL_READ_ROW;
	}
	ftl_fill_page(page_memory(cmd, page), 0);
	ftl->stats.unmapped_reads++;
	return FTL_NO_FLASH;
}

bool ftl_command_is_front(const struct ftl *ftl, const struct ftl_cmd *cmd)
{
	return ftl->config.policy == FTL_FG_AWARE && cmd && cmd->foreground &&
	       (cmd->op == FTL_READ || cmd->op == FTL_WRITE);
}

/* Whether the order of the two cannot be told from what they leave. */
static bool independent(const struct ftl_cmd *one, const struct ftl_cmd *other)
{
	if (other->op >= FTL_OPS)
		return false;
	if (other->op == FTL_FLUSH || (one->op == FTL_READ && other->op == FTL_READ))
		return true;
	return one->lba >= other->lba + other->pages || other->lba >= one->lba + one->pages;
}

/*
 * Queues @cmd behind what has @begun at the head, behind the foreground's own
 * and what it depends on, and behind what was overtaken often enough.
 */
static void queue_command(struct ftl *ftl, struct ftl_commands *commands, struct ftl_cmd *cmd,
			  bool begun)
{
	struct ftl_cmd *place = NULL, *each;

	cmd->overtaken = 0;
	if (!ftl_command_is_front(ftl, cmd)) {
		ftl_commands_push(commands, cmd);
		return;
	}
	for (each = commands->head; each; each = each->next) {
		if ((begun && each == commands->head) || ftl_command_is_front(ftl, each) ||
		    !independent(cmd, each) || each->overtaken >= MAX_OVERTAKEN)
			place = each;
	}
	for (each = place ? place->next : commands->head; each; each = each->next)
		each->overtaken++;
	ftl_commands_insert(commands, place, cmd);
}

static void to_link(struct ftl *ftl, struct ftl_operation *operation)
{
	if (ftl_command_is_front(ftl, operation->cmd))
		ftl_queue_push(&ftl->front_reads, operation);
	else
		ftl_queue_push(&ftl->reads, operation);
	ftl_link_start(ftl);
}

static void start_read(struct ftl *ftl, struct ftl_cmd *cmd)
{
	struct ftl_operation *last = NULL;
	uint32_t operations = 0;
	uint32_t page;

	for (page = 0; page < cmd->pages; page++) {
		enum ftl_kind kind = look_up(ftl, cmd, page);

		if (append(ftl, last, kind, cmd, page))
			continue;
		last = &cmd->operation[operations++];
		last->cmd = cmd;
		last->kind = kind;
		last->first = page;
		last->pages = 1;
		last->physical = cmd->page[page].physical;
	}

	cmd->waiting = operations;
	for (last = cmd->operation; last < cmd->operation + operations; last++) {
		if (last->kind == FTL_NO_FLASH) {
			to_link(ftl, last);
			continue;
		}
		ftl_store_pin(ftl, last->physical);
		ftl_die_queue(ftl, ftl_die_of(ftl, last->physical), last,
			      ftl_command_is_front(ftl, cmd) ? FTL_CLASS_FRONT_READ :
							       FTL_CLASS_READ);
	}
}

void ftl_command_looked_up(struct ftl *ftl, struct ftl_cmd *cmd)
{
	start_read(ftl, cmd);
}

/* A die has read its pages: their data is taken now, then they cross the link. */
void ftl_command_row_read(struct ftl *ftl, struct ftl_operation *operation)
{
	struct ftl_cmd *cmd = operation->cmd;
	uint32_t end = operation->first + operation->pages;
	uint32_t page;

	for (page = operation->first; page < end; page++) {
		uint32_t physical = cmd->page[page].physical;

		if (ftl_store_lba(ftl, physical) != cmd->page[page].oob)
			cmd->status = FTL_CORRUPT;
		else
			ftl_store_read(ftl, physical, page_memory(cmd, page));
		ftl_readcache_was_read(ftl, cmd->lba + page);
	}
	ftl_store_unpin(ftl, operation->physical);
	to_link(ftl, operation);
}

/* Writes. */

/*
 * How many pages of the writes' head cross the link next: to the row's end if
 * there is room in the cache, and flash for them or no hope of any.
 */
static uint32_t next_piece(struct ftl *ftl)
{
	const struct ftl_cmd *cmd = ftl->writes.head;
	uint32_t pages, stream;

	if (!cmd || ftl_log_wants_quiet(ftl) || ftl_mapcache_is_full(ftl))
		return 0;
	stream = ftl_cache_stream(ftl, cmd->lba + cmd->moved, cmd);
	if (!ftl_cache_has_row(ftl, stream) && !ftl->free_rows && ftl_collect_goes_on(ftl))
		return 0;
	if (ftl->streams > 1 && !ftl_store_has_row(ftl, stream) && ftl_collect_is_at_work(ftl))
		return 0;
	pages = ftl->config.row_pages - ftl_cache_staged(ftl, stream);
	if (pages > cmd->pages - cmd->moved)
		pages = cmd->pages - cmd->moved;
	return pages <= ftl->cache.free_count ? pages : 0;
}

static uint32_t rows_of(const struct ftl *ftl, const struct ftl_cmd *cmd)
{
	return (cmd->pages + ftl->config.row_pages - 1) / ftl->config.row_pages;
}

static bool may_be_held(const struct ftl *ftl, const struct ftl_cmd *cmd)
{
	return ftl->config.front_rows && cmd->op == FTL_WRITE && !ftl_command_is_front(ftl, cmd);
}

static void end_write(struct ftl *ftl, struct ftl_cmd *cmd)
{
	if (may_be_held(ftl, cmd))
		ftl->promised_rows -= rows_of(ftl, cmd);
	ftl_commands_pop(&ftl->writes);
	for (; cmd->moved < cmd->pages; cmd->moved++)
		ftl_content_drop(&cmd->page[cmd->moved].content);
	if (cmd->fua)
		ftl_cache_push_of(ftl, cmd);
	if (!--cmd->waiting)
		ftl_command_respond(ftl, cmd);
}

/*
 * A page that brings what it is armed with is not programmed: only the read
 * that it was compared with has to end. Not so with FUA, for then the log
 * would have to be in flash. Returns the read, which more pages of the row may
 * join, or NULL.
 */
static struct ftl_operation *elide(struct ftl *ftl, struct ftl_cmd *cmd,
				   struct ftl_operation *last)
{
	struct ftl_content *content = &cmd->page[cmd->moved].content;
	uint32_t physical;

	if (cmd->fua || !ftl_janus_elide(ftl, cmd->lba + cmd->moved, content, &physical))
		return NULL;
	ftl_content_drop(content);
	if (last && same_row(ftl, last->physical, physical)) {
		last->pages++;
		return last;
	}
	last = &cmd->operation[cmd->moved];
	last->cmd = cmd;
	last->kind = FTL_VERIFY_READ;
	last->physical = physical;
	last->pages = 1;
	cmd->waiting++;
	ftl_store_pin(ftl, physical);
	ftl_die_queue(ftl, ftl_die_of(ftl, physical), last, FTL_CLASS_READ);
	return last;
}

void ftl_command_verified(struct ftl *ftl, struct ftl_operation *operation)
{
	ftl_store_unpin(ftl, operation->physical);
	if (!--operation->cmd->waiting)
		ftl_command_respond(ftl, operation->cmd);
}

/* The pages on the link have arrived in the cache. */
static void write_moved(struct ftl *ftl)
{
	struct ftl_cmd *cmd = ftl->writes.head;
	uint32_t end = cmd->moved + ftl->link_write;
	struct ftl_operation *compared = NULL;

	ftl->link_write = 0;
	for (; cmd->moved < end; cmd->moved++) {
		if (ftl->armed.count) {
			compared = elide(ftl, cmd, compared);
			if (compared)
				continue;
		}
		if (ftl_cache_write(ftl, cmd->lba + cmd->moved, &cmd->page[cmd->moved].content,
				    cmd))
			continue;
		if (ftl_collect_goes_on(ftl))
			return;		/* what is left crosses the link again */
		cmd->status = FTL_NO_SPACE;
		break;
	}
	if (cmd->moved == cmd->pages || cmd->status != FTL_OK)
		end_write(ftl, cmd);
}

/* The link. */

static bool read_crosses_first(const struct ftl *ftl)
{
	const struct ftl_cmd *write = ftl->writes.head;

	if (!write || ftl->front_reads.head || ftl->config.policy == FTL_READ_FIRST)
		return true;
	if (ftl->config.policy == FTL_FG_AWARE)
		return !ftl_command_is_front(ftl, write);
	return ftl->reads.head->cmd->number < write->number;
}

static struct ftl_operation *next_read(struct ftl *ftl)
{
	bool both = ftl->front_reads.head && ftl->reads.head;

	if (ftl->front_reads.head && (!both || ftl->reads_passed_over < MAX_OVERTAKEN)) {
		ftl->reads_passed_over += both;
		return ftl_queue_pop(&ftl->front_reads);
	}
	ftl->reads_passed_over = 0;
	return ftl_queue_pop(&ftl->reads);
}

static void start_link_read(struct ftl *ftl)
{
	ftl->link_read = next_read(ftl);
	ftl->due_ns[FTL_DUE_LINK_READ] =
		ftl->now_ns + ftl->link_read->pages * ftl->config.link_page_ns;
}

static void start_link_write(struct ftl *ftl, uint32_t pages)
{
	ftl->link_write = pages;
	ftl->due_ns[FTL_DUE_LINK_WRITE] = ftl->now_ns + pages * ftl->config.link_page_ns;
}

/* One piece at a time; in either direction where the link is duplex. */
void ftl_link_start(struct ftl *ftl)
{
	bool reads = ftl->front_reads.head || ftl->reads.head;
	uint32_t pages;

	if (ftl->held)
		controller_start(ftl);
	if (!ftl->config.link_duplex && (ftl->link_read || ftl->link_write))
		return;
	pages = ftl->link_write ? 0 : next_piece(ftl);
	if (reads && !ftl->link_read &&
	    (ftl->config.link_duplex || !pages || read_crosses_first(ftl))) {
		start_link_read(ftl);
		if (!ftl->config.link_duplex)
			return;
	}
	if (pages)
		start_link_write(ftl, pages);
}

static void link_read_event(struct ftl *ftl)
{
	struct ftl_operation *operation = ftl->link_read;

	ftl->due_ns[FTL_DUE_LINK_READ] = FTL_NEVER;
	ftl->link_read = NULL;
	if (!--operation->cmd->waiting)
		ftl_command_respond(ftl, operation->cmd);
	ftl_link_start(ftl);
}

static void link_write_event(struct ftl *ftl)
{
	ftl->due_ns[FTL_DUE_LINK_WRITE] = FTL_NEVER;
	write_moved(ftl);
	ftl_link_start(ftl);
}

/* The controller. */

static uint64_t command_ns(struct ftl *ftl, const struct ftl_cmd *cmd)
{
	switch (cmd->op) {
	case FTL_READ:
		return ftl->config.read_command_ns;
	case FTL_WRITE:
		return ftl->config.write_command_ns + ftl_units_write_ns(ftl, cmd);
	case FTL_FLUSH:
		return ftl->config.flush_command_ns;
	case FTL_REMAP:
	case FTL_ARM:
		/* Changes to the map take what those of a discard take. */
		return ftl->config.discard_command_ns +
		       (cmd->pages + MIB_PAGES - 1) / MIB_PAGES * ftl->config.discard_mib_ns;
	case FTL_DISCARD:
		return ftl->config.discard_command_ns;
	default:
		return ftl->config.flush_command_ns;
	}
}

static bool controller_is_free(const struct ftl *ftl)
{
	return ftl->due_ns[FTL_DUE_CONTROLLER] == FTL_NEVER;
}

/* It would leave the foreground too few rows, and there will be more. */
static bool is_held(const struct ftl *ftl, const struct ftl_cmd *cmd)
{
	return ftl->free_rows < ftl->config.front_rows + ftl->promised_rows + rows_of(ftl, cmd) &&
	       ftl_collect_is_at_work(ftl);
}

/* A read that passes a write of its pages finds them as they were: the write has not ended. */
static bool passes(const struct ftl *ftl, const struct ftl_cmd *cmd)
{
	const struct ftl_cmd *each;

	if (cmd->op >= FTL_OPS)
		return false;
	for (each = ftl->arrived.head; each != cmd; each = each->next) {
		bool as_it_was = cmd->op == FTL_READ && each->op == FTL_WRITE;

		if (!as_it_was && !independent(cmd, each))
			return false;
	}
	return true;
}

/* Moves the first command that may begin to the head; false if there is none. */
static bool pass_held(struct ftl *ftl)
{
	struct ftl_cmd *cmd, *before = NULL;
	bool held = false;

	for (cmd = ftl->arrived.head; cmd; before = cmd, cmd = cmd->next) {
		if (may_be_held(ftl, cmd) && (held || is_held(ftl, cmd)))
			held = true;
		else if (!held || passes(ftl, cmd))
			break;
	}
	if (held && !ftl->held) {
		ftl->stats.held_writes++;
		ftl->held = true;
		ftl_collect_hurry(ftl);
	}
	ftl->held = held;
	if (!cmd || !before)
		return cmd;
	before->next = cmd->next;
	if (!cmd->next)
		ftl->arrived.tail = before;
	ftl_commands_insert(&ftl->arrived, NULL, cmd);
	return true;
}

/* Begins the next command, where one more may be in service. */
static void controller_start(struct ftl *ftl)
{
	struct ftl_cmd *cmd;

	if (!ftl->arrived.head || !controller_is_free(ftl) ||
	    (ftl->config.commands_at_once && ftl->in_service >= ftl->config.commands_at_once))
		return;
	if (ftl->config.front_rows && !pass_held(ftl))
		return;
	cmd = ftl->arrived.head;
	if (may_be_held(ftl, cmd))
		ftl->promised_rows += rows_of(ftl, cmd);
	ftl->in_service++;
	ftl->discarded = 0;
	ftl->due_ns[FTL_DUE_CONTROLLER] =
		(ftl->power.ready_ns > ftl->now_ns ? ftl->power.ready_ns : ftl->now_ns) +
		command_ns(ftl, cmd);
}

/*
 * The log has the discard before it is done: blocks that become invalid by it
 * are to wait for that entry. Where there is no memory for the entry nothing
 * is discarded; it is advice.
 */
static bool discard_is_logged(struct ftl *ftl, uint32_t lba, uint32_t pages)
{
	if (!ftl->config.power_loss)
		return true;
	if (!ftl_map_has(ftl, lba, pages) && !ftl_cache_has_any(ftl, lba, pages))
		return true;
	return ftl_log_reserve(ftl, 1) && ftl_log_append(ftl, FTL_LOG_UNMAP, lba, 0, pages);
}

/* One MiB after another, so that a large range keeps neither device nor CPU at once. */
static bool discard_next(struct ftl *ftl, struct ftl_cmd *cmd)
{
	uint32_t pages = cmd->pages - ftl->discarded;

	if (!pages)
		return false;
	if (pages > MIB_PAGES)
		pages = MIB_PAGES;
	if (discard_is_logged(ftl, cmd->lba + ftl->discarded, pages)) {
		ftl_cache_discard(ftl, cmd->lba + ftl->discarded, pages);
		ftl_map_discard(ftl, cmd->lba + ftl->discarded, pages);
	}
	ftl->discarded += pages;
	ftl->due_ns[FTL_DUE_CONTROLLER] = ftl->now_ns + ftl->config.discard_mib_ns;
	return true;
}

static void controller_event(struct ftl *ftl)
{
	struct ftl_cmd *cmd = ftl->arrived.head;

	if (cmd->op == FTL_DISCARD && discard_next(ftl, cmd))
		return;
	ftl_commands_pop(&ftl->arrived);
	ftl->due_ns[FTL_DUE_CONTROLLER] = FTL_NEVER;
	switch (cmd->op) {
	case FTL_READ:
		if (ftl_readcache_has(ftl, cmd->lba, cmd->pages) || ftl_mapcache_look_up(ftl, cmd))
			start_read(ftl, cmd);
		break;
	case FTL_WRITE:
		cmd->waiting = 1;	/* its own transfer; FUA adds its pages */
		queue_command(ftl, &ftl->writes, cmd,
			      ftl->link_write || (ftl->writes.head && ftl->writes.head->moved));
		ftl_link_start(ftl);
		break;
	case FTL_FLUSH:
		ftl_cache_flush(ftl, cmd);
		break;
	case FTL_DISCARD:
		ftl_command_respond(ftl, cmd);
		break;
	default:
		ftl_janus_start(ftl, cmd);
	}
	controller_start(ftl);
}

/* The clock. */

static uint32_t earliest(const struct ftl *ftl)
{
	uint32_t found = 0;
	uint32_t i;

	for (i = 1; i < ftl->due_count; i++) {
		if (ftl->due_ns[i] < ftl->due_ns[found])
			found = i;
	}
	return found;
}

static void idle_event(struct ftl *ftl)
{
	ftl->due_ns[FTL_DUE_IDLE] = FTL_NEVER;
	ftl_collect_idle(ftl);
}

uint64_t ftl_next_ns(const struct ftl *ftl)
{
	return ftl->due_ns[earliest(ftl)];
}

void ftl_run(struct ftl *ftl, uint64_t now_ns)
{
	for (;;) {
		uint32_t source = earliest(ftl);

		if (ftl->due_ns[source] == FTL_NEVER || ftl->due_ns[source] > now_ns)
			break;
		ftl->now_ns = ftl->due_ns[source];
		if (source == FTL_DUE_CONTROLLER)
			controller_event(ftl);
		else if (source == FTL_DUE_LINK_READ)
			link_read_event(ftl);
		else if (source == FTL_DUE_LINK_WRITE)
			link_write_event(ftl);
		else if (source == FTL_DUE_RESPONSE)
			response_event(ftl);
		else if (source == FTL_DUE_IDLE)
			idle_event(ftl);
		else
			ftl_die_event(ftl, &ftl->die[source - FTL_DUE_DIE]);
		if (ftl->collect)
			ftl_collect_run(ftl);
		if (ftl->log.wanted || ftl->log.remap)
			ftl_log_run(ftl);
		if (ftl->mapcache.wanted)
			ftl_mapcache_run(ftl);
	}
	if (now_ns > ftl->now_ns)
		ftl->now_ns = now_ns;
}

/* There is no power: the command ends without an answer. */
static void fail(struct ftl *ftl, struct ftl_cmd *cmd)
{
	cmd->status = FTL_POWER_LOST;
	cmd->due_ns = ftl->now_ns;
	cmd->under_way = false;
	for (; cmd->op == FTL_WRITE && cmd->moved < cmd->pages; cmd->moved++)
		ftl_content_drop(&cmd->page[cmd->moved].content);
	ftl_commands_push(&ftl->done, cmd);
}

void ftl_command_power_lost(struct ftl *ftl)
{
	uint32_t i;

	memset(&ftl->arrived, 0, sizeof(ftl->arrived));
	memset(&ftl->writes, 0, sizeof(ftl->writes));
	memset(&ftl->responses, 0, sizeof(ftl->responses));
	memset(&ftl->reads, 0, sizeof(ftl->reads));
	memset(&ftl->front_reads, 0, sizeof(ftl->front_reads));
	ftl->link_read = NULL;
	ftl->link_write = 0;
	ftl->in_service = ftl->unanswered = 0;
	ftl->held = false;
	ftl->promised_rows = 0;
	ftl->due_ns[FTL_DUE_IDLE] = FTL_NEVER;
	ftl->due_ns[FTL_DUE_CONTROLLER] = FTL_NEVER;
	ftl->due_ns[FTL_DUE_LINK_READ] = FTL_NEVER;
	ftl->due_ns[FTL_DUE_LINK_WRITE] = FTL_NEVER;
	ftl->due_ns[FTL_DUE_RESPONSE] = FTL_NEVER;
	for (i = 0; i <= ftl->config.queue_depth; i++) {
		if (ftl->command[i].under_way)
			fail(ftl, &ftl->command[i]);
	}
}

void ftl_submit(struct ftl *ftl, struct ftl_cmd *cmd, uint64_t now_ns)
{
	ftl_run(ftl, now_ns);
	cmd->status = FTL_OK;
	cmd->stream = cmd->op == FTL_WRITE && cmd->stream < ftl_config_streams(&ftl->config) ?
		      cmd->stream : 0;
	cmd->moved = 0;
	cmd->waiting = 0;
	cmd->number = ftl->next_number++;
	cmd->arrival_ns = ftl->now_ns;
	cmd->under_way = true;
	if (ftl->power.off) {
		fail(ftl, cmd);
		return;
	}
	ftl_map_prefetch(ftl, cmd->lba);
	ftl->unanswered++;
	ftl->folding = false;
	ftl->due_ns[FTL_DUE_IDLE] = FTL_NEVER;
	queue_command(ftl, &ftl->arrived, cmd, !controller_is_free(ftl));
	controller_start(ftl);
	if (ftl->collect)
		ftl_collect_run(ftl);
	ftl_run(ftl, now_ns);
}

struct ftl_cmd *ftl_take_done(struct ftl *ftl)
{
	return ftl_commands_pop(&ftl->done);
}
