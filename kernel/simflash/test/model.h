/* SPDX-License-Identifier: GPL-2.0-only */
/* A device against a model of what it may answer, driven by bytes. */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a device's shape and then a stream of operations from the bytes, and
 * plays it. NULL if the device kept every promise, else the broken one.
 */
const char *model_play(const uint8_t *bytes, size_t count);

#endif
