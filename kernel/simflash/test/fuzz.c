// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer's way into the models: the first byte says which. */
#include <stdio.h>
#include <stdlib.h>

#include "mirror.h"
#include "model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	const char *broken;

	if (!count)
		return 0;
	broken = bytes[0] & 1 ? model_play(bytes + 1, count - 1) :
				mirror_play(bytes + 1, count - 1, NULL);
	if (broken) {
		fprintf(stderr, "%s\n", broken);
		abort();
	}
	return 0;
}
