/* SPDX-License-Identifier: GPL-2.0-only */
/* A device in virtual time, for tests: the part that the module's front end plays. */
#ifndef DEVICE_H
#define DEVICE_H

#include "host.h"

struct device {
	struct ftl *ftl;
	struct ftl_config config;
	uint64_t now_ns;
	unsigned int in_flight;
	bool taken[FTL_MAX_QUEUE_DEPTH + 1];
};

/* A small device whose times are round numbers, to be changed before device_open(). */
struct ftl_config device_config(void);

void device_open(struct device *device, const struct ftl_config *config);
void device_close(struct device *device);

/*
 * A command in a free slot, not submitted; NULL if all are taken. A read's or
 * write's data is at `memory`, pages * 4096 bytes, which a read fills later.
 */
struct ftl_cmd *device_command(struct device *device, enum ftl_op op, uint32_t lba,
			       uint32_t pages, void *memory);
/* A Janus command, in its own slot; the ranges stay the caller's. */
struct ftl_cmd *device_control(struct device *device, enum ftl_op op,
			       const struct ftl_range *range, uint32_t ranges);
void device_submit(struct device *device, struct ftl_cmd *cmd);
/* Gives the slot back. */
void device_release(struct device *device, struct ftl_cmd *cmd);
/* The next command that ends, time moved on to its end; NULL if none is under way. */
struct ftl_cmd *device_next(struct device *device);
/* Submits, waits for the end of this very command and gives the slot back; whether it went well. */
bool device_run(struct device *device, struct ftl_cmd *cmd);

/* Submits and waits for all that is under way; how long that took. */
uint64_t device_do(struct device *device, enum ftl_op op, uint32_t lba, uint32_t pages,
		   void *memory);
uint64_t device_write(struct device *device, uint32_t lba, uint64_t word);
uint64_t device_read(struct device *device, uint32_t lba, uint64_t *word);
uint64_t device_drain(struct device *device);

/* Fills pages, each of its own uniform word: first, first + 1 ... */
void fill_uniform(void *memory, uint32_t pages, uint64_t first);
/* Fills pages that are not uniform. */
void fill_mixed(void *memory, uint32_t pages, uint64_t first);

#endif
