// SPDX-License-Identifier: GPL-2.0-only
#include "load.h"
#include "profile.h"

static char memory[128 * FTL_PAGE_BYTES];

static uint32_t next_lba(const struct load *load, uint32_t number, uint64_t *state)
{
	uint32_t slots = load->area_mib * 256 / load->pages;

	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	if (load->pattern == SEQUENTIAL)
		return number % slots * load->pages;
	return (*state >> 33) % slots * load->pages;
}

static void submit(struct device *device, const struct load *load, uint32_t number,
		   uint64_t *state)
{
	uint32_t lba = next_lba(load, number, state);

	fill_uniform(memory, load->pages, number + 1);
	device_submit(device, device_command(device, load->op, lba, load->pages, memory));
}

double load_mb_s(struct device *device, const struct load *load)
{
	uint64_t start_ns = device->now_ns;
	uint64_t state = 1;
	uint32_t sent = 0;
	struct ftl_cmd *cmd;

	while (sent < load->depth)
		submit(device, load, sent++, &state);
	while (device->in_flight && (cmd = device_next(device))) {
		device_release(device, cmd);
		if (sent == load->commands)
			continue;
		if (load->depth == 1)
			device->now_ns += LOAD_HOST_NS;
		submit(device, load, sent++, &state);
	}
	return (double)load->commands * load->pages * FTL_PAGE_BYTES * 1000 /
	       (device->now_ns - start_ns);
}

bool load_open(struct device *device, const char *name, uint32_t area_mib)
{
	const struct load fill = { FTL_WRITE, SEQUENTIAL, 128, 1, area_mib * 2, area_mib };
	struct ftl_config config;

	if (!profile_read(name, &config))
		return false;
	device_open(device, &config);
	load_mb_s(device, &fill);
	device_do(device, FTL_FLUSH, 0, 0, NULL);
	device_drain(device);
	return true;
}
