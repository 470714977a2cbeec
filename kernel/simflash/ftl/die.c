// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dies and channels in time.
 *
 * A read senses its row, then moves its pages over the channel; a program
 * moves its pages first. The die belongs to the operation all the while. What
 * a die does next is decided when it gets free. Where it can, it suspends a
 * program or an erase for a read:
 *
 *	cells --a read is queued--> suspending --> reads --none, or enough--> cells
 */
#include "internal.h"

/*
 * With reads first, a program is passed over by at most this many reads: a
 * FLUSH has to end while a reader keeps the device busy, and so has urgent
 * garbage collection.
 */
#define MAX_PASSED_OVER 16

static uint32_t die_index(const struct ftl *ftl, const struct ftl_die *die)
{
	return die - ftl->die;
}

static void set_due(struct ftl *ftl, struct ftl_die *die, enum ftl_phase phase, uint64_t ns)
{
	die->phase = phase;
	ftl->due_ns[FTL_DUE_DIE + die_index(ftl, die)] = ftl->now_ns + ns;
}

/*
 * Which of the programs is next. Programs keep their order, which is that of the rows of
 * a block: before a program of the foreground go those that were queued before it.
 * Collection that yields is passed over by all of these, and else in order of arrival.
 */
static enum ftl_class next_programs(const struct ftl_die *die)
{
	const struct ftl_operation *program = die->queue[FTL_CLASS_PROGRAM].head;
	const struct ftl_operation *collect = die->queue[FTL_CLASS_COLLECT].head;

	if (!collect)
		return FTL_CLASS_PROGRAM;
	if (!program)
		return FTL_CLASS_COLLECT;
	return die->front_programs || program->arrival < collect->arrival ? FTL_CLASS_PROGRAM :
									    FTL_CLASS_COLLECT;
}

static bool read_goes_first(struct ftl *ftl, const struct ftl_die *die, enum ftl_class reads,
			    enum ftl_class programs)
{
	const struct ftl_operation *read = die->queue[reads].head;
	const struct ftl_operation *program = die->queue[programs].head;

	if (!read || !program)
		return read;
	if (ftl->config.policy == FTL_FIFO)
		return read->arrival < program->arrival;
	if (die->passed_over >= MAX_PASSED_OVER)
		return false;
	return reads == FTL_CLASS_FRONT_READ || !die->front_programs;
}

/* Which of the reads is next, if a read is. */
static enum ftl_class next_reads(const struct ftl_die *die)
{
	if (!die->queue[FTL_CLASS_FRONT_READ].head)
		return FTL_CLASS_READ;
	if (!die->queue[FTL_CLASS_READ].head)
		return FTL_CLASS_FRONT_READ;
	return die->reads_passed_over < MAX_PASSED_OVER ? FTL_CLASS_FRONT_READ : FTL_CLASS_READ;
}

/* No more of them than there are rows for: what waits is what makes the next ones. */
static void pass_over_collection(struct ftl *ftl, struct ftl_die *die,
				 const struct ftl_operation *program)
{
	const struct ftl_operation *collect = die->queue[FTL_CLASS_COLLECT].head;

	if (!collect || collect->arrival > program->arrival || program->kind == FTL_SYSTEM_PROGRAM)
		return;
	ftl_invariant(die->collector.may_pass);
	die->collector.may_pass--;
	ftl->stats.collect_passed_over++;
}

static struct ftl_operation *next_operation(struct ftl *ftl, struct ftl_die *die)
{
	enum ftl_class reads = next_reads(die);
	enum ftl_class programs = next_programs(die);
	struct ftl_operation *operation;

	if (read_goes_first(ftl, die, reads, programs)) {
		if (die->queue[programs].head)
			die->passed_over++;
		if (reads == FTL_CLASS_READ)
			die->reads_passed_over = 0;
		else if (die->queue[FTL_CLASS_READ].head)
			die->reads_passed_over++;
		return ftl_queue_pop(&die->queue[reads]);
	}
	operation = ftl_queue_pop(&die->queue[programs]);
	if (!operation)
		return ftl_queue_pop(&die->queue[FTL_CLASS_BACKGROUND]);
	if (programs == FTL_CLASS_PROGRAM)
		pass_over_collection(ftl, die, operation);
	die->passed_over = 0;
	die->front_programs -= operation->foreground;
	return operation;
}

static void count_buffered(struct ftl *ftl, const struct ftl_operation *operation)
{
	if (ftl_store_is_buffer(ftl, operation->physical))
		ftl->stats.slc_page_programs += operation->pages;
}

static void count_wait(struct ftl *ftl, const struct ftl_operation *operation)
{
	uint64_t waited_ns = ftl->now_ns - operation->queued_ns;
	struct ftl_stats *stats = &ftl->stats;

	switch (operation->kind) {
	case FTL_READ_ROW:
		stats->row_reads++;
		stats->page_reads += operation->pages;
		stats->die_read_wait_ns += waited_ns;
		if (waited_ns > stats->die_read_wait_max_ns)
			stats->die_read_wait_max_ns = waited_ns;
		return;
	case FTL_PROGRAM_ROW:
		stats->row_programs++;
		stats->page_programs += operation->pages;
		count_buffered(ftl, operation);
		stats->die_program_wait_ns += waited_ns;
		if (waited_ns > stats->die_program_wait_max_ns)
			stats->die_program_wait_max_ns = waited_ns;
		return;
	case FTL_COLLECT_READ:
		stats->collect_row_reads++;
		stats->collect_page_reads += operation->pages;
		return;
	case FTL_COLLECT_PROGRAM:
		stats->collect_row_programs++;
		stats->collect_page_programs += operation->pages;
		return;
	case FTL_SPREAD_READ:
	case FTL_VERIFY_READ:
		stats->row_reads++;
		stats->page_reads += operation->pages;
		return;
	case FTL_MAP_PROGRAM:
		stats->map_row_programs++;
		stats->map_page_programs += operation->pages;
		count_buffered(ftl, operation);
		return;
	case FTL_SYSTEM_PROGRAM:
		stats->log_row_programs++;
		stats->log_page_programs += operation->pages;
		return;
	default:
		return;
	}
}

static bool reads(enum ftl_kind kind)
{
	return kind == FTL_READ_ROW || kind == FTL_COLLECT_READ || kind == FTL_SPREAD_READ ||
	       kind == FTL_VERIFY_READ || kind == FTL_MAP_READ || kind == FTL_PREFETCH_READ;
}

static bool erases(enum ftl_kind kind)
{
	return kind == FTL_ERASE_BLOCK || kind == FTL_SYSTEM_ERASE;
}

/* Of a row of the host's, the collector's or the map's: the system area is like main flash. */
enum kind_of_row { LOWER, UPPER, BUFFER };

/* Where cells hold several bits, every other row is of their upper ones, which take longer. */
static enum kind_of_row row_of(const struct ftl *ftl, const struct ftl_operation *operation)
{
	if (operation->kind == FTL_SYSTEM_PROGRAM)
		return LOWER;
	if (ftl_store_is_buffer(ftl, operation->physical))
		return BUFFER;
	return operation->physical / ftl->config.row_pages % 2 ? UPPER : LOWER;
}

static uint64_t read_ns(const struct ftl *ftl, const struct ftl_operation *operation)
{
	const struct ftl_config *config = &ftl->config;

	switch (row_of(ftl, operation)) {
	case BUFFER:
		return config->slc_read_ns;
	case UPPER:
		return config->read_upper_ns ? config->read_upper_ns : config->read_ns;
	default:
		return config->read_ns;
	}
}

static uint64_t program_ns(const struct ftl *ftl, const struct ftl_operation *operation)
{
	const struct ftl_config *config = &ftl->config;

	switch (row_of(ftl, operation)) {
	case BUFFER:
		return config->slc_program_ns;
	case UPPER:
		return config->program_upper_ns ? config->program_upper_ns : config->program_ns;
	default:
		return config->program_ns;
	}
}

static uint64_t channel_ns(const struct ftl *ftl, const struct ftl_operation *operation)
{
	return operation->pages * ftl->config.channel_page_ns;
}

static void channel_take(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_channel *channel = &ftl->channel[die->channel];

	if (!channel->user) {
		channel->user = die;
		set_due(ftl, die, FTL_CHANNEL, channel_ns(ftl, die->serving));
		return;
	}
	die->phase = FTL_WAIT_CHANNEL;
	die->next_waiting = NULL;
	if (channel->head)
		channel->tail->next_waiting = die;
	else
		channel->head = die;
	channel->tail = die;
}

static void channel_release(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_channel *channel = &ftl->channel[die->channel];
	struct ftl_die *next = channel->head;

	channel->user = NULL;
	if (!next)
		return;
	channel->head = next->next_waiting;
	channel_take(ftl, next);
}

static void start_read(struct ftl *ftl, struct ftl_die *die)
{
	if (ftl->config.dies_per_channel == 1)
		set_due(ftl, die, FTL_WHOLE,
			read_ns(ftl, die->serving) + channel_ns(ftl, die->serving));
	else
		set_due(ftl, die, FTL_CELLS, read_ns(ftl, die->serving));
}

static void start_program(struct ftl *ftl, struct ftl_die *die)
{
	if (ftl->config.dies_per_channel == 1 && !ftl->config.suspend_ns)
		set_due(ftl, die, FTL_WHOLE,
			channel_ns(ftl, die->serving) + program_ns(ftl, die->serving));
	else
		channel_take(ftl, die);
}

/* Suspension. */

static bool read_is_queued(const struct ftl_die *die)
{
	return die->queue[FTL_CLASS_FRONT_READ].head || die->queue[FTL_CLASS_READ].head;
}

/*
 * What is programmed or erased makes way for a read that would wait longer than
 * that takes, but not more often than a program is passed over.
 */
static void suspend(struct ftl *ftl, struct ftl_die *die)
{
	uint64_t due_ns = ftl->due_ns[FTL_DUE_DIE + die_index(ftl, die)];

	if (!ftl->config.suspend_ns || die->suspended || die->suspended_for >= MAX_PASSED_OVER ||
	    (die->phase != FTL_CELLS && die->phase != FTL_ERASE_FIRST) ||
	    reads(die->serving->kind) || due_ns - ftl->now_ns <= ftl->config.suspend_ns)
		return;
	ftl->stats.suspensions++;
	die->suspended_phase = die->phase;
	die->suspended_ns = due_ns - ftl->now_ns;
	set_due(ftl, die, FTL_SUSPENDING, ftl->config.suspend_ns);
}

/* True where it went on with what was suspended, for no read is to be served first. */
static bool resume(struct ftl *ftl, struct ftl_die *die)
{
	if (read_is_queued(die) && die->suspended_for < MAX_PASSED_OVER) {
		die->suspended_for++;
		return false;
	}
	die->serving = die->suspended;
	die->suspended = NULL;
	ftl_stats_busy(ftl, 1);
	set_due(ftl, die, die->suspended_phase, die->suspended_ns);
	return true;
}

static void serve(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_operation *operation;

	if (die->suspended && resume(ftl, die))
		return;
	operation = die->suspended ? ftl_queue_pop(&die->queue[next_reads(die)]) :
				     next_operation(ftl, die);
	if (!operation)
		return;
	die->serving = operation;
	ftl_stats_busy(ftl, 1);
	count_wait(ftl, operation);
	if (reads(operation->kind))
		start_read(ftl, die);
	else if (erases(operation->kind))
		set_due(ftl, die, FTL_CELLS, ftl->config.erase_ns);
	else if (operation->erase_first)
		set_due(ftl, die, FTL_ERASE_FIRST, ftl->config.erase_ns);
	else
		start_program(ftl, die);
}

void ftl_die_queue(struct ftl *ftl, struct ftl_die *die, struct ftl_operation *operation,
		   enum ftl_class class)
{
	operation->arrival = ftl->next_arrival++;
	operation->queued_ns = ftl->now_ns;
	if (class == FTL_CLASS_PROGRAM)
		die->front_programs += operation->foreground;
	ftl_queue_push(&die->queue[class], operation);
	if (die->phase == FTL_IDLE)
		serve(ftl, die);
	else if (class == FTL_CLASS_READ || class == FTL_CLASS_FRONT_READ)
		suspend(ftl, die);
}

bool ftl_die_cancel(struct ftl_die *die, struct ftl_operation *operation, enum ftl_class class)
{
	return ftl_queue_remove(&die->queue[class], operation);
}

static void finish(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_operation *operation = die->serving;

	if (!reads(operation->kind) && ftl_power_cut_now(ftl))
		return;
	die->serving = NULL;
	die->phase = FTL_IDLE;
	if (!die->suspended)
		die->suspended_for = 0;
	ftl_stats_busy(ftl, -1);

	switch (operation->kind) {
	case FTL_READ_ROW:
		ftl_command_row_read(ftl, operation);
		break;
	case FTL_PROGRAM_ROW:
		ftl_cache_row_done(ftl, (struct ftl_row *)operation);
		break;
	case FTL_COLLECT_READ:
	case FTL_COLLECT_PROGRAM:
		ftl_collect_done(ftl, die);
		break;
	case FTL_SPREAD_READ:
		ftl_janus_read(ftl, operation);
		break;
	case FTL_VERIFY_READ:
		ftl_command_verified(ftl, operation);
		break;
	case FTL_PREFETCH_READ:
		ftl_readcache_fetched(ftl, operation);
		break;
	case FTL_MAP_READ:
		ftl_mapcache_read_done(ftl, operation);
		break;
	case FTL_MAP_PROGRAM:
		ftl_mapcache_row_done(ftl, (struct ftl_map_row *)operation);
		break;
	case FTL_SYSTEM_PROGRAM:
		ftl_system_programmed(ftl, operation->physical);
		break;
	case FTL_SYSTEM_ERASE:
		ftl_system_erased(ftl, operation->physical);
		break;
	default:
		ftl_store_erased_ahead(ftl, die);
	}
	if (die->phase == FTL_IDLE)
		serve(ftl, die);
}

static void suspended(struct ftl *ftl, struct ftl_die *die)
{
	die->suspended = die->serving;
	die->serving = NULL;
	die->phase = FTL_IDLE;
	ftl_stats_busy(ftl, -1);
	serve(ftl, die);
}

void ftl_die_event(struct ftl *ftl, struct ftl_die *die)
{
	enum ftl_kind kind = die->serving->kind;

	ftl->due_ns[FTL_DUE_DIE + die_index(ftl, die)] = FTL_NEVER;
	if (die->phase == FTL_SUSPENDING) {
		suspended(ftl, die);
		return;
	}
	if (die->phase == FTL_ERASE_FIRST) {
		if (ftl_power_cut_now(ftl))
			return;
		ftl_store_erased(ftl, die->serving->physical);
		start_program(ftl, die);
		return;
	}
	if (die->phase == FTL_WHOLE) {
		finish(ftl, die);
		return;
	}
	if (die->phase == FTL_CELLS) {
		if (reads(kind))
			channel_take(ftl, die);
		else
			finish(ftl, die);
		return;
	}

	channel_release(ftl, die);
	if (reads(kind))
		finish(ftl, die);
	else
		set_due(ftl, die, FTL_CELLS, program_ns(ftl, die->serving));
}

/* Queues are RAM; what the cells make of an operation in service, power.c says. */
void ftl_die_power_lost(struct ftl *ftl)
{
	uint32_t i;

	ftl_stats_busy(ftl, -(int)ftl->busy_dies);
	for (i = 0; i < ftl->dies; i++) {
		struct ftl_die *die = &ftl->die[i];

		memset(die->queue, 0, sizeof(die->queue));
		die->serving = NULL;
		die->suspended = NULL;
		die->suspended_for = 0;
		die->phase = FTL_IDLE;
		die->passed_over = 0;
		die->reads_passed_over = 0;
		die->front_programs = 0;
		ftl->due_ns[FTL_DUE_DIE + i] = FTL_NEVER;
	}
	memset(ftl->channel, 0, sizeof(ftl->channel));
}
