// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer's way into the model. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	const char *broken = model_play(bytes, count);

	if (broken) {
		fprintf(stderr, "%s\n", broken);
		abort();
	}
	return 0;
}
