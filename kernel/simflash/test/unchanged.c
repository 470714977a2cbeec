// SPDX-License-Identifier: GPL-2.0-only
/*
 * Figures that were measured on a device that never filled up stand as long as
 * that device does the same at the same time: a long random trace must end its
 * commands in the same order, at the same nanoseconds.
 */
#include <stdlib.h>

#include "suites.h"
#include "device.h"
#include "profile.h"

#define COMMANDS 40000

static char memory[128 * FTL_PAGE_BYTES];

static uint32_t below(uint64_t *state, uint32_t limit)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (*state >> 33) % limit;
}

static uint64_t fold(uint64_t digest, uint64_t value)
{
	return (digest ^ value) * 0x100000001b3ull;
}

static uint64_t fold_command(uint64_t digest, const struct ftl_cmd *cmd)
{
	digest = fold(digest, cmd->op << 1 | cmd->fua);
	digest = fold(digest, cmd->lba);
	digest = fold(digest, cmd->status);
	return fold(digest, cmd->due_ns);
}

static struct ftl_cmd *random_command(struct device *device, uint64_t *state)
{
	static const enum ftl_op often[] = {
		FTL_WRITE, FTL_WRITE, FTL_WRITE, FTL_WRITE, FTL_WRITE, FTL_WRITE,
		FTL_READ, FTL_READ, FTL_READ, FTL_READ, FTL_READ, FTL_FLUSH, FTL_DISCARD,
	};
	enum ftl_op op = often[below(state, sizeof(often) / sizeof(often[0]))];
	uint32_t pages = 1u << below(state, 8);
	/* Half of it goes to one sixty-fourth of the device. */
	uint32_t area = device->config.capacity_pages >> (below(state, 2) ? 6 : 0);
	uint32_t lba = below(state, area - pages);
	struct ftl_cmd *cmd;

	if (op == FTL_DISCARD)
		pages *= 1 + below(state, 8);
	if (op == FTL_WRITE)
		fill_uniform(memory, pages, *state | 1);
	cmd = device_command(device, op, lba, op == FTL_FLUSH ? 0 : pages, memory);
	if (cmd)
		cmd->fua = op == FTL_WRITE && !below(state, 8);
	return cmd;
}

static uint64_t digest(const char *profile)
{
	uint64_t state = 20170814, digest = 0xcbf29ce484222325ull;
	struct ftl_config config;
	struct device device;
	struct ftl_cmd *cmd;
	uint32_t sent = 0;

	if (!profile_read(profile, &config))
		return 0;
	device_open(&device, &config);
	while (sent < COMMANDS) {
		cmd = random_command(&device, &state);
		if (cmd) {
			device_submit(&device, cmd);
			sent++;
		}
		if (below(&state, 4))
			device.now_ns += below(&state, 400000);
		if (!cmd || !below(&state, 3)) {
			cmd = device_next(&device);
			if (!cmd)
				continue;
			digest = fold_command(digest, cmd);
			device_release(&device, cmd);
		}
	}
	while ((cmd = device_next(&device))) {
		digest = fold_command(digest, cmd);
		device_release(&device, cmd);
	}
	device_close(&device);
	return digest;
}

static void a_device_that_never_fills_keeps_its_times(void)
{
	EXPECT(digest("emmc") == 0x1e19d5788a81be3c);
	EXPECT(digest("ufs") == 0x8fac2d6740aeb116);
	EXPECT(digest("zero") == 0x91b826d6a3f6dde5);
}

const struct test unchanged_tests[] = {
	TEST(a_device_that_never_fills_keeps_its_times),
	{ NULL, NULL },
};
