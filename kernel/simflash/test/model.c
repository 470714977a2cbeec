// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a device promises, whatever is in flight:
 *
 *  - a read returns a version of each page that was current at some time
 *    between its submission and its end;
 *  - after a flush, what was written before it was submitted is in flash, and
 *    after a FUA write the pages it wrote; and flash never falls back behind;
 *  - the core's invariants (invariants.h);
 *  - every command ends, and no memory is left.
 *
 * Each page's versions are numbered in order of submission; `low` is the
 * newest one whose command has ended, `high` the newest one submitted.
 */
#include <stdlib.h>

#include "../ftl/internal.h"
#include "bytes.h"
#include "device.h"
#include "invariants.h"
#include "model.h"

#define MAX_LBAS 512
#define MAX_PAGES 16
#define MAX_DEPTH 8

struct lba {
	uint32_t low, high, durable;
	uint32_t zero;		/* newest version that is a discard; 0 is one */
	uint32_t writers, discards;
};

struct command {
	struct ftl_cmd *cmd;
	uint32_t version[MAX_PAGES];	/* of a write; a read: low at submission */
	uint32_t *flushed;		/* of a flush: every low at submission */
	char *memory;
};

struct model {
	struct device device;
	struct lba lba[MAX_LBAS];
	uint32_t lbas;
	struct command command[MAX_DEPTH];
	struct bytes bytes;
	const char *broken;
};

static void read_config(struct model *model, struct ftl_config *config)
{
	uint8_t times = bytes_take(&model->bytes);

	*config = (struct ftl_config){ .command_pages = MAX_PAGES };
	config->capacity_pages = 32 + bytes_below(&model->bytes, MAX_LBAS - 32 + 1);
	config->spare_percent = bytes_below(&model->bytes, 200);
	config->queue_depth = 1 + bytes_below(&model->bytes, MAX_DEPTH);
	config->power_loss = bytes_below(&model->bytes, 2);
	bytes_config(&model->bytes, config);
	config->log_pages = 4 * config->row_pages;
	if (times & 1)
		config->read_ns = 100;
	if (times & 2)
		config->program_ns = 1000;
	if (times & 4)
		config->erase_ns = 5000;
	if (times & 8)
		config->channel_page_ns = 10;
	if (times & 16)
		config->link_page_ns = 15;
	if (times & 32)
		config->write_command_ns = config->read_command_ns = 50;
	if (times & 64)
		config->discard_command_ns = config->discard_mib_ns = 300;
	if (times & 128)
		config->response_ns = 20;
	model->lbas = config->capacity_pages;
}

/* A page that tells its LBA and version; uniform or not by the version. */
static void make_page(char *memory, uint32_t lba, uint32_t version)
{
	uint64_t word = (uint64_t)(lba + 1) << 32 | version;

	if (version % 3)
		fill_uniform(memory, 1, word);
	else
		fill_mixed(memory, 1, word);
}

static bool holds(const char *memory, uint32_t lba, uint32_t version)
{
	char page[FTL_PAGE_BYTES];

	make_page(page, lba, version);
	return !memcmp(memory, page, sizeof(page));
}

static bool is_zero(const char *memory)
{
	static const char zero[FTL_PAGE_BYTES];

	return !memcmp(memory, zero, sizeof(zero));
}

static bool may_be_read(const struct model *model, uint32_t lba, uint32_t low,
			const char *memory)
{
	const struct lba *state = &model->lba[lba];
	uint32_t version;
	uint64_t word;

	if (is_zero(memory))
		return state->zero >= low;
	memcpy(&word, memory, sizeof(word));
	version = (uint32_t)word;
	return version >= low && version <= state->high && holds(memory, lba, version);
}

/*
 * What flash holds of an LBA by its map, the cache left out, is new enough.
 * Its first word tells the version; reads have compared whole pages.
 */
static bool durable(const struct model *model, uint32_t lba, uint32_t low)
{
	const struct ftl *ftl = model->device.ftl;
	const struct ftl_page *page;
	uint32_t physical;
	uint64_t word;

	if (!ftl_map_find(ftl, lba, &physical))
		return model->lba[lba].zero >= low;
	page = &ftl->block[physical / ftl->config.block_pages]
			.page[physical % ftl->config.block_pages];
	word = page->buffer ? *(const uint64_t *)(uintptr_t)page->word : page->word;
	return word >> 32 == lba + 1 && (uint32_t)word >= low &&
	       (uint32_t)word <= model->lba[lba].high;
}

static void raise_durable(struct model *model, uint32_t lba, uint32_t version)
{
	if (model->lba[lba].durable < version)
		model->lba[lba].durable = version;
}

static void check_durable(struct model *model)
{
	uint32_t lba;

	for (lba = 0; lba < model->lbas && !model->broken; lba++) {
		if (!durable(model, lba, model->lba[lba].durable))
			model->broken = "flash fell back behind a flushed version";
	}
}

static struct command *command_of(struct model *model, const struct ftl_cmd *cmd)
{
	struct command *command = model->command;

	while (command->cmd != cmd)
		command++;
	return command;
}

static void end_read(struct model *model, const struct command *command)
{
	uint32_t page;

	for (page = 0; page < command->cmd->pages; page++) {
		if (!may_be_read(model, command->cmd->lba + page, command->version[page],
				 command->memory + page * FTL_PAGE_BYTES))
			model->broken = "a read returned what was never current during it";
	}
}

static void end_change(struct model *model, const struct command *command)
{
	const struct ftl_cmd *cmd = command->cmd;
	uint32_t page;

	for (page = 0; page < cmd->pages; page++) {
		struct lba *state = &model->lba[cmd->lba + page];

		if (cmd->op == FTL_WRITE)
			state->writers--;
		else
			state->discards--;
		if (state->low < command->version[page])
			state->low = command->version[page];
		if (cmd->fua)
			raise_durable(model, cmd->lba + page, command->version[page]);
	}
}

static void end_flush(struct model *model, const struct command *command)
{
	uint32_t lba;

	for (lba = 0; lba < model->lbas; lba++)
		raise_durable(model, lba, command->flushed[lba]);
}

static void end_command(struct model *model, struct ftl_cmd *cmd)
{
	struct command *command = command_of(model, cmd);

	if (cmd->status == FTL_CORRUPT)
		model->broken = "a page's OOB named another LBA";
	else if (cmd->status != FTL_OK)
		model->broken = "a command failed on a device that has flash for all of its pages";
	else if (cmd->op == FTL_READ)
		end_read(model, command);
	else if (cmd->op == FTL_FLUSH)
		end_flush(model, command);
	else
		end_change(model, command);
	if (!model->broken && (cmd->op == FTL_FLUSH || cmd->fua))
		check_durable(model);

	device_release(&model->device, cmd);
	free(command->memory);
	free(command->flushed);
	memset(command, 0, sizeof(*command));
}

static void collect(struct model *model)
{
	struct ftl_cmd *cmd;

	while ((cmd = ftl_take_done(model->device.ftl)))
		end_command(model, cmd);
}

static void drain(struct model *model)
{
	struct ftl_cmd *cmd;

	while ((cmd = device_next(&model->device)))
		end_command(model, cmd);
	if (model->device.in_flight)
		model->broken = "a command never ended";
}

/* Write and discard of one page at the same time have no order to check. */
static bool conflicts(const struct model *model, enum ftl_op op, uint32_t lba, uint32_t pages)
{
	for (; pages--; lba++) {
		if (op == FTL_WRITE && model->lba[lba].discards)
			return true;
		if (op == FTL_DISCARD && (model->lba[lba].writers || model->lba[lba].discards))
			return true;
	}
	return false;
}

static void prepare_read(struct model *model, struct command *command, uint32_t lba,
			 uint32_t pages)
{
	uint32_t page;

	for (page = 0; page < pages; page++)
		command->version[page] = model->lba[lba + page].low;
}

static void prepare_change(struct model *model, struct command *command, enum ftl_op op,
			   uint32_t lba, uint32_t pages)
{
	uint32_t page;

	for (page = 0; page < pages; page++) {
		struct lba *state = &model->lba[lba + page];

		command->version[page] = ++state->high;
		if (op == FTL_WRITE) {
			state->writers++;
			make_page(command->memory + page * FTL_PAGE_BYTES, lba + page,
				  state->high);
		} else {
			state->discards++;
			state->zero = state->high;
		}
	}
}

static void prepare_flush(struct model *model, struct command *command)
{
	uint32_t lba;

	command->flushed = calloc(model->lbas, sizeof(*command->flushed));
	for (lba = 0; lba < model->lbas; lba++)
		command->flushed[lba] = model->lba[lba].low;
}

static void submit(struct model *model, enum ftl_op op, uint32_t lba, uint32_t pages, bool fua)
{
	struct command *command = model->command;
	struct ftl_cmd *cmd;

	if (model->device.in_flight == model->device.config.queue_depth ||
	    conflicts(model, op, lba, pages))
		drain(model);
	while (command->cmd)
		command++;

	command->memory = malloc((size_t)pages * FTL_PAGE_BYTES + 1);
	if (op == FTL_READ)
		prepare_read(model, command, lba, pages);
	else if (op == FTL_FLUSH)
		prepare_flush(model, command);
	else
		prepare_change(model, command, op, lba, pages);
	cmd = device_command(&model->device, op, lba, pages, command->memory);
	cmd->fua = fua;
	cmd->foreground = bytes_below(&model->bytes, 2);
	cmd->stream = bytes_below(&model->bytes, FTL_MAX_STREAMS + 1);
	command->cmd = cmd;
	device_submit(&model->device, cmd);
	collect(model);
}

static void pass_time(struct model *model)
{
	uint64_t ns = bytes_below(&model->bytes, 3000);

	if (ns % 2)
		model->device.now_ns = ftl_next_ns(model->device.ftl) == FTL_NEVER ?
			model->device.now_ns : ftl_next_ns(model->device.ftl);
	else
		model->device.now_ns += ns;
	ftl_run(model->device.ftl, model->device.now_ns);
	collect(model);
}

static void step(struct model *model)
{
	uint8_t what = bytes_take(&model->bytes);
	uint32_t lba = bytes_below(&model->bytes, model->lbas);
	uint32_t pages = 1 + (what >> 4);

	if (pages > model->lbas - lba)
		pages = model->lbas - lba;
	switch (what & 15) {
	case 0: case 1: case 2: case 3: case 4:
		submit(model, FTL_WRITE, lba, pages, false);
		return;
	case 5:
		submit(model, FTL_WRITE, lba, pages, true);
		return;
	case 6: case 7: case 8: case 9:
		submit(model, FTL_READ, lba, pages, false);
		return;
	case 10:
		submit(model, FTL_FLUSH, 0, 0, false);
		return;
	case 11:
		submit(model, FTL_DISCARD, lba, pages, false);
		return;
	case 12:
		check_durable(model);
		return;
	default:
		pass_time(model);
	}
}

static void read_everything(struct model *model)
{
	uint32_t lba;

	for (lba = 0; lba < model->lbas && !model->broken; lba++)
		submit(model, FTL_READ, lba, 1, false);
	drain(model);
}

static void check_invariants(struct model *model)
{
	if (!model->broken)
		model->broken = broken_invariant(model->device.ftl);
}

const char *model_play(const uint8_t *bytes, size_t count)
{
	struct model *model = calloc(1, sizeof(*model));
	struct ftl_config config;
	long held = host_held;
	const char *broken;
	uint32_t steps = 0;

	model->bytes = (struct bytes){ bytes, count };
	read_config(model, &config);
	device_open(&model->device, &config);
	while (model->bytes.left && !model->broken) {
		step(model);
		if (!(++steps % 64))
			check_invariants(model);
	}
	if (!model->broken)
		drain(model);
	check_invariants(model);
	if (!model->broken)
		read_everything(model);

	broken = model->broken;
	if (!broken) {
		device_close(&model->device);
		if (host_held != held)
			broken = "memory was left";
	}
	free(model);
	return broken;
}
