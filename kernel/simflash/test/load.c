// SPDX-License-Identifier: GPL-2.0-only
#include "load.h"
#include "profile.h"

static char memory[FTL_MAX_COMMAND_PAGES * FTL_PAGE_BYTES];

/* A load on its way: requests that are larger than a command go as several. */
struct stream {
	const struct load *load;
	uint64_t state;
	uint32_t parts;		/* of a request */
	uint32_t sent, commands;
	uint32_t lba;		/* of the request that is being sent */
};

static uint32_t next_lba(struct stream *stream)
{
	const struct load *load = stream->load;
	uint32_t slots = load->area_mib * 256 / load->pages;

	stream->state = stream->state * 6364136223846793005ull + 1442695040888963407ull;
	if (load->pattern == SEQUENTIAL)
		return stream->sent / stream->parts % slots * load->pages;
	return (stream->state >> 33) % slots * load->pages;
}

static void submit(struct device *device, struct stream *stream)
{
	uint32_t most = device->config.command_pages, part = stream->sent % stream->parts;
	uint32_t pages = stream->load->pages - part * most;

	if (!part)
		stream->lba = next_lba(stream);
	if (pages > most)
		pages = most;
	fill_uniform(memory, pages, ++stream->sent);
	device_submit(device, device_command(device, stream->load->op,
					     stream->lba + part * most, pages, memory));
}

/* At depth 1 a request is not begun before the last one has ended. */
static bool may_submit(const struct device *device, const struct stream *stream)
{
	uint32_t depth = stream->load->depth * stream->parts;

	if (depth > device->config.queue_depth)
		depth = device->config.queue_depth;
	if (stream->sent == stream->commands || device->in_flight >= depth)
		return false;
	return stream->load->depth > 1 || !device->in_flight || stream->sent % stream->parts;
}

double load_mb_s(struct device *device, const struct load *load)
{
	uint64_t start_ns = device->now_ns;
	struct stream stream = { .load = load, .state = 1 };
	struct ftl_cmd *cmd;

	stream.parts = (load->pages - 1) / device->config.command_pages + 1;
	stream.commands = load->requests * stream.parts;
	while (stream.sent < stream.commands || device->in_flight) {
		if (load->depth == 1 && stream.sent && stream.sent < stream.commands &&
		    !device->in_flight)
			device->now_ns += LOAD_HOST_NS;
		while (may_submit(device, &stream))
			submit(device, &stream);
		cmd = device_next(device);
		if (!cmd)
			break;
		device_release(device, cmd);
	}
	return (double)load->requests * load->pages * FTL_PAGE_BYTES * 1000 /
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
